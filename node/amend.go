package node

import (
	"context"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
)

// ForeseeAmendment says what an instance would do with a changed definition.
func (n *Node) ForeseeAmendment(ctx context.Context, ref, file string, source []byte) (*api.Amendment, error) {
	out, err := n.desk.foreseeAmendment(ctx, ref, file, source)
	return out, n.explain(err)
}

// foreseeAmendment says what an instance that is here would do with a changed definition. It changes nothing.
func (k *desk) foreseeAmendment(ctx context.Context, ref, file string, source []byte) (out *api.Amendment, err error) {
	def, err := workflow.ParseWith(file, source, k.definitions.Piece)
	if err != nil {
		return nil, api.Judge(api.Failed, err)
	}
	if err := library.Check(def); err != nil {
		return nil, api.Judge(api.Failed, err)
	}
	if err := k.notYet(def, api.StartRequest{}); err != nil {
		return nil, err
	}
	err = k.look(ctx, ref, func(h *held) {
		out = renderAmendment(h, def, amendments.Judge(h.def.Def, def, k.view.standing(h)))
	}, k.onlyThere)
	return out, err
}

// standing is how far an instance has got, as this node knows it.
func (vw *view) standing(h *held) *amendments.Standing {
	shown := h.m.Snapshot()
	s := &amendments.Standing{State: shown.State, Data: shown.Data, Tasks: map[workflow.TaskName]amendments.Work{}}
	for _, t := range vw.render(h).Tasks {
		s.Tasks[t.Name] = amendments.Work{State: t.State, Taken: t.Started != nil || t.ClaimedBy != ""}
	}
	return s
}

func renderAmendment(h *held, def *workflow.Definition, found []amendments.Finding) *api.Amendment {
	old := h.def.Def
	changes := amendments.Between(old, def)
	out := &api.Amendment{
		ID: h.id.String(), Workflow: old.Name, Version: old.Version, Hash: old.Hash().String(),
		NewVersion: def.Version, NewHash: def.Hash().String(),
		Changes: []api.PartChange{}, Lines: append([]string{}, amendments.Lines(changes)...),
		Refused: []api.ChangeFinding{}, NoEffect: []api.ChangeFinding{},
	}
	for _, c := range changes {
		p := api.PartChange{Kind: string(c.Kind), Name: c.Name, Change: string(c.How), Keys: []api.KeyChange{}}
		for _, x := range c.Keys {
			p.Keys = append(p.Keys, api.KeyChange{Key: x.Key, Was: x.Was, Is: x.Is})
		}
		out.Changes = append(out.Changes, p)
	}
	for _, f := range found {
		x := api.ChangeFinding{
			Kind: string(f.Kind), Name: f.Name, Key: f.Key, Why: f.Why, Next: f.Next, Line: f.String(),
		}
		if f.Refused {
			out.Refused = append(out.Refused, x)
		} else {
			out.NoEffect = append(out.NoEffect, x)
		}
	}
	return out
}
