package choreo

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
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
	out    Effects
	atOnce int // how many tasks were done in it (instant.go)
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

// Result is how a try ended.
type Result struct {
	Outputs map[workflow.DataName]workflow.Value
	Failed  bool
	Reason  string
	// Lost: it could not run, as nobody has the content of a file any more that its task reads. It has
	// failed, and no other try can help.
	Lost bool
}

// append adds a fact of our own. More heads than one fact takes, or than fit beside
// what is said, go into `seen` facts of ours before it. An error says which limit
// the fact is beyond (choreo/fact/limits.go); then nothing was added, and it is among what
// Decide reports.
func (d *decision) append(b fact.Body) (*log.Entry, error) {
	e, err := d.say(b, d.log.Unseen(d.own))
	if err == nil {
		return e, nil
	}
	if err = d.fits(b); err == nil {
		if err = d.sayHeads(); err == nil {
			e, err = d.say(b, nil)
		}
	}
	if err != nil {
		d.beyond = append(d.beyond, err)
	}
	return e, err
}

// sayHeads names all heads that this node has seen and not named, in as many facts
// as that takes.
func (d *decision) sayHeads() error {
	for heads := d.log.Unseen(d.own); len(heads) > 0; heads = d.log.Unseen(d.own) {
		if _, err := d.say(fact.Body{Seen: &fact.Seen{}}, heads[:min(len(heads), fact.MaxHeadsSeen)]); err != nil {
			return err
		}
	}
	return nil
}

// say adds our next fact, which has seen those heads, or says which limit it is
// beyond.
func (d *decision) say(b fact.Body, seen []fact.Head) (*log.Entry, error) {
	f := d.next(b, seen)
	raw, id, err := f.Encode()
	if err != nil {
		return nil, err
	}
	return d.enter(f, raw, id), nil
}

// fits says which limit a fact of ours would be beyond, heads aside.
func (d *decision) fits(b fact.Body) error {
	one := []fact.Head{d.log.Genesis().Head()} // for a first fact, which must have seen something
	_, _, err := d.next(b, one).Encode()
	return err
}

// next is our next fact, if it has seen those heads.
func (d *decision) next(b fact.Body, seen []fact.Head) *fact.Fact {
	f := &fact.Fact{
		Format: fact.Format, Instance: d.log.Instance(), Chain: d.chain, Seq: 1, Seen: seen, At: wall(d.now.Wall),
		Body: b,
	}
	if d.own != nil {
		f.Seq, f.Prev = d.own.Fact.Seq+1, d.own.ID
	}
	return f
}

// enter puts a fact of ours into the log.
func (d *decision) enter(f *fact.Fact, raw []byte, id fact.ID) *log.Entry {
	e, err := d.log.Insert(f, raw, id, nil)
	if err != nil || e == nil {
		panic(fmt.Sprintf("choreo: our own fact does not fit our own log: %v", err)) // our bug
	}
	d.own = e
	d.unsaved = append(d.unsaved, e)
	d.fold([]*log.Entry{e})
	return e
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

const manySlots = 32 // or partitions and participants
