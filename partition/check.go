package partition

import (
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Warning is something about a cut that works, but probably not as its author
// means it. What cannot work at all is refused by workflow.Parse, or by Assign
// when the partners are known.
type Warning struct {
	Partition workflow.PartitionName
	Task      workflow.TaskName // empty if it is about the whole partition
	Message   string
	Hint      string // what to do about it
}

func (w Warning) String() string {
	return fmt.Sprintf("partition %s: %s (%s)", w.Partition, w.Message, w.Hint)
}

// Check looks at the cut of a plan. Its warnings come partition by partition,
// by name, and within one in rule order.
func Check(p *Plan) []Warning {
	var out []Warning
	for _, part := range p.partitions {
		out = append(out, p.checkTimeout(part)...)
		out = append(out, p.checkUnrelated(part)...)
		for _, t := range part.Tasks {
			out = append(out, p.checkEmergency(part, t)...)
			out = append(out, p.checkContingency(part, t)...)
		}
	}
	return out
}

// checkTimeout compares a declared timeout with what the tasks may take.
func (p *Plan) checkTimeout(part *Partition) []Warning {
	if !part.Declared {
		return nil
	}
	if part.FailsAtTaskLevel {
		return []Warning{{part.Name, "",
			fmt.Sprintf("its timeout of %s is never used: a partition of one task fails with its task", workflow.FormatDuration(part.Timeout)),
			fmt.Sprintf("give the timeout to task %s", part.Tasks[0])}}
	}
	if longest, ok := p.criticalPath(part); ok && part.Timeout < longest {
		return []Warning{{part.Name, "",
			fmt.Sprintf("its timeout of %s is shorter than the %s that its tasks may take, so it may fail while each of them is in time",
				workflow.FormatDuration(part.Timeout), workflow.FormatDuration(longest)),
			"make it longer, or leave it out to have it computed"}}
	}
	return nil
}

// checkEmergency finds emergency tasks that would be lost with all that they
// wait for: their trigger guards against slowness, not against the loss of the
// partner.
func (p *Plan) checkEmergency(part *Partition, t workflow.TaskName) []Warning {
	i := p.graph.index[t]
	if p.graph.tasks[i].TimeToWait == 0 {
		return nil
	}
	preds := p.graph.names(p.graph.preds[i])
	if len(preds) == 0 || slices.ContainsFunc(preds, func(q workflow.TaskName) bool { return !p.together(t, q) }) {
		return nil
	}
	return []Warning{{part.Name, t,
		fmt.Sprintf("emergency task %s is held by the same partner as everything it waits for: the loss of that partner is the loss of both", t),
		fmt.Sprintf("place %s in a partition for another partner", t)}}
}

// checkContingency finds contingencies that the author placed apart from their
// task, but pinned to the same partner.
func (p *Plan) checkContingency(part *Partition, t workflow.TaskName) []Warning {
	chain := p.Chain(t)
	if len(chain) < 2 || p.Home(chain[1]) == part.Name || !p.together(t, chain[1]) {
		return nil
	}
	return []Warning{{part.Name, t,
		fmt.Sprintf("the contingency %s of task %s is in partition %s, pinned to the same partner %s: the loss of that partner is the loss of both",
			chain[1], t, p.Home(chain[1]), part.Partner),
		"pin one of the two partitions to another partner"}}
}

// together tells whether two tasks are certainly held by one partner.
func (p *Plan) together(a, b workflow.TaskName) bool {
	x, y := p.Partition(p.Home(a)), p.Partition(p.Home(b))
	return x != nil && y != nil && (x == y || x.Partner != "" && x.Partner == y.Partner)
}

// checkUnrelated finds partitions whose tasks have nothing to do with one
// another, neither by order nor by data: only chance put them together.
func (p *Plan) checkUnrelated(part *Partition) []Warning {
	if len(p.partitions) < 2 {
		return nil // nobody cut
	}
	related := p.graph.components()
	var apart []workflow.TaskName // the first task of each component
	seen := make(map[int]bool)
	for _, t := range part.Tasks {
		if r := related[p.graph.index[t]]; !seen[r] {
			seen[r] = true
			apart = append(apart, t)
		}
	}
	if len(apart) < 2 {
		return nil
	}
	return []Warning{{part.Name, "",
		fmt.Sprintf("no path and no data connects its tasks %v", apart),
		"place them in partitions of their own, so that they do not fail together"}}
}

// components numbers the parts of the graph that hang together by edges or by
// data that tasks read, write or wait for: one number per task.
func (g *graph) components() []int {
	part := make([]int, len(g.tasks))
	for i := range part {
		part[i] = i
	}
	join := func(a, b int) {
		for i, from, to := 0, part[a], part[b]; i < len(part); i++ {
			if part[i] == from {
				part[i] = to
			}
		}
	}
	users := make(map[workflow.DataName]int)
	for i, t := range g.tasks {
		for _, a := range g.out[i] {
			join(i, a.task)
		}
		for _, name := range dataOf(t) {
			if first, ok := users[name]; ok {
				join(i, first)
			} else {
				users[name] = i
			}
		}
	}
	return part
}

// dataOf lists the data that a task reads, writes or waits for.
func dataOf(t *workflow.Task) []workflow.DataName {
	names := slices.Concat(t.In, t.Out)
	t.Rule.Terms(func(r *workflow.Rule) {
		if r.Op == workflow.OpData {
			names = append(names, r.Data.Names()...)
		}
	})
	return names
}
