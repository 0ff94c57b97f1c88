package state

import (
	"container/heap"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Slot is what a successor waits for: a task, filled by attempts (docs/design.md, Convergence).
type Slot struct {
	Task     *workflow.Task
	Attempts []*Attempt // by depth, then the assigning fact
	// Current is the attempt that verdicts have left in charge.
	Current *Attempt
	// Outcome is the verdict that ended the last attempt without another to
	// follow; nil while there is hope.
	Outcome *Ruling
	// Pending is a verdict that asks for a contingency that nobody could take yet.
	Pending *Ruling
	// Pick is the attempt whose success is the slot's value; nil: none yet.
	Pick *Attempt
	// State is where the slot's task stands.
	State workflow.State
	// Held: several attempts live or wait for others; nothing may build upon it now.
	Held bool
	// Duplicated: both sides of a split built upon a success of their own.
	Duplicated bool
	// Dropped: the task is not needed, as its data set exists. Spared: its rule
	// held, so that it counts as succeeded.
	Spared  bool
	Dropped *fact.Dropped

	Place      int     // in rule order
	Mentions   []*Slot // that its rule mentions, by name
	Dependents []*Slot // whose rules mention it
	rule       *Clause // nil: it has none
	answers    []answer
	asks       []*DataItem // that its rule's data terms are about
	Writes     []*DataItem // that it may write
	Shown      Shown
	// mayHold and mayEnd are what the evidence that was asked last says of its rule.
	mayHold, mayEnd ruleWas
	weighs          weight
	HasData         bool // its rule has data terms
	open            bool // it is not done
	queued          bool
	moved           bool // since its machine last looked
	Due             bool // it waits for its machine to look at it (choreo/look.go)
	awaits          bool // it waits to be judged (converge.go)
	barred          bool // it has not begun, and may not: a strict constraint is broken, or the data are final
}

// Attempt is one assignment of a slot to a partner.
type Attempt struct {
	ID      fact.AttemptID
	Slot    *Slot
	Task    *workflow.Task // what is performed: the slot's task or a contingency
	Partner workflow.PartnerID
	Depth   int  // 1, 2, …: its number in the chain
	Skips   bool // an order began it, to have the task left out
	toUndo  bool // an order has it compensated, though it counts
	// replaced is how many verdicts led to it: an attempt that was passed on
	// inherits the number of the one before.
	replaced int

	Assigned  *log.Entry
	after     *Attempt     // the one that it follows; nil: the slot's first
	by        *Ruling      // because of which; nil: that one's holder passed it on
	Weighed   *log.Entry   // the first offer of it that says how all of its role were weighed
	Ready     *log.Entry   // the earliest
	readied   []*log.Entry // the earliest of each strand
	Start     *log.Entry   // likewise
	Starts    []*log.Entry
	Base      *log.Entry // the start that says what the attempt built upon
	Tries     int        // the newest try's number
	Successes []*log.Entry
	Failed    *log.Entry // the newest failed try
	Child     *log.Entry // the newest word of which instance does it
	lease     *log.Entry // the newest by which a worker has a try
	Off       *log.Entry // the earliest
	Rulings   []*Ruling
	Kept      *log.Entry // its holder was chosen to perform it
	Users     []*Attempt // of later slots, whose start built upon a success of this one
	claimed   claims     // by users

	Undo   *Attempt // its compensation; nil: none is defined, or no success is known
	Undoes *Attempt // of a compensation: what it undoes
	Fired  *Fired   // of a transition of the flow; nil: it is none

	// Noticed is when (Boot) this node first knew that it could begin; for people. blocked: what it knew is that
	// it could not, but for what may still come. Dated: that is when its deadline begins.
	Noticed time.Duration
	Dated   bool
	Blocked bool

	Stands    Stands
	claims    Stands     // what it stands up for of what it was built upon, as its users know
	overruled bool       // its holder had given it up (converge.go, rule 7)
	Wrote     *log.Entry // the success whose outputs are among the current data's writes

	*turns
}

// turns are what happens to few attempts: the others share one, which is empty.
type turns struct {
	offs    []*log.Entry // the earliest by which it was called off, of each strand
	Assigns []*Attempt   // attempts that an Assign put after this one
	passed  []*Attempt   // likewise, by which its holder passed it on
	// Blame are those who denied what they knew, for which its success goes behind
	// all others (converge.go, rule 7).
	Blame  []workflow.PartnerID
	blamed []workflow.PartnerID // of these without its holder
	// denials are kept of those who built upon it while something stands against it; nil:
	// nobody asked since that changed. userAt is where each is among the users, once one
	// was taken out.
	denials *denials
	userAt  map[*Attempt]int
}

// noTurns is what attempts have to which nothing of that happened. It is not written.
var noTurns = &turns{}

// turning are an attempt's own turns, to be written.
func (a *Attempt) turning() *turns {
	if a.turns == noTurns {
		a.turns = &turns{}
	}
	return a.turns
}

// Fired says what an attempt at a transition is.
type Fired struct {
	Flow   *Attempt // the attempt at the flow whose holder began it
	state  fact.ID  // that fired it
	undoes fact.ID  // the success that it compensates; zero: none
}

// Ruling is one action of a counted verdict.
type Ruling struct {
	At     *log.Entry
	Action fact.Action
	Final  bool     // by the attempt's own holder
	Void   bool     // its author knew of the attempt's success
	Next   *Attempt // the attempt that the verdict itself assigned
}

// Stands says whether a success is built upon, or the slot's choice.
type Stands uint8

const (
	Superseded Stands = iota
	HeldBack
	Standing
)

// claims counts the consumers of a success by what they claim.
type claims [Standing + 1]int32

// best is the best claim (rule 2).
func (c *claims) best() Stands {
	for _, s := range []Stands{Standing, HeldBack} {
		if c[s] > 0 {
			return s
		}
	}
	return Superseded
}

// DataItem is a data item: who may write it, who asks for it, and what was written.
type DataItem struct {
	decl    *workflow.DataDecl
	writers map[*Slot]bool
	Askers  []*Slot // whose rules have terms about it
	open    int     // writers that are not done
	// holders counts the askers by their holders.
	holders    map[workflow.PartnerID]int
	conditions []*condition
	writes     []*writes
}

// writes are the standing writes to one item in one strand, by number: each knew
// those before it.
type writes struct {
	strand *log.Strand
	by     []*log.Entry
}

// condition is a term about data, one for all rules that have it.
type condition struct {
	Expr   *workflow.Expr
	items  []*DataItem
	holds  bool
	terms  []*Clause
	strict int // strict constraints that ask for it (constraints.go)
}

// Clause is a part of a slot's rule: a term, or an "and" or "or" of clauses.
type Clause struct {
	Of    *Slot
	up    *Clause // nil: it is the whole rule
	op    workflow.Op
	not   bool // of a term about a task
	args  workflow.Tally
	comes workflow.Finding
}

// filled says of a task that is only a contingency in which slot it stands, though by the definition of now it cannot.
type filled struct {
	task workflow.TaskName
	slot *Slot
}

// asksRound is a question whether a slot comes round to a task that stands in it, by a definition.
type asksRound struct {
	def  *workflow.Definition
	slot *Slot
	task workflow.TaskName
}

// Question is what rules ask about a task: whether its slot has made a
// transition or, of a task that is only a contingency, any slot that it may fill.
type Question struct {
	transition workflow.Transition
	task       workflow.TaskName
	own        bool           // the task has a slot of its own
	slots      workflow.Tally // of a task that is only a contingency: what holds in each
	comes      workflow.Finding
	Terms      []*Clause
}

// answer is what a question comes to in one slot.
type answer struct {
	to    *Question
	comes workflow.Finding
}

// TransitionOf is what a question is about.
type TransitionOf struct {
	Transition workflow.Transition
	Task       workflow.TaskName
}

// weight is what a slot counts for when people ask how the instance stands.
type weight struct{ going, pending, blocked, failed, underWay, forData bool }

// ruleWas is what one evidence says of a slot's rule: whether it may have been so.
// While that is being found out, it may not.
type ruleWas struct {
	by int // the evidence; 0: none was asked
	is bool
}

// Shown is what one slot counts for at the desk.
type Shown struct {
	Todo, Clocked, Others, Undoing bool
	AtWork, Left, Active           bool
	Holding, Apart, Own, Begun     bool
	Done                           bool               // it waits for nothing any more
	Answers, Works                 bool               // see partDesk
	Unjudged                       workflow.PartnerID // who holds what nobody judged; empty: no such thing
	Expected                       time.Duration
	Waits                          time.Duration
}

// denials say which of those who built upon an attempt deny what stands against it, and so
// do not hold it up. Each is asked once, and again only when its answer may have changed: so
// what one of them does costs the same however many there are.
type denials struct {
	of      map[*Attempt]denial // of users that may deny it
	asks    []*Attempt          // those that are still to be asked
	claimed claims              // what those that deny it claim
}

// denial is what is known of a user; none of one that cannot deny anything.
type denial uint8

// Judging are the slots that wait to be judged, the last in rule order first.
type Judging []*Slot

func (q *Judging) add(sl *Slot) {
	if !sl.awaits {
		sl.awaits = true
		heap.Push(q, sl)
	}
}

func (q Judging) Len() int { return len(q) }

func (q Judging) Less(i, j int) bool { return q[i].Place > q[j].Place }

func (q Judging) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *Judging) Push(sl any) { *q = append(*q, sl.(*Slot)) }

func (q *Judging) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// Success is the attempt's success that counts: its earliest.
func (a *Attempt) Success() *log.Entry {
	if len(a.Successes) == 0 {
		return nil
	}
	return a.Successes[0]
}

// EndedByHolder reports whether the holder itself has given the attempt up.
func (a *Attempt) EndedByHolder() bool {
	return slices.ContainsFunc(a.Rulings, func(r *Ruling) bool { return r.Final && !r.Void })
}

// Try is the number of the newest try of the attempt.
func (a *Attempt) Try() int { return a.Tries }

// undone is what the success that a compensation undoes had written.
func (a *Attempt) undone() map[workflow.DataName]workflow.Value {
	if a.Undoes == nil {
		return nil
	}
	return a.Undoes.Success().Gave()
}

// leased is the newest lease of an attempt's newest try; nil: nobody has it.
func (a *Attempt) leased() *fact.Lease {
	if a.lease == nil || a.lease.Fact.Body.Lease.Try != a.Try() {
		return nil
	}
	return a.lease.Fact.Body.Lease
}

// ChildInstance is the instance that does the attempt, as far as its holder told last; zero: none.
func (a *Attempt) ChildInstance() workflow.InstanceID {
	if a.Child == nil {
		return workflow.InstanceID{}
	}
	return a.Child.Fact.Body.Child.Instance
}

// Beside reports whether an attempt fills no slot: a compensation, or a transition.
func (a *Attempt) Beside() bool { return a.Undoes != nil || a.Fired != nil }

// Transition reports whether an attempt is one at a transition that a state fired.
func (a *Attempt) Transition() bool { return a.Fired != nil && a.Undoes == nil }

// Runs reports whether an attempt was started and has not ended, as far as is
// known.
func (a *Attempt) Runs() bool {
	return a.Start != nil && a.Off == nil && !a.ended()
}

// ended reports whether a compensation has ended, well or not.
func (a *Attempt) ended() bool { return a.Success() != nil || a.EndedByHolder() }

// passedOn reports whether the attempt came to its holder from the one before.
func (a *Attempt) passedOn() bool {
	b := a.Assigned.Fact.Body.Assign
	return b != nil && b.Verdict.IsZero()
}

// Begun reports whether the slot was recorded as ready, or started, in one of its
// attempts: a contingency then goes on at once. One that stands in for a task
// that was still waiting, as in a partition that failed as a whole, waits for
// what that task waited for (docs/systems.md, Failure: figure 22).
func (sl *Slot) Begun() bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.Ready != nil || a.Start != nil })
}

// waits reports whether the slot's task has a time-to-wait.
func (sl *Slot) waits() bool { return sl != nil && sl.Task.TimeToWait > 0 }
