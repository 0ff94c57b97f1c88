package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// people are those at a node: its partner, and users who are signed in here or elsewhere.
func people(here ...string) *apitest.Fake {
	f := &apitest.Fake{}
	f.OnStatus = func() (*api.Status, error) { return &api.Status{}, nil }
	f.OnDoctor = func() (*api.Diagnosis, error) { return &api.Diagnosis{}, nil }
	f.OnUsers = func() ([]api.User, error) {
		out := []api.User{
			{Name: "station", ID: "id-of-station", Partner: true, Here: true},
			{Name: "engine-7", ID: "id-of-engine-7", Partner: true},
			{Name: "caio", ID: "id-of-caio"},
		}
		for _, name := range here {
			out = append(out, api.User{Name: name, ID: "id-of-" + name, Here: true})
		}
		return out, nil
	}
	return f
}

// A link is for one user, who is settled when it is made; where that is nobody, and where only looking
// was asked for, the browser may look.
func TestForWhomALinkIs(t *testing.T) {
	for _, tt := range []struct {
		here        []string
		query, want string
	}{
		{nil, "", "as station(id-of-station), acts true"},
		{[]string{"ana"}, "", "as ana(id-of-ana), acts true"},
		{[]string{"ana"}, "?user=station", "as station(id-of-station), acts true"},
		{[]string{"ana", "bia"}, "", "as (), acts false"},
		{[]string{"ana", "bia"}, "?user=bia", "as bia(id-of-bia), acts true"},
		{[]string{"ana", "bia"}, "?user=id-of-bia", "as bia(id-of-bia), acts true"},
		{[]string{"ana"}, "", "manages true"},
		{[]string{"ana"}, "?look=true", "as ana(id-of-ana), acts false, sent 0, manages false"},
		{[]string{"ana"}, "?look=false", "as ana(id-of-ana), acts true"},
	} {
		b := newBrowser(t, people(tt.here...))
		b.cookies = b.do("GET", b.linkBy("token", tt.query)).Result().Cookies()
		b.want(200, tt.want, "GET", "/")
	}
	b := newBrowser(t, people("ana"))
	b.want(404, "there is no user \\\"nobody\\\"", "POST", "/v1/sign-in?user=nobody", "Authorization: Bearer token")
	for _, who := range []string{"caio", "engine-7"} {
		b.want(409, "user "+who+" is not signed in at this node", "POST", "/v1/sign-in?user="+who,
			"Authorization: Bearer token")
	}
	b.want(400, "look=maybe", "POST", "/v1/sign-in?look=maybe", "Authorization: Bearer token")
}

// Somebody who signs in at the node after the link was made does not get the browser.
func TestTheBrowserStaysWithItsUser(t *testing.T) {
	f := people("ana")
	b := newBrowser(t, f)
	link := b.link()
	f.OnUsers = people("bia").OnUsers
	b.cookies = b.do("GET", link).Result().Cookies()
	b.want(200, "as ana(id-of-ana)", "GET", "/")
}

// A token that may only read gives nobody a browser that acts, and what a token gave ends with it.
func TestASessionEndsWithItsToken(t *testing.T) {
	b := newBrowser(t, people("ana"))
	token := func(scope string) (secret string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/tokens",
			strings.NewReader(`{"name":"`+scope+`","scope":"`+scope+`"}`))
		r.Host = "127.0.0.1:7700"
		r.Header.Set("Authorization", "Bearer token")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, r)
		var made httpapi.NewToken
		if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		return made.Token
	}
	b.want(403, "needs a token with the scope work", "POST", "/v1/sign-in", "Authorization: Bearer "+token("read"))
	for _, scope := range []string{"work", "admin"} {
		secret := token(scope)
		b.cookies = b.do("GET", b.linkBy(secret, "")).Result().Cookies()
		b.want(200, "acts true, sent 0, manages "+strconv.FormatBool(scope == "admin"), "GET", "/")
		unused := b.linkBy(secret, "")
		if w := b.do("DELETE", "/v1/tokens/"+scope, "Authorization: Bearer token"); w.Code != 204 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		b.want(401, "closed", "GET", "/")
		b.want(401, "spent", "GET", unused)
	}
}

// post sends a form, as a browser of today does unless headers say otherwise.
func (b *browser) post(path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Host = "127.0.0.1:7700"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://127.0.0.1:7700")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	return w
}

// A form counts if our own page of this very session sent it. What comes from elsewhere is refused,
// what a session before typed is shown once more, and whoever may only look changes nothing.
func TestForms(t *testing.T) {
	b := newBrowser(t, people("ana"))
	b.signIn()
	ours := url.Values{"form-token": {b.do("GET", "/").Header().Get("X-Form-Token")}}
	for _, tt := range []struct {
		name    string
		form    url.Values
		headers []string
		status  int
		want    string
	}{
		{"ours", ours, nil, 200, "sent 1"},
		{"ours, of an old browser", ours, []string{"Sec-Fetch-Site: "}, 200, "sent 1"},
		{"ours, without an Origin", ours, []string{"Origin: "}, 200, "sent 1"},
		{"nobody says where it comes from", ours, []string{"Origin: ", "Sec-Fetch-Site: "}, 403,
			"only the node's own page"},
		{"another site", ours, []string{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site"}, 403, "pages of"},
		{"another port", ours, []string{"Origin: http://127.0.0.1:9", "Sec-Fetch-Site: same-site"}, 403, "pages of"},
		{"another port, without an Origin", ours, []string{"Origin: ", "Sec-Fetch-Site: same-site"}, 403,
			"only the node's own page"},
		{"a sandbox", ours, []string{"Origin: null", "Sec-Fetch-Site: cross-site"}, 403, "pages of"},
		{"an address that somebody typed", ours, []string{"Sec-Fetch-Site: none"}, 403, "only the node's own page"},
		{"without the token", nil, nil, 200, "sent 2"},
		{"a wrong token", url.Values{"form-token": {"x"}}, nil, 200, "sent 2"},
		{"JSON", ours, []string{"Content-Type: application/json"}, 415, "want application/x-www-form-urlencoded"},
		{"plain text", ours, []string{"Content-Type: text/plain"}, 415, "want application/x-www-form-urlencoded"},
		{"too large", url.Values{"a": {strings.Repeat("x", 1<<20)}}, nil, 401, "too large"},
	} {
		if w := b.post("/items/x", tt.form, tt.headers...); w.Code != tt.status ||
			!strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.name, w.Code, w.Body, tt.status, tt.want)
		}
	}

	// The token in the address does not count: addresses end up in histories.
	if w := b.post("/items/x?"+ours.Encode(), nil); !strings.Contains(w.Body.String(), "sent 2") {
		t.Errorf("a token in the address: %s", w.Body)
	}

	// After another sign-in the forms of the one before are stale.
	b.signIn()
	if w := b.post("/items/x", ours); !strings.Contains(w.Body.String(), "sent 2") {
		t.Errorf("a form of the session before: %s", w.Body)
	}

	// Whoever may only look.
	b.cookies = b.do("GET", b.linkBy("token", "?look=true")).Result().Cookies()
	look := url.Values{"form-token": {b.do("GET", "/").Header().Get("X-Form-Token")}}
	if w := b.post("/items/x", look); !strings.Contains(w.Body.String(), "sent 3") {
		t.Errorf("a form of whoever may only look: %s", w.Body)
	}
	b.cookies = nil
	if w := b.post("/items/x", ours); w.Code != 401 || w.Body.String() != "closed" {
		t.Errorf("a form of whoever is not signed in: %d %s", w.Code, w.Body)
	}
}

// Signing out ends the session, and takes a form of the same session.
func TestSigningOut(t *testing.T) {
	b := newBrowser(t, people("ana"))
	b.cookies = b.do("GET", b.linkBy("token", "?look=true")).Result().Cookies()
	ours := url.Values{"form-token": {b.do("GET", "/").Header().Get("X-Form-Token")}}
	b.want(200, "inside", "GET", "/sign-out")
	b.post("/sign-out", nil)
	b.want(200, "inside", "GET", "/")
	w := b.post("/sign-out", ours)
	if c := w.Result().Cookies(); w.Body.String() != "left" || len(c) != 1 || c[0].MaxAge >= 0 {
		t.Errorf("%s, cookies %v", w.Body, c)
	}
	b.want(401, "closed", "GET", "/")
}
