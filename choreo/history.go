package choreo

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// DrivenByData reports whether the instance is a data-state flow, and has a history.
func (m *Machine) DrivenByData() bool { return m.state.Flow() != nil }

// History is what the instance went through, in order. Nobody may change the records.
func (m *Machine) History() (out []state.StateView) {
	if m.state.Flow() == nil {
		return nil
	}
	b := m.state.Flow().Line.Board
	now := map[workflow.DataName]workflow.Value{}
	for _, r := range m.state.FlowRecords() {
		v := state.StateView{Record: r, EquivalentTo: -1}
		v.Values = changed(now, r.Changed)
		if r.Brought() {
			now = v.Values
			v.EquivalentTo = b.EquivalentTo(r.Output)
		}
		if a := m.state.Attempts()[state.AttemptOfJob(r.Job)]; a != nil {
			v.Partner = a.Partner
		} else if e := m.log.ByID()[fact.ID(r.ID)]; e != nil {
			v.Partner, v.User = e.Fact.Chain.Author, e.Speaker().User
		}
		out = append(out, v)
	}
	var pending []*dataflow.Pending
	if m.state.Cancelled() == nil {
		pending = b.Pending()
	}
	addPending(out, b.State(), pending)
	return out
}

// Superseded is what does not count of what the instance went through, as another history does, in order. Nobody may
// change the records.
func (m *Machine) Superseded() []state.StateView {
	if m.state.Flow() == nil {
		return nil
	}
	return m.state.SupersededStates()
}

// Offered are the steps of recovery that offered the state, in order.
func (m *Machine) Offered() []state.OfferedView {
	if m.state.Flow() == nil {
		return nil
	}
	return m.state.OfferedSteps()
}

// addPending says of each state what was pending in it: what a state fired is pending from there on, until it brings
// a state, or is aborted. What is pending now has not ended in the last state.
func addPending(history []state.StateView, last int, now []*dataflow.Pending) {
	begins, ends := make([][]workflow.TaskName, last+1), make([][]workflow.TaskName, last+2)
	for _, v := range history {
		if v.FiredBy < 0 {
			continue
		}
		begins[v.FiredBy] = append(begins[v.FiredBy], v.Task)
		until := v.Output
		if !v.Brought() {
			until++ // in the state in which it was aborted it was pending
		}
		ends[until] = append(ends[until], v.Task)
	}
	for _, p := range now {
		begins[p.State] = append(begins[p.State], p.Task.Name)
	}
	pending := map[workflow.TaskName]int{} // how often: a state that is offered fires once more what was aborted
	for i := range history {
		v := &history[i]
		if !v.Brought() {
			continue
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
func (m *Machine) Interrupted() *dataflow.Interruption { return m.state.Interruption() }

// Shown is how the instance stands for people: an interrupted one still runs for all others.
func (m *Machine) Shown() workflow.InstanceState { return m.state.ShownState() }

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

// breaksAtStart says which strict constraint the data break with which an instance would begin; empty: none.
func breaksAtStart(def *workflow.Definition, data map[workflow.DataName]workflow.Value) string {
	for _, c := range def.Constraints {
		if c.When != nil && c.Strict && !dataflow.Holds(c.When, data) {
			return fmt.Sprintf("the data with which it begins break the constraint %s: %s", c.Name, c.When.Source)
		}
	}
	return ""
}

// Outcomes are how the attempts of an instance ended that its performers began:
// those that succeeded, and those that their performer or its clock gave up. A
// performer that was only out of reach has not failed by that, nor has one that
// was called off.
func (m *Machine) Outcomes() []state.Outcome {
	var out []state.Outcome
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			if o, ok := m.state.Outcome(a); ok {
				out = append(out, o)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y state.Outcome) int { return int(min(max(x.Began-y.Began, -1), 1)) })
	return out
}
