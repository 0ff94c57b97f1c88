package workflow

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// loopText is a random definition with loops: the lines of its tasks, and its partitions.
func loopText(g *rand.Rand) (head string, tasks []string) {
	n := 3 + g.IntN(6)
	for i := range n {
		var keys []string
		if i > 0 {
			a, b := g.IntN(i), g.IntN(i)
			data := fmt.Sprintf("d%d", g.IntN(3))
			rule := fmt.Sprintf("after: t%d", a)
			switch g.IntN(8) {
			case 0:
				rule = fmt.Sprintf("after: t%d, when: %s", a, data)
			case 1:
				rule = fmt.Sprintf(`when: succeeded("t%d") or succeeded("t%d")`, a, b)
			case 2:
				rule = fmt.Sprintf(`when: succeeded("t%d") or failed("t%d")`, a, b)
			case 3:
				rule = fmt.Sprintf(`when: succeeded("t%d") and not succeeded("t%d")`, a, b)
			case 4:
				rule = fmt.Sprintf(`when: running("t%d") and not %s`, a, data)
			case 5:
				rule = fmt.Sprintf("after: [t%d, t%d]", min(a, b), i-1)
				if min(a, b) == i-1 {
					rule = fmt.Sprintf("after: t%d", i-1)
				}
			}
			keys = append(keys, rule)
		}
		keys = append(keys, fmt.Sprintf("out: d%d", g.IntN(3)),
			[]string{"on-failure: block", "on-failure: release"}[g.IntN(2)])
		if g.IntN(3) == 0 {
			while := []string{"", fmt.Sprintf(", while: d%d", g.IntN(3)), fmt.Sprintf(", while: not d%d", g.IntN(3))}[g.IntN(3)]
			keys = append(keys, fmt.Sprintf("repeat: {times: %d, from: t%d%s}", 1+g.IntN(3), max(0, i-g.IntN(4)), while))
		}
		tasks = append(tasks, fmt.Sprintf("  t%d: {%s}", i, strings.Join(keys, ", ")))
	}
	return "workflow: f\ndata: {d0: {type: boolean}, d1: {type: boolean}, d2: {type: boolean}}\ntasks:\n", tasks
}

// TestRandomLoops: whatever loops a definition has, it is refused for one of few reasons or written out as a graph
// without circles, which means the same in whatever order it is written; and each run of it ends. Where no rule
// outside of loops asks for data, each task is decided by then: no round waits for data that a later one would set.
func TestRandomLoops(t *testing.T) {
	known := []string{" cross: ", "no way leads", "mixes tasks and data", "can never hold", "say under which condition"}
	accepted, decided, rounds, longest := 0, 0, 0, 0
	for seed := range uint64(3000) {
		g := rand.New(rand.NewPCG(seed, 7))
		head, tasks := loopText(g)
		text := head + strings.Join(tasks, "\n")
		d, err := Parse("f", []byte(text))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !slices.ContainsFunc(known, func(s string) bool { return strings.Contains(line, s) }) {
					t.Fatalf("seed %d: %v\n%s", seed, err, text)
				}
			}
			continue
		}
		accepted++
		g.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
		other, err := Parse("f", []byte(head+strings.Join(tasks, "\n")))
		if err != nil || other.Hash() != d.Hash() {
			t.Fatalf("seed %d: in another order: %v\n%s", seed, err, text)
		}
		again, err := Parse("f", d.Canonical())
		if err != nil || again.Hash() != d.Hash() || !bytes.Equal(again.WrittenOut(), d.WrittenOut()) {
			t.Fatalf("seed %d: the canonical form: %v\n%s", seed, err, d.Canonical())
		}
		if out, err := Parse("f", d.WrittenOut()); err != nil || !bytes.Equal(out.Canonical(), d.WrittenOut()) {
			t.Fatalf("seed %d: written out: %v\n%s", seed, err, d.WrittenOut())
		}
		if len(d.TopoOrder()) != len(d.Tasks) || d.Flow() != nil {
			t.Fatalf("seed %d: not a graph\n%s", seed, text)
		}
		asks := slices.ContainsFunc(d.Tasks, func(t *Task) bool {
			names, _ := dataOf(t)
			return slices.ContainsFunc(names, func(n DataName) bool { return strings.HasPrefix(string(n), "d") })
		})
		if !asks {
			decided++
		}
		for range 4 {
			run := &loopRun{def: d, states: map[TaskName]State{}, data: map[DataName]Value{}, mayRest: asks}
			if why := run.run(g); why != "" {
				t.Fatalf("seed %d: %s\n%s\n%s\n%v", seed, why, text, d.Canonical(), run.started)
			}
			for _, name := range run.started {
				if strings.Contains(string(name), ".2") {
					rounds++
				}
			}
			longest = max(longest, len(run.started))
		}
	}
	if accepted < 1000 || decided < 500 || rounds < 1000 || longest < 20 {
		t.Errorf("%d of 3000 were accepted, %d without data, %d tasks of second rounds ran, the longest run had %d tasks",
			accepted, decided, rounds, longest)
	}
}

// loopRun is one run of a definition, without partners.
type loopRun struct {
	def     *Definition
	states  map[TaskName]State
	data    map[DataName]Value
	started []TaskName
	mayRest bool // rules ask for data that several tasks set
	rests   bool // nothing is under way: what is undecided about data stays so
}

func (r *loopRun) state(t TaskName) State {
	if s, ok := r.states[t]; ok {
		return s
	}
	return NotReady
}

// run goes on until nothing is ready or running. It gives what is wrong.
func (r *loopRun) run(g *rand.Rand) string {
	for {
		var running, ready []*Task
		for _, name := range r.def.TopoOrder() {
			t := r.def.Task(name)
			if s := r.state(name); s == Running {
				running = append(running, t)
			} else if s == NotReady {
				switch f := t.Rule.Eval(loopView{r, t}); {
				case f.Truth == True:
					ready = append(ready, t)
				case f.Truth == Impossible && f.ByFailure:
					r.states[name] = Blocked
				case f.Truth == Impossible:
					r.states[name] = Skipped
				}
			}
		}
		switch {
		case len(ready) > 0 && (len(running) == 0 || g.IntN(2) == 0):
			t := ready[g.IntN(len(ready))]
			if r.state(t.Name) == NotReady {
				r.states[t.Name] = Running
				if r.started = append(r.started, t.Name); len(r.started) > len(r.def.Tasks) {
					return "a task began twice"
				}
			}
		case len(running) > 0:
			t := running[g.IntN(len(running))]
			if len(t.With.Set) == 0 && g.IntN(8) == 0 {
				r.states[t.Name] = Failed
				continue
			}
			r.states[t.Name] = Succeeded
			values, err := t.With.Values(r.data, "", 0)
			if err != nil {
				return err.Error()
			}
			for _, n := range t.Out {
				if r.data[n] = values[n]; values[n] == nil {
					r.data[n] = []Value{true, false, nil}[g.IntN(3)]
				}
			}
		case r.mayRest && !r.rests:
			r.rests = true
		default:
			for _, t := range r.def.Tasks {
				if !r.state(t.Name).Done() {
					return fmt.Sprintf("nothing is under way, and %s is not decided", t.Name)
				}
			}
			return ""
		}
	}
}

// loopView is how a run stands for a task.
type loopView struct {
	*loopRun
	of *Task
}

func (v loopView) TaskTerm(tr Transition, t TaskName) Finding {
	s := v.state(t)
	began := slices.Contains(v.started, t)
	if s == Failed && tr == BecameSucceeded && v.def.Task(t).OnFailure == FailRelease {
		return Finding{Truth: Impossible, Dropped: true}
	}
	holds := map[Transition]bool{
		BecameReady: began, BecameRunning: began, BecameSucceeded: s == Succeeded, BecameFailed: s == Failed,
	}[tr]
	switch {
	case holds:
		return Finding{Truth: True}
	case !s.Done():
		return Finding{Truth: Undecided}
	}
	return Finding{ByFailure: s == Blocked || s == Failed && tr != BecameFailed}
}

// DataTerm waits as long as another task may set the data.
func (v loopView) DataTerm(e *Expr) Finding {
	if held, err := e.Eval(Env{Data: v.data}); err == nil && held == true {
		return Finding{Truth: True}
	}
	for _, n := range e.Names() {
		for _, w := range v.def.Writers(n) {
			if w != v.of.Name && !v.state(w).Done() && !v.rests {
				return Finding{Truth: Undecided}
			}
		}
	}
	return Finding{}
}
