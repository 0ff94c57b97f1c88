package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is what users at this node do with tasks that it holds.

// writeOff has nobody wait for a partner before superseded work is undone; with check it only says whether it may.
func (k *desk) writeOff(ctx context.Context, ref, who string, check bool) error {
	p, err := k.people.resolveWhole(who)
	if err != nil {
		return err
	}
	return k.with(ctx, ref, func(s *shard, h *held) error {
		if check {
			return h.m.MayWriteOff(p)
		}
		err := h.m.WriteOff(p, s.moment())
		s.touch(h)
		return err
	})
}

// mayPerform refuses a person's task to a node without the role for it.
func (k *desk) mayPerform(h *held, task workflow.TaskName, what string) error {
	if t := h.m.Definition().Task(task); t != nil && t.Role != "" && !k.wallet.HasRole(t.Role) {
		return k.lacks(t.Role, fmt.Sprintf("%s task %s", what, task))
	}
	return nil
}

// beginTask notes that a person began a task that this node holds.
func (k *desk) beginTask(ctx context.Context, r api.BeginRequest) error {
	return k.with(ctx, r.ID, func(s *shard, h *held) error {
		if err := k.mayPerform(h, r.Task, "begin"); err != nil {
			return err
		}
		err := h.m.Begin(r.Task, s.moment(), k.partners)
		s.touch(h)
		return err
	})
}

// finishTask completes or fails a person's task that this node holds.
func (k *desk) finishTask(ctx context.Context, r api.FinishRequest) error {
	fails := ""
	err := k.with(ctx, r.ID, func(s *shard, h *held) error {
		if err := k.mayPerform(h, r.Task, "finish"); err != nil {
			return err
		}
		res := choreo.Result{Failed: r.Failed, Reason: r.Reason, Outputs: map[workflow.DataName]workflow.Value{}}
		for k, text := range r.Outputs {
			d := h.m.Definition().Datum(workflow.DataName(k))
			if d == nil {
				return noData(api.Invalid, h.m.Definition(), k)
			}
			v, err := workflow.ReadGiven(d, text)
			if err != nil {
				return api.Errorf(api.Invalid, "--output %v", err)
			}
			res.Outputs[d.Name] = v
		}
		err := k.filing.Given(h.m.Definition(), h.m.Instance().String(), h.sum.By, res.Outputs, true)
		if err != nil {
			return err
		}
		fails = h.m.Fails(r.Task, res)
		k.partners.Among(h.m, func(p choreo.Partners) []choreo.Holding {
			err = h.m.Finish(r.Task, res, s.moment(), p)
			return h.m.Given()
		})
		s.touch(h)
		if errors.Is(err, choreo.ErrTaken) {
			return k.hasIt(h, r.Task)
		}
		return err
	})
	if err == nil && fails != "" {
		return worklists.MakesFail(string(r.Task), r.ID, fails)
	}
	return err
}

// rejectTask passes a task that this node holds, and has not started, on to
// another partner.
func (k *desk) rejectTask(ctx context.Context, r api.RejectRequest) (*api.Passed, error) {
	var out *api.Passed
	err := k.with(ctx, r.ID, func(s *shard, h *held) error {
		var c partition.Choice
		var err error
		k.partners.Among(h.m, func(p choreo.Partners) []choreo.Holding {
			c, err = h.m.Reject(r.Task, r.Reason, s.moment(), p)
			return h.m.Given()
		})
		if err == nil {
			out = &api.Passed{Task: r.Task, Partner: k.people.name(c.Partner), Reason: c.Why}
		}
		s.touch(h)
		return err
	})
	return out, err
}

// hasIt says who has a task that this node holds, to whoever else wants to end it.
func (k *desk) hasIt(h *held, task workflow.TaskName) error {
	for _, v := range h.m.Items() {
		if v.Task.Name == task && v.Holder != "" {
			if v.Mode == worklist.Handed {
				return api.Errorf(api.Refused, "the task %s is kept for %s, who may take it", v.Task.WithLabel(),
					k.partners.Called(v.Holder)).
					WithHint("mutirao show %s shows the instance", h.m.Instance())
			}
			return api.Errorf(api.Refused, "%s has the task %s", k.partners.Called(v.Holder), v.Task.WithLabel()).
				WithHint("mutirao worklist is for whoever has it; mutirao show %s shows the instance", h.m.Instance())
		}
	}
	return choreo.ErrTaken
}
