package contingency

import (
	"container/heap"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps what the slots' rules come to while failures are answered. Each is
// read once; then a decision goes up from the terms that are about its slot, and stops
// where nothing comes out otherwise. So answering all tasks of a definition costs about
// what the definition is long, in circles of data, too.

// A rule comes to something as it is, and at rest: when nothing is under way any more
// that could change the data.
const (
	asItIs = iota
	atRest
)

// rule is what a slot waits for.
type rule struct {
	slot    workflow.TaskName
	knot    int  // in the order in which failures are looked at
	place   int  // in its knot
	asks    bool // it has terms about data
	whole   *clause
	waiting [2]bool // it is among overlay.dead
	// active, forData: it counts for these of overlay.
	active, forData bool
}

// clause is a part of a rule: a term, or an "and" or "or" of clauses.
type clause struct {
	of    *rule
	up    *clause // nil: it is the whole rule
	rule  *workflow.Rule
	args  [2]workflow.Tally
	comes [2]workflow.Finding // as it is, and at rest
}

// readRules reads the rules of all slots.
func (o *overlay) readRules(knots [][]workflow.TaskName) {
	for i, knot := range knots {
		for j, slot := range knot {
			r := &rule{slot: slot, knot: i, place: j}
			if t := o.def.Task(slot); t.Rule != nil {
				r.whole = o.compile(r, nil, t.Rule)
			}
			o.rules[slot] = r
			o.follow(slot)
		}
	}
}

func (o *overlay) compile(of *rule, up *clause, r *workflow.Rule) *clause {
	o.steps++
	n := &clause{of: of, up: up, rule: r}
	switch r.Op {
	case workflow.OpTask:
		o.terms[node{task: r.Task}] = append(o.terms[node{task: r.Task}], n)
		n.comes = o.term(n)
	case workflow.OpData:
		of.asks = true
		for _, name := range r.Data.Names() {
			o.terms[node{data: name}] = append(o.terms[node{data: name}], n)
		}
		n.comes = o.term(n)
	default:
		for _, arg := range r.Args {
			x := o.compile(of, n, arg)
			for k := range n.args {
				n.args[k].Count(x.comes[k], +1)
			}
		}
		for k := range n.args {
			n.comes[k] = n.args[k].Of(r.Op)
		}
	}
	return n
}

// term is what a term comes to.
func (o *overlay) term(n *clause) (comes [2]workflow.Finding) {
	v := asked{overlay: o, slot: n.of.slot, waits: o.def.Task(n.of.slot).TimeToWait > 0}
	comes[asItIs] = n.rule.Term(v)
	v.rests = true
	comes[atRest] = n.rule.Term(v)
	return comes
}

// hear has the terms about a task or a data item come to what they come to by now.
func (o *overlay) hear(about node) {
	for _, n := range o.terms[about] {
		for k, f := range o.term(n) {
			o.set(n, k, f)
		}
	}
}

// set notes what a clause comes to, and has those above it follow.
func (o *overlay) set(n *clause, k int, f workflow.Finding) {
	for o.steps++; f != n.comes[k]; o.steps++ {
		was := n.comes[k]
		if n.comes[k] = f; n.up == nil {
			o.follow(n.of.slot)
			return
		}
		n = n.up
		n.args[k].Count(was, -1)
		n.args[k].Count(f, +1)
		f = n.args[k].Of(n.rule.Op)
	}
}

// truth is what the slot's rule comes to.
func (r *rule) truth(k int) workflow.Truth {
	if r.whole == nil || r.whole.comes[k].Dropped {
		return workflow.True
	}
	return r.whole.comes[k].Truth
}

// follow brings up to date what a slot counts for, and whether it is to be blocked.
func (o *overlay) follow(slot workflow.TaskName) {
	r := o.rules[slot]
	if r == nil {
		return // the rules are not read yet
	}
	open := o.isOpen(slot)
	goesOn := o.def.Task(slot).TimeToWait > 0 || r.truth(asItIs) == workflow.True || o.begun(slot)
	active, forData := open && goesOn && !o.ends(slot), open && !goesOn && r.asks
	o.active += one(active) - one(r.active)
	o.forData += one(forData) - one(r.forData)
	r.active, r.forData = active, forData
	for k := range o.dead {
		if !r.waiting[k] && o.blocks(r, k) {
			r.waiting[k] = true
			heap.Push(&o.dead[k], r)
		}
	}
}

// ends reports whether a failure that is not answered yet will end its slot: be it blocked
// before, nothing is under way there any more once all are answered.
func (o *overlay) ends(slot workflow.TaskName) bool {
	f, failed := o.failed[slot]
	return failed && !o.has(slot) && respond(o.def, f).Kind != workflow.FailContingency
}

// blocks reports whether a slot, be it failed or not, can never begin any more after
// what was decided so far.
func (o *overlay) blocks(r *rule, k int) bool {
	return r.truth(k) == workflow.Impossible && o.mayBlock(r.slot) && o.waits(r.slot)
}

// block blocks the slots that can never begin any more, as far as that knot.
func (o *overlay) block(k, knot int) {
	for len(o.dead[k]) > 0 && o.dead[k][0].knot <= knot {
		o.steps++
		r := heap.Pop(&o.dead[k]).(*rule)
		if r.waiting[k] = false; o.blocks(r, k) {
			o.decide(r.slot, decision{succeeded: blocked})
		}
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// heaped is a heap of rules in the order of their knots.
type heaped []*rule

func (q heaped) Len() int { return len(q) }
func (q heaped) Less(i, j int) bool {
	return q[i].knot < q[j].knot || q[i].knot == q[j].knot && q[i].place < q[j].place
}
func (q heaped) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *heaped) Push(r any)   { *q = append(*q, r.(*rule)) }
func (q *heaped) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
