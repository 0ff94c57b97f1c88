package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file makes the line of a data-state flow: the one history that counts, of all that its holders said (flow.go).

// layFlow makes the flow of a definition that has one.
func (s *State) layFlow() {
	s.flow = nil
	if sl := s.bySlot[workflow.FlowTask]; sl != nil {
		s.flow = &FlowWork{
			first: dataflow.New(s.original), Slot: sl, said: map[*Attempt][]*log.Entry{},
			Latest: map[workflow.TaskName]*Attempt{}, undone: map[workflow.TaskName]*Attempt{},
			lost: map[*Attempt]bool{}, people: map[*Attempt]bool{},
		}
	}
}

// say notes a record of an attempt at the flow.
func (f *FlowWork) say(a *Attempt, e *log.Entry) {
	if said := f.said[a]; len(said) > 0 && said[len(said)-1] == e { // it is about several
		return
	}
	f.said[a] = append(f.said[a], e)
	f.fresh = append(f.fresh, e)
}

// settleFlow brings the line up to date with the records and with who holds the flow.
func (s *State) settleFlow() {
	f := s.flow
	if f == nil {
		return
	}
	end := f.end()
	if f.Line == nil || f.Line.Of != end || end != nil && f.Line.start != end.Start || !s.extendLine() {
		s.layLine(end)
	}
	f.fresh = nil
}

// end is the attempt at the flow whose holder the history follows: the one that counts, else the
// last that started of those that led to the one in charge; nil: none has.
func (f *FlowWork) end() *Attempt {
	a := f.Slot.Pick
	if a == nil {
		a = f.Slot.Current
	}
	for ; a != nil && a.Start == nil; a = a.after {
	}
	return a
}

// extendLine adds the records that came to the line, and reports whether that is all of it: each
// knows the one before.
func (s *State) extendLine() bool {
	f := s.flow
	slices.SortFunc(f.fresh, log.ByTime)
	for _, e := range f.fresh {
		if s.flowOf(e) != f.Line.Of {
			s.lose(e)
			continue
		}
		if f.Line.last != nil && !s.log.Knew(e, f.Line.last) {
			return false
		}
		s.extend(e)
	}
	return true
}

// layLine makes the line, and the data, from all records.
func (s *State) layLine(end *Attempt) {
	f := s.flow
	g := s.log.Genesis()
	data := map[workflow.DataName]workflow.Value{}
	for n, d := range s.decls {
		if s.unwritten(n, d); s.original.Datum(n) == nil { // it comes with the record that takes its amendment up
			delete(s.data, n)
			delete(s.values, n)
		} else if w, has := s.data[n]; has {
			data[n] = w.Value
		}
	}
	was := f.Line
	f.Line = &Line{
		Of: end, has: map[*log.Entry]bool{}, why: map[*log.Entry]string{},
		Board: dataflow.NewBoard(f.first, s.log.Instance().String(), data, dataflow.ID(g.ID), g.Fact.At),
	}
	if end != nil {
		f.Line.start = end.Start
	}
	clear(f.Latest)
	clear(f.undone)
	clear(f.lost)
	var holder *Attempt
	for _, e := range s.records(end) {
		if f.Line.last != nil && !s.log.Knew(e, f.Line.last) {
			s.passOver(e)
			continue
		}
		if of := s.flowOf(e); of != holder {
			f.Line.Board.HandOver()
			holder = of
		}
		s.extend(e)
	}
	if holder != end {
		f.Line.Board.HandOver()
	}
	for _, said := range f.said {
		for _, e := range said {
			if !f.Line.has[e] {
				s.lose(e)
			}
			s.askAgainOf(e)
		}
	}
	if was != nil {
		s.Move(f.Slot)
	}
}

// askAgainOf has the board of claims hear once more how people's transitions stand that a fire began: what was over
// may not be so by another line.
func (s *State) askAgainOf(e *log.Entry) {
	b := e.Fact.Body.Fire
	if b == nil {
		return
	}
	for _, t := range b.Tasks {
		if a := s.attempts[fact.AttemptID{Fact: e.ID, Slot: t}]; a != nil &&
			(!a.Task.ByNode() || s.peoples.Board != nil && s.peoples.Board.Knows(ItemOf(a.ID))) {
			s.flow.people[a] = true
		}
	}
}

// records are those that may be in the line that ends with an attempt at the flow: of each before
// it what the one that came after it knew when it started. One whose start that did not know was as
// good as not there.
func (s *State) records(end *Attempt) (out []*log.Entry) {
	var next *log.Entry
	for a := end; a != nil; a = a.after {
		start := a.Start
		if next != nil {
			start = s.startKnownTo(next, a)
		}
		if start == nil {
			continue
		}
		for _, e := range s.flow.said[a] {
			s.log.Steps++
			if next == nil || s.log.Knew(next, e) {
				out = append(out, e)
			}
		}
		next = start
	}
	slices.SortFunc(out, log.ByTime)
	return out
}

// startKnownTo is the earliest start of an attempt that a fact knew; nil: it knew none.
func (s *State) startKnownTo(e *log.Entry, a *Attempt) (first *log.Entry) {
	for _, x := range a.Starts {
		if s.log.Steps++; s.log.Knew(e, x) {
			first = earlier(first, x)
		}
	}
	return first
}

// flowOf is the attempt at the flow of which a fact is a record; nil: of none.
func (s *State) flowOf(e *log.Entry) *Attempt {
	switch b := &e.Fact.Body; {
	case b.Fire != nil:
		return s.attempts[b.Fire.Attempt]
	case b.Aged != nil:
		return s.attempts[b.Aged.Attempt]
	case b.Success != nil:
		return s.attempts[b.Success.Attempt].Fired.Flow
	case b.Claim != nil && recovers(b.Claim.Body()):
		return s.attempts[b.Claim.About()[0]]
	case b.Verdict != nil:
		for _, act := range b.Verdict.Actions {
			if a := s.attempts[act.Attempt]; a != nil && a.Fired != nil {
				return a.Fired.Flow
			}
		}
	default:
		for _, id := range givenBy(b) {
			if a := s.attempts[id]; a.Transition() {
				return a.Fired.Flow
			}
		}
	}
	return nil
}

// givenBy are the attempts that a record gives to somebody.
func givenBy(b *fact.Body) []fact.AttemptID {
	switch {
	case b.Lease != nil:
		return []fact.AttemptID{b.Lease.Attempt}
	case b.Start != nil:
		return []fact.AttemptID{b.Start.Attempt}
	case b.Claim != nil:
		return b.Claim.About()
	}
	return nil
}

// extend enters a record into the line.
func (s *State) extend(e *log.Entry) {
	l := s.flow.Line
	l.last, l.has[e] = e, true
	before := l.Board.State()
	if why := s.enterRecord(e); why != "" {
		l.why[e] = why
		s.lose(e)
		s.passOver(e)
	}
	if l.Board.State() == before {
		return
	}
	for n, v := range l.Board.Last().Changed {
		if v == nil {
			delete(s.data, n)
			delete(s.values, n)
			s.refiled = s.refiled || IsFile(s.decls[n])
		} else {
			s.datum(n, Written{v, e})
		}
	}
}

// enterRecord has the board hear of a record; it says why that changes nothing.
func (s *State) enterRecord(e *log.Entry) (why string) {
	f, board := s.flow, s.flow.Line.Board
	switch b := &e.Fact.Body; {
	case b.Fire != nil && !b.Fire.Undoes.IsZero():
		id := fact.AttemptID{Fact: e.ID, Slot: b.Fire.Tasks[0]}
		if why = board.FireUndo(JobOf(id), dataflow.ID(b.Fire.Undoes), e.Fact.At); why == "" {
			f.undone[id.Slot] = s.attempts[id]
		}
		return why
	case b.Aged != nil && b.Aged.Age == 0:
		return board.Amend(s.flowBy(s.heavyIn(s.edition.heavy, e)), dataflow.ID(e.ID), e.Fact.At)
	case b.Aged != nil:
		return board.Age(b.Aged.Age, dataflow.ID(e.ID), e.Fact.At)
	case b.Claim != nil && recovers(b.Claim.Body()):
		step, err := stepOf(b.Claim)
		if err != nil {
			return err.Error()
		}
		after := len(board.History())
		if why = board.Recover(step, dataflow.ID(e.ID), e.Fact.At); why == "" && step.Offers() {
			f.Line.offered = append(f.Line.offered, offeredStep{e, step.Method, after})
		}
		return why
	case b.Fire != nil:
		for _, t := range b.Fire.Tasks {
			id := fact.AttemptID{Fact: e.ID, Slot: t}
			waits := !s.attempts[id].Task.ByNode() || slices.Contains(b.Fire.ForWorkers, t)
			if not := board.Fire(JobOf(id), dataflow.ID(b.Fire.State), waits, e.Fact.At); not != "" {
				why = not
				continue
			}
			f.Latest[t] = s.attempts[id]
		}
	case b.Success != nil:
		a := s.attempts[b.Success.Attempt]
		if a.Success() != e {
			return "it had succeeded already"
		}
		if a.Undoes != nil {
			return board.Undone(JobOf(a.ID), dataflow.ID(e.ID), b.Success.Outputs, e.Fact.At)
		}
		if why = board.Done(JobOf(a.ID), dataflow.ID(e.ID), b.Success.Outputs, e.Fact.At); why == "" {
			a.Stands = Standing
			delete(f.lost, a)
		}
	case b.Verdict != nil:
		for _, act := range b.Verdict.Actions {
			if a := s.attempts[act.Attempt]; a != nil && a.Fired != nil {
				if a.Undoes != nil {
					return board.UndoFailed(JobOf(a.ID), ReasonOf(b.Verdict), e.Fact.At)
				}
				why = board.Fail(JobOf(a.ID), dataflow.ID(e.ID), ReasonOf(b.Verdict), e.Fact.At)
			}
		}
	default:
		for _, id := range givenBy(b) {
			board.Take(JobOf(id), e.Fact.At)
		}
	}
	return why
}

// passOver has what a record would have ended begin once more, where it is pending: the record does not count, and whoever
// wrote it says nothing more of it. Else nothing would come of it any more.
func (s *State) passOver(e *log.Entry) {
	board := s.flow.Line.Board
	if b := e.Fact.Body.Success; b != nil {
		board.Again(JobOf(b.Attempt))
	}
	if b := e.Fact.Body.Verdict; b != nil {
		for _, act := range b.Actions {
			board.Again(JobOf(act.Attempt))
		}
	}
}

// lose notes that a record does not count: a transition that succeeded by it has done so for nothing.
func (s *State) lose(e *log.Entry) {
	b := e.Fact.Body.Success
	if b == nil {
		return
	}
	a := s.attempts[b.Attempt]
	if a.Success() != e {
		return
	}
	if a.Stands = Superseded; a.Undo != nil {
		s.flow.lost[a] = true
	}
}

// JobOf is the job of a flow that an attempt is.
func JobOf(id fact.AttemptID) dataflow.Job {
	return dataflow.Job{Fact: dataflow.ID(id.Fact), Task: id.Slot}
}

// AttemptOfJob is the attempt that a job of a flow is.
func AttemptOfJob(j dataflow.Job) fact.AttemptID {
	return fact.AttemptID{Fact: fact.ID(j.Fact), Slot: j.Task}
}

// PendingJob is what is pending of an attempt at a transition; nil: it is not, or not in the line.
func (f *FlowWork) PendingJob(a *Attempt) *dataflow.Pending {
	if f.Line == nil || !a.Transition() {
		return nil
	}
	return f.Line.Board.Running(JobOf(a.ID))
}

// Goes reports whether an attempt that the flow began is under way: a transition that is pending, or the compensation
// for which a recovery waits.
func (f *FlowWork) Goes(a *Attempt) bool {
	switch {
	case a.Transition():
		return f.PendingJob(a) != nil
	case f.Line == nil:
		return false
	}
	u := f.Line.Board.Undoing()
	return u != nil && u.Job == JobOf(a.ID)
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
	f := dataflow.New(def)
	keep(&s.edition.flows, s.manyEditions(), def.Hash(), f)
	return f
}

// stepOf is the step of recovery that a claim orders.
func stepOf(c *fact.Claim) (dataflow.Step, error) {
	x, _ := c.Body().(worklist.Order)
	return dataflow.DecodeStep(x.Reason)
}

// recovers reports whether a person orders a step of recovery.
func recovers(body worklist.Body) bool {
	x, orders := body.(worklist.Order)
	return orders && x.What == worklist.Recover
}
