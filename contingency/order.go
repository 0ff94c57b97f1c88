package contingency

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says in what order failures are looked at: a slot after all that its
// rule asks about, be it a task or who writes its data.

// node is what a slot waits for: a task or a data item.
type node struct {
	task workflow.TaskName
	data workflow.DataName
}

// knots are the slots in that order. Those that wait for each other in a circle,
// which only data can make, come together, in rule order (Tarjan's algorithm).
func (o *overlay) knots() [][]workflow.TaskName {
	t := tarjan{overlay: o, place: map[node]int{}, low: map[node]int{}, number: map[node]int{}}
	for i, slot := range o.slots {
		t.place[node{task: slot}] = i
	}
	for _, slot := range o.slots {
		if n := (node{task: slot}); t.number[n] == 0 {
			t.visit(n)
		}
	}
	return t.knots
}

type tarjan struct {
	*overlay
	place  map[node]int // of slots, in rule order
	number map[node]int // in the order of visits; 0: not yet
	low    map[node]int // the lowest number that can be reached; 0: its knot is known
	stack  []node
	knots  [][]workflow.TaskName
}

func (t *tarjan) visit(n node) {
	number, bottom := len(t.number)+1, len(t.stack)
	t.number[n], t.low[n] = number, number
	t.stack = append(t.stack, n)
	for _, p := range t.before(n) {
		if t.number[p] == 0 {
			t.visit(p)
		}
		if low := t.low[p]; low > 0 {
			t.low[n] = min(t.low[n], low)
		}
	}
	if t.low[n] != number {
		return
	}
	knot := t.stack[bottom:]
	t.stack = t.stack[:bottom]
	slices.SortFunc(knot, func(a, b node) int { return t.place[a] - t.place[b] })
	var slots []workflow.TaskName
	for _, member := range knot {
		t.low[member] = 0
		if task := t.def.Task(member.task); task != nil && !task.ContingencyOnly {
			slots = append(slots, member.task)
		}
	}
	t.knots = append(t.knots, slots)
}

// before are what a slot's rule asks about, the slots that a contingency may fill,
// and those that may write a data item.
func (o *overlay) before(n node) (out []node) {
	slots := o.writers[n.data]
	switch t := o.def.Task(n.task); {
	case t == nil:
	case t.ContingencyOnly:
		slots = o.fills[n.task]
	default:
		t.Rule.Terms(func(r *workflow.Rule) {
			if r.Op == workflow.OpTask {
				out = append(out, node{task: r.Task})
				return
			}
			for _, name := range r.Data.Names() {
				out = append(out, node{data: name})
			}
		})
	}
	for _, slot := range slots {
		out = append(out, node{task: slot})
	}
	return out
}
