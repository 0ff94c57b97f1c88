package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// long is a time out of reach, and a small part of it where tests are to be short, as under the race detector: the
// nodes do the same in each minute of it.
func long(d time.Duration) time.Duration {
	if testing.Short() {
		return d / 16
	}
	return d
}

// outing are three partners with a connection time of 20 s, of which two is to hold b of an instance of guarded.
func outing(t *testing.T) (tm *team, id string) {
	t.Helper()
	tm = newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 20 * time.Second }, "one", "two", "three")
	tm.add("one", guarded)
	id = tm.begin("one", "guarded", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
	pass(time.Second)
	return tm, id
}

// goesFor has a node disconnect for a while, as it announces.
func (tm *team) goesFor(at string, away time.Duration) {
	tm.t.Helper()
	c, err := tm.p[at].api.Disconnect(tm.t.Context(), api.DisconnectRequest{For: api.Span(away)})
	if err != nil || c.State != api.IsDisconnected || c.Until == nil || c.Until.Sub(*c.Since) != away ||
		c.Waits != workflow.FormatDuration(max(away, 20*time.Second)) {
		tm.t.Fatalf("it is %+v, %v", c, err)
	}
	pass(time.Second)
}

// wantAbsent checks that partners show one as absent until a moment.
func (tm *team) wantAbsent(of string, until time.Time, at ...string) {
	tm.t.Helper()
	for _, by := range at {
		p := tm.row(by, of)
		if p.State != "unreachable" || p.Reason != "away as announced" || p.Until == nil ||
			p.Until.Sub(until).Abs() > 2*time.Second {
			tm.t.Errorf("%s shows %s as %s (%s) until %v, want absent until %s", by, of, p.State, p.Reason, p.Until, until)
		}
	}
}

// wantStates checks how a task stands at partners.
func (tm *team) wantStates(id string, task workflow.TaskName, want workflow.State, at ...string) {
	tm.t.Helper()
	for _, by := range at {
		if s := tm.task(by, id, task); s != want {
			tm.t.Errorf("at %s %s is %s, want %s:\n%s", by, task, s, want,
				lines(tm.log(by, id)))
		}
	}
}

// Two days out of reach as announced, where the connection time is 20 s: what the absent partner holds waits for it,
// also at those who were started again meanwhile. It is given nothing new. It is back before its time is over, and does
// its work.
func TestAnAnnouncedAbsenceEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := outing(t)
		days := long(48 * time.Hour)
		back := time.Now().Add(days)
		tm.goesFor("two", days)
		tm.wantAbsent("two", back, "one", "three")
		pass(days / 2)
		tm.wantStates(id, "b", workflow.Ready, "one")
		for _, at := range []string{"one", "three"} {
			tm.p[at].crash()
			tm.p[at].start()
		}
		tm.connect("one", "three")
		pass(days/2 - time.Hour)
		tm.wantAbsent("two", back, "one", "three")
		tm.wantStates(id, "b", workflow.Ready, "one")
		if x := tm.show("one", id).Tasks[1]; !strings.Contains(x.Reason, "it waits for two, who is away since 20") {
			t.Errorf("one says of b: %q", x.Reason)
		}
		if f := tm.finding("one", "partners"); f.State != api.FindingOK ||
			!strings.Contains(f.What, "away as announced: two since 20") {
			t.Errorf("the doctor says %+v", f)
		}
		tm.add("one", "workflow: more\ntasks:\n  t: {type: manual, needs: [is-two]}\n")
		_, err := tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: "more"})
		wantRefusal(t, "a start for which only two can be taken", err, "nobody can take it but two, which is away until about 20")

		tm.comesBack("two", "one")
		if x := tm.row("one", "two"); x.State != "active" || x.Until != nil {
			t.Errorf("one shows two as %+v", x)
		}
		tm.finish("two", id, "b")
		tm.finish("one", id, "c")
		tm.succeeds(id, time.Minute, "one", "two")
		tm.once(id, []string{"a", "b", "c"}, "one", "two")

		// From now on it is judged by its connection time again.
		id = tm.begin("one", "guarded", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		pass(time.Second)
		tm.p["two"].crash()
		pass(30 * time.Second)
		tm.finish("one", id, "c")
		tm.succeeds(id, time.Minute, "one")
	})
}

// Whoever is not back when the announced time is over is judged then, and not before.
func TestAnAbsenceThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := outing(t)
		days := long(48 * time.Hour)
		tm.goesFor("two", days)
		pass(days - 5*time.Second)
		tm.wantStates(id, "b", workflow.Ready, "one")
		pass(5 * time.Second)
		if p := tm.row("one", "two"); p.State != "expired" ||
			p.Reason != "not back when its announced absence was over" {
			t.Errorf("two is %s (%s), want expired", p.State, p.Reason)
		}
		tm.finish("one", id, "c")
		tm.succeeds(id, time.Minute, "one")
		if f := tm.finding("two", "contact"); !strings.Contains(f.What, "and judge what it holds from then on") {
			t.Errorf("its own doctor says %+v", f)
		}
		// It comes back late: what it did meanwhile is for the rules of convergence.
		tm.finish("two", id, "b")
		tm.comesBack("two", "one")
		if !tm.agree([]string{id}) {
			t.Errorf("they do not agree:\n%s\n%s", lines(tm.log("one", id)), lines(tm.log("two", id)))
		}
	})
}

// An absence that is shorter than the connection time takes nothing from that, and an eviction acts at once.
func TestAShortAbsenceAndAnEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := outing(t)
		pass(time.Second)
		tm.goesFor("two", 5*time.Second)
		pass(13 * time.Second)
		tm.wantStates(id, "b", workflow.Ready, "one")
		tm.comesBack("two", "one")
		tm.goesFor("two", 48*time.Hour)
		if _, err := tm.p["one"].api.Evict(t.Context(), api.EvictRequest{Partner: "two", Reason: "stolen"}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		tm.finish("one", id, "c")
		tm.succeeds(id, 10*time.Second, "one")
	})
}

// A node that hears of an absence by others waits as long as they do, and one that was cut off when it was announced takes
// it back that the partner is gone, where nobody has judged it yet.
func TestAnAbsenceIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := outing(t)
		tm.disconnect("one", "two")
		tm.disconnect("one", "three")
		back := time.Now().Add(time.Hour)
		tm.goesFor("two", time.Hour)
		pass(15 * time.Second)
		tm.connect("one", "three")
		pass(30 * time.Second)
		tm.wantAbsent("two", back, "one", "three")
		tm.wantStates(id, "b", workflow.Ready, "one")
		pass(time.Hour - 50*time.Second)
		tm.wantStates(id, "b", workflow.Ready, "one")
		pass(10 * time.Second)
		if p := tm.row("one", "two"); p.State != "expired" {
			t.Errorf("two is %s (%s), want expired", p.State, p.Reason)
		}
	})
}

// The absent one would judge: the next does so, at its own time.
func TestNobodyWaitsForAnAbsentGuardian(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 20 * time.Second }, "one", "two", "three")
		tm.add("one", strings.Replace(guarded, "b: {after: a, type: manual,", "b: {after: a, type: manual, timeout: 5m,", 1))
		id := tm.begin("one", "guarded", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		pass(time.Second)
		tm.goesFor("one", 24*time.Hour)
		tm.p["two"].crash()
		pass(30 * time.Second)
		tm.finish("three", id, "c")
		tm.succeeds(id, time.Minute, "three")
	})
}

// A lock that was taken three days before an absence of eight ends with that, and not with its lease of seven days; what
// is done counts.
func TestALockLastsAsLongAsTheAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		const day = 24 * time.Hour
		id, visit := tm.rounds("visits", nil)
		if err := tm.claim("tablet", "bia", api.ClaimLock, visit); err != nil {
			t.Fatal(err)
		}
		pass(3 * day)
		tm.goesFor("tablet", 8*day)
		pass(2 * day)
		tm.p["base"].crash() // the holder knows of it also after a restart
		tm.p["base"].start()
		pass(5 * day)
		wantCode(t, tm.claim("base", "ana", api.ClaimLock, visit), api.Refused, "bia")
		if err := tm.hand("tablet", "bia", visit, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		tm.comesBack("tablet", "base")
		tm.wantOutbox("tablet")
		if in := tm.show("base", id); in.Tasks[0].PerformedBy != "bia" || in.Data["weight"] != int64(3) {
			t.Errorf("visit was done by %q, and weight is %v", in.Tasks[0].PerformedBy, in.Data["weight"])
		}
	})
}

// Whoever locks something that the own node holds, and goes without saying for how long, is waited for as long as the lock
// lasts, and not only for the connection time: what is done counts. Without such a lock nothing is announced.
func TestALockHereIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", `
workflow: own
tasks:
  visit: {type: manual, offline: true, on-failure: {contingency: phone}}
  phone: {role: nurse, type: manual}
  report: {type: manual, after: visit}
partitions: {van: {tasks: [visit], partner: tablet}, ward: {tasks: [phone, report], partner: base}}
`)
		const day = 24 * time.Hour
		id, visit := tm.rounds("own", nil)
		away := func(want time.Duration) {
			t.Helper()
			c := tm.goesAway("tablet", "not-locked")
			switch {
			case c.State != api.IsDisconnected || (c.Until == nil) != (want == 0):
				t.Fatalf("it is %+v, want away for %s", c, want)
			case want > 0 && (c.Until.Sub(*c.Since) != want || c.Waits != workflow.FormatDuration(want)):
				t.Errorf("it is away until %s, and they wait %s; want %s", c.Until, c.Waits, want)
			}
		}
		if err := tm.claim("tablet", "bia", api.ClaimSelect, visit); err != nil {
			t.Fatal(err)
		}
		away(0) // what is selected is nothing that others wait for
		tm.comesBack("tablet", "base")
		if err := tm.claim("tablet", "bia", api.ClaimLock, visit); err != nil {
			t.Fatal(err)
		}
		pass(2 * day)
		away(5 * day) // of the seven
		pass(4 * day)
		tm.wantStates(id, "visit", workflow.Ready, "base")
		if err := tm.hand("tablet", "bia", visit, nil); err != nil {
			t.Fatal(err)
		}
		tm.comesBack("tablet", "base")
		if in := tm.show("base", id); in.Tasks[0].PerformedBy != "bia" {
			t.Errorf("visit was done by %q", in.Tasks[0].PerformedBy)
		}
		away(0) // nothing is locked any more
	})
}

// What nobody can announce is refused, with what can be.
func TestWishesOfAbsences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := outing(t)
		for _, d := range []time.Duration{-1, 8*24*time.Hour + 1} {
			_, err := tm.p["two"].api.Disconnect(t.Context(), api.DisconnectRequest{For: api.Span(d)})
			wantCode(t, err, api.Invalid, "want 0 (not said) to 8d")
		}
		tm.wantContact("two", api.IsConnected, "")

		// It stays disconnected through a restart, and knows until when.
		tm.goesFor("two", 8*24*time.Hour)
		before := tm.contact("two")
		tm.p["two"].crash()
		tm.p["two"].start()
		if c := tm.contact("two"); c.Until == nil || !c.Until.Equal(*before.Until) || c.Waits != "8d" {
			t.Errorf("after a restart it is %+v, before %+v", c, before)
		}

		// Partners cannot be told another time while it is away; to go once more as it went is to go once.
		for d, fits := range map[time.Duration]bool{0: true, 8 * 24 * time.Hour: true, 6 * time.Hour: false} {
			c, err := tm.p["two"].api.Disconnect(t.Context(), api.DisconnectRequest{For: api.Span(d)})
			if !fits {
				wantCode(t, err, api.Refused, "away already, and 8d was announced when it went: that it is to be 6h cannot be")
			} else if err != nil || !c.Until.Equal(*before.Until) {
				t.Errorf("for %s once more: %+v, %v", d, c, err)
			}
		}
	})
}
