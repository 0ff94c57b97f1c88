package node

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// render shows an instance with the partners' names.
func (vw *view) render(h *held) *api.Instance {
	snap := h.m.Snapshot()
	g := h.m.Genesis().Body.Genesis
	out := &api.Instance{
		ID: h.m.Instance().String(), Workflow: h.def.Def.Name, Version: h.m.Definition().Version, State: snap.State,
		Label: h.m.Definition().Label, Amended: vw.renderAmendments(h), Subject: subject(h), Duplicated: snap.Duplicated,
		Incidents: []api.Incident{}, Conflicts: []api.Conflict{}, Coordination: g.Coordination,
		Mechanism: string(h.m.Mechanism()), Responsible: vw.partners.AnswersFor(h.m), Notify: h.m.Policy().String(),
		Started: wire.AtMilli(snap.Started), Ended: wire.Instant(h.sum.Ended), Data: map[string]any{},
	}
	if p := h.m.Parent(); p != nil {
		out.Parent = &api.Parent{
			Instance: p.Instance.String(), Task: p.Attempt.Slot, Attempt: p.Attempt.String(), Try: p.Try,
		}
	}
	for _, i := range slices.Concat(snap.Incidents, vw.lost(h)) {
		what := i.What
		if i.Who != "" {
			what = vw.people.label(i.Who) + ": " + what
		}
		out.Incidents = append(out.Incidents, api.Incident{At: wire.AtMilli(i.At), What: what, Task: i.Task})
	}
	for _, p := range slices.Sorted(maps.Keys(h.refused)) {
		out.Incidents = append(out.Incidents, api.Incident{At: h.refused[p].at, What: vw.refusedBy(p, h.refused[p])})
	}
	for _, d := range h.def.Def.Data {
		out.Data[string(d.Name)] = snap.Data[d.Name]
		if d.Label != "" {
			if out.DataLabels == nil {
				out.DataLabels = map[string]string{}
			}
			out.DataLabels[string(d.Name)] = d.Label
		}
		if vs, ok := snap.Conflicts[d.Name]; ok {
			out.Conflicts = append(out.Conflicts, api.Conflict{Data: d.Name, Values: vs})
		}
	}
	for _, p := range snap.Partitions {
		now := vw.people.names(p.Now)
		v := api.Partition{
			Name: p.Name, Partner: now[0], Also: now[1:], Attempt: 1, State: string(p.State), Why: vw.renderWhy(p.Why),
		}
		if decl := h.m.Definition().Partition(p.Name); decl != nil {
			v.Label = decl.Label
		}
		if !slices.Equal(p.Now, []workflow.PartnerID{p.First}) {
			v.First = vw.people.name(p.First)
		}
		if d := h.m.Plan().Timeout(p.Name); d > 0 {
			v.Timeout = d.String()
		}
		out.Partitions = append(out.Partitions, v)
	}
	for _, t := range snap.Tasks {
		v := vw.renderTask(t)
		if t.Awaits != "" {
			v.Reason += vw.obstacle(h, t.Awaits)
		}
		for _, why := range []string{vw.waitsInVain(h, t), vw.waitsForFiles(h, t)} {
			if why != "" {
				v.Reason = strings.TrimPrefix(v.Reason+"; "+why, "; ")
			}
		}
		out.Tasks = append(out.Tasks, v)
	}
	vw.dateTasks(h, snap.Tasks, out.Tasks)
	vw.addDues(h, out)
	vw.addClaims(h, out)
	vw.addWorkers(h, snap.Tasks, out.Tasks)
	out.Asks, out.DataDriven, out.Recovery = vw.asks(h), h.m.DrivenByData(), vw.recovery(h)
	out.Undoable = h.m.Undoable()
	out.Quality = quality(out)
	return out
}

// quality is that of the tasks that are done by somebody whom a mechanism chose, or let see them; nil: there is none.
func quality(in *api.Instance) *api.Quality {
	var q aptitude.Quality
	n := 0
	for _, t := range in.Tasks {
		why := t.Why
		if i := slices.IndexFunc(in.Partitions,
			func(p api.Partition) bool { return p.Name == t.Partition }); why == nil && i >= 0 {
			why = in.Partitions[i].Why
		}
		if t.State != workflow.Succeeded || t.Dropped != nil || why == nil {
			continue
		}
		who := cmp.Or(t.PerformedBy, t.Partner)
		at := slices.IndexFunc(why.Candidates, func(c api.Candidate) bool {
			return c.Partner == who && (c.Verdict == string(aptitude.Chosen) || c.Verdict == string(aptitude.Entitled))
		})
		if at < 0 {
			continue
		}
		of := func(c api.Candidate) float64 { return c.Suitability * c.Conformance }
		best := 0.0
		for _, c := range why.Candidates {
			best = max(best, of(c))
		}
		q.Add(of(why.Candidates[at]), best)
		n++
	}
	if n == 0 {
		return nil
	}
	round := func(x float64) float64 { return math.Round(x*1000) / 1000 }
	return &api.Quality{Actual: round(q.Actual), Ideal: round(q.Ideal), Total: round(q.Total()), Tasks: n}
}

// deadlines are those of an instance.
func (vw *view) deadlines(h *held, now moment.Now) []state.Deadline {
	if !h.m.Dated() {
		return nil
	}
	return h.m.Deadlines(choreo.Moment{Boot: now.Boot, Wall: now.Wall}, vw.ahead)
}

// addDues adds how much time is left.
func (vw *view) addDues(h *held, in *api.Instance) {
	now := vw.clock.Now()
	dues := h.m.Dues(choreo.Moment{Boot: now.Boot, Wall: now.Wall}, vw.partners)
	render := func(list []choreo.Due) []api.Due {
		out := []api.Due{}
		for _, d := range list {
			out = append(out, api.Due{
				Kind: string(d.Kind), At: now.Wall.Add(d.Left).Round(time.Second),
				Left: max(d.Left, 0).Round(time.Second).String(), About: d.Held,
			})
		}
		return out
	}
	for i, t := range in.Tasks {
		in.Tasks[i].Due = render(dues.Tasks[t.Name])
	}
	for _, d := range vw.deadlines(h, now) {
		for i := range in.Tasks {
			if t := &in.Tasks[i]; t.Name == d.Task.Name && !t.State.Done() {
				t.Due = append(t.Due, render([]choreo.Due{{Kind: choreo.DueDeadline, Left: d.Left,
					Held: d.Partner != vw.member.ID() && d.Due.At.IsZero()}})...)
			}
		}
	}
	for i, p := range in.Partitions {
		in.Partitions[i].Due = render(dues.Partitions[p.Name])
	}
}

// obstacle says what keeps everybody from taking a task now, and what would have
// to change; nothing where somebody is able.
func (vw *view) obstacle(h *held, t workflow.TaskName) string {
	partners, _ := vw.partners.Candidates(h.m.Definition(), partition.PlainRule, nil)
	_, err := partition.AssignTasks(h.m.Plan(), partners, vw.member.ID(), t)
	if err == nil {
		return ""
	}
	return fmt.Sprintf(": %v", err)
}

// waitsInVain says why nothing may come of a task that is at another partner; empty:
// there is no reason known here.
func (vw *view) waitsInVain(h *held, t state.TaskView) string {
	p, self := t.Partner, vw.member.ID()
	if t.State != workflow.Ready && t.State != workflow.Running || p == "" || p == self {
		return ""
	}
	who, why := vw.people.label(p), ""
	switch x, known := vw.people.Get(p); {
	case !known:
		who, why = string(p), "who is not on the partner list"
	case x.State == membership.Evicted:
		why = "who was evicted"
	case x.State == membership.Left:
		why = "who has left the mesh"
	case x.State == membership.Expired:
		why = "who was not heard of for its connection-time"
	case h.m.Forked(p):
		why = "whose facts do not count: two of them have one number"
	default:
		return ""
	}
	return "it waits for " + who + ", " + why
}

func (vw *view) renderTask(t state.TaskView) api.Task {
	v := api.Task{
		Name: t.Task.Name, Label: t.Task.Label, Partition: t.Partition, Attempt: t.Attempt, State: t.State, ResponseImmediate: t.Immediate,
		Started: wire.Instant(t.Started), Ended: wire.Instant(t.Ended), Outputs: map[string]any{},
		TriggerFired: t.TriggerFired, Reason: t.Reason,
		Superseded: []api.Superseded{}, Why: vw.renderWhy(t.Why), WaitsFor: worklists.Lacks(t.WaitsFor),
	}
	if t.Partner != "" {
		v.Partner = vw.people.name(t.Partner)
	}
	if t.Child != (workflow.InstanceID{}) {
		v.Child = t.Child.String()
	}
	if t.PresumedBy != "" {
		v.PresumedBy = vw.people.name(t.PresumedBy)
		v.Reason = fmt.Sprintf("it goes on here, and %s presumed that it failed: %s", vw.people.label(t.PresumedBy),
			t.Reason)
	}
	if t.ContingencyOf != "" {
		v.ContingencyOf = &t.ContingencyOf
	}
	if t.ReplacedBy != "" {
		v.ReplacedBy = &t.ReplacedBy
	}
	if x := t.StandIn; x != nil {
		v.StandIn = &api.StandIn{Partner: vw.people.name(x.Partner), State: x.State}
	}
	if d := t.Dropped; d != nil {
		v.Dropped = &api.Dropped{
			DataSet: d.DataSet, Hash: hex.EncodeToString(d.Hash[:]), Holder: vw.people.name(d.Holder),
		}
		v.Reason = fmt.Sprintf("dropped: its only purpose, data set %s, exists (%x, from %s)", d.DataSet, d.Hash[:5],
			v.Dropped.Holder)
	}
	for k, val := range t.Outputs {
		v.Outputs[string(k)] = val
	}
	for _, s := range t.Superseded {
		v.Superseded = append(v.Superseded,
			api.Superseded{Task: s.Task, Partner: vw.people.name(s.Partner), Attempt: s.Attempt,
				Ended:       wire.AtMilli(s.Ended),
				Compensated: s.Compensation == state.CompensationDone, Compensation: string(s.Compensation)})
	}
	return v
}

// renderWhy shows how an assignment came about.
func (vw *view) renderWhy(w *fact.Why) *api.Why {
	if w == nil {
		return nil
	}
	out := &api.Why{
		Mechanism: string(w.Mechanism), Reason: w.Reason, Threshold: w.Threshold.Share(), Load: w.Share.Share(),
		Candidates: []api.Candidate{}, Others: w.Others,
	}
	for _, c := range w.Candidates {
		f := c.Factors()
		out.Candidates = append(out.Candidates, api.Candidate{
			Partner: vw.partners.Called(worklist.User(c.Partner)), Suitability: f.Suitability, Urgency: f.Urgency,
			Conformance: f.Conformance, Availability: f.Availability,
			AbsAlloc: math.Round(f.AbsAlloc()*1000) / 1000, Verdict: string(c.Verdict),
		})
	}
	return out
}

// renderLog shows the facts in words.
func (vw *view) renderLog(h *held) []api.LogEntry {
	var out []api.LogEntry
	for _, f := range h.m.Facts() {
		e := api.LogEntry{
			At: wire.AtMilli(f.Fact.At), Time: f.Time, Fact: f.ID.String(), Author: vw.people.name(f.Fact.Chain.Author),
			Seq:  f.Fact.Seq,
			Kind: f.Fact.Body.Kind(), Counted: f.Counted,
		}
		e.Task, e.Text = vw.describe(h, &f)
		e.Label = labelOf(h, e.Task)
		if !f.Counted {
			e.Text += " (does not count)"
		}
		out = append(out, e)
	}
	return out
}

// labelOf is what people call a task; empty: by its name.
func labelOf(h *held, t workflow.TaskName) string {
	if x := h.m.Definition().Task(t); x != nil {
		return x.Label
	}
	return ""
}

// maxNamed bounds the results that a line of the log names.
const maxNamed = 12

// describe says in words what a fact says.
func (vw *view) describe(h *held, f *state.FactView) (workflow.TaskName, string) {
	b := &f.Fact.Body
	name := func(a fact.AttemptID) workflow.TaskName {
		if t, _ := h.m.AttemptTask(a); t != workflow.FlowTask {
			return t
		}
		return "" // the flow as a whole is no task that anybody wrote
	}
	try := func(t int) string {
		if t > 1 {
			return fmt.Sprintf(", try %d", t)
		}
		return ""
	}
	undoing := func(a fact.AttemptID) string {
		if h.m.Compensates(a) {
			return "compensation "
		}
		return ""
	}
	switch {
	case b.Genesis != nil:
		var parts []string
		for _, a := range b.Genesis.Assign {
			parts = append(parts, string(a.Partition)+" at "+vw.people.label(a.Partner))
		}
		return "", "instance created: " + strings.Join(parts, ", ")
	case b.Ready != nil && b.Ready.Trigger:
		return name(b.Ready.Attempt), "emergency trigger fired"
	case b.Ready != nil:
		return name(b.Ready.Attempt), "ready: its rule about data holds"
	case b.Start != nil:
		text := undoing(b.Start.Attempt) + "started" + try(b.Start.Try)
		if b.Start.Attempt.Slot == workflow.FlowTask {
			return "", "keeps the data states from here on"
		}
		if on := f.BuiltUpon; len(on) > 0 {
			text += ", building upon " + strings.Join(texts(on[:min(len(on), maxNamed)]), ", ")
			if more := len(on) - maxNamed; more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
		}
		if b.Success != nil {
			text += ", and succeeded at once" + outputs(b.Success.Outputs)
		}
		return name(b.Start.Attempt), text
	case b.Success != nil && b.Success.Attempt.Slot == workflow.FlowTask:
		return "", "the data state is final"
	case b.Success != nil:
		return name(b.Success.Attempt), undoing(b.Success.Attempt) + "succeeded" + try(b.Success.Try) +
			outputs(b.Success.Outputs)
	case b.TryFailed != nil:
		return name(b.TryFailed.Attempt),
			undoing(b.TryFailed.Attempt) + fmt.Sprintf("try %d failed: %s", b.TryFailed.Try, b.TryFailed.Reason)
	case b.Child != nil:
		return name(b.Child.Attempt), undoing(b.Child.Attempt) + "done by instance " + b.Child.Instance.String()
	case b.Lease != nil:
		return name(b.Lease.Attempt), undoing(b.Lease.Attempt) + "given to " + vw.workerCalled(b.Lease) +
			try(b.Lease.Try)
	case b.Verdict != nil:
		return vw.tellVerdict(b.Verdict, h.m, name)
	case b.Assign != nil && b.Annex != nil && b.Annex.Offered:
		return b.Assign.Task, "given to " + vw.people.label(b.Assign.Partner) + ", to perform it"
	case b.Assign != nil && b.Assign.Verdict.IsZero():
		text := "rejected, and passed on to " + vw.people.label(b.Assign.Partner)
		if b.Annex != nil && b.Annex.Rejected != "" {
			text += ": " + b.Annex.Rejected
		}
		return b.Assign.Task, text
	case b.Assign != nil && b.Annex != nil && b.Annex.Order != nil && h.m.Orders(*b.Annex.Order) == worklist.Skip:
		return b.Assign.Task, "left out by " + vw.people.label(b.Assign.Partner) + ", by that order"
	case b.Assign != nil && b.Annex != nil && b.Annex.Order != nil:
		return b.Assign.Task, "done once more by " + vw.people.label(b.Assign.Partner) + ", by that order"
	case b.Assign != nil:
		return b.Assign.Task, "assigned to " + vw.people.label(b.Assign.Partner) + " in place of " +
			string(name(b.Assign.After))
	case b.CalledOff != nil:
		return name(b.CalledOff.Attempt), "called off: it is not needed any more"
	case b.Cancel != nil:
		return "", strings.TrimSuffix("instance cancelled: "+b.Cancel.Reason, ": ")
	case b.Seen != nil:
		return "", "has seen what was known"
	}
	if b.Fire != nil {
		return vw.tellFire(b.Fire)
	}
	if b.Aged != nil {
		return "", "the instance is " + workflow.FormatDuration(b.Aged.Age.Truncate(time.Second)) +
			" old, as conditions ask for it"
	}
	if b.Claim != nil {
		return vw.describeClaim(b.Claim, f.Speaker, name)
	}
	return "", "nobody is to wait for " + vw.people.label(b.WriteOff.Partner) + " any more"
}

// tellFire says which transitions a data state fired.
func (vw *view) tellFire(b *fact.Fire) (workflow.TaskName, string) {
	if !b.Undoes.IsZero() {
		return b.Tasks[0], "its compensation began"
	}
	if len(b.Tasks) == 1 {
		return b.Tasks[0], "fired by the data state, and begun"
	}
	return "", "fired by the data state, and begun: " + strings.Join(texts(b.Tasks), ", ")
}

func (vw *view) tellVerdict(
	v *fact.Verdict, m *choreo.Machine, name func(fact.AttemptID) workflow.TaskName,
) (workflow.TaskName, string) {
	var what []string
	for _, a := range v.Actions {
		text := fmt.Sprintf("%s failed, %s", name(a.Attempt), a.Kind)
		if a.Attempt.Slot == workflow.FlowTask {
			who := "nobody yet"
			if a.Partner != "" {
				who = vw.people.label(a.Partner)
			}
			what = append(what, "the holder of the data states is lost, and "+who+" goes on with them")
			continue
		}
		if m.Compensates(a.Attempt) {
			text = "compensation of " + string(a.Attempt.Slot) + " failed"
		}
		if a.Task != "" {
			who := "nobody yet"
			if a.Partner != "" {
				who = vw.people.label(a.Partner)
			}
			text += fmt.Sprintf(" %s by %s", a.Task, who)
		}
		what = append(what, text)
	}
	text := fmt.Sprintf("%s (%s)", strings.Join(what, "; "), v.Cause)
	if v.Office != nil {
		text = fmt.Sprintf("%s (%s, by the coordinator of term %d)", strings.Join(what, "; "), v.Cause, v.Office.Term)
	}
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	if len(v.Actions) == 1 {
		return name(v.Actions[0].Attempt), text
	}
	return "", text
}

func outputs(out map[workflow.DataName]workflow.Value) string {
	var parts []string
	for k, v := range out {
		parts = append(parts, fmt.Sprintf("%s = %s", k, rendered(v)))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// maxRendered is how much of a list or map the log shows, in columns: show has all of it.
const maxRendered = 200

// rendered is a value in the log.
func rendered(v workflow.Value) string {
	switch v.(type) {
	case []any, map[string]any:
		if text, err := json.Marshal(v); err == nil {
			return plain.Cut(string(text), maxRendered)
		}
	}
	return fmt.Sprint(v)
}
