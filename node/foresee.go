package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// refusedStart are the reasons for which start would refuse a definition here, or its
// tasks would fail here, as things are now: what it uses that this version cannot do,
// roles, capabilities and applications that nobody has, and applications that this
// node does not let it use. Nobody is needed for tasks whose data sets exist. What is
// given at the start may change some of them. notes are what start would say beside.
func (k *desk) refusedStart(ctx context.Context, h workflow.Hash) (out, notes []string, err error) {
	e, err := k.definitions.Get(h)
	if err != nil {
		return nil, nil, err
	}
	found, missed := k.data.Materialised(ctx, e.Def, nil)
	dropped := datasets.Dropped(found)
	plan := e.Plan.Without(dropped)
	_, uses := k.uses(ctx, e, nil)
	for _, err := range []error{
		k.notYet(e.Def, api.StartRequest{}), uses,
		k.anybodyMayCreate(e.Def),
		partition.Unperformed(plan, k.partners.Roles()),
		k.nobodyTakes(e.Def, plan),
	} {
		var e *api.Error
		switch {
		case errors.As(err, &e) && e.Hint != "":
			out = append(out, fmt.Sprintf("%s (%s)", e.Message, e.Hint))
		case err != nil:
			out = append(out, strings.Split(err.Error(), "\n")...)
		}
	}
	if len(out) > 0 {
		out = append(out, missed...)
	}
	return append(out, k.notAllowed(e, dropped)...), append(partition.Uncovered(plan, k.partners.Roles()),
		k.otherReaders(e.Def)...), nil
}

// otherReaders says of which files other readers are named by a definition and by those that it uses.
func (k *desk) otherReaders(def *workflow.Definition) (out []string) {
	for _, p := range workflow.CheckReaders("definition", def, func(name workflow.Name) *workflow.Definition {
		h, err := k.definitions.Resolve(string(name))
		if err != nil {
			return nil
		}
		sub, err := k.definitions.Get(h)
		if err != nil {
			return nil
		}
		return sub.Def
	}) {
		out = append(out, fmt.Sprintf("warning: %s (%s)", p.Message, p.Hint))
	}
	return out
}

// nobodyTakes are the refusals for partitions that no partner can take. Whom a constraint bars
// that asks for data which must come with the start is not known yet.
func (k *desk) nobodyTakes(def *workflow.Definition, plan *partition.Plan) error {
	mechanism, err := partition.MechanismOf(def, "")
	if err != nil {
		return err
	}
	s := k.situation(def, mechanism, nil)
	// Users may have them; of what nobody has, refusedStart says more (Unperformed).
	s.Awaited = partition.Awaited(plan, k.partners.OwnRoles())
	s.Rand = rand.New(rand.NewPCG(0, 0)) // whom it would be is not asked
	_, _, err = partition.Distribute(plan.BeforeStart(), s, nil)
	return err
}

// notAllowed are the tasks, but for those that are dropped, whose application or database
// this node has, but not for this definition.
func (k *desk) notAllowed(e *library.Definition, dropped []workflow.TaskName) (out []string) {
	origin := k.library.OriginOf(e)
	for _, t := range e.Def.Tasks {
		app, has := k.config.Applications[t.Application]
		if has && t.Type == workflow.Automatic && !app.Allows(origin) && !slices.Contains(dropped, t.Name) {
			out = append(out, fmt.Sprintf("task %s: this node does not let workflow %s use application %s (see its allow list in %s)",
				t.Name, e.Def.Name, t.Application, configs.File))
		}
		for _, q := range t.Queries {
			db, has := k.config.Databases[q.Database]
			if has && !db.Allows(origin) && !slices.Contains(dropped, t.Name) {
				out = append(out, fmt.Sprintf(
					"task %s: this node does not let workflow %s ask database %s (see its allow list in %s)", t.Name,
					e.Def.Name, q.Database, configs.File))
			}
		}
	}
	return out
}
