package state

import (
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about instances that are driven by their data (docs/design.md, Data states).
//
// The flow as a whole is one task, which nobody wrote (workflow.FlowTask), with a slot like any
// other: so who holds it, who takes it over when its holder is lost, and which of two holders
// counts after a split follows from the same verdicts and the same rules. It runs from the first
// state to the last.
//
//	flow's attempt ──start──▶ fire ─▶ success ─▶ fire ─▶ … ─▶ success of the flow
//	                            └▶ an attempt for each transition that it begins, in no slot
//
// A transition is an attempt that fills no slot, as a compensation is. It is named by the fire
// that began it, is held by whoever holds the flow, and ends by the same facts as any other. Its
// success brings a data state.
//
// The records of a flow are what its holders said of transitions. Those that count make up its
// line: of each attempt of the flow what its successor knew when it started, of the last one all,
// in their order, each of which knew the one before. So there is one history, whatever was done
// elsewhere; what the line passes over is superseded, and undone as the author chose.

// enter makes the attempts. Whether a state fired them is for the line to say, since that
// depends on what came before.
func (s *State) enterFire(b *fact.Fire, e *log.Entry) (why string) {
	a, why := s.flowHeld(e, b.Attempt)
	switch {
	case why != "":
		return why
	case !s.knewState(e, b.State):
		return "it names a state that it does not know"
	}
	by := s.EvidenceOf(e).under()
	for _, t := range b.Tasks {
		if x := by.Task(t); x == nil || x.Condition == nil {
			return "it begins what is no transition"
		}
	}
	if !b.Undoes.IsZero() {
		return s.fireUndo(e, a, b)
	}
	for _, t := range b.Tasks {
		s.beginJob(&Attempt{
			ID: fact.AttemptID{Fact: e.ID, Slot: t}, Task: s.limited(by.Task(t)), Partner: a.Partner, Assigned: e,
			Fired: &Fired{Flow: a, state: b.State},
		})
	}
	s.flow.say(a, e)
	s.touch(a.Slot)
	return ""
}

// flowHeld is the attempt at the flow by which the author of a fact holds it; or why it does not.
func (s *State) flowHeld(e *log.Entry, id fact.AttemptID) (a *Attempt, why string) {
	a, v := s.attempts[id], s.EvidenceOf(e)
	switch {
	case s.flow == nil || a == nil || a.Slot != s.flow.Slot || a.Beside() || !s.knewOf(e, id):
		return nil, "it is about no flow that it knows"
	case a.Partner != e.Fact.Chain.Author:
		return nil, "its author does not hold the flow"
	case !v.any(a.Starts):
		return nil, "the flow was not started"
	case v.gaveUp(a):
		return nil, "its author had given the flow up"
	}
	return a, ""
}

// fireUndo makes the attempt that compensates a transition.
func (s *State) fireUndo(e *log.Entry, a *Attempt, b *fact.Fire) (why string) {
	by := s.log.ByID()[b.Undoes]
	if by == nil || !s.log.Knew(e, by) || by.Fact.Body.Success == nil {
		return "it undoes what it does not know"
	}
	job := s.attempts[by.Fact.Body.Success.Attempt]
	if job == nil || !job.Transition() || job.Task.Name != b.Tasks[0] {
		return "it undoes what is no transition"
	}
	def := s.EvidenceOf(e).under()
	x := def.Task(job.Task.Name)
	if x == nil {
		return "it undoes what is no transition any more"
	}
	t := def.CompensationOf(s.limited(x))
	if t == nil {
		return "its transition has no compensation"
	}
	s.beginJob(&Attempt{
		ID: fact.AttemptID{Fact: e.ID, Slot: b.Tasks[0]}, Task: t, Partner: a.Partner, Assigned: e, Undoes: job,
		Fired: &Fired{Flow: a, state: b.State, undoes: b.Undoes},
	})
	s.flow.say(a, e)
	s.touch(a.Slot)
	return ""
}

// beginJob adds the attempt at a transition. What a program does has begun with it.
func (s *State) beginJob(a *Attempt) {
	a.Slot, a.Depth, a.turns = s.flow.Slot, 1, noTurns
	if a.Task.Type == workflow.Automatic {
		a.Start, a.Starts, a.Tries = a.Assigned, []*log.Entry{a.Assigned}, 1
	} else if a.Transition() {
		s.flow.people[a] = true
	}
	s.attempts[a.ID] = a
}

// knewState reports whether the author of a fact knew of one that may have brought a state.
func (s *State) knewState(e *log.Entry, id fact.ID) bool {
	by := s.log.ByID()[id]
	return by != nil && (by == s.log.Genesis() || s.log.Knew(e, by))
}

// enter notes it. What follows is for the line to say.
func (s *State) enterAged(b *fact.Aged, e *log.Entry) (why string) {
	a, why := s.flowHeld(e, b.Attempt)
	if why != "" {
		return why
	}
	s.flow.say(a, e)
	s.touch(a.Slot)
	return ""
}

// Transition reports whether an attempt is one at a transition that a state fired.
func (a *Attempt) Transition() bool { return a.Fired != nil && a.Undoes == nil }

// Beside reports whether an attempt fills no slot: a compensation, or a transition.
func (a *Attempt) Beside() bool { return a.Undoes != nil || a.Fired != nil }

// layFlow makes the flow of a definition that has one.
func (s *State) layFlow() {
	s.flow = nil
	if sl := s.bySlot[workflow.FlowTask]; sl != nil {
		s.flow = &FlowWork{
			first: dataflow.New(s.original), Slot: sl, said: map[*Attempt][]*log.Entry{},
			Latest: map[workflow.TaskName]*Attempt{}, lost: map[*Attempt]bool{}, people: map[*Attempt]bool{},
		}
	}
}

// say notes a record of an attempt at the flow.
func (f *FlowWork) say(a *Attempt, e *log.Entry) {
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
	clear(f.lost)
	var holder *Attempt
	for _, e := range s.records(end) {
		if f.Line.last != nil && !s.log.Knew(e, f.Line.last) {
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
		if a := s.attempts[fact.AttemptID{Fact: e.ID, Slot: t}]; a != nil && a.Transition() && !a.Task.ByNode() {
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
	case b.Claim != nil:
		return s.attempts[b.Claim.About()[0]]
	case b.Verdict != nil:
		for _, act := range b.Verdict.Actions {
			if a := s.attempts[act.Attempt]; a != nil && a.Fired != nil {
				return a.Fired.Flow
			}
		}
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
		return board.FireUndo(JobOf(fact.AttemptID{Fact: e.ID, Slot: b.Fire.Tasks[0]}), dataflow.ID(b.Fire.Undoes))
	case b.Aged != nil && b.Aged.Age == 0:
		return board.Amend(s.flowBy(s.heavyIn(s.edition.heavy, e)), dataflow.ID(e.ID), e.Fact.At)
	case b.Aged != nil:
		return board.Age(b.Aged.Age, dataflow.ID(e.ID), e.Fact.At)
	case b.Claim != nil:
		step, err := stepOf(b.Claim)
		if err != nil {
			return err.Error()
		}
		return board.Recover(step, dataflow.ID(e.ID), e.Fact.At)
	case b.Fire != nil:
		for _, t := range b.Fire.Tasks {
			id := fact.AttemptID{Fact: e.ID, Slot: t}
			if not := board.Fire(JobOf(id), dataflow.ID(b.Fire.State), e.Fact.At); not != "" {
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
			return board.Undone(JobOf(a.ID), dataflow.ID(e.ID), b.Success.Outputs, a.Assigned.Fact.At, e.Fact.At)
		}
		if why = board.Done(JobOf(a.ID), dataflow.ID(e.ID), b.Success.Outputs, e.Fact.At); why == "" {
			a.Stands = Standing
			delete(f.lost, a)
		}
	case b.Verdict != nil:
		for _, act := range b.Verdict.Actions {
			if a := s.attempts[act.Attempt]; a != nil && a.Fired != nil {
				if a.Undoes != nil {
					return board.UndoFailed(JobOf(a.ID), ReasonOf(b.Verdict))
				}
				why = board.Fail(JobOf(a.ID), dataflow.ID(e.ID), ReasonOf(b.Verdict), e.Fact.At)
			}
		}
	}
	return why
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

// fit gives the job of a transition the state that fired it, and a name that it has wherever it is begun.
func (f *FlowWork) fit(j *Job, a *Attempt) {
	if p := f.PendingJob(a); p != nil {
		for n, v := range p.Input {
			j.Input[n] = v
		}
		j.Key = fact.AttemptID{Fact: a.Fired.state, Slot: a.ID.Slot}
	}
}

// FlowLines are what the flow comes to, for the fingerprint.
func (s *State) FlowLines() (out []string) {
	if s.flow == nil || s.flow.Line == nil {
		return nil
	}
	b := s.flow.Line.Board
	for _, r := range b.History() {
		out = append(out, fmt.Sprintf("state %d %s %s by %s fired=%d input=%d mark=%s status=%s", r.Output, r.Kind,
			r.Task, fact.ID(r.ID).Short(), r.FiredBy, r.Input, r.Mark, r.Status))
	}
	for _, p := range b.Pending() {
		out = append(out, fmt.Sprintf("pending %s since %d as %s", p.Task.Name, p.State, AttemptOfJob(p.Job)))
	}
	if x := b.Interrupted(); x != nil {
		out = append(out, fmt.Sprintf("interrupted at %d: %s", x.State, x.Cause))
	}
	for _, a := range sortedJobs(s.flow.lost) {
		out = append(out, fmt.Sprintf("lost %s start=%s", a.ID, ShortName(a.Undo.Start)))
	}
	return out
}

func sortedJobs(set map[*Attempt]bool) []*Attempt {
	out := make([]*Attempt, 0, len(set))
	for a := range set {
		out = append(out, a)
	}
	slices.SortFunc(out, func(x, y *Attempt) int { return log.ByTime(x.Success(), y.Success()) })
	return out
}

// settledFlow reports whether no fact that is still to come can make a transition count that does
// not: no other holder goes on, and each participant has shown that it knows of all who held the
// flow, and of the transition's success, or was written off.
func (s *State) settledFlow(job *Attempt) bool {
	f := s.flow
	end := f.end()
	for _, a := range f.Slot.Attempts {
		if a != end && a.Runs() && s.writtenOff[a.Partner] == nil {
			return false
		}
	}
	for p := range s.joined {
		s.log.Steps++
		if s.writtenOff[p] == nil && !s.anyHeeded(p, func(e *log.Entry) bool { return s.KnewFlow(e, job) }) {
			return false
		}
	}
	return true
}

// KnewFlow reports whether a fact's author knew of all who held the flow, and of a success.
func (s *State) KnewFlow(e *log.Entry, job *Attempt) bool {
	for _, a := range s.flow.Slot.Attempts {
		if a.Start != nil && !s.log.Knew(e, a.Start) {
			return false
		}
	}
	return e == job.Success() || s.log.Knew(e, job.Success())
}

// recovers reports whether a person orders a step of recovery.
func recovers(body worklist.Body) bool {
	x, orders := body.(worklist.Order)
	return orders && x.What == worklist.Recover
}

// stepOf is the step of recovery that a claim orders.
func stepOf(c *fact.Claim) (dataflow.Step, error) {
	x, _ := c.Body().(worklist.Order)
	return dataflow.DecodeStep(x.Reason)
}
