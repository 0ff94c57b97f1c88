package show

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

func (vw *View) renderTask(t state.TaskView) api.Task {
	v := api.Task{
		Name: t.Task.Name, Label: t.Task.Label, Role: t.Task.Role, Partition: t.Partition, Attempt: t.Attempt,
		State: t.State, ResponseImmediate: t.Immediate,
		Started: wire.Instant(t.Started), Ended: wire.Instant(t.Ended), Outputs: map[string]any{},
		TriggerFired: t.TriggerFired, Reason: t.Reason, Undoes: t.Undoes,
		Superseded: []api.Superseded{}, Why: vw.renderWhy(t.Why), WaitsFor: worklists.Lacks(t.WaitsFor),
		Shared: worklists.Shared(t.Shared),
	}
	if t.State == workflow.NotReady {
		v.Started = nil // somebody may have locked it ahead, and nobody works on it yet
	}
	if t.Partner != "" {
		v.Partner = vw.People.Name(t.Partner)
	}
	if t.Child != (workflow.InstanceID{}) {
		v.Child = t.Child.String()
	}
	if t.PresumedBy != "" {
		v.PresumedBy = vw.People.Name(t.PresumedBy)
		v.Reason = fmt.Sprintf("it goes on here, and %s presumed that it failed: %s", vw.People.Label(t.PresumedBy),
			t.Reason)
	}
	if t.ContingencyOf != "" {
		v.ContingencyOf = &t.ContingencyOf
	}
	if t.ReplacedBy != "" {
		v.ReplacedBy = &t.ReplacedBy
	}
	if x := t.StandIn; x != nil {
		v.StandIn = &api.StandIn{Partner: vw.People.Name(x.Partner), State: x.State}
	}
	if d := t.Dropped; d != nil {
		v.Dropped = &api.Dropped{
			DataSet: d.DataSet, Hash: hex.EncodeToString(d.Hash[:]), Holder: vw.People.Name(d.Holder),
		}
		v.Reason = fmt.Sprintf("dropped: its only purpose, data set %s, exists (%x, from %s)", d.DataSet, d.Hash[:5],
			v.Dropped.Holder)
	}
	for k, val := range t.Outputs {
		v.Outputs[string(k)] = val
	}
	for _, s := range t.Superseded {
		v.Superseded = append(v.Superseded,
			api.Superseded{Task: s.Task, Partner: vw.People.Name(s.Partner), Attempt: s.Attempt,
				Ended:       wire.AtMilli(s.Ended),
				Compensated: s.Compensation == state.CompensationDone, Compensation: string(s.Compensation)})
	}
	return v
}

// renderWhy shows how an assignment came about.
func (vw *View) renderWhy(w *fact.Why) *api.Why {
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
			Partner: vw.Partners.Called(worklist.User(c.Partner)), Suitability: f.Suitability, Urgency: f.Urgency,
			Conformance: f.Conformance, Availability: f.Availability,
			AbsAlloc: math.Round(f.AbsAlloc()*1000) / 1000, Verdict: string(c.Verdict),
		})
	}
	return out
}

// obstacle says what keeps everybody from taking a task now, and what would have
// to change; nothing where somebody is able.
func (vw *View) obstacle(h *Held, t workflow.TaskName) string {
	partners, _ := vw.Partners.Candidates(h.M.Definition(), partition.PlainRule, nil)
	_, err := partition.AssignTasks(h.M.Plan(), partners, vw.Self, t)
	if err == nil {
		return ""
	}
	return fmt.Sprintf(": %v", err)
}

// waitsInVain says why nothing may come of a task that is at another partner; empty:
// there is no reason known here.
func (vw *View) waitsInVain(h *Held, t state.TaskView) string {
	p, self := t.Partner, vw.Self
	if t.State != workflow.Ready && t.State != workflow.Running || p == "" || p == self {
		return ""
	}
	who, why := vw.People.Label(p), ""
	switch x, known := vw.People.Get(p); {
	case !known:
		who, why = string(p), "who is not on the partner list"
	case x.State == membership.Evicted:
		why = "who was evicted"
	case x.State == membership.Left:
		why = "who has left the mesh"
	case x.State == membership.Expired:
		why = "who was not heard of for its connection-time"
	case x.Absent():
		why = "who is away since " + x.Since.String() + " and said to be back by about " + x.Until.String()
	case h.M.Forked(p):
		why = "whose facts do not count: two of them have one number"
	default:
		return ""
	}
	return "it waits for " + who + ", " + why
}

// waitsForRole says that nobody can do a person's task that is at another partner, by who has which roles as far as is
// known here; empty: somebody can, or it is here, where its holder says more (choreo.Snapshot).
func (vw *View) waitsForRole(h *Held, t state.TaskView) string {
	if t.Partner == "" || t.Partner == vw.Self || t.State != workflow.Ready || !t.Task.ByRole() ||
		h.M.WithSomebody(t.ID, func() bool { return false }) || slices.Contains(vw.Partners.Roles(), t.Task.Role) {
		return ""
	}
	return fmt.Sprintf("it waits for somebody to perform it: %v", partition.NobodyFor(t.Task))
}

// waitsForFiles says which files a task waits for that is here, and which a partner may not read that does one without
// people: that one waits for ever, and others are to know it; empty: none.
func (vw *View) waitsForFiles(h *Held, is state.TaskView) string {
	t, begins, here := is.Task, is.State == workflow.Ready || is.State == workflow.Running, is.Partner == vw.Self
	if begins && here && t.Uses != nil {
		return vw.ChildsFile(h.M.Instance(), is.ID)
	}
	if !begins || !here && !t.ByNode() || !vw.Files.Concerns(h.Def) {
		return ""
	}
	var out []string
	for _, r := range h.M.FilesOf(t) {
		if !here {
			if only := vw.Files.OnlyFor(h, is.Partner, r.Item, r.File); only != nil {
				out = append(out, fmt.Sprintf("%s may not read file %s, which it waits for: only %s may",
					vw.People.Name(is.Partner), r.File.Name, strings.Join(only, ", ")))
			}
		} else if words := vw.Files.Waits(h, r.Item, r.File); words != "" {
			out = append(out, fmt.Sprintf("waits for file %s: %s", r.File.Name, words))
		}
	}
	return strings.Join(out, "; ")
}

// lost are the files that nobody has any more: those that people's tasks here read, and those that no task reads and
// that this node looks after. What to do about that is for whoever does the task, which may be done without, and of
// the others for those who need them, so nothing is written down; a program's task fails.
func (vw *View) lost(h *Held) (out []state.IncidentView) {
	if !vw.Files.Concerns(h.Def) {
		return nil
	}
	for _, r := range h.M.FilesToRead() {
		why, at, lost := vw.Files.Lost(h.M.Instance(), r.File)
		if !lost {
			continue
		}
		for _, t := range h.M.PeopleRead(r.Item) {
			out = append(out, state.IncidentView{At: at.UnixMilli(), What: string(t) + ": " + why, Task: t, Who: vw.Self})
		}
	}
	for _, l := range vw.Files.LostData(h) {
		out = append(out, state.IncidentView{At: l.At.UnixMilli(), What: l.What, Who: vw.Self})
	}
	return out
}

// workerCalled is a worker in words for people.
func (vw *View) workerCalled(l *fact.Lease) string {
	if l.At == "" {
		return "worker " + l.Worker
	}
	return "worker " + l.Worker + " at " + vw.People.Label(l.At)
}

// addWorkers adds to an instance which worker has which job, and how far it is, as far as that is known here.
func (vw *View) addWorkers(h *Held, views []state.TaskView, tasks []api.Task) {
	for i, v := range views {
		t := &tasks[i]
		if v.Lease != nil {
			t.Worker = vw.worker(v.Lease, v.LeasedAt)
		}
		if v.State != workflow.Running || v.Partner != vw.Self {
			continue
		}
		if vw.Works(h.M.Instance(), v.ID, t.Worker) {
			t.WaitsForWorker, t.Worker = true, nil
		}
	}
}

// worker is who was given a job, as the fact says.
func (vw *View) worker(l *fact.Lease, at int64) *api.JobWorker {
	out := &api.JobWorker{Name: l.Worker, Since: time.UnixMilli(at).UTC()}
	if l.At != "" {
		out.At = vw.People.Label(l.At)
	}
	return out
}
