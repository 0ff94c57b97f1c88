package httpapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// A script of the page sends a file in pieces, so that a link that breaks costs what was on its way, and no more:
// what came is kept, and the next piece goes on from there. The file is kept as it comes, as one that a form brings
// along. Without the script forms bring files along in one request (upload.go).

const (
	// UploadsPath is where pieces of a file go: POST to a name below it that the browser makes up, with name, size
	// and at in the query, and Session.FormToken in the header FormTokenHeader. The answer is a Piece; status 409
	// says that the file goes on elsewhere than at the place that was named, 404 that it has to begin again.
	UploadsPath = "/uploads/"
	// FormTokenHeader has Session.FormToken: no other site's page can send it along.
	FormTokenHeader = "Form-Token"

	maxPiece    = 8 << 20
	maxUnderWay = 32 // files, of all browsers
	// uploadIdle is how long a file that comes waits for its next piece.
	uploadIdle = 10 * time.Minute
)

// Piece answers a piece of a file.
type Piece struct {
	At   int64     `json:"at"`             // up to where the file came
	File *api.File `json:"file,omitempty"` // all of it came, and is kept
}

// uploads are the files that come in pieces. Its zero value has none.
type uploads struct {
	mu sync.Mutex // guards of; taken before an upload's
	of map[string]*upload
}

// upload is a file that comes in pieces.
type upload struct {
	to     *io.PipeWriter
	size   int64
	idle   *time.Timer
	kept   chan struct{} // closed when result is there
	result Upload

	turn sync.Mutex // whoever has it sends the piece that comes

	mu     sync.Mutex // guards what follows
	at     int64
	last   time.Time // a piece came
	giveUp func()    // ends the piece that comes now; nil: none does
}

// piece takes a piece of a file.
func (h *handler) piece(w http.ResponseWriter, r *http.Request) error {
	p, secret, ok := h.session(r)
	if site := r.Header.Get("Sec-Fetch-Site"); !ok || h.ended(p) || site != "" && site != "same-origin" {
		return withStatus(http.StatusUnauthorized, api.Errorf(api.NotAllowed, "this browser is not signed in"))
	}
	if given := r.Header.Get(FormTokenHeader); subtle.ConstantTimeCompare([]byte(given), []byte(formToken(secret))) != 1 || !p.acts {
		return api.Errorf(api.NotAllowed, "only the node's own page may send files, for a user who may act")
	}
	q := r.URL.Query()
	size, err := strconv.ParseInt(q.Get("size"), 10, 64)
	at, err2 := strconv.ParseInt(q.Get("at"), 10, 64)
	id := strings.TrimPrefix(r.URL.Path, UploadsPath)
	if err = errors.Join(err, err2); err != nil || size < 0 || at < 0 || at > size || len(id) < 16 || len(id) > 64 {
		return api.Errorf(api.Invalid, "size %q and at %q: want numbers of bytes, and a name of 16 to 64 letters",
			q.Get("size"), q.Get("at"))
	}
	u, err := h.uploads.find(secret+"/"+id, at, func() *upload { return h.begin(q.Get("name"), size) })
	if err != nil {
		return err
	}
	return u.take(w, r, at)
}

// find is the upload of that name; at its beginning it is made.
func (u *uploads) find(name string, at int64, begin func() *upload) (*upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if up := u.of[name]; up != nil {
		return up, nil
	}
	if at > 0 {
		return nil, withStatus(http.StatusNotFound,
			api.Errorf(api.NotFound, "nothing of this file is here any more: begin again"))
	}
	u.forget()
	if len(u.of) >= maxUnderWay {
		return nil, api.Errorf(api.Refused, "%d files come already: wait until one of them is here", len(u.of))
	}
	if u.of == nil {
		u.of = map[string]*upload{}
	}
	up := begin()
	u.of[name] = up
	return up, nil
}

// sized is content of which is known how much comes: what has no room is refused before it does.
type sized struct {
	io.Reader
	size int64
}

// Announced is how many bytes come; below 0: that is not known.
func (s sized) Announced() int64 { return s.size }

// begin has the node keep a file as its pieces come.
func (h *handler) begin(name string, size int64) *upload {
	from, to := io.Pipe()
	u := &upload{to: to, size: size, kept: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background()) // it outlives the requests that bring it
	u.idle = time.AfterFunc(uploadIdle, func() {
		_ = to.CloseWithError(errors.New("the rest of the file did not come")) // it never fails
		cancel()
	})
	go func() {
		defer close(u.kept)
		f, err := h.svc.PutFile(ctx, name, sized{from, size})
		_ = from.CloseWithError(errKept) // a piece that comes now fails; it never fails itself
		u.result = Upload{File: f, Err: err}
	}()
	return u
}

// errPiece is what becomes of a piece that did not come whole, or was longer than it may be.
var errPiece = api.Errorf(api.Invalid, "the piece broke off")

// errKept is what a piece meets that comes when the node has kept the file, or has refused it.
var errKept = errors.New("the file is not taken any more")

// forget drops what ended longest ago, where there are as many as may be: nobody asks for it any more.
func (u *uploads) forget() {
	if len(u.of) < maxUnderWay {
		return
	}
	oldest, when := "", time.Now()
	for name, up := range u.of {
		up.mu.Lock()
		if up.ended() && up.last.Before(when) {
			oldest, when = name, up.last
		}
		up.mu.Unlock()
	}
	delete(u.of, oldest)
}

// ended reports whether the node has kept the file, or has refused it.
func (u *upload) ended() bool {
	select {
	case <-u.kept:
		return true
	default:
		return false
	}
}

// take takes a piece that begins at a place. A piece that still comes, over a link that nobody knows to be broken
// yet, is given up for it.
func (u *upload) take(w http.ResponseWriter, r *http.Request, at int64) error {
	u.mu.Lock()
	if u.giveUp != nil {
		u.giveUp()
	}
	u.mu.Unlock()
	u.turn.Lock()
	defer u.turn.Unlock()
	u.idle.Reset(uploadIdle)
	given := false
	u.mu.Lock()
	here := u.at
	u.last = time.Now()
	u.giveUp = func() {
		given = true
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	} // recorders of tests have none
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		u.giveUp = nil
		u.mu.Unlock()
	}()
	if at != here {
		return u.answer(w, http.StatusConflict)
	}
	body := http.MaxBytesReader(w, r.Body, min(maxPiece, u.size-at))
	buf := make([]byte, 64<<10)
	for {
		u.mu.Lock()
		if given { // its deadline must not be moved any more
			u.mu.Unlock()
			return errPiece
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience)) // recorders of tests have none
		u.mu.Unlock()
		n, err := body.Read(buf)
		if n > 0 {
			put, wrong := u.to.Write(buf[:n])
			u.mu.Lock()
			u.at += int64(put)
			u.mu.Unlock()
			if wrong != nil {
				_, _ = io.Copy(io.Discard, body) // a browser reads an answer when its piece was read
				return u.end(w)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if u.at == u.size {
				return u.end(w)
			}
			return u.answer(w, http.StatusOK)
		case err != nil:
			return errPiece
		}
	}
}

// end says what became of the file.
func (u *upload) end(w http.ResponseWriter) error {
	_ = u.to.Close() // it never fails
	<-u.kept
	if u.result.Err != nil {
		return u.result.Err
	}
	return u.answer(w, http.StatusOK)
}

func (u *upload) answer(w http.ResponseWriter, status int) error {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // recorders of tests have none
	u.mu.Lock()
	reply := Piece{At: u.at}
	u.mu.Unlock()
	if u.ended() {
		reply.File = u.result.File
	}
	return writeJSON(w, status, reply)
}
