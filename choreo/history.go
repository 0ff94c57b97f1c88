package choreo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file shows a data-state flow (flow.go).

// StateView is a step of the history of an instance that is driven by its data.
type StateView struct {
	dataflow.Record
	// EquivalentTo is the first state before that satisfies the same conditions; -1: none.
	EquivalentTo int
	// Partner is who brought it about.
	Partner workflow.PartnerID
	// Values are the data of the state, or in which the transition was aborted.
	Values map[workflow.DataName]workflow.Value
	// Pending are the transitions that had been fired and had not ended when the state was there, of the current
	// state those that have not ended now.
	Pending []workflow.TaskName
}

// DrivenByData reports whether the instance is a data-state flow, and has a history.
func (m *Machine) DrivenByData() bool { return m.state.flow != nil }

// History is what the instance went through, in order. Nobody may change the records.
func (m *Machine) History() (out []StateView) {
	if m.state.flow == nil {
		return nil
	}
	b := m.state.flow.line.board
	now := map[workflow.DataName]workflow.Value{}
	for _, r := range b.History() {
		v := StateView{Record: r, EquivalentTo: -1}
		if r.Mark != dataflow.Aborted || r.ID != (dataflow.ID{}) {
			now = changed(now, r.Changed)
			v.EquivalentTo = b.EquivalentTo(r.Output)
		}
		v.Values = now
		if a := m.state.attempts[attemptOfJob(r.Job)]; a != nil {
			v.Partner = a.Partner
		} else if e := m.log.byID[FactID(r.ID)]; e != nil {
			v.Partner = e.fact.Chain.Author
		}
		out = append(out, v)
	}
	addPending(out, b)
	return out
}

// addPending says of each state what was pending in it: what a state fired is pending from there on, until it brings
// a state, or is aborted.
func addPending(history []StateView, b *dataflow.Board) {
	begins, ends := make([][]workflow.TaskName, b.State()+1), make([][]workflow.TaskName, b.State()+2)
	for _, v := range history {
		if v.FiredBy < 0 {
			continue
		}
		begins[v.FiredBy] = append(begins[v.FiredBy], v.Task)
		until := v.Output
		if v.Mark == dataflow.Aborted && v.Input < 0 {
			until++ // in the state in which it was aborted it was pending
		}
		ends[until] = append(ends[until], v.Task)
	}
	for _, p := range b.Pending() {
		begins[p.State] = append(begins[p.State], p.Task.Name)
	}
	pending := map[workflow.TaskName]int{} // how often: a state that is offered fires once more what was aborted
	for i := range history {
		v := &history[i]
		if v.Mark == dataflow.Aborted && v.Input < 0 {
			continue // it brought no state
		}
		for _, t := range ends[v.Output] {
			if pending[t]--; pending[t] == 0 {
				delete(pending, t)
			}
		}
		for _, t := range begins[v.Output] {
			pending[t]++
		}
		v.Pending = slices.Sorted(maps.Keys(pending))
	}
}

// changed are data with some of them changed. A state without changes shares those of the one before.
func changed(data, by map[workflow.DataName]workflow.Value) map[workflow.DataName]workflow.Value {
	if len(by) == 0 {
		return data
	}
	out := make(map[workflow.DataName]workflow.Value, len(data)+len(by))
	for n, v := range data {
		out[n] = v
	}
	for n, v := range by {
		if v == nil {
			delete(out, n)
		} else {
			out[n] = v
		}
	}
	return out
}

// Interrupted says why the instance is interrupted and waits for somebody to recover it; nil: it is not.
func (m *Machine) Interrupted() *dataflow.Interruption { return m.state.interruption() }

func (s *State) interruption() *dataflow.Interruption {
	if s.flow == nil || s.overall() != workflow.InstanceRunning {
		return nil
	}
	return s.flow.line.board.Interrupted()
}

// Shown is how the instance stands for people: an interrupted one still runs for all others.
func (m *Machine) Shown() workflow.InstanceState { return m.state.shownState() }

func (s *State) shownState() workflow.InstanceState {
	if s.interruption() != nil {
		return workflow.InstanceInterrupted
	}
	return s.overall()
}

// triggerView shows a trigger of the flow, by its newest transition.
func (s *State) triggerView(t *workflow.Task) TaskView {
	f := s.flow
	v := TaskView{Task: t, Partition: s.plan.Home(t.Name), Partner: f.slot.Current.Partner, State: workflow.NotReady}
	if a := f.latest[t.Name]; a != nil {
		v = s.attemptView(a, s.jobState(a))
		v.Attempt = a.fired.flow.Depth
	}
	pending := f.line.board.IsPending(t.Name)
	switch over := s.overall() != workflow.InstanceRunning; {
	case pending && v.State.Done():
		v.State = workflow.Ready
	case pending && v.State == workflow.NotReady:
		v.State = workflow.Ready
	case over && v.State == workflow.NotReady:
		v.State = workflow.Skipped
	}
	for _, x := range s.supersededJobs(t.Name) {
		v.Superseded = append(v.Superseded,
			SupersededView{
				Task: x.Task.Name, Partner: x.Partner, Attempt: x.fired.flow.Depth, Ended: x.success().fact.At,
				Compensation: x.compensation(),
			})
	}
	return v
}

// jobState says where a transition stands.
func (s *State) jobState(a *Attempt) workflow.State {
	switch pending := s.flow.pendingJob(a) != nil; {
	case a.success() != nil:
		return workflow.Succeeded
	case len(a.rulings) > 0:
		return workflow.Failed
	case !pending || s.cancel != nil:
		return workflow.Aborted
	case a.start != nil:
		return workflow.Running
	}
	return workflow.Ready
}

// supersededJobs are the transitions of a trigger that succeeded for nothing, the earliest first.
func (s *State) supersededJobs(t workflow.TaskName) (out []*Attempt) {
	for _, said := range s.flow.said {
		for _, e := range said {
			b := e.fact.Body.Success
			if b == nil {
				continue
			}
			if a := s.attempts[b.Attempt]; a.transition() && a.Task.Name == t && a.success() == e &&
				a.stands == superseded {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, func(x, y *Attempt) int { return byTime(x.success(), y.success()) })
	return out
}

// flowIncidents are what people should look at in a flow.
func (s *State) flowIncidents() (out []IncidentView) {
	if s.flow == nil {
		return nil
	}
	l := s.flow.line
	for _, r := range l.board.History() {
		for _, n := range r.Conflicts {
			out = append(out, IncidentView{
				At: r.Ended, Task: r.Task,
				What: fmt.Sprintf("it set %s, which was changed after the state that fired it", n),
			})
		}
	}
	var idle []*entry
	for e, why := range l.why {
		if e.fact.Body.Success == nil || why == dataflow.FinalTooEarly {
			idle = append(idle, e)
		}
	}
	slices.SortFunc(idle, byTime)
	for _, e := range idle[:min(len(idle), maxUncounted)] {
		out = append(out, IncidentView{
			At: e.fact.At, Who: e.fact.Chain.Author, What: "what it said of the flow changes nothing: " + l.why[e],
		})
	}
	for said := range s.flow.lost {
		out = append(out, s.undoIncidents(said)...)
	}
	slices.SortStableFunc(out, func(x, y IncidentView) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Task, y.Task))
	})
	return out
}

// Rejects says why no instance of a definition may begin with these data, beside those that have a
// default; empty: one may (docs/language.md, initial).
func Rejects(def *workflow.Definition, input map[workflow.DataName]workflow.Value) string {
	data := map[workflow.DataName]workflow.Value{}
	for i := range def.Data {
		if d := &def.Data[i]; d.Default != nil {
			data[d.Name] = d.Default
		}
	}
	for n, v := range input {
		data[n] = v
	}
	if f := dataflow.New(def); f != nil {
		return f.Rejects(data)
	}
	if def.Initial != nil && !dataflow.Holds(def.Initial, data) {
		return "its initial condition does not hold: " + def.Initial.Source
	}
	return breaksAtStart(def, data)
}
