package state

import (
	"slices"

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
// A patch sets only limits of time, weights and words (amendments.Patch). Whether a fact counts, and what it does
// to slots, does not depend on these: so each fact counts under all amendments as it did under those in its past,
// and all slots can be made again under the new definition.

// fitting is a patch that was looked at; why it does not fit, if it does not.
type fitting struct {
	patch amendments.Patch
	why   string
}

// fits says why an amendment does not count; empty: its patch is one of the definition with which the instance was
// started.
func (s *State) fits(e *log.Entry, x worklist.Amend) string {
	f, known := s.fittings[e.ID]
	if !known {
		var err error
		if f.patch, err = amendments.DecodePatch(x.Patch); err == nil {
			err = amendments.Fits(s.original, f.patch)
		}
		if err != nil {
			f = fitting{why: "it amends what the workflow does not have, or cannot have so"}
		}
		s.fittings[e.ID] = f
	}
	return f.why
}

// amend takes over the definition that follows from the amendments that count, and makes all slots again if it is
// another than before.
func (s *State) amend() {
	patches := s.patches()
	if slices.Equal(s.amends, s.formedBy) {
		return // to make a definition costs as much as to read one
	}
	s.formedBy = slices.Clone(s.amends)
	def := amendments.Effective(s.original, patches)
	if def.Hash() == s.def.Hash() {
		return
	}
	s.def, s.plan = def, partition.New(def)
	s.Reset()
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

// amendIncidents are amendments that were made side by side and set one key unlike.
func (s *State) amendIncidents() (out []IncidentView) {
	all := s.Amendments()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if s.log.Knew(b.At, a.At) || len(out) >= maxUncounted {
				continue
			}
			for _, c := range amendments.Clashes(a.Patch, b.Patch) {
				x := IncidentView{
					At: b.At.Fact.At, Who: b.At.Fact.Chain.Author,
					What: "two amendments were made side by side, and set one key unlike: " + c.String() + "; what counts is " +
						amendments.Shown(setLast(all, c)),
				}
				if c.Kind == amendments.OfTask {
					x.Task = workflow.TaskName(c.Name)
				}
				out = append(out, x)
			}
		}
	}
	return out
}
