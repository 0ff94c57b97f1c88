package state

import (
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// State is what a set of facts means. It is a function of the set: the order
// of insertion, duplicates, clocks and partner lists have no part in it.
type State struct {
	def  *workflow.Definition
	plan *partition.Plan
	// original is the definition with which the instance was started; def is that with the amendments that
	// count (amend.go). fittings are what those say that were looked at, whether or not they count.
	original *workflow.Definition
	amends   []*log.Entry // that count
	formedBy []*log.Entry // those by which def was made
	fittings map[fact.ID]fitting
	edition  edition      // what the facts are judged by (amend.go)
	told     []*log.Entry // facts of this fold that were counted among those that do not count
	log      *log.Log

	trust     Trust // nil: nobody's credentials prove anything
	evidences int   // how often it was asked what an author knew (rights.go)
	readings  map[readingOf]reading
	genesis   *fact.Genesis
	rank      map[workflow.PartnerID]int // place in the succession
	slots     []*Slot                    // in rule order
	bySlot    map[workflow.TaskName]*Slot
	patient   []*Slot // with a time-to-wait
	holder    map[workflow.PartitionName]workflow.PartnerID
	attempts  map[fact.AttemptID]*Attempt
	bySucc    map[fact.ID]*Attempt
	joined    map[workflow.PartnerID][]*log.Entry // who became a participant, through what; the earliest first
	// participants are all of these, in order, as somebody last asked for them; unsorted:
	// others took part since. newcomers are those, until the machine asks for them (choreo/away.go).
	participants []workflow.PartnerID
	unsorted     bool
	newcomers    []workflow.PartnerID
	cancel       *log.Entry   // the earliest
	Cancels      []*log.Entry // the earliest of each strand
	offices      []*log.Entry // the first counted verdict in each office, of each strand
	// writtenOff are partners for whom nobody waits before what lost is undone.
	writtenOff map[workflow.PartnerID]*log.Entry
	flow       *FlowWork // of an instance that is driven by its data (flow.go); nil: it is not
	// peoples is what is known of people's work (claims.go).
	peoples People
	// Bound: something was held against an author that was certain to have counted for it.
	Bound bool
	// contested: some slot has several attempts, or waits for somebody to take the next.
	contested bool
	// credentials are the facts by which partners showed theirs.
	credentials map[workflow.PartnerID][]*log.Entry
	// former are those who took part until a chain proved to be forked, through what; the
	// earliest.
	former map[workflow.PartnerID]*log.Entry
	// refused counts facts that do not count, by reason.
	refused map[string]int
	// uncountedOf is how many facts that do not count came since that was last asked
	// for, by author: without those of forked chains, and of authors that were brought
	// in by one.
	uncountedOf map[workflow.PartnerID]int
	// refusals are those of facts that do not count though their chain does.
	refusals map[refusal]refusedFacts

	decls     map[workflow.DataName]*workflow.DataDecl
	items     map[workflow.DataName]*DataItem
	data      map[workflow.DataName]Written
	values    map[workflow.DataName]workflow.Value // of data; nobody else changes it
	rewritten int                                  // how often one of them changed
	conflicts map[workflow.DataName]bool
	givers    map[FileGiven][]workflow.PartnerID // besides the initiator's
	// a file among the data is another, or none, since FilesToRead was asked
	refiled    bool
	questions  map[TransitionOf]*Question
	conditions map[string]*condition // by their one spelling
	// constraints are those over data, broken how many strict ones the data break, and final the
	// condition that ends the instance; nil: none does (constraints.go).
	constraints []constraint
	broken      int
	final       *condition
	fills       map[workflow.TaskName][]*Slot

	// going counts the slots of which more is expected, pending those that wait for a
	// partner that takes a contingency, blocked those that are; failures are those
	// that failed. underWay counts those that may come to change the data, forData
	// those that wait for data. end is how it all ended, as far as known.
	going, pending, blocked, underWay, forData int
	failures                                   map[*Slot]bool
	end                                        workflow.InstanceState

	// cuts is how many of the log's had been made, frontier what the facts that
	// were applied knew. Of a log without forks frontier is not kept.
	cuts     int
	frontier log.Vector

	// moved are the slots of which something changed since the machine last looked
	// (choreo/desk.go), made counts how often all slots were made again.
	moved []*Slot
	made  int
	dirty []*Slot
	// judging is of an earlier conclude, for its array; blank and unasked are clauses and questions to come.
	judging Judging
	blank   []Clause
	unasked []Question
	// doubts are what depends on who knew of a fact, in the order in which that was found;
	// doubted says the same of each. judged is the slot that is judged now, user the attempt
	// of which it is asked whether it denies what stands against another (forget.go).
	doubts  map[*log.Entry][]doubt
	doubted map[doubtOn]bool
	Judged  *Slot
	user    *Attempt
	// Cyclic: tasks wait for data that they would write for each other. lifted:
	// something that was decided about rules and states is not so any more.
	Cyclic, lifted bool
	// idle: nothing is ready, running or armed, so what is undecided about data
	// stays as it is and counts as impossible. Only where cyclic.
	idle bool
}

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
	Due             bool // it waits for its machine to look at it (choreo/desk.go)
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
	// it could not, but for what may still come.
	Noticed time.Duration
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

// Stands says whether a success is built upon, or the slot's choice.
type Stands uint8

const (
	Superseded Stands = iota
	HeldBack
	Standing
)

// SlotsOf are the slots that a task may fill: its own, or for a task that is
// only a contingency those of the tasks that it stands in for.
func (s *State) SlotsOf(t workflow.TaskName) []*Slot {
	if sl := s.bySlot[t]; sl != nil {
		return s.slots[sl.Place : sl.Place+1 : sl.Place+1]
	}
	return s.fills[t]
}

// touch has the slot's state worked out again, and before settle also who is in
// charge of it and what of it counts.
func (s *State) touch(sl *Slot) {
	if !sl.queued {
		sl.queued = true
		s.dirty = append(s.dirty, sl)
	}
}

// refusal is whose facts do not count, and why.
type refusal struct {
	by  workflow.PartnerID
	why string
}

type refusedFacts struct {
	number int
	first  *log.Entry
}

func earlier(a, b *log.Entry) *log.Entry {
	if a == nil || log.ByTime(b, a) < 0 {
		return b
	}
	return a
}

// firstOf adds to facts of one kind, of each strand the earliest. What an author knew of
// them is asked of all: the earliest of all may be one of which it did not know.
func firstOf(es []*log.Entry, e *log.Entry) []*log.Entry {
	if slices.ContainsFunc(es, func(o *log.Entry) bool { return o.Strand == e.Strand }) {
		return es
	}
	return append(es, e)
}

func newer(a, b *log.Entry) *log.Entry {
	if a == nil || log.ByTime(b, a) > 0 {
		return b
	}
	return a
}

// HasMoved reports whether EachMoved has slots to go through.
func (s *State) HasMoved() bool { return len(s.moved) > 0 }

// EachMoved goes through the slots of which something changed since it was last called.
func (s *State) EachMoved(look func(*Slot)) {
	for _, sl := range s.moved {
		s.log.Steps++
		sl.moved = false
		look(sl)
	}
	s.moved = s.moved[:0]
}

// ItemOf is the item of an attempt, for those who work on it.
func ItemOf(id fact.AttemptID) worklist.Item {
	return worklist.Item{Assigned: worklist.ID(id.Fact), Slot: id.Slot}
}

// People is what is known of people's work in an instance. It is empty in most: then
// it takes no memory (State.Work).
type People struct {
	Board *worklist.Board // nil: nothing was claimed, or asked for
	// Spoken are the facts in which a word was written down, by what was signed, one of each strand.
	Spoken map[[sha256.Size]byte][]*log.Entry
	// Of are the claims of an attempt; done, of each strand, the first that closed it with a result
	// of a person who shows the task's role.
	Of   map[ClaimsOf][]*log.Entry
	done map[fact.AttemptID][]*log.Entry
	// unheard are claims of which the board does not know yet since when they wait; closed are attempts
	// that this node may have to end, as their items were closed.
	unheard []*log.Entry
	closed  []fact.AttemptID
	// Idled is what words that ended nothing take (idled.go).
	Idled map[Idler]Idled
	// passed are the claims by which an item was passed to a role (passing.go), DueTo those by which one passed
	// to the responsible user as its deadline was near.
	passed, DueTo map[fact.AttemptID][]*log.Entry
	// reserved are the claims by which an attempt was given units, Keeps those by which a partition's resources
	// were taken over, in the order of facts (resources.go).
	reserved map[fact.AttemptID][]*log.Entry
	Keeps    map[workflow.PartitionName][]*log.Entry
}

// ClaimsOf are the claims of an attempt that people said, or that its holder said of itself. Without an
// attempt: those about the instance; changes of policy among them, which shall not keep out any other; and
// what a partner said of whom it offers items to.
type ClaimsOf struct {
	Attempt fact.AttemptID
	People  bool
	notify  bool
	amend   bool
	offers  workflow.PartnerID
}

// constraint is a rule over data, with what it comes to.
type constraint struct {
	name   string
	strict bool
	*condition
}

// claims counts the consumers of a success by what they claim.
type claims [Standing + 1]int32

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

// Written is the current value of a data item, and the success that wrote it; nil: the genesis or a default.
type Written struct {
	Value workflow.Value
	By    *log.Entry
}

// Job is a try of an automatic task.
type Job struct {
	Attempt fact.AttemptID
	Try     int
	Task    *workflow.Task
	Input   map[workflow.DataName]workflow.Value
	Lease   *fact.Lease // a worker's that has it already; nil: nobody's
	// Key names the job in place of the attempt where it is the same at whoever begins it: the
	// state that fired a transition, and its trigger. Zero: the attempt does.
	Key fact.AttemptID
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

// FileGiven is a file that a data item had.
type FileGiven struct {
	Item workflow.DataName
	File string // workflow.File
}

// ShortName is how a fact is called where people compare states.
func ShortName(e *log.Entry) string {
	if e == nil {
		return "none"
	}
	return e.ID.Short()
}

// Fired says what an attempt at a transition is.
type Fired struct {
	Flow   *Attempt // the attempt at the flow whose holder began it
	state  fact.ID  // that fired it
	undoes fact.ID  // the success that it compensates; zero: none
}

// FlowWork is what is known of an instance's data-state flow.
type FlowWork struct {
	first *dataflow.Flow // by which it began (amend.go)
	Slot  *Slot
	// said are the records by the attempt at the flow of which they are, in the order in which
	// they came.
	said map[*Attempt][]*log.Entry
	// fresh are those that came since the line was last looked at.
	fresh []*log.Entry
	Line  *Line
	// Latest is the last attempt at each transition that the line has.
	Latest map[workflow.TaskName]*Attempt
	// lost are the transitions that succeeded, are not in the line and have a compensation.
	lost map[*Attempt]bool
	// people are transitions that people do, of which the board of claims may not know that they are over.
	people map[*Attempt]bool
}

// Line is the history that counts.
type Line struct {
	Of    *Attempt   // the last attempt at the flow that started; nil: none
	start *log.Entry // its start
	Board *dataflow.Board
	last  *log.Entry // nil: it has no record
	has   map[*log.Entry]bool
	why   map[*log.Entry]string // why a record of it changes nothing
}

// doubt is what depends on who knew of a fact: how a slot is judged or, if a user is named,
// whether that one denies what stands against the slot's attempt on which it built.
type doubt struct {
	slot *Slot
	user *Attempt
}

type doubtOn struct {
	of *log.Entry
	doubt
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

// Idler is a person at a holder; without a person: all, or those who decide about the instance.
type Idler struct {
	Holder workflow.PartnerID
	User   worklist.User
	Orders bool
}

// Idled is what words take that ended nothing.
type Idled struct{ Facts, Bytes int }

// Evidence is what may have been true as far as a fact's author knew.
type Evidence struct {
	s      *State
	of     *log.Entry           // nil: of all that counts here
	number int                  // of this evidence; State.evidences counts them
	def    *workflow.Definition // by which its author went; nil: that was not asked yet
	within bool                 // a rule is being read, perhaps for another one
}

// ruleWas is what one evidence says of a slot's rule: whether it may have been so.
// While that is being found out, it may not.
type ruleWas struct {
	by int // the evidence; 0: none was asked
	is bool
}

// reading is what a rule was found to be for a fact, which is kept where that took many
// steps. What may be so stays so for what follows in the strand, and what may not be so
// as long as its author knows no more.
type reading struct {
	is     bool
	others log.Vector // what it knew of others
	said   int        // of what it had said itself, how much changed something
	at     int        // the first of what the rule asks for that may not be so
}

// readingOf names it: by its author, of which slot, and whether it is about the rule
// having come to hold.
type readingOf struct {
	strand *log.Strand
	slot   *Slot
	held   bool
	by     *workflow.Definition // by which its author went
}

// Trust checks what authors show to prove their rights, which are in the facts:
// its answers depend on its arguments alone, not on time or place.
type Trust interface {
	// Roles are the roles that credentials prove a partner to have.
	Roles(p workflow.PartnerID, credentials []byte) ([]workflow.RoleName, error)
	// Evicted returns an error unless proof shows that a partner was evicted.
	Evicted(p workflow.PartnerID, proof []byte) error
	// Speaker is the person whose word that is for what was signed.
	Speaker(word []byte, signed [32]byte) (fact.Speaker, error)
}

var errNoTrust = errors.New("this node trusts nobody's credentials")

// Clause is a part of a slot's rule: a term, or an "and" or "or" of clauses.
type Clause struct {
	Of    *Slot
	up    *Clause // nil: it is the whole rule
	op    workflow.Op
	not   bool // of a term about a task
	args  workflow.Tally
	comes workflow.Finding
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

// AsInt is one if something is so, else none: for counters.
func AsInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// View answers the terms of a slot's rule, as they stand.
type View struct {
	S  *State
	Of *Slot // whose rule it is; nil: nobody's
}

// IncidentView is something that people should look at.
type IncidentView struct {
	At   int64
	What string
	Task workflow.TaskName
	// Who is the partner that it is about, if any.
	Who workflow.PartnerID
}

// ReasonOf is why a verdict was given, for people: its reason, else its cause.
func ReasonOf(v *fact.Verdict) string {
	if v.Reason != "" {
		return v.Reason
	}
	return string(v.Cause)
}

// Ruling is one action of a counted verdict.
type Ruling struct {
	At     *log.Entry
	Action fact.Action
	Final  bool     // by the attempt's own holder
	Void   bool     // its author knew of the attempt's success
	Next   *Attempt // the attempt that the verdict itself assigned
}
