package partition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Warning is something about a cut that works, but probably not as its author
// means it. What cannot work at all is refused by workflow.Parse, or by Assign
// when the partners are known.
type Warning struct {
	Partition workflow.PartitionName // empty: it is about a task, wherever that is, or about the distribution
	Task      workflow.TaskName      // empty: it is about the whole partition, or about the distribution
	Key       string                 // of the task, of the partition or of the distribution; empty: none
	Message   string
	Hint      string // what to do about it
}

// What says what it is about, and what that is.
func (w Warning) What() string {
	switch {
	case w.OfWorkflow():
		return fmt.Sprintf("%s: %s", w.Key, w.Message)
	case w.OfDistribution():
		return fmt.Sprintf("distribution: %s", w.Message)
	case w.Partition == "":
		return fmt.Sprintf("task %s: %s", w.Task, w.Message)
	}
	return fmt.Sprintf("partition %s: %s", w.Partition, w.Message)
}

// OfDistribution reports whether it is about what the definition says of how work is distributed.
func (w Warning) OfDistribution() bool { return w.Partition == "" && w.Task == "" && !w.OfWorkflow() }

// OfWorkflow reports whether it is about the workflow as a whole.
func (w Warning) OfWorkflow() bool { return w.Key == keyCreator }

func (w Warning) String() string { return fmt.Sprintf("%s (%s)", w.What(), w.Hint) }

// keyCreator is the key of a workflow under which the role stands that starts it.
const keyCreator = "creator-role"

// keyOnFailure is the key of a task under which its contingency stands.
const keyOnFailure = "on-failure"

// Check looks at how the work of a plan is distributed, and at its cut. The warnings about the cut come partition
// by partition, by name, and within one in rule order.
func Check(p *Plan) []Warning {
	out := checkDistribution(p.def)
	related := p.graph.components()
	critical, known := p.criticalPaths(true)
	for at, part := range p.partitions {
		if known {
			out = append(out, checkTimeout(part, critical[at])...)
		}
		out = append(out, p.checkUnrelated(part, related)...)
		for _, t := range part.Tasks {
			i := p.graph.index[t]
			out = append(out, p.checkEmergency(part, i)...)
			out = append(out, p.checkContingency(part, i)...)
			out = append(out, p.checkInFlow(part, i)...)
			out = append(out, p.checkStandIn(part, i)...)
		}
	}
	return out
}

// checkDistribution finds what a definition says of tasks that wait to be taken, and its mechanism does not ask.
func checkDistribution(def *workflow.Definition) (out []Warning) {
	m, err := MechanismOf(def, "")
	if err != nil {
		return nil // it has been refused
	}
	by := "by " + string(m)
	switch {
	case m == PlainRule:
		by = "without a mechanism"
	case def.Distribution.Mechanism == "":
		by += ", which this definition has as it names no mechanism"
	}
	d := def.Distribution
	relaxed := []aptitude.Mechanism{aptitude.Typical, aptitude.Receptive, aptitude.Selective, aptitude.SelPushPull}
	for _, x := range []struct {
		key    string
		has    bool
		usedBy []aptitude.Mechanism
	}{
		{"patience", d.Patience > 0, []aptitude.Mechanism{aptitude.SelPushPull}},
		{"relax", d.Relax, relaxed},
		{"urgency-growth", d.UrgencyGrowth > 0, relaxed},
	} {
		if x.has && !slices.Contains(x.usedBy, m) {
			out = append(out, Warning{Key: x.key,
				Message: fmt.Sprintf("%s does nothing %s: it is for %s", x.key, by, joined(x.usedBy, ", ")),
				Hint:    "leave it out, or choose such a mechanism, here or with mutirao start --mechanism"})
		}
	}
	return out
}

// checkTimeout compares a declared timeout with what the tasks may take.
func checkTimeout(part *Partition, longest time.Duration) []Warning {
	if !part.Declared {
		return nil
	}
	if part.FailsAtTaskLevel {
		return []Warning{{part.Name, "", "timeout",
			fmt.Sprintf("its timeout of %s is never used: a partition of one task fails with its task",
				workflow.FormatDuration(part.Timeout)),
			fmt.Sprintf("give the timeout to task %s", part.Tasks[0])}}
	}
	if part.Timeout < longest {
		return []Warning{{part.Name, "", "timeout",
			fmt.Sprintf("its timeout of %s is shorter than the %s that its tasks may take, so it may fail while each of them is in time",
				workflow.FormatDuration(part.Timeout), workflow.FormatDuration(longest)),
			"make it longer, or leave it out to have it computed"}}
	}
	return nil
}

// checkEmergency finds emergency tasks that would be lost with all that they
// wait for: their trigger guards against slowness, not against the loss of the
// partner.
func (p *Plan) checkEmergency(part *Partition, i int) []Warning {
	t, preds := p.graph.tasks[i], p.graph.preds[i]
	apart := func(q int) bool { return !p.together(i, q) }
	if t.TimeToWait == 0 || len(preds) == 0 || slices.ContainsFunc(preds, apart) {
		return nil
	}
	return []Warning{{part.Name, t.Name, "",
		fmt.Sprintf("emergency task %s is held by the same partner as everything it waits for: the loss of that partner is the loss of both", t.Name),
		fmt.Sprintf("place %s in a partition for another partner", t.Name)}}
}

// checkContingency finds contingencies that the author placed apart from their
// task, but pinned to the same partner.
func (p *Plan) checkContingency(part *Partition, i int) []Warning {
	next := p.graph.next[i]
	if next == none || p.home[next] == p.home[i] || !p.together(i, next) {
		return nil
	}
	return []Warning{{part.Name, p.graph.tasks[i].Name, keyOnFailure,
		fmt.Sprintf("the contingency %s of task %s is in partition %s, pinned to the same partner %s: the loss of that partner is the loss of both",
			p.graph.tasks[next].Name, p.graph.tasks[i].Name, p.Home(p.graph.tasks[next].Name), part.Partner),
		"pin one of the two partitions to another partner"}}
}

// checkInFlow finds tasks whose contingency is a task in the flow as well: it may be done twice, and
// people see two items of one name.
func (p *Plan) checkInFlow(part *Partition, i int) []Warning {
	next := p.graph.next[i]
	if next == none || !p.graph.isSlot(next) {
		return nil
	}
	t, c := p.graph.tasks[i].Name, p.graph.tasks[next].Name
	return []Warning{{part.Name, t, keyOnFailure,
		fmt.Sprintf("the contingency %s of task %s is a task in the flow as well: where %s fails, it may be done twice, once in each place", c, t, t),
		fmt.Sprintf("give %s a contingency that nothing else waits for and that has no rule of its own", t)}}
}

// checkStandIn finds tasks that wait for one which runs only in place of others:
// where these do well, the task is skipped, and the instance succeeds without it.
func (p *Plan) checkStandIn(part *Partition, i int) []Warning {
	t := p.graph.tasks[i]
	c := p.asksStandIn(t.Rule)
	if c == nil {
		return nil
	}
	names := joined(p.standsFor(c.Name), " or ")
	return []Warning{{part.Name, t.Name, "after",
		fmt.Sprintf("task %s waits for %s, which runs only in place of %s: as long as that is not needed, %s is skipped, and the instance succeeds without it",
			t.Name, c.Name, names, t.Name),
		fmt.Sprintf("to have it run in either case, wait for %s: it has succeeded too when its contingency has",
			names)}}
}

// standsFor are the tasks with rules of their own that a task stands in for, be it
// after other contingencies of theirs.
func (p *Plan) standsFor(c workflow.TaskName) (out []workflow.TaskName) {
	for i, t := range p.graph.tasks {
		for next := i; p.graph.isSlot(i) && next != none; next = p.graph.next[next] {
			if next != i && p.graph.tasks[next].Name == c {
				out = append(out, t.Name)
			}
		}
	}
	return out
}

// asksStandIn is a task that is only a contingency and without which a rule cannot
// hold; nil: there is none.
func (p *Plan) asksStandIn(r *workflow.Rule) *workflow.Task {
	if r == nil {
		return nil
	}
	switch r.Op {
	case workflow.OpTask:
		if t := p.graph.tasks[p.graph.index[r.Task]]; t.ContingencyOnly && !r.Negated {
			return t
		}
	case workflow.OpAnd:
		for _, part := range r.Args {
			if t := p.asksStandIn(part); t != nil {
				return t
			}
		}
	case workflow.OpOr:
		var first *workflow.Task
		for _, part := range r.Args {
			t := p.asksStandIn(part)
			if t == nil {
				return nil
			}
			first = cmp.Or(first, t)
		}
		return first
	}
	return nil
}

func joined[S ~string](list []S, by string) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = string(s)
	}
	return strings.Join(words, by)
}

// together reports whether two tasks are certainly held by one partner.
func (p *Plan) together(a, b int) bool {
	x, y := p.home[a], p.home[b]
	if x == none || y == none {
		return false
	}
	partner := p.partitions[x].Partner
	return x == y || partner != "" && partner == p.partitions[y].Partner
}

// checkUnrelated finds partitions whose tasks have nothing to do with one
// another, neither by order nor by data: only chance put them together.
func (p *Plan) checkUnrelated(part *Partition, related []int) []Warning {
	if len(p.partitions) < 2 {
		return nil // nobody cut
	}
	var apart []workflow.TaskName // the first task of each component, of the first few
	seen := make(map[int]bool)
	for _, t := range part.Tasks {
		if r := related[p.graph.index[t]]; !seen[r] && len(apart) < 20 {
			seen[r] = true
			apart = append(apart, t)
		}
	}
	if len(apart) < 2 {
		return nil
	}
	return []Warning{{part.Name, "", "",
		fmt.Sprintf("no path and no data connects its tasks %s", joined(apart, ", ")),
		"place them in partitions of their own, so that they do not fail together"}}
}

// components numbers the parts of the graph that hang together by edges or by
// data that tasks read, write or wait for: one number per task.
func (g *graph) components() []int {
	parent := make([]int, len(g.tasks)) // a forest: trees are components
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	users := make(map[workflow.DataName]int)
	for i, t := range g.tasks {
		for _, a := range g.out[i] {
			parent[root(a.task)] = root(i)
		}
		for _, name := range dataOf(t) {
			if first, ok := users[name]; ok {
				parent[root(first)] = root(i)
			}
			users[name] = i
		}
	}
	for i := range parent {
		parent[i] = root(i)
	}
	return parent
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
