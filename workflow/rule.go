package workflow

// Truth is one of Kleene's three values, as they apply to a rule that is
// evaluated while its instance runs.
type Truth uint8

// The three values. The order matters: "and" is the least, "or" the greatest.
const (
	Impossible Truth = iota // can never hold any more
	Undecided
	True
)

func (t Truth) String() string { return [...]string{"impossible", "undecided", "true"}[t] }

// Finding is what a rule, or a term of it, comes to.
type Finding struct {
	Truth Truth
	// ByFailure marks an Impossible that traces to a failure: the task is
	// BLOCKED, not SKIPPED.
	ByFailure bool
	// BySuccess marks an Impossible failed(t) whose t has succeeded: the one
	// thing that disarms a task with time-to-wait.
	BySuccess bool
	// Dropped marks a term that a release took out of its "and" or "or". A
	// rule with nothing left is true.
	Dropped bool
}

// Op is the kind of a rule's node.
type Op uint8

// The kinds of rule nodes.
const (
	OpAnd Op = iota
	OpOr
	OpTask // a transition of a task
	OpData // an expression over data or the instance's age
)

// Rule is a rule in negation normal form: "not" stands only at leaves, inside
// the expression of a data leaf or as Negated at a task leaf. The expression
// library evaluates nothing but data leaves.
type Rule struct {
	Op   Op
	Args []*Rule // And, Or: at least one

	Transition Transition // Task
	Task       TaskName   // Task
	Negated    bool       // Task

	Data *Expr // Data: boolean
}

// View answers the leaves of a rule.
type View interface {
	// TaskTerm says whether the task's slot has made the transition, not negated.
	TaskTerm(tr Transition, t TaskName) Finding
	// DataTerm says what a boolean expression over data comes to.
	DataTerm(e *Expr) Finding
}

// Eval evaluates the rule in v: the "and" of findings is the least, the "or"
// the greatest, of those that were not dropped. A nil rule is true.
func (r *Rule) Eval(v View) Finding {
	if r == nil {
		return Finding{Truth: True}
	}
	f := r.eval(v)
	if f.Dropped {
		return Finding{Truth: True}
	}
	return f
}

// Term is what a leaf of a rule comes to in v.
func (r *Rule) Term(v View) Finding {
	if r.Op == OpData {
		return v.DataTerm(r.Data)
	}
	f := v.TaskTerm(r.Transition, r.Task)
	if r.Negated && !f.Dropped {
		f.Truth = True - f.Truth
		f.ByFailure = f.ByFailure && f.Truth == Impossible
	}
	return f
}

func (r *Rule) eval(v View) Finding {
	if r.Op == OpTask || r.Op == OpData {
		return r.Term(v)
	}
	out := Finding{Dropped: true}
	for _, a := range r.Args {
		f := a.eval(v)
		switch {
		case f.Dropped:
		case out.Dropped:
			out = f
		case (r.Op == OpAnd) == (f.Truth < out.Truth) && f.Truth != out.Truth:
			out = f
		case f.Truth == out.Truth:
			out.ByFailure = out.ByFailure || f.ByFailure
		}
	}
	return out
}

// Terms calls fn for every leaf of the rule.
func (r *Rule) Terms(fn func(*Rule)) {
	if r == nil {
		return
	}
	if r.Op == OpTask || r.Op == OpData {
		fn(r)
		return
	}
	for _, a := range r.Args {
		a.Terms(fn)
	}
}
