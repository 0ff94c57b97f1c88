package node_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
)

// brisk has partners expire after 10 s, which is also the votes' first lease.
func brisk(c *configs.Config) { c.ConnectionTime = 10 * time.Second }

// electorate sets who votes, and waits until all of them know.
func (tm *team) electorate(names ...string) {
	tm.t.Helper()
	if _, err := tm.p[names[0]].api.SetElectorate(tm.t.Context(), api.ElectorateRequest{Set: names}); err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
	for _, name := range names {
		e, err := tm.p[name].api.Electorate(tm.t.Context())
		if err != nil || len(e.Voters) != len(names) {
			tm.t.Fatalf("%s knows an electorate of %+v, %v; want %v", name, e, err, names)
		}
	}
}

// coordinator is the partner that another takes for the coordinator; empty:
// nobody.
func (tm *team) coordinator(at string) string {
	tm.t.Helper()
	c, err := tm.p[at].api.CoordinatorStatus(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	if c.Coordinator == nil {
		return ""
	}
	return *c.Coordinator
}

func (tm *team) wantCoordinator(want string, at ...string) {
	tm.t.Helper()
	for _, name := range at {
		if got := tm.coordinator(name); got != want {
			tm.t.Errorf("%s takes %q for the coordinator, want %q", name, got, want)
		}
	}
}

// cut cuts a team into two sides.
func (tm *team) cut(left, right []string) {
	for _, a := range left {
		for _, b := range right {
			tm.disconnect(a, b)
		}
	}
	synctest.Wait()
}

// A node that is configured to stands of its own accord whenever nobody
// coordinates: after the start, and after the coordinator is gone. Nobody else
// does.
func TestOnlyCandidatesStandOfTheirOwnAccord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, brisk, "one", "two", "three")
		tm.electorate("one", "two", "three")
		pass(10 * time.Minute)
		tm.wantCoordinator("", "one", "two", "three")

		three := tm.p["three"]
		three.crash()
		three.adjust = func(c *configs.Config) { brisk(c); c.Candidate = true }
		three.start()
		tm.connect("one", "three")
		tm.connect("two", "three")
		pass(time.Minute)
		tm.wantCoordinator("three", "one", "two", "three")

		three.crash()
		pass(10 * time.Minute)
		tm.wantCoordinator("", "one", "two") // the others were not told to
		three.start()
		tm.connect("one", "three")
		tm.connect("two", "three")
		pass(time.Minute)
		tm.wantCoordinator("three", "one", "two", "three")
	})
}

// restarted are three voters with a long lease, of whom two were started again a minute ago: they wait for it.
func restarted(t *testing.T) *team {
	tm := newTeamOf(t, brisk, "one", "two", "three")
	tm.electorate("one", "two", "three")
	set := api.ElectorateRequest{Set: []string{"one", "two", "three"}, Lease: api.Span(10 * time.Minute)}
	if _, err := tm.p["one"].api.SetElectorate(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	pass(15 * time.Minute)
	for _, name := range []string{"two", "three"} {
		tm.p[name].crash()
		tm.p[name].start()
		tm.connect("one", name)
	}
	tm.connect("two", "three")
	pass(time.Minute)
	return tm
}

// After a restart voters wait for a lease, which may be long. A user who has a node stand meanwhile is told which
// voters wait, for how long, and what to do; and the office is won as soon as they may vote.
func TestWhoWaitsForALeaseIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := restarted(t)
		_, err := tm.p["one"].api.Elect(t.Context(), api.ElectRequest{})
		for _, want := range []string{ // the messages take their time
			"no outcome within 1m30s: no majority (1 of 2 votes): ",
			"two has restarted or changed list and waits for a lease, for 7m3",
			"three has restarted or changed list and waits for a lease, for 7m3",
			"(this node goes on asking for 38m30s)",
			"a lease is 10m)", "mutirao coordinator electorate --set VOTER,... --lease DURATION",
		} {
			wantRefusal(t, "an election while voters wait", err, want)
		}
		c, err := tm.p["one"].api.CoordinatorStatus(t.Context())
		if err != nil || !strings.Contains(c.Standing, "two has restarted") {
			t.Errorf("status of who stands: %+v, %v", c, err)
		}
		pass(8 * time.Minute)
		tm.wantCoordinator("one", "one", "two", "three")
		if c, err := tm.p["one"].api.CoordinatorStatus(t.Context()); err != nil || c.Standing != "" {
			t.Errorf("status of the coordinator: %+v, %v", c, err)
		}
	})
}

// A user who has another node stand is told the same, as far as that node tells; and of a coordinator that nobody can reach
// until when it counts as that.
func TestWhoNominatesHearsWhatTheNomineeLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := restarted(t)
		_, err := tm.p["one"].api.Elect(t.Context(), api.ElectRequest{Candidate: "two"})
		for _, want := range []string{
			"no outcome within 1m30s: no majority (1 of 2 votes): ",
			"two has restarted or changed list and waits for a lease, for ",
			"three has restarted or changed list and waits for a lease, for ",
			" more (as two said ", "s ago; it goes on asking for 38m30s)",
			"a lease is 10m)", "mutirao coordinator status, there, shows how it goes on",
		} {
			wantRefusal(t, "another's election while voters wait", err, want)
		}
		pass(8 * time.Minute)
		tm.wantCoordinator("two", "one", "two", "three")

		tm.p["two"].crash()
		pass(time.Minute)
		_, err = tm.p["one"].api.Elect(t.Context(), api.ElectRequest{})
		wantRefusal(t, "an election before the lease of one that crashed is over", err,
			"two is the coordinator as far as this node knows, and cannot be reached: it counts as that for ")
		c, err := tm.p["one"].api.CoordinatorStatus(t.Context())
		if err != nil || c.Coordinator == nil || c.Lapses == nil {
			t.Fatalf("status: %+v, %v", c, err)
		}
		if left := time.Until(*c.Lapses); left < 6*time.Minute || left > 9*time.Minute {
			t.Errorf("it counts as the coordinator for %s more", left)
		}
		if c, err := tm.p["three"].api.CoordinatorStatus(t.Context()); err != nil || c.Lapses == nil {
			t.Errorf("status at another: %+v, %v", c, err)
		}
		pass(9 * time.Minute)
		if c, err := tm.p["one"].api.Elect(t.Context(), api.ElectRequest{}); err != nil || c.Lapses != nil {
			t.Errorf("an election after it: %+v, %v", c, err)
		}

		// One that falls silent says nothing: that is said, and what to do.
		if err := tm.p["one"].api.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		said := make(chan error, 1)
		tm.p["two"].start() // and waits for a lease
		tm.disconnect("one", "three")
		tm.connect("one", "two")
		pass(time.Minute)
		go func() {
			_, err := tm.p["one"].api.Elect(t.Context(), api.ElectRequest{Candidate: "two"})
			said <- err
		}()
		pass(500 * time.Millisecond)
		tm.p["two"].crash()
		wantRefusal(t, "an election of one that fell silent", <-said,
			"no outcome within 1m30s: two, which was asked to stand, said nothing")
	})
}

// What a voter cannot store it has not said: its vote does not count, and no
// message with it is sent. A candidate that cannot store its candidacy says why.
func TestVotesThatCannotBeStoredAreNotGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, brisk, "one", "two", "three")
		tm.electorate("one", "two", "three")
		pass(time.Minute)
		tm.disconnect("one", "three")
		tm.disconnect("two", "three")
		synctest.Wait()

		one, two := tm.p["one"], tm.p["two"]
		two.disk.failWith(kv.ErrFull)
		began := elapsed()
		_, err := one.api.Elect(t.Context(), api.ElectRequest{})
		wantRefusal(t, "an election without two's vote", err, "no majority")
		said := tm.f.sent(func(c carried) bool { return c.from == two.id() && c.sent >= began && votes(c.m) })
		if len(said) > 0 {
			t.Errorf("two sent %d votes that it could not store", len(said))
		}
		tm.wantCoordinator("", "one")
		_, err = two.api.Elect(t.Context(), api.ElectRequest{})
		wantRefusal(t, "standing on a full disk", err,
			"elections stand still: what this node says in them cannot be stored")

		two.disk.failWith(nil)
		pass(time.Minute)
		c, err := one.api.Elect(t.Context(), api.ElectRequest{})
		if err != nil || !slices.Contains(c.Votes, "two") {
			t.Fatalf("with room on its disk two votes: %+v, %v", c, err)
		}
		if len(tm.f.sent(func(c carried) bool { return c.from == two.id() && c.sent >= began && votes(c.m) })) == 0 {
			t.Error("two's vote was not seen: the test looks for the wrong thing")
		}

		// The coordinator's own disk fails: it cannot say that it goes on, and
		// steps down; nobody takes it for the coordinator any longer.
		one.disk.failWith(errors.New("input/output error"))
		tm.disconnect("one", "two")
		pass(time.Minute)
		tm.wantCoordinator("", "two")
		if _, leads := one.node.Leads(); leads {
			t.Error("one leads although nobody prolonged its lease")
		}
	})
}

// votes reports whether there is a vote in a message.
func votes(m *wire.Message) bool {
	return slices.ContainsFunc(m.Election, func(b []byte) bool {
		e, err := election.DecodeMessage(b)
		return err == nil && e.Grant != nil
	})
}

// Two sides of a split, of which each invites newcomers, evicts those of the
// other side and lets the rest expire, do not both elect: the electorate is what
// it was. One side has the founder, the other a delegate.
func TestTwoSidesCannotBothElect(t *testing.T) {
	for _, c := range []struct {
		what        string
		left, right []string
		elects      string // of the right side; empty: nobody
	}{
		{"two and two", []string{"one", "two"}, []string{"three", "four"}, ""},
		{"two and three", []string{"one", "two"}, []string{"three", "four", "five"}, "four"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeamOf(t, brisk, "one", "two")
				tm.welcome("one", "three", api.InviteRequest{Delegate: true}, "one", "two")
				here := []string{"one", "two", "three"}
				for _, name := range c.right[1:] {
					tm.welcome("one", name, api.InviteRequest{}, here...)
					here = append(here, name)
				}
				tm.electorate(here...)
				pass(time.Minute)

				tm.cut(c.left, c.right)
				left := tm.grow("one", "l", c.left)
				right := tm.grow("three", "r", c.right)
				tm.expel("one", "four")
				tm.expel("three", "two")
				pass(time.Minute)
				for _, name := range []string{"one", "two"} {
					if s := tm.partnerState(name, "three"); s != "expired" {
						t.Errorf("%s thinks that three is %s, want expired", name, s)
					}
				}

				_, err := tm.p["one"].api.Elect(t.Context(), api.ElectRequest{})
				wantRefusal(t, "an election by two voters", err, "no majority")
				_, err = tm.p["one"].api.Elect(t.Context(), api.ElectRequest{Candidate: "l1"})
				wantRefusal(t, "the election of a newcomer by two voters", err, "no majority")
				_, err = tm.p["one"].api.SetElectorate(t.Context(), api.ElectorateRequest{Set: left})
				wantRefusal(t, "a handover to newcomers by two voters", err, "consents needed")
				_, err = tm.p["three"].api.SetElectorate(t.Context(),
					api.ElectorateRequest{Set: right, Override: true})
				wantRefusal(t, "an override by a delegate", err, "only the founder")

				candidate := "four"
				if _, err = tm.p[candidate].api.Elect(t.Context(), api.ElectRequest{}); c.elects == "" {
					wantRefusal(t, "an election by half of the voters", err, "no majority")
				} else if err != nil {
					t.Error(err)
				}
				pass(5 * time.Second)
				tm.wantCoordinator(c.elects, right...)
				tm.wantCoordinator("", left...)
			})
		})
	}
}

// welcome has a partner join, and connects it.
func (tm *team) welcome(at, name string, r api.InviteRequest, with ...string) {
	tm.t.Helper()
	p := tm.newcomer(name)
	p.adjust = brisk
	if err := tm.join(p, tm.invite(at, r)); err != nil {
		tm.t.Fatal(err)
	}
	tm.p[name] = p
	p.start()
	for _, other := range with {
		tm.connect(other, name)
	}
	synctest.Wait()
}

// grow has as many newcomers join a side as it has members, and returns all.
func (tm *team) grow(inviter, prefix string, side []string) []string {
	all := slices.Clone(side)
	for i := range side {
		name := prefix + string(rune('1'+i))
		tm.welcome(inviter, name, api.InviteRequest{}, all...)
		all = append(all, name)
	}
	return all
}

func (tm *team) expel(at, name string) {
	tm.t.Helper()
	if _, err := tm.p[at].api.Evict(tm.t.Context(), api.EvictRequest{Partner: name, Reason: "split"}); err != nil {
		tm.t.Fatal(err)
	}
}
