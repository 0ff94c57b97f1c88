package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// leaving is a node on its way out that asks something; empty: it goes on by itself.
func leaving(asks string) *apitest.Fake {
	f := brigade()
	f.OnContact = func() (*api.Contact, error) {
		c := &api.Contact{
			State: api.IsLeaving, Asks: asks, Along: work()[:1], Own: work()[2:3], Waits: "15s", Volume: 48_200_000, Takes: "8m",
		}
		if asks != "" {
			c.Why, c.Items = "48.2 MB are still to come, which takes about 8m at 100 kB/s, as files came from station, last 3m ago, and of the longest wait 5m are left: accept to wait on, wait longer (--within 9m), or give items back (mutirao worklist release)", work()[:1]
		}
		return c, nil
	}
	return f
}

// gone is a node that has disconnected on purpose.
func gone() *apitest.Fake {
	f := leaving("")
	since, back := at(11*time.Hour), at(59*time.Hour)
	f.OnContact = func() (*api.Contact, error) {
		return &api.Contact{
			State: api.IsDisconnected, Since: &since, Along: work()[:1], Own: work()[2:3], Until: &back, Waits: "2d",
			Withheld: []api.Withheld{{Item: "a1", Task: "hoses", User: "ana", Data: "wounds", File: "wounds.png",
				OnlyFor: []string{"doctor"}}},
			Passed: []api.Given{{Instance: "0a1b", Workflow: "rescue", Task: "search", Partner: "boat",
				Reason: "the only one able"}},
			Stays: []api.Stay{{Instance: "0a1c", Workflow: "rescue", Task: "carry",
				Reason: "nobody else with role porter can be reached"}},
		}, nil
	}
	f.OnStatus = func() (*api.Status, error) {
		return &api.Status{Name: "station", Mesh: "brigade", Version: "v1", Since: at(0), Disconnected: &since}, nil
	}
	return f
}

// The node goes, asks, and is told yes, to wait longer, or to stay; then it comes back.
func TestGoingOutOfReach(t *testing.T) {
	for _, tt := range []struct {
		form  url.Values
		asked any
		state api.Contact
		want  string
	}{
		{url.Values{"act": {"go"}, "within": {" 20 "}}, api.DisconnectRequest{Within: api.Span(20 * time.Minute)},
			api.Contact{State: api.IsLeaving}, "The node is on its way out of reach."},
		{url.Values{"act": {"go"}, "within": {"5"}}, api.DisconnectRequest{Within: api.Span(5 * time.Minute)},
			api.Contact{State: api.IsLeaving, Asks: "not-locked"}, "The node is still connected: see what it asks."},
		{url.Values{"act": {"go"}, "within": {"5"}, "accept": {"not-locked"}},
			api.DisconnectRequest{Within: api.Span(5 * time.Minute), Accept: []string{"not-locked"}},
			api.Contact{State: api.IsDisconnected}, "The node is out of reach."},
		{url.Values{"act": {"go"}, "within": {"5"}, "hours": {" 36 "}},
			api.DisconnectRequest{Within: api.Span(5 * time.Minute), For: api.Span(36 * time.Hour)},
			api.Contact{State: api.IsLeaving}, "The node is on its way out of reach."},
		{url.Values{"act": {"stay"}}, "reconnect", api.Contact{}, "The node stays connected."},
		{url.Values{"act": {"back"}}, "reconnect", api.Contact{}, "The node talks to its partners again."},
	} {
		f := brigade()
		var asked any
		f.OnDisconnect = func(r api.DisconnectRequest) (*api.Contact, error) {
			asked = r
			return &tt.state, nil
		}
		f.OnReconnect = func() (*api.Contact, error) {
			asked = "reconnect"
			return &tt.state, nil
		}
		p := newPage(f)
		w := post(t, p, sent(httpapi.Good), "en", "/contact", tt.form)
		if text := follow(t, p, w, "en"); !strings.Contains(text, tt.want) {
			t.Errorf("%v:\n%s", tt.form, text)
		}
		if diff := cmp.Diff(tt.asked, asked); diff != "" {
			t.Errorf("%v: %s", tt.form, diff)
		}
		if tt.form.Get("within") == " 20 " && !strings.Contains(w.Header().Get("Location"), "within=20") {
			t.Errorf("how long is accepted is forgotten: %s", w.Header().Get("Location"))
		}
		if tt.form.Has("hours") && !strings.Contains(w.Header().Get("Location"), "hours=36") {
			t.Errorf("for how long it goes is forgotten: %s", w.Header().Get("Location"))
		}
	}
}

// For how long the node is to be away is not forgotten by whoever opens the page by another way while it asks.
func TestTheAbsenceIsKeptWhileItAsks(t *testing.T) {
	for away, want := range map[time.Duration]string{0: "", 2 * time.Hour: "2", 90 * time.Minute: "2", 192 * time.Hour: "192"} {
		f := brigade()
		f.OnContact = func() (*api.Contact, error) {
			return &api.Contact{State: api.IsLeaving, Asks: "not-locked", For: api.Span(away)}, nil
		}
		body := get(t, newPage(f), "/contact", "en").Body.String()
		if n := strings.Count(body, `name="hours" value="`+want+`"`); n != strings.Count(body, `name="hours"`) || n == 0 {
			t.Errorf("%s: the forms say otherwise:\n%s", away, body)
		}
	}
}

// Nor is what wait for files was accepted, nor anything that was typed in a form that comes back.
func TestTheWaitIsKept(t *testing.T) {
	f := brigade()
	f.OnDisconnect = func(api.DisconnectRequest) (*api.Contact, error) { return nil, api.Errorf(api.Refused, "no") }
	for within, want := range map[time.Duration]string{0: "5", 20 * time.Minute: "20", 90 * time.Second: "2", 30 * time.Hour: "1440"} {
		f.OnContact = func() (*api.Contact, error) {
			return &api.Contact{State: api.IsLeaving, Asks: "too-slow", Within: api.Span(within)}, nil
		}
		p := newPage(f)
		body := get(t, p, "/contact", "en").Body.String()
		if n := strings.Count(body, `name="within" value="`+want+`"`); n != strings.Count(body, `name="within"`) || n == 0 {
			t.Errorf("%s: the forms say otherwise:\n%s", within, body)
		}
		for _, sort := range []httpapi.Sent{httpapi.Good, httpapi.Stale} {
			for _, typed := range []string{"33", "x", ""} {
				body := post(t, p, sent(sort), "en", "/contact",
					url.Values{"act": {"go"}, "within": {typed}, "hours": {"500"}}).Body.String()
				if !strings.Contains(body, `name="within" value="`+typed+`"`) || !strings.Contains(body, `name="hours" value="500"`) {
					t.Errorf("%q came back as something else:\n%s", typed, body)
				}
			}
		}
	}
}

// Everybody may say when files of the own items come; the pace that was set stays.
func TestFilesBeforeTheyAreNeeded(t *testing.T) {
	f := brigade()
	is := api.Prefetch{User: "ana", AtMost: 4000, Items: []api.Item{}}
	f.OnPrefetch = func(string) (*api.Prefetch, error) { return &is, nil }
	f.OnSetPrefetch = func(r api.PrefetchRequest) (*api.Prefetch, error) {
		is.User, is.On, is.AtMost = r.User, r.On, r.AtMost
		return &is, nil
	}
	worker := sent(httpapi.Good)
	worker.Manages = false
	p := newPage(f)
	for _, tt := range []struct {
		act, note, then string
		on              bool
	}{
		{"prefetch", "Files come before they are needed.", "come by themselves, while the network is there", true},
		{"no-prefetch", "Files come when they are needed.", "Have them come before", false},
	} {
		w := post(t, p, worker, "en", "/contact", url.Values{"act": {tt.act}})
		text := follow(t, p, w, "en")
		if !strings.Contains(text, tt.note) || !strings.Contains(text, tt.then) {
			t.Errorf("%s:\n%s", tt.act, text)
		}
		if is.On != tt.on || is.AtMost != 4000 {
			t.Errorf("%s: %+v", tt.act, is)
		}
	}
}

// Nobody has the node go but whoever may do all at it, and no question is answered that cannot be.
func TestGoingOutOfReachRefused(t *testing.T) {
	f := brigade() // a call that changes anything would panic
	worker := sent(httpapi.Good)
	worker.Manages = false
	for _, act := range []string{"go", "stay", "back"} {
		w := post(t, newPage(f), worker, "en", "/contact", url.Values{"act": {act}, "within": {"5"}})
		if body := w.Body.String(); w.Code != http.StatusConflict ||
			!strings.Contains(body, "This browser may not have the node go out of reach") ||
			regexp.MustCompile(`name="act" value="(go|stay|back)"`).MatchString(body) {
			t.Errorf("%s by who may not: %d\n%s", act, w.Code, prose(body))
		}
	}
	for _, within := range []string{"", "0", "-1", "1441", "soon", "5m"} {
		w := post(t, newPage(f), sent(httpapi.Good), "pt-BR", "/contact", url.Values{"act": {"go"}, "within": {within}})
		if body := w.Body.String(); w.Code != http.StatusConflict ||
			!strings.Contains(body, "A espera máxima é um número de minutos") ||
			!strings.Contains(body, `name="within" value="`+within+`"`) {
			t.Errorf("within %q: %d\n%s", within, w.Code, prose(body))
		}
	}
	for _, hours := range []string{"0", "-1", "193", "2d"} {
		form := url.Values{"act": {"go"}, "within": {"5"}, "hours": {hours}}
		w := post(t, newPage(f), sent(httpapi.Good), "en", "/contact", form)
		if body := w.Body.String(); w.Code != http.StatusConflict ||
			!strings.Contains(body, "is a whole number of hours, from 1 to 192, or empty") ||
			!strings.Contains(body, `name="hours" value="`+hours+`"`) {
			t.Errorf("for %q hours: %d\n%s", hours, w.Code, prose(body))
		}
	}
	if w := post(t, newPage(f), sent(httpapi.Good), "en", "/contact", url.Values{"act": {"x"}}); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "Say whether the node is to go") {
		t.Errorf("nothing that is known: %d", w.Code)
	}
	for _, tt := range []struct {
		asks   string
		accept bool
	}{{"not-locked", true}, {"no-program", true}, {"missing", true}, {"too-slow", true}, {"no-space", false}, {"trouble", false}} {
		w := get(t, newPage(leaving(tt.asks)), "/contact", "en")
		if offers := strings.Contains(w.Body.String(), `name="accept" value="`+tt.asks+`"`); offers != tt.accept ||
			w.Header().Get("Refresh") != "" {
			t.Errorf("%s: it can be accepted: %v\n%s", tt.asks, offers, prose(w.Body.String()))
		}
	}
	// While it goes on by itself the page looks again by itself, also without JavaScript.
	if w := get(t, newPage(leaving("")), "/contact", "en"); w.Header().Get("Refresh") != "2" ||
		!strings.Contains(w.Body.String(), `value="stay"`) {
		t.Errorf("%v\n%s", w.Header(), prose(w.Body.String()))
	}
}

// What its user takes offline while the node asks about it is not listed any more as what cannot be done out of reach.
func TestWhatIsTakenOfflineIsNotAskedFor(t *testing.T) {
	f := leaving("not-locked")
	for state, listed := range map[string]bool{api.ItemSelected: true, api.ItemLocked: false} {
		f.OnContact = func() (*api.Contact, error) {
			return &api.Contact{State: api.IsLeaving, Asks: "not-locked", Items: work()[1:2]}, nil
		}
		f.OnWorklist = func(api.WorklistQuery) ([]api.Item, error) {
			items := work()[1:2]
			items[0].State = state
			return items, nil
		}
		w := get(t, newPage(f), "/contact", "en")
		if got := strings.Contains(w.Body.String(), "/items/b2"); got != listed {
			t.Errorf("%s: it is listed: %t\n%s", state, got, prose(w.Body.String()))
		}
	}
}
