package wire

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Report tells the coordinator how an instance stands that the sender takes part
// in: enough for a list. People read it, and nothing is decided by it.
type Report struct {
	_          struct{} `cbor:",toarray"`
	Instance   workflow.InstanceID
	Definition workflow.Hash
	Workflow   workflow.Name
	Version    int
	State      workflow.InstanceState
	Started    int64 // ms since 1970, the initiator's clock
	Ended      int64 // ms since 1970, the clock of whoever ended it; 0: not yet
	// Facts is how many facts the sender has: of two reports, that with more
	// knows more. 0: all that there will be, the instance is settled.
	Facts uint64
	// Done of Tasks have ended; both are 0 where the sender did not look.
	Done, Tasks uint32
	// At are the partners with whom a task is ready or runs, Participants those
	// that take part; MaxReported of each at most.
	At, Participants []workflow.PartnerID
	// Needs are why the instance needs a person, MaxNeeds at most.
	Needs []Need
}

// Need is why an instance needs a person (choreo.Need).
type Need struct {
	_      struct{} `cbor:",toarray"`
	Kind   string
	Number uint32              // of tasks or incidents
	Tasks  []workflow.TaskName // the first of them, MaxNeeds at most
	// Presumed of them are only presumed to have failed: nobody can order anything about those.
	Presumed uint32
}

// Limits of a report.
const (
	MaxReported = 64 // partners in a list
	MaxNeeds    = 8
	maxName     = 256
)

// check holds a report against its limits.
func (r *Report) check() error {
	switch {
	case len(r.Workflow) > maxName || len(r.State) > maxName:
		return fmt.Errorf("a report with a workflow's name of %d bytes and a state of %d, at most %d", len(r.Workflow),
			len(r.State), maxName)
	case len(r.At) > MaxReported || len(r.Participants) > MaxReported:
		return fmt.Errorf("a report that names %d and %d partners, at most %d", len(r.At), len(r.Participants),
			MaxReported)
	case r.Started < 0 || r.Started > MaxWall || r.Ended < 0 || r.Ended > MaxWall:
		return fmt.Errorf("a report of an instance from %d to %d ms since 1970: want the years 1970 to 9999", r.Started,
			r.Ended)
	case len(r.Needs) > MaxNeeds:
		return fmt.Errorf("a report that needs people for %d reasons, at most %d", len(r.Needs), MaxNeeds)
	case r.Done > r.Tasks:
		return fmt.Errorf("a report of %d tasks that ended, of %d", r.Done, r.Tasks)
	}
	for _, n := range r.Needs {
		if err := n.check(); err != nil {
			return err
		}
	}
	for _, list := range [][]workflow.PartnerID{r.At, r.Participants} {
		for _, p := range list {
			if len(p) > maxName {
				return fmt.Errorf("a report with a partner's ID of %d bytes, at most %d", len(p), maxName)
			}
		}
	}
	return nil
}

func (n *Need) check() error {
	if len(n.Kind) > maxName || len(n.Tasks) > MaxNeeds {
		return fmt.Errorf("a need with a kind of %d bytes and %d tasks, at most %d and %d", len(n.Kind), len(n.Tasks),
			maxName, MaxNeeds)
	}
	if n.Presumed > n.Number {
		return fmt.Errorf("a need of %d, of which %d are presumed", n.Number, n.Presumed)
	}
	for _, t := range n.Tasks {
		if len(t) > maxName {
			return fmt.Errorf("a need with a task's name of %d bytes, at most %d", len(t), maxName)
		}
	}
	return nil
}

// Size is about how many bytes a report takes in a frame, rather more.
func (r *Report) Size() int {
	n := 128 + len(r.Workflow) + len(r.State)
	for _, list := range [][]workflow.PartnerID{r.At, r.Participants} {
		for _, p := range list {
			n += 3 + len(p)
		}
	}
	for _, x := range r.Needs {
		n += 21 + len(x.Kind)
		for _, t := range x.Tasks {
			n += 3 + len(t)
		}
	}
	return n
}

// Look asks a participant to show an instance as it knows it.
type Look struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	What     LookWhat
}

// LookWhat says what is to be shown.
type LookWhat uint8

// What can be shown; from LookStates on only to persons (Sight).
const (
	LookInstance LookWhat = iota // where it stands
	LookLog                      // its facts in words
	LookStates                   // its data states
	LookOutlook                  // what a step of recovery would lead to
	LookDeciding                 // who decides about it
)

// check holds a request against what can be shown.
func (l *Look) check() error {
	if l.What > LookLog {
		return fmt.Errorf("a request to show %d, at most %d", l.What, LookLog)
	}
	return nil
}

// EncodeLook writes a request for DecodeLook: a version byte and CBOR, as a frame.
func EncodeLook(l Look) ([]byte, error) { return looks.encode(l) }

// DecodeLook reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeLook(b []byte) (Look, error) { return looks.decode(b) }

// Sight asks a participant to show an instance to a person who decides about it.
type Sight struct {
	_        struct{} `cbor:",toarray"`
	User     string   `people:"the user's ID"`
	Instance workflow.InstanceID
	What     LookWhat
	From     uint32 // of a list: how many entries the person has already
	Step     []byte `people:"the step"` // of LookOutlook: the step, as an order of it says it
}

// check holds a request against what can be shown.
func (x *Sight) check() error {
	if x.What > LookDeciding {
		return fmt.Errorf("a request to show %d, at most %d", x.What, LookDeciding)
	}
	return nil
}

// EncodeSight writes a request for DecodeSight. Its error is a *TooLong where a part is too long.
func EncodeSight(x Sight) ([]byte, error) { return sights.encode(x) }

// DecodeSight reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeSight(b []byte) (Sight, error) { return sights.decode(b) }
