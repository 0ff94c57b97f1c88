package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// incident reports whether one of an instance's incidents at a partner says so.
func (tm *team) incident(at, id, text string) bool {
	tm.t.Helper()
	in, err := tm.p[at].api.Show(tm.t.Context(), id)
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, i := range in.Incidents {
		if strings.Contains(i.What, text) {
			return true
		}
	}
	return false
}

// running is how many unfinished instances a partner lists.
func (tm *team) running(at string) int {
	tm.t.Helper()
	list, err := tm.p[at].api.Instances(tm.t.Context(), false)
	if err != nil {
		tm.t.Fatal(err)
	}
	return len(list)
}

// One member fills no more than its share of the places for instances, all others
// together leave some for the node's own user; the refused one is told why, and tries
// again later.
func TestPlacesForInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three", "four", "five", "six")
		one := tm.p["one"]
		one.crash()
		one.adjust = func(c *configs.Config) { c.Limits.Instances = 8 } // a share is 2; one is for itself
		one.start()
		for _, other := range []string{"two", "three", "four", "five", "six"} {
			tm.connect("one", other)
		}
		tm.add("one", chain)
		one.hand.work(5 * time.Minute)
		begin := func(by string, n int) (ids []string) {
			for range n {
				ids = append(ids, tm.begin(by, "chain", map[string]string{"pa": "one", "pb": by, "pc": by}))
			}
			return ids
		}
		twos := begin("two", 4)
		if n := tm.running("one"); n != 2 {
			t.Errorf("one took in %d instances of two, want its share, 2", n)
		}
		if tm.incident("two", twos[1], "one has not taken the instance in") ||
			!tm.incident("two", twos[2],
				"one has not taken the instance in: it has as many unfinished instances there as one member may begin") {
			t.Error("two is to be told which instances one has no room for, and why")
		}
		began := time.Now()
		st, err := tm.p["two"].api.Start(t.Context(), api.StartRequest{
			Workflow: "chain", Assign: map[string]string{"pa": "one", "pb": "two", "pc": "two"},
		})
		if err != nil || !st.HeldOnlyHere || !strings.Contains(strings.Join(st.Notes, "\n"), "one has not taken the instance in: "+
			"it has as many unfinished instances there as one member may begin") || time.Since(began) > time.Second {
			t.Errorf("after %s two's user is told %+v, %v", time.Since(began), st, err)
		}
		twos = append(twos, st.ID)
		if l := tm.refused("one", "two"); len(l) != 1 || l[0].Reason != "instances-over-share" {
			t.Errorf("of two %+v is refused", l)
		}
		for _, other := range []string{"three", "four", "five", "six"} {
			begin(other, 2)
		}
		if n := tm.running("one"); n != 7 {
			t.Errorf("others have begun %d instances at one, want 7", n)
		}
		begin("one", 1)
		if _, err := one.api.Start(t.Context(), api.StartRequest{Workflow: "chain"}); err == nil ||
			!strings.Contains(err.Error(), "as many instances as it may") {
			t.Errorf("beyond the limit one's user is told %v", err)
		}
		resent := len(tm.f.sent(func(c carried) bool { return c.from == tm.p["two"].id() && len(c.m.Facts) > 0 }))
		pass(4 * time.Minute)
		if n := len(tm.f.sent(func(c carried) bool {
			return c.from == tm.p["two"].id() &&
				len(c.m.Facts) > 0
		})); n > resent {
			t.Errorf("two sent %d times again what one has no room for", n-resent)
		}
		pass(2 * time.Hour)
		for _, id := range twos {
			tm.succeeds(id, 0, "one", "two")
		}
	})
}

// What an instance weighs that is read from the disk again counts before more of it is
// taken in: else its author adds to it without end, a bundle each time.
func TestBytesOfWhatIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two") // a share is 512 KiB
		tm.add("one", chain)
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		tm.succeeds(id, time.Minute, "one", "two")
		two, had := tm.forger("two", id), len(tm.log("one", id))
		large := map[workflow.DataName]workflow.Value{"x": strings.Repeat("x", 60<<10)}
		for range 10 {
			two.says("one", tm.headSent(two.id),
				fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Slot: "a"}, Try: 1, Outputs: large}})
			pass(time.Minute) // two has it as well, and so it is not in memory any more
		}
		if n := len(tm.log("one", id)) - had; n == 0 || n > 4 {
			t.Errorf("one took in %d facts of 60 KiB, want as many as fill two's share of its memory, 4", n)
		}
	})
}

const parcel = `
workflow: parcel
version: 1
data:
  content: {type: string}
tasks:
  pack: {}
  send: {after: pack}
partitions: {pa: [pack], pb: [send]}
`

// What one member writes fills no more than its share of the memory, in however many
// instances; as they end and everybody has them, there is room again.
func TestBytesOfOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two") // a share is 512 KiB
		tm.add("one", parcel)
		one := tm.p["one"]
		one.hand.work(time.Hour)
		content := map[string]string{"content": strings.Repeat("x", 60<<10)}
		var ids []string
		for range 6 {
			st, err := tm.p["two"].api.Start(t.Context(),
				api.StartRequest{
					Workflow: "parcel", Input: content, Assign: map[string]string{"pa": "one", "pb": "two"},
				})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, st.ID)
		}
		if n := tm.running("one"); n != 3 {
			t.Errorf("one took in %d instances of 60 KiB, want as many as fill two's share of its memory with what it keeps of each, 3", n)
		}
		if l := tm.refused("one", "two"); len(l) == 0 || l[0].Reason != "bytes-over-share" {
			t.Errorf("of two is refused: %+v", l)
		}
		if !tm.incident("two", ids[5], "fills the room that it may on that node") {
			t.Error("two is not told why")
		}
		for range 6 {
			if _, err := one.api.Start(t.Context(),
				api.StartRequest{
					Workflow: "parcel", Input: content, Assign: map[string]string{"pa": "one", "pb": "two"},
				}); err != nil {
				t.Errorf("one's own user cannot start: %v", err)
			}
		}
		pass(15 * time.Hour)
		for _, id := range ids {
			tm.succeeds(id, 0, "one", "two")
		}
	})
}

// Instances that have ended make room within a minute or two: what was refused meanwhile
// is sent again as soon, or a member that begins many in a row stands still each time.
func TestRoomIsFoundSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two") // a share is 512 KiB
		tm.add("one", parcel)
		tm.p["two"].hand.work(time.Second) // until then none of them ends
		content := map[string]string{"content": strings.Repeat("x", 60<<10)}
		var ids []string
		for range 6 {
			st, err := tm.p["two"].api.Start(t.Context(),
				api.StartRequest{
					Workflow: "parcel", Input: content, Assign: map[string]string{"pa": "one", "pb": "two"},
				})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, st.ID)
		}
		if l := tm.refused("one", "two"); len(l) == 0 || l[0].Reason != "bytes-over-share" {
			t.Errorf("of two is refused: %+v", l)
		}
		pass(3 * time.Minute)
		for _, id := range ids {
			tm.succeeds(id, 0, "one", "two")
		}
	})
}

// A fact for which there was no room comes as soon as there is some, as when another instance
// of the partner that wrote it has ended: not only when it is tried again.
func TestFactsComeWhenThereIsRoom(t *testing.T) {
	for _, shards := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) { factsComeWhenThereIsRoom(t, shards) })
	}
}

// factsComeWhenThereIsRoom has the room found in an instance of another shard, if there are
// two: the one that refused has nothing to do then.
func factsComeWhenThereIsRoom(t *testing.T, shards int) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory, c.Shards = 2<<20, shards }, "one",
			"two") // a share is 512 KiB
		tm.add("two", parcel)
		tm.add("two", "\nworkflow: letter\ndata: {text: {type: string}}\ntasks:\n  a: {out: [text]}\n  b: {after: a}\npartitions: {pa: [a], pb: [b]}\n")
		one, two := tm.p["one"], tm.p["two"]
		one.hand.hold("send")
		two.hand.hold("a")
		waits := tm.begin("two", "letter", map[string]string{"pa": "two", "pb": "one"})
		begin := func() string { return tm.begin("two", "parcel", map[string]string{"pa": "two", "pb": "one"}) }
		full := begin()
		for (full[7]-waits[7])%2 == 0 && shards == 2 { // the last digit of what chooses the shard
			full = begin()
		}
		pass(time.Minute)
		fills := tm.forger("two", full)
		for size := 64 << 10; size > 0; {
			had, seq, last := len(tm.log("one", full)), fills.seq, fills.last
			large := map[workflow.DataName]workflow.Value{"x": strings.Repeat("x", size)}
			fills.says("one", tm.headSent(fills.id),
				fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Slot: "pack"}, Try: 1, Outputs: large}})
			if len(tm.log("one", full)) == had { // it does not fit
				fills.seq, fills.last, size = seq, last, size/2
			}
		}
		pass(time.Minute)
		refused := tm.counter("one", "refused.facts-beyond-bytes")
		long := map[workflow.DataName]workflow.Value{
			"text": strings.Repeat("x", 8<<10),
		} // more than is expected of a task
		two.hand.end(t, "a", runner.Result{Outputs: long})
		pass(10 * time.Second)
		if n := tm.counter("one", "refused.facts-beyond-bytes"); n == refused ||
			tm.task("one", waits, "a") == workflow.Succeeded {
			t.Fatal("one had room for what two did")
		}
		one.hand.letGo(t, "send")
		pass(5 * time.Second) // without looking: that would wake the shard
		if tm.task("one", waits, "a") != workflow.Succeeded {
			t.Error("one has not got it 5 s after its room was free")
		}
		if takes := tm.f.sent(func(c carried) bool {
			return slices.ContainsFunc(c.m.Refusals, func(r wire.Refusal) bool { return r.Why == wire.TakesFacts })
		}); len(takes) != 1 {
			t.Errorf("one said %d times that it takes what it refused, want once", len(takes))
		}
	})
}

// What is not in memory any more takes no room: an ended instance that is read again, since
// somebody looks at it or as two partners compare what has ended, does not keep out what comes
// of another right afterwards.
func TestWhatIsReadAgainTakesNoRoomAfterwards(t *testing.T) {
	for _, c := range []struct {
		what string
		read func(tm *team, id string)
	}{
		{"looked at", func(tm *team, id string) { tm.show("one", id) }},
		{"compared", func(tm *team, _ string) {
			frame, err := wire.Encode(&wire.Message{Ended: make([]byte, wire.EndedDigest)})
			if err != nil {
				t.Fatal(err)
			}
			tm.p["one"].node.OnFrame(tm.p["two"].id(), frame)
			synctest.Wait()
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one",
					"two") // a share is 512 KiB
				tm.add("one", chain)
				assign := map[string]string{"pa": "one", "pb": "two", "pc": "one"}
				full, other := tm.begin("one", "chain", assign), tm.begin("one", "chain", assign)
				tm.succeeds(full, time.Minute, "one", "two")
				tm.succeeds(other, time.Minute, "one", "two")
				says := func(l *forger) {
					large := map[workflow.DataName]workflow.Value{"x": strings.Repeat("x", 60<<10)}
					l.says("one", tm.headSent(l.id),
						fact.Body{Success: &fact.Success{
							Attempt: fact.AttemptID{Slot: "a"}, Try: 1, Outputs: large,
						}})
				}
				fills := tm.forger("two", full)
				for range 3 { // a fourth has room
					says(fills)
					pass(time.Minute) // two has it as well, and so it is not in memory any more
				}
				had, more := len(tm.log("one", other)), tm.forger("two", other)
				pass(time.Minute)
				for range 2 {
					c.read(tm, full)
					says(more)
				}
				if n := len(tm.log("one", other)) - had; n != 2 {
					t.Errorf("one took in %d facts of an instance, want 2; %d were refused for want of room",
						n, tm.counter("one", "refused.facts-beyond-bytes"))
				}
			})
		})
	}
}

// A partner that says that it has room now for what it had refused gets it at once, also where
// the instance has ended and is not in memory any more, since nobody was waited for any longer.
func TestFactsOfAnEndedInstanceComeWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "mal")
		tm.add("one", chain)
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "mal"})
		tm.succeeds(id, time.Minute, "one", "two", "mal")
		pass(time.Minute)
		one, two := tm.p["one"].id(), tm.p["two"].id()
		tm.f.losing(func(from, to workflow.PartnerID, m *wire.Message) bool { return to == one && len(m.Facts) > 0 })
		had, mal := len(tm.log("one", id)), tm.forger("mal", id)
		mal.says("two", tm.headSent(mal.id), fact.Body{Cancel: &fact.Cancel{Reason: "too late"}})
		pass(2 * time.Hour) // one is connected, and acknowledges nothing
		tm.f.losing(nil)
		if n := len(tm.log("one", id)); n != had {
			t.Fatalf("one has %d facts, want %d", n, had)
		}
		takes := wire.Refusal{Instance: mal.id, Why: wire.TakesFacts, Author: mal.p.id()}
		frame, err := wire.Encode(&wire.Message{Refusals: []wire.Refusal{takes}})
		if err != nil {
			t.Fatal(err)
		}
		tm.p["two"].node.OnFrame(one, frame)
		pass(time.Second)
		if n := len(tm.log("one", id)); n != had+1 {
			t.Errorf("one has %d facts a second after it said to %s that it takes them, want %d", n, two, had+1)
		}
	})
}

// What an instance weighs for its tasks is known before it is taken in: one that alone is
// more than half of its initiator's share is refused, and not only the next.
func TestTasksOfOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two") // a share is 512 KiB
		var tasks, names strings.Builder
		for i := range 400 {
			fmt.Fprintf(&tasks, "  t%03d: {}\n", i)
			fmt.Fprintf(&names, "t%03d, ", i)
		}
		tm.add("one", "\nworkflow: many\ntasks:\n"+tasks.String()+"  z: {}\npartitions: {pa: ["+names.String()+
			"], pb: [z]}\n")
		pass(time.Minute)
		for _, name := range []string{"one", "two"} {
			tm.p[name].hand.work(time.Hour)
		}
		for _, who := range []string{"two", "one"} {
			st, err := tm.p[who].api.Start(t.Context(),
				api.StartRequest{Workflow: "many", Assign: map[string]string{"pa": "two", "pb": "one"}})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			if who == "two" && (tm.running("one") != 0 ||
				!tm.incident("two", st.ID, "it is larger than that node takes")) {
				t.Errorf("one runs %d instances of 401 tasks, want it to refuse that as too large; incidents: %v",
					tm.running("one"), tm.show("two", st.ID).Incidents)
			}
		}
		if n := tm.running("one"); n != 1 {
			t.Errorf("one runs %d instances of its own user, want 1", n)
		}
	})
}

// What one member's instances take of the disk is bounded by itself, also where the memory has
// much more room: what has ended is not in memory, and counts. The oldest that have ended are
// given up before their time, and there is room again.
func TestDiskOfOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Disk = 2 << 20 }, "one", "two") // a share is 512 KiB
		tm.add("one", parcel)
		content := map[string]string{"content": strings.Repeat("x", 60<<10)}
		var ids []string
		for range 12 {
			st, err := tm.p["two"].api.Start(t.Context(),
				api.StartRequest{
					Workflow: "parcel", Input: content, Assign: map[string]string{"pa": "one", "pb": "two"},
				})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, st.ID)
			pass(20 * time.Second)
		}
		all, err := tm.p["one"].api.Instances(t.Context(), true)
		if err != nil || len(all) < 5 || len(all) > 8 {
			t.Errorf("one took in %d instances of 60 KiB (%v), want as many as fill two's share of its disk, 5 to 8",
				len(all), err)
		}
		if l := tm.refused("one", "two"); len(l) == 0 || l[0].Reason != "bytes-over-share" {
			t.Errorf("of two is refused: %+v", l)
		}
		if !tm.incident("two", ids[11], "fills the room that it may on that node") {
			t.Error("two is not told why")
		}
		pass(2 * time.Hour) // limits.keep is 30 days
		for _, id := range ids {
			tm.succeeds(id, 0, "one", "two")
		}
		if tm.closed("one", ids[0]) == nil || tm.closed("one", ids[11]) != nil {
			t.Error("one is to give up the oldest instance before its time, and not the last")
		}
	})
}

// An instance that has as many facts as a node takes stands still there: nobody's are taken
// in any more, and what an honest partner goes on to tell is counted as refused.
func TestFullInstanceStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Facts = 40 }, "one", "two")
		tm.add("one", longThenLast(50))
		ids := tm.beginMany("one", 1, map[string]string{"long": "two", "rest": "one"})
		pass(time.Hour)
		if st := tm.state("one", ids[0]); st != workflow.InstanceRunning {
			t.Errorf("it is %s at one, which takes 40 of its 100 facts", st)
		}
		if l := tm.refused("one", "two"); len(l) == 0 || l[0].Reason != "instance-too-large" {
			t.Errorf("of two is refused: %+v", l)
		}
		if !tm.incident("two", ids[0], "larger than that node takes") {
			t.Error("two is not told why")
		}
		if err := tm.p["one"].api.Cancel(t.Context(), ids[0], "it stands still"); err != nil {
			t.Fatal(err)
		}
		if st := tm.state("one", ids[0]); st != workflow.InstanceCancelled {
			t.Errorf("one has cancelled it, and it is %s there", st)
		}
	})
}
