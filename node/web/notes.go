package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// A form that was carried out leads to a page by a redirect, so that to reload that page repeats nothing. What
// was done is said there, by a note that the node keeps for a while and the address names. A form that comes
// twice, because somebody pressed twice or the answer was lost, is carried out once. With other contents, or another
// button, it is another one: somebody went back to it and typed something else.

const (
	noteLife = 10 * time.Minute
	maxNotes = 256
)

// note is what a form that was carried out came to.
type note struct {
	Key  string // of a string
	Args []any
	Link string // where to look for more; empty: nowhere
}

// outcome is where a form leads, and what is said there.
type outcome struct {
	to   string
	with url.Values // of the address; the note comes with it
	note note
	id   string
	at   time.Time
	done chan struct{} // closed when it is known
	ok   bool
}

// notes are the outcomes of forms, by what each form brings along (sameForm).
type notes struct {
	mu     sync.Mutex // guards what follows
	byForm map[string]*outcome
	byNote map[string]*outcome
}

func newNotes() *notes {
	return &notes{byForm: map[string]*outcome{}, byNote: map[string]*outcome{}}
}

// once carries a form out, unless that was done before: then its outcome is returned. What fails is not
// remembered, so that it can be tried again.
func (n *notes) once(form string, fn func() (*outcome, error)) (*outcome, error) {
	is := &outcome{done: make(chan struct{}), at: time.Now()}
	n.mu.Lock()
	n.forget()
	if was := n.byForm[form]; was != nil && form != "" {
		n.mu.Unlock()
		<-was.done
		if was.ok {
			return was, nil
		}
		return n.once(form, fn)
	}
	n.byForm[form] = is
	n.mu.Unlock()

	var got *outcome
	var err error
	defer func() { // also after a panic, so that nobody waits for ever
		n.mu.Lock()
		defer n.mu.Unlock()
		defer close(is.done)
		if err != nil || got == nil {
			delete(n.byForm, form)
			return
		}
		is.to, is.with, is.note, is.id, is.ok = got.to, got.with, got.note, rand.Text()[:16], true
		n.byNote[is.id] = is
	}()
	if got, err = fn(); err != nil {
		return nil, err
	}
	return is, nil
}

// forget makes room. The caller holds n.mu.
func (n *notes) forget() {
	for form, is := range n.byForm {
		if is.ok && (time.Since(is.at) > noteLife || len(n.byForm) >= maxNotes) {
			delete(n.byForm, form)
			delete(n.byNote, is.id)
		}
	}
}

// find is the note that an address names; nil: none.
func (n *notes) find(r *http.Request) *note {
	n.mu.Lock()
	defer n.mu.Unlock()
	if is := n.byNote[r.URL.Query().Get("note")]; is != nil && time.Since(is.at) < noteLife {
		return &is.note
	}
	return nil
}

// formName is the name of the field by which a form that comes twice is known.
const formName = "form-name"

// mostName is the longest name of a form that is kept, in bytes.
const mostName = 64

// sameName is the name of a form on a page that may be shown since it was not carried out: then the one that it came with.
// As far as its browser knows, that is: the answer may have been lost, and the node started again since. So what it began
// is known by that name (api.StartRequest.Key).
func sameName(r *http.Request) string {
	if name := r.PostForm.Get(formName); name != "" && len(name) <= mostName {
		return name
	}
	return rand.Text()
}

// sameForm is the same for a form that comes again just as it was, and differs for one that leads elsewhere, or in
// which anything is different. Empty: the form has no name, so nobody knows.
func sameForm(r *http.Request, s httpapi.Session) string {
	name := r.PostForm.Get(formName)
	if name == "" {
		return ""
	}
	files := map[string]string{} // by their contents, which their references name
	for field, up := range s.Files {
		files[field] = fmt.Sprint(up.Err)
		if up.File != nil {
			files[field] = up.File.Value
		}
	}
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{r.URL.Path, r.PostForm, files}) // a hash takes everything
	return name + " " + hex.EncodeToString(h.Sum(nil))
}

// action is what a form does. again renders the page with the form once more, with what was typed.
type action func(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error)

// act carries a form out, if it is worth it; else, or if that fails, the page with the form is shown once
// more, by again, with the reason.
func (p *Page) act(do action, again func(why error) screen) http.HandlerFunc {
	return p.actOnce(sameForm, do, again)
}

// actOnce is act for forms that come again as same says.
func (p *Page) actOnce(
	same func(*http.Request, httpapi.Session) string, do action, again func(why error) screen,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := session(r.Context())
		switch s.Sent {
		case httpapi.Good:
		case httpapi.Stale:
			p.show(w, r, again(unsent(languageOf(r.Context()), s)))
			return
		default:
			p.show(w, r, again(&trouble{key: "form.look"}))
			return
		}
		if hasNUL(r.PostForm) {
			p.show(w, r, again(&trouble{key: "wrong.nul"}))
			return
		}
		is, err := p.notes.once(same(r, s), func() (*outcome, error) { return do(r.Context(), r, s) })
		if err != nil {
			p.show(w, r, again(err))
			return
		}
		query := url.Values{"note": {is.id}}
		maps.Copy(query, is.with)
		http.Redirect(w, r, is.to+"?"+query.Encode(), http.StatusSeeOther)
	}
}

// hasNUL reports whether a text of a form that is no data has the one character that no browser shows, nor brings back.
// Of data that is said at the field.
func hasNUL(form url.Values) bool {
	for name, of := range form {
		if !strings.HasPrefix(name, dataPrefix) && strings.Contains(strings.Join(of, ""), "\x00") {
			return true
		}
	}
	return false
}

// trouble is a reason of the page's own why a form was not carried out.
type trouble struct{ key string }

func (t *trouble) Error() string { return t.key }

// unsent is the error of a form of a session that has ended. Nothing of it was kept but its texts, so it names the
// files that are to be chosen once more: no page can do that.
func unsent(lang *language, s httpapi.Session) error {
	files := invalid{}
	for field, up := range s.Files {
		if name, ok := strings.CutPrefix(field, filePrefix); ok {
			files[name] = lang.say("file.again", up.Name)
		}
	}
	return errors.Join(&trouble{key: "form.stale"}, files)
}

// invalid is the error of a form in which something was typed that will not do, by the name of the data.
type invalid map[string]string

func (invalid) Error() string { return "something that was typed will not do" }
