package worklists

import (
	"context"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about extending deadlines, by those who decide about instances.

// Extend has a person who decides about an instance give a task a later deadline.
func (d *Desk) Extend(ctx context.Context, in api.ExtendRequest) (*api.Extended, error) {
	in.By, in.To = strings.TrimSpace(in.By), strings.TrimSpace(in.To)
	switch {
	case in.Task == "":
		return nil, api.Errorf(api.Invalid, "whose deadline is extended: want a task")
	case (in.By == "") == (in.To == ""):
		return nil, api.Errorf(api.Invalid,
			"a deadline is extended by a span (by), or to a point in time (to): want one of them")
	}
	who, err := d.in.People.Who(in.User)
	if err != nil {
		return nil, err
	}
	t, err := d.target(ctx, in.ID, in.Task, who)
	if err != nil {
		return nil, err
	}
	due, err := later(&t, in)
	if err != nil {
		return nil, err
	}
	r := &Row{Instance: t.Instance, Workflow: t.Workflow, Task: t.Task, Item: t.Item, At: t.At}
	done, err := d.send(ctx, who, r, worklist.Extend{Item: t.Item, Due: due})
	if err != nil {
		return nil, err
	}
	out := &api.Extended{
		ID: t.Instance.String(), Task: in.Task, User: who.Name, Partner: d.in.Name(t.At), Already: done.Already,
	}
	if due.At.IsZero() {
		out.After = workflow.FormatDuration(due.After)
	} else {
		out.At = &due.At
	}
	return out, nil
}

// later is the deadline that a request asks for, which the person signs as a whole. What is only so much later than
// the one there is must be known here: a partner that lies would say another.
func later(t *Target, in api.ExtendRequest) (due worklist.Due, err error) {
	if in.To != "" {
		at, err := workflow.ParseTime(in.To)
		if err != nil {
			return due, api.Errorf(api.Invalid, "to: %v", err)
		}
		return worklist.Due{At: at.Truncate(time.Millisecond)}, nil
	}
	by, err := workflow.ParseDuration(in.By)
	switch {
	case err != nil:
		return due, api.Errorf(api.Invalid, "by: %v", err)
	case by <= 0:
		return due, api.Errorf(api.Invalid, "by %s: a deadline is extended by more than 0", in.By)
	case by > worklist.MaxDue:
		return due, api.Errorf(api.Invalid, "by %s: want at most %s", in.By, workflow.FormatDuration(worklist.MaxDue))
	case !t.Here:
		return due, api.Errorf(api.Refused,
			"this node takes no part in instance %s, so it does not know the deadline of %s itself", t.Instance,
			in.Task).
			WithHint("say to which point in time: --to 2026-07-01T08:00:00Z; or do it at a node that takes part")
	case t.Due.IsZero():
		return due, api.Errorf(api.Refused,
			"%s has no deadline now: there is none in its definition, or the data are not there from which it follows",
			in.Task).
			WithHint("mutirao show says what has one; --to TIME gives it one that its definition lets depend on data")
	case t.Due.After > 0:
		return worklist.Due{After: t.Due.After + by}, nil
	}
	return worklist.Due{At: t.Due.At.Add(by).Truncate(time.Millisecond)}, nil
}
