package node_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/web"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// weighsOutOfReach has bia lock an item of base at the tablet, and do it once that is out of reach.
func (tm *team) weighsOutOfReach(item string) {
	tm.t.Helper()
	if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
		tm.t.Fatal(err)
	}
	tm.disconnect("base", "tablet")
	synctest.Wait()
	if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
		tm.t.Fatal(err)
	}
}

// A user's certificate ends while the user has an item, as nobody who may renew it is here: what was done before, and
// is brought after, is kept with the reason, and counts once it is adopted. Nothing more can be done in the user's name,
// also on the page, and others may take the item.
func TestACertificateEndsWhileItsUserHasAnItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date := clockAhead(0)
		const month = node.Lifetime / 12
		on := func(at time.Duration) {
			date.set(at)
			pass(2 * time.Hour)
		}
		tm := newTeamWith(t, nil, date.on, "chief", "base:nurse", "tablet")
		on(6 * month)
		if err := tm.signIn("tablet", tm.addUser("chief", "bia", "nurse")); err != nil {
			t.Fatal(err)
		}
		on(10 * month) // the partners' own are renewed
		tm.p["chief"].crash()
		tm.add("base", strings.Replace(rota, "role: nurse, out", "role: nurse, offline: true, out", 1))
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota"})
		if err != nil {
			t.Fatal(err)
		}
		on(18*month - 24*time.Hour)
		item := tm.items("tablet", "bia")[0].ID
		tm.weighsOutOfReach(item)
		tm.wantOutbox("tablet", "bia|weigh|completed|base")

		on(18*month + 48*time.Hour)
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.wantOutbox("tablet", "bia|weigh|completed||it does not count, as the key of its user had expired by then: "+
			"sign in again with a new token; it is kept there")
		for _, r := range tm.refused("base", "tablet") {
			t.Errorf("its device is blamed for %s", r.Reason)
		}
		const why = "the key of user bia expired at 2001-07-03T02:00:00Z: sign in again with a new token"
		wantCode(t, tm.hand("tablet", "bia", item, map[string]string{"weight": "4"}), api.NotAllowed, why)
		wantCode(t, tm.claim("tablet", "bia", api.ClaimRelease, item), api.NotAllowed, why)
		for _, form := range []string{"/items/" + item, "/items/" + item + "/release"} {
			code, text := tm.posts("tablet", "bia", form, url.Values{"weight": {"4"}})
			if code != http.StatusForbidden || !strings.Contains(text, `<h2 id="problem-title">`+why) {
				t.Errorf("%s on the page: %d, and it says\n%s", form, code, text)
			}
		}
		in := tm.show("base", st.ID)
		if x := in.Tasks[0]; x.State != workflow.Ready || x.ClaimedBy != "" || in.Data["weight"] != nil {
			t.Errorf("weigh is %s, with %q, weight %v", x.State, x.ClaimedBy, in.Data["weight"])
		}
		tm.wantItems("base", "base", "weigh READY")
		kept := slices.IndexFunc(in.Incidents, func(x api.Incident) bool { return x.Result != "" })
		if kept < 0 {
			t.Fatalf("it is not kept: %+v", in.Incidents)
		}
		if _, err := tm.p["base"].api.AdoptResult(t.Context(),
			api.AdoptRequest{ID: st.ID, Result: in.Incidents[kept].Result}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if in := tm.show("base", st.ID); in.Tasks[0].State != workflow.Succeeded || in.Data["weight"] != int64(3) {
			t.Errorf("adopted it is %s, with %v", in.Tasks[0].State, in.Data)
		}
	})
}

// posts has somebody who is signed in at the page of a node send it a form.
func (tm *team) posts(at, user, path string, form url.Values) (code int, text string) {
	r := httptest.NewRequestWithContext(tm.t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := r.ParseForm(); err != nil { // as the server does
		tm.t.Fatal(err)
	}
	w := httptest.NewRecorder()
	web.New(tm.p[at].api.(web.Node), slog.New(slog.DiscardHandler)).
		Inside(w, r, httpapi.Session{User: user, Name: user, Acts: true, Sent: httpapi.Good})
	return w.Code, w.Body.String()
}

// A clock that is wrong takes nothing from a user: before the user's certificate was made, or after its end where this
// node's own has ended by it as well. What the user has stays as it was, and what was done counts once the clock is right.
func TestAWrongClockTakesNothingAway(t *testing.T) {
	const day = 24 * time.Hour
	for _, off := range []time.Duration{-26 * time.Hour, -400 * day, 400 * day} {
		for _, restarts := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				date, seen := clockAhead(0), []workflow.PartnerID{} // in the order in which they are started first
				tm := newTeamWith(t, nil, func(p *node.Parts) {
					if seen = append(seen, p.Member.ID()); len(seen) > 1 && seen[1] == p.Member.ID() {
						date.on(p)
					}
				}, "chief", "base:nurse", "tablet")
				pass(2 * day)
				if err := tm.signIn("tablet", tm.addUser("chief", "bia", "nurse")); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				tm.add("base", strings.Replace(rota, "role: nurse, out", "role: nurse, offline: true, out", 1))
				st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota"})
				if err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				item := tm.items("tablet", "bia")[0].ID
				tm.weighsOutOfReach(item)
				tm.p["chief"].crash() // who would renew what has ended by that clock
				set := func(to time.Duration) {
					if restarts {
						tm.p["base"].crash()
					}
					date.set(to)
					if restarts {
						tm.p["base"].start()
					}
					_, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota"}) // so that all is looked at
					t.Logf("another is begun: %v", err)
					pass(10 * time.Minute)
				}
				set(off)
				if x := tm.show("base", st.ID).Tasks[0]; x.ClaimedBy != "bia" {
					t.Errorf("by a clock %s off it is with %q", off, x.ClaimedBy)
				}
				set(0)
				tm.connect("base", "tablet")
				pass(time.Minute)
				if in := tm.show("base", st.ID); in.Data["weight"] != int64(3) {
					t.Errorf("after a clock %s off the weight is %v, and weigh %s", off, in.Data["weight"], in.Tasks[0].State)
				}
			})
		}
	}
}
