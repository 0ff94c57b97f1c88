package show

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Amendment says what an instance would do with a changed definition, and by which amendment it does. What has no
// effect on it is not in that.
func (vw *View) Amendment(b *Basis, def *workflow.Definition) (*api.Amendment, worklist.Amend, amendments.Meant) {
	old := b.Def
	changes := amendments.Between(old, def)
	out := &api.Amendment{
		ID: b.Instance.String(), Workflow: old.Name, Version: old.Version, Hash: old.Hash().String(),
		NewVersion: def.Version, NewHash: def.Hash().String(),
		Changes: []api.PartChange{}, Lines: append([]string{}, amendments.Lines(changes)...),
		Refused: []api.ChangeFinding{}, NotYet: []api.ChangeFinding{}, NoEffect: []api.ChangeFinding{},
		AtOnce: []api.ChangeFinding{},
	}
	for _, c := range changes {
		p := api.PartChange{Kind: string(c.Kind), Name: c.Name, Change: string(c.How), Keys: []api.KeyChange{}}
		for _, x := range c.Keys {
			p.Keys = append(p.Keys, api.KeyChange{Key: x.Key, Was: x.Was, Is: x.Is})
		}
		out.Changes = append(out.Changes, p)
	}
	at := b.Standing
	out.Ended = at.Ended()
	found := amendments.Judge(old, def, at)
	for _, f := range found {
		if f.Refused {
			out.Refused = append(out.Refused, renderFinding(f))
		} else {
			out.NoEffect = append(out.NoEffect, renderFinding(f))
		}
	}
	patch, heavy := amendments.PatchOf(old, def, found)
	if name := b.Start.Unpinned(def, patch); name != "" {
		heavy = append(heavy, amendments.Finding{
			Part: amendments.Part{Kind: amendments.OfWorkflow}, Refused: true,
			Why: fmt.Sprintf("a new task uses %s, and which workflow that is was settled for none of that name when the "+
				"instance was started", name),
			Next: "start a workflow of its own, or the changed workflow again",
		})
		patch = nil
	}
	placed, nowhere := vw.places(b, def, patch)
	for _, f := range append(nowhere, vw.nobodyDoes(b, def, patch, placed)...) {
		out.Refused = append(out.Refused, renderFinding(f))
	}
	out.Lines = append(out.Lines, vw.PlacedLines(placed)...)
	meant, err := b.Start.Fits(old, patch)
	var many *amendments.ManyRoundsError
	if errors.As(err, &many) && len(out.Refused) == 0 {
		out.Refused = append(out.Refused, renderFinding(many.Finding()))
	}
	if len(patch) > 0 && err != nil && len(out.Refused) == 0 {
		out.Refused = append(out.Refused, renderFinding(amendments.Finding{
			Part: amendments.Part{Kind: amendments.OfWorkflow}, Refused: true,
			Why:  "what the instance keeps of the definition does not go together with it: " + mistakes(err),
			Next: "leave in what is still asked for",
		}))
	}
	if err := choreo.AmendedOften(b.Amended); len(patch) > 0 && err != nil && len(out.Refused) == 0 {
		out.Refused = append(out.Refused, renderFinding(amendments.Finding{
			Part: amendments.Part{Kind: amendments.OfWorkflow}, Refused: true,
			Why:  strings.TrimPrefix(err.Error(), state.ErrNotNow.Error()+": "), // a finding says that it is refused
			Next: "start the workflow again",
		}))
	}
	for _, f := range heavy {
		out.NotYet = append(out.NotYet, renderFinding(f))
	}
	if len(patch) == 0 {
		return out, worklist.Amend{}, amendments.Meant{}
	}
	if len(out.Refused) == 0 {
		for _, f := range amendments.AtOnce(old, def, at) {
			out.AtOnce = append(out.AtOnce, renderFinding(f))
		}
	}
	meant.Patch = patch // also where it does not fit
	return out, worklist.Amend{Patch: patch.Text(), At: placed}, meant
}

// mistakes are those of a definition that is worked out here, of which nobody can look at the places.
func mistakes(err error) string {
	var all workflow.Errors
	if !errors.As(err, &all) {
		return err.Error()
	}
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = p.Message
	}
	return strings.Join(out, "; ")
}

// places finds a partner for each partition that a patch adds, and for those whose holder cannot have them any more, as
// at a start by the plain rule: who holds one of the instance already is weighed so. What nobody can have is found.
func (vw *View) places(
	b *Basis, def *workflow.Definition, patch amendments.Patch,
) (at []worklist.Placed, out []amendments.Finding) {
	parts, moves := patch.Parts(), patch.Replaces()
	if len(parts)+len(moves) == 0 || partition.New(def).Err() != nil {
		return nil, nil
	}
	all, _ := vw.Partners.Candidates(def, partition.PlainRule, nil)
	plan := partition.New(def)
	stays := func(p *workflow.PartitionDecl) bool {
		_, err := partition.AssignTasks(plan, slices.DeleteFunc(onceBack(all), func(x partition.Partner) bool {
			return p.Partner != "" && x.Name != p.Partner && string(x.ID) != p.Partner || x.ID != b.Homes[p.Name]
		}), vw.Self, p.Tasks...)
		return err == nil
	}
	moves = slices.DeleteFunc(moves, func(n workflow.PartitionName) bool { return stays(def.Partition(n)) })
	var held []workflow.PartnerID
	for _, p := range plan.Partitions() {
		if who := b.Homes[p.Name]; who != "" && !slices.Contains(moves, p.Name) {
			held = append(held, who)
		}
	}
	choices, refused := partition.Place(plan, partition.Situation{
		Partners: all, Closed: vw.Partners.Closed(partition.PlainRule), Self: vw.Self, Mechanism: partition.PlainRule,
		Awaited: partition.Awaited(plan, vw.Partners.OwnRoles()),
	}, held, slices.Concat(parts, moves)...)
	for _, c := range choices {
		at = append(at, worklist.Placed{
			Partition: c.Partition, Partner: c.Partner, Moves: slices.Contains(moves, c.Partition),
		})
	}
	for _, r := range refused {
		out = append(out, amendments.Finding{
			Part: amendments.Part{Kind: amendments.OfPartition, Name: string(r.Partition)}, Refused: true,
			Why:  "nobody could have it: " + strings.TrimPrefix(r.Why, fmt.Sprintf("partition %s: ", r.Partition)),
			Next: r.Change + ", or put its tasks into a partition whose holder is able",
		})
	}
	return at, out
}

// PlacedLines tell people where an amendment puts partitions.
func (vw *View) PlacedLines(at []worklist.Placed) (out []string) {
	for _, p := range at {
		where := "is at"
		if p.Moves {
			where = "moves to"
		}
		name := plain.Line(string(p.Partition))
		out = append(out, fmt.Sprintf("partition %s %s %s", name, where, vw.People.Name(p.Partner)))
	}
	return out
}

// nobodyDoes are the tasks which nobody could do as far as this node knows, of those that a patch adds or of which it
// says who or what does them: a program's task is for whoever holds the partition, any other for everybody who has its
// role. What undoes a task is for whoever has that.
func (vw *View) nobodyDoes(
	b *Basis, def *workflow.Definition, patch amendments.Patch, at []worklist.Placed,
) (out []amendments.Finding) {
	added, undone := append(patch.Adds(), patch.Hands()...), patch.Compensates()
	if len(added) == 0 && len(undone) == 0 {
		return nil
	}
	plan := partition.New(def)
	if err := plan.Err(); err != nil {
		return nil // it is no definition that would be listed, which was looked at before
	}
	all, _ := vw.Partners.Candidates(def, partition.PlainRule, nil)
	all = onceBack(all)
	only := func(holder workflow.PartnerID) []partition.Partner {
		return slices.DeleteFunc(slices.Clone(all), func(p partition.Partner) bool { return p.ID != holder })
	}
	for _, name := range added {
		who, t := all, def.Task(name)
		stands := slices.ContainsFunc(def.Tasks, func(x *workflow.Task) bool { return x.Contingency == name })
		if plan.Home(name) == "" && !stands { // whoever has what it undoes does it
			continue
		}
		if t.Role != "" && !slices.Contains(vw.Partners.Roles(), t.Role) {
			out = append(out, amendments.Finding{
				Part: amendments.Part{Kind: amendments.OfTask, Name: string(name)}, Refused: true,
				Why:  fmt.Sprintf("nobody could do it: nobody has role %s", t.Role),
				Next: partition.JoinWith(t.Role),
			})
			continue
		}
		if t.ByNode() && plan.Home(name) != "" { // else it goes to whoever is able
			holder := b.Homes[plan.Home(name)]
			for _, p := range at {
				if p.Partition == plan.Home(name) {
					holder = p.Partner
				}
			}
			if def.Flow() != nil { // it may have been taken over
				holder = b.Flow
			}
			who = only(holder)
		}
		next := "put it into a partition whose holder is able"
		if def.Flow() != nil && t.ByNode() { // it has one partition
			next = "name what that partner is able to do, or give it what it lacks"
		}
		if stands {
			next = "name what a partner is able to do that there is"
		}
		if !slices.Contains(patch.Adds(), name) {
			next = "name what that partner is able to do"
		}
		if _, err := partition.AssignTasks(plan, who, vw.Self, name); err != nil {
			out = append(out, amendments.Finding{
				Part: amendments.Part{Kind: amendments.OfTask, Name: string(name)}, Refused: true,
				Why: "nobody could do it: " + cmp.Or(vw.holderLacks(plan, who, name), err.Error()), Next: next,
			})
		}
	}
	for _, name := range undone {
		holder := b.holderOf(name)
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

// holderLacks says what the only partner that is asked for a task lacks for it, as others may have that; empty: there are
// several, or none.
func (vw *View) holderLacks(plan *partition.Plan, who []partition.Partner, name workflow.TaskName) string {
	if len(who) != 1 || plan.Home(name) == "" {
		return ""
	}
	lacks := plan.Lacks(who[0], name)
	if lacks == "" {
		return ""
	}
	has := "has partition " + string(plan.Home(name))
	if plan.Definition().Flow() != nil {
		has = "keeps the data states"
	}
	return fmt.Sprintf("%s %s, and lacks %s", vw.People.Name(who[0].ID), has, lacks)
}

// onceBack are partners as they are when those are back that go down, or have said that they are away. Whoever has a
// partition keeps it meanwhile, so it is asked what that one is able to do, as of one that is out of reach unsaid.
func onceBack(all []partition.Partner) []partition.Partner {
	out := slices.Clone(all)
	for i := range out {
		out[i].Down, out[i].Until = false, ""
	}
	return out
}

func renderFinding(f amendments.Finding) api.ChangeFinding {
	return api.ChangeFinding{Kind: string(f.Kind), Name: f.Name, Key: f.Key, Why: f.Why, Next: f.Next, Line: f.String()}
}

// renderAmendments shows the changes of the definition by which an instance runs.
func (vw *View) renderAmendments(h *Held) (out []api.AmendmentMade) {
	for _, a := range h.M.Amendments() {
		out = append(out, api.AmendmentMade{
			At: wire.AtMilli(a.At.Fact.At), User: vw.Partners.Called(a.At.Speaker().User),
			Partner: vw.People.Name(a.At.Fact.Chain.Author),
			Lines:   append(a.Patch.Lines(), vw.PlacedLines(state.PlacedBy(a.At))...),
			Late:    a.Late, Lost: a.Lost.Lines(),
		})
	}
	return out
}

// amendedText says in words what an amendment sets, or would have if it had not come too late, or another had not been
// made side by side.
func (vw *View) amendedText(x worklist.Amend, f *state.FactView) string {
	p, err := amendments.DecodePatch(x.Patch)
	if err != nil {
		return "an amendment that cannot be read"
	}
	lost := f.Lost.Lines()
	lines := append(p.Lines(), vw.PlacedLines(x.At)...)
	kept := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(lost, l) })
	switch {
	case f.Late:
		return "an amendment that came too late has no effect: " + strings.Join(lines, "; ")
	case len(kept) == 0:
		return "an amendment that does not go together with one that was made side by side has no effect: " +
			strings.Join(lines, "; ")
	case len(lost) > 0:
		return "the instance runs with " + strings.Join(kept, "; ") + " from now on; what does not go together with an " +
			"amendment that was made side by side has no effect: " + strings.Join(lost, "; ")
	}
	return "the instance runs with " + strings.Join(lines, "; ") + " from now on"
}
