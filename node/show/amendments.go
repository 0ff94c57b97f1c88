package show

import (
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Amendment says what an instance would do with a changed definition. What has no effect on it is not in the patch.
func (vw *View) Amendment(h *Held, def *workflow.Definition) (*api.Amendment, amendments.Patch) {
	old := h.M.Definition()
	changes := amendments.Between(old, def)
	out := &api.Amendment{
		ID: h.M.Instance().String(), Workflow: old.Name, Version: old.Version, Hash: old.Hash().String(),
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
	if err := h.M.Fits(patch); len(patch) > 0 && err != nil && len(out.Refused) == 0 {
		out.Refused = append(out.Refused, renderFinding(amendments.Finding{
			Part: amendments.Part{Kind: amendments.OfWorkflow}, Refused: true,
			Why:  "what the instance keeps of the definition does not go together with it: " + err.Error(),
			Next: "leave in what is still asked for",
		}))
	}
	for _, f := range heavy {
		out.NotYet = append(out.NotYet, renderFinding(f))
	}
	return out, patch
}

// nobodyDoes are the tasks of those that a patch adds which nobody could do as far as this node knows: a program's task
// is for whoever holds the partition, any other for everybody who has its role. What undoes a task is for whoever has
// that.
func (vw *View) nobodyDoes(h *Held, def *workflow.Definition, patch amendments.Patch) (out []amendments.Finding) {
	added, undone := patch.Adds(), patch.Compensates()
	if len(added) == 0 && len(undone) == 0 {
		return nil
	}
	plan := partition.New(def)
	if err := plan.Err(); err != nil {
		return nil // it is no definition that would be listed, which was looked at before
	}
	all, _ := vw.Partners.Candidates(def, partition.PlainRule, nil)
	only := func(holder workflow.PartnerID) []partition.Partner {
		return slices.DeleteFunc(slices.Clone(all), func(p partition.Partner) bool { return p.ID != holder })
	}
	for _, name := range added {
		who := all
		if t := def.Task(name); t.ByNode() {
			holder := h.M.HolderOf(plan.Home(name))
			if def.Flow() != nil { // it may have been taken over
				holder = h.M.FlowHolder()
			}
			who = only(holder)
		}
		if _, err := partition.AssignTasks(plan, who, vw.Self, name); err != nil {
			out = append(out, amendments.Finding{
				Part: amendments.Part{Kind: amendments.OfTask, Name: string(name)}, Refused: true,
				Why: "nobody could do it: " + err.Error(), Next: "put it into a partition whose holder is able",
			})
		}
	}
	for _, name := range undone {
		holder := h.M.TaskHolder(name)
		if holder == "" || def.Flow() != nil {
			continue
		}
		if _, err := partition.AssignTasks(plan, only(holder), vw.Self, name); err != nil {
			out = append(out, amendments.Finding{
				Part: amendments.Part{Kind: amendments.OfTask, Name: string(name)}, Key: "compensate", Refused: true,
				Why: "whoever has the task could not do and undo it: " + err.Error(), Next: "name what that partner is able to do",
			})
		}
	}
	return out
}

func renderFinding(f amendments.Finding) api.ChangeFinding {
	return api.ChangeFinding{Kind: string(f.Kind), Name: f.Name, Key: f.Key, Why: f.Why, Next: f.Next, Line: f.String()}
}

// standing is how far an instance has got, as this node knows it.
func (vw *View) standing(h *Held) *amendments.Standing {
	shown := h.M.Snapshot()
	s := &amendments.Standing{State: shown.State, Data: shown.Data, Tasks: map[workflow.TaskName]amendments.Work{}}
	for _, t := range vw.Instance(h).Tasks {
		taken := t.Started != nil || t.ClaimedBy != "" || h.M.IsReadyByWord(t.Name)
		s.Tasks[t.Name] = amendments.Work{State: t.State, Taken: taken}
	}
	return s
}

// renderAmendments shows the changes of the definition by which an instance runs.
func (vw *View) renderAmendments(h *Held) (out []api.AmendmentMade) {
	for _, a := range h.M.Amendments() {
		out = append(out, api.AmendmentMade{
			At: wire.AtMilli(a.At.Fact.At), User: vw.Partners.Called(a.At.Speaker().User),
			Partner: vw.People.Name(a.At.Fact.Chain.Author), Lines: a.Patch.Lines(),
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
