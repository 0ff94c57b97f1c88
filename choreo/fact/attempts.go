package fact

import (
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/workflow"
)

func (b *ReadyBody) kind() string { return "ready" }

func (b *ReadyBody) Validate(workflow.PartnerID) error { return names(b.Attempt.Slot) }

func (b *Start) kind() string { return "start" }

func (b *Start) Validate(workflow.PartnerID) error {
	if err := try(b.Attempt, b.Try); err != nil {
		return err
	}
	if len(b.Consumed) > MaxCollection {
		return fmt.Errorf("it names %d results that it builds upon, at most %d", len(b.Consumed), MaxCollection)
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

func (b *Success) kind() string { return "success" }

func (b *Success) Validate(workflow.PartnerID) error {
	if err := try(b.Attempt, b.Try); err != nil {
		return err
	}
	return values(b.Outputs)
}

// Done is a start and the success of the same try in one fact: of a task that touches nothing outside,
// which its holder did in the step in which it began. So it costs one fact, and there is no time
// between the two in which it could be lost. It is the body that has both.
type Done Body

func (b *Done) kind() string { return "done" }

func (b *Done) Validate(author workflow.PartnerID) error {
	if b.Start.Attempt != b.Success.Attempt || b.Start.Try != b.Success.Try {
		return fmt.Errorf("it starts try %d of %s and ends try %d of %s: what is said in one fact is about one try",
			b.Start.Try, b.Start.Attempt, b.Success.Try, b.Success.Attempt)
	}
	if err := b.Start.Validate(author); err != nil {
		return err
	}
	return b.Success.Validate(author)
}

func (b *TryFailed) kind() string { return "try-failed" }

func (b *TryFailed) Validate(workflow.PartnerID) error {
	if err := try(b.Attempt, b.Try); err != nil {
		return err
	}
	return Reason(b.Reason)
}

func (b *CalledOff) kind() string { return "called-off" }

func (b *CalledOff) Validate(workflow.PartnerID) error { return names(b.Attempt.Slot) }

// ReadyBody records that a rule about data or age held at the holder, or that
// an emergency trigger fired there.
type ReadyBody struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Trigger bool
}

// Start records that the holder starts a try of an attempt. Consumed names, sorted
// by slot, what results it builds upon where that does not follow from its past
// (choreo/state/converge.go, choreo/state/consumed.go).
type Start struct {
	_        struct{} `cbor:",toarray"`
	Attempt  AttemptID
	Try      int
	Consumed []Consumption
}

// Consumption names what a start built upon: a success, or the verdict that
// released the slot.
type Consumption struct {
	_    struct{} `cbor:",toarray"`
	Slot workflow.TaskName
	Fact ID
}

// Success records that an attempt succeeded, with its results.
type Success struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Try     int
	Outputs map[workflow.DataName]workflow.Value
}

// TryFailed records a failed try that will be tried again in the same attempt.
type TryFailed struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Try     int
	Reason  string
}

// CalledOff records that the holder stopped an attempt that is not needed.
type CalledOff struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
}

// Lease records that the holder has given a try of an attempt to a worker. It changes
// nothing of what counts: only the holder writes the result, and takes it from who has the
// newest lease. It is a fact so that it outlives the holder's process, and so that
// everybody sees who did what; how far a worker is, is none.
type Lease struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Try     int
	Worker  string // as it calls itself, for people
	// At is the partner beside whose node the worker is; empty: the holder.
	At workflow.PartnerID
	// Key is a hash of what the worker has to show. The secret itself is in no fact.
	Key [16]byte
}

func (b *Lease) kind() string { return "lease" }

func (b *Lease) Validate(workflow.PartnerID) error {
	if err := try(b.Attempt, b.Try); err != nil {
		return err
	}
	if err := names(b.At); err != nil {
		return err
	}
	return names(b.Worker)
}
