package workflow

// State is where a task stands in an instance. A task has exactly one at a
// time; SUCCEEDED, FAILED, ABORTED, BLOCKED and SKIPPED are ends, although a
// block that was only presumed may be lifted (see package choreo).
type State string

// The states of a task (docs/language.md, A task; docs/systems.md, Process model).
const (
	NotReady  State = "NOT_READY" // its rule is undecided
	Ready     State = "READY"     // its rule holds, nobody has started it
	Running   State = "RUNNING"   // its holder has started it
	Succeeded State = "SUCCEEDED"
	Failed    State = "FAILED"
	Aborted   State = "ABORTED" // called off or cancelled
	Blocked   State = "BLOCKED" // its rule became impossible through a failure
	Skipped   State = "SKIPPED" // its rule became impossible without a failure
)

// Done reports whether nothing more is expected of a task in this state.
func (s State) Done() bool {
	switch s {
	case Succeeded, Failed, Aborted, Blocked, Skipped:
		return true
	}
	return false
}

// InstanceState is where a whole instance stands.
type InstanceState string

// The states of an instance (docs/language.md, final).
const (
	InstanceRunning     InstanceState = "running"
	InstanceSucceeded   InstanceState = "succeeded"
	InstanceFailed      InstanceState = "failed"
	InstanceBlocked     InstanceState = "blocked"
	InstanceCancelled   InstanceState = "cancelled"
	InstanceInterrupted InstanceState = "interrupted"
)

// Transition is what a rule may ask of a task: did it ever become this?
type Transition string

// The transitions that a rule may name (docs/language.md, when).
const (
	BecameReady     Transition = "ready"
	BecameRunning   Transition = "running"
	BecameSucceeded Transition = "succeeded"
	BecameFailed    Transition = "failed"
)
