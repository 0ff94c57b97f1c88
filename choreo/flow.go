package choreo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
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

// Fire records that the holder of a flow begins transitions that a state fired.
type Fire struct {
	_ struct{} `cbor:",toarray"`
	// Attempt is the attempt at the flow by which its author holds it.
	Attempt AttemptID
	// State is the fact that brought the state: the genesis, or the success of a transition.
	State FactID
	// Tasks are the triggers, sorted. Each transition is named by this fact and its trigger.
	Tasks []workflow.TaskName
	// Undoes is the success of a transition that is compensated; zero: none is. Then there is
	// one task, its trigger.
	Undoes FactID
}

func (b *Fire) kind() string { return "fire" }

func (b *Fire) validate(workflow.PartnerID) error {
	if err := names(b.Attempt.Slot); err != nil {
		return err
	}
	if n := len(b.Tasks); n == 0 || n > maxCollection || n > 1 && !b.Undoes.IsZero() {
		return fmt.Errorf("it begins %d transitions, want 1 to %d, and 1 to compensate", n, maxCollection)
	}
	for i, t := range b.Tasks {
		if i > 0 && b.Tasks[i-1] >= t {
			return errors.New("the transitions that it begins are not sorted, or named twice")
		}
	}
	return names(b.Tasks...)
}

// enter makes the attempts. Whether a state fired them is for the line to say, since that
// depends on what came before.
func (s *State) enterFire(b *Fire, e *entry) (why string) {
	a, why := s.flowHeld(e, b.Attempt)
	switch {
	case why != "":
		return why
	case !s.knewState(e, b.State):
		return "it names a state that it does not know"
	}
	for _, t := range b.Tasks {
		if x := s.def.Task(t); x == nil || x.Condition == nil {
			return "it begins what is no transition"
		}
	}
	if !b.Undoes.IsZero() {
		return s.fireUndo(e, a, b)
	}
	for _, t := range b.Tasks {
		s.beginJob(&Attempt{
			ID: AttemptID{Fact: e.id, Slot: t}, Task: s.def.Task(t), Partner: a.Partner, assigned: e,
			fired: &fired{flow: a, state: b.State},
		})
	}
	s.flow.say(a, e)
	s.touch(a.Slot)
	return ""
}

// flowHeld is the attempt at the flow by which the author of a fact holds it; or why it does not.
func (s *State) flowHeld(e *entry, id AttemptID) (a *Attempt, why string) {
	a, v := s.attempts[id], s.evidenceOf(e)
	switch {
	case s.flow == nil || a == nil || a.Slot != s.flow.slot || a.beside() || !s.knewOf(e, id):
		return nil, "it is about no flow that it knows"
	case a.Partner != e.fact.Chain.Author:
		return nil, "its author does not hold the flow"
	case !v.any(a.starts):
		return nil, "the flow was not started"
	case v.gaveUp(a):
		return nil, "its author had given the flow up"
	}
	return a, ""
}

// fireUndo makes the attempt that compensates a transition.
func (s *State) fireUndo(e *entry, a *Attempt, b *Fire) (why string) {
	by := s.log.byID[b.Undoes]
	if by == nil || !s.log.knew(e, by) || by.fact.Body.Success == nil {
		return "it undoes what it does not know"
	}
	job := s.attempts[by.fact.Body.Success.Attempt]
	if job == nil || !job.transition() || job.Task.Name != b.Tasks[0] {
		return "it undoes what is no transition"
	}
	t := s.def.CompensationOf(job.Task)
	if t == nil {
		return "its transition has no compensation"
	}
	s.beginJob(&Attempt{
		ID: AttemptID{Fact: e.id, Slot: b.Tasks[0]}, Task: t, Partner: a.Partner, assigned: e, undoes: job,
		fired: &fired{flow: a, state: b.State, undoes: b.Undoes},
	})
	s.flow.say(a, e)
	s.touch(a.Slot)
	return ""
}

// beginJob adds the attempt at a transition. What a program does has begun with it.
func (s *State) beginJob(a *Attempt) {
	a.Slot, a.Depth, a.turns = s.flow.slot, 1, noTurns
	if a.Task.Type == workflow.Automatic {
		a.start, a.starts, a.tries = a.assigned, []*entry{a.assigned}, 1
	} else if a.transition() {
		s.flow.people[a] = true
	}
	s.attempts[a.ID] = a
}

// knewState reports whether the author of a fact knew of one that may have brought a state.
func (s *State) knewState(e *entry, id FactID) bool {
	by := s.log.byID[id]
	return by != nil && (by == s.log.genesis || s.log.knew(e, by))
}

// Aged records that an instance has come to an age at which a condition of its flow may come out
// otherwise (instance.age). The holder says so by its own clock, from when it knows of the instance;
// nobody else may. That it is true cannot be proved (docs/security.md).
type Aged struct {
	_ struct{} `cbor:",toarray"`
	// Attempt is the attempt at the flow by which its author holds it.
	Attempt AttemptID
	Age     time.Duration
}

func (b *Aged) kind() string { return "aged" }

func (b *Aged) validate(workflow.PartnerID) error {
	if b.Age <= 0 {
		return fmt.Errorf("an age of %d ns, want more than 0", int64(b.Age))
	}
	return names(b.Attempt.Slot)
}

// enter notes it. What follows is for the line to say.
func (s *State) enterAged(b *Aged, e *entry) (why string) {
	a, why := s.flowHeld(e, b.Attempt)
	if why != "" {
		return why
	}
	s.flow.say(a, e)
	s.touch(a.Slot)
	return ""
}

// fired says what an attempt at a transition is.
type fired struct {
	flow   *Attempt // the attempt at the flow whose holder began it
	state  FactID   // that fired it
	undoes FactID   // the success that it compensates; zero: none
}

// transition reports whether an attempt is one at a transition that a state fired.
func (a *Attempt) transition() bool { return a.fired != nil && a.undoes == nil }

// beside reports whether an attempt fills no slot: a compensation, or a transition.
func (a *Attempt) beside() bool { return a.undoes != nil || a.fired != nil }

// flowWork is what is known of an instance's data-state flow.
type flowWork struct {
	flow *dataflow.Flow
	slot *Slot
	// said are the records by the attempt at the flow of which they are, in the order in which
	// they came.
	said map[*Attempt][]*entry
	// fresh are those that came since the line was last looked at.
	fresh []*entry
	line  *line
	// latest is the last attempt at each transition that the line has.
	latest map[workflow.TaskName]*Attempt
	// lost are the transitions that succeeded, are not in the line and have a compensation.
	lost map[*Attempt]bool
	// people are transitions that people do, of which the board of claims may not know that they are over.
	people map[*Attempt]bool
}

// line is the history that counts.
type line struct {
	of    *Attempt // the last attempt at the flow that started; nil: none
	start *entry   // its start
	board *dataflow.Board
	last  *entry // nil: it has no record
	has   map[*entry]bool
	why   map[*entry]string // why a record of it changes nothing
}

// layFlow makes the flow of a definition that has one.
func (s *State) layFlow() {
	s.flow = nil
	if sl := s.bySlot[workflow.FlowTask]; sl != nil {
		s.flow = &flowWork{
			flow: dataflow.New(s.def), slot: sl, said: map[*Attempt][]*entry{},
			latest: map[workflow.TaskName]*Attempt{}, lost: map[*Attempt]bool{}, people: map[*Attempt]bool{},
		}
	}
}

// say notes a record of an attempt at the flow.
func (f *flowWork) say(a *Attempt, e *entry) {
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
	if f.line == nil || f.line.of != end || end != nil && f.line.start != end.start || !s.extendLine() {
		s.layLine(end)
	}
	f.fresh = nil
}

// end is the attempt at the flow whose holder the history follows: the one that counts, else the
// last that started of those that led to the one in charge; nil: none has.
func (f *flowWork) end() *Attempt {
	a := f.slot.Pick
	if a == nil {
		a = f.slot.Current
	}
	for ; a != nil && a.start == nil; a = a.after {
	}
	return a
}

// extendLine adds the records that came to the line, and reports whether that is all of it: each
// knows the one before.
func (s *State) extendLine() bool {
	f := s.flow
	slices.SortFunc(f.fresh, byTime)
	for _, e := range f.fresh {
		if s.flowOf(e) != f.line.of {
			s.lose(e)
			continue
		}
		if f.line.last != nil && !s.log.knew(e, f.line.last) {
			return false
		}
		s.extend(e)
	}
	return true
}

// layLine makes the line, and the data, from all records.
func (s *State) layLine(end *Attempt) {
	f := s.flow
	g := s.log.genesis
	data := map[workflow.DataName]workflow.Value{}
	for n, d := range s.decls {
		s.unwritten(n, d)
		if w, has := s.data[n]; has {
			data[n] = w.value
		}
	}
	was := f.line
	f.line = &line{
		of: end, has: map[*entry]bool{}, why: map[*entry]string{},
		board: dataflow.NewBoard(f.flow, s.log.instance.String(), data, dataflow.ID(g.id), g.fact.At),
	}
	if end != nil {
		f.line.start = end.start
	}
	clear(f.latest)
	clear(f.lost)
	var holder *Attempt
	for _, e := range s.records(end) {
		if f.line.last != nil && !s.log.knew(e, f.line.last) {
			continue
		}
		if of := s.flowOf(e); of != holder {
			f.line.board.HandOver()
			holder = of
		}
		s.extend(e)
	}
	if holder != end {
		f.line.board.HandOver()
	}
	for _, said := range f.said {
		for _, e := range said {
			if !f.line.has[e] {
				s.lose(e)
			}
			s.askAgainOf(e)
		}
	}
	if was != nil {
		s.move(f.slot)
	}
}

// askAgainOf has the board of claims hear once more how people's transitions stand that a fire began: what was over
// may not be so by another line.
func (s *State) askAgainOf(e *entry) {
	b := e.fact.Body.Fire
	if b == nil {
		return
	}
	for _, t := range b.Tasks {
		if a := s.attempts[AttemptID{Fact: e.id, Slot: t}]; a != nil && a.transition() && !a.Task.ByNode() {
			s.flow.people[a] = true
		}
	}
}

// records are those that may be in the line that ends with an attempt at the flow: of each before
// it what the one that came after it knew when it started. One whose start that did not know was as
// good as not there.
func (s *State) records(end *Attempt) (out []*entry) {
	var next *entry
	for a := end; a != nil; a = a.after {
		start := a.start
		if next != nil {
			start = s.startKnownTo(next, a)
		}
		if start == nil {
			continue
		}
		for _, e := range s.flow.said[a] {
			s.log.steps++
			if next == nil || s.log.knew(next, e) {
				out = append(out, e)
			}
		}
		next = start
	}
	slices.SortFunc(out, byTime)
	return out
}

// startKnownTo is the earliest start of an attempt that a fact knew; nil: it knew none.
func (s *State) startKnownTo(e *entry, a *Attempt) (first *entry) {
	for _, x := range a.starts {
		if s.log.steps++; s.log.knew(e, x) {
			first = earlier(first, x)
		}
	}
	return first
}

// flowOf is the attempt at the flow of which a fact is a record; nil: of none.
func (s *State) flowOf(e *entry) *Attempt {
	switch b := &e.fact.Body; {
	case b.Fire != nil:
		return s.attempts[b.Fire.Attempt]
	case b.Aged != nil:
		return s.attempts[b.Aged.Attempt]
	case b.Success != nil:
		return s.attempts[b.Success.Attempt].fired.flow
	case b.Claim != nil:
		return s.attempts[b.Claim.About()[0]]
	case b.Verdict != nil:
		for _, act := range b.Verdict.Actions {
			if a := s.attempts[act.Attempt]; a != nil && a.fired != nil {
				return a.fired.flow
			}
		}
	}
	return nil
}

// extend enters a record into the line.
func (s *State) extend(e *entry) {
	l := s.flow.line
	l.last, l.has[e] = e, true
	before := l.board.State()
	if why := s.enterRecord(e); why != "" {
		l.why[e] = why
		s.lose(e)
	}
	if l.board.State() == before {
		return
	}
	for n, v := range l.board.Last().Changed {
		if v == nil {
			delete(s.data, n)
			delete(s.values, n)
			s.refiled = s.refiled || isFile(s.decls[n])
		} else {
			s.datum(n, written{v, e})
		}
	}
}

// enterRecord has the board hear of a record; it says why that changes nothing.
func (s *State) enterRecord(e *entry) (why string) {
	f, board := s.flow, s.flow.line.board
	switch b := &e.fact.Body; {
	case b.Fire != nil && !b.Fire.Undoes.IsZero():
		return board.FireUndo(jobOf(AttemptID{Fact: e.id, Slot: b.Fire.Tasks[0]}), dataflow.ID(b.Fire.Undoes))
	case b.Aged != nil:
		return board.Age(b.Aged.Age, dataflow.ID(e.id), e.fact.At)
	case b.Claim != nil:
		step, err := stepOf(b.Claim)
		if err != nil {
			return err.Error()
		}
		return board.Recover(step, dataflow.ID(e.id), e.fact.At)
	case b.Fire != nil:
		for _, t := range b.Fire.Tasks {
			id := AttemptID{Fact: e.id, Slot: t}
			if not := board.Fire(jobOf(id), dataflow.ID(b.Fire.State), e.fact.At); not != "" {
				why = not
				continue
			}
			f.latest[t] = s.attempts[id]
		}
	case b.Success != nil:
		a := s.attempts[b.Success.Attempt]
		if a.success() != e {
			return "it had succeeded already"
		}
		if a.undoes != nil {
			return board.Undone(jobOf(a.ID), dataflow.ID(e.id), b.Success.Outputs, a.assigned.fact.At, e.fact.At)
		}
		if why = board.Done(jobOf(a.ID), dataflow.ID(e.id), b.Success.Outputs, e.fact.At); why == "" {
			a.stands = standing
			delete(f.lost, a)
		}
	case b.Verdict != nil:
		for _, act := range b.Verdict.Actions {
			if a := s.attempts[act.Attempt]; a != nil && a.fired != nil {
				if a.undoes != nil {
					return board.UndoFailed(jobOf(a.ID), reasonOf(b.Verdict))
				}
				why = board.Fail(jobOf(a.ID), dataflow.ID(e.id), reasonOf(b.Verdict), e.fact.At)
			}
		}
	}
	return why
}

// lose notes that a record does not count: a transition that succeeded by it has done so for nothing.
func (s *State) lose(e *entry) {
	b := e.fact.Body.Success
	if b == nil {
		return
	}
	a := s.attempts[b.Attempt]
	if a.success() != e {
		return
	}
	if a.stands = superseded; a.undo != nil {
		s.flow.lost[a] = true
	}
}

func jobOf(id AttemptID) dataflow.Job { return dataflow.Job{Fact: dataflow.ID(id.Fact), Task: id.Slot} }

func attemptOfJob(j dataflow.Job) AttemptID { return AttemptID{Fact: FactID(j.Fact), Slot: j.Task} }

// pendingJob is what is pending of an attempt at a transition; nil: it is not, or not in the line.
func (f *flowWork) pendingJob(a *Attempt) *dataflow.Pending {
	if f.line == nil || !a.transition() {
		return nil
	}
	return f.line.board.Running(jobOf(a.ID))
}

// fit gives the job of a transition the state that fired it, and a name that it has wherever it is begun.
func (f *flowWork) fit(j *Job, a *Attempt) {
	if p := f.pendingJob(a); p != nil {
		for n, v := range p.Input {
			j.Input[n] = v
		}
		j.Key = AttemptID{Fact: a.fired.state, Slot: a.ID.Slot}
	}
}

// flowLines are what the flow comes to, for the fingerprint.
func (s *State) flowLines() (out []string) {
	if s.flow == nil || s.flow.line == nil {
		return nil
	}
	b := s.flow.line.board
	for _, r := range b.History() {
		out = append(out, fmt.Sprintf("state %d %s %s by %s fired=%d input=%d mark=%s status=%s", r.Output, r.Kind,
			r.Task, FactID(r.ID).Short(), r.FiredBy, r.Input, r.Mark, r.Status))
	}
	for _, p := range b.Pending() {
		out = append(out, fmt.Sprintf("pending %s since %d as %s", p.Task.Name, p.State, attemptOfJob(p.Job)))
	}
	if x := b.Interrupted(); x != nil {
		out = append(out, fmt.Sprintf("interrupted at %d: %s", x.State, x.Cause))
	}
	for _, a := range sortedJobs(s.flow.lost) {
		out = append(out, fmt.Sprintf("lost %s start=%s", a.ID, shortName(a.undo.start)))
	}
	return out
}

func sortedJobs(set map[*Attempt]bool) []*Attempt {
	out := make([]*Attempt, 0, len(set))
	for a := range set {
		out = append(out, a)
	}
	slices.SortFunc(out, func(x, y *Attempt) int { return byTime(x.success(), y.success()) })
	return out
}
