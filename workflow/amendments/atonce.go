package amendments

import (
	"maps"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about what an instance does at once that takes a change, by the data that there are.

// AtOnce says what else than to go on by it an instance that stands so does at once with a change that it takes: by the
// data that there are a strict constraint is broken, or its end has come, that was not so before.
func AtOnce(old, changed *workflow.Definition, at *Standing) (out []Finding) {
	j := judge{old: old, changed: changed, at: at}
	flows, stopped := changed.Flow() != nil, at.State == workflow.InstanceInterrupted
	var broken bool
	for _, c := range changed.Constraints {
		if !c.Strict || c.When == nil || j.holds(c.When) {
			continue
		}
		if broken = true; j.broke(c) {
			continue
		}
		f := Finding{
			Part: Part{OfConstraint, c.Name}, Key: "when",
			Why:  "the data that there are break it: no task begins that has not, as long as they do",
			Next: "have a task under way, or mutirao task again, bring others; or amend it without that",
		}
		switch {
		case flows && stopped:
			f.Why = "the state that there is breaks it: it can only be left by a jump then"
			f.Next = "mutirao recover shows that"
		case flows:
			f.Why = "the state that there is breaks it: the instance is interrupted at once, and all that runs is called off"
			f.Next = "mutirao recover leads out of it; or amend it without that"
		}
		out = append(out, f)
	}
	if stopped || broken || j.final(old) || !j.final(changed) {
		return out
	}
	f := Finding{
		Part: Part{Kind: OfWorkflow}, Key: "final", Why: "it holds of the data that there are: what has not begun is not done",
	}
	if flows {
		f.Why = "the state that there is satisfies it: the instance ends at once, or once what is pending has ended"
	}
	return append(out, f)
}

// broke reports whether the data broke a strict constraint before that is called so.
func (j *judge) broke(now workflow.Constraint) bool {
	for _, c := range j.old.Constraints {
		if c.Name == now.Name && c.Strict && c.When != nil {
			return !isTrue(c.When, j.at.Data)
		}
	}
	return false
}

// final reports whether a definition's final condition holds in the state that there is.
func (j *judge) final(def *workflow.Definition) bool { return def.Final != nil && j.holds(def.Final) }

// holds reports whether a condition is true of the data that there are, with the defaults of those that are new.
func (j *judge) holds(e *workflow.Expr) bool {
	data := maps.Clone(j.at.Data)
	for _, d := range j.changed.Data {
		if j.old.Datum(d.Name) == nil && d.Default != nil {
			if data == nil {
				data = map[workflow.DataName]workflow.Value{}
			}
			data[d.Name] = d.Default
		}
	}
	return isTrue(e, data)
}

func isTrue(e *workflow.Expr, data map[workflow.DataName]workflow.Value) bool {
	v, err := e.Eval(workflow.Env{Data: data})
	return err == nil && v == true
}
