package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// object is a JSON object in the making. Keys with the default value are left
// out, so that writing a default changes nothing.
type object map[string]any

func put[T comparable](o object, key string, v, usual T) {
	if v != usual {
		o[key] = v
	}
}

func (o object) span(key string, d time.Duration) {
	if d != 0 {
		o[key] = FormatDuration(d)
	}
}

func (o object) expr(key string, e *Expr) {
	if e != nil {
		o[key] = e.spelling
	}
}

// set puts names whose order means nothing.
func set[S ~string](o object, key string, names []S) {
	if len(names) > 0 {
		o[key] = slices.Sorted(slices.Values(names))
	}
}

// canonical prints a definition in the one spelling of its meaning: JSON with
// sorted keys, models written out, defaults left out. Loops are what repeat says
// of the tasks that end loops whose rounds are not written out yet.
func canonical(d *Definition, loops map[*Task]object) []byte {
	o := object{"workflow": d.Name}
	put(o, "version", d.Version, 0)
	put(o, "label", d.Label, "")
	put(o, "doc", d.Doc, "")
	put(o, "creator-role", d.CreatorRole, "")
	put(o, "responsible", d.Responsible, "")
	put(o, "administrators", d.Administrators, "")
	put(o, "coordination", d.Coordination, Choreography)
	o.expr("final", d.Final)
	o.expr("initial", d.Initial)
	o.spans("warnings", d.Warnings)
	o.span("transfer", d.Transfer)
	if len(d.Conditions) > 0 {
		all := object{}
		for _, c := range d.Conditions {
			all.expr(string(c.Name), c.Expr)
		}
		o["conditions"] = all
	}
	group(o, "data", d.Data, func(x DataDecl) string { return string(x.Name) }, canonicalData)
	group(o, "applications", d.Applications, func(x ApplicationDecl) string { return string(x.Name) },
		canonicalApplication)
	group(o, "tasks", d.Tasks, func(x *Task) string { return string(x.Name) }, func(t *Task) object {
		out := canonicalTask(t)
		if x := loops[t]; x != nil {
			out["repeat"] = x
		}
		return out
	})
	group(o, "partitions", d.Partitions, func(x PartitionDecl) string { return string(x.Name) }, canonicalPartition)
	group(o, "resources", d.Resources, func(x ResourceDecl) string { return string(x.Name) }, canonicalResource)
	if len(d.Constraints) > 0 {
		list := make([]object, len(d.Constraints))
		for i, c := range d.Constraints {
			list[i] = canonicalConstraint(c)
		}
		o["constraints"] = list
	}
	if distribution := canonicalDistribution(d.Distribution); len(distribution) > 0 {
		o["distribution"] = distribution
	}
	return encode(o)
}

func encode(o object) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		panic(fmt.Sprintf("workflow: canonical form: %v", err)) // all of it came from text
	}
	return bytes.TrimSpace(b.Bytes())
}

// group puts named things, if there are any.
func group[T any](o object, key string, list []T, name func(T) string, print func(T) object) {
	if len(list) == 0 {
		return
	}
	all := object{}
	for _, x := range list {
		all[name(x)] = print(x)
	}
	o[key] = all
}

func (o object) spans(key string, list []time.Duration) {
	if len(list) == 0 {
		return
	}
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = FormatDuration(d)
	}
	o[key] = words
}

func canonicalData(d DataDecl) object {
	o := object{"type": d.Type}
	put(o, "required", d.Required, false)
	put(o, "label", d.Label, "")
	put(o, "doc", d.Doc, "")
	put(o, "name", d.FileName, "")
	set(o, "readers", d.Readers)
	put(o, "database", d.Database, "")
	put(o, "expression", d.Expression, "")
	if d.Default != nil {
		o["default"] = d.Default
	}
	if len(d.Enum) > 0 {
		o["enum"] = d.Enum
	}
	if d.Min != nil {
		o["min"] = *d.Min
	}
	if d.Max != nil {
		o["max"] = *d.Max
	}
	return o
}

func canonicalApplication(a ApplicationDecl) object {
	o := object{}
	put(o, "size", a.Size, 0)
	put(o, "os", a.OS, "")
	put(o, "cpu", a.CPU, "")
	put(o, "installer", a.Installer, "")
	if len(a.Hosts) > 0 {
		o["hosts"] = a.Hosts
	}
	return o
}

func canonicalTask(t *Task) object {
	o := object{}
	put(o, "label", t.Label, "")
	put(o, "doc", t.Doc, "")
	set(o, "after", t.After)
	put(o, "when", t.when, "")
	put(o, "type", t.Type, Automatic)
	if t.Type != Automatic || t.Application != AppNoop {
		put(o, "application", t.Application, "")
	}
	if with := canonicalWith(t.With); len(with) > 0 {
		o["with"] = with
	}
	if t.Uses != nil {
		o["uses"] = canonicalUse(t.Uses)
	}
	put(o, "role", t.Role, "")
	set(o, "needs", t.Needs)
	set(o, "in", t.In)
	set(o, "out", t.Out)
	if len(t.Form) > 0 {
		o["form"] = t.Form
	}
	o.span("timeout", t.Timeout)
	o.span("time-to-wait", t.TimeToWait)
	canonicalFailure(o, t)
	o.spans("warnings", t.Warnings)
	o.span("transfer", t.Transfer)
	put(o, "priority", t.Priority, 0)
	put(o, "urgency", t.Urgency, DefaultUrgency)
	if len(t.Suitability) > 0 {
		o["suitability"] = t.Suitability
	}
	o.span("duration", t.Duration)
	put(o, "offline", t.Offline, false)
	set(o, "holds", t.Holds)
	put(o, "enabled", !t.Disabled, true)
	put(o, "repeat", t.Repeat, false)
	if t.RepeatTimes > 0 {
		o["repeat"] = object{"times": t.RepeatTimes}
	}
	put(o, "on-conflict", t.OnConflict, ConflictApply)
	canonicalProduces(o, t.Produces)
	return o
}

// canonicalProduces prints a data set: its name alone if there is no more to it.
func canonicalProduces(o object, p Produces) {
	if p.Valid == 0 && len(p.Readers) == 0 {
		put(o, "produces", p.Name, "")
		return
	}
	inner := object{"name": p.Name}
	inner.span("valid", p.Valid)
	set(inner, "readers", p.Readers)
	o["produces"] = inner
}

// canonicalFailure prints what a failure, a reversal or a deadline does.
func canonicalFailure(o object, t *Task) {
	if t.Retries.Times > 0 {
		o["retries"] = canonicalRetries(t.Retries)
	}
	put(o, "contingency", t.Contingency, "")
	if t.OnFailure == FailRelease {
		o["on-failure"] = t.OnFailure
	}
	if t.Compensate != nil {
		o["compensate"] = canonicalCompensation(t.Compensate)
	}
	put(o, "reconcile", t.Reconcile, KeepFirst)
	if t.Deadline != nil {
		o.span("deadline", t.Deadline.After)
		o.expr("deadline", t.Deadline.Expr)
	}
}

func canonicalCompensation(c *Compensation) object {
	o := object{}
	put(o, "application", c.Application, "")
	put(o, "task", c.Task, "")
	if with := canonicalWith(c.With); len(with) > 0 {
		o["with"] = with
	}
	return o
}

func canonicalRetries(r Retries) object {
	o := object{"times": r.Times}
	put(o, "backoff", FormatDuration(r.Backoff), FormatDuration(DefaultBackoff))
	put(o, "factor", r.Factor, DefaultFactor)
	put(o, "max", FormatDuration(r.Max), FormatDuration(DefaultMax))
	put(o, "jitter", r.Jitter, DefaultJitter)
	return o
}

func canonicalWith(w With) object {
	o := object{}
	for name, e := range w.Set {
		o.expr(string(name), e)
	}
	o.span("for", w.For)
	put(o, "reason", w.Reason, "")
	maps.Copy(o, w.Args)
	return o
}

func canonicalUse(u *Use) object {
	o := object{"workflow": u.Workflow}
	if len(u.Input) > 0 {
		input := object{}
		for name, e := range u.Input {
			input.expr(string(name), e)
		}
		o["input"] = input
	}
	return o
}

func canonicalPartition(p PartitionDecl) object {
	o := object{}
	put(o, "label", p.Label, "")
	set(o, "tasks", p.Tasks)
	put(o, "partner", p.Partner, "")
	set(o, "roles", p.Roles)
	set(o, "needs", p.Needs)
	o.span("timeout", p.Timeout)
	return o
}

func canonicalResource(x ResourceDecl) object {
	return object{"capacity": x.Capacity, "partition": x.Partition}
}

func canonicalConstraint(c Constraint) object {
	o := object{"name": c.Name}
	o.expr("when", c.When)
	o.expr("violated", c.Violated)
	put(o, "strict", c.Strict, false)
	if c.Violated != nil {
		o["penalty"] = c.Penalty
	}
	return o
}

func canonicalDistribution(d Distribution) object {
	o := object{}
	put(o, "mechanism", d.Mechanism, "")
	put(o, "dispatching", d.Dispatching, "")
	put(o, "compensate-violations", d.CompensateViolations, false)
	put(o, "learning", !d.NoLearning, true)
	o.span("patience", d.Patience)
	put(o, "relax", d.Relax, false)
	put(o, "urgency-growth", d.UrgencyGrowth, 0)
	put(o, "notify", d.Notify, "")
	if d.NotifyN > 0 {
		o["notify"] = fmt.Sprintf("%s %d", d.Notify, d.NotifyN)
	}
	return o
}
