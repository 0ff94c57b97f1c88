package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// aboutInstances are the frames that say something of instances, and their bytes.
func (tm *team) aboutInstances() (frames, bytes int) {
	for _, c := range tm.f.sent(func(c carried) bool { return len(c.m.Facts)+len(c.m.Heads) > 0 }) {
		b, err := wire.Encode(c.m)
		if err != nil {
			tm.t.Fatal(err)
		}
		frames, bytes = frames+1, bytes+len(b)
	}
	return frames, bytes
}

// seldom has nodes compare what they have for the first time after almost 30 s.
func seldom(p *node.Parts) { p.Chance = func() float64 { return 0.99 } }

// fan is a workflow of many tasks at one partner, each of which another waits for.
const fan = `
workflow: fan
tasks:
  a: {}
  b: {}
  c: {}
  d: {}
  join: {after: [a, b, c, d]}
partitions:
  work: [a, b, c, d]
  end: [join]
`

// A partner that waits for a task, or that judges, knows within two seconds that
// it runs. One that has nothing to do with it is not told.
func TestLongTaskIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, nil, seldom, "one", "two", "three", "four")
		tm.add("one", chain)
		tm.p["two"].hand.hold("b")
		id := tm.begin("one", "chain", map[string]string{"pa": "four", "pb": "two", "pc": "three"})
		pass(900 * time.Millisecond)
		for _, at := range []string{"one", "three"} {
			if got := tm.task(at, id, "b"); got == workflow.Running {
				t.Errorf("b is %s at %s before it has run for a second", got, at)
			}
		}
		pass(1200 * time.Millisecond)
		for at, want := range map[string]workflow.State{
			"one": workflow.Running, "three": workflow.Running, "four": workflow.Ready,
		} {
			if got := tm.task(at, id, "b"); got != want {
				t.Errorf("b has run for two seconds and is %s at %s, want %s", got, at, want)
			}
		}
		tm.p["two"].hand.letGo(t, "b")
		tm.succeeds(id, time.Second, "one", "three")
	})
}

// What tasks cost in frames while they run: those that end within a second none; those that run for longer one for each
// partner that waits or judges, with its acknowledgement, however many tasks began together. What they cost when they end
// is the same.
func TestFramesOfLongTasks(t *testing.T) {
	const acknowledged = 300 * time.Millisecond // what they began with has been
	run := func(takes time.Duration) (running, ends int) {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeamWith(t, nil, seldom, "judge", "worker", "waiter")
			tm.add("judge", fan)
			tm.p["worker"].hand.hold("a", "b", "c", "d")
			id := tm.begin("judge", "fan", map[string]string{"work": "worker", "end": "waiter"})
			pass(acknowledged)
			before, was := tm.aboutInstances()
			pass(takes - acknowledged)
			now, bytes := tm.aboutInstances()
			running = now - before
			t.Logf("tasks of %v: %d frames and %d bytes while they run", takes, running, bytes-was)
			facts := func(c carried) bool { return len(c.m.Facts) > 0 }
			began := len(tm.f.sent(facts))
			for _, task := range []workflow.TaskName{"a", "b", "c", "d"} {
				tm.p["worker"].hand.letGo(t, task)
				pass(time.Millisecond) // how many would go in one frame is else left to chance
			}
			tm.succeeds(id, time.Second, "judge", "worker", "waiter")
			pass(2 * time.Second)
			ends = len(tm.f.sent(facts)) - began
			frames, all := tm.aboutInstances()
			t.Logf("in all %d frames, %d bytes", frames, all)
		})
		return running, ends
	}
	atOnce, end := run(acknowledged)
	almost, almostEnd := run(990 * time.Millisecond)
	long, longEnd := run(10 * time.Second)
	if atOnce != 0 || almost != 0 {
		t.Errorf("%d and %d frames while tasks run that end within a second, want none", atOnce, almost)
	}
	if long != 4 {
		t.Errorf("four tasks that began together and run for long cost %d frames; to two partners, each with its acknowledgement, are 4", long)
	}
	if almostEnd != end || longEnd != end {
		t.Errorf("the ends of tasks cost %d, %d and %d frames with facts: want the same, however long they ran", end, almostEnd, longEnd)
	}
}

// On mobile, tasks that end before the next sign of life have no frame of their own about their start, and those
// that run for longer one to each partner that waits or judges. Counted are the worker's frames that bring facts. All
// others, such as signs of life, are counted in TestFramesOfADayOnMobile.
func TestFramesOfLongTasksOnMobile(t *testing.T) {
	run := func(takes time.Duration) (frames, bytes int) {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeamWith(t, mobile, seldom, "judge", "worker", "waiter")
			tm.add("judge", fan)
			tm.p["worker"].hand.hold("a", "b", "c", "d")
			pass(5 * time.Minute) // until all have compared what they have
			before := elapsed()
			pass(2 * time.Millisecond) // elapsed counts these: none that follows is of the same
			id := tm.begin("judge", "fan", map[string]string{"work": "worker", "end": "waiter"})
			pass(takes)
			for _, task := range []workflow.TaskName{"a", "b", "c", "d"} {
				tm.p["worker"].hand.letGo(t, task)
				pass(time.Millisecond)
			}
			tm.succeeds(id, time.Second, "judge", "worker", "waiter")
			worker := tm.p["worker"].id()
			for _, c := range tm.f.sent(func(c carried) bool {
				return c.sent > before && c.from == worker && len(c.m.Facts) > 0
			}) {
				b, err := wire.Encode(c.m)
				if err != nil {
					t.Fatal(err)
				}
				frames, bytes = frames+1, bytes+len(b)
			}
		})
		return frames, bytes
	}
	atOnce, short := run(0)
	almost, _ := run(10 * time.Second)
	long, more := run(4 * time.Minute)
	t.Logf("at once: %d frames, %d bytes; four tasks of 4 min: %d frames, %d bytes", atOnce, short, long, more)
	if almost != atOnce || long != atOnce+2 {
		t.Errorf("frames with facts of tasks that end at once, take 10 s, take 4 min: %d, %d, %d; want %[1]d, %[1]d, %[4]d",
			atOnce, almost, long, atOnce+2)
	}
}

// A mobile node tells of a start with its next sign of life, not before.
func TestMobileTellsWithItsSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mobile := func(c *configs.Config) { c.Preset, c.ConnectionTime = configs.Mobile, time.Minute }
		tm := newTeamWith(t, mobile, seldom, "one", "two")
		tm.add("one", chain)
		tm.p["two"].hand.hold("b")
		tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		before := elapsed()
		pass(25 * time.Second)
		two := tm.p["two"].id()
		signs := tm.f.sent(func(c carried) bool {
			return c.from == two && c.sent > before && (c.m.Pulse != nil || len(c.m.Beats) > 0)
		})
		told := tm.f.sent(func(c carried) bool { return c.from == two && c.sent > before && len(c.m.Facts) > 0 })
		if len(told) != 1 || len(signs) == 0 || told[0].sent < signs[0].sent || told[0].sent > signs[0].sent+10 {
			t.Fatalf("facts at %v ms, signs of life at %v ms; want the first with the first", moments(told),
				moments(signs))
		}
	})
}

func moments(cs []carried) (at []int) {
	for _, c := range cs {
		at = append(at, c.sent)
	}
	return at
}

// A task that has just begun is told of before its holder goes down in good order, since nobody is there a second
// later to do it.
func TestWhatHasJustBegunIsToldBeforeGoingDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, nil, seldom, "one", "two", "three")
		tm.add("one", chain)
		tm.p["two"].hand.hold("b")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		pass(300 * time.Millisecond)
		if got := tm.task("one", id, "b"); got != workflow.Ready {
			t.Fatalf("b has just begun, and is %s at one", got)
		}
		tm.p["two"].leave()
		pass(10 * time.Second)
		for _, at := range []string{"one", "three"} {
			if got := tm.task(at, id, "b"); got != workflow.Running {
				t.Errorf("two went down while b ran, and it is %s at %s, want RUNNING", got, at)
			}
		}
	})
}
