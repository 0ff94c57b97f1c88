package state

import (
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
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
// Light patches set limits of time, weights and words. Whether a fact counts, and what it does to slots, does not
// depend on these. On a heavy one it may (amendments.Patch.IsHeavy), so a fact is judged by the amendments that its
// author knew (edition.go): what was right by the definition in its past stays right, whatever was amended elsewhere.
// The slots are those of all amendments that count. A task that an amendment adds is there for whoever knew of that,
// and for others it is not: its first attempt is named by what the amendment says of it. So what several say alike is
// one attempt, and what they say unlike are several in one slot, of which one is in charge (root): what counted goes
// on to count.
//
// The history of an instance that is driven by its data goes by what its holder says that it goes by (fact.Aged), and a
// transition by what its trigger said as whoever fired it knew: of what is amended later it takes what is light.
//
// When the definition becomes another, all slots are made again from all facts. So it does not matter that facts which
// came together with their amendment were looked at under the definition before.

// fits says why an amendment does not count; empty: its patch is one of the definition by which the instance ran, as
// its author knew.
func (s *State) fits(e *log.Entry, x worklist.Amend) string {
	known := s.original
	if heavy := s.heavyIn(s.amends, e); len(heavy) > 0 {
		known = s.editionOf(heavy)
	}
	f, seen := s.fittings[e.ID]
	if !seen || f.known != known.Hash() {
		f = s.fitting(x.Patch, known)
		s.fittings[e.ID] = f
	}
	if f.why != "" {
		return f.why
	}
	return Misplaced(f.patch.Patch, x.At)
}

// fitting looks at a patch, of one definition once: a partner may bring one word of somebody who may amend for ever.
func (s *State) fitting(patch string, known *workflow.Definition) (f fitting) {
	of := fittingOf{sha256.Sum256([]byte(patch)), known.Hash()}
	f, seen := s.edition.looked[of]
	if seen {
		return f
	}
	s.log.Steps += len(known.Tasks)
	p, err := amendments.DecodePatch(patch)
	if err == nil {
		f.patch, err = s.Fits(known, p)
	}
	if f.known = known.Hash(); err != nil {
		f.why = "it amends what the workflow does not have, or cannot have so"
	}
	keep(&s.edition.looked, maxEditions, of, f)
	return f
}

// SteersBegun reports whether a patch sets what a task waits for, or whether it is done at all, which had begun as the
// author of what is judged knew.
func (v *Evidence) SteersBegun(p amendments.Meant) bool {
	return slices.ContainsFunc(p.Steers(), func(t workflow.TaskName) bool {
		sl := v.s.bySlot[t]
		return sl != nil && (v.begun(sl) || v.succeeded(sl) || v.failed(sl))
	})
}

// Start is what amendments of this instance are held to.
func (s *State) Start() Start {
	x := Start{Def: s.original}
	if a := s.log.Genesis().Fact.Body.Annex; a != nil {
		x.Uses = a.Uses
	}
	return x
}

// Fits is what a patch means by a definition by which the instance ran; an error says why it cannot be made of that.
func (s *State) Fits(known *workflow.Definition, p amendments.Patch) (amendments.Meant, error) {
	return s.Start().Fits(known, p)
}

// Fits is what a patch means by a definition by which an instance ran that began so.
func (x Start) Fits(known *workflow.Definition, p amendments.Patch) (amendments.Meant, error) {
	return amendments.Fits(x.Def, known, p, func(d *workflow.Definition) error {
		if x.cut(d) != nil {
			return errors.New("with it the definition cannot be cut into its partitions")
		}
		if name := x.Unpinned(d, p); name != "" {
			return errors.New("the instance does not say which workflow " + string(name) + " is")
		}
		return nil
	})
}

// Unpinned is a workflow that a task uses which a patch adds, and of which the instance does not say since its start
// which definition is meant by that name; empty: there is none. Made is the definition with the patch.
func (x Start) Unpinned(made *workflow.Definition, p amendments.Patch) workflow.Name {
	for _, n := range p.Adds() {
		t := made.Task(n)
		if t != nil && t.Uses != nil &&
			!slices.ContainsFunc(x.Uses, func(u fact.Pin) bool { return u.Workflow == t.Uses.Workflow }) {
			return t.Uses.Workflow
		}
	}
	return ""
}

// TakesUp reports whether whoever holds the flow has amendments to take up: it does not go by all of them yet, and need
// not wait for transitions to end before it does. Once it has said so it does not say it again, though a fork may keep
// it from knowing of one that counts.
func (s *State) TakesUp() bool {
	l := s.flow.Line
	if x := l.last; x != nil && x.Fact.Body.Aged != nil && x.Fact.Body.Aged.Age == 0 &&
		!slices.ContainsFunc(s.edition.heavy, func(a *log.Entry) bool { return a.Index > x.Index }) {
		return false
	}
	if len(s.edition.heavy) == 0 || l.Board.Ended() {
		return false
	}
	by := s.flowBy(s.edition.heavy)
	return l.Board.Flow().Hash() != by.Hash() && !l.Board.AwaitsEnds(by)
}

// Late are the amendments of which the holder of the data states did not know when these ended: they went by the
// definition of before to their end.
func (s *State) Late() (out []*log.Entry) {
	if s.flow == nil || s.flow.Line == nil {
		return nil
	}
	l := s.flow.Line
	if !l.Board.Ended() || l.Board.Flow().Hash() == s.def.Hash() {
		return nil
	}
	var took []*log.Entry // by which the holder went by what it knew
	for e := range l.has {
		if aged := e.Fact.Body.Aged; aged != nil && aged.Age == 0 && l.why[e] == "" {
			took = append(took, e)
		}
	}
	knew := func(a *log.Entry) bool {
		return slices.ContainsFunc(took, func(e *log.Entry) bool { return s.log.Knew(e, a) })
	}
	for _, a := range s.edition.heavy {
		if !slices.Contains(s.edition.left, a) && !knew(a) { // of one that does not go together with others it is told already
			out = append(out, a)
		}
	}
	return out
}

// Amendment is a change of the definition by which an instance runs.
type Amendment struct {
	At    *log.Entry
	Patch amendments.Meant
	Late  bool // it came after the data states had ended, and has no effect
	// Lost is what of it does not count, as it does not go together with one that was made side by side.
	Lost amendments.Patch
}

// Amendments are those that count, in the order in which they do.
func (s *State) Amendments() (out []Amendment) {
	late := s.Late()
	for i, p := range s.patches() {
		out = append(out, Amendment{At: s.amends[i], Patch: p, Late: slices.Contains(late, s.amends[i])})
	}
	for i := range out {
		if s.leaves(&out[i]) {
			out[i].lose(s.lost(out[i].Patch))
		}
		for j := range out[:i] {
			s.loseBeside(&out[j], &out[i])
		}
	}
	return out
}

// leaves reports whether an amendment does not go together with others, and so sets nothing.
func (s *State) leaves(a *Amendment) bool { return slices.Contains(s.edition.left, a.At) }

// loseBeside notes what does not count of two amendments, one and then the other in their order, if they were made side
// by side: of a key that both set what the later says counts, and of what both add what the first says that counts.
func (s *State) loseBeside(one, other *Amendment) {
	if s.log.Knew(other.At, one.At) {
		return
	}
	for _, c := range amendments.Clashes(one.Patch, other.Patch) {
		switch {
		case c.Key == "" && (!s.leaves(one) || !slices.Contains(byKeys, c.Kind)):
			other.lose(other.Patch.Of(c.Part))
		case c.Key != "" && !s.leaves(other):
			one.lose(slices.DeleteFunc(one.Patch.Of(c.Part), func(x amendments.Setting) bool { return x.Key != c.Key }))
		}
	}
}

// lose notes that some settings do not count.
func (a *Amendment) lose(some amendments.Patch) {
	for _, x := range some {
		if !slices.ContainsFunc(a.Lost, func(y amendments.Setting) bool { return x.Part == y.Part && x.Key == y.Key }) {
			a.Lost = append(a.Lost, x)
		}
	}
}

// byKeys are the kinds of parts that are there by their keys alone: an amendment that sets nothing adds none.
var byKeys = []amendments.Kind{amendments.OfCondition, amendments.OfConstraint, amendments.OfLoop}

// lost is what does not count of a patch that does not go together with others: what it sets, and those of the tasks
// that it adds which are not there, or not done.
func (s *State) lost(p amendments.Meant) amendments.Patch {
	out := p.Set()
	for _, t := range s.lostTasks(p) {
		out = append(out, p.Of(amendments.Part{Kind: amendments.OfTask, Name: string(t)})...)
	}
	return out
}

// lostTasks are those of the tasks that a patch adds which are not there, or not done. The rounds of loops are told as
// these.
func (s *State) lostTasks(p amendments.Meant) (out []workflow.TaskName) {
	for _, t := range p.Patch.Adds() {
		if x := s.def.Task(t); x == nil || x.Disabled && !enabledBy(p.Patch, t) {
			out = append(out, t)
		}
	}
	return out
}

func enabledBy(p amendments.Patch, t workflow.TaskName) bool {
	what, _ := p.Adding(t)
	return slices.ContainsFunc(what, func(x amendments.Setting) bool { return x.Key == "enabled" })
}
