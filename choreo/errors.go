package choreo

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says how a refusal reads of what cannot be done to a task, or to an instance, now.

var errUnheeded = fmt.Errorf("%w: what this node says would not count: it takes no part in the instance, or its store was rolled back and it has not taken a new incarnation yet", state.ErrNotNow)

// called is what people read a task as: its name, with its label.
func (m *Machine) called(t workflow.TaskName) string { return m.state.Definition().WithLabel(t) }

// CalledItem is an item of people's work as people call it: by its task and, of what undoes another, by that as well.
func (m *Machine) CalledItem(i worklist.Item) string {
	a := m.state.Attempts()[fact.AttemptIDOf(i)]
	switch {
	case a == nil:
		return m.called(i.Slot)
	case a.Undoes == nil:
		return m.called(a.Task.Name)
	}
	return m.called(a.Task.Name) + ", which undoes " + m.called(a.Undoes.Task.Name)
}

// noTask says that there is no such task, and which may be meant: people read labels.
func (m *Machine) noTask(t workflow.TaskName) error {
	if meant := m.state.Definition().MeantTask(string(t)); meant != "" {
		return fmt.Errorf("%w: %s: did you mean %s?", state.ErrNoTask, t, meant)
	}
	return fmt.Errorf("%w: %s", state.ErrNoTask, t)
}

// Elsewhere says which partner holds a task. It is an ErrElsewhere.
type Elsewhere struct {
	Task    string // as people read it
	Partner workflow.PartnerID
}

func (e *Elsewhere) Error() string {
	return fmt.Sprintf("%s is held by %s", e.Task, e.Partner.Short())
}

// Is makes errors.Is(err, ErrElsewhere) hold.
func (e *Elsewhere) Is(target error) bool { return target == state.ErrElsewhere }

// NoPerson says that the holder of a task does not know whom it is to be passed to. It is an ErrNotNow.
type NoPerson struct {
	Task   string // as people read it
	Person worklist.User
}

func (e *NoPerson) Error() string { return e.Calling(string(e.Person)) }

// Calling says it with what people call the person.
func (e *NoPerson) Calling(person string) string {
	return fmt.Sprintf("%v: the partner that holds %s knows no such person as %s, or it was removed", state.ErrNotNow,
		e.Task, person)
}

// Is makes errors.Is(err, ErrNotNow) hold.
func (e *NoPerson) Is(target error) bool { return target == state.ErrNotNow }

func kindOf(t *workflow.Task) string {
	if t.Type == workflow.SubWorkflow {
		return "a workflow of its own"
	}
	return "automatic"
}

func byWhat(t *workflow.Task) string {
	if t.Type == workflow.SubWorkflow {
		return kindOf(t) + ", its instance"
	}
	return "automatic, its application"
}

// goesOnIn reports whether an instance that stands so has not ended: it goes on, or waits for what cannot come.
func goesOnIn(s workflow.InstanceState) bool {
	return s == workflow.InstanceRunning || s == workflow.InstanceBlocked
}

// Cancellable reports whether the instance can be cancelled: it goes on, waits for what cannot come, or has failed only
// as others presume of a task that its holder may go on with.
func (m *Machine) Cancellable() bool {
	switch s := m.state.Overall(); {
	case goesOnIn(s):
		return true
	case s != workflow.InstanceFailed:
		return false
	}
	for sl := range m.state.Failures() {
		if m.state.PresumedBy(sl.Current) != nil && m.state.Wanted(sl.Current) {
			return true
		}
	}
	return false
}
