package state

import (
	"errors"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about amendments: changes of the definition by which an instance runs, in the word of somebody who
// decides about it (orders.go). An amendment is a patch (workflow/amendments): it sets keys of parts.
//
// What the instance runs by follows from the set of amendments that count: the definition with which it was
// started, with their patches in the order of facts (log.ByTime), which is one in which an amendment comes after
// those that its author knew of. Amendments that were made side by side thus go together, and where both set one
// key unlike, the later in that order counts, and people are shown it.
//
// Most patches set limits of time, weights and words. Whether a fact counts, and what it does to slots, does not
// depend on these. On a heavy one it does (amendments.Patch.IsHeavy), so a fact is judged by the amendments that its
// author knew: what was right by the definition in its past stays right, whatever was amended elsewhere. The slots are
// those of all amendments that count. A task that an amendment adds is there for whoever knew of that, and for others
// it is not.
//
// When the definition becomes another, all slots are made again from all facts. So it does not matter that facts which
// came together with their amendment were looked at under the definition before.

// edition is how facts are judged: by the amendments that count, as far as their authors knew of them.
type edition struct {
	heavy []*log.Entry                       // those on which it depends, in their order
	added map[workflow.TaskName][]*log.Entry // those that add a task, in their order
	left  []*log.Entry                       // those of which nothing counts but the tasks that they add
	known map[string]*workflow.Definition    // by those that somebody knew
}

// maxEditions bounds how many definitions are kept that some authors went by, at a time.
const maxEditions = 32

// fitting is a patch that was looked at; why it does not fit what its author knew, if it does not.
type fitting struct {
	patch amendments.Patch
	known workflow.Hash
	why   string
}

// fits says why an amendment does not count; empty: its patch is one of the definition by which the instance ran, as
// its author knew.
func (s *State) fits(e *log.Entry, x worklist.Amend) string {
	known := s.original
	if heavy := s.heavyIn(s.amends, e); len(heavy) > 0 {
		known = s.editionOf(heavy)
	}
	f, seen := s.fittings[e.ID]
	if !seen || f.known != known.Hash() {
		var err error
		if f.patch, err = amendments.DecodePatch(x.Patch); err == nil {
			err = s.Fits(known, f.patch)
		}
		f.known, f.why = known.Hash(), ""
		if err != nil {
			f.why = "it amends what the workflow does not have, or cannot have so"
		}
		s.fittings[e.ID] = f
	}
	return f.why
}

// SteersBegun reports whether a patch sets what a task waits for that had begun, as the author of what is judged knew, or
// whether it is done at all.
func (v *Evidence) SteersBegun(p amendments.Patch) bool {
	return slices.ContainsFunc(p.Steers(), func(t workflow.TaskName) bool {
		sl := v.s.bySlot[t]
		return sl != nil && (v.begun(sl) || v.succeeded(sl) || v.failed(sl))
	})
}

// Fits says why a patch cannot be made of a definition by which the instance ran; nil: it can.
func (s *State) Fits(known *workflow.Definition, p amendments.Patch) error {
	if err := amendments.Fits(s.original, known, p); err != nil || !p.IsHeavy() {
		return err
	}
	always := func(int) bool { return true }
	if made, left := amendments.Effective(known, []amendments.Patch{p}, always, cut); made == known || len(left) > 0 {
		return errors.New("with it the definition cannot be cut into its partitions")
	}
	return nil
}

// cut says why a definition cannot be cut into partitions.
func cut(d *workflow.Definition) error { return partition.New(d).Err() }

// heavyIn are the heavy ones of some amendments that a fact's author knew, in their order.
func (s *State) heavyIn(of []*log.Entry, e *log.Entry) (out []*log.Entry) {
	for _, a := range of {
		if s.fittings[a.ID].patch.IsHeavy() && s.log.Knew(e, a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, log.ByTime)
	return out
}

// editionOf is the definition that some amendments make of the one with which the instance was started.
func (s *State) editionOf(of []*log.Entry) *workflow.Definition {
	var name strings.Builder
	var patches []amendments.Patch
	for _, a := range of {
		name.Write(a.ID[:])
		patches = append(patches, s.fittings[a.ID].patch)
	}
	if d := s.edition.known[name.String()]; d != nil {
		return d
	}
	if len(s.edition.known) >= maxEditions {
		clear(s.edition.known)
	}
	d, _ := amendments.Effective(s.original, patches, s.doubtful(of), cut)
	s.edition.known[name.String()] = d
	return d
}

// doubtful says of amendments, in their order, whether the author of one did not know of all that come before it and
// on which it depends how facts are judged.
func (s *State) doubtful(of []*log.Entry) func(i int) bool {
	return func(i int) bool {
		return slices.ContainsFunc(of[:i], func(a *log.Entry) bool {
			return s.fittings[a.ID].patch.IsHeavy() && !s.log.Knew(of[i], a)
		})
	}
}

// amend takes over the definition that follows from the amendments that count, and makes all slots again if it is
// another than before, or if facts are judged by more than before. Then more amendments may count: those of partners
// that were brought in by work which is there only now.
func (s *State) amend() {
	for range amendments.MaxPatches + 1 {
		patches := s.patches()
		if slices.Equal(s.amends, s.formedBy) {
			return // to make a definition costs as much as to read one
		}
		s.formedBy = slices.Clone(s.amends)
		def, left := amendments.Effective(s.original, patches, s.doubtful(s.formedBy), cut)
		was := s.edition.heavy
		s.edition.heavy, s.edition.left, s.edition.added = nil, nil, map[workflow.TaskName][]*log.Entry{}
		for i, p := range patches {
			e := s.formedBy[i]
			if p.IsHeavy() {
				s.edition.heavy = append(s.edition.heavy, e)
			}
			for _, t := range p.Adds() {
				s.edition.added[t] = append(s.edition.added[t], e)
			}
			if slices.Contains(left, i) {
				s.edition.left = append(s.edition.left, e)
			}
		}
		if def.Hash() == s.def.Hash() && slices.Equal(was, s.edition.heavy) {
			continue
		}
		s.def, s.plan = def, partition.New(def)
		for _, e := range s.told { // it may count now, and if not it is counted again
			e.Told = false
			s.uncountedOf[e.Fact.Chain.Author]--
		}
		s.told = nil
		s.Reset()
	}
}

// under is the definition by which the author of what is judged went.
func (v *Evidence) under() *workflow.Definition {
	s := v.s
	if v.of == nil || len(s.edition.heavy) == 0 {
		return s.def
	}
	if v.def == nil {
		switch known := s.heavyIn(s.edition.heavy, v.of); len(known) {
		case len(s.edition.heavy):
			v.def = s.def
		case 0:
			v.def = s.original
		default:
			v.def = s.editionOf(known)
		}
	}
	return v.def
}

// task is a task as its author knew it; nil: it did not, or it is none of the definition.
func (v *Evidence) task(t *workflow.Task) *workflow.Task {
	if def := v.under(); def != v.s.def {
		return def.Task(t.Name)
	}
	return t
}

// hasData reports whether a slot's rule was about data, as its author knew it.
func (v *Evidence) hasData(sl *Slot) (has bool) {
	if v.under() == v.s.def {
		return sl.HasData
	}
	if t := v.task(sl.Task); t != nil {
		t.Rule.Terms(func(r *workflow.Rule) { has = has || r.Op == workflow.OpData })
	}
	return has
}

// there reports whether a fact's author knew of a slot: of one that was added, an amendment that adds it.
func (s *State) there(e *log.Entry, t workflow.TaskName) bool {
	added := s.edition.added[t]
	return len(added) == 0 || slices.ContainsFunc(added, func(a *log.Entry) bool { return s.log.Knew(e, a) })
}

// origin is what gave a slot its first attempt: the genesis, or the amendment that adds its task.
func (s *State) origin(t workflow.TaskName) *log.Entry {
	if added := s.edition.added[t]; len(added) > 0 {
		return added[0]
	}
	return s.log.Genesis()
}

// patches are those that count, in their order.
func (s *State) patches() (out []amendments.Patch) {
	slices.SortFunc(s.amends, log.ByTime)
	for _, e := range s.amends {
		out = append(out, s.fittings[e.ID].patch)
	}
	return out
}

// Amendment is a change of the definition by which an instance runs.
type Amendment struct {
	At    *log.Entry
	Patch amendments.Patch
}

// Amendments are those that count, in the order in which they do.
func (s *State) Amendments() (out []Amendment) {
	for i, p := range s.patches() {
		out = append(out, Amendment{s.amends[i], p})
	}
	return out
}

// Original is the definition with which the instance was started.
func (s *State) Original() *workflow.Definition { return s.original }

// setLast is the value that a key was set to by the last of the amendments that set it.
func setLast(all []Amendment, c amendments.Clash) (value []byte) {
	for _, a := range all {
		for _, x := range a.Patch {
			if x.Part == c.Part && x.Key == c.Key {
				value = x.Value
			}
		}
	}
	return value
}

// amendIncidents are amendments that were made side by side and do not simply go together.
func (s *State) amendIncidents() (out []IncidentView) {
	all := s.Amendments()
	say := func(e *log.Entry, part amendments.Part, what string) {
		x := IncidentView{At: e.Fact.At, Who: e.Fact.Chain.Author, What: what}
		if part.Kind == amendments.OfTask {
			x.Task = workflow.TaskName(part.Name)
		}
		if len(out) < maxUncounted {
			out = append(out, x)
		}
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if s.log.Knew(b.At, a.At) {
				continue
			}
			for _, c := range amendments.Clashes(a.Patch, b.Patch) {
				what := "two amendments were made side by side, and set one key unlike: " + c.String() + "; what counts is " +
					amendments.Shown(setLast(all, c))
				if c.Key == "" {
					what = "two amendments were made side by side, and add " + c.Part.String() + " unlike; what counts is the " +
						"one in partition " + string(s.plan.Home(workflow.TaskName(c.Name))) + ", by the first of them; the other can " +
						"be added under another name"
				}
				say(b.At, c.Part, what)
			}
		}
	}
	for _, e := range s.edition.left {
		say(e, amendments.Part{}, "an amendment does not go together with one that was made side by side; "+
			"of it this does not count: "+strings.Join(s.fittings[e.ID].patch.Set().Lines(), "; "))
	}
	return out
}
