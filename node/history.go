package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// renderHistory shows the data states of an instance.
func (vw *view) renderHistory(h *held) []api.DataState {
	out := []api.DataState{}
	for _, v := range h.m.History() {
		out = append(out, vw.renderState(h, v))
	}
	return out
}

// recovery is what may be done about an interruption; nil: there is none.
func (vw *view) recovery(h *held) *api.Recovery {
	x := h.m.Interrupted()
	if x == nil {
		return nil
	}
	methods, underWay := h.m.Recovery()
	return &api.Recovery{
		Cause: x.Cause, Task: x.Task, At: wire.AtMilli(x.At), State: x.State, Consistent: x.Consistent,
		Methods: append([]string{}, methods...), UnderWay: underWay,
	}
}

// outlook is what a step would lead to that recovers an instance.
func (k *desk) outlook(ctx context.Context, ref string, x api.RecoveryStep) (out *api.Outlook, err error) {
	step := dataflow.Step{Method: x.Method, Steps: x.Steps, Until: x.Until, When: x.When, Set: x.Set}
	var no error
	err = k.look(ctx, ref, func(h *held) {
		if !h.m.DrivenByData() {
			no = notDriven(h)
			return
		}
		var o dataflow.Outlook
		if o, no = h.m.ForeseeRecovery(step); no == nil {
			out = renderOutlook(h, &o)
		}
	}, k.onlyThere)
	return out, errors.Join(err, no)
}

// notDriven refuses what only an instance has that is driven by its data.
func notDriven(h *held) error {
	return api.Errorf(api.Refused, "workflow %s is not driven by its data: it has no task with repeat, and so no history of data states",
		h.def.Def.Name).
		WithHint("mutirao log %[1]s lists what happened, mutirao show %[1]s shows the data as they are now",
			h.m.Instance())
}

func renderOutlook(h *held, o *dataflow.Outlook) *api.Outlook {
	out := &api.Outlook{
		From: h.m.Interrupted().State, Undoes: []api.Undoing{}, State: o.State, Attributes: map[string]any{},
		Changed: []workflow.DataName{},
		Then:    api.ThenFires, Fires: append([]workflow.TaskName{}, o.Fires...), Cause: o.Cause,
		Methods: append([]string{}, o.Methods...),
	}
	for _, u := range o.Undoes {
		out.Undoes = append(out.Undoes, api.Undoing{Task: u.Task, State: u.State, Sure: u.Sure})
	}
	for _, d := range h.def.Def.Data {
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
func tellStep(person, reason string) string {
	x, err := dataflow.DecodeStep(reason)
	if err != nil {
		return person + " orders a recovery that cannot be read"
	}
	text := person + " recovers it: " + x.Method
	if x.Steps > 0 {
		text += fmt.Sprintf(", %d steps", x.Steps)
	}
	if x.Until != nil {
		text += fmt.Sprintf(", until S%d", *x.Until)
	}
	if x.When != "" {
		text += ", when " + x.When
	}
	for _, n := range slices.Sorted(maps.Keys(x.Set)) {
		value := "null"
		if x.Set[n] != nil {
			value = *x.Set[n]
		}
		text += fmt.Sprintf(", %s = %s", n, value)
	}
	return text
}

func (vw *view) renderState(h *held, v state.StateView) api.DataState {
	number := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	s := api.DataState{
		State: number(v.Output), EquivalentTo: number(v.EquivalentTo), Kind: string(v.Kind), FiredBy: number(v.FiredBy),
		Input: number(v.Input),
		Mark:  string(v.Mark), Status: string(v.Status),
		Attributes: map[string]any{}, Changed: []workflow.DataName{}, Conflicts: []workflow.DataName{},
		Pending: []workflow.TaskName{},
		Partner: vw.people.name(v.Partner), Ended: wire.AtMilli(v.Ended),
	}
	if v.Task != "" {
		s.Transition = &v.Task
	}
	if v.Kind != dataflow.Initial {
		s.Started = wire.Instant(v.Began)
	}
	if v.Mark == dataflow.Aborted && v.Input < 0 {
		s.State = nil // it brought none
	}
	for _, d := range h.def.Def.Data {
		s.Attributes[string(d.Name)] = v.Values[d.Name]
	}
	s.Changed = append(s.Changed, slices.Sorted(maps.Keys(v.Changed))...)
	s.Pending = append(s.Pending, v.Pending...)
	s.Conflicts = append(s.Conflicts, v.Conflicts...)
	return s
}
