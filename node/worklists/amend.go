package worklists

import (
	"context"
	"errors"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// AmendedThere says why an instance is not amended at this node that is not here, as err says: a partner takes part in
// it, where the person may amend it, or may not; err where no partner knows of it.
func (d *Desk) AmendedThere(ctx context.Context, user, id string, err error) error {
	who, no := d.in.People.Who(user)
	if no != nil {
		return err
	}
	t, no := d.target(ctx, id, "", who)
	var e *api.Error
	switch {
	case no == nil && t.At != d.in.Self:
		at := d.in.Name(t.At)
		return api.Errorf(api.Refused, "this node takes no part in instance %s, and what is amended is compared with what it has done",
			t.Instance).WithHint("amend it at a node that takes part, such as %s", at)
	case errors.As(d.in.Explain(no), &e) && e.Code != api.NotFound:
		return no
	}
	return err
}

// Amend has a person who decides about an instance change the definition by which it runs.
func (d *Desk) Amend(ctx context.Context, user, id string, x worklist.Amend) (*api.Amended, error) {
	who, err := d.in.People.Who(user)
	if err != nil {
		return nil, err
	}
	t, err := d.target(ctx, id, "", who)
	if err != nil {
		return nil, err
	}
	r := &Row{Instance: t.Instance, Workflow: t.Workflow, At: t.At}
	done, err := d.send(ctx, who, r, x)
	if err != nil {
		return nil, err
	}
	return &api.Amended{
		ID: t.Instance.String(), User: who.Name, Partner: d.in.Name(t.At), Already: done.Already,
	}, nil
}
