package fact

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func (v *Verdict) kind() string { return "verdict" }

func (v *Verdict) Validate(workflow.PartnerID) error {
	switch v.Cause {
	case CauseReported, CauseTimeout, CauseExpired, CauseEvicted, CauseLost:
	default:
		return fmt.Errorf("cause %q, want %s, %s, %s, %s or %s", v.Cause, CauseReported, CauseTimeout, CauseExpired,
			CauseEvicted, CauseLost)
	}
	if n := len(v.Actions); n == 0 || n > MaxActions {
		return fmt.Errorf("it judges %d attempts, want 1 to %d", n, MaxActions)
	}
	for _, a := range v.Actions {
		switch a.Kind {
		case workflow.FailBlock, workflow.FailRelease, workflow.FailContingency:
		default:
			return fmt.Errorf("action %q, want %s, %s or %s", a.Kind, workflow.FailBlock, workflow.FailRelease,
				workflow.FailContingency)
		}
		if err := names(a.Attempt.Slot, a.Task); err != nil {
			return err
		}
		if err := names(a.Partner); err != nil {
			return err
		}
	}
	if v.Office != nil && len(v.Office.Proof) > election.MaxCredentials {
		return fmt.Errorf("credentials of %d bytes, at most %d", len(v.Office.Proof), election.MaxCredentials)
	}
	return Reason(v.Reason)
}

func (v *Verdict) appoints(yield func(workflow.PartnerID) bool) {
	for _, a := range v.Actions {
		if a.Partner != "" && !yield(a.Partner) {
			return
		}
	}
}

func (b *Assign) kind() string { return "assign" }

func (b *Assign) Validate(workflow.PartnerID) error {
	if err := names(b.After.Slot, b.Task); err != nil {
		return err
	}
	return names(b.Partner)
}

func (b *Assign) appoints(yield func(workflow.PartnerID) bool) { yield(b.Partner) }

// Compare orders offices; none is the lowest.
func (o *Office) Compare(p *Office) int {
	switch {
	case o == nil && p == nil:
		return 0
	case o == nil:
		return -1
	case p == nil:
		return 1
	}
	return o.Office.Compare(p.Office)
}

// Verdict says that attempts failed and what that does to the instance. By the
// attempts' holder it is final; by anybody else it is presumed.
type Verdict struct {
	_       struct{} `cbor:",toarray"`
	Cause   Cause
	Reason  string
	Actions []Action
	Office  *Office
}

// Cause says why attempts are held to have failed.
type Cause string

// The causes of a verdict.
const (
	CauseReported Cause = "reported" // the performer said so
	CauseTimeout  Cause = "timeout"
	CauseExpired  Cause = "expired" // its holder did not re-validate within its connectionTime
	CauseEvicted  Cause = "evicted"
	// CauseLost: nobody has the content of a file any more that its task reads, as its holder says.
	CauseLost Cause = "lost"
)

// Action is what a verdict does to one slot (docs/systems.md, Failure).
type Action struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Kind    workflow.FailureAction
	// Task and Partner are the contingency and who performs it; an empty
	// Partner means that nobody could be found yet, and an Assign follows.
	Task    workflow.TaskName
	Partner workflow.PartnerID
}

// Office is under whose authority a coordinator wrote (docs/design.md, Electorate).
type Office struct {
	_ struct{} `cbor:",toarray"`
	election.Office
	// Proof are the author's credentials (election.Credentials). A node that
	// takes the fact in has checked that they prove this office to be its
	// author's.
	Proof []byte
}

// Assign gives a slot a new attempt: a contingency for which the verdict found
// nobody, or a new attempt by order of the responsible user.
type Assign struct {
	_       struct{}  `cbor:",toarray"`
	After   AttemptID // the attempt that it follows
	Verdict ID        // the verdict that asked for it; zero: by order
	Task    workflow.TaskName
	Partner workflow.PartnerID
}

// WriteOff says that nobody is to wait any more for what a partner may have done
// unheard, before superseded work is compensated: it was evicted, or the partner
// that answers for the instance gave it up.
type WriteOff struct {
	_       struct{} `cbor:",toarray"`
	Partner workflow.PartnerID
	// Eviction proves that the partner was evicted (trust.EncodeEviction);
	// empty: by order of the instance's initiator.
	Eviction []byte
}

func (b *WriteOff) kind() string { return "write-off" }

func (b *WriteOff) Validate(workflow.PartnerID) error {
	if n := len(b.Eviction); n > trust.MaxEviction {
		return fmt.Errorf("an eviction of %d bytes, at most %d", n, trust.MaxEviction)
	}
	return names(b.Partner)
}
