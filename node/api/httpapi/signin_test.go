package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// doors is a page that says where its reader stands.
type doors struct{}

func (doors) Inside(w http.ResponseWriter, r *http.Request, s httpapi.Session) {
	w.Header().Set("X-Form-Token", s.FormToken)
	fmt.Fprintf(w, "inside %s as %s(%s), acts %v, sent %d, manages %v", r.URL.Path, s.Name, s.User, s.Acts, s.Sent,
		s.Manages)
}

func (doors) Outside(w http.ResponseWriter, r *http.Request, why httpapi.Door) {
	if why != httpapi.Welcome {
		w.WriteHeader(http.StatusUnauthorized)
	}
	fmt.Fprint(w, map[httpapi.Door]string{
		httpapi.Closed: "closed", httpapi.Spent: "spent", httpapi.Welcome: "welcome", httpapi.Left: "left",
		httpapi.TooLarge: "too large", httpapi.TooOften: "too often", httpapi.Ended: "ended",
	}[why])
}

// browser asks a server without a network in between. It keeps its cookies.
type browser struct {
	t       *testing.T
	server  http.Handler
	cookies []*http.Cookie
}

func newBrowser(t *testing.T, svc *apitest.Fake) *browser {
	if svc.OnUsers == nil {
		svc.OnUsers = func() ([]api.User, error) {
			return []api.User{{Name: "station", ID: "12D3", Partner: true, Here: true}}, nil
		}
	}
	return &browser{t: t, server: httpapi.NewServer(svc, "token", httpapi.Options{Page: doors{}})}
}

// do makes a request; each header is "Name: value".
func (b *browser) do(method, path string, headers ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, path, nil)
	r.Host = "127.0.0.1:7700"
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	return w
}

// want checks status and body.
func (b *browser) want(status int, body, method, path string, headers ...string) {
	b.t.Helper()
	w := b.do(method, path, headers...)
	if w.Code != status || !strings.Contains(w.Body.String(), body) {
		b.t.Errorf("%s %s %v: %d %s, want %d %s", method, path, headers, w.Code, w.Body, status, body)
	}
}

// link asks for a link, as every holder of the token may.
func (b *browser) link() (path string) {
	b.t.Helper()
	return b.linkBy("token", "")
}

// linkBy asks for a link with a token.
func (b *browser) linkBy(token, query string) (path string) {
	b.t.Helper()
	w := b.do("POST", "/v1/sign-in"+query, "Authorization: Bearer "+token)
	var in httpapi.SignIn
	if err := json.Unmarshal(w.Body.Bytes(), &in); err != nil || !strings.HasPrefix(in.Path, "/sign-in/") ||
		time.Until(in.Expires) > 5*time.Minute {
		b.t.Fatalf("a link of %d %s: %v", w.Code, w.Body, err)
	}
	return in.Path
}

// signIn uses a link and takes the cookie.
func (b *browser) signIn() *http.Cookie {
	b.t.Helper()
	w := b.do("GET", b.link())
	cookies := w.Result().Cookies()
	if w.Code != 200 || w.Body.String() != "welcome" || len(cookies) != 1 {
		b.t.Fatalf("signing in: %d %s %v", w.Code, w.Body, cookies)
	}
	b.cookies = cookies
	return cookies[0]
}

func TestSigningIn(t *testing.T) {
	b := newBrowser(t, &apitest.Fake{})
	b.want(401, "closed", "GET", "/")
	b.want(401, "spent", "GET", "/sign-in/guess")
	b.want(401, "spent", "GET", "/sign-in/")
	b.want(401, "not-allowed", "POST", "/v1/sign-in")

	c := b.signIn()
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || c.MaxAge != 12*3600 ||
		c.Name != "mutirao-7700" {
		t.Errorf("the cookie is %s", c)
	}
	b.want(200, "inside /instances", "GET", "/instances")
	b.want(405, "DELETE cannot be used on a page", "DELETE", "/instances")

	// Another browser, another node on this machine, a made-up session.
	for _, cookies := range [][]*http.Cookie{
		nil, {{Name: "mutirao-7701", Value: c.Value}}, {{Name: c.Name, Value: "x"}},
	} {
		b.cookies = cookies
		b.want(401, "closed", "GET", "/")
	}
}

// A session ends with its user's being signed in at the node, and no file is taken from it; one of nobody stays.
func TestASessionEndsWithItsUser(t *testing.T) {
	gone := false
	svc := &apitest.Fake{}
	b := newBrowser(t, svc)
	b.server = httpapi.NewServer(svc, "token", httpapi.Options{
		Page: doors{}, SignedIn: func(user string) bool { return user == "12D3" && !gone },
	})
	b.signIn()
	b.want(200, "inside / as station", "GET", "/")
	gone = true
	for range 2 { // what a script asks for first, and then the page
		b.want(401, "ended", "GET", "/")
	}
	b.want(401, "ended", "POST", "/items/x", "Sec-Fetch-Site: same-origin", "Content-Type: application/x-www-form-urlencoded")
	b.want(401, "", "POST", "/uploads/0123456789abcdef0123456789abcdef?name=a&size=1&at=0")

	svc.OnUsers = func() ([]api.User, error) {
		return []api.User{{Name: "ana", ID: "a", Here: true}, {Name: "bia", ID: "b", Here: true}}, nil
	}
	b.signIn()
	b.want(200, "inside / as ()", "GET", "/")
}

func TestUnderTLSTheCookieIsSecure(t *testing.T) {
	b := newBrowser(t, &apitest.Fake{})
	r := httptest.NewRequestWithContext(t.Context(), "GET", "https://localhost"+b.link(), nil)
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	if c := w.Result().Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("%d, cookies %v", w.Code, c)
	}
}

// A link works once; looking at where it leads does not use it up.
func TestALinkWorksOnce(t *testing.T) {
	b := newBrowser(t, &apitest.Fake{})
	link := b.link()
	b.want(401, "spent", "HEAD", link)
	b.want(403, "only the node's own page may send it forms", "POST", link)
	b.want(401, "spent", "POST", link, "Origin: http://127.0.0.1:7700",
		"Content-Type: application/x-www-form-urlencoded")
	b.want(200, "welcome", "GET", link)
	b.want(401, "spent", "GET", link)
}

func TestLinksAndSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrowser(t, &apitest.Fake{})
		link := b.link()
		time.Sleep(5*time.Minute - 1)
		b.want(200, "welcome", "GET", link)
		link = b.link()
		time.Sleep(5 * time.Minute)
		b.want(401, "spent", "GET", link)

		b.signIn()
		time.Sleep(12*time.Hour - 1)
		b.want(200, "inside", "GET", "/")
		time.Sleep(time.Nanosecond)
		b.want(401, "closed", "GET", "/")
	})
}

// However many links are asked for and used, the node remembers a few: the
// oldest go.
func TestLinksAndSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrowser(t, &apitest.Fake{})
		oldest := b.link()
		for range 16 {
			time.Sleep(time.Second)
			b.link()
		}
		b.want(401, "spent", "GET", oldest)

		b = newBrowser(t, &apitest.Fake{})
		first := b.signIn()
		time.Sleep(time.Second)
		second := b.signIn()
		for range 31 {
			time.Sleep(time.Second)
			b.signIn()
		}
		b.want(200, "inside", "GET", "/")
		b.cookies = []*http.Cookie{first}
		b.want(401, "closed", "GET", "/")
		b.cookies = []*http.Cookie{second}
		b.want(200, "inside", "GET", "/")
	})
}

// The cookie opens the page and nothing of the interface: whatever another page
// makes a browser send can change nothing. A method of the fake would panic.
func TestTheCookieOpensNothingElse(t *testing.T) {
	b := newBrowser(t, &apitest.Fake{})
	b.signIn()
	for _, path := range []string{"status", "instances", "events", "partners"} {
		b.want(401, "the token is missing or wrong", "GET", "/v1/"+path)
	}
	for _, path := range []string{
		"sign-in", "instances", "instances/x/cancel", "evictions", "tasks/finish", "coordinator/resign",
	} {
		b.want(401, "the token is missing or wrong", "POST", "/v1/"+path)
	}
	b.want(401, "the token is missing or wrong", "DELETE", "/v1/workflows/x")
	b.want(404, "there is no /v1/nothing", "GET", "/v1/nothing")
}

// What another site or another port of this machine has the browser ask for is
// asked by nobody who signed in.
func TestPagesAskedForByOthers(t *testing.T) {
	b := newBrowser(t, &apitest.Fake{})
	b.signIn()
	b.want(200, "inside", "GET", "/", "Sec-Fetch-Site: same-origin")
	b.want(200, "inside", "GET", "/", "Sec-Fetch-Site: none")
	b.want(401, "closed", "GET", "/", "Sec-Fetch-Site: cross-site")
	b.want(401, "closed", "GET", "/", "Sec-Fetch-Site: same-site")
	b.want(401, "closed", "GET", "/events", "Sec-Fetch-Site: same-site")
	b.want(403, "pages of", "GET", "/", "Origin: http://127.0.0.1:1")
	b.want(403, "does not answer as", "GET", "/", "Host: evil.example:7700")
	b.want(200, "welcome", "GET", b.link(), "Sec-Fetch-Site: cross-site") // a link in a chat
}

func TestWithoutAPage(t *testing.T) {
	b := &browser{t: t, server: httpapi.NewServer(&apitest.Fake{}, "token", httpapi.Options{})}
	b.want(404, "there is no /", "GET", "/")
	b.want(404, "this node has no web page", "POST", "/v1/sign-in", "Authorization: Bearer token")
}

// The page hears of events by its cookie, until the session ends.
func TestEventsOfThePage(t *testing.T) {
	watching := make(chan context.Context, 1)
	partner := apitest.UserFake{OnUsers: func() ([]api.User, error) {
		return []api.User{{Name: "station", ID: "12D3", Partner: true, Here: true}}, nil
	}}
	dir, s := serve(t, "127.0.0.1:0", &apitest.Fake{UserFake: partner,
		OnWatch: func(ctx context.Context, fn func(api.Event) error) error {
			watching <- ctx
			_ = fn(api.Event{Kind: "partner", Text: "active"})
			<-ctx.Done()
			return ctx.Err()
		}}, httpapi.Options{Page: doors{}})
	url, made, err := dial(t, dir).SignIn(t.Context(), httpapi.SignInLink{})
	if err != nil || time.Until(made.Expires) < 4*time.Minute || made.User != "station" || !made.Acts {
		t.Fatal(url, made, err)
	}
	resp, _ := get(t, s, strings.TrimPrefix(url, s.Access().URL), nil)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Access().URL+httpapi.EventsPath, nil)
	req.AddCookie(resp.Cookies()[0])
	if resp, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
	}
	if !strings.Contains(lines.Text(), `"kind":"partner"`) {
		t.Errorf("heard %q", lines.Text())
	}
	if end, ok := (<-watching).Deadline(); !ok || time.Until(end) > 12*time.Hour {
		t.Errorf("the stream ends at %v", end)
	}
}

// A page that was made before it watches learns at once whether something happened in between, and otherwise nothing.
func TestAPageLearnsWhatItMissed(t *testing.T) {
	partner := apitest.UserFake{OnUsers: func() ([]api.User, error) {
		return []api.User{{Name: "station", ID: "12D3", Partner: true, Here: true}}, nil
	}}
	for made, missed := range map[string]bool{"6": true, "7": false, "": true, "x": true} {
		dir, s := serve(t, "127.0.0.1:0", &apitest.Fake{UserFake: partner,
			OnWatch: func(ctx context.Context, fn func(api.Event) error) error {
				_ = fn(api.Event{Kind: api.EventGap})
				_ = fn(api.Event{Kind: "partner", Text: "active"})
				<-ctx.Done()
				return ctx.Err()
			}}, httpapi.Options{Page: doors{}, Happened: func() uint64 { return 7 }})
		url, _, err := dial(t, dir).SignIn(t.Context(), httpapi.SignInLink{})
		if err != nil {
			t.Fatal(err)
		}
		resp, _ := get(t, s, strings.TrimPrefix(url, s.Access().URL), nil)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet,
			s.Access().URL+httpapi.EventsPath+"?"+httpapi.HappenedField+"="+made, nil)
		req.AddCookie(resp.Cookies()[0])
		if resp, err = http.DefaultClient.Do(req); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
		}
		if got := strings.Contains(lines.Text(), `"kind":"gap"`); got != missed {
			t.Errorf("made at %q, of 7: heard %q first", made, lines.Text())
		}
		resp.Body.Close()
	}
}

// A user who reaches the node by a socket only is told that a browser cannot.
func TestNoLinkToASocket(t *testing.T) {
	dir, _ := serve(t, "unix:s", &apitest.Fake{UserFake: apitest.UserFake{
		OnUsers: func() ([]api.User, error) { return nil, nil },
	}}, httpapi.Options{Page: doors{}})
	if _, _, err := dial(t, dir).SignIn(t.Context(), httpapi.SignInLink{}); err == nil ||
		!strings.Contains(err.Error(), "a browser cannot reach the node") {
		t.Error(err)
	}
}
