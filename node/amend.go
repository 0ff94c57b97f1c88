package node

import (
	"cmp"
	"context"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// amend has an instance that is here take a changed definition, if it can: send says so to where that is written down.
func (k *desk) amend(
	ctx context.Context, r api.AmendRequest,
	send func(ctx context.Context, user, id string, x worklist.Amend) (*api.Amended, error),
) (*api.Amended, error) {
	seen, x, patch, err := k.foreseeAmendment(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case len(seen.Refused) > 0:
		return nil, api.Errorf(api.Refused, "%s cannot take the change: %s", seen.ID, seen.Refused[0].Line).
			WithHint("mutirao amend %s FILE --dry-run lists all that is refused", seen.ID)
	case len(seen.NotYet) > 0:
		return nil, api.Errorf(api.Refused, "%s cannot be changed so yet: %s", seen.ID, seen.NotYet[0].Line).
			WithHint("tasks, partitions, rules, loops, data that are new, conditions, constraints, compensations, limits of time and texts can be changed; for all else mutirao workflow add FILE gives the changed definition to instances that are started later")
	case len(patch.Patch) == 0:
		return &api.Amended{ID: seen.ID, Version: seen.Version, Lines: []string{}, Already: true}, nil
	}
	out, err := send(ctx, r.User, seen.ID, x)
	if err == nil {
		out.Version, out.Lines = seen.NewVersion, append(patch.Lines(), k.view.PlacedLines(x.At)...)
	}
	return out, err
}

// foreseeAmendment says what an instance that is here would do with a changed definition, and by which amendment, with
// which patch, it becomes that. It changes nothing. Whoever may not amend it is refused.
func (k *desk) foreseeAmendment(
	ctx context.Context, r api.AmendRequest,
) (out *api.Amendment, x worklist.Amend, patch amendments.Meant, err error) {
	def, err := workflow.ParseWith(r.File, []byte(r.Source), k.definitions.Piece)
	if err != nil {
		return nil, x, patch, api.WrongDefinition(err)
	}
	if err := library.Check(def); err != nil {
		return nil, x, patch, api.WrongDefinition(err)
	}
	if err := k.notYet(def, api.StartRequest{}); err != nil {
		return nil, x, patch, err
	}
	who, err := k.persons.Who(r.User)
	if err != nil {
		return nil, x, patch, err
	}
	var no error
	err = k.look(ctx, r.ID, func(h *held) {
		if p, known := k.partners.Person(worklist.User(who.ID)); !known || !h.m.MayOrder(p.User, p.Roles) {
			no = k.notDeciding(h.m.Responsible())
			return
		}
		out, x, patch = k.view.Amendment(h.shown(), def)
	}, k.onlyThere)
	return out, x, patch, cmp.Or(err, no)
}
