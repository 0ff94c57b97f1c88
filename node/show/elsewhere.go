package show

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ReadInstance reads an instance as a partner shows it. It is not taken on trust,
// since drawings and pages are made of it.
func ReadInstance(b []byte, id workflow.InstanceID) (*api.Instance, error) {
	var in api.Instance
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("shows what cannot be read: %w", err)
	}
	if in.ID != id.String() || slices.ContainsFunc(in.Tasks, func(t api.Task) bool { return !isState(t.State) }) {
		return nil, errors.New("shows something else")
	}
	in.Told, in.OnlyHere = nil, nil // "here" is at that partner
	plainLabels(&in)
	return &in, nil
}

// plainLabels leaves out what is no label, though the partner calls something so: people read labels in place of names,
// in lists and drawings as well, which have room for one line.
func plainLabels(in *api.Instance) {
	in.Label = ifLabel(in.Label)
	for i := range in.Tasks {
		in.Tasks[i].Label = ifLabel(in.Tasks[i].Label)
	}
	for i := range in.Partitions {
		in.Partitions[i].Label = ifLabel(in.Partitions[i].Label)
	}
	for i := range in.Asks {
		in.Asks[i].Label = ifLabel(in.Asks[i].Label)
	}
	for i := range in.Overdue {
		in.Overdue[i].Label = ifLabel(in.Overdue[i].Label)
	}
	if in.Recovery != nil {
		in.Recovery.Label = ifLabel(in.Recovery.Label)
	}
	in.TaskLabels, in.DataLabels = ifLabels(in.TaskLabels), ifLabels(in.DataLabels)
}

// ifLabel is a text if it may be a label.
func ifLabel(s string) string {
	if s == "" || workflow.LabelRule(s) != "" {
		return ""
	}
	return s
}

// ifLabels are those that may be labels, of not more than a definition has.
func ifLabels(of map[string]string) map[string]string {
	if len(of) > workflow.MaxTasks {
		return nil
	}
	maps.DeleteFunc(of, func(_, label string) bool { return ifLabel(label) == "" })
	return of
}

// isState reports whether a task can be in a state.
func isState(s workflow.State) bool {
	return s.Done() || s == workflow.NotReady || s == workflow.Ready || s == workflow.Running
}

// ReadLog reads an instance's log as a partner shows it, in parts.
func ReadLog(parts ...[]byte) (out []api.LogEntry, err error) {
	if out, err = readList[api.LogEntry](parts); err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Label = ifLabel(out[i].Label)
	}
	return out, nil
}

// ReadStates reads the data states of an instance as a partner shows them, in parts.
func ReadStates(parts ...[]byte) ([]api.DataState, error) { return readList[api.DataState](parts) }

func readList[T any](parts [][]byte) ([]T, error) {
	out := []T{}
	for _, b := range parts {
		var more []T
		if err := json.Unmarshal(b, &more); err != nil {
			return nil, fmt.Errorf("shows what cannot be read: %w", err)
		}
		out = append(out, more...)
	}
	return out, nil
}

// ReadOutlook reads what a step of recovery would lead to, as a partner says.
func ReadOutlook(parts ...[]byte) (*api.Outlook, error) {
	out, err := ReadOne[api.Outlook](parts)
	if err == nil {
		out.Label = ifLabel(out.Label)
	}
	return out, err
}

// ReadOne reads something else that a partner shows of an instance.
func ReadOne[T any](parts [][]byte) (*T, error) {
	var out *T
	switch {
	case len(parts) != 1 || json.Unmarshal(parts[0], &out) != nil:
		return nil, errors.New("shows what cannot be read")
	case out == nil:
		return nil, errors.New("shows nothing")
	}
	return out, nil
}

// Redate says as of when an instance is known that a partner showed just now. Of what
// it holds itself that is now; of what others hold, it says when it heard from them.
func (vw *View) Redate(in *api.Instance) {
	now := vw.Clock.Now().Wall
	for i := range in.Tasks {
		t := &in.Tasks[i]
		if t.Partner == in.Told.By.Name || (t.AsOf != nil && t.AsOf.After(now)) {
			t.AsOf = &now
		}
		switch old := t.Known != "" && t.Partner != in.Told.By.Name; {
		case t.AsOf != nil:
			t.Known = vw.known(*t.AsOf, old)
		default:
			t.Known = vw.known(time.Time{}, old)
		}
	}
	if r := in.Recovery; r != nil {
		switch {
		case r.AsOf == nil && r.Known == "", r.AsOf != nil && r.AsOf.After(now): // it keeps the data states
			r.AsOf, r.Known = &now, ""
		case r.AsOf != nil:
			r.Known = vw.known(*r.AsOf, r.Known != "")
		default:
			r.Known = vw.known(time.Time{}, true)
		}
	}
}
