package state

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says which of several verdicts, or assignments, on one attempt decides, and so which attempt comes after
// which (converge.go, rules 0 and 1).

// Prevailing is the verdict that decides among those on one attempt.
func (s *State) Prevailing(rs []*Ruling) *Ruling {
	var best *Ruling
	for _, r := range rs {
		s.log.Steps++
		if !r.Void && (best == nil || s.byAuthority(r.At, best.At) < 0) {
			best = r
		}
	}
	return best
}

// byAuthority orders facts by who may decide: the higher office first, then
// the author earlier in the succession, then the lower hash.
func (s *State) byAuthority(a, b *log.Entry) int {
	if n := officeOf(b).Compare(officeOf(a)); n != 0 {
		return n
	}
	if n := cmp.Compare(s.place(a), s.place(b)); n != 0 {
		return n
	}
	return a.ID.Compare(b.ID)
}

func (s *State) place(e *log.Entry) int {
	if n, ok := s.rank[e.Fact.Chain.Author]; ok {
		return n
	}
	return len(s.rank)
}

// officeOf is the office in which a verdict counts: none, if its author knew of a
// higher one, and so that this one was over.
func officeOf(e *log.Entry) *fact.Office {
	if v := e.Fact.Body.Verdict; v != nil && !e.Late {
		return v.Office
	}
	return nil
}

// knewHigher reports whether the author of a verdict in an office knew of a higher one.
func (s *State) knewHigher(e *log.Entry) bool {
	o := e.Fact.Body.Verdict.Office
	return o != nil && slices.ContainsFunc(s.offices, func(h *log.Entry) bool {
		s.log.Steps++
		return h.Fact.Body.Verdict.Office.Compare(o) > 0 && s.log.Knew(e, h)
	})
}

// noteOffice remembers the first verdict in an office of each strand: an author
// that knew of a later one there knew of that.
func (s *State) noteOffice(e *log.Entry) {
	o := e.Fact.Body.Verdict.Office
	known := func(h *log.Entry) bool { return h.Strand == e.Strand && h.Fact.Body.Verdict.Office.Compare(o) == 0 }
	if o != nil && !slices.ContainsFunc(s.offices, known) {
		s.offices = append(s.offices, e)
	}
}

// TakenOver is the attempt that the holder of a passed it on to, nil if to nobody.
func (s *State) TakenOver(a *Attempt) *Attempt {
	if len(a.passed) == 0 {
		return nil
	}
	s.log.Steps += len(a.passed)
	return slices.MinFunc(a.passed, func(x, y *Attempt) int { return s.byAuthority(x.Assigned, y.Assigned) })
}

// lastOf is the last of those that an attempt was passed on to, itself if to nobody.
func (s *State) lastOf(a *Attempt) *Attempt {
	for next := a; next != nil; next = s.TakenOver(next) {
		a = next
	}
	return a
}

// doneAgain is the attempt that followed one by order, though a verdict had ended the slot with that; nil: none did.
func (s *State) doneAgain(a *Attempt) *Attempt {
	if len(a.Assigns) == 0 {
		return nil
	}
	s.log.Steps += len(a.Assigns)
	return slices.MinFunc(a.Assigns, func(x, y *Attempt) int { return s.byAuthority(x.Assigned, y.Assigned) })
}

// latest is the last attempt at what an attempt is to do: passed on, or done once more by order.
func (s *State) latest(a *Attempt) *Attempt {
	for {
		a = s.lastOf(a)
		r := s.Prevailing(a.Rulings)
		if r == nil || r.Action.Kind == workflow.FailContingency {
			return a
		}
		next := s.doneAgain(a)
		if next == nil {
			return a
		}
		a = next
	}
}

// firstAssigned is the attempt that followed a verdict which had found nobody.
func (s *State) firstAssigned(a *Attempt, r *Ruling) *Attempt {
	var best *Attempt
	for _, n := range a.Assigns {
		if n.Assigned.Fact.Body.Assign.Verdict == r.At.ID &&
			(best == nil || s.byAuthority(n.Assigned, best.Assigned) < 0) {
			best = n
		}
	}
	return best
}
