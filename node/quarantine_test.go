package node_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// entries are the keys on a disk that begin with prefix, in order.
func (d *disk) entries(prefix string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var keys []string
	for k := range d.data {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// remove takes an entry from a disk; garble leaves half of it.
func (d *disk) remove(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.data, key)
}

func (d *disk) garble(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.data[key] = "\xff" + d.data[key][:len(d.data[key])/2]
}

// garbleLast has the last fact of an entry of facts not be one any more.
func (d *disk) garbleLast(t *testing.T, key string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var entry [][]cbor.RawMessage
	if err := cbor.Unmarshal([]byte(d.data[key]), &entry); err != nil {
		t.Fatal(err)
	}
	raw, err := cbor.Marshal([]byte(garbled))
	if err != nil {
		t.Fatal(err)
	}
	entry[len(entry)-1][0] = raw
	value, err := cbor.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	d.data[key] = string(value)
}

// One thing of a disk cannot be read. The node starts, goes on with all else, and
// gets back from its partners what is theirs to give.
func TestOneBadThingStopsOneThing(t *testing.T) {
	const ( // what the node cannot promise meanwhile
		notDone = "1 instance cannot be read and is set aside: nothing is done here meanwhile about this node's part"
		notKept = "this node began a new incarnation: what it had recorded and told nobody may be gone, and its vote counts again only in a new electorate"
	)
	first := func(keys []string) string { return keys[0] }
	last := func(keys []string) string { return keys[len(keys)-1] }
	for _, c := range []struct {
		name    string
		prefix  string // of the keys; an i at the end stands for the instance
		which   func([]string) string
		aside   bool // the instance is quarantined until a partner sends it
		reborn  bool // own facts or promises may be lost
		removed bool // also tried: the entry is gone
	}{
		{"the genesis", "fi", first, true, true, true},
		{"facts in between", "fi", func(keys []string) string { return keys[1] }, true, true, true},
		{"the last facts", "fi", last, true, true, false},
		{"the summary", "ii", first, false, false, false},
		{"the definition", "d", first, true, false, true},
		{"a partner's record", "p", first, false, false, true},
		{"the ballot", "mballot", first, false, true, false},
		{"who may vote", "mlineage", first, false, false, true},
		{"the boot counter", "mboot", first, false, false, true},
		{"the incarnation", "mincarnation", first, false, true, false},
	} {
		harms := map[string]func(*disk, string){"garbled": (*disk).garble}
		if c.removed {
			harms["removed"] = (*disk).remove
		}
		for how, harm := range harms {
			t.Run(c.name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tm := newTeamOf(t, brisk, "one", "two", "three")
					tm.add("one", `
workflow: chain
tasks: {a: {}, p: {}, b: {after: [a, p]}, c: {after: b}}
partitions: {pa: [a], pb: [p, b], pc: [c]}
`)
					two := tm.p["two"]
					two.hand.hold("p", "b")
					tm.p["one"].hand.hold("a")
					places := map[string]string{"pa": "one", "pb": "two", "pc": "three"}
					bad, good := tm.begin("one", "chain", places), ""
					tm.electTwo()
					two.hand.letGo(t, "p") // the facts of each round lie together
					synctest.Wait()
					tm.p["one"].hand.letGo(t, "a")
					synctest.Wait()
					two.crash()
					prefix := c.prefix
					if strings.HasSuffix(prefix, "i") && len(prefix) == 2 {
						prefix = two.disk.entries("i")[0] // one instance so far
						prefix = c.prefix[:1] + prefix[1:]
					}
					keys := two.disk.entries(prefix)
					if len(keys) == 0 || c.prefix == "fi" && len(keys) < 3 {
						t.Fatalf("%d entries are stored under %q", len(keys), c.prefix)
					}
					before := two.disk.backup()["mincarnation"]
					harm(two.disk, c.which(keys))
					two.start()
					synctest.Wait()
					if reborn := two.disk.backup()["mincarnation"] != before; reborn != c.reborn {
						t.Errorf("a new incarnation began: %v, want %v", reborn, c.reborn)
					}
					rows, err := two.api.Instances(t.Context(), false)
					if err != nil || len(rows) != 1 || (rows[0].Quarantine != nil) != c.aside {
						t.Errorf("instances: %+v, %v; want one, quarantined: %v", rows, err, c.aside)
					}
					f := tm.finding("two", "quarantine")
					if (f.State == api.FindingWrong) != c.aside || c.aside && f.What != notDone {
						t.Errorf("doctor says of the quarantine: %+v", f)
					}
					if f := tm.finding("two", "losses"); strings.Contains(f.What, notKept) != c.reborn {
						t.Errorf("doctor says of the losses: %+v, want %q: %v", f, notKept, c.reborn)
					}
					if c.aside {
						if _, err := two.api.Show(t.Context(), bad); err == nil ||
							!strings.Contains(err.Error(), "is set aside since") {
							t.Errorf("show: %v, want why it cannot be shown", err)
						}
					}
					tm.connect("one", "two")
					tm.connect("two", "three")
					pass(time.Minute)
					two.hand.letAllGo()
					good = tm.begin("one", "chain", places)
					tm.succeeds(good, time.Minute, "one", "two", "three")
					tm.succeeds(bad, 3*time.Minute, "one", "two", "three")
					tm.once(bad, []string{"a", "c"}, "one", "two", "three")
					if f := tm.finding("two", "quarantine"); f.State != "" {
						t.Errorf("in the end doctor says of the quarantine: %+v", f)
					}
					two.crash() // and it stays so
					two.start()
					tm.connect("one", "two")
					synctest.Wait()
					if s := tm.state("two", bad); s != workflow.InstanceSucceeded {
						t.Errorf("after another start it is %s", s)
					}
				})
			})
		}
	}
}

// A record about a user that cannot be read is dropped when the node starts, and people are
// told. Partners tell it again, and it is as good as before, also after another start.
func TestARecordAboutAUserComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		token := tm.addUser("one", "bia", "crew")
		pass(time.Second)
		if err := tm.signIn("two", token); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		two := tm.p["two"]
		keys := two.disk.entries(string(rune(users.Prefix)))
		if len(keys) != 2 {
			t.Fatalf("%d records about users are stored, want bia and her key", len(keys))
		}
		for _, key := range keys {
			two.crash()
			two.disk.garble(key)
			two.start()
			synctest.Wait()
			if left := two.disk.entries(string(rune(users.Prefix))); len(left) != 1 {
				t.Errorf("%d records are left of two of which one cannot be read", len(left))
			}
			if f := tm.finding("two", "losses"); !strings.Contains(f.What, "a record about a user; partners tell it again") {
				t.Errorf("doctor says of the losses: %+v", f)
			}
			tm.connect("one", "two")
			pass(10 * time.Second)
			two.crash()
			two.start()
			if again := two.disk.entries(string(rune(users.Prefix))); !slices.Equal(again, keys) {
				t.Errorf("%d records are stored when one has told them, want %d", len(again), len(keys))
			}
			if u := tm.user("two", "bia"); !u.Active || !u.Here || !slices.Equal(u.Roles, []string{"crew"}) {
				t.Errorf("in the end bia is %+v", u)
			}
			tm.connect("one", "two")
			synctest.Wait()
		}
	})
}

// electTwo has two take part in an election, so that it has promised something.
func (tm *team) electTwo() {
	tm.t.Helper()
	tm.electorate("one", "two", "three")
	pass(time.Minute)
	if _, err := tm.p["one"].api.Elect(tm.t.Context(), api.ElectRequest{}); err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
}

// What only this node had, and can still be read, is not lost with the rest.
func TestOwnFactsOutliveADamagedInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		two := tm.p["two"]
		two.hand.hold("b")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		tm.disconnect("one", "two")
		two.hand.letGo(t, "b")
		synctest.Wait()
		if s := tm.task("two", id, "b"); s != workflow.Succeeded {
			t.Fatalf("b is %s at two", s)
		}
		two.crash()
		two.disk.garble(two.disk.entries("f")[1])
		two.start()
		tm.connect("one", "two")
		tm.succeeds(id, time.Minute, "one", "two")
		tm.once(id, []string{"a", "b", "c"}, "one", "two")
	})
}

// An instance in which nobody else takes part goes on with what is left of it.
func TestDamagedInstanceOfOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("two", chain)
		two := tm.p["two"]
		two.hand.hold("c")
		id := tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "two", "pc": "two"})
		before := tm.incarnation("two")
		two.crash()
		keys := two.disk.entries("f")
		two.disk.garble(keys[len(keys)-1])
		two.start()
		synctest.Wait()
		two.hand.letAllGo()
		tm.succeeds(id, time.Minute, "two")
		if tm.incarnation("two") == before {
			t.Error("it goes on in the incarnation of which facts may be lost")
		}
		if f := tm.finding("two", "losses"); !strings.Contains(f.What, "nobody else takes part") {
			t.Errorf("doctor says of the losses: %+v", f)
		}
	})
}

// Two facts of one came to two under one attestation, that of the second. Two's disk loses the
// second, one's disk everything: nobody can show any more that one wrote the first. So it counts
// for nobody, also not for two, which still can read it.
func TestSavedFactThatNobodyCanProve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, brisk, "one", "two", "three")
		tm.add("one", `
workflow: proof
tasks: {a: {}, b: {after: a}, c: {}, d: {}}
partitions: {p1: [a, b], p2: [c], p3: [d]}
`)
		one, two := tm.p["one"], tm.p["two"]
		one.hand.hold("a", "b")
		two.hand.hold("c")
		id := tm.begin("one", "proof", map[string]string{"p1": "one", "p2": "two", "p3": "three"})
		tm.disconnect("one", "two")
		tm.disconnect("one", "three")
		tm.disconnect("two", "three")
		one.hand.letGo(t, "a") // its success, and the start of b
		synctest.Wait()
		had := two.stored(id)
		tm.connect("one", "two")
		synctest.Wait()
		keys := two.disk.entries("f")
		if now := two.stored(id); now != had+2 {
			t.Fatalf("two has %d facts after %d, want two more", now, had)
		}
		two.crash()
		two.disk.garbleLast(t, keys[len(keys)-1])
		one.crash()
		one.disk.restore(nil)
		one.hand.hold("a", "b")
		one.start()
		two.start()
		tm.connect("one", "two")
		tm.connect("one", "three")
		tm.connect("two", "three")
		pass(time.Minute)
		one.hand.letAllGo()
		two.hand.letAllGo()
		tm.succeeds(id, 10*time.Minute, "one", "two", "three")
		pass(time.Minute)
		tm.once(id, []string{"a", "b", "c", "d"}, "one", "two", "three")
		two.crash() // and it stays so
		two.start()
		tm.connect("one", "two")
		pass(time.Minute)
		tm.once(id, []string{"a", "b", "c", "d"}, "one", "two", "three")
	})
}
