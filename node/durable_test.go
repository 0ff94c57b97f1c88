package node_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Every frame of these tests is held against the sender's disk (plug.audit).

func TestElevenTasksWithoutTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", eleven)
		id := tm.begin("one", "eleven", acrossThree)
		if took := tm.succeeds(id, time.Second, "one", "two", "three"); took > 100*time.Millisecond {
			t.Errorf("took %v where nothing takes time", took)
		}
		tm.once(id, elevenTasks, "one", "two", "three")
	})
}

// The initiator need not have anything to do itself.
func TestInstanceWhoseFirstTaskIsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", chain)
		id := tm.begin("one", "chain", map[string]string{"pa": "two", "pb": "three", "pc": "one"})
		if took := tm.succeeds(id, time.Minute, "one", "two", "three"); took > 100*time.Millisecond {
			t.Errorf("took %v where nothing takes time", took)
		}
		tm.once(id, []string{"a", "b", "c"}, "one", "two", "three")
	})
}

// Frames are lost, connections break, disks are slow, nodes crash: with any
// seed nothing is told before it is durable, and all ends well.
func TestNothingIsToldBeforeItIsDurable(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { stormy(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func stormy(t *testing.T, rnd *rand.Rand) {
	names := []string{"one", "two", "three"}
	tm := newTeam(t, names...)
	tm.add("one", eleven)
	var mu sync.Mutex // guards fate: many send
	fate := rand.New(rand.NewPCG(rnd.Uint64(), 0))
	tm.f.losing(func(_, _ workflow.PartnerID, _ *wire.Message) bool {
		mu.Lock()
		defer mu.Unlock()
		return fate.IntN(5) == 0
	})
	for _, p := range tm.p {
		p.hand.hold("c", "f", "i")
	}
	id := tm.begin("one", "eleven", acrossThree)
	for range 40 {
		p := tm.p[names[rnd.IntN(3)]]
		other := tm.p[names[rnd.IntN(3)]]
		switch rnd.IntN(8) {
		case 0, 1:
			p.disk.hold()
		case 2, 3:
			p.disk.free()
		case 4:
			p.hand.letAllGo()
			p.hand.hold("c", "f", "i")
		case 5:
			if p != other {
				tm.f.disconnect(p.plug, other.plug)
				tm.f.connect(p.plug, other.plug)
			}
		case 6:
			p.disk.failWith(kv.ErrFull)
			p.disk.free()
			pass(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			p.disk.failWith(nil)
		case 7:
			p.crash()
			p.start()
			for _, x := range tm.p {
				if x != p {
					tm.f.connect(p.plug, x.plug)
				}
			}
		}
		pass(time.Duration(rnd.IntN(400)) * time.Millisecond)
	}
	for _, p := range tm.p {
		p.disk.free()
		p.hand.letAllGo()
	}
	tm.f.losing(nil)
	tm.succeeds(id, 2*time.Minute, names...)
	pass(2 * time.Minute)
	tm.once(id, elevenTasks, names...)
}

// A commit of a start fails: the caller hears so, nobody else hears anything,
// and afterwards the node goes on.
func TestStartOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		one := tm.p["one"]
		one.disk.failWith(fmt.Errorf("store: %w: make room", kv.ErrFull))
		before := len(tm.f.sent(hasFacts))
		r := api.StartRequest{Workflow: "chain", Assign: map[string]string{"pa": "one", "pb": "two", "pc": "one"}}
		_, err := one.api.Start(t.Context(), r)
		var shown *api.Error
		if !errors.As(err, &shown) || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("start on a full disk: %v; want an error for users that says so", err)
		}
		pass(5 * time.Second)
		if n := len(tm.f.sent(hasFacts)) - before; n > 0 {
			t.Errorf("%d frames with facts were sent", n)
		}
		if n := one.hand.runs("a"); n > 0 {
			t.Errorf("task a was started %d times", n)
		}
		tm.wantTrouble("one", "disk full")
		if all, _ := one.api.Instances(t.Context(), true); len(all) > 0 {
			t.Errorf("an instance is listed that was never stored: %v", all)
		}
		one.disk.failWith(nil)
		st, err := one.api.Start(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		tm.succeeds(st.ID, time.Second, "one", "two")
		tm.wantTrouble("one", "")
	})
}

func hasFacts(c carried) bool { return len(c.m.Facts) > 0 }

// wantTrouble checks what a partner's status says; "": that all is well.
func (tm *team) wantTrouble(at, want string) {
	tm.t.Helper()
	st, err := tm.p[at].api.Status(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	got := strings.Join(st.Trouble, "; ")
	if (want == "") != (got == "") || !strings.Contains(got, want) {
		tm.t.Errorf("%s reports the trouble %q, want %q", at, got, want)
	}
}

// The disk fills up while a task runs: its end is not told, the node can still
// be asked, and goes on when there is room.
func TestCompletionOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		one := tm.p["one"]
		one.hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		one.disk.failWith(kv.ErrFull)
		one.hand.letGo(t, "a")
		synctest.Wait()
		for range 20 {
			if s := tm.task("one", id, "a"); s != workflow.Running {
				t.Errorf("with its end not stored, task a is %s", s)
			}
			if _, err := one.api.Log(t.Context(), id); err != nil {
				t.Errorf("the log cannot be read: %v", err)
			}
			pass(300 * time.Millisecond)
		}
		if n := tm.p["two"].hand.runs("b"); n > 0 {
			t.Errorf("b was started %d times, though a's end is not stored", n)
		}
		tm.wantTrouble("one", "disk full")
		one.disk.failWith(nil)
		tm.succeeds(id, 40*time.Second, "one", "two")
		tm.once(id, []string{"a", "b", "c"}, "one", "two")
		tm.wantTrouble("one", "")
	})
}

// An instance that waits for a write to go on can still be read.
func TestReadingOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		tm.p["one"].hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		two := tm.p["two"]
		two.disk.failWith(kv.ErrFull)
		tm.p["one"].hand.letGo(t, "a") // two would have to store it and its own start of b
		for range 20 {
			pass(300 * time.Millisecond)
			if _, err := two.api.Show(t.Context(), id); err != nil {
				t.Errorf("it cannot be shown: %v", err)
			}
		}
		two.disk.failWith(nil)
		tm.succeeds(id, 40*time.Second, "one", "two")
	})
}

// Definitions and invitations that cannot be stored are refused with the reason.
func TestOtherWritesOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		one := tm.p["one"]
		tm.add("one", chain)
		one.disk.failWith(kv.ErrFull)
		_, add := one.api.AddWorkflow(t.Context(), "eleven.yaml", []byte(eleven))
		_, remove := one.api.RemoveWorkflow(t.Context(), "chain")
		_, invite := one.api.Invite(t.Context(), api.InviteRequest{})
		for what, err := range map[string]error{"add": add, "remove": remove, "invite": invite} {
			var shown *api.Error
			if !errors.As(err, &shown) || !strings.Contains(err.Error(), "disk full") {
				t.Errorf("%s: %v; want an error for users that says why", what, err)
			}
		}
		tm.wantTrouble("one", "disk full")
		ws, err := one.api.Workflows(t.Context())
		if err != nil || len(ws) != 1 {
			t.Errorf("after writes that failed, the workflows are %v, %v; want chain alone", ws, err)
		}
	})
}

// An acknowledgement waits for the receiver's disk.
func TestAcknowledgementWaitsForTheDisk(t *testing.T) {
	const tooLate = 500 * time.Millisecond // it waits for less when it is durable
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		one, two := tm.p["one"], tm.p["two"]
		one.hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		ofTwo := func(c carried) bool { return c.from == two.id() && len(c.m.Heads) > 0 }
		two.disk.hold()
		before := len(tm.f.sent(ofTwo))
		one.hand.letGo(t, "a")
		pass(tooLate)
		if n := len(tm.f.sent(ofTwo)) - before; n > 0 {
			t.Errorf("two acknowledged %d times what waits for its disk", n)
		}
		two.disk.failWith(kv.ErrFull)
		two.disk.free()
		pass(tooLate)
		if n := len(tm.f.sent(ofTwo)) - before; n > 0 {
			t.Errorf("two acknowledged %d times what it could not store", n)
		}
		two.disk.failWith(nil)
		tm.succeeds(id, 10*time.Second, "one", "two")
	})
}

// A node that cannot store what comes does not ask for what it lacks of it: it would be
// sent all of it again, as fast as it asks.
func TestNothingIsAskedForOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, nil, seldom, "one", "two")
		tm.add("one", fan)
		one, two := tm.p["one"], tm.p["two"]
		tasks := []workflow.TaskName{"a", "b", "c", "d"}
		one.hand.hold(tasks...)
		id := tm.begin("one", "fan", map[string]string{"work": "one", "end": "two"})
		two.disk.failWith(kv.ErrFull)
		for _, task := range tasks { // two loses the first, and with it the past of the others
			one.hand.letGo(t, task)
			synctest.Wait()
		}
		lost := func(c carried) bool {
			return c.from == two.id() &&
				slices.ContainsFunc(c.m.Heads,
					func(h wire.Heads) bool { return h.Mode == wire.Ask && len(h.Heads) > 0 })
		}
		if n := len(tm.f.sent(lost)); n > 0 {
			t.Errorf("two asked %d times for what it cannot store", n)
		}
		two.disk.failWith(nil)
		tm.succeeds(id, 40*time.Second, "one", "two")
	})
}

// A node crashes with its last commits not synced: what it told was synced, so
// nobody knows of more than it does itself.
func TestUnsyncedWritesAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		one := tm.p["one"]
		one.hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		one.disk.hold()
		one.hand.letGo(t, "a")
		synctest.Wait()
		one.crash()
		if s := tm.task("two", id, "a"); s == workflow.Succeeded {
			t.Errorf("two heard of a success that one lost")
		}
		one.start()
		tm.connect("one", "two")
		tm.succeeds(id, 2*time.Second, "one", "two")
		tm.once(id, []string{"a", "b", "c"}, "one", "two")
		if n := tm.counter("one", "rolled-back"); n > 0 {
			t.Errorf("one found %d times that it was rolled back", n)
		}
	})
}

// An Ask arrives in the same round as a task's end: what the answer brings is
// durable too.
func TestAnswerInTheRoundOfACompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		one := tm.p["one"]
		one.hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		other := tm.begin("one", "chain", map[string]string{"pa": "two", "pb": "two", "pc": "one"})
		one.disk.hold()
		go one.api.Cancel(t.Context(), other, "")
		synctest.Wait() // the shard of one waits for its disk
		one.hand.letGo(t, "a")
		tm.disconnect("one", "two")
		tm.connect("one", "two")
		synctest.Wait()
		one.disk.free()
		tm.succeeds(id, 2*time.Second, "one", "two")
	})
}

// While the disk is slow much gathers for one round: more than the store takes
// as one unit.
func TestMuchInOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", `
workflow: letter
data: {text: {type: string, required: true}}
tasks: {write: {}, send: {after: write}}
partitions: {desk: [write], post: [send]}
`)
		one := tm.p["one"]
		r := api.StartRequest{
			Workflow: "letter", Input: map[string]string{"text": strings.Repeat("x", 50_000)},
			Assign: map[string]string{"desk": "one", "post": "two"},
		}
		one.disk.hold()
		ids := make(chan string, 200)
		for range cap(ids) {
			go func() {
				st, err := one.api.Start(t.Context(), r)
				if err != nil {
					t.Error(err)
					ids <- ""
					return
				}
				ids <- st.ID
			}()
		}
		synctest.Wait()
		one.disk.free()
		for range cap(ids) {
			if id := <-ids; id != "" {
				tm.succeeds(id, time.Minute, "one", "two")
			}
		}
	})
}

// What cannot be read at once after a failed commit is read later: its time-outs
// are not forgotten.
func TestWhatCannotBeReadAgainIsReadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		tm.add("one", "workflow: watch\ntasks: {a: {type: manual, timeout: 10m}}\n")
		id := tm.begin("one", "watch", nil)
		p := tm.p["one"]
		p.disk.failWith(errors.New("no space left"))
		p.disk.blindWith(errors.New("bad block"))
		if err := p.api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: "a"}); err == nil {
			t.Error("what is not durable was reported as done")
		}
		pass(time.Minute)
		p.disk.failWith(nil)
		p.disk.blindWith(nil)
		pass(20 * time.Minute)
		if s := tm.state("one", id); s != workflow.InstanceFailed {
			t.Errorf("after its time-out the instance is %s, want failed", s)
		}
	})
}
