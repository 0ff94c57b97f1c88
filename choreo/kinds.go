package choreo

import "github.com/mutirao-mesh/mutirao/workflow"

// This file says what makes a kind of fact. All that is particular to one is in the
// methods below, which stand where the state is that it changes: attempts.go,
// verdicts.go, writeoff.go, and here those that change next to nothing. To add a kind:
// a type with these methods, a field of Body, and a line in Body.says.

// statement is what a body says.
type statement interface {
	// kind names it, for people and for counters.
	kind() string
	// validate checks what can be told of it by itself (limits.go).
	validate(author workflow.PartnerID) error
	// enter has it change the state, unless by what its author knew it does not
	// count: then it says why (rights.go).
	enter(s *State, e *entry) (why string)
	// tell owes it to those who are to have it at once (route.go).
	tell(d *decision, e *entry)
}

// says is what the body says; nil: not exactly one thing.
func (b *Body) says() (what statement) {
	n := 0
	for _, x := range []struct {
		statement
		set bool
	}{
		{b.Genesis, b.Genesis != nil}, {b.Ready, b.Ready != nil}, {b.Start, b.Start != nil}, {b.Success, b.Success != nil},
		{b.TryFailed, b.TryFailed != nil}, {b.Verdict, b.Verdict != nil}, {b.Assign, b.Assign != nil},
		{b.CalledOff, b.CalledOff != nil}, {b.Cancel, b.Cancel != nil}, {b.Seen, b.Seen != nil}, {b.WriteOff, b.WriteOff != nil},
	} {
		if x.set {
			what = x.statement
			n++
		}
	}
	if n != 1 {
		return nil
	}
	return what
}

// Kind names what a body says, for people and for counters; "" means that it does not
// say exactly one thing.
func (b *Body) Kind() string {
	if what := b.says(); what != nil {
		return what.kind()
	}
	return ""
}

func (g *Genesis) kind() string                      { return "genesis" }
func (g *Genesis) enter(*State, *entry) (why string) { return "" } // all begins with it (State.reset)
func (g *Genesis) tell(d *decision, e *entry)        { d.oweAll(e) }

func (x *Seen) kind() string                      { return "seen" }
func (x *Seen) enter(*State, *entry) (why string) { return "" }
func (x *Seen) tell(d *decision, e *entry)        { d.oweAll(e) }

func (c *Cancel) kind() string { return "cancel" }

func (c *Cancel) enter(s *State, e *entry) (why string) {
	if s.cancel == nil {
		for _, sl := range s.slots {
			s.touch(sl)
		}
	}
	s.cancel, s.cancels = earlier(s.cancel, e), firstOf(s.cancels, e)
	return ""
}

func (c *Cancel) tell(d *decision, e *entry) { d.oweAll(e) }
