package httpapi

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Page is the web page, which the server serves beside the interface, to
// browsers that signed in. It gets GET and HEAD requests only; the server has
// checked where they come from.
type Page interface {
	// Inside answers a browser that is signed in.
	Inside(w http.ResponseWriter, r *http.Request)
	// Outside answers anybody else, so it tells nothing of the node. It says how
	// to sign in, with status 401; or, at Welcome, leads inside.
	Outside(w http.ResponseWriter, r *http.Request, why Door)
}

// Door says why a browser is outside.
type Door int

// What a Page says at its door.
const (
	Closed  Door = iota // it has not signed in, or too long ago
	Spent               // its link was used before, or is too old
	Welcome             // it has just signed in
)

// EventsPath is where a browser that signed in finds the node's events.
const EventsPath = "/events"

// page answers what is not the interface's. Nothing here changes anything, so
// that a page that lures the browser here gains nothing.
func (h *handler) page(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return withStatus(http.StatusMethodNotAllowed, api.Errorf(api.Invalid, "%s cannot be used on a page", r.Method))
	}
	if code, ok := strings.CutPrefix(r.URL.Path, linkPath); ok {
		h.openDoor(w, r, code)
		return nil
	}
	until, ok := h.session(r)
	switch {
	case !ok:
		h.o.Page.Outside(w, r, Closed)
	case r.URL.Path == EventsPath && r.Method == http.MethodGet:
		ctx, cancel := context.WithDeadline(r.Context(), until)
		defer cancel()
		return h.events(w, r.WithContext(ctx))
	default:
		h.o.Page.Inside(w, r)
	}
	return nil
}

// openDoor begins a session. It answers with a page that leads inside, not with
// a redirect: when the link was clicked on another site, the browser would
// follow without the cookie, because it is a strict one. A program that only
// looks what is behind a link (HEAD) does not use it up.
func (h *handler) openDoor(w http.ResponseWriter, r *http.Request, code string) {
	if r.Method != http.MethodGet || !h.links.use(code) {
		h.o.Page.Outside(w, r, Spent)
		return
	}
	value, _ := h.sessions.add()
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	h.o.Page.Outside(w, r, Welcome)
}

// session tells until when the browser that asks is signed in. A request that
// another page caused counts for nothing: SameSite does not tell the ports of
// one machine apart, Sec-Fetch-Site does.
func (h *handler) session(r *http.Request) (until time.Time, ok bool) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return time.Time{}, false
	}
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return time.Time{}, false
	}
	return h.sessions.valid(c.Value)
}

// cookieName has the port in it: cookies do not know ports, and several nodes
// may run on one machine.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return "mutirao"
	}
	return "mutirao-" + port
}
