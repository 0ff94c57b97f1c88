package contingency

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says in what order failures are looked at: a slot after all that its
// rule asks about, be it a task or a writer of its data.

// node is what a slot waits for: a task or a data item.
type node struct {
	task workflow.TaskName
	data workflow.DataName
}

// knots are the slots in that order. Those that wait for each other in a circle,
// which only data can make, come together, in rule order.
func (o *overlay) knots() (out [][]workflow.TaskName) {
	place := make(map[workflow.TaskName]int, len(o.slots))
	nodes := make([]node, len(o.slots))
	for i, slot := range o.slots {
		place[slot], nodes[i] = i, node{task: slot}
	}
	for _, knot := range workflow.Knots(nodes, o.before) {
		var slots []workflow.TaskName
		for _, n := range knot {
			if _, is := place[n.task]; is {
				slots = append(slots, n.task)
			}
		}
		slices.SortFunc(slots, func(a, b workflow.TaskName) int { return place[a] - place[b] })
		out = append(out, slots)
	}
	return out
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
