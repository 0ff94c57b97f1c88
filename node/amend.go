package node

import (
	"cmp"
	"context"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
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
			WithHint("tasks, partitions, resources, rules, loops, data that are new, limits of data, conditions, constraints, compensations, limits of time and texts can be changed; for all else mutirao workflow add FILE gives the changed definition to instances that are started later")
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
	var pins []fact.Pin
	var parent *fact.Parent
	err = k.look(ctx, r.ID, func(h *held) {
		if p, known := k.partners.Person(worklist.User(who.ID)); !known || !h.m.MayOrder(p.User, p.Roles) {
			no = k.notDeciding(h.m.Responsible())
			return
		}
		out, x, patch = k.view.Amendment(h.shown(), def)
		pins, parent = h.m.Pins(), h.m.Parent()
	}, k.onlyThere)
	if err := cmp.Or(err, no); err != nil {
		return nil, x, patch, err
	}
	starts := func(t workflow.TaskName) bool { x := def.Task(t); return x != nil && x.Uses != nil }
	if slices.ContainsFunc(patch.Adds(), starts) {
		if err := k.usesThose(ctx, def, pins, parent); err != nil {
			return nil, x, patch, err
		}
	}
	return out, x, patch, nil
}

// usesThose says why a definition cannot use the workflows that an instance says: these do not fit, or nobody has them.
func (k *desk) usesThose(ctx context.Context, def *workflow.Definition, pins []fact.Pin, parent *fact.Parent) error {
	r := &resolution{
		desk: k, pins: map[workflow.Name]*library.Definition{}, height: map[workflow.Name]int{},
		given: map[workflow.Name]workflow.Hash{},
	}
	for _, p := range pins {
		r.given[p.Workflow] = p.Definition
	}
	depth := 0
	if parent != nil {
		depth = len(parent.Line)
	}
	_, err := r.follow(ctx, &library.Definition{Def: def, Hash: def.Hash()}, depth, nil)
	return err
}
