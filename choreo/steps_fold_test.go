package choreo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// course is a large instance that one partner runs from end to end, as its facts.
type course struct {
	name string
	// task writes the definition's task i of n.
	task func(b *strings.Builder, i, n int)
	// out is what task i writes; nil: nothing.
	out func(i int) map[workflow.DataName]workflow.Value
	// contested: each task fails first, and a contingency takes it; of every second both succeed.
	contested bool
	// runs is how many of n tasks run; nil: all.
	runs func(n int) int
}

func writesX(i int) map[workflow.DataName]workflow.Value {
	return map[workflow.DataName]workflow.Value{"x": int64(i)}
}

func half(n int) int { return n / 2 }

func chainTask(b *strings.Builder, i, _ int) {
	if i > 0 {
		fmt.Fprintf(b, "after: t%05d", i-1)
	}
}

// fanTask is a task of a fan-out from the first with one join at the last.
func fanTask(b *strings.Builder, i, n int) {
	switch {
	case i == n-1:
		b.WriteString("after: [")
		for j := 1; j < n-1; j++ {
			fmt.Fprintf(b, "t%05d, ", j)
		}
		b.WriteString("t00000]")
	case i > 0:
		b.WriteString("after: t00000")
	}
}

var courses = []course{
	{name: "chain", task: chainTask},
	{name: "fan-out and join", task: fanTask},
	{name: "chain, contested", task: chainTask, contested: true},
	{name: "fan-out and join, contested", task: fanTask, contested: true},
	{name: "all write one item", task: func(b *strings.Builder, _, _ int) { b.WriteString("out: [x]") }, out: writesX},
	{name: "half write, half wait for it", task: func(b *strings.Builder, i, n int) {
		if i < n/2 {
			b.WriteString("out: [x]")
		} else {
			fmt.Fprintf(b, "when: x > %d", n)
		}
	}, out: writesX, runs: half},
	{name: "chain with data", task: func(b *strings.Builder, i, n int) {
		fmt.Fprintf(b, "out: [x]")
		if i > 0 {
			fmt.Fprintf(b, ", when: succeeded(\"t%05d\") and y >= 0", i-1)
		}
	}, out: writesX},
}

// definition is the course's with n tasks.
func (c course) definition(t testing.TB, n int) *workflow.Definition {
	var b strings.Builder
	b.WriteString("workflow: course\ndata: {x: {type: integer}, y: {type: integer, default: 1}}\ntasks:\n")
	if c.contested {
		b.WriteString("  spare: {}\n")
	}
	for i := range n {
		fmt.Fprintf(&b, "  t%05d: {", i)
		if c.contested {
			b.WriteString("on-failure: {contingency: spare}, ")
		}
		c.task(&b, i, n)
		b.WriteString("}\n")
	}
	return parse(t, b.String())
}

// facts are the course of n tasks, written by the partner that holds all of them:
// start and success of each, and where data decide that it is ready. Of a
// contested one each has a verdict, too, and the contingency's start and success.
func (c course) facts(t testing.TB, n int) (*mesh, []fact.Received) {
	w := newMesh(t, c.definition(t, n))
	m, err := Create(Self{Partner: "one", Incarnation: fact.Incarnation{1}}, w.def, w.plan,
		w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one", "two"), nil, w.moment())
	if err != nil {
		t.Fatal(err)
	}
	g := m.log.Genesis()
	p := &pen{t: t, instance: m.log.Instance(), chain: m.chain, seq: 1, prev: g.ID}
	out := []fact.Received{{Fact: g.Fact, ID: g.ID, Raw: g.Raw}}
	add := func(b fact.Body) fact.ID {
		out = append(out, p.write(b))
		return p.prev
	}
	runs := n
	if c.runs != nil {
		runs = c.runs(n)
	}
	// late: its first attempt succeeds as well, so that who waits for it names what it built upon.
	late, last := map[workflow.TaskName]bool{}, map[workflow.TaskName]fact.ID{}
	for i := range runs {
		name := workflow.TaskName(fmt.Sprintf("t%05d", i))
		a, task := fact.AttemptID{Slot: name}, w.def.Task(name)
		var values map[workflow.DataName]workflow.Value
		if c.out != nil {
			values = c.out(i)
		}
		task.Rule.Terms(func(r *workflow.Rule) {
			if r.Op == workflow.OpData {
				add(fact.Body{Ready: &fact.ReadyBody{Attempt: a}})
			}
		})
		if c.contested {
			var built []fact.Consumption
			for _, before := range w.def.Predecessors(name) {
				if late[before] {
					built = append(built, fact.Consumption{Slot: before, Fact: last[before]})
				}
			}
			add(fact.Body{Start: &fact.Start{Attempt: a, Try: 1, Consumed: built}})
			v := add(fact.Body{Verdict: &fact.Verdict{
				Cause: fact.CauseTimeout, Actions: []fact.Action{{Attempt: a, Kind: workflow.FailContingency,
					Task:    "spare",
					Partner: "one"}},
			}})
			b := fact.AttemptID{Fact: v, Slot: name}
			add(fact.Body{Start: &fact.Start{Attempt: b, Try: 1, Consumed: built}})
			last[name] = add(fact.Body{Success: &fact.Success{Attempt: b, Try: 1}})
			if late[name] = i%2 == 0; late[name] {
				add(fact.Body{Success: &fact.Success{Attempt: a, Try: 1}})
			}
			continue
		}
		add(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}})
		add(fact.Body{Success: &fact.Success{Attempt: a, Try: 1, Outputs: values}})
	}
	return w, out
}

// What a fact costs that arrives by itself does not grow with the instance.
func TestStepsOfFolding(t *testing.T) {
	for _, c := range courses {
		t.Run(c.name, func(t *testing.T) {
			growth(t, 20, func(n int) (int, int) { return c.folded(t, n) })
		})
	}
}

// folded is what it takes to fold the course of n tasks, fact by fact.
func (c course) folded(t *testing.T, n int) (steps, facts int) {
	t.Helper()
	w, all := c.facts(t, n)
	m, err := Open(Self{Partner: "two", Incarnation: fact.Incarnation{2}}, w.def, w.plan, all[0])
	if err != nil {
		t.Fatal(err)
	}
	before := m.log.Steps
	for i := range all[1:] {
		m.mustTake(t, all[i+1])
	}
	done, of, _ := m.Progress()
	if want := len(all) / 2; c.runs == nil && done < of {
		t.Errorf("%d of %d tasks are done after %d facts", done, of, want)
	}
	return m.log.Steps - before, len(all)
}

// ran is what it takes the node that runs the course of n tasks.
func (c course) ran(t *testing.T, n int) (steps, facts int) {
	t.Helper()
	x := c.begin(t, n)
	x.run(c)
	if done, of, _ := x.m.Progress(); c.runs == nil && done < of {
		t.Errorf("%d of %d tasks are done", done, of)
	}
	return x.m.log.Steps, x.m.Len()
}

// A fact of 1,000 writers of one item costs at most twice what one of ten does.
func TestStepsOfWritersOfOneItem(t *testing.T) {
	for _, c := range courses {
		if c.out == nil {
			continue
		}
		for what, work := range map[string]func(*testing.T, int) (int, int){"folded": c.folded, "run": c.ran} {
			t.Run(c.name+", "+what, func(t *testing.T) {
				each := func(n int) float64 {
					steps, facts := work(t, n)
					return float64(steps) / float64(facts)
				}
				ten, thousand := each(10), each(1000)
				t.Logf("steps for each fact: %.1f of ten, %.1f of 1,000", ten, thousand)
				if ten == 0 || thousand > 2*ten {
					t.Errorf("a fact takes %.1f steps where ten write, and %.1f where 1,000 do", ten, thousand)
				}
			})
		}
	}
}

// runner carries out what one machine decides, without a disk or peers.
type runner struct {
	w    *mesh
	m    *Machine
	jobs []state.Job
}

// begin has a partner start the course with n tasks, all of them its own.
func (c course) begin(t testing.TB, n int) *runner {
	w := newMesh(t, c.definition(t, n))
	w.takers["spare"] = "one"
	m, err := Create(Self{Partner: "one", Incarnation: fact.Incarnation{1}}, w.def, w.plan,
		w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one", "two"), nil, w.moment())
	if err != nil {
		t.Fatal(err)
	}
	x := &runner{w: w, m: m}
	x.decide()
	return x
}

func (x *runner) decide() { x.jobs = append(x.jobs, x.m.Decide(x.w.moment(), x.w).Start...) }

// run ends one job after the other until there are none: of a contested course
// each fails at first, and what took its place succeeds.
func (x *runner) run(c course) {
	for len(x.jobs) > 0 {
		x.step(c)
	}
}

// step ends one job.
func (x *runner) step(c course) {
	j := x.jobs[0]
	x.jobs = x.jobs[1:]
	res := Result{Failed: c.contested && j.Task.Name != "spare"}
	if !res.Failed && c.out != nil && len(j.Task.Out) > 0 {
		res.Outputs = c.out(1)
	}
	x.m.TaskEnded(j.Attempt, j.Try, res, x.w.moment(), x.w)
	x.decide()
	x.m.Overall()
	x.m.InHand()
}

// What a fact costs the node that writes it, to decide and to fold, does not grow
// with the instance.
func TestStepsOfRunning(t *testing.T) {
	for _, c := range courses {
		t.Run(c.name, func(t *testing.T) {
			growth(t, 10, func(n int) (int, int) { return c.ran(t, n) })
		})
	}
}

// BenchmarkInstance is what a fact of an instance of 10,000 tasks costs: folded as
// it arrives by itself, and at the node that writes it, which decides after each.
func BenchmarkInstance(b *testing.B) {
	for _, c := range courses {
		tasks := workflow.MaxTasks
		if c.contested {
			tasks-- // and the contingency
		}
		b.Run(c.name+"/fold", func(b *testing.B) {
			w, all := c.facts(b, tasks)
			each := make([]time.Duration, 0, b.N*len(all))
			for range b.N {
				m, err := Open(Self{Partner: "two", Incarnation: fact.Incarnation{2}}, w.def, w.plan, all[0])
				if err != nil {
					b.Fatal(err)
				}
				m.Decide(w.moment(), w)
				for i := range all[1:] {
					start := time.Now()
					m.mustTake(b, all[i+1])
					m.Decide(w.moment(), w)
					each = append(each, time.Since(start))
				}
			}
			report(b, each)
		})
		b.Run(c.name+"/run", func(b *testing.B) {
			var each []time.Duration
			for range b.N {
				x := c.begin(b, tasks)
				for len(x.jobs) > 0 {
					before, start := x.m.Len(), time.Now()
					x.step(c)
					if added := x.m.Len() - before; added > 0 {
						each = append(each, time.Since(start)/time.Duration(added))
					}
				}
			}
			report(b, each)
		})
	}
}

// report reports the median and the mean of what facts took.
func report(b *testing.B, each []time.Duration) {
	slices.Sort(each)
	sum := time.Duration(0)
	for _, d := range each {
		sum += d
	}
	b.ReportMetric(float64(each[len(each)/2].Nanoseconds())/1000, "µs/fact-median")
	b.ReportMetric(float64(sum.Nanoseconds())/1000/float64(len(each)), "µs/fact-mean")
}
