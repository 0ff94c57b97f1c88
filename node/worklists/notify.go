package worklists

import (
	"context"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Notify has a person who decides about an instance change by which policy its items are offered.
func (d *Desk) Notify(ctx context.Context, in api.NotifyRequest) (*api.Notified, error) {
	policy, err := worklist.ParsePolicy(strings.Join(strings.Fields(in.Policy), " "))
	if err != nil {
		return nil, api.Judge(api.Invalid, err)
	}
	who, err := d.in.People.Who(in.User)
	if err != nil {
		return nil, err
	}
	t, err := d.target(ctx, in.ID, "", who)
	if err != nil {
		return nil, err
	}
	r := &Row{Instance: t.Instance, Workflow: t.Workflow, At: t.At}
	done, err := d.send(ctx, who, r, worklist.Notify{Policy: policy})
	if err != nil {
		return nil, err
	}
	return &api.Notified{
		ID: t.Instance.String(), Policy: policy.String(), User: who.Name, Partner: d.in.Name(t.At),
		Already: done.Already,
	}, nil
}
