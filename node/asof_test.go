package node_test

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// taskOf is a task as a partner shows it.
func (tm *team) taskOf(at, id string, name workflow.TaskName) api.Task {
	tm.t.Helper()
	in, err := tm.p[at].api.Show(tm.t.Context(), id)
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, t := range in.Tasks {
		if t.Name == name {
			return t
		}
	}
	tm.t.Fatalf("no task %s", name)
	return api.Task{}
}

// ageOf is how old a partner says that it knows a task's state is; false: it does not say.
func (tm *team) ageOf(at, id string, name workflow.TaskName) (time.Duration, bool) {
	t := tm.taskOf(at, id, name)
	if t.AsOf == nil {
		return 0, false
	}
	return time.Since(*t.AsOf), true
}

func connectionTime(d time.Duration) func(*configs.Config) {
	return func(c *configs.Config) { c.ConnectionTime = d }
}

// A task of another's is as old as the last word from there: while the two are in
// touch that is never long ago, and nothing is said in words; once they are not, it
// grows, and is said. What a node holds itself has no age.
func TestAsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, connectionTime(15*time.Second), seldom, "one", "two")
		tm.add("one", chain)
		tm.p["two"].hand.hold("b")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		for range 60 {
			pass(10 * time.Second)
			age, said := tm.ageOf("one", id, "b")
			if known := tm.taskOf("one", id, "b").Known; !said || age > 45*time.Second || known != "" {
				t.Fatalf("in touch: b is known as of %v ago (said: %t), in words %q", age, said, known)
			}
		}
		if age, said := tm.ageOf("one", id, "a"); said {
			t.Errorf("a, which one has itself, is known as of %v ago", age)
		}
		tm.disconnect("one", "two")
		pass(12 * time.Minute) // it has been judged meanwhile
		age, said := tm.ageOf("one", id, "b")
		if !said || age < 12*time.Minute || age > 13*time.Minute {
			t.Errorf("out of touch for 12 minutes: b is known as of %v ago (said: %t)", age, said)
		}
	})
}

// In words, what is old is said wherever the task is shown.
func TestOldKnowledgeIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, connectionTime(10*time.Minute), seldom, "one", "two")
		tm.add("one", chain)
		tm.p["two"].hand.hold("b")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		pass(10 * time.Second)
		tm.disconnect("one", "two")
		pass(4 * time.Minute)
		if known := tm.taskOf("one", id, "b").Known; known != "" {
			t.Errorf("two missed no sign of life yet, and b is %q", known)
		}
		pass(5*time.Minute/2 - 2*time.Second)
		const want = "as known 6 min ago"
		if b := tm.taskOf("one", id, "b"); b.Known != want || b.State.Done() {
			t.Errorf("b is %s, %q; want %q", b.State, b.Known, want)
		}
		list, err := tm.p["one"].api.Instances(t.Context(), false)
		if err != nil || len(list) != 1 || list[0].Known != want || list[0].AsOf == nil ||
			list[0].Of != "two" {
			t.Errorf("the list says %+v (%v), want %q", list, err, want)
		}
		for _, format := range []string{"svg", "dot", "mermaid"} {
			b, err := tm.p["one"].api.Diagram(t.Context(), id, format)
			if err != nil || !bytes.Contains(b, []byte(want)) {
				t.Errorf("the %s does not say %q (%v):\n%s", format, want, err, b)
			}
		}
		tm.connect("one", "two")
		pass(time.Second)
		if age, said := tm.ageOf("one", id, "b"); !said || age > 2*time.Second ||
			tm.taskOf("one", id, "b").Known != "" {
			t.Errorf("in touch again: b is known as of %v ago (said: %t), in words %q", age, said,
				tm.taskOf("one", id, "b").Known)
		}
	})
}

// In the list it is said of whoever is out of touch, also beside somebody in touch whose last word is older, as nothing
// has happened there.
func TestOldKnowledgeIsSaidBesideSomebodyQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, connectionTime(15*time.Second), nil, "one", "two", "three")
		tm.add("one", `
workflow: apart
tasks:
  a: {application: saw}
  b: {type: manual}
partitions: {pa: [a], pb: [b]}
`)
		tm.profile("two", api.ProfileChange{Applications: &[]string{"saw"}})
		tm.p["two"].hand.hold("a")
		id := tm.begin("one", "apart", map[string]string{"pa": "two", "pb": "three"})
		pass(4 * time.Second)
		tm.cut([]string{"one", "three"}, []string{"two"})
		pass(10 * time.Second)
		list, err := tm.p["one"].api.Instances(t.Context(), false)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		a := tm.taskOf("one", id, "a")
		if got := list[0]; a.Known == "" || got.Known != a.Known || got.Of != "two" || !got.AsOf.Equal(*a.AsOf) {
			t.Errorf("the list says %q of %q, as of %v; a is %q, as of %v", got.Known, got.Of, got.AsOf, a.Known, a.AsOf)
		}
	})
}

// What is known of an instance is never older than that: a mesh may have been quiet for long before, and its
// holder be gone just after.
func TestNothingIsKnownFromBeforeTheInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, connectionTime(15*time.Second), nil, "one", "two", "three")
		tm.add("one", chain)
		tm.p["two"].hand.hold("a")
		pass(time.Minute)
		began := time.Now()
		id := tm.begin("one", "chain", map[string]string{"pa": "two", "pb": "two", "pc": "three"})
		tm.cut([]string{"one", "two"}, []string{"three"})
		check := func(after time.Duration, known string) {
			t.Helper()
			list, err := tm.p["three"].api.Instances(t.Context(), false)
			if err != nil || len(list) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			for _, b := range []struct {
				asOf  *time.Time
				known string
			}{{tm.taskOf("three", id, "b").AsOf, tm.taskOf("three", id, "b").Known}, {list[0].AsOf, list[0].Known}} {
				if b.asOf == nil || b.asOf.Before(began.Truncate(time.Second)) || b.known != known {
					t.Errorf("%v after the start it is known as of %v, in words %q, want %q; it began %v", after,
						b.asOf, b.known, known, began)
				}
			}
		}
		pass(5 * time.Second)
		check(5*time.Second, "")
		pass(5 * time.Second)
		check(10*time.Second, "as known 10 s ago")
	})
}

// To see an instance costs one question to each holder, and its answer, and is over within half a
// second whatever the links are like: in time where the answer takes less than that for both ways.
func TestWhatAskingHoldersCosts(t *testing.T) {
	for way, answers := range map[time.Duration]bool{
		0: true, 100 * time.Millisecond: true, 240 * time.Millisecond: true, 300 * time.Millisecond: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeamWith(t, nil, seldom, "one", "two", "three")
			tm.add("one", chain)
			tm.p["two"].hand.hold("b")
			id := tm.begin("one", "chain", map[string]string{"pa": "three", "pb": "two", "pc": "one"})
			pass(5 * time.Second)
			frames, bytes := tm.aboutInstances()
			tm.f.slow(way)
			began := time.Now()
			asked, err := tm.p["three"].api.Refresh(t.Context(), id)
			took := time.Since(began)
			if err != nil || slices.Contains(asked.Answered, "two") != answers ||
				slices.Contains(asked.Silent, "two") == answers {
				t.Errorf("%v each way: asked %+v, %v; two answers in time: want %t", way, asked, err, answers)
			}
			if took > 500*time.Millisecond || answers && took < 2*way {
				t.Errorf("%v each way: it took %v, want at most 500 ms", way, took)
			}
			pass(2 * time.Second)
			f, b := tm.aboutInstances()
			asks := len(asked.Answered) + len(asked.Silent)
			t.Logf("%v each way: %d asked, over after %v, %d frames, %d bytes", way, asks, took, f-frames, b-bytes)
			if f-frames > 3*asks {
				t.Errorf("%d frames to ask %d partners, want a question, an answer and its acknowledgement each",
					f-frames, asks)
			}
		})
	}
}

// What holders have is asked for when people want to see it; a partner that is not
// reached, or does not answer, is not waited for.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, nil, seldom, "one", "two", "three")
		tm.add("one", chain)
		tm.p["two"].hand.hold("b")
		// three waits for nothing and judges nothing: it is not told that b runs.
		id := tm.begin("one", "chain", map[string]string{"pa": "three", "pb": "two", "pc": "one"})
		pass(5 * time.Second)
		if got := tm.task("three", id, "b"); got != workflow.Ready {
			t.Fatalf("b is %s at three before it asked: the test does not test what it should", got)
		}
		began := time.Now()
		asked, err := tm.p["three"].api.Refresh(t.Context(), id)
		if err != nil || len(asked.Silent) > 0 || len(asked.Answered) == 0 {
			t.Errorf("asked: %+v, %v", asked, err)
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("answers at once were waited for %v", took)
		}
		if got := tm.task("three", id, "b"); got != workflow.Running {
			t.Errorf("b is %s at three, which asked: want RUNNING", got)
		}
		// Asked twice in a second is asked once.
		before := len(tm.f.sent(func(c carried) bool { return len(c.m.Heads) > 0 }))
		if asked, err = tm.p["three"].api.Refresh(t.Context(), id); err != nil ||
			len(asked.Answered)+len(asked.Silent) > 0 {
			t.Errorf("asked again at once: %+v, %v", asked, err)
		}
		if n := len(tm.f.sent(func(c carried) bool { return len(c.m.Heads) > 0 })) - before; n > 0 {
			t.Errorf("%d frames for asking again at once", n)
		}
		pass(2 * time.Second)
		tm.f.losing(func(from, _ workflow.PartnerID, m *wire.Message) bool { return from == tm.p["two"].id() })
		asks := func() int {
			return len(tm.f.sent(func(c carried) bool {
				return slices.ContainsFunc(c.m.Heads,
					func(h wire.Heads) bool { return h.Mode == wire.Ask && c.to == tm.p["two"].id() })
			}))
		}
		first := asks()
		began = time.Now()
		asked, err = tm.p["three"].api.Refresh(t.Context(), id)
		if took := time.Since(began); err != nil || len(asked.Silent) != 1 || asked.Silent[0] != "two" ||
			took > 600*time.Millisecond {
			t.Errorf("two is silent: asked %+v, %v, waited %v", asked, err, took)
		}
		// What it has may be on its way: watching does not have it tell all again.
		for range 3 {
			if asked, err = tm.p["three"].api.Refresh(t.Context(), id); err != nil || len(asked.Silent) != 1 {
				t.Errorf("two is still silent: asked %+v, %v", asked, err)
			}
		}
		if n := asks() - first; n != 1 {
			t.Errorf("two was asked %d times within two seconds, want once", n)
		}
		tm.disconnect("two", "three")
		synctest.Wait()
		began = time.Now()
		asked, err = tm.p["three"].api.Refresh(t.Context(), id)
		if took := time.Since(began); err != nil || len(asked.Silent) > 0 || took > 500*time.Millisecond {
			t.Errorf("two is out of reach: asked %+v, %v, waited %v", asked, err, took)
		}
	})
}

// The first of several bundles is not all that a partner has.
func TestAsOfTheFirstBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, connectionTime(10*time.Minute), seldom, "one", "two")
		tm.add("one", chain)
		tm.p["two"].hand.hold("b")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		pass(10 * time.Second)
		two := tm.p["two"].id()
		var told *wire.Message
		tm.f.sent(func(c carried) bool {
			if c.from == two && len(c.m.Facts) > 0 {
				told = c.m
			}
			return false
		})
		tm.disconnect("one", "two")
		pass(3 * time.Minute)
		for _, more := range []bool{true, false} {
			told.Facts[0].More = more
			frame, err := wire.Encode(&wire.Message{Facts: told.Facts[:1]})
			if err != nil {
				t.Fatal(err)
			}
			tm.p["one"].node.OnFrame(two, frame)
			synctest.Wait()
			if age, _ := tm.ageOf("one", id, "b"); more != (age > 2*time.Second) {
				t.Errorf("more follows: %t, and b is known as of %v ago", more, age)
			}
		}
	})
}

// After a restart what is known of others is as old as their facts that are here, not
// as the restart.
func TestAsOfAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, connectionTime(15*time.Second), seldom, "one", "two")
		tm.add("one", chain)
		tm.p["two"].hand.hold("b")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		pass(3 * time.Second)
		tm.p["one"].crash()
		pass(20 * time.Minute)
		tm.p["one"].start()
		pass(time.Second)
		age, said := tm.ageOf("one", id, "b")
		if !said || age < 20*time.Minute || age > 21*time.Minute {
			t.Errorf("b is known as of %v ago (said: %t), want 20 minutes", age, said)
		}
		if known := tm.taskOf("one", id, "b").Known; known != "as known 20 min ago" {
			t.Errorf("in words: %q", known)
		}
	})
}

// How far an instance got stays to be seen after its end, and after a restart, and so
// does what of it needs a person.
func TestProgressIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		good := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		tm.succeeds(good, time.Second, "one", "two")
		tm.p["two"].hand.hold("b")
		bad := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		tm.p["two"].hand.fail(t, "b")
		pass(time.Second)
		check := func(when string) {
			t.Helper()
			list, err := tm.p["one"].api.Instances(t.Context(), true)
			if err != nil || len(list) != 2 {
				t.Fatalf("%s: %d instances, %v", when, len(list), err)
			}
			for _, in := range list {
				if want := map[string]int{good: 3, bad: 1}[in.ID]; in.Done != want || in.Tasks != 3 {
					t.Errorf("%s: %d of %d tasks of %s are done, want %d of 3", when, in.Done, in.Tasks, in.ID, want)
				}
				if in.ID == good && len(in.Needs) > 0 {
					t.Errorf("%s: %s succeeded, and needs a person: %v", when, in.ID, in.Needs)
				}
				if in.ID == bad && (len(in.Needs) != 2 || in.Needs[0].Kind != "failed" || in.Needs[0].Tasks[0] != "b" ||
					in.Needs[1].Kind != "blocked" || in.Needs[1].Tasks[0] != "c") {
					t.Errorf("%s: b of %s failed and blocks c, and what needs a person is %v", when, in.ID, in.Needs)
				}
			}
		}
		check("at the end")
		pass(time.Minute)
		check("a minute later")
		tm.p["one"].leave()
		before, _ := tm.aboutInstances()
		tm.p["one"].start()
		tm.connect("one", "two")
		pass(time.Minute)
		check("after a restart")
		if frames, _ := tm.aboutInstances(); frames > before {
			t.Errorf("after a restart %d frames are about instances that had ended for all: their summaries were not read", frames-before)
		}
	})
}
