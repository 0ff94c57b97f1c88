package state

import (
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// State is what a set of facts means. It is a function of the set: the order
// of insertion, duplicates, clocks and partner lists have no part in it.
type State struct {
	def  *workflow.Definition
	plan *partition.Plan
	// original is the definition with which the instance was started; def is that with the amendments that
	// count (edition.go). fittings are what those say that were looked at, whether or not they count.
	original *workflow.Definition
	amends   []*log.Entry // that count
	formedBy []*log.Entry // those by which def was made
	fittings map[fact.ID]fitting
	edition  edition      // what the facts are judged by (edition.go)
	told     []*log.Entry // facts of this fold that were counted among those that do not count
	log      *log.Log

	trust     Trust // nil: nobody's credentials prove anything
	evidences int   // how often it was asked what an author knew (evidence.go)
	readings  map[readingOf]reading
	genesis   *fact.Genesis
	rank      map[workflow.PartnerID]int // place in the succession
	slots     []*Slot                    // in rule order
	bySlot    map[workflow.TaskName]*Slot
	patient   []*Slot // with a time-to-wait
	holder    map[workflow.PartitionName]workflow.PartnerID
	// placements are the same with what says it, in an order.
	placements []Placement
	attempts   map[fact.AttemptID]*Attempt
	bySucc     map[fact.ID]*Attempt
	joined     map[workflow.PartnerID][]*log.Entry // who became a participant, through what; the earliest first
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
	flow       *FlowWork // of an instance that is driven by its data (flow.go, line.go); nil: it is not
	// peoples is what is known of people's work (claims.go, items.go).
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
	// formerBy are all such facts, of each strand the first.
	formerBy map[workflow.PartnerID][]*log.Entry
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
	// brought are the files that came with results from nodes elsewhere, by who took them
	brought map[workflow.PartnerID][]Reading
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
	// filled are the slots in which tasks stand that are contingencies, where an instance was amended; widened: some of
	// them cannot by the definition of now, and things were kept of the slots that do not say so. fillings are the
	// slots that such tasks may fill by a definition, rounds those in which they would wait for themselves (standins.go).
	filled   map[filled]bool
	widened  bool
	fillings map[*workflow.Definition]map[workflow.TaskName][]*Slot
	rounds   map[asksRound]bool

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
	// (choreo/look.go), made counts how often all slots were made again.
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

// SlotsOf are the slots that a task may fill: its own, or for a task that is
// only a contingency those of the tasks that it stands in for.
func (s *State) SlotsOf(t workflow.TaskName) []*Slot {
	if sl := s.bySlot[t]; sl != nil {
		return s.slots[sl.Place : sl.Place+1 : sl.Place+1]
	}
	return s.fills[t]
}

// DoneIn are the slots in which a task is to be done, as things are: those that it may fill, and where it has a slot
// of its own also those in which it stands in now.
func (s *State) DoneIn(t workflow.TaskName) []*Slot {
	out := slices.Clone(s.SlotsOf(t))
	if s.bySlot[t] == nil {
		return out
	}
	for _, sl := range s.slots {
		if sl.Current.Task.Name == t && sl.Task.Name != t {
			out = append(out, sl)
		}
	}
	return out
}

// item is the data item of that name.
func (s *State) item(n workflow.DataName) *DataItem {
	it := s.items[n]
	if it == nil {
		it = &DataItem{decl: s.decls[n], writers: map[*Slot]bool{}, holders: map[workflow.PartnerID]int{}}
		s.items[n] = it
	}
	return it
}

// touch has the slot's state worked out again, and before settle also who is in
// charge of it and what of it counts.
func (s *State) touch(sl *Slot) {
	if !sl.queued {
		sl.queued = true
		s.dirty = append(s.dirty, sl)
	}
}

// Move has the machine look at the slot.
func (s *State) Move(sl *Slot) {
	if !sl.moved {
		sl.moved = true
		s.moved = append(s.moved, sl)
	}
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

// AtLeast reports whether something is so of that many of n.
func (s *State) AtLeast(many, n int, is func(int) bool) bool {
	for i := 0; i < n && many > 0 && many <= n-i; i++ {
		s.log.Steps++
		many -= AsInt(is(i))
	}
	return many == 0
}

// AsInt is one if something is so, else none: for counters.
func AsInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func earlier(a, b *log.Entry) *log.Entry {
	if a == nil || log.ByTime(b, a) < 0 {
		return b
	}
	return a
}

func newer(a, b *log.Entry) *log.Entry {
	if a == nil || log.ByTime(b, a) > 0 {
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

// ShortName is how a fact is called where people compare states.
func ShortName(e *log.Entry) string {
	if e == nil {
		return "none"
	}
	return e.ID.Short()
}

// ReasonOf is why a verdict was given, for people: its reason, else its cause.
func ReasonOf(v *fact.Verdict) string {
	if v.Reason != "" {
		return v.Reason
	}
	return string(v.Cause)
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

// Written is the current value of a data item, and the success that wrote it; nil: the genesis or a default.
type Written struct {
	Value workflow.Value
	By    *log.Entry
}

// edition is how facts are judged: by the amendments that count, as far as their authors knew of them.
type edition struct {
	heavy []*log.Entry                     // those on which it depends, in their order
	added map[workflow.TaskName][]addition // the tasks that they add, each in their order
	// answers: some of them say which tasks stand in for others.
	answers bool
	left    []*log.Entry // those of which nothing counts but the tasks that they add
	// dated are those that gave tasks that there were another deadline, or none, of each the last.
	dated map[workflow.TaskName]*log.Entry
	// placed are the partitions that they add or move, with those to whom they give them, in their order, and moves those
	// that move now.
	placed []Placement
	moves  map[workflow.PartitionName]Placement
	known  map[string]*workflow.Definition  // by those that somebody knew
	flows  map[workflow.Hash]*dataflow.Flow // of these
	// looked are the patches that were looked at.
	looked map[fittingOf]fitting
}

// Placement says who has a partition, by the genesis or by an amendment.
type Placement struct {
	fact.Placement
	By    *log.Entry
	Moves bool // whoever has it gives on what nobody has begun of it
}

// addition is a task as amendments add it.
type addition struct {
	id   fact.AttemptID // of its first attempt
	home workflow.PartitionName
	at   workflow.PartnerID
	by   []*log.Entry // those that say it so, in their order
}

// fitting is a patch that was looked at; why it does not fit what its author knew, if it does not.
type fitting struct {
	patch amendments.Meant
	known workflow.Hash
	why   string
}

// fittingOf names a patch that was looked at.
type fittingOf struct {
	patch [sha256.Size]byte
	known workflow.Hash
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
	// instead are the orders that others than the holders of attempts wrote down (instead.go).
	instead []*log.Entry
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

// FileGiven is a file that a data item had.
type FileGiven struct {
	Item workflow.DataName
	File string // workflow.File
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
	// undone is the last compensation, by order, of a transition of each trigger that the line has.
	undone map[workflow.TaskName]*Attempt
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
	// offered are the steps of recovery in it that offer the state: they bring none by themselves.
	offered []offeredStep
}

// offeredStep is a step of recovery by a fact, after so many records of the history.
type offeredStep struct {
	by     *log.Entry
	method string
	after  int
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

// Idler is a person at a holder; without a person: all, or those who decide about the instance.
type Idler struct {
	Holder workflow.PartnerID
	User   worklist.User
	Orders bool
}

// Idled is what words take that ended nothing.
type Idled struct{ Facts, Bytes int }

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

// IncidentView is something that people should look at.
type IncidentView struct {
	At   int64
	What string
	Task workflow.TaskName
	// Who is the partner that it is about, if any.
	Who workflow.PartnerID
	// User is the person whose result it is about, if any.
	User worklist.User
}
