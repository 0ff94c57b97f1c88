package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		ps, err := tm.p["one"].node.Partners(t.Context())
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
	st, err := tm.p[at].node.Status(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	return st.Incarnation
}
