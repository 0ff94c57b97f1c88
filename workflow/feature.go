package workflow

import (
	"cmp"
	"slices"
)

// FeatureUse is a part of the language that a definition uses, and where. A
// node that does not have its behaviour must refuse to start the definition
// rather than ignore it.
type FeatureUse struct {
	Feature string   // a key such as "time-to-wait", or "key: value"
	Task    TaskName // empty: the whole definition
	Line    int      // in the text that was parsed
	Col     int      // there
}

// FeatureAge is the use of instance.age in a rule, which no key shows.
const FeatureAge = "instance.age"

// Features lists the parts of the language that d uses beyond names, order and
// display, in the order of the text.
func Features(d *Definition) []FeatureUse { return slices.Clone(d.features) }

// Keys whose mere presence is a feature. The others say nothing (doc, form), are part
// of every workflow (after, when, application, with, in, out, data), or are
// listed by their value.
var (
	definitionFeatures = []string{
		"final", "initial", "creator-role", "responsible", "administrators", "warnings", "transfer", "resources",
	}
	taskFeatures = []string{
		"uses", "role", "needs", "timeout", "time-to-wait", "retries", "compensate", "reconcile", "deadline",
		"warnings", "transfer",
		"priority", "urgency", "suitability", "duration", "offline", "holds", "repeat", "on-conflict", "produces",
	}
)

func (r *reader) features() []FeatureUse {
	var out []FeatureUse
	add := func(t TaskName, n *node, feature string) {
		if n != nil {
			out = append(out, FeatureUse{feature, t, n.line, n.col})
		}
	}
	d := r.def
	for _, key := range definitionFeatures {
		if n := r.written(d, key); n != nil && !n.isNull() {
			add("", n, key)
		}
	}
	r.distributionFeatures(add)
	if d.Coordination == Orchestration {
		add("", r.written(d, "coordination"), "coordination: orchestration")
	}
	for _, decl := range r.scope.data {
		if decl.Type == TypeFile || decl.Type == TypeQuery {
			add("", r.written(decl, "type"), "data: "+string(decl.Type))
		}
	}
	for _, t := range d.Tasks {
		r.taskFeatures(t, add)
	}
	slices.SortStableFunc(out, func(a, b FeatureUse) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Feature, b.Feature))
	})
	return out
}

// distributionFeatures are the ways in which a definition says who gets work.
// Constraints of integrity and of allocation are two features under one key.
func (r *reader) distributionFeatures(add func(TaskName, *node, string)) {
	of := func(allocation bool) bool {
		return slices.ContainsFunc(r.def.Constraints,
			func(c Constraint) bool { return (c.Violated != nil) == allocation })
	}
	if n := r.written(r.def, "constraints"); n != nil && of(false) {
		add("", n, "constraints: when")
	}
	if r.def.Final != nil && r.def.Final.aged {
		add("", r.written(r.def, "final"), FeatureAge)
	}
	aged := func(c Constraint) bool { return c.When != nil && c.When.aged }
	if n := r.written(r.def, "constraints"); n != nil && slices.ContainsFunc(r.def.Constraints, aged) {
		add("", n, FeatureAge)
	}
	if n := r.written(r.def, "constraints"); n != nil && of(true) {
		add("", n, "constraints: violated")
	}
	for _, key := range []string{"mechanism", "dispatching", "compensate-violations", "learning", "notify", "patience", "relax",
		"urgency-growth"} {
		if n := r.written(&r.def.Distribution, key); n != nil && !n.isNull() {
			add("", n, "distribution: "+key)
		}
	}
}

func (r *reader) taskFeatures(t *Task, add func(TaskName, *node, string)) {
	for _, key := range taskFeatures {
		n := r.written(t, key)
		if n == nil || n.isNull() || n.value == false || key == "time-to-wait" && t.TimeToWait == 0 {
			continue
		}
		add(t.Name, n, key)
	}
	if t.Disabled && t.ContingencyOnly {
		add(t.Name, r.written(t, "enabled"), "enabled: contingency")
	} else if t.Disabled {
		add(t.Name, r.written(t, "enabled"), "enabled")
	}
	if t.Type != Automatic {
		add(t.Name, r.written(t, "type"), "type: "+string(t.Type))
	}
	if t.OnFailure != FailBlock {
		add(t.Name, r.contingencyNode(t), "on-failure: "+string(t.OnFailure))
	}
	aged := false
	t.Rule.Terms(func(leaf *Rule) { aged = aged || leaf.Op == OpData && len(leaf.Data.ages) > 0 })
	if aged {
		add(t.Name, r.written(t, "when"), FeatureAge)
	}
}
