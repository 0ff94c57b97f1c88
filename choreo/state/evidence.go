package state

import (
	"reflect"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what an author knew when it said something. That follows from the past of the fact, so it does not
// change any more. What an author might say by it is in rights.go.

// Evidence is what may have been true as far as a fact's author knew.
type Evidence struct {
	s      *State
	of     *log.Entry           // nil: of all that counts here
	number int                  // of this evidence; State.evidences counts them
	def    *workflow.Definition // by which its author went; nil: that was not asked yet
	within bool                 // a rule is being read, perhaps for another one
}

// EvidenceOf is what a fact's author knew; nil: all that counts here.
func (s *State) EvidenceOf(e *log.Entry) *Evidence {
	s.evidences++
	return &Evidence{s: s, of: e, number: s.evidences}
}

func (v *Evidence) knew(e *log.Entry) bool { return e != nil && (v.of == nil || v.s.log.Knew(v.of, e)) }

func (v *Evidence) any(es []*log.Entry) bool { return slices.ContainsFunc(es, v.knew) }

// certain is knew for what is held against the author.
func (v *Evidence) certain(e *log.Entry) bool { return v.of == nil || v.s.certain(v.of, e) }

// certain reports whether the author of e knew g, and that g counted: then g is held
// against e. What comes after a fork does not show for certain what its author went by, since
// whether it counted there depends on what else was there (converge.go, rule 8). So it is certain
// where nothing in g's past comes after a fork, as all of that counts by itself, wherever g is.
func (s *State) certain(e, g *log.Entry) bool {
	is := !g.Beyond && s.log.Knew(e, g)
	s.Bound = s.Bound || is
	return is
}

// Despite reports whether what counts was written by an author that knew of y, without
// that y is held against it.
func (s *State) Despite(x, y *log.Entry) bool { return y.Beyond && s.log.Knew(x, y) }

// knewOf reports whether its author knew of an attempt.
func (v *Evidence) knewOf(a *Attempt) bool { return v.of == nil || v.s.knewOf(v.of, a.ID) }

// knewOf reports whether e's author knew of what an attempt that exists is named
// by.
func (s *State) knewOf(e *log.Entry, id fact.AttemptID) bool {
	if id.Fact.IsZero() {
		return true
	}
	if first, known := s.isFirst(id, e); first {
		return known
	}
	return s.log.Knew(e, s.log.ByID()[id.Fact])
}

// givenUp reports whether an attempt's holder was known to have given it up.
func (v *Evidence) givenUp(a *Attempt) bool {
	return slices.ContainsFunc(a.Rulings, func(r *Ruling) bool { return r.Final && v.knew(r.At) })
}

// gaveUp is givenUp where that is held against the author.
func (v *Evidence) gaveUp(a *Attempt) bool {
	return slices.ContainsFunc(a.Rulings, func(r *Ruling) bool { return r.Final && v.certain(r.At) })
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

// began is the earliest start of an attempt that its author knew, or is; nil: it knew none.
func (v *Evidence) began(a *Attempt) (began *log.Entry) {
	for _, e := range a.Starts {
		if v.knew(e) || e == v.of {
			began = earlier(began, e)
		}
	}
	return began
}

// reading are the data that the task of an attempt had under in, as its author knew it. What data states fired, and what
// undoes something, says so by itself; so does a task which of those that add it unlike not the first says. Who keeps
// data states reads what there is to be read now.
func (v *Evidence) reading(a *Attempt) []workflow.DataName {
	if len(v.s.edition.heavy) == 0 || a.Beside() || a.Task.Whole {
		return a.Task.In
	}
	known, now := v.under().Task(a.Task.Name), v.s.def.Task(a.Task.Name)
	if known == nil || now == nil || slices.Equal(known.In, a.Task.In) || !alikeButIn(a.Task, now) {
		return a.Task.In
	}
	return known.In
}

// alikeButIn reports whether two tasks differ in nothing but what they read.
func alikeButIn(x, y *workflow.Task) bool {
	t := *x
	t.In = y.In
	return reflect.DeepEqual(t, *y)
}

// decl is how a data item was declared, as its author knew; nil: it was not.
func (v *Evidence) decl(n workflow.DataName) *workflow.DataDecl {
	def := v.under()
	if def == v.s.def {
		return v.s.decls[n]
	}
	return def.Datum(n)
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
