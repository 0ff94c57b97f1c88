package choreo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// timed is a course whose tasks have time-outs.
func (c course) timed() course {
	task := c.task
	c.name += ", with time-outs"
	c.task = func(b *strings.Builder, i, n int) {
		b.WriteString("timeout: 1h, ")
		task(b, i, n)
	}
	return c
}

// Time-outs cost each fact what it changes of what is waited for, however much is:
// the node that has the tasks, and one that would judge if it gave no result. Where
// slots are contested that one looks at all tasks now and then, here once in a tenth of
// a second for a thousand tasks.
func TestStepsOfWatching(t *testing.T) {
	for _, c := range courses {
		c = c.timed()
		t.Run(c.name+", own", func(t *testing.T) {
			growth(t, 10, func(n int) (int, int) {
				x := c.begin(t, n)
				x.run(c)
				if done, of, _ := x.m.Progress(); c.runs == nil && done < of {
					t.Errorf("%d of %d tasks are done", done, of)
				}
				return x.m.log.Steps, x.m.Len()
			})
		})
		t.Run(c.name+", another's", func(t *testing.T) {
			growth(t, 10, func(n int) (int, int) { return c.watched(t, n) })
		})
	}
}

// watched is how many steps it takes another to follow the course and clock what it waits
// for, a fact in a millisecond, and of how many facts.
func (c course) watched(t *testing.T, n int) (steps, facts int) {
	w, all := c.facts(t, n)
	m, err := Open(Self{Partner: "two", Incarnation: fact.Incarnation{2}}, w.def, w.plan, all[0])
	if err != nil {
		t.Fatal(err)
	}
	before := m.log.Steps
	for i := range all[1:] {
		m.mustTake(t, all[i+1])
		w.now += time.Millisecond
		m.Decide(w.moment(), w)
	}
	return m.log.Steps - before, len(all)
}

// The tasks of a partition that may be kept for ever are clocked one by one, which costs a
// fact the same however many there are: here all are ready at once, and the last has no
// time-out.
func TestStepsOfWatchingOneByOne(t *testing.T) {
	c := course{task: func(b *strings.Builder, i, n int) {
		if i < n-1 {
			b.WriteString("timeout: 1h, ")
		}
		fanTask(b, i, n)
	}}
	growth(t, 10, func(n int) (int, int) { return c.watched(t, n) })
}

// Other participants cost a fact nothing that they need not be told of.
func TestStepsOfManyParticipants(t *testing.T) {
	growth(t, 20, func(n int) (int, int) {
		w := newMesh(t, parse(t, "workflow: w\ntasks:\n  a: {type: manual}\n"))
		all := []workflow.PartnerID{"one", "two", "three"}
		for i := range n {
			all = append(all, workflow.PartnerID(fmt.Sprintf("p%05d", i)))
		}
		if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "two"},
			all...)); err != nil {
			t.Fatal(err)
		}
		m := w.nodes["one"].m
		for _, p := range all { // all have what there is
			m.Acknowledge(p, fact.Incarnation{1}, m.Heads())
		}
		m.Decide(w.moment(), w)
		before := m.log.Steps
		for _, f := range words(t, m, n) {
			m.mustTake(t, f)
			m.Decide(w.moment(), w)
		}
		return m.log.Steps - before, n
	})
}

// Where tasks wait for data that they would write for each other, a fact costs what it
// changes, as long as nothing that was decided is taken back.
func TestStepsOfCycles(t *testing.T) {
	c := course{task: func(b *strings.Builder, i, n int) {
		b.WriteString("out: [x]")
		if i >= n-2 {
			fmt.Fprintf(b, ", when: x > %d", n+i)
		}
	}, out: writesX, runs: half}
	growth(t, 10, func(n int) (int, int) {
		w, all := c.facts(t, n)
		m, err := Open(Self{Partner: "two", Incarnation: fact.Incarnation{2}}, w.def, w.plan, all[0])
		if err != nil {
			t.Fatal(err)
		}
		if !m.state.Cyclic {
			t.Error("no cycle")
		}
		before := m.log.Steps
		for i := range all[1:] {
			m.mustTake(t, all[i+1])
		}
		return m.log.Steps - before, len(all)
	})
}
