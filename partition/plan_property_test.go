package partition_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The attribute responseImmediate is what its definition says, spelled out here
// over names, without the plan's graph.
func TestResponseImmediateIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{contingencies: true, waits: true})
		plan := partition.New(def)
		for _, task := range def.Tasks {
			if got, want := plan.ResponseImmediate(task.Name), hasSuccessorElsewhere(def, task); got != want {
				t.Fatalf("%s: responseImmediate %v, want %v", task.Name, got, want)
			}
		}
	})
}

func hasSuccessorElsewhere(def *workflow.Definition, task *workflow.Task) bool {
	home := homeOf(def, task.Name)
	if task.OnFailure == workflow.FailContingency {
		if h := homeOf(def, task.Contingency); h != "" && h != home {
			return true
		}
	}
	for _, slot := range def.Tasks {
		for _, attempt := range chainOf(def, slot.Name) {
			if attempt != task || slot.ContingencyOnly {
				continue
			}
			for _, s := range def.Tasks {
				if mentions(s, slot.Name) && homeOf(def, s.Name) != home {
					return true
				}
			}
		}
	}
	return false
}

// A listener of a task holds a successor, and a task has listeners exactly when
// it reports at once.
func TestCrossingEdgesLeadToListeners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := partition.New(randomDefinition(t, shape{contingencies: true}))
		crossing := make(map[workflow.TaskName]map[workflow.PartitionName]bool)
		for _, e := range plan.Crossing() {
			if crossing[e.From] == nil {
				crossing[e.From] = make(map[workflow.PartitionName]bool)
			}
			crossing[e.From][plan.Home(e.To)] = true
		}
		for _, task := range plan.Definition().Tasks {
			if plan.Home(task.Name) == "" {
				continue
			}
			if len(plan.Listeners(task.Name)) != len(crossing[task.Name]) {
				t.Fatalf("%s: listeners %v, crossing edges lead to %v", task.Name, plan.Listeners(task.Name),
					crossing[task.Name])
			}
			for _, l := range plan.Listeners(task.Name) {
				if !crossing[task.Name][l] {
					t.Fatalf("%s: no crossing edge leads to listener %s", task.Name, l)
				}
			}
		}
	})
}

// paths calls fn for every path of the graph of rules, from any task to any other.
func paths(def *workflow.Definition, fn func([]*workflow.Task)) {
	var extend func(path []*workflow.Task)
	extend = func(path []*workflow.Task) {
		fn(path)
		for _, s := range def.Tasks {
			if mentions(s, path[len(path)-1].Name) {
				extend(append(path[:len(path):len(path)], s))
			}
		}
	}
	for _, t := range def.Tasks {
		if !t.ContingencyOnly {
			extend([]*workflow.Task{t})
		}
	}
}

// The critical path of a partition is the largest sum over all paths.
func TestTimeoutIsTheLargestSumOverAllPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		always := rapid.IntRange(0, 3).Draw(t, "every task has a timeout") > 0
		def := randomDefinition(t, shape{timeouts: always, contingencies: true})
		plan := partition.New(def)
		for _, part := range plan.Partitions() {
			if want := largestSum(def, part); part.Timeout != want {
				t.Fatalf("%s %v: timeout %v, want %v", part.Name, part.Tasks, part.Timeout, want)
			}
		}
	})
}

func largestSum(def *workflow.Definition, part *partition.Partition) time.Duration {
	for _, name := range part.Tasks {
		if taskOf(def, name).Timeout == 0 {
			return 0
		}
	}
	var largest time.Duration
	paths(def, func(path []*workflow.Task) {
		var sum time.Duration
		for _, t := range path {
			for _, attempt := range chainOf(def, t.Name) {
				if homeOf(def, attempt.Name) == part.Name {
					sum += attempt.Timeout
				}
			}
		}
		largest = max(largest, sum)
	})
	return largest
}

// Without emergency triggers the worst case is the longest path of timeouts up
// to the task, contingencies included.
func TestWorstCaseIsTheLongestPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{timeouts: true, contingencies: true})
		plan := partition.New(def)
		longest := make(map[workflow.TaskName]time.Duration)
		paths(def, func(path []*workflow.Task) {
			var sum time.Duration
			for _, t := range path[:len(path)-1] {
				for _, attempt := range chainOf(def, t.Name) {
					sum += attempt.Timeout
				}
			}
			last := path[len(path)-1].Name
			longest[last] = max(longest[last], sum)
		})
		for name, want := range longest {
			if got, ok := plan.WorstCase(name); !ok || got != want {
				t.Fatalf("%s: worst case %v %v, want %v", name, got, ok, want)
			}
		}
	})
}

// run is one possible course of an instance, at random: every task takes at
// most its timeout, and some fail. It computes when each slot's rule is decided
// and when the slot has its result.
type run struct {
	ready, end map[workflow.TaskName]time.Duration
	success    map[workflow.TaskName]bool
}

// play draws a run. Rules are conjunctions of successes, and tasks are in order.
func play(t *rapid.T, def *workflow.Definition) run {
	r := run{map[workflow.TaskName]time.Duration{}, map[workflow.TaskName]time.Duration{}, map[workflow.TaskName]bool{}}
	for _, task := range def.Tasks {
		if task.ContingencyOnly {
			continue
		}
		starts := r.decide(def, task)
		now := r.ready[task.Name]
		for _, attempt := range chainOf(def, task.Name) {
			if !starts || r.success[task.Name] {
				break
			}
			r.ready[attempt.Name] = now
			now += time.Duration(rapid.IntRange(0, int(attempt.Timeout/time.Minute)).Draw(t, "takes")) * time.Minute
			r.success[task.Name] = rapid.IntRange(0, 2).Draw(t, "outcome") > 0
		}
		r.end[task.Name] = now
	}
	return r
}

// decide computes when the rule of a task is decided, and whether it starts.
func (r run) decide(def *workflow.Definition, task *workflow.Task) (starts bool) {
	holds, decided := true, time.Duration(0)
	first := time.Duration(-1) // when a predecessor was first ready
	for _, p := range def.Tasks {
		if !mentions(task, p.Name) {
			continue
		}
		if at := r.ready[p.Name]; first < 0 || at < first {
			first = at
		}
		decided = max(decided, r.end[p.Name])
		holds = holds && r.success[p.Name]
	}
	if trigger := first + task.TimeToWait; task.TimeToWait > 0 && (!holds || trigger < decided) {
		holds, decided = true, trigger
	}
	r.ready[task.Name] = decided
	return holds
}

// No course of an instance passes the bounds, whatever fails and however late
// the emergency triggers fire.
func TestNoRunPassesTheWorstCase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{timeouts: true, contingencies: true, waits: true})
		plan := partition.New(def)
		r := play(t, def)
		for name, at := range r.ready {
			if bound, ok := plan.WorstCase(name); !ok || at > bound {
				t.Fatalf("%s was ready at %v, worst case %v %v", name, at, bound, ok)
			}
		}
		for name, at := range r.end {
			if bound, ok := plan.WorstEnd(name); !ok || at > bound {
				t.Fatalf("%s ended at %v, worst end %v %v", name, at, bound, ok)
			}
		}
	})
}
