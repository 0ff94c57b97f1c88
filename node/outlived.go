package node

import (
	"context"
	"errors"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says whether what is done in a child still counts for the task that it was begun for.

// outlived is the task of another instance that an instance was begun for and that has ended without it; nil: there is
// none. Whoever has that instance knows it from there. Others conclude it from how this one stands: with a child that
// has failed, or is blocked or cancelled, its holder ends the task.
func (k *desk) outlived(ctx context.Context, id workflow.InstanceID) *worklists.Parent {
	sum, _ := k.index.Get(id)
	p, part := index.ReadPart(sum.Of)
	if !part {
		return nil
	}
	waits := true
	parent, here := k.index.Get(p.Instance)
	err := k.peek(ctx, p.Instance, func(h *held) {
		if sum.By == k.member.ID() {
			waits = h.m.Awaits(p.Attempt, p.Try)
		} else {
			waits = h.m.MayEnd(p.Attempt, p.Try)
		}
	})
	switch {
	case here && parent.Closed, errors.Is(err, kv.ErrNotFound) && sum.By == k.member.ID():
		waits = false
	case errors.Is(err, kv.ErrNotFound):
		_ = k.peek(ctx, id, func(h *held) { waits = !k.hasFailed(h) })
	}
	if waits {
		return nil
	}
	return &worklists.Parent{Instance: p.Instance, Task: p.Attempt.Slot}
}

// hasFailed reports whether an instance was cancelled, or has failed, or is blocked, and not only as others presume of
// partners that may be back: then its parent's task may wait for it.
func (k *desk) hasFailed(h *held) bool {
	if h.m.Overall() == workflow.InstanceCancelled {
		return true
	}
	in := api.Instance{State: h.m.Overall(), Asks: k.view.Asks(h.shown())}
	return (in.State == workflow.InstanceFailed || in.State == workflow.InstanceBlocked) && !h.m.AtWork() && !in.MayGoOn() &&
		!presumed(h.m, k.people.GoneForGood)
}

// withoutOutlived is an instance as it is shown, without what could be ordered of tasks of which the result would count
// nowhere any more.
func (k *desk) withoutOutlived(ctx context.Context, id workflow.InstanceID, in *api.Instance) *api.Instance {
	if in == nil || in.Parent == nil || in.State == workflow.InstanceSucceeded || k.outlived(ctx, id) == nil {
		return in
	}
	in.Parent.Ended, in.Asks, in.Overdue = true, nil, nil
	for i := range in.Incidents {
		in.Incidents[i].Commands = nil
	}
	return in
}

// presumed reports whether an instance has failed, or is blocked, only as others presume of partners that may be back,
// though they are out of reach for longer than their connection time.
func presumed(m *choreo.Machine, gone func(workflow.PartnerID) bool) bool {
	asks := m.Asks()
	return len(asks) > 0 && !slices.ContainsFunc(asks, func(a choreo.Asked) bool { return !a.Presumed || gone(a.Partner) })
}
