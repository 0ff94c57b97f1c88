package state

import (
	"crypto/sha256"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
)

// This file is about the definitions by which facts are judged (amend.go): what of the amendments that count an
// author knew, which definition that makes, and which tasks, attempts and limits there are by it.

// What an author knows only grows along its chain, so of an instance with n heavy amendments a chain goes by n+1
// editions at most, each of which costs as much as to read a definition once. Those that are in use at one time are kept:
// maxEditions of them, of a long definition fewer, as many as have keptEditions bytes, but minEditions in any case. One
// author has so many chains (fact.MaxChains) that all its editions are among these.
const (
	minEditions  = 32
	maxEditions  = 1024
	keptEditions = 16 << 20
)

// manyEditions is how many definitions are kept that some authors went by, at a time.
func (s *State) manyEditions() int {
	return min(max(keptEditions/len(s.original.WrittenOut()), minEditions), maxEditions)
}

// editionOf is the definition that some amendments make of the one with which the instance was started.
func (s *State) editionOf(of []*log.Entry) *workflow.Definition {
	var name strings.Builder
	var patches []amendments.Meant
	for _, a := range of {
		name.Write(a.ID[:])
		patches = append(patches, s.fittings[a.ID].patch)
	}
	if d := s.edition.known[name.String()]; d != nil {
		return d
	}
	s.log.Steps += len(s.original.Tasks)
	d, _ := amendments.Effective(s.original, patches, s.doubtful(of), s.cut)
	keep(&s.edition.known, s.manyEditions(), name.String(), d)
	return d
}

// keep notes what was worked out, and forgets all before it where that is too much. Few instances are amended: the others
// have no such map.
func keep[K comparable, V any](in *map[K]V, most int, k K, v V) {
	if len(*in) >= most {
		clear(*in)
	}
	if *in == nil {
		*in = map[K]V{}
	}
	(*in)[k] = v
}

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

// doubtful says of amendments, in their order, whether the author of one did not know of all that come before it and
// on which it depends how facts are judged.
func (s *State) doubtful(of []*log.Entry) func(i int) bool {
	return func(i int) bool {
		return slices.ContainsFunc(of[:i], func(a *log.Entry) bool {
			return s.fittings[a.ID].patch.IsHeavy() && !s.log.Knew(of[i], a)
		})
	}
}

// patches are those that count, in their order.
func (s *State) patches() (out []amendments.Meant) {
	slices.SortFunc(s.amends, log.ByTime)
	for _, e := range s.amends {
		out = append(out, s.fittings[e.ID].patch)
	}
	return out
}

// Start is what an instance keeps of its start that amendments are held to: the definition, and which definitions the
// names of the workflows mean that it uses.
type Start struct {
	Def  *workflow.Definition
	Uses []fact.Pin
}

// cut says why an instance cannot run by a definition: it cannot be cut into partitions, or is driven by its data where
// the instance is not, or the other way round.
func (s *State) cut(d *workflow.Definition) error { return Start{Def: s.original}.cut(d) }

func (x Start) cut(d *workflow.Definition) error {
	was, is := x.Def.Flow(), d.Flow()
	if (was == nil) != (is == nil) || was != nil && was.Partition != is.Partition || d.FlowObstacle() != "" {
		return errors.New("an instance that is driven by its data stays so, at one partner")
	}
	if t, why := amendments.Turned(x.Def, d); why != "" {
		return errors.New("task " + string(t) + " " + why)
	}
	return partition.New(d).Err()
}

// limited is a task of an earlier edition with the limits, weights and words of now: these can be changed while it
// runs.
func (s *State) limited(t *workflow.Task) *workflow.Task {
	now := s.def.Task(t.Name)
	if now == nil || now == t {
		return t
	}
	x := *t
	x.Timeout, x.Priority, x.Urgency, x.Suitability, x.Duration = now.Timeout, now.Priority, now.Urgency,
		now.Suitability, now.Duration
	x.Label, x.Doc = now.Label, now.Doc
	return &x
}

// addTask notes that an amendment adds a task. It is at whoever has its partition as the author of the amendment knew:
// of a partition that two add unlike each has its own.
func (s *State) addTask(t workflow.TaskName, p *amendments.Meant, e *log.Entry) {
	what, home := p.Said(t)
	if home == "" {
		return // it only undoes others, and nobody is given it
	}
	text, at := "a task that is added: "+what, s.placedAt(home, e)
	if at != s.startedAt(home) {
		text += " at " + string(at)
	}
	id := fact.AttemptID{Fact: fact.ID(sha256.Sum256([]byte(text))), Slot: t}
	list := s.edition.added[t]
	for i := range list {
		if list[i].id == id {
			list[i].by = append(list[i].by, e)
			return
		}
	}
	s.edition.added[t] = append(list, addition{id, home, at, []*log.Entry{e}})
}

// IsAdded reports whether a slot is one of a task that an amendment added.
func (s *State) IsAdded(sl *Slot) bool { return len(s.edition.added[sl.Task.Name]) > 0 }

// isFirst reports whether an attempt is one that an amendment gave, and if so whether a fact's author knew of one.
func (s *State) isFirst(id fact.AttemptID, e *log.Entry) (first, known bool) {
	for _, x := range s.edition.added[id.Slot] {
		if x.id == id {
			return true, slices.ContainsFunc(x.by, func(a *log.Entry) bool { return s.log.Knew(e, a) })
		}
	}
	return false, false
}

// root is the first attempt with which the chain of a slot's attempts begins: of several the first from which
// something was begun, as that is not taken away, else the first.
func (s *State) root(sl *Slot) *Attempt {
	if len(s.edition.added[sl.Task.Name]) < 2 {
		return sl.Attempts[0]
	}
	var begun []*Attempt
	for _, a := range sl.Attempts {
		s.log.Steps++
		if a.Start == nil {
			continue
		}
		for a.after != nil {
			a = a.after
		}
		begun = append(begun, a)
	}
	for _, a := range sl.Attempts { // by depth, then the assigning fact
		if slices.Contains(begun, a) {
			return a
		}
	}
	return sl.Attempts[0]
}

// Original is the definition with which the instance was started.
func (s *State) Original() *workflow.Definition { return s.original }

// Editions are the definitions by which the instance has run since it was first amended: what the amendments that count
// make of the first one, all of them, and then one more each time, from the first.
func (s *State) Editions() iter.Seq[*workflow.Definition] {
	return func(yield func(*workflow.Definition) bool) {
		if len(s.amends) == 0 || !yield(s.def) {
			return
		}
		all := slices.SortedFunc(slices.Values(s.amends), log.ByTime)
		for i := 1; i < len(all); i++ {
			if !yield(s.editionOf(all[:i])) {
				return
			}
		}
	}
}
