package show

import (
	"encoding/json"
	"errors"
	"fmt"
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
	in.Told = nil
	return &in, nil
}

// isState reports whether a task can be in a state.
func isState(s workflow.State) bool {
	return s.Done() || s == workflow.NotReady || s == workflow.Ready || s == workflow.Running
}

// ReadLog reads an instance's log as a partner shows it.
func ReadLog(b []byte) (out []api.LogEntry, err error) {
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("shows what cannot be read: %w", err)
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
}
