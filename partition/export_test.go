package partition

import (
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Candidate says whether a partner can take something, and why.
type Candidate struct {
	Partner Partner
	Able    bool
	Why     string
}

// Candidates says of each partner whether it can take a partition of the plan:
// only if it can perform the types and needs of all its tasks. The able come
// first, in the order in which Assign prefers them; then the others, those that
// lack least first. It is empty if there is no such partition.
func Candidates(plan *Plan, name workflow.PartitionName, partners []Partner) []Candidate {
	part := plan.Partition(name)
	if part == nil {
		return nil
	}
	u := plan.unitOf(part)
	var out []Candidate
	for _, c := range u.contenders(partners, nil) {
		out = append(out, Candidate{c.Partner, c.able(), u.why(c)})
	}
	return out
}

func (u *unit) why(c contender) string {
	switch {
	case len(c.lacks) > 0:
		return "lacks " + list(c.lacks)
	case c.Down:
		return "is going down"
	case len(u.demands) == 0:
		return "nothing is asked of its holder"
	}
	return "has " + list(u.demands)
}

// Edge leads from a task to one that waits for it, in one way or another.
type Edge struct {
	From, To workflow.TaskName
	Kind     EdgeKind
}

// Edges lists all edges, in rule order of their tasks.
func (p *Plan) Edges() (edges []Edge) {
	for i, arcs := range p.graph.out {
		for _, a := range arcs {
			edges = append(edges, Edge{p.graph.tasks[i].Name, p.graph.tasks[a.task].Name, a.kind})
		}
	}
	return edges
}

// Crossing lists the edges that lead from one partition to another: what costs
// a message. Contingencies that are not placed anywhere take no part.
func (p *Plan) Crossing() (out []Edge) {
	for _, e := range p.Edges() {
		if from, to := p.Home(e.From), p.Home(e.To); from != "" && to != "" && from != to {
			out = append(out, e)
		}
	}
	return out
}

// WorstCase is the latest moment, since the start of the instance, at which t
// is ready or known never to be; ok is false when there is no such bound.
func (p *Plan) WorstCase(t workflow.TaskName) (since time.Duration, ok bool) {
	return p.bound(t, p.bounds.readyAt)
}
