package state

import (
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
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
	} else if !a.Task.ByNode() {
		s.flow.people[a] = true
	}
	s.attempts[a.ID] = a
}

// taken notes that attempts were given to somebody by their holder: of transitions that waited for that the execution
// begins.
func (s *State) taken(e *log.Entry, of ...*Attempt) {
	i := slices.IndexFunc(of, (*Attempt).Transition)
	if i >= 0 && of[i].Partner == e.Fact.Chain.Author {
		s.flow.say(of[i].Fired.Flow, e)
		s.touch(of[i].Slot)
	}
}

// gives reports whether a claim gives items to somebody.
func gives(body worklist.Body) bool {
	if x, passes := body.(worklist.Transfer); passes {
		return x.To != ""
	}
	_, is := body.(worklist.Grant)
	return is
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
		out = append(out, fmt.Sprintf("interrupted at %d: %s", x.State, x))
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
