package choreo

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what deciding is done with. What only reads is a method of State or
// Machine or, where it asks for the time or for partners, of outlook: it can neither add
// a fact nor have anything done. What decides is a method of decision.

// outlook is an instance as this node sees it at a moment, among the partners as they
// are then.
type outlook struct {
	*Machine
	now      Moment
	partners Partners // nil: it is not asked about partners
}

// decision is an outlook upon which this node acts: it adds facts of its own, and gathers
// what is to be done.
type decision struct {
	outlook
	out Effects
}

// looking begins to look.
func (m *Machine) looking(now Moment, partners Partners) outlook { return outlook{m, now, partners} }

// deciding begins to decide.
func (m *Machine) deciding(now Moment, partners Partners) *decision {
	d := m.spare
	if m.spare = nil; d == nil {
		d = &decision{}
	}
	d.outlook = m.looking(now, partners)
	return d
}

// reuse ends a decision, which nobody may use any more. The next one is made in its place:
// there are two for each task.
func (m *Machine) reuse(d *decision) {
	*d = decision{}
	m.spare = d
}

// Effects are what a driver is to do, in the order of its fields: nothing of a
// later field before what stands in an earlier one is done.
type Effects struct {
	// Persist must be durable before anything else is done or said.
	Persist []Stored
	// Made are data sets that tasks done here made, for the store with Persist.
	Made []Made
	// Tell are the peers that are owed something: send each its Outgoing, or say that it is
	// away (Machine.Away).
	Tell []workflow.PartnerID
	// Ask are peers to be asked, if they can be reached, what they have. Others are away.
	Ask []workflow.PartnerID
	// Stop and Start are tasks to call off and to run here.
	Stop  []AttemptID
	Start []Job
	// Given is work that was given out, as Given would say: what new work is weighed
	// against. It is said to nobody, so it counts at once; if what gave it out cannot be
	// made durable, it was never given.
	Given []Holding
	// Waits, unless nil, replace what is stored of the instance's waits; they
	// are durable with Persist.
	Waits *waits.Stored
	// Beyond are facts that could not be recorded since the last decision, as they are
	// beyond a limit. What they were about fails, or stays as it is: people must know.
	Beyond []error
	// Wake is the next moment (as Moment.Boot) at which Decide should be called
	// again even if nothing happens; 0: none.
	Wake time.Duration
}

// Stored is a fact for the store, with its place in the instance's log: places
// are given out in a causal order, from 0.
type Stored struct {
	Place int
	Raw   []byte
	Att   *Attestation
	Own   bool // this node wrote it
	// Open is set where nothing vouches yet for all that is stored up to here: what does comes
	// after it, and the two are made durable together.
	Open bool
}

// Job is a try of an automatic task.
type Job struct {
	Attempt AttemptID
	Try     int
	Task    *workflow.Task
	Input   map[workflow.DataName]workflow.Value
	Lease   *Lease // a worker's that has it already; nil: nobody's
	// Key names the job in place of the attempt where it is the same at whoever begins it: the
	// state that fired a transition, and its trigger. Zero: the attempt does.
	Key AttemptID
}

// Made is a data set that a task made which this node did.
type Made struct {
	Task   *workflow.Task
	Values map[workflow.DataName]workflow.Value // what it wrote
	From   map[workflow.DataName]workflow.Value // what it was made from, as far as that has values
	At     int64                                // by this node's clock, ms since 1970
	// Unsure is data of which it is not certain that the task read what From says; empty: none.
	Unsure workflow.DataName
}

// wake asks to be woken at a moment (Boot), unless that is to be earlier.
func (x *Effects) wake(at time.Duration) {
	if x.Wake == 0 || at < x.Wake {
		x.Wake = at
	}
}

// ask has a peer asked what it has.
func (d *decision) ask(p workflow.PartnerID) {
	if len(d.out.Ask) >= manySlots || !slices.Contains(d.out.Ask, p) { // of many one may be named twice
		d.out.Ask = append(d.out.Ask, p)
	}
}
