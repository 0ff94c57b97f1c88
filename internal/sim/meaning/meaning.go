package meaning

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Meaning is how an instance stands by a set of facts.
type Meaning struct {
	h          *History
	def        *workflow.Definition     // with what was amended (amend.go)
	patches    []patched                // that say so, in their order
	added      map[fact.AttemptID][]int // first attempts of what was added, and by which facts
	in         Set
	forks      map[fact.Chain]uint64
	beyond     Set // what comes after a fork, or has such a fact in its past
	counts     Set
	genesis    *fact.Genesis
	joined     map[workflow.PartnerID][]int // by which facts
	slots      []*Slot                      // in rule order
	bySlot     map[workflow.TaskName]*Slot
	attempts   map[fact.AttemptID]*Attempt
	successOf  map[fact.ID]*Attempt
	cancelled  bool
	cancels    []int // the facts that say so
	writtenOff map[workflow.PartnerID]bool
	data       map[workflow.DataName]written
	claims     []claimed
	flow       *flow                                        // nil: the definition has none
	adopted    map[int]map[workflow.DataName]workflow.Value // what adoptions brought
	reserves   []reserved
	kept       map[workflow.PartitionName][]int // the facts by which resources were taken over
	spoken     map[string][]int                 // words of people, by what they say: the claims that they are in
	idle       bool                             // what is undecided about data stays so
	broken     bool                             // the data break a strict constraint
	final      bool                             // the data are final

	Data  map[workflow.DataName]workflow.Value
	State workflow.InstanceState
}

// Slot is a task of the definition that rules speak of.
type Slot struct {
	Task     *workflow.Task
	State    workflow.State
	Attempts []*Attempt
	Current  *Attempt
	Pick     *Attempt
	Held     bool
	Pending  bool // nobody could take its contingency yet

	place   int
	outcome *ruling
	asked   *ruling // by which it is pending
}

// Attempt is a partner that was to fill a slot, and by which task.
type Attempt struct {
	ID      fact.AttemptID
	Partner workflow.PartnerID
	Stands  bool

	slot      *Slot
	task      *workflow.Task
	depth     int
	replaced  int // by how many verdicts
	assigned  int
	ready     int // fact; none
	start     int // the first
	starts    []int
	base      int // the start that says what it was built upon
	off       int
	kept      int
	tries     int
	failed    map[int]bool // tries
	successes []int
	rulings   []*ruling
	found     []*Attempt // assigned later, for a verdict
	passed    []*Attempt // by its holder
	again     []*Attempt // by its holder, as an order asked
	held      bool       // it may yet stand
	after     *Attempt   // the one before it
	by        *ruling    // because of which; nil: it was passed on
	overruled bool       // its holder had given it up
	skips     bool       // an order began it, to have its task left out
	undone    bool       // an order has it compensated, though it counts
	blame     []workflow.PartnerID
	undo      *Attempt
	undoes    *Attempt
	early     int      // how often a transition's result was not taken yet, as its state would have been final
	fired     *Attempt // the one at the flow by which it was fired, if it is a transition, or undoes one in a recovery
}

// none is no fact.
const none = -1

type ruling struct {
	at     int
	action fact.Action
	final  bool
	void   bool // its author knew of the success
	next   *Attempt
}

type written struct {
	value workflow.Value
	by    int // none: the genesis
}

// Of works out what a part of a history means. The part holds with a fact its past.
func (h *History) Of(in Set) *Meaning { return h.with(in, nil) }

// with is Of, as if more had been ruled.
func (h *History) with(in Set, more func(*Meaning)) *Meaning {
	m := &Meaning{
		h: h, def: h.def, added: map[fact.AttemptID][]int{}, in: in, forks: h.forks(in), counts: make(Set, len(in)), genesis: h.facts[0].Body.Genesis,
		joined: map[workflow.PartnerID][]int{},
		bySlot: map[workflow.TaskName]*Slot{}, attempts: map[fact.AttemptID]*Attempt{},
		successOf: map[fact.ID]*Attempt{}, writtenOff: map[workflow.PartnerID]bool{},
		kept: map[workflow.PartitionName][]int{}, spoken: map[string][]int{}, adopted: map[int]map[workflow.DataName]workflow.Value{},
	}
	m.beyond = h.beyond(in, m.forks)
	m.layOut()
	good := h.good(in)
	for i := range h.facts {
		if good.has(i) && !h.refused[i] && m.takesPart(h.facts[i].Chain.Author, i) && m.enter(i) {
			m.counts.add(i)
		}
	}
	m.order()
	if more != nil {
		more(m)
	}
	for _, sl := range m.slots {
		m.weigh(sl)
		m.follow(sl)
	}
	for _, sl := range slices.Backward(m.slots) {
		m.judge(sl)
	}
	m.write()
	m.laying()
	m.broken = m.breaks()
	m.final = m.def.Flow() == nil && m.def.Final != nil && m.keeps(workflow.Constraint{When: m.def.Final}, nil)
	m.settle()
	m.State = m.overall()
	return m
}

// layOut makes the slots and their first attempts.
func (m *Meaning) layOut() {
	for _, p := range m.genesis.Succession {
		m.joined[p] = []int{0}
	}
	holder := map[workflow.TaskName]workflow.PartnerID{}
	for _, p := range m.def.Partitions {
		for _, a := range m.genesis.Assign {
			for _, t := range p.Tasks {
				if a.Partition == p.Name {
					holder[t] = a.Partner
				}
			}
		}
	}
	for _, name := range m.def.TopoOrder() {
		t := m.def.Task(name)
		if t.ContingencyOnly {
			continue
		}
		sl := &Slot{Task: t, State: workflow.NotReady, place: len(m.slots)}
		m.slots, m.bySlot[name] = append(m.slots, sl), sl
		m.attempt(sl, fact.AttemptID{Slot: name}, t, holder[name], 0)
		if t.Whole {
			m.flow = &flow{slot: sl, records: map[*Attempt][]int{}}
		}
	}
}

func (m *Meaning) attempt(sl *Slot, id fact.AttemptID, t *workflow.Task, p workflow.PartnerID, by int) *Attempt {
	a := &Attempt{
		ID: id, Partner: p, slot: sl, task: t, assigned: by,
		ready: none, start: none, base: none, off: none, kept: none, failed: map[int]bool{},
	}
	m.attempts[id] = a
	sl.Attempts = append(sl.Attempts, a)
	return a
}

// follows makes the attempt that comes after another: because of a verdict, or as its
// holder passed it on.
func (m *Meaning) follows(a *Attempt, by int, r *ruling, t workflow.TaskName, p workflow.PartnerID) *Attempt {
	n := m.attempt(a.slot, fact.AttemptID{Fact: m.h.facts[by].id, Slot: a.slot.Task.Name}, m.def.Task(t), p, by)
	n.depth, n.replaced, n.after, n.by = a.depth+1, a.replaced, a, r
	if r != nil {
		n.replaced++
	}
	m.joined[p] = append(m.joined[p], by)
	return n
}

// takesPart reports whether a partner took part as far as a fact's author knew.
func (m *Meaning) takesPart(p workflow.PartnerID, i int) bool {
	return slices.ContainsFunc(m.joined[p], func(by int) bool { return m.h.knew(i, by) })
}

// known is the attempt of that name, if fact i's author knew of it.
func (m *Meaning) known(id fact.AttemptID, i int) *Attempt {
	a := m.attempts[id]
	if by := m.added[id]; len(by) > 0 {
		if slices.ContainsFunc(by, func(j int) bool { return m.h.knew(i, j) }) {
			return a
		}
		return nil
	}
	if a == nil || (!id.Fact.IsZero() && !m.h.knew(i, m.h.index[id.Fact])) {
		return nil
	}
	return a
}

// own is the attempt of that name, if fact i's author knew of it and holds it.
func (m *Meaning) own(id fact.AttemptID, i int) *Attempt {
	if a := m.known(id, i); a != nil && a.Partner == m.h.facts[i].Chain.Author {
		return a
	}
	return nil
}

// enter takes a fact in. It reports whether it counts: its author may say that.
func (m *Meaning) enter(i int) bool {
	switch b := &m.h.facts[i].Body; {
	case b.Ready != nil:
		return m.said(m.own(b.Ready.Attempt, i), func(a *Attempt) { first(&a.ready, i) })
	case b.Start != nil && b.Success != nil:
		a := m.own(b.Start.Attempt, i)
		return a != nil && a.undoes == nil && a.task.ByNode() && m.mayBegin(i, a) && m.mayEnd(i, a, b.Success) &&
			m.enterStart(i, b.Start) && m.enterSuccess(i, b.Success)
	case b.Start != nil:
		return m.enterStart(i, b.Start)
	case b.Success != nil:
		return m.enterSuccess(i, b.Success)
	case b.TryFailed != nil:
		return m.said(m.own(b.TryFailed.Attempt, i), func(a *Attempt) {
			if a.failed[b.TryFailed.Try] = true; tooEarly(a, b.TryFailed) {
				a.early++
			}
		})
	case b.Child != nil:
		a := m.own(b.Child.Attempt, i)
		return a != nil && a.task.Type == workflow.SubWorkflow &&
			slices.ContainsFunc(a.starts, func(s int) bool { return m.h.knew(i, s) })
	case b.Lease != nil:
		return m.enterLease(i, b.Lease)
	case b.Fire != nil:
		return m.enterFire(i, b.Fire)
	case b.Aged != nil:
		a := m.holdsFlow(b.Aged.Attempt, i)
		if a != nil {
			m.record(a, i)
		}
		return a != nil
	case b.CalledOff != nil:
		return m.said(m.own(b.CalledOff.Attempt, i), func(a *Attempt) { first(&a.off, i) })
	case b.Verdict != nil:
		return m.enterVerdict(i, b.Verdict)
	case b.Assign != nil:
		return m.enterAssign(i, b.Assign)
	case b.WriteOff != nil:
		ok := m.takesPart(b.WriteOff.Partner, i)
		m.writtenOff[b.WriteOff.Partner] = m.writtenOff[b.WriteOff.Partner] || ok
		return ok
	case b.Claim != nil:
		return m.enterClaim(i, b.Claim)
	case b.Cancel != nil:
		m.cancelled, m.cancels = true, append(m.cancels, i)
	}
	return true
}

func (m *Meaning) said(a *Attempt, say func(*Attempt)) bool {
	if a != nil {
		say(a)
	}
	return a != nil
}

func first(at *int, i int) {
	if *at == none || earlier(i, *at) {
		*at = i
	}
}

// mayBegin reports whether fact i's author may start an attempt of its own.
func (m *Meaning) mayBegin(i int, a *Attempt) bool {
	return !m.unitless(i, a) || slices.ContainsFunc(a.starts, func(s int) bool { return m.h.knew(i, s) })
}

func (m *Meaning) enterStart(i int, b *fact.Start) bool {
	if !m.undoBegins(b.Attempt, i) {
		return false
	}
	a := m.own(b.Attempt, i)
	if a == nil || !m.mayBegin(i, a) {
		return false
	}
	first(&a.start, i)
	a.starts = append(a.starts, i)
	a.tries = max(a.tries, b.Try)
	if !a.task.ByNode() {
		m.taken(i, a.ID)
	}
	return true
}

func (m *Meaning) enterLease(i int, b *fact.Lease) bool {
	a := m.own(b.Attempt, i)
	if a == nil || !slices.ContainsFunc(a.starts, func(s int) bool { return m.h.knew(i, s) }) {
		return false
	}
	m.taken(i, a.ID)
	return true
}

func (m *Meaning) enterSuccess(i int, b *fact.Success) bool {
	a := m.own(b.Attempt, i)
	if a == nil || !m.mayEnd(i, a, b) {
		return false
	}
	m.succeed(a, i)
	return true
}

// mayEnd reports whether fact i's author may end an attempt of its own with that result.
func (m *Meaning) mayEnd(i int, a *Attempt, b *fact.Success) bool {
	if slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.final && m.certain(i, r.at) }) {
		return false
	}
	again := slices.ContainsFunc(a.successes, func(s int) bool { return m.certain(i, s) })
	if again || knewMany(m, fact.MaxSuccesses, i, a.successes, func(s int) int { return s }) {
		return false
	}
	for n, v := range b.Outputs {
		d := slices.IndexFunc(m.def.Data, func(d workflow.DataDecl) bool { return d.Name == n })
		if d < 0 || !slices.Contains(a.task.Out, n) {
			return false
		}
		if _, err := workflow.CheckValue(&m.def.Data[d], v); err != nil {
			return false
		}
	}
	return true
}

// succeed notes a success of an attempt: its holder's, or the adoption of a result.
func (m *Meaning) succeed(a *Attempt, i int) {
	a.successes = append(a.successes, i)
	if a.fired != nil {
		m.record(a.fired, i)
	}
	if a.undoes != nil {
		return
	}
	id := m.h.facts[i].id
	m.successOf[id] = a
	if t := a.undoing(m.def); t != nil {
		m.undoneBy(a, t, i)
	}
}

// gave is what a success brought.
func (m *Meaning) gave(i int) map[workflow.DataName]workflow.Value {
	if s := m.h.facts[i].Body.Success; s != nil {
		return s.Outputs
	}
	return m.adopted[i]
}

// certain reports whether fact i's author knew fact j, and that it counted: then j is held
// against i. What comes after a fork may not have counted for that author, whatever it was
// that came to build upon it later (the convergence rule, 8).
func (m *Meaning) certain(i, j int) bool { return m.h.knew(i, j) && !m.beyond.has(j) }

// despite reports whether fact i's author knew fact j, which is not held against it.
func (m *Meaning) despite(i, j int) bool { return m.h.knew(i, j) && m.beyond.has(j) }

// enterVerdict: an action counts unless the attempt's success is held against its author,
// and only if it is what the definition chose for the failure.
func (m *Meaning) enterVerdict(i int, v *fact.Verdict) (any bool) {
	judged := map[*Slot]bool{}
	for _, x := range v.Actions {
		a := m.known(x.Attempt, i)
		if a == nil || judged[a.slot] || !m.chosen(a, x, i) ||
			v.Cause == fact.CauseLost && (a.Partner != m.h.facts[i].Chain.Author || !m.readsAFile(a, i)) {
			continue
		}
		if slices.ContainsFunc(a.successes, func(s int) bool { return m.certain(i, s) }) {
			continue
		}
		if knewMany(m, fact.MaxVerdicts, i, a.ruledBy(m.h.facts[i].Chain.Author),
			func(r *ruling) int { return r.at }) || x.Partner != "" && m.movedOften(i, a.slot) {
			continue
		}
		judged[a.slot], any = true, true
		m.rule(a, i, x)
	}
	return any
}

// ruledBy are the verdicts of the holder on its own attempt, or those of others.
func (a *Attempt) ruledBy(p workflow.PartnerID) []*ruling {
	return slices.DeleteFunc(slices.Clone(a.rulings), func(r *ruling) bool { return r.final != (a.Partner == p) })
}

// knewMany reports whether a fact's author knew of as many as that of some things.
func knewMany[T any](m *Meaning, many, i int, things []T, by func(T) int) bool {
	n := 0
	for _, x := range things {
		if m.h.knew(i, by(x)) {
			n++
		}
	}
	return n >= many
}

// movedOften reports whether a fact's author had found others for a slot as often as it may.
func (m *Meaning) movedOften(i int, sl *Slot) bool {
	own := slices.DeleteFunc(slices.Clone(sl.Attempts), func(a *Attempt) bool {
		return a.after == nil || m.h.facts[a.assigned].Chain.Author != m.h.facts[i].Chain.Author
	})
	return knewMany(m, fact.MaxAttempts, i, own, func(a *Attempt) int { return a.assigned })
}

func (m *Meaning) rule(a *Attempt, i int, x fact.Action) {
	r := &ruling{at: i, action: x, final: a.Partner == m.h.facts[i].Chain.Author}
	a.rulings = append(a.rulings, r)
	if a.fired != nil {
		m.record(a.fired, i)
	}
	if x.Kind == workflow.FailContingency && x.Partner != "" {
		r.next = m.follows(a, i, r, x.Task, x.Partner)
	}
}

// readsAFile reports whether an attempt's task has a file under in, as it was known when it began; before that as fact
// i's author knew.
func (m *Meaning) readsAFile(a *Attempt, i int) bool {
	began := none
	for _, s := range a.starts {
		if m.h.knew(i, s) {
			first(&began, s)
		}
	}
	if began != none {
		i = began
	}
	def := m.under(i)
	return slices.ContainsFunc(def.Data, func(d workflow.DataDecl) bool {
		return d.Type == workflow.TypeFile && slices.Contains(a.as(def).In, d.Name)
	})
}

// chosen reports whether an action is what the definition wants done when the
// attempt fails, as fact i's author knew.
func (m *Meaning) chosen(a *Attempt, x fact.Action, i int) bool {
	author := m.h.facts[i].Chain.Author
	if a.beside() {
		return author == a.Partner && x.Kind == workflow.FailBlock && x.Task == ""
	}
	if a.skips && author == a.Partner {
		return x.Kind == workflow.FailRelease && x.Task == ""
	}
	t := a.as(m.under(i))
	return x.Kind == cmp.Or(t.OnFailure, workflow.FailBlock) && x.Task == t.Contingency
}

func (m *Meaning) enterAssign(i int, b *fact.Assign) bool {
	a := m.attempts[b.After]
	if a == nil || b.Partner == "" {
		return false
	}
	if b.Verdict.IsZero() { // its holder passes it on, or says that it keeps it
		switch {
		case a.undoes != nil || a.Partner != m.h.facts[i].Chain.Author || !m.h.knew(i, a.assigned) ||
			b.Task != a.task.Name:
			return false
		case b.Partner == a.Partner:
			first(&a.kept, i)
		case m.movedOften(i, a.slot):
			return false
		default:
			a.passed = append(a.passed, m.follows(a, i, nil, b.Task, b.Partner))
		}
		return true
	}
	if x := m.h.facts[i].Body.Annex; x != nil && x.Order != nil {
		return m.enterAgain(i, a, b, *x.Order)
	}
	for _, r := range a.rulings {
		if m.movedOften(i, a.slot) {
			return false
		}
		if m.h.facts[r.at].id == b.Verdict && r.next == nil && r.action.Kind == workflow.FailContingency &&
			m.h.knew(i, r.at) && b.Task == r.action.Task {
			a.found = append(a.found, m.follows(a, i, r, b.Task, b.Partner))
			return true
		}
	}
	return false
}

// authority orders facts by their authors' right to decide: the higher office,
// the earlier in the succession, the lower hash.
func (m *Meaning) authority(i, j int) int {
	a, b := m.h.facts[i], m.h.facts[j]
	place := func(p workflow.PartnerID) int {
		if n := slices.Index(m.genesis.Succession, p); n >= 0 {
			return n
		}
		return len(m.genesis.Succession)
	}
	office := compareOffices(b.Body.Verdict, a.Body.Verdict)
	return cmp.Or(office, cmp.Compare(place(a.Chain.Author), place(b.Chain.Author)), compareIDs(a.id, b.id))
}

func compareOffices(a, b *fact.Verdict) int {
	has := func(v *fact.Verdict) bool { return v != nil && v.Office != nil }
	switch {
	case !has(a) && !has(b):
		return 0
	case !has(a):
		return -1
	case !has(b):
		return 1
	}
	x, y := a.Office, b.Office
	return cmp.Or(cmp.Compare(x.Term, y.Term), cmp.Compare(x.Number, y.Number), bytes.Compare(x.List[:], y.List[:]))
}

// follow finds the attempt in charge of a slot.
func (m *Meaning) follow(sl *Slot) {
	for a := sl.Attempts[0]; a != nil; {
		sl.Current = a
		a = m.next(a)
	}
}

// next is the attempt that follows one; nil: it is in charge, or nobody is.
func (m *Meaning) next(a *Attempt) *Attempt {
	byAuthority := func(x, y *Attempt) int { return m.authority(x.assigned, y.assigned) }
	if len(a.passed) > 0 {
		return slices.MinFunc(a.passed, byAuthority)
	}
	rulings := slices.DeleteFunc(slices.Clone(a.rulings), func(r *ruling) bool { return r.void })
	if len(rulings) == 0 {
		return nil
	}
	r := slices.MinFunc(rulings, func(x, y *ruling) int { return m.authority(x.at, y.at) })
	if r.action.Kind != workflow.FailContingency {
		if len(a.again) > 0 {
			return slices.MinFunc(a.again, byAuthority)
		}
		a.slot.outcome = r
		return nil
	}
	if r.next != nil {
		return r.next
	}
	var answers []*Attempt
	for _, n := range a.found {
		if m.h.facts[n.assigned].Body.Assign.Verdict == m.h.facts[r.at].id {
			answers = append(answers, n)
		}
	}
	if len(answers) == 0 {
		a.slot.Pending, a.slot.asked = true, r
		return nil
	}
	return slices.MinFunc(answers, byAuthority)
}

// success is the attempt's success that counts; none if it has none.
func (a *Attempt) success() int {
	if len(a.successes) == 0 {
		return none
	}
	return a.successes[0]
}

// givenUp reports whether the attempt's own holder said that it failed.
func (a *Attempt) givenUp() bool {
	return slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.final && !r.void })
}

// judge says which success a slot has. Slots are judged from the last to the first.
//
//   - What a standing success was built upon stands, and what the attempt builds
//     upon that is in charge of a later slot, has started and still works.
//   - Else one is picked, by the definition's choice.
//   - For keep-replacement nobody is picked while a later attempt works.
func (m *Meaning) judge(sl *Slot) {
	var all, built, perhaps []*Attempt
	for _, a := range sl.Attempts {
		if a.success() == none {
			continue
		}
		if !a.overruled {
			all = append(all, a)
		}
		switch stands, held := m.claimed(a); {
		case stands:
			built = append(built, a)
		case held:
			perhaps = append(perhaps, a)
		}
	}
	c := sl.Current
	works := c.start != none && c.off == none && c.success() == none && sl.outcome == nil && !sl.Pending
	later := !slices.ContainsFunc(all, func(a *Attempt) bool { return a.replaced > c.replaced })
	switch {
	case len(built) > 0:
		sl.Pick = m.prefer(sl, built)
	case len(all) > 0 && sl.Task.Reconcile == workflow.KeepReplacement && works && later:
		sl.Held, perhaps = true, append(perhaps, all...)
	case len(perhaps) > 0:
		sl.Pick = m.prefer(sl, perhaps)
	case len(all) > 0:
		sl.Pick = m.prefer(sl, all)
		built = []*Attempt{sl.Pick}
	}
	for _, a := range perhaps {
		a.held = true
	}
	for _, a := range built {
		a.Stands, a.held = true, false
	}
}

// claimed reports whether a later attempt that counts was built upon one of a's
// successes, or may come to count.
func (m *Meaning) claimed(a *Attempt) (stands, held bool) {
	for _, sl := range m.slots[a.slot.place+1:] {
		for _, u := range sl.Attempts {
			if !slices.Contains(m.builtUpon(u), a) || m.props(u, a) {
				continue
			}
			succeeded := slices.ContainsFunc(sl.Attempts,
				func(x *Attempt) bool { return x.success() != none && !x.overruled })
			over := sl.Current.givenUp() || (sl.outcome != nil && sl.outcome.action.Kind != workflow.FailBlock)
			switch {
			case u.success() != none:
				stands, held = stands || u.Stands, held || u.held
			case u.off != none || sl.Current != u || over:
			case sl.Held:
				held = true
			case !succeeded:
				stands = true
			}
		}
	}
	return stands, held
}

// builtUpon are the attempts whose successes an attempt consumed: those that its start
// names, and of a slot of which it names nothing the one that it knew to have succeeded.
func (m *Meaning) builtUpon(u *Attempt) (out []*Attempt) {
	if u.base == none || u.undoes != nil {
		return nil
	}
	named := map[workflow.TaskName]fact.ID{}
	for _, c := range m.h.facts[u.base].Body.Start.Consumed {
		named[c.Slot] = c.Fact
	}
	for _, from := range m.beforeAt(u.slot, u.base) {
		a := m.unnamed(from, func(ok int) bool { return m.h.knew(u.base, ok) })
		if id, is := named[from.Task.Name]; is {
			if a = m.successOf[id]; a != nil && (a.slot != from || !m.h.knew(u.base, m.h.index[id])) {
				a = nil
			}
		}
		if a != nil && from.place < u.slot.place {
			out = append(out, a)
		}
	}
	return out
}

// unnamed is what a start built upon of a slot if it does not say: the attempt whose success
// it knew. nil: it knew none, or those of several.
func (m *Meaning) unnamed(from *Slot, knew func(ok int) bool) *Attempt {
	known := slices.DeleteFunc(slices.Clone(from.Attempts),
		func(a *Attempt) bool { return !slices.ContainsFunc(a.successes, knew) })
	if len(known) != 1 {
		return nil
	}
	return known[0]
}

// before are the slots that a slot's rule speaks of.
func (m *Meaning) before(sl *Slot) []*Slot { return spokenOf(sl, m.slotsOf) }

// beforeAt are these as fact i's author knew them.
func (m *Meaning) beforeAt(sl *Slot, i int) []*Slot {
	def := m.under(i)
	return spokenOf(sl, func(t workflow.TaskName) []*Slot {
		return m.slotsBy(t, def, func(of int) bool { return m.h.knew(i, of) })
	})
}

func spokenOf(sl *Slot, slots func(workflow.TaskName) []*Slot) (out []*Slot) {
	sl.Task.Rule.Terms(func(r *workflow.Rule) {
		if r.Op != workflow.OpTask {
			return
		}
		for _, from := range slots(r.Task) {
			if !slices.Contains(out, from) {
				out = append(out, from)
			}
		}
	})
	return out
}

// slotsOf are the slots that a task may fill.
func (m *Meaning) slotsOf(t workflow.TaskName) []*Slot {
	return m.slotsBy(t, m.def, func(int) bool { return true })
}

// slotsBy are the slots that a task may fill by a definition, and those in which it was to stand by facts that were
// known.
func (m *Meaning) slotsBy(t workflow.TaskName, def *workflow.Definition, knew func(i int) bool) (out []*Slot) {
	if sl := m.bySlot[t]; sl != nil {
		return []*Slot{sl}
	}
	stood := func(a *Attempt) bool {
		return a.task.Name == t && knew(a.assigned) ||
			slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.action.Task == t && knew(r.at) })
	}
	for _, sl := range m.slots {
		fills, seen := false, map[workflow.TaskName]bool{}
		for c := def.Task(sl.Task.Name); c != nil && !seen[c.Name]; c = def.Task(c.Contingency) {
			seen[c.Name] = true
			fills = fills || c.Name == t
		}
		if fills || slices.ContainsFunc(sl.Attempts, stood) {
			out = append(out, sl)
		}
	}
	return out
}

// prefer picks by the definition's choice, then the earlier.
func (m *Meaning) prefer(sl *Slot, as []*Attempt) *Attempt {
	return slices.MinFunc(as, func(a, b *Attempt) int {
		n := 0
		switch sl.Task.Reconcile {
		case workflow.KeepOriginal:
			n = cmp.Compare(a.replaced, b.replaced)
		case workflow.KeepReplacement:
			n = cmp.Compare(b.replaced, a.replaced)
		}
		blame := cmp.Compare(min(len(a.blame), 1), min(len(b.blame), 1))
		return cmp.Or(blame, n, cmp.Compare(a.success(), b.success()))
	})
}

// write works out the data: of what stands the latest.
func (m *Meaning) write() {
	m.data, m.Data = map[workflow.DataName]written{}, map[workflow.DataName]workflow.Value{}
	for _, d := range m.def.Data {
		if v, ok := m.genesis.Input[d.Name]; ok {
			m.data[d.Name] = written{v, none}
		} else if d.Default != nil {
			m.data[d.Name] = written{d.Default, none}
		}
	}
	for _, sl := range m.slots {
		for _, a := range sl.Attempts {
			if !a.Stands {
				continue
			}
			for n, v := range m.gave(a.success()) {
				if w, ok := m.data[n]; !ok || w.by < a.success() {
					m.data[n] = written{v, a.success()}
				}
			}
		}
	}
	for n, w := range m.data {
		m.Data[n] = w.value
	}
}

// strict are the strict constraints over data. Those of a data-state flow are looked after there.
func (m *Meaning) strict() []workflow.Constraint {
	if m.def.Flow() != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(m.def.Constraints),
		func(c workflow.Constraint) bool { return c.When == nil || !c.Strict })
}

// keeps reports whether the data keep a constraint, with others in place of some.
func (m *Meaning) keeps(c workflow.Constraint, instead map[workflow.DataName]workflow.Value) bool {
	env := m.env()
	env.Data = maps.Clone(env.Data)
	maps.Copy(env.Data, instead)
	v, err := c.When.Eval(env)
	ok, is := v.(bool)
	return err == nil && is && ok
}

// breaks reports whether the data break a strict constraint.
func (m *Meaning) breaks() bool {
	return slices.ContainsFunc(m.strict(), func(c workflow.Constraint) bool { return !m.keeps(c, nil) })
}

// env is what expressions are evaluated in.
func (m *Meaning) env() workflow.Env {
	return workflow.Env{Data: m.Data, Instance: fact.InstanceOf(m.h.facts[0].id).String()}
}

// Lines say how an instance stands, one line for each thing, sorted.
func (m *Meaning) Lines() []string {
	short := func(i int) string { return m.h.facts[max(i, 0)].id.Short() }
	out := []string{"instance " + string(m.State)}
	for _, sl := range m.slots {
		pick := "none"
		if sl.Pick != nil {
			pick = sl.Pick.ID.String()
		}
		line := "slot %s %s current=%s pick=%s held=%t"
		out = append(out, fmt.Sprintf(line, sl.Task.Name, sl.State, sl.Current.ID, pick, sl.Held))
		for _, a := range sl.Attempts {
			line := "attempt %s of %s at %s stands=%t tries=%d"
			out = append(out, fmt.Sprintf(line, a.ID, a.task.Name, a.Partner, a.Stands, a.tries))
		}
	}
	for n, w := range m.data {
		out = append(out, fmt.Sprintf("data %s by %s conflict=%t", n, short(w.by), m.conflict(n)))
	}
	for i, f := range m.h.facts {
		if m.counts.has(i) {
			out = append(out, "counts "+f.id.String())
		}
	}
	slices.Sort(out)
	return out
}

// conflict reports whether somebody wrote a data item that stands and of which the
// author of the current one did not know.
func (m *Meaning) conflict(n workflow.DataName) bool {
	for _, sl := range m.slots {
		for _, a := range sl.Attempts {
			if !a.Stands {
				continue
			}
			_, wrote := m.gave(a.success())[n]
			if by := m.data[n].by; wrote && a.success() != by && (by == none || !m.h.knew(by, a.success())) {
				return true
			}
		}
	}
	return false
}
