package httpapi

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Upload is a file that came with a form.
type Upload struct {
	File *api.File // where it is kept; nil: it is not
	Err  error     // why it is not
	Name string    // how it was called, of one that was passed over
}

const (
	maxUploads = 16  // files in one form
	maxFields  = 512 // parts of one form, files included
	// maxUnkept is how much is read, in bytes, of the rest of files that are not kept, to get at what was typed behind
	// them: beyond it nobody is kept sending what nobody wants.
	maxUnkept = 8 << 20
)

// readParts reads a form that may bring files along, into r.PostForm and s.Files. A file is kept as it comes, and only
// if what came before it, the secret of the session, makes the form a good one; else it is passed over.
func (h *handler) readParts(w http.ResponseWriter, r *http.Request, parts *multipart.Reader, s *Session) error {
	r.PostForm, s.Files = url.Values{}, map[string]Upload{}
	left, came, early, unkept := int64(MaxBody), 0, passedOver{}, int64(maxUnkept)
	files := r.ContentLength - MaxBody // so much of it is files, at least, as far as it says how long it is
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		switch {
		case err == io.EOF: // the form's own end: notTheEnd
			early.refuse(r, s)
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // recorders of tests have none
			return nil
		case err != nil:
			return api.Errorf(api.Invalid, "the form broke off: %v", err)
		case n >= maxFields:
			return errTooLarge
		case part.FileName() != "":
			if worth(r, *s) != Good {
				early = append(early, passed{part.FormName(), part.FileName()})
				continue
			}
			up := h.keep(r, part, files, came)
			s.Files[part.FormName()] = up
			came++ // several may come under one name
			if up.Err == nil {
				files -= up.File.Size
				continue
			}
			n, err := io.CopyN(io.Discard, part, unkept)
			if unkept -= n; unkept == 0 {
				return errTooLarge
			}
			if err != io.EOF {
				return api.Errorf(api.Invalid, "the form broke off: %v", err)
			}
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, left+1))
		if err != nil {
			return api.Errorf(api.Invalid, "the form broke off: %v", err)
		}
		if left -= int64(len(text) + len(part.FormName())); left < 0 {
			return errTooLarge
		}
		r.PostForm.Add(part.FormName(), string(text))
	}
}

// notTheEnd is the body of a form that may bring files along, of which the end is an error. A reader of parts reads up
// to the line that ends the form, and not on; the end of a body it would take for that of the form, also after a
// boundary and in the head of a part. The end of that last line may lack.
func notTheEnd(body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(body, strings.NewReader("\r\n"), tooEarly{}), body}
}

// tooEarly is an end where none should be.
type tooEarly struct{}

func (tooEarly) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// passedOver are the files that came before the secret of the session, or in a form without it.
type passedOver []passed

type passed struct{ field, name string }

// errUnkept is of a form that is not carried out, of which all is said already.
var errUnkept = errors.New("the form is not carried out: its file is not kept")

// refuse says of them that they are not kept.
func (early passedOver) refuse(r *http.Request, s *Session) {
	err := errUnkept
	if worth(r, *s) == Good {
		err = api.Errorf(api.Invalid, "the file came before %s in its form: it is not kept", FormTokenField)
	}
	for _, f := range early {
		s.Files[f.field] = Upload{Err: err, Name: f.name}
	}
}

// keep keeps a file that comes after so many others of its form; atLeast is how many bytes it has with those behind it:
// where there is no room for that, none of it is read.
func (h *handler) keep(r *http.Request, part *multipart.Part, atLeast int64, before int) Upload {
	if before >= maxUploads {
		return Upload{Err: api.Errorf(api.Invalid, "a form brings at most %d files along", maxUploads)}
	}
	f, err := h.svc.PutFile(r.Context(), part.FileName(), sized{part, atLeast})
	return Upload{File: f, Err: err}
}
