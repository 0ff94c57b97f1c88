package node

import (
	"context"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// ForeseeAmendment says what an instance would do with a changed definition.
func (n *Node) ForeseeAmendment(ctx context.Context, ref, file string, source []byte) (*api.Amendment, error) {
	out, _, err := n.desk.foreseeAmendment(ctx, ref, file, source)
	return out, n.explain(err)
}

// AmendInstance has a user who decides about an instance change the definition by which it runs.
func (n *Node) AmendInstance(ctx context.Context, r api.AmendRequest) (*api.Amended, error) {
	out, err := n.amend(ctx, r)
	return out, n.explain(err)
}

func (n *Node) amend(ctx context.Context, r api.AmendRequest) (*api.Amended, error) {
	seen, patch, err := n.desk.foreseeAmendment(ctx, r.ID, r.File, []byte(r.Source))
	switch {
	case err != nil:
		return nil, err
	case len(seen.Refused) > 0:
		return nil, api.Errorf(api.Refused, "%s cannot take the change: %s", seen.ID, seen.Refused[0].Line).
			WithHint("mutirao amend %s FILE --dry-run lists all that is refused", seen.ID)
	case len(seen.NotYet) > 0:
		return nil, api.Errorf(api.Refused, "%s cannot be changed so yet: %s", seen.ID, seen.NotYet[0].Line).
			WithHint("tasks, rules, limits of time and texts can be changed; for all else mutirao workflow add FILE gives the changed definition to instances that are started later")
	case len(patch) == 0:
		return &api.Amended{ID: seen.ID, Version: seen.Version, Lines: []string{}, Already: true}, nil
	}
	out, err := n.worklists.Amend(ctx, r.User, seen.ID, patch.Text())
	if err == nil {
		out.Version, out.Lines = seen.NewVersion, patch.Lines()
	}
	return out, err
}

// foreseeAmendment says what an instance that is here would do with a changed definition, and by which patch it becomes
// that. It changes nothing.
func (k *desk) foreseeAmendment(
	ctx context.Context, ref, file string, source []byte,
) (out *api.Amendment, patch amendments.Patch, err error) {
	def, err := workflow.ParseWith(file, source, k.definitions.Piece)
	if err != nil {
		return nil, nil, api.Judge(api.Failed, err)
	}
	if err := library.Check(def); err != nil {
		return nil, nil, api.Judge(api.Failed, err)
	}
	if err := k.notYet(def, api.StartRequest{}); err != nil {
		return nil, nil, err
	}
	err = k.look(ctx, ref, func(h *held) { out, patch = k.view.judge(h, def) }, k.onlyThere)
	return out, patch, err
}

// judge says what an instance would do with a changed definition. What has no effect on it is not in the patch.
func (vw *view) judge(h *held, def *workflow.Definition) (*api.Amendment, amendments.Patch) {
	old := h.m.Definition()
	changes := amendments.Between(old, def)
	out := &api.Amendment{
		ID: h.id.String(), Workflow: old.Name, Version: old.Version, Hash: old.Hash().String(),
		NewVersion: def.Version, NewHash: def.Hash().String(),
		Changes: []api.PartChange{}, Lines: append([]string{}, amendments.Lines(changes)...),
		Refused: []api.ChangeFinding{}, NotYet: []api.ChangeFinding{}, NoEffect: []api.ChangeFinding{},
	}
	for _, c := range changes {
		p := api.PartChange{Kind: string(c.Kind), Name: c.Name, Change: string(c.How), Keys: []api.KeyChange{}}
		for _, x := range c.Keys {
			p.Keys = append(p.Keys, api.KeyChange{Key: x.Key, Was: x.Was, Is: x.Is})
		}
		out.Changes = append(out.Changes, p)
	}
	found := amendments.Judge(old, def, vw.standing(h))
	for _, f := range found {
		if f.Refused {
			out.Refused = append(out.Refused, renderFinding(f))
		} else {
			out.NoEffect = append(out.NoEffect, renderFinding(f))
		}
	}
	patch, heavy := amendments.PatchOf(old, def, found)
	for _, f := range vw.nobodyDoes(h, def, patch) {
		out.Refused = append(out.Refused, renderFinding(f))
	}
	for _, f := range heavy {
		out.NotYet = append(out.NotYet, renderFinding(f))
	}
	return out, patch
}

// nobodyDoes are the tasks of those that a patch adds which nobody could do as far as this node knows: a program's task
// is for whoever holds the partition, any other for everybody who has its role.
func (vw *view) nobodyDoes(h *held, def *workflow.Definition, patch amendments.Patch) (out []amendments.Finding) {
	added := patch.Adds()
	if len(added) == 0 {
		return nil
	}
	plan := partition.New(def)
	if err := plan.Err(); err != nil {
		return nil // it is no definition that would be listed, which was looked at before
	}
	all, _ := vw.partners.Candidates(def, partition.PlainRule, nil)
	for _, name := range added {
		who := all
		if t := def.Task(name); t.ByNode() {
			holder := h.m.HolderOf(plan.Home(name))
			who = slices.DeleteFunc(slices.Clone(all), func(p partition.Partner) bool { return p.ID != holder })
		}
		if _, err := partition.AssignTasks(plan, who, vw.member.ID(), name); err != nil {
			out = append(out, amendments.Finding{
				Part: amendments.Part{Kind: amendments.OfTask, Name: string(name)}, Refused: true,
				Why: "nobody could do it: " + err.Error(), Next: "put it into a partition whose holder is able",
			})
		}
	}
	return out
}

func renderFinding(f amendments.Finding) api.ChangeFinding {
	return api.ChangeFinding{Kind: string(f.Kind), Name: f.Name, Key: f.Key, Why: f.Why, Next: f.Next, Line: f.String()}
}

// standing is how far an instance has got, as this node knows it.
func (vw *view) standing(h *held) *amendments.Standing {
	shown := h.m.Snapshot()
	s := &amendments.Standing{State: shown.State, Data: shown.Data, Tasks: map[workflow.TaskName]amendments.Work{}}
	for _, t := range vw.render(h).Tasks {
		taken := t.Started != nil || t.ClaimedBy != "" || h.m.IsReadyByWord(t.Name)
		s.Tasks[t.Name] = amendments.Work{State: t.State, Taken: taken}
	}
	return s
}

// renderAmendments shows the changes of the definition by which an instance runs.
func (vw *view) renderAmendments(h *held) (out []api.AmendmentMade) {
	for _, a := range h.m.Amendments() {
		out = append(out, api.AmendmentMade{
			At: wire.AtMilli(a.At.Fact.At), User: vw.partners.Called(a.At.Speaker().User),
			Partner: vw.people.name(a.At.Fact.Chain.Author), Lines: a.Patch.Lines(),
		})
	}
	return out
}

// amendedText says in words what an amendment sets.
func amendedText(x worklist.Amend) string {
	p, err := amendments.DecodePatch(x.Patch)
	if err != nil {
		return "an amendment that cannot be read"
	}
	return "the instance runs with " + strings.Join(p.Lines(), "; ") + " from now on"
}
