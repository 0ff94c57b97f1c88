package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says what comes of a decision, for the driver to carry out, and what whoever chooses a partner is told of
// the work.

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
	Stop  []fact.AttemptID
	Start []state.Job
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

// wake asks to be woken at a moment (Boot), unless that is to be earlier.
func (x *Effects) wake(at time.Duration) {
	if x.Wake == 0 || at < x.Wake {
		x.Wake = at
	}
}

// Stored is a fact for the store, with its place in the instance's log: places
// are given out in a causal order, from 0.
type Stored struct {
	Place int
	Raw   []byte
	Att   *fact.Attestation
	Own   bool // this node wrote it
	// Open is set where nothing vouches yet for all that is stored up to here: what does comes
	// after it, and the two are made durable together.
	Open bool
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

// Result is how a try ended.
type Result struct {
	Outputs map[workflow.DataName]workflow.Value
	Failed  bool
	Reason  string
	// Lost: it could not run, as nobody has the content of a file any more that its task reads. It has
	// failed, and no other try can help.
	Lost bool
}

// Work is a piece of work of an instance that somebody must be found for.
type Work struct {
	Instance workflow.InstanceID
	Plan     *partition.Plan
	// Mechanism is the allocation mechanism of the instance.
	Mechanism aptitude.Mechanism
	Tasks     []workflow.TaskName // one partner takes them all
	Not       workflow.PartnerID  // the one that failed it: rather another
	Rejected  []workflow.PartnerID
	Only      workflow.PartnerID // nobody else is asked; empty: all are
	// Holder is, of a person's task that can begin, the partner that holds it and seeks
	// somebody who has its role and can be reached now; empty: other work.
	Holder workflow.PartnerID
	// CanWait: it waits on at its holder where nobody is found.
	CanWait bool
	Data    map[workflow.DataName]workflow.Value
	// Performers are, by task, who performs or performed it as far as is known: the person
	// who took it from a worklist, or else the partner that does it or was chosen to.
	Performers map[workflow.TaskName]worklist.User
	// Chance is in [0, 1), for a choice by lot.
	Chance float64
	// Given is what this node gave out of the same instance just before, and nobody was
	// told yet: what new work is weighed against, as well. From one choice of a decision to
	// the next it grows, unless what the first was for could not be recorded.
	Given []Holding
}

// Holding is unfinished work that a partner holds.
type Holding struct {
	Partner workflow.PartnerID
	// Giver chose the partner, or had the last word of it.
	Giver workflow.PartnerID
	Work  partition.Kind
	Time  time.Duration // that is expected to be left
	Ready bool          // it can be done now, or has begun; else it will be ready later
	// Partition is what it is; empty: Task.
	Partition workflow.PartitionName
	Task      workflow.TaskName
}
