package worklists

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Claim takes items for a person, or gives them back.
func (d *Desk) Claim(ctx context.Context, r api.ClaimRequest) ([]api.Item, error) {
	who, err := d.in.People.Who(r.User)
	if err != nil {
		return nil, err
	}
	rows, err := d.rows(ctx, who)
	if err != nil {
		return nil, err
	}
	var of []*Row
	for _, ref := range r.Items {
		row, err := find(rows, ref)
		if err != nil {
			return nil, err
		}
		of = append(of, row)
	}
	if len(of) == 0 {
		return nil, api.Errorf(api.Invalid, "no item is named")
	}
	switch r.Claim {
	case api.ClaimSelect:
		err = d.take(ctx, who, of, worklist.Select)
	case api.ClaimLock:
		err = d.take(ctx, who, of, worklist.Lock)
	case api.ClaimRelease:
		err = d.giveBack(ctx, who, of)
	default:
		return nil, api.Errorf(api.Invalid, "to %q items: want %s, %s or %s", r.Claim, api.ClaimSelect, api.ClaimLock, api.ClaimRelease)
	}
	if err != nil {
		return nil, err
	}
	out := []api.Item{}
	for _, row := range of {
		out = append(out, d.item(who, row))
	}
	return out, nil
}

// find is the item that is named by its ID, or the beginning of it.
func find(rows []Row, ref string) (found *Row, err error) {
	for i := range rows {
		switch r := &rows[i]; {
		case r.id() == ref:
			return r, nil
		case ref == "" || !strings.HasPrefix(r.id(), ref):
		case found != nil:
			return nil, api.Errorf(api.Invalid, "several items begin with %s", ref).WithHint("mutirao worklist -o json shows the whole IDs")
		default:
			found = r
		}
	}
	if found == nil {
		return nil, api.Errorf(api.NotFound, "there is no item %q on this worklist", ref).
			WithHint("mutirao worklist lists them; what a partner holds that cannot be asked may be missing")
	}
	return found, nil
}

// take asks the holder for items: all of them, or nothing.
func (d *Desk) take(ctx context.Context, who users.Who, of []*Row, mode worklist.Mode) error {
	g := worklist.Grant{Mode: mode, Lease: worklist.DefaultLease(mode)}
	seen := map[worklist.Item]bool{}
	for _, r := range of {
		if r.Instance != of[0].Instance || r.At != of[0].At {
			return api.Errorf(api.Refused, "these items are not all of one instance and with one partner, so they cannot be taken together").
				WithHint("take them one after the other")
		}
		if r.Other != "" {
			return api.Errorf(api.Refused, "%s has %s", d.in.People.Called(r.Other), r.Task).WithHint("mutirao worklist shows what is free")
		}
		if !seen[r.Item] {
			seen[r.Item] = true
			g.Items = append(g.Items, r.Item)
		}
	}
	if _, err := d.send(ctx, who, of[0], g); err != nil {
		return err
	}
	for _, r := range of {
		r.Mine = mode
	}
	return nil
}

// giveBack gives items back, one after the other.
func (d *Desk) giveBack(ctx context.Context, who users.Who, of []*Row) error {
	for _, r := range of {
		if r.Mine == "" {
			return d.notTheirs(who, r)
		}
		if _, err := d.send(ctx, who, r, worklist.Release{Item: r.Item, Grant: r.Grant}); err != nil {
			return err
		}
		r.Mine = ""
	}
	return nil
}

func (d *Desk) notTheirs(who users.Who, r *Row) error {
	if r.Other != "" {
		return api.Errorf(api.Refused, "%s has %s, not %s", d.in.People.Called(r.Other), r.Task, who.Name)
	}
	return api.Errorf(api.Refused, "%s does not have %s", who.Name, r.Task).WithHint("take it first: mutirao worklist select %s", r.id())
}

// Finish hands in what a person made of an item.
func (d *Desk) Finish(ctx context.Context, in api.ItemResult) (*api.Item, error) {
	who, err := d.in.People.Who(in.User)
	if err != nil {
		return nil, err
	}
	rows, err := d.rows(ctx, who)
	if err != nil {
		return nil, err
	}
	r, err := find(rows, in.Item)
	switch {
	case err != nil:
		return nil, err
	case r.Grant.IsZero():
		return nil, d.notTheirs(who, r)
	case in.Failed && in.Reason == "":
		return nil, api.Errorf(api.Invalid, "a failure needs a reason, for those who go on")
	}
	body := worklist.Result{Item: r.Item, Grant: r.Grant, Failed: in.Failed, Reason: in.Reason, Outputs: map[workflow.DataName]workflow.Value{}}
	for n, text := range in.Outputs {
		body.Outputs[workflow.DataName(n)] = text
	}
	done, err := d.send(ctx, who, r, body)
	if err != nil {
		return nil, err
	}
	if done.Kept != "" {
		return nil, api.Errorf(api.Refused, "the result of %s does not count, as %s; it is kept", r.Task, done.Kept).
			WithHint("mutirao show %s shows it", r.Instance)
	}
	out := d.item(who, r)
	name := who.Name
	out.State, out.Holder = api.ItemDone, &name
	return &out, nil
}

// send has a person say something to the holder of an item, and waits until it is durable
// there. The same word is sent once more if no answer comes: it counts once.
func (d *Desk) send(ctx context.Context, who users.Who, r *Row, body worklist.Body) (choreo.Claimed, error) {
	says, err := worklist.Encode(body)
	if err != nil {
		return choreo.Claimed{}, api.Judge(api.Invalid, err)
	}
	c := wire.Spoken{Instance: r.Instance, Says: says, Nonce: [16]byte(d.in.Random(16))}
	if c.Word, err = d.in.People.Speak(who, choreo.SpokenOf(c.Instance, c.Says, c.Nonce)); err != nil {
		return choreo.Claimed{}, err
	}
	if r.At == d.in.Self {
		return d.takeWord(ctx, d.in.Self, c)
	}
	if !d.in.Peers.Up(r.At) {
		return choreo.Claimed{}, api.Errorf(api.Refused, "%s, who holds %s, cannot be asked now", r.At, r.Task).
			WithHint("mutirao partners shows when it is back")
	}
	req, err := wire.EncodeSpoken(c)
	if err != nil {
		return choreo.Claimed{}, err
	}
	b, err := d.in.Peers.Request(ctx, r.At, nil, ProtocolClaim, req, claimPatience)
	var no interface {
		error
		Answer() string
	}
	if err != nil && !errors.As(err, &no) && ctx.Err() == nil {
		b, err = d.in.Peers.Request(ctx, r.At, nil, ProtocolClaim, req, claimPatience)
	}
	switch {
	case errors.As(err, &no):
		return choreo.Claimed{}, api.Errorf(api.Refused, "%s says: %s", r.At, no.Answer())
	case err != nil:
		return choreo.Claimed{}, api.Errorf(api.Failed, "%s, who holds %s, did not answer; it may have written it down all the same", r.At, r.Task).
			WithHint("mutirao worklist shows what came of it")
	}
	var out answer
	if err := json.Unmarshal(b, &out); err != nil {
		return choreo.Claimed{}, api.Errorf(api.Failed, "%s answered what cannot be read", r.At)
	}
	if out.Refusal != nil {
		return choreo.Claimed{}, api.Errorf(out.Refusal.Code, "%s", out.Refusal.Message).WithHint("%s", out.Refusal.Hint)
	}
	return out.Claimed, nil
}
