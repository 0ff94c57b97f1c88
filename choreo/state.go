package choreo

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// State is what a set of facts means. It is a function of the set: the order
// of insertion, duplicates, clocks and partner lists have no part in it.
type State struct {
	def  *workflow.Definition
	plan *partition.Plan
	log  *Log

	trust     Trust // nil: nobody's credentials prove anything
	evidences int   // how often it was asked what an author knew (rights.go)
	readings  map[readingOf]reading
	genesis   *Genesis
	rank      map[workflow.PartnerID]int // place in the succession
	slots     []*Slot                    // in rule order
	bySlot    map[workflow.TaskName]*Slot
	patient   []*Slot // with a time-to-wait
	holder    map[workflow.PartitionName]workflow.PartnerID
	attempts  map[AttemptID]*Attempt
	bySucc    map[FactID]*Attempt
	joined    map[workflow.PartnerID][]*entry // who became a participant, through what; the earliest first
	// participants are all of these, in order, as somebody last asked for them; unsorted:
	// others took part since. newcomers are those, until the machine asks for them (away.go).
	participants []workflow.PartnerID
	unsorted     bool
	newcomers    []workflow.PartnerID
	cancel       *entry   // the earliest
	cancels      []*entry // the earliest of each strand
	offices      []*entry // the first counted verdict in each office, of each strand
	// writtenOff are partners for whom nobody waits before what lost is undone.
	writtenOff map[workflow.PartnerID]*entry
	flow       *flowWork // of an instance that is driven by its data (flow.go); nil: it is not
	// peoples is what is known of people's work (claims.go).
	peoples peoplesWork
	// bound: something was held against an author that was certain to have counted for it.
	bound bool
	// contested: some slot has several attempts, or waits for somebody to take the next.
	contested bool
	// credentials are the facts by which partners showed theirs.
	credentials map[workflow.PartnerID][]*entry
	// former are those who took part until a chain proved to be forked, through what; the
	// earliest.
	former map[workflow.PartnerID]*entry
	// refused counts facts that do not count, by reason.
	refused map[string]int
	// uncountedOf is how many facts that do not count came since that was last asked
	// for, by author: without those of forked chains, and of authors that were brought
	// in by one.
	uncountedOf map[workflow.PartnerID]int
	// refusals are those of facts that do not count though their chain does.
	refusals map[refusal]refusedFacts

	decls      map[workflow.DataName]*workflow.DataDecl
	items      map[workflow.DataName]*item
	data       map[workflow.DataName]written
	values     map[workflow.DataName]workflow.Value // of data; nobody else changes it
	rewritten  int                                  // how often one of them changed
	conflicts  map[workflow.DataName]bool
	givers     map[giving][]workflow.PartnerID // besides the initiator's
	refiled    bool                            // a file among the data is another, or none, since FilesToRead was asked
	questions  map[asked]*question
	conditions map[string]*condition // by their one spelling
	// constraints are those over data, broken how many strict ones the data break, and final the
	// condition that ends the instance; nil: none does (constraints.go).
	constraints []constraint
	broken      int
	final       *condition
	fills       map[workflow.TaskName][]*Slot

	// going counts the slots of which more is expected, pending those that wait for a
	// partner that takes a contingency, blocked those that are; failures are those
	// that failed. underWay counts those that may come to change the data, forData
	// those that wait for data. end is how it all ended, as far as known.
	going, pending, blocked, underWay, forData int
	failures                                   map[*Slot]bool
	end                                        workflow.InstanceState

	// cuts is how many of the log's had been made, frontier what the facts that
	// were applied knew. Of a log without forks frontier is not kept.
	cuts     int
	frontier vector

	// moved are the slots of which something changed since the machine last looked
	// (desk.go), made counts how often all slots were made again.
	moved []*Slot
	made  int
	dirty []*Slot
	// doubts are what depends on who knew of a fact, in the order in which that was found;
	// doubted says the same of each. judged is the slot that is judged now, user the attempt
	// of which it is asked whether it denies what stands against another (forget.go).
	doubts  map[*entry][]doubt
	doubted map[doubtOn]bool
	judged  *Slot
	user    *Attempt
	// cyclic: tasks wait for data that they would write for each other. lifted:
	// something that was decided about rules and states is not so any more.
	cyclic, lifted bool
	// idle: nothing is ready, running or armed, so what is undecided about data
	// stays as it is and counts as impossible. Only where cyclic.
	idle bool
}

// Slot is what a successor waits for: a task, filled by attempts (docs/design.md, Convergence).
type Slot struct {
	Task     *workflow.Task
	Attempts []*Attempt // by depth, then the assigning fact
	// Current is the attempt that verdicts have left in charge.
	Current *Attempt
	// Outcome is the verdict that ended the last attempt without another to
	// follow; nil while there is hope.
	Outcome *ruling
	// Pending is a verdict that asks for a contingency that nobody could take yet.
	Pending *ruling
	// Pick is the attempt whose success is the slot's value; nil: none yet.
	Pick *Attempt
	// State is where the slot's task stands.
	State workflow.State
	// Held: several attempts live or wait for others; nothing may build upon it now.
	Held bool
	// Duplicated: both sides of a split built upon a success of their own.
	Duplicated bool
	// Dropped: the task is not needed, as its data set exists. Spared: its rule
	// held, so that it counts as succeeded.
	Spared  bool
	Dropped *Dropped

	place      int     // in rule order
	mentions   []*Slot // that its rule mentions, by name
	dependents []*Slot // whose rules mention it
	rule       *clause // nil: it has none
	answers    []answer
	asks       []*item // that its rule's data terms are about
	writes     []*item // that it may write
	shown      shown
	// mayHold and mayEnd are what the evidence that was asked last says of its rule.
	mayHold, mayEnd ruleWas
	weighs          weight
	hasData         bool // its rule has data terms
	open            bool // it is not done
	queued          bool
	moved           bool // since its machine last looked
	due             bool // it waits for its machine to look at it (desk.go)
	awaits          bool // it waits to be judged (converge.go)
	barred          bool // it has not begun, and may not: a strict constraint is broken, or the data are final
}

// Attempt is one assignment of a slot to a partner.
type Attempt struct {
	ID      AttemptID
	Slot    *Slot
	Task    *workflow.Task // what is performed: the slot's task or a contingency
	Partner workflow.PartnerID
	Depth   int  // 1, 2, …: its number in the chain
	skips   bool // an order began it, to have the task left out
	toUndo  bool // an order has it compensated, though it counts
	// replaced is how many verdicts led to it: an attempt that was passed on
	// inherits the number of the one before.
	replaced int

	assigned  *entry
	after     *Attempt // the one that it follows; nil: the slot's first
	by        *ruling  // because of which; nil: that one's holder passed it on
	weighed   *entry   // the first offer of it that says how all of its role were weighed
	ready     *entry   // the earliest
	readied   []*entry // the earliest of each strand
	start     *entry   // likewise
	starts    []*entry
	base      *entry // the start that says what the attempt built upon
	tries     int    // the newest try's number
	successes []*entry
	failed    *entry // the newest failed try
	child     *entry // the newest word of which instance does it
	lease     *entry // the newest by which a worker has a try
	off       *entry // the earliest
	rulings   []*ruling
	kept      *entry     // its holder was chosen to perform it
	users     []*Attempt // of later slots, whose start built upon a success of this one
	claimed   claims     // by users

	undo   *Attempt // its compensation; nil: none is defined, or no success is known
	undoes *Attempt // of a compensation: what it undoes
	fired  *fired   // of a transition of the flow; nil: it is none

	// noticed is when (Boot) this node first knew that it could begin; for people. blocked: what it knew is that
	// it could not, but for what may still come.
	noticed time.Duration
	blocked bool

	stands    stands
	claims    stands // what it stands up for of what it was built upon, as its users know
	overruled bool   // its holder had given it up (converge.go, rule 7)
	wrote     *entry // the success whose outputs are among the current data's writes

	*turns
}

// turns are what happens to few attempts: the others share one, which is empty.
type turns struct {
	offs    []*entry   // the earliest by which it was called off, of each strand
	assigns []*Attempt // attempts that an Assign put after this one
	passed  []*Attempt // likewise, by which its holder passed it on
	// blame are those who denied what they knew, for which its success goes behind
	// all others (converge.go, rule 7).
	blame  []workflow.PartnerID
	blamed []workflow.PartnerID // of these without its holder
	// denials are kept of those who built upon it while something stands against it; nil:
	// nobody asked since that changed. userAt is where each is among the users, once one
	// was taken out.
	denials *denials
	userAt  map[*Attempt]int
}

// noTurns is what attempts have to which nothing of that happened. It is not written.
var noTurns = &turns{}

// turning are an attempt's own turns, to be written.
func (a *Attempt) turning() *turns {
	if a.turns == noTurns {
		a.turns = &turns{}
	}
	return a.turns
}

// stands says whether a success is built upon, or the slot's choice.
type stands uint8

const (
	superseded stands = iota
	heldBack
	standing
)

// newState is the state of a log that holds only its genesis.
func newState(def *workflow.Definition, plan *partition.Plan, l *Log, trust Trust) *State {
	s := &State{def: def, plan: plan, log: l, trust: trust, uncountedOf: map[workflow.PartnerID]int{}}
	s.reset()
	return s
}

// reset builds the state again from the whole log.
func (s *State) reset() {
	s.genesis = s.log.genesis.fact.Body.Genesis
	s.rank = map[workflow.PartnerID]int{}
	s.bySucc = make(map[FactID]*Attempt, min(len(s.def.Tasks), 16)) // most instances are small, and it grows in steps
	s.joined = map[workflow.PartnerID][]*entry{}
	s.refused = map[string]int{}
	s.refusals = map[refusal]refusedFacts{}
	s.readings = map[readingOf]reading{}
	s.credentials = map[workflow.PartnerID][]*entry{}
	s.former = map[workflow.PartnerID]*entry{}
	s.peoples = peoplesWork{}
	s.writtenOff = map[workflow.PartnerID]*entry{}
	s.data, s.values = map[workflow.DataName]written{}, map[workflow.DataName]workflow.Value{}
	s.conflicts = map[workflow.DataName]bool{}
	s.doubts, s.doubted = map[*entry][]doubt{}, map[doubtOn]bool{}
	s.items = map[workflow.DataName]*item{}
	s.questions, s.conditions = make(map[asked]*question, len(s.def.Tasks)), map[string]*condition{}
	s.fills = map[workflow.TaskName][]*Slot{}
	s.going, s.pending, s.blocked, s.underWay, s.forData, s.failures = 0, 0, 0, 0, 0, map[*Slot]bool{}
	s.made++
	s.moved, s.patient = nil, nil
	s.slots, s.dirty, s.contested, s.idle, s.bound = nil, nil, false, false, false
	s.cancel, s.cancels, s.offices = nil, nil, nil
	for i, p := range s.genesis.Succession {
		s.rank[p] = i
		s.joined[p] = []*entry{s.log.genesis}
	}
	s.participants, s.unsorted, s.newcomers = slices.Clone(s.genesis.Succession), false, nil
	s.layOut()
	l := s.log
	if s.cuts = l.cuts; l.forks > 0 {
		l.recount()
	}
	l.heedNothing()
	for _, e := range l.order {
		l.steps++
		if e.counted = false; l.forks == 0 || e.fact.Seq <= e.strand.good {
			s.apply(e)
		} else {
			s.cutOff(e)
		}
	}
	s.front()
}

// forkedAway is why facts of a forked chain do not count.
const forkedAway = "its author forked its chain"

// layOut makes the slots with their first attempts.
func (s *State) layOut() {
	s.holder = map[workflow.PartitionName]workflow.PartnerID{}
	for _, a := range s.genesis.Assign {
		s.holder[a.Partition] = a.Partner
	}
	order := s.def.TopoOrder()
	s.bySlot, s.attempts = make(map[workflow.TaskName]*Slot, len(order)), make(map[AttemptID]*Attempt, len(order))
	slots, firsts := make([]Slot, len(order)), make([]Attempt, len(order))
	for _, name := range order {
		t := s.def.Task(name)
		if t.ContingencyOnly {
			continue
		}
		sl, a := &slots[len(s.slots)], &firsts[len(s.slots)]
		*sl = Slot{Task: t, State: workflow.NotReady, place: len(s.slots), open: true, weighs: weight{going: true}}
		*a = Attempt{
			ID: AttemptID{Slot: name}, Slot: sl, Task: t, Partner: s.holder[s.plan.Home(name)], Depth: 1,
			assigned: s.log.genesis, turns: noTurns,
		}
		sl.Attempts, sl.Current = []*Attempt{a}, a
		s.attempts[a.ID] = a
		s.slots = append(s.slots, sl)
		s.bySlot[name] = sl
		if t.TimeToWait > 0 {
			s.patient = append(s.patient, sl)
		}
		for _, c := range s.plan.Chain(name)[1:] {
			s.fills[c] = append(s.fills[c], sl)
		}
	}
	s.drop()
	for _, sl := range s.slots {
		sl.mentions = s.mentioned(sl.Task.Name)
		for _, from := range sl.mentions {
			from.dependents = append(from.dependents, sl)
		}
		s.touch(sl)
	}
	s.going = len(s.slots)
	s.layFlow()
	s.layData()
	s.layConstraints()
	for _, sl := range s.slots {
		sl.rule = s.compile(sl)
	}
	s.cyclic = s.hasCycle()
}

// layData finds the data, and who may write and who asks for which.
func (s *State) layData() {
	s.decls = map[workflow.DataName]*workflow.DataDecl{}
	for i := range s.def.Data {
		s.decls[s.def.Data[i].Name] = &s.def.Data[i]
	}
	for n := range s.genesis.Input {
		s.unwritten(n, nil)
	}
	for n, d := range s.decls {
		s.unwritten(n, d)
	}
	for _, sl := range s.slots {
		for _, t := range s.plan.Chain(sl.Task.Name) {
			for _, n := range s.def.Task(t).Out {
				if it := s.item(n); !it.writers[sl] {
					it.writers[sl] = true
					it.open++
					sl.writes = append(sl.writes, it)
				}
			}
		}
		sl.Task.Rule.Terms(func(r *workflow.Rule) {
			if r.Op != workflow.OpData {
				return
			}
			for _, n := range r.Data.Names() {
				if it := s.item(n); len(it.askers) == 0 || it.askers[len(it.askers)-1] != sl {
					it.askers = append(it.askers, sl)
					sl.asks = append(sl.asks, it)
					it.holders[sl.Current.Partner]++
				}
			}
		})
	}
}

// hasCycle reports whether slots wait for each other in a circle, which only data
// terms can make: whether any are left when, again and again, those that wait
// for nothing that is left are taken away. A slot does not wait for what only it
// may write.
func (s *State) hasCycle() bool {
	waits, left := make([]int, len(s.slots)), map[*item]int{} // waits and gone are by the slots' places
	for _, it := range s.items {
		left[it] = len(it.writers)
	}
	for _, sl := range s.slots {
		waits[sl.place] += len(sl.asks)
		for _, d := range sl.dependents {
			waits[d.place]++
		}
	}
	free, gone := make([]*Slot, 0, len(s.slots)), make([]bool, len(s.slots))
	met := func(sl *Slot, n int) {
		if waits[sl.place] -= n; waits[sl.place] == 0 && !gone[sl.place] {
			gone[sl.place] = true
			free = append(free, sl)
		}
	}
	// done tells those who ask for an item that nobody else is left to write it.
	done := func(it *item) {
		switch left[it] {
		case 0:
			for _, d := range it.askers {
				if !it.writers[d] {
					met(d, 1)
				}
			}
		case 1:
			for w := range it.writers {
				if !gone[w.place] && slices.Contains(w.asks, it) {
					met(w, 1)
				}
			}
		}
	}
	for _, sl := range s.slots {
		met(sl, 0)
	}
	for _, it := range s.items {
		done(it)
	}
	for i := 0; i < len(free); i++ {
		for _, d := range free[i].dependents {
			met(d, 1)
		}
		for _, it := range free[i].writes {
			left[it]--
			done(it)
		}
	}
	return len(free) < len(s.slots)
}

// slotsOf are the slots that a task may fill: its own, or for a task that is
// only a contingency those of the tasks that it stands in for.
func (s *State) slotsOf(t workflow.TaskName) []*Slot {
	if sl := s.bySlot[t]; sl != nil {
		return []*Slot{sl}
	}
	return s.fills[t]
}

// touch has the slot's state worked out again, and before settle also who is in
// charge of it and what of it counts.
func (s *State) touch(sl *Slot) {
	if !sl.queued {
		sl.queued = true
		s.dirty = append(s.dirty, sl)
	}
}

// fold adds entries that were just inserted, in a causal order, and settles.
func (s *State) fold(es []*entry) {
	switch l := s.log; {
	case l.forks == 0:
		for _, e := range es {
			s.apply(e)
		}
	case !s.enter(es):
		s.reset()
	}
	s.reopen(es)
	s.settle()
}

// enter is fold's for a log with forks, where new facts can make older ones
// count. It reports whether it could: not where one that was applied does not count
// any more, where one that was refused may come to count, or where one that comes to
// count only now should have been applied before others.
func (s *State) enter(es []*entry) bool {
	l, more := s.log, []*strand(nil)
	if s.cuts == l.cuts {
		more = l.count(es)
	} else {
		if s.bound {
			return false // less is certain to have counted for its author
		}
		s.cuts = l.cuts
		s.front()
		l.recount()
		more = l.strands
		s.reopenDoubts() // less of a forked chain shows who knew what
	}
	var apply []*entry
	for _, st := range more {
		if st.good < st.entered || (st.good > st.entered && s.frontier.at(st.place) > st.entered) {
			return false
		}
		apply = append(apply, st.facts[st.entered-st.base():st.good-st.base()]...)
		st.entered = st.good
	}
	for _, e := range es {
		if e.fact.Seq > e.strand.good {
			s.cutOff(e)
		}
	}
	slices.SortFunc(apply, func(a, b *entry) int { return a.index - b.index })
	for _, e := range apply {
		if e.index < es[0].index {
			s.admit(forkedAway)
		}
		s.apply(e)
		if s.frontier.at(e.strand.place) < e.fact.Seq {
			s.frontier = s.frontier.join(e.past(), &l.steps)
		}
	}
	return true
}

// front works out what the facts that were applied knew.
func (s *State) front() {
	s.frontier = vector{}
	if s.log.forks == 0 {
		return
	}
	for _, st := range s.log.strands {
		if st.entered > st.base() {
			s.frontier = s.frontier.join(st.number(st.entered).past(), &s.log.steps)
		}
	}
}

// admit takes back that a fact was refused.
func (s *State) admit(why string) {
	if s.refused[why]--; s.refused[why] == 0 {
		delete(s.refused, why)
	}
}

// refusal is whose facts do not count, and why.
type refusal struct {
	by  workflow.PartnerID
	why string
}

type refusedFacts struct {
	number int
	first  *entry
}

func (s *State) refuse(e *entry, why string) {
	e.counted, e.why = false, why
	s.refused[why]++
	if why != forkedAway {
		r := refusal{e.fact.Chain.Author, why}
		of := s.refusals[r]
		s.refusals[r] = refusedFacts{of.number + 1, earlier(of.first, e)}
	}
	if author := e.fact.Chain.Author; !e.told && why != forkedAway && s.former[author] == nil {
		e.told = true
		s.uncountedOf[author]++
	}
}

// apply enters one fact whose past has been entered. A fact without
// entitlement changes nothing.
func (s *State) apply(e *entry) {
	b := &e.fact.Body
	author := e.fact.Chain.Author
	e.strand.entered = e.fact.Seq
	s.log.steps++
	if !s.tookPart(author, e) {
		s.refuse(e, "its author takes no part in the instance")
		return
	}
	why := s.shown(e)
	if why == "" {
		why = s.enterFact(e)
	}
	if why != "" {
		s.refuse(e, why)
		return
	}
	e.counted = true
	e.strand.counted = append(e.strand.counted, e)
	e.strand.said += one(b.Seen == nil)
	s.log.heed(e)
}

// enterFact has a fact change the state, unless by what its author knew it does not count: then
// it says why (rights.go).
func (s *State) enterFact(e *entry) (why string) {
	switch b := e.fact.Body.says().(type) {
	case *Genesis, *Seen: // all begins with the one (reset), and the other says nothing of its own
		return ""
	case *ReadyBody:
		return s.enterReady(b, e)
	case *Start:
		return s.enterStart(b, e)
	case *Success:
		return s.enterSuccess(b, e)
	case *TryFailed:
		return s.enterTryFailed(b, e)
	case *CalledOff:
		return s.enterCalledOff(b, e)
	case *Verdict:
		return s.enterVerdict(b, e)
	case *Assign:
		return s.enterAssign(b, e)
	case *Cancel:
		return s.enterCancel(e)
	case *WriteOff:
		return s.enterWriteOff(b, e)
	case *Claim:
		return s.enterClaim(b, e)
	case *Child:
		return s.enterChild(b, e)
	case *Lease:
		return s.enterLease(b, e)
	case *Fire:
		return s.enterFire(b, e)
	case *Aged:
		return s.enterAged(b, e)
	}
	return "nothing is known here of what it says"
}

// tookPart reports whether p was a participant as far as e's author knew.
func (s *State) tookPart(p workflow.PartnerID, e *entry) bool {
	return slices.ContainsFunc(s.joined[p], func(by *entry) bool { return s.log.knew(e, by) })
}

func earlier(a, b *entry) *entry {
	if a == nil || byTime(b, a) < 0 {
		return b
	}
	return a
}

// firstOf adds to facts of one kind, of each strand the earliest. What an author knew of
// them is asked of all: the earliest of all may be one of which it did not know.
func firstOf(es []*entry, e *entry) []*entry {
	if slices.ContainsFunc(es, func(o *entry) bool { return o.strand == e.strand }) {
		return es
	}
	return append(es, e)
}

func newer(a, b *entry) *entry {
	if a == nil || byTime(b, a) > 0 {
		return b
	}
	return a
}

// Participants are all who take part, in the order of succession; those who
// joined later follow by the facts that brought them in. It is not to be changed.
func (s *State) Participants() []workflow.PartnerID {
	if s.unsorted { // they are sorted when somebody asks, not whenever somebody brings one in
		s.participants, s.unsorted = s.inSuccession(slices.Collect(maps.Keys(s.joined))), false
	}
	return s.participants
}

// participates reports whether a partner takes part.
func (s *State) participates(p workflow.PartnerID) bool { return s.joined[p] != nil }

// join enters that a partner takes part through a fact.
func (s *State) join(p workflow.PartnerID, e *entry) {
	if _, first := s.rank[p]; first || slices.ContainsFunc(s.joined[p],
		func(by *entry) bool { return by.strand == e.strand }) {
		return // an author that knows of this fact knows of the earlier one
	}
	if s.joined[p] == nil {
		s.newcomers = append(s.newcomers, p)
	}
	s.joined[p] = append(s.joined[p], e)
	s.log.steps += len(s.joined[p])
	slices.SortFunc(s.joined[p], byTime)
	s.unsorted = true
}

// takeNewcomers are those who came to take part since it was last called.
func (s *State) takeNewcomers() []workflow.PartnerID {
	came := s.newcomers
	s.newcomers = nil
	return came
}

// takeUncounted is how many facts that do not count came since it was last called, by author.
func (s *State) takeUncounted() map[workflow.PartnerID]int {
	came := s.uncountedOf
	s.uncountedOf = map[workflow.PartnerID]int{}
	return came
}

// eachMoved goes through the slots of which something changed since it was last called.
func (s *State) eachMoved(look func(*Slot)) {
	for _, sl := range s.moved {
		s.log.steps++
		sl.moved = false
		look(sl)
	}
	s.moved = s.moved[:0]
}

// inSuccession sorts participants by the order of succession.
func (s *State) inSuccession(ps []workflow.PartnerID) []workflow.PartnerID {
	slices.SortFunc(ps, s.bySuccession)
	return ps
}

// bySuccession orders participants as Participants does.
func (s *State) bySuccession(a, b workflow.PartnerID) int {
	s.log.steps++
	ra, oka := s.rank[a]
	rb, okb := s.rank[b]
	switch {
	case oka && okb:
		return cmp.Compare(ra, rb)
	case oka != okb:
		return one(okb) - one(oka)
	}
	return cmp.Or(byTime(s.joined[a][0], s.joined[b][0]), cmp.Compare(a, b))
}

// placeOf is where a participant stands among all.
func (s *State) placeOf(p workflow.PartnerID) int {
	if at, first := s.rank[p]; first {
		return at
	}
	at, _ := slices.BinarySearchFunc(s.Participants(), p, s.bySuccession)
	return at
}
