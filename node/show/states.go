package show

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// States shows the data states of an instance. What does not count stands among them where its time is, and what brought
// none by itself before what came of it.
func (vw *View) States(h *Held) []api.DataState {
	out := []api.DataState{}
	aside, offered := h.M.Superseded(), h.M.Offered()
	for i, v := range h.M.History() {
		for len(aside) > 0 && aside[0].Ended < v.Ended {
			out = append(out, vw.renderState(h, aside[0]))
			aside = aside[1:]
		}
		for len(offered) > 0 && offered[0].After <= i {
			out = append(out, vw.renderState(h, offered[0].StateView))
			offered = offered[1:]
		}
		out = append(out, vw.renderState(h, v))
	}
	for _, v := range offered {
		out = append(out, vw.renderState(h, v.StateView))
	}
	for _, v := range aside {
		out = append(out, vw.renderState(h, v))
	}
	return out
}

func (vw *View) renderState(h *Held, v state.StateView) api.DataState {
	number := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	s := api.DataState{
		State: number(v.Output), EquivalentTo: number(v.EquivalentTo), Kind: string(v.Kind), FiredBy: number(v.FiredBy),
		Input: number(v.Input),
		Mark:  string(v.Mark), Compensation: string(v.Compensation), Status: string(v.Status), Reason: v.Reason,
		Attributes: map[string]any{}, Changed: []workflow.DataName{}, Conflicts: []workflow.DataName{},
		Pending: []workflow.TaskName{},
		Partner: vw.People.Name(v.Partner), Ended: wire.AtMilli(v.Ended),
	}
	if v.Task != "" {
		s.Transition = &v.Task
	}
	if v.User != "" {
		s.User = vw.Partners.Called(v.User)
	}
	if v.Kind != dataflow.Initial {
		s.Started = wire.Instant(v.Began)
	}
	if !v.Brought() {
		s.State = nil
	}
	if v.Output < 0 { // of all others nobody knows what they were
		for n, x := range v.Values {
			s.Attributes[string(n)] = x
		}
	} else {
		for _, d := range h.M.Definition().Data {
			s.Attributes[string(d.Name)] = v.Values[d.Name]
		}
	}
	s.Changed = append(s.Changed, slices.Sorted(maps.Keys(v.Changed))...)
	s.Pending = append(s.Pending, v.Pending...)
	s.Conflicts = append(s.Conflicts, v.Conflicts...)
	return s
}

// recovery is what may be done about an interruption; nil: there is none.
func (vw *View) recovery(h *Held) *api.Recovery {
	x := h.M.Interrupted()
	if x == nil {
		return nil
	}
	methods, underWay := h.M.Recovery()
	at, known, _ := vw.Oldest(h)
	return &api.Recovery{
		AsOf: at, Known: known,
		Cause: x.Cause, Since: x.Since, Task: x.Task, Label: h.M.Definition().LabelOf(x.Task), At: wire.AtMilli(x.At),
		State: x.State, Consistent: x.Consistent,
		Methods: append([]string{}, methods...), UnderWay: underWay, Data: declared(h),
	}
}

// declared are the data that an instance tells of, as it declares them by now.
func declared(h *Held) (out []api.Declared) {
	for _, d := range h.M.Definition().Data {
		if h.tells(d.Name) {
			out = append(out, api.Declared{
				Name: d.Name, Type: d.Type, Doc: d.Doc, Enum: d.Enum, Min: d.Min, Max: d.Max,
			})
		}
	}
	return out
}

// Outlook is what a step of recovery would lead to.
func (vw *View) Outlook(h *Held, o *dataflow.Outlook) *api.Outlook {
	out := &api.Outlook{
		Interruption: fact.ID(h.M.Interrupted().By).String(),
		From:         h.M.Interrupted().State, Undoes: []api.Undoing{}, State: o.State, Attributes: map[string]any{},
		Changed: []workflow.DataName{},
		Then:    api.ThenFires, Fires: append([]workflow.TaskName{}, o.Fires...), Cause: o.Cause, Since: o.Since,
		Methods: append([]string{}, o.Methods...), Task: o.Task, Label: h.M.Definition().LabelOf(o.Task),
	}
	for _, u := range o.Undoes {
		out.Undoes = append(out.Undoes, api.Undoing{Task: u.Task, State: u.State, Sure: u.Sure})
	}
	for _, r := range o.Beside {
		out.Beside = append(out.Beside, api.Beside{
			Task: r.Task, Label: h.M.Definition().LabelOf(r.Task), Mark: string(r.Mark),
		})
	}
	for _, r := range o.Jumped {
		out.Jumped = append(out.Jumped, api.JumpedOver{
			Task: r.Task, Label: h.M.Definition().LabelOf(r.Task), State: r.Output,
		})
	}
	for _, d := range h.M.Definition().Data {
		out.Attributes[string(d.Name)] = o.Values[d.Name]
	}
	out.Changed = append(out.Changed, slices.Sorted(maps.Keys(o.Changed))...)
	if o.Like >= 0 {
		out.Like = &o.Like
	}
	switch {
	case o.Final:
		out.Then = api.ThenFinal
	case o.Cause != "":
		out.Then = api.ThenInterrupted
	}
	return out
}

// tellStep says in words what was ordered to recover an instance.
func (h *Held) tellStep(person, reason string) string {
	x, err := dataflow.DecodeStep(reason)
	if err != nil {
		return person + " orders a recovery that cannot be read"
	}
	text := person + " recovers it: " + x.Method
	if x.Steps > 0 {
		text += fmt.Sprintf(", %d step", x.Steps)
		if x.Steps > 1 {
			text += "s"
		}
	}
	if x.Until != nil {
		text += fmt.Sprintf(", until S%d", *x.Until)
	}
	if x.When != "" && h.Only == nil {
		text += ", when " + x.When
	}
	for _, n := range slices.Sorted(maps.Keys(x.Set)) {
		if !h.tells(n) {
			continue
		}
		value := "null"
		if x.Set[n] != nil {
			value = *x.Set[n]
		}
		text += fmt.Sprintf(", %s = %s", n, value)
	}
	return text
}
