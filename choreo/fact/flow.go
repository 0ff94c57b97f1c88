package fact

import (
	"errors"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Fire records that the holder of a flow begins transitions that a state fired, or puts them up for whoever takes them.
type Fire struct {
	_ struct{} `cbor:",toarray"`
	// Attempt is the attempt at the flow by which its author holds it.
	Attempt AttemptID
	// State is the fact that brought the state: the genesis, or the success of a transition.
	State ID
	// Tasks are the triggers, sorted. Each transition is named by this fact and its trigger.
	Tasks []workflow.TaskName
	// Undoes is the success of a transition that is compensated; zero: none is. Then there is
	// one task, its trigger.
	Undoes ID
	// ForWorkers are those of Tasks that workers do at the holder: they are put up, and begin with the lease of the worker
	// that takes one first. What people do waits for them in any case, and all else has begun with this fact.
	ForWorkers []workflow.TaskName
}

func (b *Fire) kind() string { return "fire" }

func (b *Fire) Validate(workflow.PartnerID) error {
	if err := names(b.Attempt.Slot); err != nil {
		return err
	}
	if n := len(b.Tasks); n == 0 || n > MaxCollection || n > 1 && !b.Undoes.IsZero() {
		return fmt.Errorf("it begins %d transitions, want 1 to %d, and 1 to compensate", n, MaxCollection)
	}
	for i, t := range b.Tasks {
		if i > 0 && b.Tasks[i-1] >= t {
			return errors.New("the transitions that it begins are not sorted, or named twice")
		}
	}
	at := 0
	for _, t := range b.ForWorkers {
		for at < len(b.Tasks) && b.Tasks[at] < t {
			at++
		}
		if at == len(b.Tasks) || b.Tasks[at] != t {
			return errors.New("the transitions that it has workers do are not sorted, named twice, or not among those that it begins")
		}
		at++
	}
	return names(b.Tasks...)
}

// Aged records that an instance has come to an age at which a condition of its flow may come out
// otherwise (instance.age). The holder says so by its own clock, from when it knows of the instance;
// nobody else may. That it is true cannot be proved (docs/security.md).
//
// Without an age it records that the holder goes by the amendments that it knows from here on.
type Aged struct {
	_ struct{} `cbor:",toarray"`
	// Attempt is the attempt at the flow by which its author holds it.
	Attempt AttemptID
	Age     time.Duration
}

func (b *Aged) kind() string { return "aged" }

func (b *Aged) Validate(workflow.PartnerID) error {
	if b.Age < 0 {
		return fmt.Errorf("an age of %d ns, want 0 or more", int64(b.Age))
	}
	return names(b.Attempt.Slot)
}
