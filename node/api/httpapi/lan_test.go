package httpapi_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// ether is a network in memory, on which time can be made to pass.
type ether struct {
	mu    sync.Mutex // guards ports
	ports map[string]*port
}

// port is a place where somebody listens, or listened.
type port struct {
	at    netip.AddrPort
	calls chan net.Conn
	shut  chan struct{}
	once  sync.Once
}

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.shut:
		return nil, net.ErrClosed
	}
}

func (p *port) Close() error {
	p.once.Do(func() { close(p.shut) })
	return nil
}

func (p *port) Addr() net.Addr { return net.TCPAddrFromAddrPort(p.at) }

// line is one side of a connection. What is written is on its way at once, as in a real network: a
// pipe would have both sides wait for each other to say goodbye.
type line struct {
	net.Conn
	local, remote netip.AddrPort
	sent          chan []byte
	done          chan struct{}
	once          *sync.Once
}

func newLine(c net.Conn, local, remote netip.AddrPort) line {
	l := line{c, local, remote, make(chan []byte, 1<<10), make(chan struct{}), &sync.Once{}}
	go l.carry()
	return l
}

func (l line) carry() {
	defer l.Conn.Close()
	for {
		select {
		case b := <-l.sent:
			if _, err := l.Conn.Write(b); err != nil {
				return
			}
			continue
		default:
		}
		select {
		case b := <-l.sent:
			if _, err := l.Conn.Write(b); err != nil {
				return
			}
		case <-l.done:
			_ = l.Conn.SetWriteDeadline(time.Now().Add(time.Second))
			if len(l.sent) == 0 {
				return
			}
		}
	}
}

func (l line) Write(b []byte) (int, error) {
	select {
	case l.sent <- slices.Clone(b):
		return len(b), nil
	case <-l.done:
		return 0, net.ErrClosed
	}
}

func (l line) Close() error {
	l.once.Do(func() {
		close(l.done)
		_ = l.SetReadDeadline(time.Unix(1, 0))
		_ = l.Conn.SetWriteDeadline(time.Now().Add(time.Second))
	})
	return nil
}

func (l line) SetWriteDeadline(time.Time) error { return nil }
func (l line) SetDeadline(t time.Time) error    { return l.SetReadDeadline(t) }
func (l line) LocalAddr() net.Addr              { return net.TCPAddrFromAddrPort(l.local) }
func (l line) RemoteAddr() net.Addr             { return net.TCPAddrFromAddrPort(l.remote) }

func (e *ether) listen(a netip.Addr) (net.Listener, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &port{at: netip.AddrPortFrom(a, 7879), calls: make(chan net.Conn), shut: make(chan struct{})}
	if e.ports == nil {
		e.ports = map[string]*port{}
	}
	e.ports[p.at.String()] = p
	return p, nil
}

func (e *ether) dial(from, to string) (net.Conn, error) {
	e.mu.Lock()
	p := e.ports[to]
	e.mu.Unlock()
	if p == nil {
		return nil, errors.New("nobody listens at " + to)
	}
	near, far := net.Pipe()
	phone := netip.AddrPortFrom(netip.MustParseAddr(from), 50000)
	here, there := newLine(near, phone, p.at), newLine(far, p.at, phone)
	select {
	case p.calls <- there:
		return here, nil
	case <-p.shut:
		return nil, errors.Join(here.Close(), there.Close(), errors.New("nobody listens at "+to))
	}
}

// opened is a node whose page is, or was, open to a network in memory.
type opened struct {
	*browser // on the node's own address
	ether
	addresses []string
	real      bool // time is
}

const (
	lanAt    = "192.168.1.20:7879"
	phone    = "192.168.1.77"
	lanLinks = "https://" + lanAt
)

func newOpened(t *testing.T, change func(*httpapi.Options)) *opened {
	n := &opened{addresses: []string{"192.168.1.20"}}
	o := httpapi.Options{Page: doors{}, Networks: func() (out []netip.Addr) {
		for _, a := range n.addresses {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}}
	o.ListenBy(n.listen)
	if change != nil {
		change(&o)
	}
	n.browser = &browser{t: t, server: httpapi.NewServer(people("ana"), "token", o)}
	t.Cleanup(func() {
		httpapi.StopLAN(n.server)
		if !n.real {
			time.Sleep(time.Minute) // both sides of TLS say goodbye, which this network does not keep for them
		}
	})
	return n
}

// open opens the page to the network.
func (n *opened) open() httpapi.LAN { n.t.Helper(); return n.openBy("token") }

func (n *opened) openBy(token string) (made httpapi.LAN) {
	n.t.Helper()
	w := n.do("POST", "/v1/lan", "Authorization: Bearer "+token)
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != 200 || len(made.URLs) == 0 {
		n.t.Fatalf("open: %d %s: %v", w.Code, w.Body, err)
	}
	return made
}

func (n *opened) off() (c httpapi.LANClosed) {
	n.t.Helper()
	w := n.do("DELETE", "/v1/lan", "Authorization: Bearer token")
	if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil || w.Code != 200 {
		n.t.Fatalf("close: %d %s: %v", w.Code, w.Body, err)
	}
	return c
}

// visit is what a phone gets that asks for a URL with some cookies.
type visit struct {
	code int
	body string
	resp *http.Response
	sum  string // of the certificate
}

// ask asks by a connection of its own; each header is "Name: value".
func (n *opened) ask(from, method, url string, cookies []*http.Cookie, headers ...string) (*visit, error) {
	v := &visit{}
	tr := &http.Transport{
		DialContext: func(_ context.Context, _, to string) (net.Conn, error) { return n.dial(from, to) },
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			sum := sha256.Sum256(s.PeerCertificates[0].Raw)
			v.sum = hex.EncodeToString(sum[:])
			return nil
		}},
		DisableKeepAlives: true,
	}
	req, err := http.NewRequestWithContext(n.t.Context(), method, url, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range cookies {
		req.AddCookie(c)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	if v.resp, err = tr.RoundTrip(req); err != nil {
		return nil, err
	}
	defer v.resp.Body.Close()
	b, err := io.ReadAll(v.resp.Body)
	v.code, v.body = v.resp.StatusCode, string(b)
	return v, err
}

// get wants an answer.
func (n *opened) get(status int, body, url string, cookies []*http.Cookie, headers ...string) *visit {
	n.t.Helper()
	v, err := n.ask(phone, "GET", url, cookies, headers...)
	if err != nil || v.code != status || !strings.Contains(v.body, body) {
		n.t.Fatalf("GET %s %v: %+v, %v, want %d %s", url, headers, v, err, status, body)
	}
	return v
}

// gone wants nobody to answer.
func (n *opened) gone() {
	n.t.Helper()
	if v, err := n.ask(phone, "GET", lanLinks+"/", nil); err == nil {
		n.t.Errorf("it is still open: %+v", v)
	}
}

// enter signs a phone in.
func (n *opened) enter() []*http.Cookie {
	n.t.Helper()
	return n.get(200, "welcome", n.open().URLs[0], nil).resp.Cookies()
}

// On the network there is the page, and nothing of the interface: whatever a program brings along.
func TestOnlyThePageIsOpenToTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		cookies := n.enter()
		for _, rt := range httpapi.Routes() {
			method, path, _ := strings.Cut(rt, " ")
			for _, c := range [][]*http.Cookie{nil, cookies} {
				v, err := n.ask(phone, method, lanLinks+path, c, "Authorization: Bearer token",
					"Content-Type: application/json")
				answered := err == nil && (v.code == 404 || v.code == 401 || v.code == 403 || v.code == 405)
				inside := err == nil && c != nil && strings.HasPrefix(v.body, "inside "+path) &&
					!strings.HasPrefix(path, "/v1/")
				if !answered && !inside {
					t.Errorf("%s: %+v, %v", rt, v, err)
				}
			}
		}
		n.get(404, "only the page is served here", lanLinks+"/v1/status", cookies)
		n.get(401, "closed", lanLinks+"/metrics", nil)
		n.get(200, "inside / as ana(id-of-ana), acts true, sent 0, manages false", lanLinks+"/", cookies)
	})
}

// It answers by the addresses for which it was opened, and to its own pages.
func TestTheNetworkIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		cookies := n.enter()
		for _, host := range []string{
			"evil.example:7879", "localhost:7879", "127.0.0.1:7879", "192.168.1.20", "192.168.1.20:443",
			"192.168.1.21:7879",
		} {
			n.get(403, "the page is not open as", lanLinks+"/", cookies, "Host: "+host)
		}
		n.get(403, "may not use the node", lanLinks+"/", cookies, "Origin: https://evil.example")
		n.get(403, "may not use the node", lanLinks+"/", cookies, "Origin: http://"+lanAt)
		n.get(401, "closed", lanLinks+"/", cookies, "Sec-Fetch-Site: cross-site")
		form := []string{
			"Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: cross-site", "Origin: " + lanLinks,
		}
		if v, err := n.ask(phone, "POST", lanLinks+"/items/x", cookies, form...); err != nil || v.code != 403 {
			t.Errorf("a form of another site: %+v, %v", v, err)
		}
		if v, err := n.ask(phone, "POST", lanLinks+"/items/x", cookies,
			"Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: same-origin",
			"Origin: "+lanLinks); err != nil || !strings.Contains(v.body, "sent 2") {
			t.Errorf("a form without the session's secret: %+v, %v", v, err)
		}

		// Nothing but TLS 1.3.
		c, err := n.dial(phone, lanAt)
		if err != nil {
			t.Fatal(err)
		}
		old := tls.Client(c, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		if err := old.HandshakeContext(t.Context()); err == nil {
			t.Error("TLS 1.2 was good enough")
		}
		c.Close()
		if v, err := n.ask(phone, "GET", "http://"+lanAt+"/", cookies); err != nil || v.code != 400 {
			t.Errorf("without TLS: %+v, %v", v, err)
		}
	})
}

// A session there is one of its own: it is none at the node's own address, and the other way round.
func TestSessionsOfTheNetworkAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		made := n.open()
		path := strings.TrimPrefix(made.URLs[0], lanLinks)
		n.want(401, "spent", "GET", path)
		v := n.get(200, "welcome", made.URLs[0], nil)
		n.get(401, "spent", made.URLs[0], nil)
		c := v.resp.Cookies()
		if len(c) != 1 || c[0].Name != "__Host-mutirao-7879" || !c[0].Secure || !c[0].HttpOnly ||
			c[0].SameSite != http.SameSiteStrictMode ||
			c[0].Path != "/" || c[0].Domain != "" || c[0].MaxAge != 12*3600 {
			t.Fatalf("cookies %v", c)
		}
		if v.sum != made.Fingerprint {
			t.Errorf("the certificate is %s, the answer says %s", v.sum, made.Fingerprint)
		}
		n.get(401, "spent", lanLinks+n.link(), nil)
		inside := n.signIn().Value
		n.cookies = nil
		n.get(401, "closed", lanLinks+"/",
			[]*http.Cookie{{Name: "__Host-mutirao-7879", Value: inside}, {Name: "mutirao-7879", Value: c[0].Value}})
		n.cookies = []*http.Cookie{
			{Name: "mutirao-7700", Value: c[0].Value}, {Name: "__Host-mutirao-7700", Value: c[0].Value},
		}
		n.want(401, "closed", "GET", "/")

		// A QR code has the link in capitals.
		n.get(200, "welcome", strings.ToUpper(n.open().URLs[0]), nil)
	})
}

// One link has several addresses, and is good at one of them.
func TestALinkByEachAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		n.addresses = []string{"192.168.1.20", "fd00::20"}
		urls := n.open().URLs
		if len(urls) != 2 || !strings.HasPrefix(urls[1], "https://[fd00::20]:7879/sign-in/") {
			t.Fatal(urls)
		}
		c := n.get(200, "welcome", urls[1], nil).resp.Cookies()
		n.get(401, "spent", urls[0], nil)
		n.get(200, "inside", "https://[fd00::20]:7879/", c)
	})
}

// The page is open to the network as long as somebody may come or is signed in.
func TestThePageIsClosedWhenNobodyIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		n.gone() // until it is asked for
		if c := n.off(); c.WasOpen {
			t.Errorf("it was open: %+v", c)
		}

		n.open()
		time.Sleep(5*time.Minute - 1)
		synctest.Wait()
		n.get(401, "closed", lanLinks+"/", nil)
		time.Sleep(time.Second)
		n.gone()

		cookies := n.enter()
		time.Sleep(12*time.Hour - time.Second)
		n.get(200, "inside", lanLinks+"/", cookies)
		time.Sleep(2 * time.Second)
		n.gone()

		// A browser that signed in late is not cut off with who came first.
		n.enter()
		time.Sleep(6 * time.Hour)
		late := n.enter()
		time.Sleep(11 * time.Hour)
		n.get(200, "inside", lanLinks+"/", late)

		if c := n.off(); !c.WasOpen || c.Browsers != 1 {
			t.Errorf("closed %+v", c)
		}
		n.gone()
		n.open()
		n.get(401, "closed", lanLinks+"/", late) // closing ended it
	})
}

// Whoever opened the page may have forgotten that: status and doctor say so, as long as it is.
func TestThatThePageIsOpenIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		says := func(path, want string) {
			t.Helper()
			w := n.do("GET", path, "Authorization: Bearer token")
			if is := strings.Contains(w.Body.String(), "192.168.1.20"); w.Code != 200 || is != (want != "") ||
				!strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s, want %q", path, w.Code, w.Body, want)
			}
		}
		says("/v1/status", "")
		says("/v1/doctor", "")
		n.enter()
		says("/v1/status", `"browsers":1`)
		says("/v1/doctor", "with a browser signed in; to close it: mutirao web --lan --off")
		n.off()
		says("/v1/status", "")
		says("/v1/doctor", "")
	})
}

// After the last has signed out, that page is still shown as it should be; then the page is closed.
func TestSigningOutClosesThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		first, second := n.enter(), n.enter()
		for i, c := range [][]*http.Cookie{first, second} {
			token := n.get(200, "inside", lanLinks+"/", c).resp.Header.Get("X-Form-Token")
			req := "form-token=" + token
			v, err := n.post(lanLinks+httpapi.SignOutPath, req, c)
			if err != nil || !strings.Contains(v.body, "left") {
				t.Fatalf("sign out: %+v, %v", v, err)
			}
			time.Sleep(9 * time.Second)
			n.get(401, "closed", lanLinks+"/", c)
			time.Sleep(2 * time.Second)
			if i == 0 {
				n.get(200, "inside", lanLinks+"/", second)
			}
		}
		n.gone()
	})
}

// post sends a form as the page's own does.
func (n *opened) post(url, form string, cookies []*http.Cookie) (*visit, error) {
	return n.postAs("application/x-www-form-urlencoded", url, strings.NewReader(form), cookies)
}

func (n *opened) postAs(kind, url string, form io.Reader, cookies []*http.Cookie) (*visit, error) {
	tr := &http.Transport{
		DialContext:     func(_ context.Context, _, to string) (net.Conn, error) { return n.dial(phone, to) },
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodPost, url, form)
	if err != nil {
		return nil, err
	}
	for _, c := range cookies {
		req.AddCookie(c)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Origin", lanLinks)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return &visit{code: resp.StatusCode, body: string(b), resp: resp}, err
}

// A phone's photo, which is larger than a form may be, comes along from the network as well.
func TestAPhotoComesFromTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, func(o *httpapi.Options) { o.Page = pigeonhole{} })
		cookies := n.get(200, "", n.open().URLs[0], nil).resp.Cookies()
		token := n.get(200, "", lanLinks+"/", cookies).resp.Header.Get("X-Form-Token")
		kind, body := parts(t, "form-token="+token, "report=smoke",
			"file.a=a.jpg:"+strings.Repeat("x", 3*httpapi.MaxBody))
		v, err := n.postAs(kind, lanLinks+"/items/x", body, cookies)
		if err != nil || v.code != 200 || !strings.Contains(v.body, `sent 1, report ["smoke"], files file.a=file:`) {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// With its token a link's session ends, and with the last of them the page is closed. A token must be
// allowed everything to open it.
func TestThePageOnTheNetworkEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		token := func(scope string) string {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/tokens",
				strings.NewReader(`{"name":"`+scope+`","scope":"`+scope+`"}`))
			r.Host = "127.0.0.1:7700"
			r.Header.Set("Authorization", "Bearer token")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			n.server.ServeHTTP(w, r)
			var made httpapi.NewToken
			if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil {
				t.Fatal(err)
			}
			return made.Token
		}
		for _, scope := range []string{"read", "work"} {
			secret := token(scope)
			n.want(403, "needs a token with the scope admin", "POST", "/v1/lan", "Authorization: Bearer "+secret)
			n.want(403, "needs a token with the scope admin", "DELETE", "/v1/lan", "Authorization: Bearer "+secret)
		}
		n.want(401, "the token is missing", "POST", "/v1/lan")
		n.gone()

		cookies := n.get(200, "welcome", n.openBy(token("admin")).URLs[0], nil).resp.Cookies()
		n.get(200, "inside", lanLinks+"/", cookies)
		n.do("DELETE", "/v1/tokens/admin", "Authorization: Bearer token")
		n.gone()
	})
}

// When it is closed, event streams end, and so does the node.
func TestClosingEndsStreams(t *testing.T) {
	for name, end := range map[string]func(*opened){
		"off":            func(n *opened) { n.off() },
		"the node stops": func(n *opened) { httpapi.StopLAN(n.server) },
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newOpened(t, nil)
			f := people("ana")
			f.OnWatch = func(ctx context.Context, fn func(api.Event) error) error {
				_ = fn(api.Event{Kind: "partner"})
				<-ctx.Done()
				return ctx.Err()
			}
			o := httpapi.Options{
				Page: doors{}, Networks: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("192.168.1.20")} },
			}
			o.ListenBy(n.listen)
			n.server = httpapi.NewServer(f, "token", o)
			cookies := n.enter()
			tr := &http.Transport{
				DialContext:     func(_ context.Context, _, to string) (net.Conn, error) { return n.dial(phone, to) },
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			}
			req, _ := http.NewRequestWithContext(t.Context(), "GET", lanLinks+httpapi.EventsPath, nil)
			req.AddCookie(cookies[0])
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
			}
			began := time.Now()
			end(n)
			for lines.Scan() {
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("%s: the stream ended after %v", name, took)
			}
			n.gone()
			httpapi.StopLAN(n.server)
			n.want(503, "the node is stopping", "POST", "/v1/lan", "Authorization: Bearer token")
			tr.CloseIdleConnections()
		})
	}
}

// Nobody on the network takes all places: connections are few for one address and in all, those that say
// nothing are cut, and who tries links is sent away for a minute.
func TestTheNetworkIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		n.enter()
		// taken counts how many of so many connections are kept.
		taken := func(from string, many int) (kept int) {
			for range many {
				c, err := n.dial(from, lanAt)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				synctest.Wait()
				_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
				if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
					kept++
				}
			}
			return kept
		}
		if kept := taken("192.168.1.66", 20); kept != 16 {
			t.Errorf("of one address %d", kept)
		}
		n.get(401, "closed", lanLinks+"/", nil) // another phone
		all := 0
		for i := range 10 {
			all += taken(fmt.Sprintf("192.168.2.%d", i), 16)
		}
		if all != 128-16 {
			t.Errorf("of others %d", all)
		}
		time.Sleep(6 * time.Second) // they said nothing
		synctest.Wait()
		n.get(401, "closed", lanLinks+"/", nil)

		good := n.open().URLs[0]
		for range 10 {
			n.get(401, "spent", lanLinks+"/sign-in/GUESS", nil)
		}
		if v := n.get(401, "too often", good, nil); v.resp.Header.Get("Retry-After") != "60" {
			t.Errorf("when to come back: %v", v.resp.Header)
		}
		if v, err := n.ask("192.168.1.78", "GET", lanLinks+"/sign-in/GUESS", nil); err != nil || v.body != "spent" {
			t.Errorf("somebody else: %+v, %v", v, err)
		}
		time.Sleep(time.Minute)
		n.get(200, "welcome", good, nil)

		if v, err := n.ask(phone, "GET", lanLinks+"/", nil, "X: "+strings.Repeat("x", 32<<10)); err != nil ||
			v.code != 431 {
			t.Errorf("great headers: %+v, %v", v, err)
		}
		if v, err := n.post(lanLinks+"/", strings.Repeat("x", httpapi.MaxBody+1), nil); err == nil &&
			!strings.Contains(v.body, "too large") {
			t.Errorf("a great form: %+v", v)
		}
	})
}

// The certificate is kept, for its user alone, and replaced in good time, and where it does not name the
// addresses. A browser that is signed in stays so.
func TestTheCertificateOfThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "node")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, api.PageFile)
		begin := func() *opened { return newOpened(t, func(o *httpapi.Options) { o.PageIn(dir) }) }
		n := begin()
		first := n.open()
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		text, _ := os.ReadFile(file)
		block, _ := pem.Decode(text)
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if key, ok := c.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() || c.IsCA {
			t.Errorf("its key is %T", c.PublicKey)
		}
		if c.VerifyHostname("192.168.1.20") != nil || len(c.DNSNames) > 0 ||
			strings.Contains(c.Subject.String(), "station") {
			t.Errorf("it names %v %v %v", c.IPAddresses, c.DNSNames, c.Subject)
		}
		same := func(n *opened, as httpapi.LAN, want bool, why string) httpapi.LAN {
			t.Helper()
			made := n.open()
			if v := n.get(401, "closed", lanLinks+"/", nil); v.sum != made.Fingerprint ||
				(made.Fingerprint == as.Fingerprint) != want {
				t.Errorf("%s: served %s, said %s, before %s", why, v.sum, made.Fingerprint, as.Fingerprint)
			}
			return made
		}
		same(n, first, true, "another link")
		httpapi.StopLAN(n.server)
		n = begin()
		same(n, first, true, "another run")
		time.Sleep(335*24*time.Hour - time.Hour)
		same(n, first, true, "before it is due")
		cookies := n.enter()
		time.Sleep(2 * time.Hour)
		second := same(n, first, false, "when it is due")
		n.get(200, "inside", lanLinks+"/", cookies)
		n.addresses = append(n.addresses, "10.0.0.5")
		third := same(n, second, false, "another address")
		n.get(200, "inside", lanLinks+"/", cookies)
		n.addresses = []string{"10.0.0.5"}
		if urls := n.open().URLs; len(urls) != 1 || !strings.HasPrefix(urls[0], "https://10.0.0.5:7879/") {
			t.Errorf("one address less: %v", urls)
		}
		n.addresses = []string{"192.168.1.20"}
		same(n, third, true, "one address less")
		httpapi.StopLAN(n.server)

		if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		n = begin()
		same(n, third, false, "damaged")
		httpapi.StopLAN(n.server)
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		begin().want(409, "can be read or changed by other users", "POST", "/v1/lan", "Authorization: Bearer token")
	})
}

// What is missing is said.
func TestWhereThePageCannotBeOpened(t *testing.T) {
	synctest.Test(t, whereThePageCannotBeOpened)
}

func whereThePageCannotBeOpened(t *testing.T) {
	n := newOpened(t, nil)
	n.addresses = nil
	n.want(409, "no address on a network", "POST", "/v1/lan", "Authorization: Bearer token")
	n.want(409, "user caio is not signed in at this node", "POST", "/v1/lan?user=caio", "Authorization: Bearer token")
	n = newOpened(t, func(o *httpapi.Options) { o.Networks = nil })
	n.want(404, "cannot open its page", "POST", "/v1/lan", "Authorization: Bearer token")
	n = newOpened(t, func(o *httpapi.Options) { o.Page = nil })
	n.want(404, "no web page", "POST", "/v1/lan", "Authorization: Bearer token")
	n = newOpened(t, func(o *httpapi.Options) {
		o.ListenBy(func(netip.Addr) (net.Listener, error) { return nil, errors.New("no port is free") })
	})
	n.want(500, "no port is free", "POST", "/v1/lan", "Authorization: Bearer token")
}

// Where one address cannot be had, the others can.
func TestOneAddressThatCannotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOpened(t, nil)
		f, busy := n.listen, true
		all := []netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("192.168.1.20")}
		o := httpapi.Options{Page: doors{}, Networks: func() []netip.Addr {
			return all
		}}
		o.ListenBy(func(a netip.Addr) (net.Listener, error) {
			if busy && a.String() == "10.0.0.9" {
				return nil, errors.New("not now")
			}
			return f(a)
		})
		n.server = httpapi.NewServer(people("ana"), "token", o)
		defer httpapi.StopLAN(n.server)
		made := n.open()
		if len(made.URLs) != 1 {
			t.Fatal(made.URLs)
		}
		c := n.get(200, "welcome", made.URLs[0], nil).resp.Cookies()
		if again := n.open(); again.Fingerprint != made.Fingerprint {
			t.Error("another certificate")
		}
		n.get(200, "inside", lanLinks+"/", c)

		// Where only that one is left, it is tried once more.
		all, busy = all[:1], false
		if made := n.open(); len(made.URLs) != 1 || !strings.HasPrefix(made.URLs[0], "https://10.0.0.9:7879/") {
			t.Error(made.URLs)
		}
	})
}

// Where the interface is on the network already the link leads there, and nothing else is opened.
func TestTheInterfaceIsOnTheNetworkAlready(t *testing.T) {
	o := httpapi.Options{Page: doors{}, Networks: func() []netip.Addr { t.Error("asked for addresses"); return nil }}
	o.Certificate, o.Key = certify(t, "station.example", "*.example")
	dir, s := serve(t, "0.0.0.0:0", people("ana"), o)
	made, err := dial(t, dir).OpenLAN(t.Context(), httpapi.SignInLink{User: "ana"})
	_, port, _ := net.SplitHostPort(s.Access().Address)
	if err != nil || !made.Configured || made.Fingerprint != s.Access().Certificate || made.User != "ana" ||
		!made.Acts ||
		len(made.URLs) != 1 || !strings.HasPrefix(made.URLs[0], "https://station.example:"+port+"/sign-in/") {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := os.Stat(filepath.Join(dir, api.PageFile)); err == nil {
		t.Error("a certificate was made")
	}
	if c, err := dial(t, dir).CloseLAN(t.Context()); err != nil || c.WasOpen || !c.Configured {
		t.Errorf("%+v, %v", c, err)
	}

	o.Certificate, o.Key = certify(t)
	dir, _ = serve(t, "0.0.0.0:0", people("ana"), o)
	if _, err := dial(t, dir).OpenLAN(t.Context(), httpapi.SignInLink{}); err == nil ||
		!strings.Contains(err.Error(), "names no host") {
		t.Error(err)
	}

	// On loopback a certificate opens nothing to the network.
	o.Certificate, o.Key = certify(t, "station.example")
	o.Networks = func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} }
	dir, _ = serve(t, "127.0.0.1:0", people("ana"), o)
	if made, err := dial(t, dir).OpenLAN(t.Context(), httpapi.SignInLink{}); err != nil || made.Configured {
		t.Errorf("%+v, %v", made, err)
	}
}

// Over real sockets, of a node whose interface is a Unix socket; not after a restart.
func TestThePageOfANodeThatIsReachedByASocket(t *testing.T) {
	o := httpapi.Options{Page: doors{}, Networks: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} }}
	dir, s := serve(t, "unix:s", people("ana"), o)
	made, err := dial(t, dir).OpenLAN(t.Context(), httpapi.SignInLink{Look: true})
	if err != nil || made.Acts || made.User != "ana" {
		t.Fatalf("%+v, %v", made, err)
	}
	phone := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	resp, err := phone.Get(made.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if sum := sha256.Sum256(resp.TLS.PeerCertificates[0].Raw); string(b) != "welcome" ||
		hex.EncodeToString(sum[:]) != made.Fingerprint {
		t.Errorf("%s, %x", b, sum)
	}
	closeServer(t, s)
	if _, err := phone.Get(made.URLs[0]); err == nil {
		t.Error("open without its node")
	}
	again, err := httpapi.Serve(dir, "unix:s", people("ana"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, again)
	if _, err := phone.Get(made.URLs[0]); err == nil {
		t.Error("open again after a restart")
	}
}

// Fingerprints are told in short plain words of which no two are mistaken for each other.
func TestWords(t *testing.T) {
	words := httpapi.Words()
	if len(words) != 256 || !slices.IsSorted(words) {
		t.Fatalf("%d words, in order %v", len(words), slices.IsSorted(words))
	}
	for i, w := range words {
		if !regexp.MustCompile(`^[a-z]{3,8}$`).MatchString(w) {
			t.Errorf("%q is not short and plain", w)
		}
		for _, x := range words[:i] {
			if apart(w, x) < 2 {
				t.Errorf("%s and %s are one letter apart", w, x)
			}
		}
	}
	n := newOpened(t, nil)
	n.real = true
	made := n.open()
	sum, err := hex.DecodeString(made.Fingerprint)
	told := strings.Fields(made.Words)
	if err != nil || len(sum) != 32 || len(told) != 8 {
		t.Fatalf("%+v, %v", made, err)
	}
	for i, w := range told { // eight words, 64 bits: docs/operating.md says so
		if words[sum[i]] != w {
			t.Errorf("word %d is %s, want %s", i, w, words[sum[i]])
		}
	}
}

// apart is how many letters have to be put in, taken out or changed.
func apart(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}
