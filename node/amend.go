package node

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// amending is what amending asks of the worklists: to find an instance in which this node takes no part, and to have a
// person's amendment written down.
type amending interface {
	Elsewhere(ctx context.Context, user, id string) (*worklists.Amended, error)
	Malformed(of *worklists.Amended, err error) error
	Amend(ctx context.Context, user, id string, x worklist.Amend, of *worklists.Amended) (*api.Amended, error)
}

// amend has an instance take a changed definition, if it can.
func (k *desk) amend(ctx context.Context, r api.AmendRequest, w amending) (*api.Amended, error) {
	a, err := k.foreseeAmendment(ctx, r, w)
	if err != nil {
		return nil, err
	}
	switch seen := a.seen; {
	case len(seen.Refused) > 0:
		return nil, api.Errorf(api.Refused, "%s cannot take the change: %s", seen.ID, seen.Refused[0].Line).
			WithHint("mutirao amend %s FILE --dry-run lists all that is refused", seen.ID)
	case len(seen.NotYet) > 0:
		return nil, api.Errorf(api.Refused, "%s cannot be changed so yet: %s", seen.ID, seen.NotYet[0].Line).
			WithHint("tasks, contingencies, partitions, resources, rules, what tasks read, loops, data that are new, limits of data, conditions, constraints, compensations, limits of time and texts can be changed; for all else mutirao workflow add FILE gives the changed definition to instances that are started later")
	case len(a.patch.Patch) == 0:
		return &api.Amended{ID: seen.ID, Version: seen.Version, Lines: []string{}, Already: true}, nil
	}
	out, err := w.Amend(ctx, r.User, a.seen.ID, a.says, a.of)
	if err == nil {
		out.Version, out.Lines = a.seen.NewVersion, append(a.patch.Lines(), k.view.PlacedLines(a.says.At)...)
		out.AtOnce = a.seen.AtOnce
		if a.of == nil && a.flow != "" && a.flow != k.member.ID() && !(k.up(a.flow) && k.people.Reachable(a.flow)) {
			out.Unheard = k.people.label(a.flow)
		}
	}
	return out, err
}

// foreseen is what an instance would do with a changed definition, and by which amendment, with which patch, it becomes
// that.
type foreseen struct {
	seen  *api.Amendment
	says  worklist.Amend
	patch amendments.Meant
	of    *worklists.Amended // the instance, as a partner says; nil: it is here
	flow  workflow.PartnerID // who keeps its data states; empty: its tasks follow a graph
}

// foreseeAmendment says what an instance would do with a changed definition. It changes nothing. Whoever may not amend
// it is refused.
func (k *desk) foreseeAmendment(ctx context.Context, r api.AmendRequest, w amending) (out foreseen, err error) {
	def, err := workflow.ParseWith(r.File, []byte(r.Source), k.definitions.Piece)
	if err != nil {
		return out, api.WrongDefinition(err)
	}
	if err := library.Check(def); err != nil {
		return out, api.WrongDefinition(err)
	}
	if err := k.notYet(def, api.StartRequest{}); err != nil {
		return out, err
	}
	who, err := k.persons.Who(r.User)
	if err != nil {
		return out, err
	}
	var no error
	var basis *show.Basis
	err = k.look(ctx, r.ID, func(h *held) {
		if p, known := k.partners.Person(worklist.User(who.ID)); !known || !h.m.MayOrder(p.User, p.Roles) {
			no = k.notDeciding(h.m.Responsible(), h.m.Definition(), h.m.Cancellable())
			return
		}
		basis = k.view.Basis(h.shown())
	}, func([]overview.Account) error { return errNotHere })
	var e *api.Error
	if errors.Is(err, errNotHere) || errors.As(err, &e) && e.Code == api.NotFound {
		basis, out.of, err = k.basisElsewhere(ctx, r, w)
	}
	if err := cmp.Or(err, no); err != nil {
		return out, err
	}
	out.seen, out.says, out.patch = k.view.Amendment(basis, def)
	out.flow = basis.Flow
	starts := func(t workflow.TaskName) bool { x := def.Task(t); return x != nil && x.Uses != nil }
	if slices.ContainsFunc(out.patch.Adds(), starts) {
		return out, k.usesThose(ctx, def, basis.Start.Uses, basis.Depth)
	}
	return out, nil
}

// basisElsewhere is what a change of an instance is compared with in which this node takes no part, by the word of a
// partner that does.
func (k *desk) basisElsewhere(
	ctx context.Context, r api.AmendRequest, w amending,
) (*show.Basis, *worklists.Amended, error) {
	of, err := w.Elsewhere(ctx, r.User, r.ID)
	if err != nil {
		return nil, nil, err
	}
	basis, err := show.ReadBasis(of.Instance, of.Runs, of.Basis)
	if err != nil {
		return nil, nil, w.Malformed(of, err)
	}
	return basis, of, nil
}

// usesThose says why a definition cannot use the workflows that an instance says: these do not fit, or nobody has them.
// The instance lies so deep, as a part of others.
func (k *desk) usesThose(ctx context.Context, def *workflow.Definition, pins []fact.Pin, depth int) error {
	r := &resolution{
		desk: k, pins: map[workflow.Name]*library.Definition{}, height: map[workflow.Name]int{},
		given: map[workflow.Name]workflow.Hash{},
	}
	for _, p := range pins {
		r.given[p.Workflow] = p.Definition
	}
	_, err := r.follow(ctx, &library.Definition{Def: def, Hash: def.Hash()}, depth, nil)
	return err
}
