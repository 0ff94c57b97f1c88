package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
)

// NewState is the state of a log that holds only its genesis.
func NewState(def *workflow.Definition, plan *partition.Plan, l *log.Log, trust Trust) *State {
	s := &State{
		def: def, plan: plan, original: def, log: l, trust: trust, uncountedOf: map[workflow.PartnerID]int{},
		fittings: map[fact.ID]fitting{},
	}
	s.Reset()
	return s
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
	if s.amend(); s.widened {
		s.Reset()
	}
	s.reopen(es)
	s.Settle()
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
		s.edition.answers = false
		s.edition.dated, s.edition.placed = map[workflow.TaskName]*log.Entry{}, nil
		s.edition.moves = map[workflow.PartitionName]Placement{}
		for i, p := range patches {
			e := s.formedBy[i]
			if p.IsHeavy() {
				s.edition.heavy = append(s.edition.heavy, e)
			}
			s.edition.answers = s.edition.answers || p.Answers()
			s.edition.placed = append(s.edition.placed, placedBy(e)...)
			for _, t := range p.Adds() {
				s.addTask(t, &p, e)
			}
			if slices.Contains(left, i) {
				s.edition.left = append(s.edition.left, e)
				continue
			}
			for _, t := range p.Dates() {
				s.edition.dated[t] = e
			}
			for _, x := range placedBy(e) {
				if x.Moves {
					s.edition.moves[x.Partition] = x
				}
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
	s.former, s.formerBy = map[workflow.PartnerID]*log.Entry{}, nil
	s.peoples, s.amends = People{}, nil
	s.writtenOff = map[workflow.PartnerID]*log.Entry{}
	s.data, s.values = map[workflow.DataName]Written{}, map[workflow.DataName]workflow.Value{}
	s.conflicts = map[workflow.DataName]bool{}
	s.doubts, s.doubted = map[*log.Entry][]doubt{}, map[doubtOn]bool{}
	s.items = map[workflow.DataName]*DataItem{}
	s.questions, s.conditions = make(map[TransitionOf]*Question, len(s.def.Tasks)), map[string]*condition{}
	s.fills = map[workflow.TaskName][]*Slot{}
	s.filled, s.fillings, s.rounds = nil, nil, nil
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
	if s.widened {
		s.Cyclic = s.hasCycle()
	}
	s.widened = false
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

// refuse notes that a fact does not count. Those to whom it gave work took part as far as its author knew, if a fork
// took it away: that of its own chain, or one of what it was built upon; and if that author took part from the start,
// or had itself been brought in so by what it knew.
func (s *State) refuse(e *log.Entry, why string) {
	e.Counted, e.Why = false, why
	s.refused[why]++
	if (why == forkedAway || e.Beyond) && (s.log.Original()[e.Fact.Chain.Author] || s.tookPartBefore(e)) {
		for p := range e.Fact.Body.Appoints() {
			s.former[p] = earlier(s.former[p], e)
			if s.formerBy == nil {
				s.formerBy = map[workflow.PartnerID][]*log.Entry{}
			}
			if !slices.ContainsFunc(s.formerBy[p], func(by *log.Entry) bool { return by.Strand == e.Strand }) {
				s.formerBy[p] = append(s.formerBy[p], e)
			}
		}
	}
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

// tookPartBefore reports whether e's author was brought in, as far as it knew, by what a fork took away.
func (s *State) tookPartBefore(e *log.Entry) bool {
	return slices.ContainsFunc(s.formerBy[e.Fact.Chain.Author],
		func(by *log.Entry) bool { s.log.Steps++; return s.log.Knew(e, by) })
}

// admit takes back that a fact was refused.
func (s *State) admit(why string) {
	if s.refused[why]--; s.refused[why] == 0 {
		delete(s.refused, why)
	}
}

// forkedAway is why facts of a forked chain do not count.
const forkedAway = "its author forked its chain"

// cutOff refuses a fact of a forked chain.
func (s *State) cutOff(e *log.Entry) { s.refuse(e, forkedAway) }

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
