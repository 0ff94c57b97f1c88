package node_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A node whose disk was restored from a backup learns it from a partner, begins
// a new incarnation, once, and goes on; nothing is forked, nobody is confused.
func TestRestoredFromABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", chain)
		two := tm.p["two"]
		two.hand.hold("b")
		tm.p["three"].hand.hold("c")
		var ids []string
		for range 20 {
			ids = append(ids, tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"}))
			if len(ids) == 1 {
				two.hand.letGo(t, "b")
			}
		}
		old := two.disk.backup()
		for range 3 { // its boot counter will be behind, too
			two.crash()
			two.start()
			tm.connect("one", "two")
			tm.connect("two", "three")
			synctest.Wait()
		}
		incarnation := tm.incarnation("two")
		later := tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "two", "pc": "three"})

		two.crash()
		two.disk.restore(old)
		two.start()
		synctest.Wait()
		tm.connect("one", "two")
		tm.connect("two", "three")
		pass(time.Minute)
		tm.p["three"].hand.letGo(t, "c")
		if tm.incarnation("two") == incarnation {
			t.Errorf("two goes on in its old incarnation")
		}
		if n := tm.counter("two", "rolled-back"); n != 1 {
			t.Errorf("two began a new incarnation %d times, want once", n)
		}
		pass(5 * time.Minute)
		for _, id := range append(ids[1:], later) {
			for _, name := range []string{"one", "two", "three"} {
				for _, line := range tm.log(name, id) {
					if strings.Contains(line, "forked") || strings.Contains(line, "does not count") {
						t.Errorf("%s of %s: %s", name, id, line)
					}
				}
			}
		}
	})
}

// Saying that a node has forgotten facts proves nothing: the partner that says so
// is asked for them, now and then, and the node goes on in its incarnation, with
// its vote.
func TestClaimOfForgottenFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, brisk, "one", "two", "three")
		tm.add("one", chain)
		tm.electorate("one", "two", "three")
		two, three := tm.p["two"], tm.p["three"]
		two.hand.hold("b")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		incarnation := tm.incarnation("two")
		inc, err := hex.DecodeString(incarnation)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := hex.DecodeString(id)
		if err != nil {
			t.Fatal(err)
		}
		began := elapsed()
		claim := wire.Heads{Instance: workflow.InstanceID(instance), Incarnation: fact.Incarnation{3},
			Mode: wire.Answer, Heads: []fact.Head{
				{Chain: fact.Chain{Author: two.id(), Incarnation: fact.Incarnation(inc)}, Seq: 99,
					ID: fact.ID{99}},
			}}
		frame, err := wire.Encode(&wire.Message{Heads: []wire.Heads{claim}})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			two.node.OnFrame(three.id(), frame)
			pass(time.Second)
		}
		asked := tm.f.sent(func(c carried) bool {
			return c.from == two.id() && c.to == three.id() && c.sent >= began &&
				slices.ContainsFunc(c.m.Heads, func(h wire.Heads) bool { return h.Mode == wire.Ask })
		})
		if n := len(asked); n == 0 || n > 10 {
			t.Errorf("two asked three %d times for facts that it is said to lack, want now and then", n)
		}
		if n := tm.counter("two", "rolled-back"); n != 0 || tm.incarnation("two") != incarnation {
			t.Errorf("two believes a mere claim, %d times", n)
		}
		if l := tm.refused("two", "three"); len(l) != 1 || l[0].Reason != "claim-unproved" || l[0].Times != 3 {
			t.Errorf("of three %+v is refused, want three claims in 100 s", l)
		}
		two.hand.letGo(t, "b")
		tm.succeeds(id, 10*time.Second, "one", "two", "three")
		tm.once(id, []string{"a", "b", "c"}, "one", "two", "three")
		tm.wantElectable("two")
	})
}

// wantElectable checks that a partner can be elected by its vote and one other's.
func (tm *team) wantElectable(name string) {
	tm.t.Helper()
	e, err := tm.p["one"].api.Electorate(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, v := range e.Voters {
		if v.Name == name && !v.Current {
			tm.t.Errorf("one says that %s has no vote", name)
		}
	}
	if _, err := tm.p[name].api.Elect(tm.t.Context(), api.ElectRequest{}); err != nil {
		tm.t.Errorf("%s is not elected: %v", name, err)
	}
}

// A voter whose store did go back in time has no vote under its new incarnation.
// Everybody hears that at once, also itself, and an electorate that names it again
// gives it its vote back.
func TestRestoredVoter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, brisk, "one", "two", "three")
		tm.add("one", chain)
		tm.electorate("one", "two", "three")
		two := tm.p["two"]
		tm.p["one"].hand.hold("a")
		tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		old := two.disk.backup()
		tm.p["one"].hand.letAllGo()
		tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "two", "pc": "three"})
		two.crash()
		two.disk.restore(old)
		two.start()
		tm.connect("one", "two")
		tm.connect("two", "three")
		pass(time.Second)
		for _, at := range []string{"one", "two", "three"} {
			e, err := tm.p[at].api.Electorate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range e.Voters {
				if v.Current != (v.Name != "two") {
					t.Errorf("%s says of the vote of %s: %v", at, v.Name, v.Current)
				}
			}
		}
		if f := tm.finding("two", "electorate"); f.State != api.FindingWarning ||
			!strings.Contains(f.What, "this node has no vote") {
			t.Errorf("doctor at two says of the electorate: %s %s", f.State, f.What)
		}
		if f := tm.finding("two", "store"); f.State != api.FindingWarning ||
			!strings.Contains(f.What, "what this node signed and its store lacks") {
			t.Errorf("doctor at two says of the store: %s %s", f.State, f.What)
		}
		tm.electorate("one", "two", "three")
		tm.wantElectable("two")
	})
}

// After the restore its partners go on hearing it: its records count as new.
func TestRestoredNodeIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		two := tm.p["two"]
		old := two.disk.backup()
		for range 3 {
			two.crash()
			two.start()
			tm.connect("one", "two")
			synctest.Wait()
		}
		two.crash()
		two.disk.restore(old)
		two.start()
		tm.connect("one", "two")
		pass(3 * time.Hour) // three times its connectionTime
		ps, err := tm.p["one"].api.Partners(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ps {
			if p.Name == "two" && p.State != "active" {
				t.Errorf("one thinks that two is %s, though they are connected", p.State)
			}
		}
	})
}

// A node that lost its disk, but not its key, is brought up to date.
func TestLostDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", chain)
		tm.p["one"].hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		two := tm.p["two"]
		two.crash()
		two.disk.restore(nil)
		two.start()
		tm.connect("one", "two")
		tm.connect("two", "three")
		synctest.Wait()
		if s := tm.state("two", id); s != workflow.InstanceRunning {
			t.Errorf("after it lost its disk two has the instance %q, want it running", s)
		}
		tm.p["one"].hand.letGo(t, "a")
		tm.succeeds(id, 40*time.Second, "one", "two", "three")
		tm.once(id, []string{"a", "b", "c"}, "one", "two", "three")
	})
}

func (tm *team) incarnation(at string) string {
	tm.t.Helper()
	st, err := tm.p[at].api.Status(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	return st.Incarnation
}

// Where somebody else signs with a node's key, and does so under its next incarnation as well, the node begins no third
// one in this process. It writes nothing more of the instance, and still gives what it has to a partner that lost its
// disk.
func TestWhoseKeyIsUsedTwiceGivesWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		tm.p["one"].hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		two := tm.p["two"]
		thief := tm.forger("one", id)
		thief.via = two
		genesis := tm.headSent(thief.id)
		for range 2 {
			inc, err := hex.DecodeString(tm.incarnation("one"))
			if err != nil {
				t.Fatal(err)
			}
			thief.chain.Incarnation, thief.seq, thief.last = fact.Incarnation(inc), 0, fact.ID{}
			if thief.chain == genesis.Chain {
				thief.seq, thief.last = genesis.Seq, genesis.ID
			}
			thief.says("one", genesis, fact.Body{Seen: &fact.Seen{}})
			pass(time.Second)
		}
		if n := tm.counter("one", "rolled-back"); n != 1 {
			t.Errorf("one began a new incarnation %d times, want once", n)
		}
		two.crash()
		two.disk.restore(nil)
		two.start()
		tm.connect("one", "two")
		pass(time.Minute)
		if s := tm.state("two", id); s != workflow.InstanceRunning {
			t.Errorf("after it lost its disk two has the instance %q, want it running", s)
		}
	})
}
