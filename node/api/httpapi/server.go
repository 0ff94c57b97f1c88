// Package httpapi carries node/api over HTTP, as JSON under /v1/ on loopback or a
// Unix socket: a server for whatever answers api.Service, and a client that is one.
//
// Promises: every route is in the OpenAPI document that the node serves, and a test
// holds the two together. Who may ask what is decided here, by tokens and their scopes.
// Internal causes are logged, never shown.
//
// It imports configs, internal/once, internal/plain, internal/private, node/api and workflow;
// cmd/mutirao, internal/test/testnode, node/assemble and node/web import it.
package httpapi

import (
	"context"
	"crypto/x509"
	_ "embed"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Options adjust a server. The zero value works.
type Options struct {
	// Ready is closed when the node is ready (/readyz); nil: it is.
	Ready <-chan struct{}
	// Logger receives the causes that are not shown; nil: nothing is logged.
	Logger *slog.Logger
	// Page is the web page, served beside the interface; nil: there is none.
	Page Page
	// Happened counts the events of the node, watched or not; nil: a page that begins to watch does not learn what
	// it missed since it was made.
	Happened func() uint64
	// SignedIn reports whether a user, by the whole ID, is signed in at the node, as it was when a browser was let in for
	// it; nil: that is not asked again.
	SignedIn func(user string) bool
	// Certificate and Key are the PEM files with which Serve serves TLS.
	Certificate, Key string
	// Prefer are ports to be tried, in this order, where the address leaves the
	// port open (0).
	Prefer []string
	// Written is where a configuration names the address, as " (FILE:LINE:COL)"; empty: nowhere.
	Written string
	// Networks lists the addresses at which the page may be opened to the network, the likeliest first;
	// nil: it cannot be.
	Networks func() []netip.Addr

	dir         string                                 // the node's folder, where added tokens are kept; empty: they end with the node
	certificate *x509.Certificate                      // whose names are accepted as Host
	stopping    context.Context                        // ends when event streams must; nil: never
	public      *public                                // the interface is on the network; nil: it is not
	listen      func(netip.Addr) (net.Listener, error) // in place of the network, for tests
}

// handler is the server side of the interface.
type handler struct {
	svc     api.Service
	tokens  *tokens
	o       Options
	mux     *http.ServeMux
	streams chan struct{} // one element per event stream

	links, sessions *secrets // of the page

	lan     *lan    // opens the page to the network
	uploads uploads // files that come in pieces
	network *opened // this is the page there; nil: it is the whole interface
}

// NewServer returns the handler of svc's interface. A program that knows the
// token may do everything, tokens for others included; without one nothing
// would be safe, so an empty token panics.
func NewServer(svc api.Service, token string, o Options) http.Handler {
	if token == "" {
		panic("api: NewServer needs a token")
	}
	return newHandler(svc, token, o)
}

func newHandler(svc api.Service, token string, o Options) *handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.stopping == nil {
		o.stopping = context.Background()
	}
	h := &handler{
		svc: svc, tokens: newTokens(token), o: o, mux: http.NewServeMux(), streams: make(chan struct{}, maxStreams),
		links: newSecrets(linkLife, maxLinks), sessions: newSecrets(sessionLife, maxSessions),
		lan: &lan{svc: svc, o: o},
	}
	if o.dir != "" {
		h.tokens.load(tokensFile(o.dir), o.Logger)
	}
	for _, rt := range routes {
		h.mux.Handle(rt.method+" "+rt.path, h.serve(rt))
	}
	return h
}

// ServeHTTP lets through only what comes from this machine's programs.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if err := h.checkOrigin(r); err != nil {
		h.fail(w, r, err)
		return
	}
	if _, pattern := h.mux.Handler(r); pattern == "" {
		h.noRoute(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// serve turns a row of the table into a handler.
func (h *handler) serve(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.answer(rt, w, r); err != nil {
			h.fail(w, r, err)
		}
	})
}

func (h *handler) answer(rt *route, w http.ResponseWriter, r *http.Request) error {
	if rt.scope != everybody && !(rt.local && fromHere(r)) {
		within, done, err := h.admit(rt, r)
		if err != nil {
			return err
		}
		defer done()
		r = r.WithContext(within)
	}
	if err := checkQuery(rt, r); err != nil {
		return err
	}
	if rt.large {
		r.Body = &patientReader{r.Body, w}
	} else {
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	}
	if rt.body == nil {
		if err := noBody(r); err != nil {
			return err
		}
	}
	if rt.raw != nil {
		return rt.raw(h, w, r)
	}
	reply, err := rt.handle(h.svc, r)
	if err != nil {
		return err
	}
	return writeReply(w, rt, reply)
}

// noRoute answers what is not in the table: by the page, or by saying whether the
// path or the method is wrong.
func (h *handler) noRoute(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := h.mux.Handler(probe); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 && h.o.Page != nil && !strings.HasPrefix(r.URL.Path, "/v1/") {
		if err := h.page(w, r); err != nil {
			h.fail(w, r, err)
		}
		return
	}
	if len(allowed) == 0 {
		h.fail(w, r, api.Errorf(api.NotFound, "there is no %s", r.URL.Path).
			WithHint("GET %s lists what there is", openAPIRoute.path))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	h.fail(w, r, withStatus(http.StatusMethodNotAllowed,
		api.Errorf(api.Invalid, "%s cannot be used on %s: want %s", r.Method, r.URL.Path,
			strings.Join(allowed, " or "))))
}

// again is after how many seconds what is not here yet may be asked for again.
const again = "1"

// fail answers with an error; what is no *Error is logged and not shown.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var shown *api.Error
	if !errors.As(err, &shown) {
		if !errors.Is(err, context.Canceled) {
			h.o.Logger.Error("request failed inside the node", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		shown = api.Errorf(api.Internal, "something went wrong inside the node").WithHint("the node's log says what")
	}
	status := shown.Code.HTTP()
	var special *statusError
	if errors.As(err, &special) {
		status = special.status
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", again)
	}
	_ = writeJSON(w, status, shown) // three strings can be written
}

//go:embed openapi.json
var openAPI []byte

func (h *handler) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // a reader that went away wants no error
	return nil
}

func (h *handler) health(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *handler) ready(w http.ResponseWriter, r *http.Request) error {
	select {
	case <-h.o.Ready:
	default:
		if h.o.Ready != nil {
			return withStatus(http.StatusServiceUnavailable,
				api.Errorf(api.Refused, "the node is not ready yet").WithHint("ask again in a second"))
		}
	}
	return h.health(w, r)
}
