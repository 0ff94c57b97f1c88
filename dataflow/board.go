package dataflow

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// ID names a fact.
type ID [32]byte

// Job names one execution: the fact that began it, and the trigger.
type Job struct {
	Fact ID
	Task workflow.TaskName
}

// Kind says what brought a data state.
type Kind string

// The kinds of states.
const (
	Initial      Kind = "initial"
	Transition   Kind = "transition"
	Compensation Kind = "compensation"
	JumpBack     Kind = "jump-back"
	JumpForward  Kind = "jump-forward"
	// Amendment is a state that a changed definition brought, by data that it adds.
	Amendment Kind = "amendment"
	// Offer and Restart are for steps of recovery that offer a state, and bring none by themselves. No Board gives them.
	Offer   Kind = MethodOffer
	Restart Kind = MethodRestart
)

// Mark says what became of an execution afterwards.
type Mark string

// The marks.
const (
	Unmarked    Mark = ""
	Compensated Mark = "compensated"
	Aborted     Mark = "aborted"
	Jumped      Mark = "jumped"
	// Superseded is for what a history says that does not count, as another one does. No Board gives it.
	Superseded Mark = "superseded"
)

// Status says how an instance stood in a state.
type Status string

// The statuses.
const (
	Regular   Status = "regular"
	Final     Status = "final"
	Exception Status = "exception"
)

// Record is one step of the history: a data state with what brought it or, where it is aborted,
// an execution that brought none.
type Record struct {
	ID   ID // the fact that brought the state, or that was to and did not
	Kind Kind
	Task workflow.TaskName // the trigger that fired, also of what compensates it; empty: none
	Job  Job
	// FiredBy is the state that fired it, Input the one that its result was applied to,
	// Output the one that it brought; of an aborted execution the one in which it ended; -1: none.
	FiredBy, Input, Output int
	// Undoes is, of a compensation, the record that it compensates; As the state that this one is
	// to be taken for: its own, or of a compensation or a jump back an earlier one that it equals.
	Undoes, As int
	// Began and Ended are by the holder's clock, ms since 1970; From and To are places in the order of the records. Began is
	// 0 of a transition that nobody had taken.
	Began, Ended int64
	// A transition is executed between From and To: it begins with a program, or with whoever first takes it. One that
	// came to nothing before anybody had taken it has From equal to To.
	From, To int
	Mark     Mark
	Status   Status
	// Changed are the data that have another value than before, or would have by an aborted compensation; nil: null now.
	Changed map[workflow.DataName]workflow.Value
	// Reason is, of a transition that failed and of a state that is an exception, why it interrupted the instance; of a
	// compensation that brought no state, why not.
	Reason string
	// Conflicts are the data that it set though they were changed after the state that fired it.
	Conflicts []workflow.DataName

	satisfies string // which conditions it satisfies, of those that equivalence asks for
	broken    int    // how many constraints it breaks
}

// Brought reports whether it brought a state.
func (r *Record) Brought() bool { return r.Mark != Aborted || r.Input >= 0 }

// Pending is a transition that a state fired and that has not ended.
type Pending struct {
	Task  *workflow.Task
	State int // the number of the state that fired it
	// Job is under which name the present holder began it; zero: it has not.
	Job Job
	// Began is since when it is executed; 0: nobody has taken it yet.
	Began int64
	// Input are the data of that state which the task reads.
	Input map[workflow.DataName]workflow.Value

	fired   int // the place of the record by which it has its job
	firedAt int64
	from    int // the place of the record by which its execution first began; 0: none
}

// begin notes that it is executed from there on, unless it was before.
func (p *Pending) begin(place int, at int64) {
	if p.from == 0 {
		p.from, p.Began = place, at
	}
}

// Interruption says why an instance is interrupted.
type Interruption struct {
	By    ID    // the fact by which it came
	At    int64 // ms since 1970, by the holder's clock
	Cause string
	// Since is what the latest step of recovery came to that did not end it, or what an amendment did to its state;
	// empty: nothing of note.
	Since string
	Task  workflow.TaskName // that failed; empty: none
	State int               // the current state then
	// Consistent: a transition failed. Else the state itself is what is wrong.
	Consistent bool
	Failed     bool // the task did: else it brought the state
}

// String is why the instance is interrupted, and what has come of that since.
func (x *Interruption) String() string {
	if x.Since == "" {
		return x.Cause
	}
	return x.Cause + "; since then: " + x.Since
}

// isNow is what is to be said of the state as it is now.
func (x *Interruption) isNow() string { return cmp.Or(x.Since, x.Cause) }

// Board is the history of an instance's data states.
type Board struct {
	flow     *Flow
	instance string

	values  map[workflow.DataName]workflow.Value // of the current state; absent: null
	age     time.Duration                        // that the instance has reached, as far as somebody said
	states  []int                                // the records of states, by their numbers
	history []Record
	clashed []int // the records in it that have conflicts
	truth   []bool
	bits    []byte // of truth, those that equivalence asks for
	ready   []int  // the triggers that would fire at the next state, ascending: they hold, are enabled and not pending
	pending map[workflow.TaskName]*Pending
	due     map[workflow.TaskName]*Pending // of these, what the present holder has not begun
	ran     []int                          // how often each fired
	set     map[workflow.DataName]int      // the state in which a data item was last set
	strict  int                            // strict constraints that do not hold
	broken  int                            // constraints that do not hold
	first   map[string]int                 // the first state that satisfies exactly these
	place   int                            // of the record that is entered
	stop    *Interruption
	// recovery is under way; nil: none is.
	recovery *recovery
	done     bool

	still      int   // so many transitions in a row brought the newest states, and changed nothing
	stillSince int64 // when the first of them ended

	steps int
}

// NewBoard is the board of an instance that begins with these data, by that fact.
func NewBoard(f *Flow, instance string, data map[workflow.DataName]workflow.Value, by ID, at int64) *Board {
	b := &Board{
		flow: f, instance: instance, values: maps.Clone(data),
		pending: map[workflow.TaskName]*Pending{}, due: map[workflow.TaskName]*Pending{},
		ran: make([]int, len(f.triggers)),
		set: map[workflow.DataName]int{}, first: map[string]int{},
	}
	if b.values == nil {
		b.values = map[workflow.DataName]workflow.Value{}
	}
	for n, v := range b.values {
		if v == nil {
			delete(b.values, n)
		}
	}
	b.evaluateAll()
	b.enter(Record{
		ID: by, Kind: Initial, FiredBy: -1, Input: -1, Undoes: -1, Began: at, Ended: at, Changed: maps.Clone(b.values),
	})
	b.follow(at)
	return b
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// evaluate finds out whether a condition holds now. Equivalence asks for it when the instance began, and at each age at
// which it may come out otherwise: time makes no two states differ, and two that do so at some age are not alike.
func (b *Board) evaluate(i int) {
	b.steps++
	c := b.flow.conds[i]
	is := holds(c.expr, b.values, b.instance, b.age)
	if i < b.flow.bases {
		young := is
		if b.age > 0 && len(c.ages) > 0 {
			young = holds(c.expr, b.values, b.instance, 0)
		}
		b.answer(i, young)
		for k, age := range c.ages {
			b.answer(b.flow.bases+c.later+k, holds(c.expr, b.values, b.instance, age))
		}
	}
	if is == b.truth[i] {
		return
	}
	b.truth[i] = is
	by := one(!is) - one(is)
	b.broken += by * one(c.rule)
	b.strict += by * one(c.strict)
	for _, t := range c.triggers {
		b.mind(t)
	}
}

// answer notes one of the answers that equivalence asks for.
func (b *Board) answer(bit int, yes bool) {
	if yes != (b.bits[bit/8]&(1<<(bit%8)) != 0) {
		b.bits[bit/8] ^= 1 << (bit % 8)
	}
}

// mind notes whether a trigger would fire at the next state.
func (b *Board) mind(i int) {
	b.steps++
	t := b.flow.triggers[i]
	would := b.truthOf(t) && b.pending[t.Name] == nil && b.may(i)
	at, is := slices.BinarySearch(b.ready, i)
	switch {
	case would && !is:
		b.ready = slices.Insert(b.ready, at, i)
	case !would && is:
		b.ready = slices.Delete(b.ready, at, at+1)
	}
}

// may reports whether a trigger may fire at all.
func (b *Board) may(i int) bool {
	t := b.flow.triggers[i]
	return !t.Disabled && (t.RepeatTimes == 0 || b.ran[i] < t.RepeatTimes)
}

func (b *Board) truthOf(t *workflow.Task) bool { return b.truth[b.flow.condOf[t.Name]] }

// isFinal reports whether the current data satisfy the final condition.
func (b *Board) isFinal() bool { return b.flow.final >= 0 && b.truth[b.flow.final] }

// write sets data, and says what they were.
func (b *Board) write(changed map[workflow.DataName]workflow.Value) (before map[workflow.DataName]workflow.Value) {
	before = make(map[workflow.DataName]workflow.Value, len(changed))
	var again []int
	for n, v := range changed {
		before[n] = b.values[n]
		if v == nil {
			delete(b.values, n)
		} else {
			b.values[n] = v
		}
		again = append(again, b.flow.mentions[n]...)
	}
	slices.Sort(again)
	for _, i := range slices.Compact(again) {
		b.evaluate(i)
	}
	return before
}

// differing are those of some data that have another value now.
func (b *Board) differing(data map[workflow.DataName]workflow.Value) map[workflow.DataName]workflow.Value {
	out := map[workflow.DataName]workflow.Value{}
	for n, v := range data {
		if !same(b.values[n], v) {
			out[n] = v
		}
	}
	return out
}

// same reports whether two values of one type are the same.
func same(a, b workflow.Value) bool {
	switch a := a.(type) {
	case []any:
		x, ok := b.([]any)
		return ok && slices.EqualFunc(a, x, same)
	case map[string]any:
		x, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, x, same)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// enter adds the record of a new state, which the current data are.
func (b *Board) enter(r Record) *Record {
	n := len(b.states)
	r.Output, r.As, r.To, r.Status, r.broken = n, n, b.place, Regular, b.broken
	r.satisfies = string(b.bits)
	if _, known := b.first[r.satisfies]; !known {
		b.first[r.satisfies] = n
	}
	for name := range r.Changed {
		b.set[name] = n
	}
	if len(r.Conflicts) > 0 {
		b.clashed = append(b.clashed, len(b.history))
	}
	switch {
	case r.Kind != Transition || len(r.Changed) > 0:
		b.still = 0
	case b.still == 0:
		b.still, b.stillSince = 1, r.Ended
	default:
		b.still++
	}
	b.states = append(b.states, len(b.history))
	b.history = append(b.history, r)
	return &b.history[len(b.history)-1]
}

// Still is how many transitions in a row brought the newest states and changed no data, and when the first of them ended.
func (b *Board) Still() (number int, since int64) { return b.still, b.stillSince }

// follow fires what the newest state fires, or ends or interrupts the instance.
func (b *Board) follow(at int64) { b.followBy(b.Last().ID, at) }

// followBy is follow because of a fact. A state that a changed definition made final while a transition is pending
// fires nothing more: that one goes on (AwaitsEnds).
func (b *Board) followBy(by ID, at int64) {
	r := b.Last()
	switch {
	case b.strict > 0:
		r.Status = Exception
		b.interrupt(Interruption{
			By: by, At: at, Cause: breaks(b.firstBroken()), Task: r.Task,
		})
		return
	case b.isFinal() && len(b.pending) == 0:
		r.Status = Final
		b.done = true
		return
	}
	b.offer()
	b.stall(by, at)
}

// stall interrupts the instance if nothing is pending, and no time that is to come fires anything.
func (b *Board) stall(by ID, at int64) {
	if len(b.pending) > 0 || b.waitsForAge() {
		return
	}
	r := b.Last()
	r.Status = Exception
	b.interrupt(Interruption{
		By: by, At: at, Task: r.Task, Cause: "the state fires no trigger, is not final, and nothing is pending",
		Consistent: b.rules() && b.broken == 0,
	})
}

// waitsForAge reports whether the current state would fire a trigger at an age that is to come.
func (b *Board) waitsForAge() bool {
	at, _ := slices.BinarySearch(b.flow.ages, b.age+1)
	for i, t := range b.flow.triggers {
		b.steps++
		if at < len(b.flow.ages) && b.may(i) && holdsLater(t, b.values, b.instance, b.flow.ages[at:]) {
			return true
		}
	}
	return false
}

// NextAge is the next age of the instance at which a condition may come out otherwise; false: there is none.
func (b *Board) NextAge() (time.Duration, bool) {
	at, _ := slices.BinarySearch(b.flow.ages, b.age+1)
	if at == len(b.flow.ages) || b.done {
		return 0, false
	}
	return b.flow.ages[at], true
}

// Age enters that the instance has come to an age, by that fact: the current state fires what it satisfies by
// now. It says why that changes nothing; empty: it may.
func (b *Board) Age(age time.Duration, by ID, at int64) string {
	b.place++
	next, has := b.NextAge()
	switch {
	case b.done:
		return "a final state ended the instance"
	case !has || age < next:
		return "no condition comes out otherwise at that age"
	}
	b.age = age
	for _, i := range b.flow.aged {
		b.evaluate(i)
	}
	if b.stop == nil {
		b.offer()
		b.stall(by, at)
	}
	return ""
}

// rules reports whether the flow has constraints.
func (b *Board) rules() bool {
	return len(b.flow.conds) > b.flow.bases ||
		slices.ContainsFunc(b.flow.conds, func(c *condition) bool { return c.rule })
}

// breaks says that the state breaks a strict constraint.
func breaks(constraint string) string { return "the state breaks the constraint " + constraint }

func (b *Board) firstBroken() string {
	for i, c := range b.flow.conds {
		if c.strict && !b.truth[i] {
			return c.text()
		}
	}
	return ""
}

// firstUnkept is the first constraint that the state breaks, strict or not.
func (b *Board) firstUnkept() string {
	for i, c := range b.flow.conds {
		if c.rule && !b.truth[i] {
			return c.text()
		}
	}
	return ""
}

// offer has the current state fire what it satisfies.
func (b *Board) offer() {
	if b.isFinal() {
		return
	}
	fired := b.ready
	b.ready = nil
	for _, i := range fired {
		b.steps++
		t := b.flow.triggers[i]
		p := &Pending{Task: t, State: len(b.states) - 1, Input: given(t, b.values)}
		b.pending[t.Name], b.due[t.Name] = p, p
		b.ran[i]++
	}
}

// given are those of some data that a transition may read.
func given(t *workflow.Task, data map[workflow.DataName]workflow.Value) map[workflow.DataName]workflow.Value {
	out := map[workflow.DataName]workflow.Value{}
	for _, n := range Reads(t) {
		if v, ok := data[n]; ok {
			out[n] = v
		}
	}
	return out
}

// Reads are the data that a transition may read: what its task declares, and what the built-in
// set mentions.
func Reads(t *workflow.Task) []workflow.DataName {
	names := slices.Clone(t.In)
	if t.Application == workflow.AppSet {
		for _, e := range t.With.Set {
			names = append(names, e.Names()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// interrupt stops all triggers and aborts what is pending.
func (b *Board) interrupt(x Interruption) {
	x.State = len(b.states) - 1
	b.stop = &x
	if !x.Failed {
		b.Last().Reason = x.Cause
	}
	for _, p := range b.Pending() {
		if b.abort(p, x.At); x.Failed && p.Task.Name == x.Task {
			b.history[len(b.history)-1].Reason = x.Cause
		}
	}
}

// abort ends a pending transition without a state.
func (b *Board) abort(p *Pending, at int64) {
	if p.Job != (Job{}) {
		b.history = append(b.history, b.aborted(p, at))
	}
	delete(b.pending, p.Task.Name)
	delete(b.due, p.Task.Name)
	b.free(p.Task.Name)
}

// aborted is the record of a transition that was begun and brings no state.
func (b *Board) aborted(p *Pending, at int64) Record {
	now := b.State()
	from := p.from
	if from == 0 {
		from = b.place
	}
	return Record{
		Kind: Transition, Task: p.Task.Name, Job: p.Job, FiredBy: p.State, Input: -1, Output: now, Undoes: -1, As: now,
		Began: p.Began, Ended: at, From: from, To: b.place, Mark: Aborted, Status: Regular,
	}
}

// free lets a trigger fire again whose transition came to nothing, or was undone: one that does not repeat has
// not had its turn then.
func (b *Board) free(t workflow.TaskName) {
	i, has := b.flow.of[t]
	if !has { // of an earlier definition
		return
	}
	if !b.flow.triggers[i].Repeat {
		b.ran[i] = 0
	}
	b.mind(i)
}

// Pending are the transitions that have not ended, by trigger.
func (b *Board) Pending() []*Pending { return byTrigger(b.pending) }

// IsPending reports whether a transition of a trigger is pending.
func (b *Board) IsPending(t workflow.TaskName) bool { return b.pending[t] != nil }

// Due are those of them that the present holder has not begun.
func (b *Board) Due() []*Pending { return byTrigger(b.due) }

func byTrigger(set map[workflow.TaskName]*Pending) []*Pending {
	out := slices.Collect(maps.Values(set))
	slices.SortFunc(out, func(x, y *Pending) int { return cmp.Compare(x.Task.Name, y.Task.Name) })
	return out
}

// HandOver notes that another holds the flow from here on: it begins all that is pending once more.
func (b *Board) HandOver() {
	for name, p := range b.pending {
		p.Job = Job{}
		b.due[name] = p
	}
	if b.recovery != nil {
		b.recovery.job = Job{}
	}
}

// Again notes that what was said of the end of a job does not count: who holds the flow begins it once more.
func (b *Board) Again(job Job) {
	if p := b.pending[job.Task]; p != nil && p.Job == job {
		p.Job = Job{}
		b.due[job.Task] = p
	}
	if b.recovery != nil && b.recovery.job == job {
		b.recovery.job = Job{}
	}
}

// Fire enters that the holder begins a transition that a state fired, under a name, or, if it waits for somebody, puts
// it up. It says why that changes nothing; empty: it does.
func (b *Board) Fire(job Job, state ID, waits bool, at int64) string {
	b.place++
	p := b.pending[job.Task]
	switch {
	case b.stop != nil:
		return "the instance is interrupted"
	case p == nil:
		return "the trigger did not fire"
	case p.Job != Job{}:
		return "the transition runs already"
	case b.history[b.states[p.State]].ID != state:
		return "another state fired the trigger"
	}
	if i, has := b.flow.of[job.Task]; has && b.flow.triggers[i] != p.Task { // it begins as it is now defined
		p.Task = b.flow.triggers[i]
		p.Input = given(p.Task, b.ValuesAt(p.State))
	}
	p.Job, p.fired, p.firedAt = job, b.place, at
	if !waits {
		p.begin(b.place, at)
	}
	delete(b.due, job.Task)
	return ""
}

// Take enters that somebody has a transition that waited for that: its execution begins, unless it had.
func (b *Board) Take(job Job, at int64) {
	b.place++
	if p := b.Running(job); p != nil {
		p.begin(b.place, at)
	}
}

// Running is the pending transition of that name; nil: it is not pending.
func (b *Board) Running(job Job) *Pending {
	if p := b.pending[job.Task]; p != nil && p.Job == job {
		return p
	}
	return nil
}

// Refuses says why the end of a transition with these updates would change nothing now; empty: it
// would.
func (b *Board) Refuses(job Job, updates map[workflow.DataName]workflow.Value) string {
	if b.Running(job) == nil {
		return "the transition is not pending"
	}
	if len(b.pending) == 1 {
		return ""
	}
	before := b.write(b.differing(updates))
	final := b.isFinal() && b.strict == 0
	b.write(before)
	if final {
		return FinalTooEarly
	}
	return ""
}

// FinalTooEarly is why a result is not applied whose state would be final: the transition stays
// pending.
const FinalTooEarly = "its state would be final while other transitions are pending"

// Clashes are the data that an end with these updates sets though they were changed after the
// state that fired it, where the definition wants that to be a failure; empty: none.
func (b *Board) Clashes(job Job, updates map[workflow.DataName]workflow.Value) []workflow.DataName {
	p := b.Running(job)
	if p == nil || p.Task.OnConflict != workflow.ConflictFail {
		return nil
	}
	return b.conflicts(p, updates)
}

func (b *Board) conflicts(p *Pending, updates map[workflow.DataName]workflow.Value) (out []workflow.DataName) {
	for n := range updates {
		if b.set[n] > p.State {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Done enters that a transition ended with updates, by that fact. It says why that changes
// nothing; empty: there is a new state.
func (b *Board) Done(job Job, by ID, updates map[workflow.DataName]workflow.Value, at int64) string {
	b.place++
	if why := b.Refuses(job, updates); why != "" {
		return why
	}
	p := b.Running(job)
	p.begin(p.fired, p.firedAt) // whoever brings it had it: if nobody took it, from when is not known
	r := Record{
		ID: by, Kind: Transition, Task: job.Task, Job: job, FiredBy: p.State, Input: len(b.states) - 1, Undoes: -1,
		Began: p.Began, Ended: at, From: p.from, Changed: b.differing(updates), Conflicts: b.conflicts(p, updates),
	}
	delete(b.pending, job.Task)
	b.write(r.Changed)
	if i, has := b.flow.of[job.Task]; has {
		b.mind(i)
	}
	b.enter(r)
	b.follow(at)
	return ""
}

// Fail enters that a transition failed for good: that interrupts the instance. It says why it
// changes nothing; empty: it does.
func (b *Board) Fail(job Job, by ID, reason string, at int64) string {
	b.place++
	if b.Running(job) == nil {
		return "the transition is not pending"
	}
	b.interrupt(Interruption{By: by, At: at, Cause: reason, Task: job.Task, Consistent: true, Failed: true})
	return ""
}

// Values are the data of the current state. Nobody may change them.
func (b *Board) Values() map[workflow.DataName]workflow.Value { return b.values }

// State is the number of the current state.
func (b *Board) State() int { return len(b.states) - 1 }

// Last is the newest record of a state.
func (b *Board) Last() *Record { return &b.history[b.states[len(b.states)-1]] }

// StateID names the fact that brought a state.
func (b *Board) StateID(n int) ID { return b.history[b.states[n]].ID }

// Ended reports whether a final state ended the instance.
func (b *Board) Ended() bool { return b.done }

// Interrupted says why the instance is interrupted; nil: it is not.
func (b *Board) Interrupted() *Interruption { return b.stop }

// History is all that happened, in order. Nobody may change it.
func (b *Board) History() []Record { return b.history }

// Conflicting are the records that set what was changed after the state that fired them, in order. To find them costs
// nothing that grows with the history.
func (b *Board) Conflicting() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for _, at := range b.clashed {
			if !yield(&b.history[at]) {
				return
			}
		}
	}
}

// CalledOff are the records of what was begun and has not ended, if it is called off: why, and when. It changes nothing.
func (b *Board) CalledOff(why string, at int64) (out []Record) {
	for _, p := range b.Pending() {
		if p.Job != (Job{}) {
			out = append(out, b.aborted(p, at))
		}
	}
	if x := b.recovery; x != nil && x.job != (Job{}) {
		out = append(out, b.undoFailed(why, ID{}, nil, at))
	}
	return out
}

// EquivalentTo is the first state before a state that satisfies the same conditions; -1: none.
func (b *Board) EquivalentTo(n int) int {
	if first := b.first[b.history[b.states[n]].satisfies]; first < n {
		return first
	}
	return -1
}

// ValuesAt are the data of a state by its number.
func (b *Board) ValuesAt(n int) map[workflow.DataName]workflow.Value {
	out := map[workflow.DataName]workflow.Value{}
	for i := 0; i <= n; i++ {
		for name, v := range b.history[b.states[i]].Changed {
			if v == nil {
				delete(out, name)
			} else {
				out[name] = v
			}
		}
	}
	return out
}

// Steps is how much the board has looked at: conditions that it evaluated, and triggers that it
// minded or fired.
func (b *Board) Steps() int { return b.steps }
