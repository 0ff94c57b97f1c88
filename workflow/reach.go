package workflow

// maxClauses bounds the search for a way in which a rule can hold. A rule with
// more ways is taken to be reachable.
const maxClauses = 1024

// checkReach reports rules that can never hold. It reports only what is certain.
func (r *reader) checkReach() {
	for _, t := range r.def.Tasks {
		if t.TimeToWait > 0 {
			continue // it starts when the wait ends
		}
		if _, ways := r.def.ways(t.Rule); ways == 0 {
			r.on(r.where(t, "when"), "what one part asks, another excludes", "the rule of %s can never hold", t.Name)
		}
	}
}

// clause is one way in which a rule can hold: leaves that hold together.
type clause []*Rule

// ways lists how a rule can hold; more than maxClauses are not listed.
func (d *Definition) ways(r *Rule) (list []clause, count int) {
	if r == nil {
		return []clause{nil}, 1
	}
	switch r.Op {
	case OpOr:
		for _, a := range r.Args {
			some, n := d.ways(a)
			if n > maxClauses {
				return nil, n
			}
			list = append(list, some...)
		}
	case OpAnd:
		list = []clause{nil}
		for _, a := range r.Args {
			some, n := d.ways(a)
			if n*len(list) > maxClauses {
				return nil, maxClauses + 1
			}
			list = d.together(list, some)
		}
	default:
		if !neverHolds(r) {
			list = []clause{{r}}
		}
	}
	return list, len(list)
}

func neverHolds(leaf *Rule) bool {
	if leaf.Op != OpData || !leaf.Data.constant {
		return false
	}
	v, err := leaf.Data.Eval(Env{})
	return err != nil || v != true
}

// together joins every way of one rule with every way of another and drops the
// contradictions.
func (d *Definition) together(a, b []clause) []clause {
	var out []clause
	for _, x := range a {
		for _, y := range b {
			if joined, ok := d.join(x, y); ok {
				out = append(out, joined)
			}
		}
	}
	return out
}

func (d *Definition) join(x, y clause) (clause, bool) {
	for _, p := range x {
		for _, q := range y {
			if d.contradict(p, q) {
				return nil, false
			}
		}
	}
	return append(append(clause{}, x...), y...), true
}

// contradict tells whether two leaves exclude each other. A term on a task
// whose failure releases may be dropped from the rule, so it excludes nothing.
func (d *Definition) contradict(p, q *Rule) bool {
	if p.Op != OpTask || q.Op != OpTask || p.Task != q.Task || d.mayRelease(p.Task) {
		return false
	}
	if p.Transition == q.Transition {
		return p.Negated != q.Negated
	}
	opposite := p.Transition == BecameSucceeded && q.Transition == BecameFailed ||
		p.Transition == BecameFailed && q.Transition == BecameSucceeded
	return opposite && !p.Negated && !q.Negated
}

// mayRelease tells whether the failure of a task, or of a contingency in its
// place, releases.
func (d *Definition) mayRelease(name TaskName) bool {
	seen := map[TaskName]bool{}
	for t := d.Task(name); t != nil && !seen[t.Name]; t = d.Task(t.Contingency) {
		if t.OnFailure == FailRelease {
			return true
		}
		seen[t.Name] = true
	}
	return false
}
