package choreo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about what the holder of an attempt says of it: that it is ready,
// started, failed in a try, succeeded, was called off. What it may say, by what it
// knew, is in rights.go.

func (b *ReadyBody) kind() string { return "ready" }

func (b *ReadyBody) validate(workflow.PartnerID) error { return names(b.Attempt.Slot) }

func (s *State) enterReady(b *ReadyBody, e *entry) (why string) {
	may := func(v *evidence, a *Attempt) string { return v.mayReady(a, b.Trigger) }
	return s.enterOwn(e, b.Attempt, may, func(a *Attempt) {
		a.ready, a.readied = earlier(a.ready, e), firstOf(a.readied, e)
	})
}

func (d *decision) tellReady(b *ReadyBody, e *entry) {
	d.oweWhoAsks(e, d.state.attempts[b.Attempt], workflow.BecameReady)
	d.tellKeepers(e, d.state.attempts[b.Attempt].Slot)
}

func (b *Start) kind() string { return "start" }

func (b *Start) validate(workflow.PartnerID) error {
	if err := try(b.Attempt, b.Try); err != nil {
		return err
	}
	if len(b.Consumed) > maxCollection {
		return fmt.Errorf("it names %d results that it builds upon, at most %d", len(b.Consumed), maxCollection)
	}
	for i, c := range b.Consumed {
		if i > 0 && b.Consumed[i-1].Slot >= c.Slot {
			return errors.New("what it builds upon is not sorted, or named twice")
		}
		if err := names(c.Slot); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) enterStart(b *Start, e *entry) (why string) {
	return s.enterOwn(e, b.Attempt, (*evidence).mayStart, func(a *Attempt) {
		a.tries = max(a.tries, b.Try)
		a.start, a.starts = earlier(a.start, e), firstOf(a.starts, e)
		s.rebase(a)
	})
}

func (d *decision) tellStart(b *Start, e *entry) {
	a := d.state.attempts[b.Attempt]
	if a.undoes != nil {
		d.oweAll(e)
		return
	}
	d.oweWhoAsks(e, a, workflow.BecameRunning)
	if a.start == e && a.runs() {
		d.begun = append(d.begun, begun{e, d.now.Boot})
	}
}

func (b *Success) kind() string { return "success" }

func (b *Success) validate(workflow.PartnerID) error {
	if err := try(b.Attempt, b.Try); err != nil {
		return err
	}
	return values(b.Outputs)
}

func (s *State) enterSuccess(b *Success, e *entry) (why string) {
	may := func(v *evidence, a *Attempt) string {
		if !s.mayWrite(a.Task, b.Outputs) {
			return "its task may not have such a result"
		}
		return v.maySucceed(a)
	}
	return s.enterOwn(e, b.Attempt, may, func(a *Attempt) {
		s.succeed(a, e)
	})
}

// succeed notes a success of an attempt: its holder's, or the adoption of a result.
func (s *State) succeed(a *Attempt, e *entry) {
	a.successes = append(a.successes, e)
	slices.SortFunc(a.successes, byTime)
	switch {
	case a.fired != nil:
		s.noteGivers(a, e)
		s.flow.say(a.fired.flow, e)
		s.undoable(a, e)
	case a.undoes == nil:
		s.bySucc[e.id] = a
		s.noteGivers(a, e)
		a.Slot.askAgain() // whether its users deny it
		s.undoable(a, e)
	}
}

// gave is what a success brought.
func (e *entry) gave() map[workflow.DataName]workflow.Value {
	if ok := e.fact.Body.Success; ok != nil {
		return ok.Outputs
	}
	return e.word.adopted
}

func (b *TryFailed) kind() string { return "try-failed" }

func (b *TryFailed) validate(workflow.PartnerID) error {
	if err := try(b.Attempt, b.Try); err != nil {
		return err
	}
	return reason(b.Reason)
}

func (s *State) enterTryFailed(b *TryFailed, e *entry) (why string) {
	return s.enterOwn(e, b.Attempt, (*evidence).mayFail, func(a *Attempt) { a.failed = newer(a.failed, e) })
}

func (b *CalledOff) kind() string { return "called-off" }

func (b *CalledOff) validate(workflow.PartnerID) error { return names(b.Attempt.Slot) }

func (s *State) enterCalledOff(b *CalledOff, e *entry) (why string) {
	return s.enterOwn(e, b.Attempt, (*evidence).mayCallOff, func(a *Attempt) {
		a.off, a.turning().offs = earlier(a.off, e), firstOf(a.offs, e)
	})
}

// enterOwn enters what only an attempt's holder may say, and only if by what it knew
// it may.
func (s *State) enterOwn(
	e *entry, id AttemptID, may func(*evidence, *Attempt) string, set func(*Attempt),
) (why string) {
	a := s.attempts[id]
	switch {
	case a == nil || !s.knewOf(e, id):
		return "it is about an attempt that it does not know"
	case a.Partner != e.fact.Chain.Author:
		return "its author does not hold the attempt"
	}
	if why := may(s.evidenceOf(e), a); why != "" {
		return why
	}
	set(a)
	s.touch(a.Slot)
	return ""
}

// knewOf reports whether e's author knew of what an attempt that exists is named
// by.
func (s *State) knewOf(e *entry, id AttemptID) bool {
	if id.Fact.IsZero() {
		return true
	}
	return s.log.knew(e, s.log.byID[id.Fact])
}

// rebase finds the start that says what an attempt built upon: the earliest that its
// success knew, while it has none the earliest.
func (s *State) rebase(a *Attempt) {
	if a.fired != nil {
		return // it is built upon data states
	}
	was, ok := a.base, a.success()
	a.base = nil
	for _, e := range a.starts {
		if ok == nil || s.log.knew(ok, e) {
			a.base = earlier(a.base, e)
		}
	}
	if a.base == was {
		return
	}
	for from := range s.builtOn(a, was) {
		s.log.steps++
		from.dropUser(a)
		s.touch(from.Slot)
	}
	for from := range s.builtOn(a, a.base) {
		s.log.steps++
		from.addUser(a)
		if a.claims != superseded {
			s.touch(from.Slot)
		}
	}
}

// mayWrite reports whether a task may have a result: names of its out only, each
// of its type.
func (s *State) mayWrite(t *workflow.Task, out map[workflow.DataName]workflow.Value) bool {
	for n, v := range out {
		if s.decls[n] == nil || !slices.Contains(t.Out, n) {
			return false
		}
		if _, err := workflow.CheckValue(s.decls[n], v); err != nil {
			return false
		}
	}
	return true
}

// success is the attempt's success that counts: its earliest.
func (a *Attempt) success() *entry {
	if len(a.successes) == 0 {
		return nil
	}
	return a.successes[0]
}
