package state

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
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
// Light patches set limits of time, weights and words. Whether a fact counts, and what it does to slots, does not
// depend on these. On a heavy one it may (amendments.Patch.IsHeavy), so a fact is judged by the amendments that its
// author knew: what was right by the definition in its past stays right, whatever was amended elsewhere. The slots are
// those of all amendments that count. A task that an amendment adds is there for whoever knew of that, and for others
// it is not: its first attempt is named by what the amendment says of it. So what several say alike is one attempt, and
// what they say unlike are several in one slot, of which one is in charge (root): what counted goes on to count.
//
// The history of an instance that is driven by its data goes by what its holder says that it goes by (fact.Aged), and a
// transition by what its trigger said as whoever fired it knew: of what is amended later it takes what is light.
//
// When the definition becomes another, all slots are made again from all facts. So it does not matter that facts which
// came together with their amendment were looked at under the definition before.

// edition is how facts are judged: by the amendments that count, as far as their authors knew of them.
type edition struct {
	heavy []*log.Entry                     // those on which it depends, in their order
	added map[workflow.TaskName][]addition // the tasks that they add, each in their order
	left  []*log.Entry                     // those of which nothing counts but the tasks that they add
	known map[string]*workflow.Definition  // by those that somebody knew
	flows map[workflow.Hash]*dataflow.Flow // of these
	// looked are the patches that were looked at.
	looked map[fittingOf]fitting
}

// addition is a task as amendments add it.
type addition struct {
	id   fact.AttemptID // of its first attempt
	home workflow.PartitionName
	by   []*log.Entry // those that say it so, in their order
}

// addedTo notes that an amendment adds a task.
func addedTo(list []addition, t workflow.TaskName, p amendments.Patch, e *log.Entry) []addition {
	what, home := p.Adding(t)
	id := fact.AttemptID{Fact: fact.ID(sha256.Sum256([]byte("a task that is added: " + what.Text()))), Slot: t}
	for i := range list {
		if list[i].id == id {
			list[i].by = append(list[i].by, e)
			return list
		}
	}
	return append(list, addition{id, home, []*log.Entry{e}})
}

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
	return min(max(keptEditions/len(s.original.Canonical()), minEditions), maxEditions)
}

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
		f = s.fitting(x.Patch, known)
		s.fittings[e.ID] = f
	}
	return f.why
}

// fitting looks at a patch, of one definition once: a partner may bring one word of somebody who may amend for ever.
func (s *State) fitting(patch string, known *workflow.Definition) (f fitting) {
	of := fittingOf{sha256.Sum256([]byte(patch)), known.Hash()}
	f, seen := s.edition.looked[of]
	if seen {
		return f
	}
	s.log.Steps += len(known.Tasks)
	var err error
	if f.patch, err = amendments.DecodePatch(patch); err == nil {
		err = s.Fits(known, f.patch)
	}
	if f.known = known.Hash(); err != nil {
		f.why = "it amends what the workflow does not have, or cannot have so"
	}
	if len(s.edition.looked) >= maxEditions {
		clear(s.edition.looked)
	}
	s.edition.looked[of] = f
	return f
}

// fittingOf names a patch that was looked at.
type fittingOf struct {
	patch [sha256.Size]byte
	known workflow.Hash
}

// SteersBegun reports whether a patch sets what a task waits for, or whether it is done at all, which had begun as the
// author of what is judged knew.
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
	if made, left := amendments.Effective(known, []amendments.Patch{p}, always, s.cut); made == known || len(left) > 0 {
		return errors.New("with it the definition cannot be cut into its partitions")
	}
	return nil
}

// cut says why an instance cannot run by a definition: it cannot be cut into partitions, or is driven by its data where
// the instance is not, or the other way round.
func (s *State) cut(d *workflow.Definition) error {
	was, is := s.original.Flow(), d.Flow()
	if (was == nil) != (is == nil) || was != nil && was.Partition != is.Partition || d.FlowObstacle() != "" {
		return errors.New("an instance that is driven by its data stays so, at one partner")
	}
	return partition.New(d).Err()
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
	s.log.Steps += len(s.original.Tasks)
	if len(s.edition.known) >= s.manyEditions() {
		clear(s.edition.known)
	}
	d, _ := amendments.Effective(s.original, patches, s.doubtful(of), s.cut)
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
		def, left := amendments.Effective(s.original, patches, s.doubtful(s.formedBy), s.cut)
		was := s.edition.heavy
		s.edition.heavy, s.edition.left, s.edition.added = nil, nil, map[workflow.TaskName][]addition{}
		for i, p := range patches {
			e := s.formedBy[i]
			if p.IsHeavy() {
				s.edition.heavy = append(s.edition.heavy, e)
			}
			for _, t := range p.Adds() {
				s.edition.added[t] = addedTo(s.edition.added[t], t, p, e)
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

// decl is how a data item was declared, as its author knew; nil: it was not.
func (v *Evidence) decl(n workflow.DataName) *workflow.DataDecl {
	def := v.under()
	if def == v.s.def {
		return v.s.decls[n]
	}
	return def.Datum(n)
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

// flowBy is the flow of the definition with some heavy amendments.
func (s *State) flowBy(heavy []*log.Entry) *dataflow.Flow {
	if len(heavy) == 0 {
		return s.flow.first
	}
	def := s.editionOf(heavy)
	if f := s.edition.flows[def.Hash()]; f != nil {
		return f
	}
	if len(s.edition.flows) >= s.manyEditions() {
		clear(s.edition.flows)
	}
	f := dataflow.New(def)
	s.edition.flows[def.Hash()] = f
	return f
}

// TakesUp reports whether whoever holds the flow has amendments to take up: it does not go by all of them yet. Once it
// has said so it does not say it again, though a fork may keep it from knowing of one that counts.
func (s *State) TakesUp() bool {
	l := s.flow.Line
	if x := l.last; x != nil && x.Fact.Body.Aged != nil && x.Fact.Body.Aged.Age == 0 &&
		!slices.ContainsFunc(s.edition.heavy, func(a *log.Entry) bool { return a.Index > x.Index }) {
		return false
	}
	return len(s.edition.heavy) > 0 && !l.Board.Ended() && l.Board.Flow().Hash() != s.flowBy(s.edition.heavy).Hash()
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

// firsts are the first attempts of a slot: one that the genesis gave to the holder of its partition, or of a task that
// was added one for each of those who added it unlike, the earliest first. room and out have place for one.
func (s *State) firsts(sl *Slot, room *Attempt, out []*Attempt) []*Attempt {
	t := sl.Task.Name
	*room = Attempt{Slot: sl, Task: sl.Task, Depth: 1, turns: noTurns}
	added := s.edition.added[t]
	if len(added) == 0 {
		room.ID, room.Partner, room.Assigned = fact.AttemptID{Slot: t}, s.holder[s.plan.Home(t)], s.log.Genesis()
		return append(out, room)
	}
	for i, x := range added {
		a := room
		if i > 0 { // it is what its own amendment says, whatever the slot's task is
			says := s.editionOf(s.heavyIn(s.edition.heavy, x.by[0])).Task(t)
			a = &Attempt{Slot: sl, Task: cmp.Or(says, sl.Task), Depth: 1, turns: noTurns}
		}
		a.ID, a.Partner, a.Assigned = x.id, s.holder[x.home], x.by[0]
		out = append(out, a)
	}
	return out
}

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

// lost are what does not count of a patch that does not go together with others: what it sets, and those of the tasks
// that it adds which are not there, or not done.
func (s *State) lost(p amendments.Patch) []string {
	out := p.Set().Lines()
	for _, t := range p.Adds() {
		if x := s.def.Task(t); x == nil || x.Disabled && !enabledBy(p, t) {
			out = append(out, "task "+string(t))
		}
	}
	return out
}

func enabledBy(p amendments.Patch, t workflow.TaskName) bool {
	what, _ := p.Adding(t)
	return slices.ContainsFunc(what, func(x amendments.Setting) bool { return x.Key == "enabled" })
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
				switch {
				case c.Key == "" && c.Kind != amendments.OfTask:
					what = "two amendments were made side by side, and add " + c.Part.String() + " unlike; it is as the first of " +
						"them says, and what the other needs can be added under another name"
				case c.Key == "":
					what = "two amendments were made side by side, and add " + c.Part.String() + " unlike; it is as the first of " +
						"them says, in partition " + string(s.plan.Home(workflow.TaskName(c.Name))) + ", and what was begun as the " +
						"other says counts; that can be added under another name"
				}
				say(b.At, c.Part, what)
			}
		}
	}
	for _, e := range s.edition.left {
		say(e, amendments.Part{}, "an amendment does not go together with one that was made side by side; "+
			"of it this does not count: "+strings.Join(s.lost(s.fittings[e.ID].patch), "; "))
	}
	return out
}
