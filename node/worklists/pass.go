package worklists

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about passing items on, by whoever has one or decides about its instance; and about telling
// people what they lost.

// Transfer has a person pass an item on: to somebody, to a role, or back.
func (d *Desk) Transfer(ctx context.Context, in api.TransferRequest) (*api.Transferred, error) {
	in.To, in.Role = strings.TrimSpace(in.To), strings.TrimSpace(in.Role)
	named := 0
	for _, is := range []bool{in.To != "", in.Role != "", in.Back} {
		if is {
			named++
		}
	}
	if named != 1 {
		return nil, api.Errorf(api.Invalid,
			"an item is passed on to one user (to), or to one role (role), or back (back): %d of them are named", named)
	}
	if (in.Item == "") == (in.ID == "" || in.Task == "") {
		return nil, api.Errorf(api.Invalid,
			"what is passed on is named by an item of the worklist, or by an instance and a task")
	}
	who, err := d.in.People.Who(in.User)
	if err != nil {
		return nil, err
	}
	var to users.Who
	if in.To != "" {
		if to, err = d.in.People.Anybody(in.To); err != nil {
			return nil, err
		}
	}
	if r := workflow.RoleName(in.Role); r != "" && !d.in.People.SomebodyHas(r) {
		return nil, api.Errorf(api.Refused, "nobody has role %s: no worklist would show the item", r).
			WithHint("have somebody join with it: mutirao invite --role %s, or give it to a user: mutirao role grant USER %s", r, r)
	}
	r, err := d.passed(ctx, who, in)
	if err != nil {
		return nil, err
	}
	over, err := d.turn(ctx, who, r) // as where it is given back
	if err != nil {
		return nil, err
	}
	defer over()
	done, err := d.send(ctx, who, r, worklist.NewTransfer(r.Item, r.Held, worklist.User(to.ID),
		workflow.RoleName(in.Role), in.Reason))
	if err != nil {
		return nil, err
	}
	if r.Mine != "" && to.ID != who.ID {
		d.dropUndone(who, r)
		d.forgetTaken(who, r)
	}
	if in.Item != "" {
		if _, err := d.again(ctx, who, r); err != nil { // what is listed from now on
			return nil, err
		}
	}
	called := ""
	if to.ID != "" {
		called = d.in.People.Called(worklist.User(to.ID))
	}
	return &api.Transferred{
		ID: r.Instance.String(), Task: r.Task, Label: r.Label, User: who.Name, To: called, Role: in.Role, Partner: d.in.Name(r.At),
		Already: done.Already,
	}, nil
}

// passed is the item that a request is about, as its holder says now.
func (d *Desk) passed(ctx context.Context, who users.Who, in api.TransferRequest) (*Row, error) {
	if in.Item == "" {
		t, err := d.target(ctx, in.ID, in.Task, who)
		if err != nil {
			return nil, err
		}
		return &Row{Instance: t.Instance, Workflow: t.Workflow, Task: t.Task, Item: t.Item, At: t.At, Held: t.Held}, nil
	}
	of, err := d.locate(ctx, who, []string{in.Item}, true)
	if err != nil {
		return nil, err
	}
	return of[0], nil
}

// Lost lists the items that a person had, and lost lately by no act of its own, as far as is known
// here: the latest first.
func (d *Desk) Lost(ctx context.Context, ref string) ([]api.LostItem, error) {
	who, err := d.in.People.Who(ref)
	if err != nil {
		return nil, err
	}
	d.askHolders(ctx, who, false)
	now := d.in.Clock.Now().Wall
	rows, err := d.lostRows(ctx, who, now.Add(-shownLost))
	if err != nil {
		return nil, err
	}
	out := []api.LostItem{}
	for i := range rows {
		r := &rows[i]
		if !r.lostBy(now) {
			continue
		}
		says := lostMessage(r)
		x := api.LostItem{
			ID: r.ID(), Instance: r.Instance.String(), Workflow: string(r.Workflow), Task: string(r.Task),
			Label: r.Label, WorkflowLabel: r.WorkflowLabel, Subject: r.Subject,
			Why: Because(r.Lost), Presumed: worklist.StillPresumed(r.Lost),
			At: r.LostAt.UTC(), Partner: d.in.Name(r.At), Elsewhere: d.elsewhere(r),
			Adoptable: r.Adoptable || d.awaitsAdoption(who.ID, r.ID()), Message: says.String(),
		}
		d.mu.Lock()
		x.Read = d.hasRead(who.ID, &says, x.Message)
		d.mu.Unlock()
		if r.LostBy != "" && worklist.User(who.ID) != r.LostBy {
			x.By = d.in.People.Called(r.LostBy)
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b api.LostItem) int { return b.At.Compare(a.At) })
	return out, nil
}

// lostBy reports whether people are shown at a moment that the person lost the item.
func (r *Row) lostBy(now time.Time) bool {
	return r.Lost != "" && r.Mine == "" && now.Sub(r.LostAt) <= shownLost
}

// lostMessage names what a person reads of an item that the person lost: the message that says so, where there is one,
// or else that it was taken from the person then.
func lostMessage(r *Row) worklist.MessageID {
	if !r.Unneeded.IsZero() || worklist.StillPresumed(r.Lost) {
		of := worklist.Source{Instance: r.Instance, Workflow: r.Workflow}
		return of.Unneeded(r.Item, r.Task, r.Lost, "", r.Unneeded, r.Made).ID
	}
	return worklist.MessageID{
		Instance: r.Instance, Type: worklist.Lost, Item: r.Item, Round: fmt.Sprint("taken ", r.LostAt.UnixMilli()),
	}
}

// lostMessages name what a person may have read of items that the person lost lately.
func (d *Desk) lostMessages(ctx context.Context, who users.Who) (out []worklist.MessageID, err error) {
	now := d.in.Clock.Now().Wall
	rows, err := d.lostRows(ctx, who, now.Add(-shownLost))
	for i := range rows {
		if rows[i].lostBy(now) {
			out = append(out, lostMessage(&rows[i]))
		}
	}
	return out, err
}

// lostRows are the items that a person has, had or may take, also of instances that have ended lately: each once, as it
// was said last.
func (d *Desk) lostRows(ctx context.Context, who users.Who, since time.Time) ([]Row, error) {
	rows, err := d.said(ctx, who)
	if err != nil {
		return nil, err
	}
	ended, err := d.in.Instances.LostLately(ctx, worklist.User(who.ID), since)
	if err != nil {
		return nil, err
	}
	_, gone := d.heardOf(who)
	listed := map[string]bool{}
	for i := range rows {
		listed[rows[i].ID()] = true
	}
	for _, r := range slices.Concat(ended, gone) {
		if id := r.ID(); !listed[id] {
			listed[id] = true
			rows = append(rows, r)
		}
	}
	return rows, nil
}
