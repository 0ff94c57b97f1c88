package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// The page can be opened to the network for a while, so that phones reach it. That is a listener of
// its own: it serves the page and nothing of the interface, over TLS only, and has links and sessions
// that count nowhere else.

const (
	lanPort        = "7879"           // its first choice
	lanLinger      = 10 * time.Second // after somebody signed out: that page is to look right
	lanWait        = 2 * time.Second  // for requests that have begun, when it is closed
	maxLANStreams  = 32
	maxConnections = 128 // at once
	maxPerAddress  = 16  // of these
)

// LAN says how phones on the network reach the page.
type LAN struct {
	// URLs are one link by each of the node's addresses, the likeliest first. It signs one browser in, once,
	// by whichever.
	URLs    []string  `json:"urls"`
	Expires time.Time `json:"expires"`
	User    string    `json:"user"` // for whom the browser acts; empty: nobody
	Acts    bool      `json:"acts"` // it may change something, not only look
	// Fingerprint is the SHA-256 of the certificate, in hexadecimal, as browsers show it.
	Fingerprint string `json:"fingerprint"`
	Words       string `json:"words"` // the first 64 bits of the fingerprint
	// Configured: the whole interface is on the network already, with the certificate of the node's
	// configuration. The link leads there, and nothing else was opened.
	Configured bool `json:"configured"`
}

// LANClosed says what closing the page to the network did.
type LANClosed struct {
	WasOpen    bool `json:"was_open"`
	Browsers   int  `json:"browsers"`   // that were signed in
	Configured bool `json:"configured"` // the whole interface is on the network by the node's configuration, and stays there
}

var (
	openLANRoute = &route{
		name: "openLAN", method: http.MethodPost, path: "/v1/lan", scope: mayAll, query: signInQuery,
		summary: "Open the web page to phones on the network, and make a link that signs one browser in there, once",
		reply:   LAN{}, raw: (*handler).openLAN,
	}
	closeLANRoute = &route{
		name: "closeLAN", method: http.MethodDelete, path: "/v1/lan", scope: mayAll,
		summary: "Close the web page to the network: links and sessions there end",
		reply:   LANClosed{}, raw: (*handler).closeLAN,
	}
)

// OpenLAN opens the page to the network, and makes a link for one browser there.
func (c *Client) OpenLAN(ctx context.Context, l SignInLink) (*LAN, error) {
	return call[*LAN](ctx, c, openLANRoute, l.query(), nil)
}

// CloseLAN closes the page to the network.
func (c *Client) CloseLAN(ctx context.Context) (*LANClosed, error) {
	return call[*LANClosed](ctx, c, closeLANRoute, nil, nil)
}

func (h *handler) openLAN(w http.ResponseWriter, r *http.Request) error {
	who, err := h.visitor(r)
	if err != nil {
		return err
	}
	var out *LAN
	if h.o.public != nil {
		out, err = h.linkOfAPI(who)
	} else {
		out, err = h.lan.link(who)
	}
	if err != nil {
		return err
	}
	out.User, out.Acts = who.name, who.acts
	return writeJSON(w, http.StatusOK, out)
}

// status is the node's, with whether its page is open to the network.
func (h *handler) status(w http.ResponseWriter, r *http.Request) error {
	st, err := h.svc.Status(r.Context())
	if err != nil {
		return err
	}
	st.LAN = h.lan.open()
	return writeJSON(w, http.StatusOK, st)
}

// doctor is the node's, with whether its page is open to the network: whoever opened it may have
// forgotten that.
func (h *handler) doctor(w http.ResponseWriter, r *http.Request) error {
	d, err := h.svc.Doctor(r.Context())
	if err != nil {
		return err
	}
	if open := h.lan.open(); open != nil {
		d.Findings = append(d.Findings, api.Finding{Check: "page", State: api.FindingOK, What: open.String()})
	}
	return writeJSON(w, http.StatusOK, d)
}

// linkOfAPI makes a link to an interface that other devices can reach.
func (h *handler) linkOfAPI(who visitor) (*LAN, error) {
	if len(h.o.public.hosts) == 0 {
		return nil, api.Errorf(api.Refused, "the API is on the network, with a certificate that names no host of it").
			WithHint("use a certificate with a name (DNS or IP) by which phones reach this device; or serve the API at 127.0.0.1:0, and the node opens the page with a certificate of its own")
	}
	code, expires := h.links.add(who)
	return &LAN{
		URLs: urlsOf(h.o.public.hosts, code), Expires: expires, Configured: true,
		Fingerprint: h.o.public.sum.String(), Words: h.o.public.sum.words(),
	}, nil
}

func (h *handler) closeLAN(w http.ResponseWriter, _ *http.Request) error {
	out := h.lan.close()
	out.Configured = h.o.public != nil
	return writeJSON(w, http.StatusOK, out)
}

// public is an interface that other devices can reach: by which HOST:PORT, and with which certificate.
type public struct {
	hosts []string
	sum   fingerprint
}

// urlsOf are a link's addresses at some hosts.
func urlsOf(hosts []string, code string) []string {
	var urls []string
	for _, host := range hosts {
		urls = append(urls, (&url.URL{Scheme: "https", Host: host, Path: linkPath + code}).String())
	}
	return urls
}

// lan opens the page to the network, once at a time.
type lan struct {
	svc api.Service
	o   Options

	mu     sync.Mutex      // guards what follows
	kept   *lanCertificate // the last one that was used
	now    *opened         // nil: it is closed
	ended  bool            // the node stops, so it opens no more
	ending sync.WaitGroup  // for all that it began
}

// opened is the page while it is open to the network.
type opened struct {
	page     *handler
	stopping context.CancelFunc // ends event streams
	end      *time.Timer        // when it is looked whether anybody is left
	places   *places
	tries    *tries
	at       atomic.Pointer[stand]
}

// stand is where and by which certificate it is served just now.
type stand struct {
	server      *http.Server
	listeners   []net.Listener
	hosts       []string // HOST:PORT of each
	wanted      []netip.Addr
	certificate *lanCertificate
}

// link opens the page, if it is not yet, and makes a link to it.
func (l *lan) link(who visitor) (*LAN, error) {
	if l.o.Networks == nil {
		return nil, api.Errorf(api.NotFound, "this node cannot open its page to the network")
	}
	addresses := l.o.Networks()
	if len(addresses) == 0 {
		return nil, api.Errorf(api.Refused, "this device has no address on a network").
			WithHint("connect it to the network of the phones, e.g. by Wi-Fi or by its own hotspot, and try again")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, api.ErrStopping
	}
	if err := l.serve(addresses); err != nil {
		return nil, err
	}
	at := l.now.at.Load()
	code, expires := l.now.page.links.add(who)
	return &LAN{
		URLs: urlsOf(at.hostsOf(addresses), code), Expires: expires,
		Fingerprint: at.certificate.sum.String(), Words: at.certificate.sum.words(),
	}, nil
}

// serve sees to it that the page is served at all of these addresses. Where one was not wanted before, it
// is served with another certificate from now on, and who is signed in stays so.
func (l *lan) serve(addresses []netip.Addr) error {
	c, err := l.certificate(addresses)
	if err != nil {
		return err
	}
	o := l.now
	switch {
	case o == nil:
		o = l.newOpened()
	case o.serves(addresses) && o.at.Load().certificate == c:
		return nil
	default:
		l.leave(o.at.Load())
	}
	s, err := l.stand(o, addresses, c)
	if err != nil {
		if l.now != nil {
			l.shut("it cannot be served at another address")
		}
		return err
	}
	o.at.Store(s)
	if l.now == nil {
		l.now, o.end = o, time.AfterFunc(linkLife, func() { l.look(o) })
	}
	for _, at := range s.listeners {
		l.ending.Go(func() { _ = s.server.Serve(at) }) //nolint:errcheck // it ends when at is closed
	}
	l.o.Logger.Info("the page is open to the network", "addresses", s.hosts, "certificate", c.sum.String())
	return nil
}

func (l *lan) newOpened() *opened {
	o := &opened{places: newPlaces(), tries: newTries()}
	options := l.o
	options.stopping, o.stopping = context.WithCancel(context.Background())
	options.certificate = nil
	o.page = &handler{
		svc: l.svc, o: options, streams: make(chan struct{}, maxLANStreams),
		links: newSecrets(linkLife, maxLinks), sessions: newSecrets(sessionLife, maxSessions),
		network: o,
	}
	return o
}

// stand begins to listen at those of the addresses where it can.
func (l *lan) stand(o *opened, addresses []netip.Addr, c *lanCertificate) (*stand, error) {
	s := &stand{wanted: addresses, certificate: c, server: &http.Server{
		Handler:           o,
		ReadHeaderTimeout: 5 * time.Second, // of the handshake, too
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(lanLog{l.o.Logger}, "", 0),
	}}
	config := &tls.Config{
		Certificates: []tls.Certificate{c.pair}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
	}
	var wrong error
	for _, a := range addresses {
		at, err := l.listen(a)
		if err != nil {
			wrong = errors.Join(wrong, err)
			continue
		}
		s.hosts = append(s.hosts, at.Addr().String())
		s.listeners = append(s.listeners, tls.NewListener(&limited{at, o.places}, config))
	}
	if len(s.listeners) == 0 {
		return nil, api.Errorf(api.Failed, "open the page to the network: %v", wrong)
	}
	if wrong != nil {
		l.o.Logger.Warn("the page is not open at each address", "error", wrong)
	}
	return s, nil
}

// lanLog receives what goes wrong with connections. Anybody on the network can cause such errors, as many
// as they like; a panic is ours.
type lanLog struct{ to *slog.Logger }

// Write implements io.Writer.
func (l lanLog) Write(b []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.Contains(b, []byte("panic serving")) {
		level = slog.LevelError
	}
	l.to.Log(context.Background(), level, strings.TrimSpace(string(b)))
	return len(b), nil
}

func (l *lan) listen(a netip.Addr) (net.Listener, error) {
	if l.o.listen != nil {
		return l.o.listen(a)
	}
	return listenAt(a.String(), "0", []string{lanPort})
}

// look closes the page when no link and no session is left, and else looks again when the last of them ends.
func (l *lan) look(o *opened) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o == nil || l.now != o {
		return
	}
	last := o.page.links.last()
	if s := o.page.sessions.last(); s.After(last) {
		last = s
	}
	if left := time.Until(last); left > 0 {
		o.end.Reset(left)
		return
	}
	l.shut("nobody is signed in any more")
}

// lookNow looks whether anybody is left: a token was removed.
func (l *lan) lookNow() {
	l.mu.Lock()
	o := l.now
	l.mu.Unlock()
	l.look(o)
}

// open says how the page is open to the network; nil: it is not.
func (l *lan) open() *api.LANPage {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return nil
	}
	return &api.LANPage{Addresses: slices.Clone(l.now.at.Load().hosts), Browsers: l.now.page.sessions.count()}
}

// close closes the page to the network at once.
func (l *lan) close() LANClosed {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return LANClosed{}
	}
	n := l.now.page.sessions.count()
	l.shut("as it was asked to be")
	return LANClosed{WasOpen: true, Browsers: n}
}

// stop closes the page for good. With wait it is over.
func (l *lan) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.now != nil {
		l.shut("the node stops")
	}
}

func (l *lan) wait() { l.ending.Wait() }

// shut closes the page; l.mu is held. Nobody gets in any more; what has begun has lanWait to end.
func (l *lan) shut(why string) {
	o := l.now
	l.now = nil
	o.end.Stop()
	o.page.links.clear()
	o.page.sessions.clear()
	o.stopping()
	l.leave(o.at.Load())
	l.o.Logger.Info("the page is closed to the network", "why", why)
}

// leave ends a stand.
func (l *lan) leave(s *stand) {
	for _, at := range s.listeners {
		_ = at.Close() //nolint:errcheck // it is gone in any case
	}
	l.ending.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lanWait)
		defer cancel()
		if s.server.Shutdown(ctx) != nil {
			_ = s.server.Close() //nolint:errcheck // it is gone in any case
		}
	})
}

// ServeHTTP serves the page, and nothing of the interface.
func (o *opened) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := o.page
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	err := h.checkOrigin(r)
	if err == nil && (r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/")) {
		err = api.Errorf(api.NotFound, "there is no %s: only the page is served here", r.URL.Path)
	}
	if err == nil {
		err = h.page(w, r.WithContext(WithLANWords(r.Context(), o.at.Load().certificate.sum.words())))
	}
	if err != nil {
		h.fail(w, r, err)
	}
}

// hostsOf are where it is served, of these addresses, in their order.
func (s *stand) hostsOf(addresses []netip.Addr) (hosts []string) {
	for _, a := range addresses {
		for _, host := range s.hosts {
			if addressOf(host) == a {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// serves reports whether the page was wanted at all of these addresses, and is served at one at least.
func (o *opened) serves(addresses []netip.Addr) bool {
	s := o.at.Load()
	return len(s.hostsOf(addresses)) > 0 &&
		!slices.ContainsFunc(addresses, func(a netip.Addr) bool { return !slices.Contains(s.wanted, a) })
}

// answersAs reports whether the page was opened at this HOST:PORT.
func (o *opened) answersAs(host string) bool { return slices.Contains(o.at.Load().hosts, host) }

// left is told that somebody signed out.
func (o *opened) left() { o.end.Reset(lanLinger) }

type lanWordsKey struct{}

// WithLANWords says of a request that the page is served to the network, with these words for its certificate.
func WithLANWords(ctx context.Context, words string) context.Context {
	return context.WithValue(ctx, lanWordsKey{}, words)
}

// LANWords are the words for the certificate with which the page is served to the network; empty: it is not.
func LANWords(ctx context.Context) string {
	words, _ := ctx.Value(lanWordsKey{}).(string)
	return words
}
