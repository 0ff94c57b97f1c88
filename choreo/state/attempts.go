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
	return s.enterOwn(e, b.Attempt, (*Evidence).MayStart, func(a *Attempt) { s.begin(a, b, e) })
}

// begin notes a start of an attempt.
func (s *State) begin(a *Attempt, b *fact.Start, e *log.Entry) {
	a.Tries = max(a.Tries, b.Try)
	a.Start, a.Starts = earlier(a.Start, e), firstOf(a.Starts, e)
	s.rebase(a)
}

func (s *State) enterSuccess(b *fact.Success, e *log.Entry) (why string) {
	may := func(v *Evidence, a *Attempt) string {
		if !v.mayWrite(a.Task, b.Outputs) {
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

// knewOf reports whether e's author knew of what an attempt that exists is named
// by.
func (s *State) knewOf(e *log.Entry, id fact.AttemptID) bool {
	if id.Fact.IsZero() {
		return true
	}
	if first, known := s.isFirst(id, e); first {
		return known
	}
	return s.log.Knew(e, s.log.ByID()[id.Fact])
}

// rebase finds the start that says what an attempt built upon: the earliest that its
// success knew, while it has none the earliest.
func (s *State) rebase(a *Attempt) {
	if a.Fired != nil {
		return // it is built upon data states
	}
	was, ok := a.Base, a.Success()
	a.Base = nil
	for _, e := range a.Starts {
		if ok == nil || s.log.Knew(ok, e) {
			a.Base = earlier(a.Base, e)
		}
	}
	if a.Base == was {
		return
	}
	for from := range s.BuiltOn(a, was) {
		s.log.Steps++
		from.dropUser(a)
		s.touch(from.Slot)
	}
	for from := range s.BuiltOn(a, a.Base) {
		s.log.Steps++
		from.addUser(a)
		if a.claims != Superseded {
			s.touch(from.Slot)
		}
	}
}

// mayWrite reports whether a task may have a result: names of its out only, each
// of its type.
func (v *Evidence) mayWrite(t *workflow.Task, out map[workflow.DataName]workflow.Value) bool {
	for n, x := range out {
		d := v.decl(n)
		if d == nil || !slices.Contains(t.Out, n) {
			return false
		}
		if _, err := workflow.CheckValue(d, x); err != nil {
			return false
		}
	}
	return true
}

// Success is the attempt's success that counts: its earliest.
func (a *Attempt) Success() *log.Entry {
	if len(a.Successes) == 0 {
		return nil
	}
	return a.Successes[0]
}

// EndedByHolder reports whether the holder itself has given the attempt up.
func (a *Attempt) EndedByHolder() bool {
	return slices.ContainsFunc(a.Rulings, func(r *Ruling) bool { return r.Final && !r.Void })
}

// MayStart reports whether an attempt that is wanted and not started is ready.
func (a *Attempt) MayStart() bool {
	if a.Transition() {
		return true
	}
	if a.Slot.State == workflow.Failed || a.Slot.Pending != nil { // as others presume
		return a.Slot.Begun() || a.Slot.RuleHolds()
	}
	return a.Slot.State == workflow.Ready
}

// Try is the number of the newest try of the attempt.
func (a *Attempt) Try() int { return a.Tries }

// undone is what the success that a compensation undoes had written.
func (a *Attempt) undone() map[workflow.DataName]workflow.Value {
	if a.Undoes == nil {
		return nil
	}
	return a.Undoes.Success().Gave()
}

func (s *State) enterLease(b *fact.Lease, e *log.Entry) (why string) {
	return s.enterOwn(e, b.Attempt, (*Evidence).mayFail, func(a *Attempt) { a.lease = newer(a.lease, e) })
}

// leased is the newest lease of an attempt's newest try; nil: nobody has it.
func (a *Attempt) leased() *fact.Lease {
	if a.lease == nil || a.lease.Fact.Body.Lease.Try != a.Try() {
		return nil
	}
	return a.lease.Fact.Body.Lease
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

// ChildInstance is the instance that does the attempt, as far as its holder told last; zero: none.
func (a *Attempt) ChildInstance() workflow.InstanceID {
	if a.Child == nil {
		return workflow.InstanceID{}
	}
	return a.Child.Fact.Body.Child.Instance
}
