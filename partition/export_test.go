package partition

import "github.com/mutirao-mesh/mutirao/workflow"

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
