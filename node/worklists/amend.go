package worklists

import (
	"context"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/worklist"
)

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
