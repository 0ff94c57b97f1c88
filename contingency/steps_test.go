package contingency

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// nothingYet is a view in which nothing has happened; it counts what it is asked.
type nothingYet struct{ asked *int }

func (v nothingYet) TaskTerm(workflow.Transition, workflow.TaskName) workflow.Finding {
	*v.asked++
	return workflow.Finding{Truth: workflow.Undecided}
}

func (v nothingYet) DataTerm(*workflow.Expr) workflow.Finding {
	*v.asked++
	return workflow.Finding{Truth: workflow.Undecided}
}

// Answering the failure of all tasks costs about what the definition is long, however
// they wait for each other: ten times the tasks take ten times the steps, and a little.
func TestStepsOfAnswering(t *testing.T) {
	const circle = "  a: {when: x > 1, out: [y]}\n  b: {when: y > 1, out: [x]}\n"
	for _, c := range []struct {
		name, before string
		task         func(i, n int) string
	}{
		{"a chain", "", func(i, _ int) string {
			return fmt.Sprintf("{after: t%05d, on-failure: release}", i-1)
		}},
		{"a chain beside a circle of data", circle, func(i, _ int) string {
			return fmt.Sprintf("{after: t%05d, on-failure: release}", i-1)
		}},
		{"all wait for the first, beside a circle of data", circle, func(int, int) string {
			return "{after: t00000, on-failure: release}"
		}},
		{"the last waits for all, beside a circle of data", circle, func(i, n int) string {
			if i < n-1 {
				return "{on-failure: release}"
			}
			var b strings.Builder
			for j := range i {
				fmt.Fprintf(&b, "t%05d, ", j)
			}
			return "{after: [" + b.String() + "]}"
		}},
		{"a circle of data in which each writes what all wait for", "", func(i, _ int) string {
			return fmt.Sprintf("{when: x > %d, out: [x], on-failure: release}", i%100)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var each []float64
			for _, n := range []int{20, 200, 2000} {
				each = append(each, float64(answering(t, c.before, c.task, n))/float64(n))
			}
			t.Logf("steps for each task: %.1f, %.1f, %.1f", each[0], each[1], each[2])
			if each[1] > 2*each[0] || each[2] > 3*each[0] {
				t.Errorf("%.1f, %.1f and %.1f steps for each task", each[0], each[1], each[2])
			}
		})
	}
}

// answering is how many steps it takes to answer the failures of n tasks.
func answering(t *testing.T, before string, task func(i, n int) string, n int) (steps int) {
	var b strings.Builder
	b.WriteString("workflow: w\ndata: {x: {type: integer}, y: {type: integer}}\ntasks:\n" + before +
		"  t00000: {on-failure: release}\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  t%05d: %s\n", i, task(i, n))
	}
	def, err := workflow.Parse("w.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	var failures []Failure
	for i := range n {
		name := workflow.TaskName(fmt.Sprintf("t%05d", i))
		failures = append(failures, Failure{Slot: name, Task: name})
	}
	o := newOverlay(def, failures, nothingYet{&steps})
	got := o.respond(failures)
	if o.circles {
		got = o.giveWay(failures)
	}
	if len(got) == 0 {
		t.Error("no failure is answered")
	}
	return steps + o.steps
}

// However many tasks of one verdict are to be looked at once more, since they wait for
// each other's data while something else is under way, no more than maxChecks are.
func TestStepsOfAnsweringCircles(t *testing.T) {
	task := func(i, _ int) string { return fmt.Sprintf("{when: x > %d, out: [x], on-failure: release}", i%100) }
	few, many := answering(t, "  a: {}\n", task, 2*maxChecks), answering(t, "  a: {}\n", task, 16*maxChecks)
	t.Logf("%d steps, %d for eight times the tasks", few, many)
	if many > 10*few {
		t.Errorf("%d steps, %d for eight times the tasks", few, many)
	}
}
