package node_test

import (
	"bytes"
	"encoding/hex"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// brittle is what machines ask about proofs, with a mistake in it: they panic at the
// credentials of one partner, as long as it is armed.
type brittle struct {
	state.Trust
	armed *atomic.Bool
	at    *workflow.PartnerID
}

func (b brittle) Roles(p workflow.PartnerID, credentials []byte) ([]workflow.RoleName, error) {
	if b.armed.Load() && p == *b.at {
		var roles []workflow.RoleName
		return roles[len(p):], nil // panics
	}
	return b.Trust.Roles(p, credentials)
}

// aid has a task for a medic, whose start shows the certificate.
const aid = `
workflow: aid
tasks:
  reach: {type: manual}
  treat: {after: reach, type: manual, role: medic}
  carry: {after: treat, type: manual}
  pack:  {type: manual}
partitions: {pa: [reach], pb: [treat], pc: [carry, pack]}
`

var aidPlaces = map[string]string{"pa": "one", "pb": "three", "pc": "two"}

// brittleTeam are one, two and three, of whom three is a medic and two panics at its
// certificate while it is armed.
func brittleTeam(t *testing.T) (tm *team, armed *atomic.Bool) {
	t.Helper()
	armed = &atomic.Bool{}
	var medic workflow.PartnerID
	tm = newTeamWith(t, brisk, func(p *node.Parts) {
		if p.Member.Chain.Leaf().Name == "two" {
			node.Doubt(p, func(trust state.Trust) state.Trust { return brittle{trust, armed, &medic} })
		}
	}, "one", "two", "three:medic")
	medic = tm.p["three"].id()
	armed.Store(true)
	tm.add("one", aid)
	tm.add("one", chain)
	return tm, armed
}

// instanceID reads an instance's ID.
func instanceID(t *testing.T, id string) (out workflow.InstanceID) {
	t.Helper()
	b, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	return workflow.InstanceID(b)
}

// isAside checks that an instance, and no other, is set aside at a partner as the program
// failed at it, and that people are told.
func (tm *team) isAside(at, id string) {
	tm.t.Helper()
	rows, err := tm.p[at].api.Instances(tm.t.Context(), true)
	if err != nil {
		tm.t.Fatal(err)
	}
	found := false
	for _, r := range rows {
		switch {
		case r.ID != id && r.Quarantine != nil:
			tm.t.Errorf("%s is set aside at %s: %s", r.ID, at, r.Quarantine.Why)
		case r.ID == id && r.Quarantine != nil:
			found = strings.HasPrefix(r.Quarantine.Why, "this program failed at it: ")
		}
	}
	if !found {
		tm.t.Errorf("%s does not list %s as set aside for a fault of the program: %+v", at, id, rows)
	}
	const told = "this program failed at 1 instance, which is set aside"
	if f := tm.finding(at, "quarantine"); f.State != api.FindingWrong || !strings.HasPrefix(f.What, told) {
		tm.t.Errorf("doctor says of the quarantine at %s: %+v", at, f)
	}
	_, err = tm.p[at].api.Show(tm.t.Context(), id)
	if err == nil || !strings.Contains(err.Error(), "is set aside since") {
		tm.t.Errorf("show at %s: %v, want why it cannot be shown", at, err)
	}
}

// saidOf is whether a partner said anything of an instance from a frame on.
func (tm *team) saidOf(by, id string, since int) bool {
	of, is := instanceID(tm.t, id), tm.p[by].id()
	all := tm.f.sent(func(carried) bool { return true })
	for _, c := range all[since:] {
		if c.from != is {
			continue
		}
		for _, x := range c.m.Facts {
			if x.Instance == of {
				return true
			}
		}
		for _, x := range c.m.Heads {
			if x.Instance == of {
				return true
			}
		}
	}
	return false
}

func (tm *team) frames() int { return len(tm.f.sent(func(carried) bool { return true })) }

// A fact brings out a mistake of this program at one node. That instance is set aside
// there, in the round in which others go on; nothing that came with the fact is durable,
// or said to be. The node goes on, at its next starts too, until one without the mistake
// takes the instance up where it was.
func TestAFaultStopsOneInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, armed := brittleTeam(t)
		two := tm.p["two"]
		bad := tm.begin("one", "aid", aidPlaces)
		tm.finish("one", bad, "reach")
		factsOfBad := "f" + string(keyOf(t, bad))
		stored := two.disk.entries(factsOfBad)
		tm.p["one"].hand.hold("a")
		good := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		release, since := node.Hold(two.node), tm.frames()
		packed := make(chan error, 1)
		go func() { // this alone would do
			packed <- two.api.FinishTask(t.Context(), api.FinishRequest{ID: bad, Task: "pack"})
		}()
		synctest.Wait()
		tm.finish("three", bad, "treat")
		tm.p["one"].hand.letAllGo() // the success of a is in the same round
		synctest.Wait()
		release()
		if err := <-packed; err == nil || !strings.Contains(err.Error(), "is set aside since") {
			t.Errorf("pack, in the round in which the program failed: %v", err)
		}
		tm.succeeds(good, time.Second, "one", "two", "three")
		tm.isAside("two", bad)
		if tm.saidOf("two", bad, since) {
			t.Error("two says something of the instance at which it failed")
		}
		if now := two.disk.entries(factsOfBad); !slices.Equal(now, stored) {
			t.Errorf("two has %d facts of the instance at which it failed, had %d", len(now), len(stored))
		}
		pass(time.Minute) // its partners try again meanwhile
		if n := tm.counter("two", "faults"); n != 1 {
			t.Errorf("two failed %d times, want once", n)
		}
		if tm.saidOf("two", bad, since) {
			t.Error("two asks for the instance at which it failed, or answers")
		}
		if n := tm.counter("two", "refused.facts-not-taken"); n != 0 {
			t.Errorf("two blames its partners %d times for what it does not take in", n)
		}
		for range 2 {
			tm.again("two", nil, two.fit, "one", "three")
			pass(time.Minute)
			tm.isAside("two", bad)
			if n := tm.counter("two", "faults"); n != 1 {
				t.Errorf("after a start two failed %d times, want once", n)
			}
			id := tm.begin("two", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
			tm.succeeds(id, time.Minute, "one", "two", "three")
		}
		armed.Store(false)
		tm.again("two", nil, two.fit, "one", "three")
		pass(time.Minute)
		tm.finish("two", bad, "carry")
		tm.finish("two", bad, "pack")
		tm.succeeds(bad, time.Minute, "one", "two", "three")
		tm.once(bad, []string{"reach", "treat", "carry", "pack"}, "one", "two", "three")
		if f := tm.finding("two", "quarantine"); f.State != "" {
			t.Errorf("in the end doctor says of the quarantine: %+v", f)
		}
	})
}

// The fact is stored already, and the mistake is in a newer version: each start fails at it
// as it loads the instance. The node starts all the same, works, and keeps what it has.
func TestAFaultAtEachStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, armed := brittleTeam(t)
		two := tm.p["two"]
		armed.Store(false)
		bad := tm.begin("one", "aid", aidPlaces)
		tm.finish("one", bad, "reach")
		tm.finish("three", bad, "treat")
		if s := tm.task("two", bad, "treat"); s != workflow.Succeeded {
			t.Fatalf("treat is %s at two", s)
		}
		stored := two.disk.entries("f" + string(keyOf(t, bad)))
		armed.Store(true)
		since := 0
		for range 3 {
			tm.again("two", nil, two.fit)
			tm.isAside("two", bad)
			since = tm.frames()
			tm.connect("one", "two")
			tm.connect("two", "three")
			id := tm.begin("two", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
			tm.succeeds(id, time.Minute, "one", "two", "three")
			pass(time.Minute)
			if n := tm.counter("two", "faults"); n != 1 {
				t.Errorf("two failed %d times since its start, want once", n)
			}
			if tm.saidOf("two", bad, since) {
				t.Error("two says something of the instance at which it failed")
			}
		}
		if now := two.disk.entries("f" + string(keyOf(t, bad))); !slices.Equal(now, stored) {
			t.Errorf("two has %d facts of the instance at which it failed, had %d", len(now), len(stored))
		}
		armed.Store(false)
		tm.again("two", nil, two.fit, "one", "three")
		tm.finish("two", bad, "carry")
		tm.finish("two", bad, "pack")
		tm.succeeds(bad, time.Minute, "one", "two", "three")
	})
}

// keyOf is what keys of an instance have in common after their first byte.
func keyOf(t *testing.T, id string) []byte {
	x := instanceID(t, id)
	return x[:]
}

// An instance that is new to a node, and at which it fails before anything of it is stored,
// is not taken in: there is nothing to be set aside, and what a liar makes up takes no room.
func TestAFaultAtANewInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, armed := brittleTeam(t)
		two := tm.p["two"]
		tm.add("three", strings.NewReplacer("workflow: aid", "workflow: call\ncreator-role: medic", ", role: medic",
			"").Replace(aid))
		before := two.disk.entries("")
		bad := tm.begin("three", "call", aidPlaces)
		good := tm.begin("three", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		tm.succeeds(good, time.Minute, "one", "two", "three")
		pass(time.Minute)
		for _, k := range two.disk.entries("") {
			if !slices.Contains(before, k) && strings.Contains(k, string(keyOf(t, bad))) {
				t.Errorf("two stores something of the instance: %q", k)
			}
		}
		if n := tm.counter("two", "faults"); n != 1 {
			t.Errorf("two failed %d times, want once", n)
		}
		const told = "this program failed at 1 new instance of others"
		if f := tm.finding("two", "quarantine"); f.State != api.FindingWarning || !strings.HasPrefix(f.What, told) {
			t.Errorf("doctor says of the quarantine: %+v", f)
		}
		if s := tm.state("two", bad); s != "" {
			t.Errorf("at two the instance is %q", s)
		}
		armed.Store(false)
		tm.again("two", nil, two.fit, "one", "three")
		pass(time.Minute)
		tm.finish("one", bad, "reach")
		tm.finish("three", bad, "treat")
		tm.finish("two", bad, "carry")
		tm.finish("two", bad, "pack")
		tm.succeeds(bad, time.Minute, "one", "two", "three")
	})
}

// What waits for a shard takes room of its sender's, also behind a fact at which the shard
// fails; all of it is given back, or in the end nothing of that partner's would be read.
func TestAFaultLeavesTheRoomOfALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := brittleTeam(t)
		two := tm.p["two"]
		bad := tm.begin("one", "aid", aidPlaces)
		tm.finish("one", bad, "reach")
		pass(time.Second)
		release := node.Hold(two.node)
		tm.finish("three", bad, "treat")
		pass(20 * time.Second) // three sends it again, as nothing is acknowledged
		if n := node.WaitingOf(two.node, tm.p["three"].id()); n == 0 {
			t.Error("nothing of three waits for the shards that are held")
		}
		release()
		pass(time.Minute)
		tm.isAside("two", bad)
		for _, p := range []string{"one", "three"} {
			if n := node.WaitingOf(two.node, tm.p[p].id()); n != 0 {
				t.Errorf("a minute later %d bytes of %s still wait for shards", n, p)
			}
			if n := tm.counter("two", "refused.facts-not-taken"); n != 0 {
				t.Errorf("two blames its partners %d times for what waited behind the fault", n)
			}
		}
	})
}

// ended runs so many instances, and returns when nothing is said of them any more.
func (tm *team) ended(many int) {
	tm.t.Helper()
	for range many {
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		tm.succeeds(id, time.Minute, "one", "two", "three")
	}
	pass(10 * time.Minute)
}

// heads is how often anybody said what is there of an instance.
func (tm *team) heads() (n int) {
	for _, c := range tm.f.sent(func(carried) bool { return true }) {
		n += len(c.m.Heads)
	}
	return n
}

// An instance that has ended is set aside by a fault, and stays so. Partners do not read and
// compare all that has ended again and again for that.
func TestAFaultAtWhatHasEndedIsNotComparedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, armed := brittleTeam(t)
		two := tm.p["two"]
		armed.Store(false)
		bad := tm.begin("one", "aid", aidPlaces)
		tm.finish("one", bad, "reach")
		tm.finish("three", bad, "treat")
		tm.finish("two", bad, "carry")
		tm.finish("two", bad, "pack")
		tm.succeeds(bad, time.Minute, "one", "two", "three")
		tm.ended(20)
		armed.Store(true)
		if _, err := two.api.Show(t.Context(), bad); err == nil {
			t.Error("two shows what it fails at")
		}
		pass(time.Minute)
		tm.isAside("two", bad)
		before := tm.heads()
		pass(time.Hour)
		if n := tm.heads() - before; n > 0 {
			t.Errorf("in an hour it was said %d times what is there of an instance, want never", n)
		}
	})
}

// As above, but the instance ends at the others after it was set aside, so what has ended
// differs as long as the fault lasts: it is compared ever less often.
func TestAFaultAtWhatEndsElsewhereIsComparedEverLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := brittleTeam(t)
		const many = 20
		tm.ended(many)
		bad := tm.begin("one", "aid", aidPlaces)
		tm.finish("one", bad, "reach")
		tm.finish("three", bad, "treat")
		pass(time.Minute)
		tm.isAside("two", bad)
		if err := tm.p["one"].api.Cancel(t.Context(), bad, "x"); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Hour)
		before := tm.heads()
		pass(4 * time.Hour)
		// Once an hour two and each of the others ask each other for all of them, and answer.
		const most = 5 * 2 * 2 * 2 * (many + 1)
		if n := tm.heads() - before; n == 0 || n > most {
			t.Errorf("in four hours it was said %d times what is there of an instance, want some, and %d at most", n,
				most)
		}
	})
}

// bubbled counts the goroutines of the bubble: others of the process, of the test runner or
// of tests before, come and go beside it.
func bubbled() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("synctest bubble"))
}

// Whatever is done with a machine that panics: its instance is set aside, and the others go
// on. Whoever asked gets an error, and no goroutine is left behind.
func TestWhateverIsDoneWithABrokenMachine(t *testing.T) {
	for name, use := range map[string]func(tm *team, bad string){
		"show":        func(tm *team, bad string) { tm.state("two", bad) },
		"history":     func(tm *team, bad string) { _, _ = tm.p["two"].api.Log(tm.t.Context(), bad) },
		"list":        func(tm *team, _ string) { _, _ = tm.p["two"].api.Instances(tm.t.Context(), false) },
		"fingerprint": func(tm *team, bad string) { _, _ = tm.p["two"].node.Fingerprint(tm.t.Context(), bad) },
		"facts":       func(tm *team, bad string) { tm.finish("one", bad, "reach") },
		"decide":      func(tm *team, _ string) { node.TouchAll(tm.p["two"].node) },
		"contact": func(tm *team, _ string) {
			tm.disconnect("one", "two")
			synctest.Wait()
			tm.connect("one", "two")
		},
		"comparison": func(*team, string) { pass(time.Minute) },
		"end of a task": func(tm *team, bad string) {
			err := tm.p["two"].api.FinishTask(tm.t.Context(), api.FinishRequest{ID: bad, Task: "carry"})
			if err == nil || !strings.Contains(err.Error(), "is set aside since") {
				tm.t.Errorf("a task is finished with %v", err)
			}
		},
		"begin of a task": func(tm *team, bad string) {
			_ = tm.p["two"].api.BeginTask(tm.t.Context(), api.BeginRequest{ID: bad, Task: "carry"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, _ := brittleTeam(t)
				bad := tm.begin("one", "aid", aidPlaces)
				tm.p["two"].hand.hold("b")
				good := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
				pass(time.Minute)
				before := bubbled()
				node.Tear(tm.p["two"].node, instanceID(t, bad))
				use(tm, bad)
				synctest.Wait()
				tm.isAside("two", bad)
				tm.p["two"].hand.letAllGo()
				tm.succeeds(good, time.Second, "one", "two", "three")
				pass(time.Minute)
				if after := bubbled(); after > before {
					t.Errorf("%d goroutines after it, %d before", after, before)
				}
				if n := tm.counter("two", "faults"); n != 1 {
					t.Errorf("two failed %d times, want once", n)
				}
				tm.again("two", nil, tm.p["two"].fit, "one", "three") // what is stored is whole
				if tm.task("one", bad, "reach") != workflow.Succeeded {
					tm.finish("one", bad, "reach")
				}
				if s := tm.task("two", bad, "reach"); s != workflow.Succeeded {
					t.Errorf("after a start, reach is %s at two", s)
				}
			})
		})
	}
}
