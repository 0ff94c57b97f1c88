package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Page is the web page, which the server serves beside the interface, to
// browsers that signed in. The server has checked where a request comes from.
type Page interface {
	// Inside answers a browser that is signed in, GET, HEAD and POST. Of a POST the form has been read.
	Inside(w http.ResponseWriter, r *http.Request, s Session)
	// Outside answers anybody else, so it tells nothing of the node. It says how
	// to sign in, with status 401; or, at Welcome, leads inside.
	Outside(w http.ResponseWriter, r *http.Request, why Door)
}

// Session is who a browser is that signed in.
type Session struct {
	// User is the whole ID of the user for whom the browser acts, Name what people call that user;
	// both empty: nobody, since several users are signed in at the node and none was named.
	User, Name string
	// Acts: the browser may change something, not only look.
	Acts bool
	// Manages: it may also have the whole node go out of reach of partners, and back: its link was asked for with a
	// token that may do everything, and it is on the node's own address, not on the one that is open to the network.
	Manages bool
	// FormToken is what each form has to bring along, in the field FormTokenField: no other page knows it.
	FormToken string
	// Happened is how much had happened before the page was made (Options): it is to come back in the field HappenedField
	// of the address EventsPath.
	Happened uint64
	// Sent is what a form that came is worth.
	Sent Sent
	// Files are the files that a good form brought along, by the names of their fields: they are kept at the node, to
	// be given to an instance within a day. Of any other form none is kept, and that is said of each.
	Files map[string]Upload
}

// Sent is what a form that came is worth.
type Sent int

// A form is carried out if it is Good, and only then.
const (
	Nothing Sent = iota // no form came
	Good                // it is of this session, which may act
	Stale               // it is of a session before: whoever typed it has to say once more that it is meant
	MayNot              // the session may only look
)

// FormTokenField is the field of a form with Session.FormToken.
const FormTokenField = "form-token"

// Door says why a browser is outside.
type Door int

// What a Page says at its door.
const (
	Closed   Door = iota // it has not signed in, or too long ago
	Spent                // its link was used before, or is too old
	Welcome              // it has just signed in
	Left                 // it has just signed out
	TooLarge             // it sent a form that is larger than MaxBody, or with a large file that is not kept
	Ended                // its user is not signed in at this node any more
	TooOften             // from its address came too many links that are none
)

// EventsPath is where a browser that signed in finds the node's events, SignOutPath where it
// posts a form to sign out.
const (
	EventsPath = "/events"
	// HappenedField says how much had happened when the page was made that begins to watch.
	HappenedField = "happened"
	SignOutPath   = "/sign-out"
)

// page answers what is not the interface's.
func (h *handler) page(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, UploadsPath) {
		return h.piece(w, r)
	}
	var parts *multipart.Reader
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		var err error
		parts, err = readForm(w, r)
		if errors.Is(err, errTooLarge) {
			h.o.Page.Outside(w, r, TooLarge)
			return nil
		}
		if err != nil {
			return err
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		return withStatus(http.StatusMethodNotAllowed, api.Errorf(api.Invalid, "%s cannot be used on a page", r.Method))
	}
	if code, ok := linkCode(r.URL.Path); ok {
		h.openDoor(w, r, code)
		return nil
	}
	p, secret, ok := h.session(r)
	if !ok {
		h.o.Page.Outside(w, r, Closed)
		return nil
	}
	if h.ended(p) {
		h.o.Page.Outside(w, r, Ended)
		return nil
	}
	s := Session{
		User: p.user, Name: p.name, Acts: p.acts, Manages: p.manages && h.network == nil, FormToken: formToken(secret),
		Happened: h.happened(),
	}
	if parts != nil {
		err := h.readParts(w, r, parts, &s)
		if errors.Is(err, errTooLarge) {
			h.o.Page.Outside(w, r, TooLarge)
			return nil
		}
		if err != nil {
			return err
		}
	}
	if r.Method == http.MethodPost {
		s.Sent = worth(r, s)
	}
	switch {
	case r.URL.Path == EventsPath && r.Method == http.MethodGet:
		ctx, cancel := context.WithDeadline(r.Context(), p.until)
		defer cancel()
		if p.life != nil {
			defer context.AfterFunc(p.life, cancel)()
		}
		return h.events(w, r.WithContext(ctx))
	case r.URL.Path == SignOutPath && (s.Sent == Good || s.Sent == MayNot):
		h.sessions.use(secret)
		if h.network != nil {
			h.network.left()
		}
		http.SetCookie(w, &http.Cookie{
			Name: h.cookieName(r), Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode,
			Secure: r.TLS != nil,
		})
		h.o.Page.Outside(w, r, Left)
	default:
		h.o.Page.Inside(w, r, s)
	}
	return nil
}

var errTooLarge = errors.New("the form is too large")

// happened counts the events of the node.
func (h *handler) happened() uint64 {
	if h.o.Happened == nil {
		return 0
	}
	return h.o.Happened()
}

// knows reports whether whoever watches from now on has read what happened until now: a page says how much had happened
// when it was made.
func (h *handler) knows(r *http.Request) bool {
	n, err := strconv.ParseUint(r.URL.Query().Get(HappenedField), 10, 64)
	return err == nil && n == h.happened()
}

// readForm reads a form that a page of ours sends. A browser says where a form comes from; one that
// does not say it cannot be told from another site's. Of a form that may bring files along nothing is read yet, but
// the reader of its parts is returned.
func readForm(w http.ResponseWriter, r *http.Request) (*multipart.Reader, error) {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin") // the latter is ours: checkOrigin
	if site != "same-origin" && (site != "" || origin == "") {
		return nil, api.Errorf(api.NotAllowed, "only the node's own page may send it forms")
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" {
		r.Body = notTheEnd(&patientReader{r.Body, w})
		parts, err := r.MultipartReader()
		if err != nil {
			return nil, api.Errorf(api.Invalid, "the form cannot be read: %v", err)
		}
		return parts, nil
	}
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, withStatus(http.StatusUnsupportedMediaType,
			api.Errorf(api.Invalid, "Content-Type %q: want application/x-www-form-urlencoded",
				r.Header.Get("Content-Type")))
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	err = r.ParseForm()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, errTooLarge
	case err != nil:
		return nil, api.Errorf(api.Invalid, "the form cannot be read: %v", err)
	}
	return nil, nil
}

// worth is what a form that came is worth.
func worth(r *http.Request, s Session) Sent {
	switch given := r.PostForm.Get(FormTokenField); {
	case subtle.ConstantTimeCompare([]byte(given), []byte(s.FormToken)) != 1:
		return Stale
	case !s.Acts:
		return MayNot
	}
	return Good
}

// formToken is what the forms of a session bring along: whoever knows it does not know the session's
// secret.
func formToken(secret string) string {
	h := sha256.Sum256([]byte("mutirao/form/1\x00" + secret))
	return hex.EncodeToString(h[:16])
}

// openDoor begins a session. It answers with a page that leads inside, not with
// a redirect: when the link was clicked on another site, the browser would
// follow without the cookie, because it is a strict one. A program that only
// looks what is behind a link (HEAD) does not use it up.
func (h *handler) openDoor(w http.ResponseWriter, r *http.Request, code string) {
	var link pass
	ok := r.Method == http.MethodGet
	if ok {
		who := addressOf(r.RemoteAddr)
		if h.network != nil && h.network.tries.over(who) {
			w.Header().Set("Retry-After", retryAfter)
			h.o.Page.Outside(w, r, TooOften)
			return
		}
		if link, ok = h.links.use(code); !ok && h.network != nil {
			h.network.tries.count(who)
		}
	}
	if !ok {
		h.o.Page.Outside(w, r, Spent)
		return
	}
	value, _ := h.sessions.add(link.visitor)
	http.SetCookie(w, &http.Cookie{
		Name: h.cookieName(r), Value: value, Path: "/", MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	h.o.Page.Outside(w, r, Welcome)
}

// session tells for whom the browser that asks is signed in, and until when. A request that
// another page caused counts for nothing: SameSite does not tell the ports of
// one machine apart, Sec-Fetch-Site does.
func (h *handler) session(r *http.Request) (p pass, secret string, ok bool) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return pass{}, "", false
	}
	c, err := r.Cookie(h.cookieName(r))
	if err != nil {
		return pass{}, "", false
	}
	p, ok = h.sessions.valid(c.Value)
	return p, c.Value, ok
}

// ended reports whether the user for whom a session is good is not signed in at this node any more.
func (h *handler) ended(p pass) bool {
	return p.user != "" && h.o.SignedIn != nil && !h.o.SignedIn(p.user)
}

// cookieName has the port in it: cookies do not know ports, and several nodes
// may run on one machine. On the network a browser takes it by TLS only, and from
// this host only (__Host-).
func (h *handler) cookieName(r *http.Request) string {
	name := "mutirao"
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "-" + port
	}
	if h.network != nil {
		name = "__Host-" + name
	}
	return name
}

// linkCode is what is secret in the path of a link, which a QR code has in capitals.
func linkCode(path string) (code string, ok bool) {
	if len(path) < len(linkPath) || !strings.EqualFold(path[:len(linkPath)], linkPath) {
		return "", false
	}
	return path[len(linkPath):], true
}
