package show

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Instance shows an instance with the partners' names.
func (vw *View) Instance(h *Held) *api.Instance {
	snap := h.M.Snapshot()
	g := h.M.Genesis().Body.Genesis
	out := &api.Instance{
		ID: h.M.Instance().String(), Workflow: h.Def.Name, Version: h.M.Definition().Version, State: snap.State,
		Label: h.M.Definition().Label, Amended: vw.renderAmendments(h), Subject: Subject(h), Duplicated: snap.Duplicated,
		Incidents: []api.Incident{}, Conflicts: []api.Conflict{}, Coordination: g.Coordination,
		Mechanism: string(h.M.Mechanism()), Responsible: vw.Partners.AnswersFor(h.M), Notify: h.M.Policy().String(),
		Administrators: h.M.Definition().Administrators,
		Started:        wire.AtMilli(snap.Started), Ended: wire.Instant(h.Ended), Data: map[string]any{},
	}
	if _, known := vw.Partners.Person(h.M.Responsible()); !known ||
		vw.People.GoneForGood(workflow.PartnerID(h.M.Responsible())) {
		out.ResponsibleGone = true
	}
	if p := h.M.Parent(); p != nil {
		out.Parent = &api.Parent{
			Instance: p.Instance.String(), Task: p.Attempt.Slot, Attempt: p.Attempt.String(), Try: p.Try,
		}
	}
	for _, i := range slices.Concat(snap.Incidents, vw.lost(h)) {
		what := i.What
		switch who := vw.People.Label(i.Who); {
		case i.User != "" && vw.Partners.Called(i.User) != who:
			what = fmt.Sprintf("%s at %s: %s", vw.Partners.Called(i.User), who, what)
		case i.Who != "":
			what = who + ": " + what
		}
		out.Incidents = append(out.Incidents, api.Incident{At: wire.AtMilli(i.At), What: what, Task: i.Task})
	}
	for i, what := range vw.Untaken(h) {
		out.Incidents = append(out.Incidents, api.Incident{At: h.Refused[i].At, What: what})
	}
	for _, d := range h.M.Definition().Data {
		if !h.tells(d.Name) || snap.Data[d.Name] == nil && h.M.Definition().OfRounds(d.Name) {
			continue // it says nothing until it is set
		}
		out.Data[string(d.Name)] = snap.Data[d.Name]
		if d.Label != "" {
			if out.DataLabels == nil {
				out.DataLabels = map[string]string{}
			}
			out.DataLabels[string(d.Name)] = d.Label
		}
		if text, is := snap.Data[d.Name].(string); is && d.Type == workflow.TypeFile && vw.Files.Concerns(h.Def) {
			if f, err := workflow.ParseFile(text); err == nil && vw.Files.OnlyHere(h, d.Name, f) {
				out.OnlyHere = append(out.OnlyHere, d.Name)
			}
		}
		if vs, ok := snap.Conflicts[d.Name]; ok {
			out.Conflicts = append(out.Conflicts, api.Conflict{Data: d.Name, Values: vs})
		}
	}
	for _, t := range h.M.Definition().Tasks {
		if t.Label != "" {
			if out.TaskLabels == nil {
				out.TaskLabels = map[string]string{}
			}
			out.TaskLabels[string(t.Name)] = t.Label
		}
	}
	for _, p := range snap.Partitions {
		now := vw.names(p.Now)
		v := api.Partition{
			Name: p.Name, Partner: now[0], Also: now[1:], Attempt: 1, State: string(p.State), Why: vw.renderWhy(p.Why),
		}
		if decl := h.M.Definition().Partition(p.Name); decl != nil {
			v.Label = decl.Label
		}
		if !slices.Equal(p.Now, []workflow.PartnerID{p.First}) {
			v.First = vw.People.Name(p.First)
		}
		if d := h.M.Plan().Timeout(p.Name); d > 0 {
			text := d.String()
			v.Timeout = &text
		}
		out.Partitions = append(out.Partitions, v)
	}
	for _, t := range snap.Tasks {
		v := vw.renderTask(t)
		if t.Awaits != "" {
			v.Reason += vw.obstacle(h, t.Awaits)
		}
		for _, why := range []string{vw.waitsInVain(h, t), vw.waitsForRole(h, t), vw.waitsForFiles(h, t)} {
			if why != "" {
				v.Reason = strings.TrimPrefix(v.Reason+"; "+why, "; ")
			}
		}
		v.Away = vw.absentHolder(t)
		maps.DeleteFunc(v.Outputs, func(d string, _ any) bool { return !h.tells(workflow.DataName(d)) })
		out.Tasks = append(out.Tasks, v)
	}
	vw.dateTasks(h, snap.Tasks, out.Tasks)
	vw.addDues(h, out)
	out.Asks, out.DataDriven, out.Recovery = vw.Asks(h), h.M.DrivenByData(), vw.recovery(h)
	if h.Only != nil {
		out.Recovery = nil // it names data states with their values
	}
	vw.addClaims(h, snap.Tasks, out)
	vw.addWorkers(h, snap.Tasks, out.Tasks)
	out.Overdue, out.Undoable = vw.Overdue(h), h.M.Undoable()
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

// Deadlines are those of an instance.
func (vw *View) Deadlines(h *Held, now moment.Now) []state.Deadline {
	if !h.M.Dated() {
		return nil
	}
	return h.M.Deadlines(choreo.Moment{Boot: now.Boot, Wall: now.Wall}, vw.Reckoning())
}

// Reckoning is what this node knows that deadlines are reckoned with.
func (vw *View) Reckoning() choreo.Reckoning {
	return choreo.Reckoning{Ahead: vw.Ahead, Gone: vw.Partners.Gone, Known: func(u worklist.User) bool {
		_, known := vw.Partners.Person(u)
		return known
	}}
}

// addDues adds how much time is left.
func (vw *View) addDues(h *Held, in *api.Instance) {
	now := vw.Clock.Now()
	dues := h.M.Dues(choreo.Moment{Boot: now.Boot, Wall: now.Wall}, vw.Partners)
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
	for _, d := range vw.Deadlines(h, now) {
		for i := range in.Tasks {
			if t := &in.Tasks[i]; t.Name == d.Task.Name && !t.State.Done() {
				about := d.Partner != vw.Self && d.Due.At.IsZero()
				if in, passes := d.Passes(); passes {
					t.Due = append(t.Due, render([]choreo.Due{{Kind: choreo.DueTransfer, Left: in, Held: about}})...)
				}
				t.Due = append(t.Due, render([]choreo.Due{{Kind: choreo.DueDeadline, Left: d.Left, Held: about}})...)
			}
		}
	}
	for i, p := range in.Partitions {
		in.Partitions[i].Due = render(dues.Partitions[p.Name])
	}
}

// Asks are the failures of an instance about which something can be ordered, with the commands that do it.
func (vw *View) Asks(h *Held) (out []api.Ask) {
	id := h.M.Instance().String()
	for _, a := range h.M.Asks() {
		x := api.Ask{Task: a.Task, Label: h.M.Definition().LabelOf(a.Task), Partner: vw.People.Name(a.Partner), Presumed: a.Presumed, Left: a.Left}
		x.Item = worklists.ItemID(h.M.Instance(), a.Item)
		x.Lost = !a.Presumed && vw.People.GoneForGood(a.Partner)
		may := func(order string) {
			x.Orders = append(x.Orders, order)
			x.Commands = append(x.Commands, fmt.Sprintf("mutirao task %s %s %s", order, id, a.Task))
		}
		if !a.Presumed || vw.Partners.Gone(a.Partner) { // any partner that takes part does that in its place
			may(api.TaskAgain)
			may(api.TaskSkip)
			x.Commands[len(x.Commands)-1] += " --reason WHY"
		}
		if !a.Presumed && !x.Lost && !a.Left {
			may(api.TaskContinue)
		}
		if h.M.Cancellable() {
			x.Orders = append(x.Orders, api.TaskCancel)
			x.Commands = append(x.Commands, "mutirao cancel "+id)
		}
		out = append(out, x)
	}
	return out
}
