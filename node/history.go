package node

import (
	"context"
	"errors"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/show"
)

// outlook is what a step would lead to that recovers an instance.
func (k *desk) outlook(ctx context.Context, ref string, x api.RecoveryStep) (out *api.Outlook, err error) {
	step := dataflow.Step{Method: x.Method, Steps: x.Steps, Until: x.Until, When: x.When, Set: x.Set}
	var no error
	err = k.look(ctx, ref, func(h *held) {
		if !h.m.DrivenByData() {
			no = notDriven(h)
			return
		}
		if no = stepGiven(h.m.Definition(), step); no != nil {
			return
		}
		var o dataflow.Outlook
		if o, no = h.m.ForeseeRecovery(step); no == nil {
			out = show.Outlook(h.shown(), &o)
		}
	}, k.onlyThere)
	return out, errors.Join(err, no)
}

// notDriven refuses what only an instance has that is driven by its data.
func notDriven(h *held) error {
	return api.Errorf(api.Refused, "workflow %s is not driven by its data, and so has no history of data states",
		h.def.Def.Name).
		WithHint("mutirao log %[1]s lists what happened, mutirao show %[1]s shows the data as they are now",
			h.m.Instance())
}

// states are the data states of an instance that is driven by its data.
func (k *desk) states(ctx context.Context, ref string) (out []api.DataState, err error) {
	var none error
	err = k.look(ctx, ref, func(h *held) {
		if h.m.DrivenByData() {
			out = k.view.States(h.shown())
		} else {
			none = notDriven(h)
		}
	}, k.onlyThere)
	if err == nil {
		err = none
	}
	return out, err
}
