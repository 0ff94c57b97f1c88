package worklists

import (
	"context"
	"errors"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// RecoveredThere says why nothing can be looked at of an instance that is not here, as err says: a partner takes part in
// it, which is named to whoever may recover it. err where no partner tells of it.
func (d *Desk) RecoveredThere(ctx context.Context, id string, err error) error {
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.NotFound {
		return err
	}
	who, no := d.in.People.Who("")
	if no != nil {
		return err
	}
	t, no := d.target(ctx, id, "", who)
	switch {
	case no == nil && t.At != d.in.Self:
		return api.Errorf(api.Refused, "this node takes no part in instance %s, and does not know its data states",
			t.Instance).
			WithHint("look at it, and try what a recovery would lead to, at a node that takes part, such as %s; it can be ordered here",
				d.in.Name(t.At))
	case no != nil && errors.As(d.in.Explain(no), &e) && e.Code != api.NotFound:
		return no
	}
	return err
}
