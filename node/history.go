package node

import (
	"context"
	"errors"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// outlook is what a step would lead to that recovers an instance, for a person who may order it.
func (k *desk) outlook(
	ctx context.Context, user, ref string, x api.RecoveryStep, w seeing,
) (out *api.Outlook, err error) {
	if user != "" { // else it is, where this node takes no part, whoever here decides about it
		who, err := k.persons.Who(user)
		if err != nil {
			return nil, err
		}
		user = who.ID
	}
	var no error
	err = k.lookAnywhere(ctx, ref, w, worklists.Look{What: wire.LookOutlook, Step: &x, User: user},
		func(h *held) { out, no = k.outlookFor(user, h, x) },
		func(seen *worklists.Seen) (err error) {
			out, err = show.ReadOutlook(seen.Parts...)
			return err
		})
	return out, errors.Join(err, no)
}

// outlookFor is what a step would lead to, for a person at this node.
func (k *desk) outlookFor(user string, h *held, x api.RecoveryStep) (*api.Outlook, error) {
	if !h.m.DrivenByData() {
		return nil, notDriven(h)
	}
	who, err := k.persons.Who(user)
	if err != nil {
		return nil, err
	}
	if p, known := k.partners.Person(worklist.User(who.ID)); !known || !h.m.MayOrder(p.User, p.Roles) {
		return nil, k.notDeciding(h.m.Responsible(), h.m.Definition(), h.m.Cancellable())
	}
	return k.outlookOf(h, x)
}

// outlookOf is what a step would lead to, as this node knows an instance.
func (k *desk) outlookOf(h *held, x api.RecoveryStep) (*api.Outlook, error) {
	if !h.m.DrivenByData() {
		return nil, notDriven(h)
	}
	step := dataflow.Step{
		Method: x.Method, Steps: x.Steps, Until: x.Until, When: x.When, Set: x.Set,
		From: x.From, Interruption: x.Interruption,
	}
	if err := stepGiven(h.m.Definition(), step); err != nil {
		return nil, err
	}
	o, err := h.m.ForeseeRecovery(step)
	if err != nil {
		return nil, err
	}
	return k.view.Outlook(h.shown(), &o), nil
}

// notDriven refuses what only an instance has that is driven by its data.
func notDriven(h *held) error {
	return api.Errorf(api.Refused, "workflow %s is not driven by its data, and so has no history of data states",
		h.def.Def.Name).
		WithHint("mutirao log %[1]s lists what happened, mutirao show %[1]s shows the data as they are now",
			h.m.Instance())
}

// states are the data states of an instance that is driven by its data.
func (k *desk) states(ctx context.Context, ref string, w seeing) (out []api.DataState, err error) {
	var no error
	err = k.lookAnywhere(ctx, ref, w, worklists.Look{What: wire.LookStates},
		func(h *held) { out, no = k.statesOf(h) },
		func(seen *worklists.Seen) (err error) {
			out, err = show.ReadStates(seen.Parts...)
			return err
		})
	return out, errors.Join(err, no)
}

// statesOf are the data states of an instance, as this node knows them.
func (k *desk) statesOf(h *held) ([]api.DataState, error) {
	if !h.m.DrivenByData() {
		return nil, notDriven(h)
	}
	return k.view.States(h.shown()), nil
}
