package state

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about what the holder of an attempt says of it: that it is ready,
// started, failed in a try, succeeded, was called off. What it may say, by what it
// knew, is in rights.go.

func (s *State) enterReady(b *fact.ReadyBody, e *log.Entry) (why string) {
	may := func(v *Evidence, a *Attempt) string { return v.MayReady(a, b.Trigger) }
	return s.enterOwn(e, b.Attempt, may, func(a *Attempt) {
		a.Ready, a.readied = earlier(a.Ready, e), firstOf(a.readied, e)
	})
}

func (s *State) enterStart(b *fact.Start, e *log.Entry) (why string) {
	s.undoneElsewhere(b.Attempt, e)
	return s.enterOwn(e, b.Attempt, (*Evidence).MayStart, func(a *Attempt) {
		s.begin(a, b, e)
		if !a.Task.ByNode() {
			s.taken(e, a)
		}
	})
}

// begin notes a start of an attempt.
func (s *State) begin(a *Attempt, b *fact.Start, e *log.Entry) {
	a.Tries = max(a.Tries, b.Try)
	a.Start, a.Starts = earlier(a.Start, e), firstOf(a.Starts, e)
	if a.Start == e {
		v := s.EvidenceOf(e)
		a.Task = v.does(a)
		if in := v.reading(a); !slices.Equal(in, a.Task.In) {
			t := *a.Task
			t.In, a.Task = in, &t
		}
	}
	s.rebase(a)
}

func (s *State) enterSuccess(b *fact.Success, e *log.Entry) (why string) {
	may := func(v *Evidence, a *Attempt) string {
		if !v.mayWrite(v.does(a), b.Outputs) {
			return "its task may not have such a result"
		}
		return v.maySucceed(a)
	}
	return s.enterOwn(e, b.Attempt, may, func(a *Attempt) {
		s.succeed(a, e)
	})
}

// enterDone has a fact count as a start and as the success of it, or as neither.
func (s *State) enterDone(b *fact.Done, e *log.Entry) (why string) {
	may := func(v *Evidence, a *Attempt) string {
		switch {
		case a.Beside() || !a.Task.ByNode():
			return "only what a node does by itself, in its place, is begun and done at once"
		case !v.mayWrite(a.Task, b.Success.Outputs):
			return "its task may not have such a result"
		}
		return cmp.Or(v.MayStart(a), v.mayEnd(a))
	}
	return s.enterOwn(e, b.Start.Attempt, may, func(a *Attempt) {
		s.begin(a, b.Start, e)
		s.succeed(a, e)
	})
}

// succeed notes a success of an attempt: its holder's, or the adoption of a result.
func (s *State) succeed(a *Attempt, e *log.Entry) {
	a.Successes = append(a.Successes, e)
	slices.SortFunc(a.Successes, log.ByTime)
	switch {
	case a.Fired != nil:
		s.noteGivers(a, e)
		s.flow.say(a.Fired.Flow, e)
		s.undoable(a, e)
	case a.Undoes == nil:
		s.bySucc[e.ID] = a
		s.noteGivers(a, e)
		a.Slot.askAgain() // whether its users deny it
		s.undoable(a, e)
	}
}

func (s *State) enterTryFailed(b *fact.TryFailed, e *log.Entry) (why string) {
	return s.enterOwn(e, b.Attempt, (*Evidence).mayFail, func(a *Attempt) { a.Failed = newer(a.Failed, e) })
}

func (s *State) enterCalledOff(b *fact.CalledOff, e *log.Entry) (why string) {
	return s.enterOwn(e, b.Attempt, (*Evidence).MayCallOff, func(a *Attempt) {
		a.Off, a.turning().offs = earlier(a.Off, e), firstOf(a.offs, e)
	})
}

// enterOwn enters what only an attempt's holder may say, and only if by what it knew
// it may.
func (s *State) enterOwn(
	e *log.Entry, id fact.AttemptID, may func(*Evidence, *Attempt) string, set func(*Attempt),
) (why string) {
	a := s.attempts[id]
	switch {
	case a == nil || !s.knewOf(e, id):
		return "it is about an attempt that it does not know"
	case a.Partner != e.Fact.Chain.Author:
		return "its author does not hold the attempt"
	}
	if why := may(s.EvidenceOf(e), a); why != "" {
		return why
	}
	set(a)
	s.touch(a.Slot)
	return ""
}

// mayWrite reports whether a task may have a result: names of its out only, each
// of its type.
func (v *Evidence) mayWrite(t *workflow.Task, out map[workflow.DataName]workflow.Value) bool {
	for n, x := range out {
		d := v.decl(n)
		if t == nil || d == nil || !slices.Contains(t.Out, n) {
			return false
		}
		if _, err := workflow.CheckValue(d, x); err != nil {
			return false
		}
	}
	return true
}

func (s *State) enterLease(b *fact.Lease, e *log.Entry) (why string) {
	return s.enterOwn(e, b.Attempt, (*Evidence).mayFail, func(a *Attempt) {
		a.lease = newer(a.lease, e)
		s.taken(e, a)
	})
}

func (s *State) enterChild(b *fact.Child, e *log.Entry) (why string) {
	return s.enterOwn(e, b.Attempt, (*Evidence).mayNest, func(a *Attempt) { a.Child = newer(a.Child, e) })
}

// mayNest says why an attempt's holder may not tell that an instance does it; "": it may.
func (v *Evidence) mayNest(a *Attempt) string {
	if a.Task.Type != workflow.SubWorkflow {
		return "its task is no workflow"
	}
	return v.mayFail(a)
}

// undoable gives an attempt that has succeeded its compensation, if the author
// of the definition wants one.
func (s *State) undoable(a *Attempt, success *log.Entry) {
	if a.Undo == nil {
		def := s.def
		if a.Fired != nil { // as it was when it was fired
			def = s.EvidenceOf(a.Assigned).under()
		}
		t := s.compensationOf(def, a)
		if t == nil {
			return
		}
		a.Undo = s.undoing(a, t, success)
	}
	s.attempts[fact.AttemptID{Fact: success.ID, Slot: a.ID.Slot}] = a.Undo
}

// undoing is an attempt that undoes another by a task, named by a success of that.
func (s *State) undoing(a *Attempt, t *workflow.Task, success *log.Entry) *Attempt {
	return &Attempt{
		ID: fact.AttemptID{Fact: success.ID, Slot: a.ID.Slot}, Slot: a.Slot, Task: t, Partner: a.Partner,
		Depth: a.Depth, Assigned: success, Undoes: a, turns: noTurns,
	}
}
