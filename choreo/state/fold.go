package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// NewState is the state of a log that holds only its genesis.
func NewState(def *workflow.Definition, plan *partition.Plan, l *log.Log, trust Trust) *State {
	s := &State{
		def: def, plan: plan, original: def, log: l, trust: trust, uncountedOf: map[workflow.PartnerID]int{},
		fittings: map[fact.ID]fitting{},
		edition: edition{
			known: map[string]*workflow.Definition{}, flows: map[workflow.Hash]*dataflow.Flow{},
			looked: map[fittingOf]fitting{},
		},
	}
	s.Reset()
	return s
}

// Reset builds the state again from the whole log.
func (s *State) Reset() {
	s.genesis = s.log.Genesis().Fact.Body.Genesis
	s.rank = map[workflow.PartnerID]int{}
	s.bySucc = make(map[fact.ID]*Attempt, min(len(s.def.Tasks), 16)) // most instances are small, and it grows in steps
	s.joined = map[workflow.PartnerID][]*log.Entry{}
	s.refused = map[string]int{}
	s.refusals = map[refusal]refusedFacts{}
	s.readings = map[readingOf]reading{}
	s.credentials = map[workflow.PartnerID][]*log.Entry{}
	s.former = map[workflow.PartnerID]*log.Entry{}
	s.peoples, s.amends = People{}, nil
	s.writtenOff = map[workflow.PartnerID]*log.Entry{}
	s.data, s.values = map[workflow.DataName]Written{}, map[workflow.DataName]workflow.Value{}
	s.conflicts = map[workflow.DataName]bool{}
	s.doubts, s.doubted = map[*log.Entry][]doubt{}, map[doubtOn]bool{}
	s.items = map[workflow.DataName]*DataItem{}
	s.questions, s.conditions = make(map[TransitionOf]*Question, len(s.def.Tasks)), map[string]*condition{}
	s.fills = map[workflow.TaskName][]*Slot{}
	s.going, s.pending, s.blocked, s.underWay, s.forData, s.failures = 0, 0, 0, 0, 0, map[*Slot]bool{}
	s.made++
	s.moved, s.patient = nil, nil
	s.slots, s.dirty, s.judging, s.contested, s.idle, s.Bound = nil, nil, nil, false, false, false
	s.cancel, s.Cancels, s.offices = nil, nil, nil
	for i, p := range s.genesis.Succession {
		s.rank[p] = i
		s.joined[p] = []*log.Entry{s.log.Genesis()}
	}
	s.participants, s.unsorted, s.newcomers = slices.Clone(s.genesis.Succession), false, nil
	s.layOut()
	l := s.log
	if s.cuts = l.Cuts(); l.Forked() > 0 {
		l.Recount()
	}
	l.HeedNothing()
	for _, e := range l.Order() {
		l.Steps++
		if e.Counted = false; l.Forked() == 0 || e.Fact.Seq <= e.Strand.Good {
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
	s.bySlot, s.attempts = make(map[workflow.TaskName]*Slot, len(order)), make(map[fact.AttemptID]*Attempt, len(order))
	slots, firsts, lists := make([]Slot, len(order)), make([]Attempt, len(order)), make([]*Attempt, len(order))
	s.slots = make([]*Slot, 0, len(order))
	for _, name := range order {
		t := s.def.Task(name)
		if t.ContingencyOnly {
			continue
		}
		at := len(s.slots)
		sl := &slots[at]
		*sl = Slot{Task: t, State: workflow.NotReady, Place: at, open: true, weighs: weight{going: true}}
		sl.Attempts = s.firsts(sl, &firsts[at], lists[at:at:at+1])
		sl.Current = sl.Attempts[0]
		for _, a := range sl.Attempts {
			s.attempts[a.ID] = a
		}
		s.contested = s.contested || len(sl.Attempts) > 1
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
		sl.Mentions = s.mentioned(s.def, sl.Task.Name)
		for _, from := range sl.Mentions {
			from.Dependents = append(from.Dependents, sl)
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
	s.Cyclic = s.hasCycle()
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
					sl.Writes = append(sl.Writes, it)
				}
			}
		}
		sl.Task.Rule.Terms(func(r *workflow.Rule) {
			if r.Op != workflow.OpData {
				return
			}
			for _, n := range r.Data.Names() {
				if it := s.item(n); len(it.Askers) == 0 || it.Askers[len(it.Askers)-1] != sl {
					it.Askers = append(it.Askers, sl)
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
	waits, left := make([]int, len(s.slots)), map[*DataItem]int{} // waits and gone are by the slots' places
	for _, it := range s.items {
		left[it] = len(it.writers)
	}
	for _, sl := range s.slots {
		waits[sl.Place] += len(sl.asks)
		for _, d := range sl.Dependents {
			waits[d.Place]++
		}
	}
	free, gone := make([]*Slot, 0, len(s.slots)), make([]bool, len(s.slots))
	met := func(sl *Slot, n int) {
		if waits[sl.Place] -= n; waits[sl.Place] == 0 && !gone[sl.Place] {
			gone[sl.Place] = true
			free = append(free, sl)
		}
	}
	// done tells those who ask for an item that nobody else is left to write it.
	done := func(it *DataItem) {
		switch left[it] {
		case 0:
			for _, d := range it.Askers {
				if !it.writers[d] {
					met(d, 1)
				}
			}
		case 1:
			for w := range it.writers {
				if !gone[w.Place] && slices.Contains(w.asks, it) {
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
		for _, d := range free[i].Dependents {
			met(d, 1)
		}
		for _, it := range free[i].Writes {
			left[it]--
			done(it)
		}
	}
	return len(free) < len(s.slots)
}

// Fold adds entries that were just inserted, in a causal order, and settles.
func (s *State) Fold(es []*log.Entry) {
	s.told = nil
	switch l := s.log; {
	case l.Forked() == 0:
		for _, e := range es {
			s.apply(e)
		}
	case !s.enter(es):
		s.Reset()
	}
	s.amend()
	s.reopen(es)
	s.Settle()
}

// enter is fold's for a log with forks, where new facts can make older ones
// count. It reports whether it could: not where one that was applied does not count
// any more, where one that was refused may come to count, or where one that comes to
// count only now should have been applied before others.
func (s *State) enter(es []*log.Entry) bool {
	l, more := s.log, []*log.Strand(nil)
	if s.cuts == l.Cuts() {
		more = l.Count(es)
	} else {
		if s.Bound {
			return false // less is certain to have counted for its author
		}
		s.cuts = l.Cuts()
		s.front()
		l.Recount()
		more = l.Strands()
		s.reopenDoubts() // less of a forked chain shows who knew what
	}
	var apply []*log.Entry
	for _, st := range more {
		if st.Good < st.Entered || (st.Good > st.Entered && s.frontier.At(st.Place) > st.Entered) {
			return false
		}
		apply = append(apply, st.Facts[st.Entered-st.Base():st.Good-st.Base()]...)
		st.Entered = st.Good
	}
	for _, e := range es {
		if e.Fact.Seq > e.Strand.Good {
			s.cutOff(e)
		}
	}
	slices.SortFunc(apply, func(a, b *log.Entry) int { return a.Index - b.Index })
	for _, e := range apply {
		if e.Index < es[0].Index {
			s.admit(forkedAway)
		}
		s.apply(e)
		if s.frontier.At(e.Strand.Place) < e.Fact.Seq {
			s.frontier = s.frontier.Join(e.Past(), &l.Steps)
		}
	}
	return true
}

// front works out what the facts that were applied knew.
func (s *State) front() {
	s.frontier = log.Vector{}
	if s.log.Forked() == 0 {
		return
	}
	for _, st := range s.log.Strands() {
		if st.Entered > st.Base() {
			s.frontier = s.frontier.Join(st.Number(st.Entered).Past(), &s.log.Steps)
		}
	}
}

// admit takes back that a fact was refused.
func (s *State) admit(why string) {
	if s.refused[why]--; s.refused[why] == 0 {
		delete(s.refused, why)
	}
}

func (s *State) refuse(e *log.Entry, why string) {
	e.Counted, e.Why = false, why
	s.refused[why]++
	if why != forkedAway {
		r := refusal{e.Fact.Chain.Author, why}
		of := s.refusals[r]
		s.refusals[r] = refusedFacts{of.number + 1, earlier(of.first, e)}
	}
	if author := e.Fact.Chain.Author; !e.Told && why != forkedAway && s.former[author] == nil {
		e.Told = true
		s.told = append(s.told, e)
		s.uncountedOf[author]++
	}
}

// apply enters one fact whose past has been entered. A fact without
// entitlement changes nothing.
func (s *State) apply(e *log.Entry) {
	b := &e.Fact.Body
	author := e.Fact.Chain.Author
	e.Strand.Entered = e.Fact.Seq
	s.log.Steps++
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
	e.Counted = true
	e.Strand.Counted = append(e.Strand.Counted, e)
	e.Strand.Said += AsInt(b.Seen == nil)
	s.log.Heed(e)
}

// enterFact has a fact change the state, unless by what its author knew it does not count: then
// it says why (rights.go).
func (s *State) enterFact(e *log.Entry) (why string) {
	switch b := e.Fact.Body.Says().(type) {
	case *fact.Genesis, *fact.Seen: // all begins with the one (reset), and the other says nothing of its own
		return ""
	case *fact.ReadyBody:
		return s.enterReady(b, e)
	case *fact.Start:
		return s.enterStart(b, e)
	case *fact.Success:
		return s.enterSuccess(b, e)
	case *fact.Done:
		return s.enterDone(b, e)
	case *fact.TryFailed:
		return s.enterTryFailed(b, e)
	case *fact.CalledOff:
		return s.enterCalledOff(b, e)
	case *fact.Verdict:
		return s.enterVerdict(b, e)
	case *fact.Assign:
		return s.enterAssign(b, e)
	case *fact.Cancel:
		return s.enterCancel(e)
	case *fact.WriteOff:
		return s.enterWriteOff(b, e)
	case *fact.Claim:
		return s.enterClaim(b, e)
	case *fact.Child:
		return s.enterChild(b, e)
	case *fact.Lease:
		return s.enterLease(b, e)
	case *fact.Fire:
		return s.enterFire(b, e)
	case *fact.Aged:
		return s.enterAged(b, e)
	}
	return "nothing is known here of what it says"
}

// drop marks the slots of tasks that the genesis says are not needed, unless
// the definition needs them for more than their data set.
func (s *State) drop() {
	annex := s.log.Genesis().Fact.Body.Annex
	if annex == nil {
		return
	}
	for i := range annex.Dropped {
		d := &annex.Dropped[i]
		sl := s.bySlot[d.Task]
		if sl == nil || sl.Task.Produces.Name != d.DataSet {
			continue
		}
		if ok, _ := partition.Droppable(s.def, sl.Task); ok {
			sl.Dropped = d
		}
	}
}

// cutOff refuses a fact of a forked chain. Those to whom it gave work, having taken
// part from the start, took part as far as it knew.
func (s *State) cutOff(e *log.Entry) {
	s.refuse(e, forkedAway)
	if s.log.Original()[e.Fact.Chain.Author] {
		for p := range e.Fact.Body.Appoints() {
			s.former[p] = earlier(s.former[p], e)
		}
	}
}
