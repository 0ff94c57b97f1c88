package dataflow

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about how an interrupted instance is recovered: which steps the rules allow, and what
// each does (docs/language.md, repeat). A step that is refused changes nothing.

// The methods of recovery.
const (
	// MethodCompensate undoes transitions that ended well, the last first.
	MethodCompensate = "compensate"
	// MethodOffer offers the current state to all triggers, once parallel work is repaired.
	MethodOffer = "offer"
	// MethodRestart offers the current state as it is.
	MethodRestart = "restart"
	// MethodBack makes a state that is equivalent to one of the history, from an inconsistent one.
	MethodBack = "jump-back"
	// MethodForward makes a state that is equivalent to none.
	MethodForward = "jump-forward"
)

// Step is what an administrator orders.
type Step struct {
	Method string `json:"method"`
	// Steps, Until and When say when compensation stops: after so many, at a state equivalent to
	// that one, when a condition holds. Of several all must be so; of none it is after one.
	Steps int    `json:"steps,omitempty"`
	Until *int   `json:"until,omitempty"`
	When  string `json:"when,omitempty"`
	// Set are the data that a jump sets, as text by their types; null: null.
	Set map[workflow.DataName]*string `json:"set,omitempty"`
	// From is the current state, and Interruption the fact by which the instance was interrupted, as whoever orders it
	// saw them: it changes nothing if another step was quicker. nil, and empty: that was not looked at.
	From         *int   `json:"from,omitempty"`
	Interruption string `json:"interruption,omitempty"`
}

// Jumps reports whether a step sets data, and so brings a state by itself.
func (x Step) Jumps() bool { return x.Method == MethodBack || x.Method == MethodForward }

// Offers reports whether a step offers the state to all triggers, and so brings none by itself.
func (x Step) Offers() bool { return x.Method == MethodOffer || x.Method == MethodRestart }

// Encode writes a step down.
func (x Step) Encode() (string, error) {
	b, err := json.Marshal(x)
	return string(b), err
}

// DecodeStep reads a step. An error says what is wrong with it.
func DecodeStep(s string) (x Step, err error) {
	if err := json.Unmarshal([]byte(s), &x); err != nil {
		return x, fmt.Errorf("a step of recovery that cannot be read: %w", err)
	}
	return x, nil
}

// recovery is a step that takes several compensations.
type recovery struct {
	step Step
	left int
	when *workflow.Expr
	goal int // the state to which an offer goes back; -1: none
	job  Job // the compensation that runs; zero: none
	// began is when that did, by the holder's clock, and from its place in the order of the records.
	began int64
	from  int
}

// Undo is a compensation that is to be done.
type Undo struct {
	Task workflow.TaskName
	By   ID  // the fact by which the transition that it undoes succeeded
	Job  Job // under which the holder began it; zero: it has not
}

// Undoing is the compensation that a recovery waits for; nil: for none.
func (b *Board) Undoing() *Undo {
	if b.recovery == nil {
		return nil
	}
	t := b.producer()
	return &Undo{Task: t.Task, By: t.ID, Job: b.recovery.job}
}

// producer is the record of what produced the current state, or the earlier one that it is taken for.
func (b *Board) producer() *Record { return &b.history[b.states[b.Last().As]] }

// Methods are the methods that the rules allow now; none: the instance is not interrupted, or a
// recovery is under way.
func (b *Board) Methods() (out []string) {
	switch {
	case b.stop == nil:
		return nil
	case b.recovery != nil: // else a compensation that never ends would hold the instance for ever
		return []string{MethodForward}
	}
	if !b.stop.Consistent {
		return []string{MethodBack, MethodForward}
	}
	for _, m := range []string{MethodCompensate, MethodOffer, MethodRestart} {
		if b.MayRecover(Step{Method: m}) == "" {
			out = append(out, m)
		}
	}
	return append(out, MethodForward)
}

// MayRecover says why nobody should order a step: the rules do not allow it, or the definition says already that it
// comes to nothing. Empty: somebody may. It changes nothing.
//
// Only the rules are asked of a step that was ordered (Recover): what counts must not depend on what somebody could
// have foreseen.
func (b *Board) MayRecover(x Step) string {
	if why := b.mayRecover(x); why != "" {
		return why
	}
	return b.fruitless(x)
}

// mayRecover says why the rules do not allow a step; empty: they do. It changes nothing.
func (b *Board) mayRecover(x Step) string {
	switch {
	case b.stop == nil:
		return "the instance is not interrupted"
	case x.From != nil && *x.From != b.State():
		return fmt.Sprintf("it was meant for S%d, and the instance is in S%d by now: see first what it would lead to now",
			*x.From, b.State())
	case x.Interruption != "" && x.Interruption != hex.EncodeToString(b.stop.By[:]):
		return "it was meant for an interruption that is over, and there is another one: see first what it would lead to now"
	case b.recovery != nil && x.Method != MethodForward:
		return "a recovery is under way: its compensations have not ended; only a jump forward calls them off"
	}
	if x.Method != MethodCompensate && (x.Steps != 0 || x.Until != nil || x.When != "") {
		return "only " + MethodCompensate + " stops after steps, until a state, or when a condition holds"
	}
	if x.Method != MethodBack && x.Method != MethodForward {
		if len(x.Set) > 0 {
			return "only a jump sets data"
		}
		if !b.stop.Consistent {
			return fmt.Sprintf("the state is inconsistent (%s): only a jump leads out of it", b.stop.isNow())
		}
	}
	switch x.Method {
	case MethodCompensate:
		return b.mayCompensate(x)
	case MethodOffer:
		if goal := b.offerGoal(); goal >= 0 {
			return b.mayUndo()
		}
		return b.mayOffer()
	case MethodRestart:
		return b.mayOffer()
	case MethodBack, MethodForward:
		_, _, why := b.tryJump(x)
		return why
	}
	return fmt.Sprintf("the method %q: there are %s, %s, %s, %s and %s", x.Method, MethodCompensate, MethodOffer,
		MethodRestart, MethodBack, MethodForward)
}

func (b *Board) mayOffer() string {
	if len(b.ready) == 0 && !b.isFinal() && !b.waitsForAge() {
		return "the current state fires no trigger, and is not final: offered, it would be interrupted again"
	}
	return ""
}

// mayUndo says why what produced the current state cannot be compensated; empty: it can.
func (b *Board) mayUndo() string {
	switch t := b.producer(); {
	case t.Kind == Initial:
		return "there is nothing left to compensate: the state is the first, or equivalent to it"
	case t.Kind != Transition:
		return fmt.Sprintf("a %s produced the state, which cannot be compensated: use a forward jump", t.Kind)
	case b.flow.def.Task(t.Task) == nil:
		return fmt.Sprintf("transition %s is not in the definition any more: use a forward jump", t.Task)
	case b.flow.compensation(t.Task) == nil:
		return fmt.Sprintf("transition %s has no compensation: give it one by an amendment (mutirao amend), "+
			"or use a forward jump", b.called(t.Task))
	}
	return ""
}

func (b *Board) mayCompensate(x Step) string {
	switch {
	case x.Steps < 0:
		return fmt.Sprintf("%d steps: want 1 or more", x.Steps)
	case x.Until != nil && (*x.Until < 0 || *x.Until >= len(b.states)):
		return fmt.Sprintf("there is no state S%d: the history has S0 to S%d", *x.Until, len(b.states)-1)
	case x.Until != nil && *x.Until == b.State():
		return fmt.Sprintf("S%d is the current state: compensation goes back to an earlier one", *x.Until)
	}
	if x.When != "" {
		if _, err := b.flow.def.ParseCondition(x.When); err != nil {
			return "the condition of when: " + err.Error()
		}
	}
	return b.mayUndo()
}

// tryJump tries an ad-hoc transition: with which changes, and as which state of the history its state
// counts (-1: as its own); or why the rules forbid it. It changes nothing.
func (b *Board) tryJump(x Step) (changed map[workflow.DataName]workflow.Value, as int, why string) {
	if x.Method == MethodBack && b.stop.Consistent {
		return nil, -1, "the state is consistent: a jump back leads out of inconsistent ones only"
	}
	set, why := b.flow.readSet(x.Set)
	if why != "" {
		return nil, -1, why
	}
	changed = b.differing(set)
	before := b.write(changed)
	defer func() { b.write(before) }()
	switch {
	case b.strict > 0:
		return nil, -1, "its state breaks the constraint " + b.firstBroken()
	case !b.isFinal() && len(b.ready) == 0 && !b.waitsForAge() && b.broken > 0:
		return nil, -1, "its state would be inconsistent: it is not final, fires no trigger, and breaks the constraint " +
			b.firstUnkept()
	case !b.isFinal() && len(b.ready) == 0 && !b.waitsForAge() && !b.rules():
		return nil, -1, "its state would be inconsistent: it is not final, and fires no trigger"
	}
	like := string(b.bits)
	if x.Method == MethodForward {
		if n, known := b.first[like]; known {
			return nil, -1, fmt.Sprintf("its state would be equivalent to S%d: a forward jump leads to a state that is equivalent to none in the history", n)
		}
		return changed, -1, ""
	}
	for n := len(b.states) - 1; n >= 0; n-- {
		r := &b.history[b.states[n]]
		if r.satisfies != like {
			continue
		}
		if r.Kind == Amendment { // it is the one before, with what the amendment changed
			r = &b.history[b.states[r.As]]
		}
		if r.Kind == Initial || r.Kind == Transition && r.Mark == Unmarked && r.Status != Exception {
			return changed, r.Output, ""
		}
	}
	return nil, -1, "its state would be equivalent to no state of the history that a transition produced which was neither compensated nor jumped over"
}

// ReadSet reads the data that a jump sets, by the definition as it is now. It says why it cannot.
func (b *Board) ReadSet(set map[workflow.DataName]*string) (map[workflow.DataName]workflow.Value, string) {
	return b.flow.readSet(set)
}

// readSet reads the data that a jump sets.
func (f *Flow) readSet(set map[workflow.DataName]*string) (map[workflow.DataName]workflow.Value, string) {
	out := map[workflow.DataName]workflow.Value{}
	for _, n := range slices.Sorted(maps.Keys(set)) {
		i := slices.IndexFunc(f.def.Data, func(d workflow.DataDecl) bool { return d.Name == n })
		if i < 0 {
			return nil, fmt.Sprintf("the workflow has no data %s", n)
		}
		if set[n] == nil {
			out[n] = nil
			continue
		}
		if f.def.Data[i].Type == workflow.TypeFile {
			return nil, fmt.Sprintf("%s is a file: a jump may set it to null only, as it brings no content", n)
		}
		v, err := workflow.ParseValue(&f.def.Data[i], *set[n])
		if err != nil {
			return nil, err.Error()
		}
		out[n] = v
	}
	return out, ""
}

// Recover enters a step that somebody who may ordered. It says why that changes nothing; empty: it
// does.
func (b *Board) Recover(x Step, by ID, at int64) string {
	b.place++
	if why := b.mayRecover(x); why != "" {
		return why
	}
	b.stop.Since = ""
	if b.recovery != nil {
		b.undoFails("a jump forward called it off", ID{}, nil, at)
	}
	switch x.Method {
	case MethodCompensate:
		b.recovery = &recovery{step: x, left: x.Steps, goal: -1}
		if x.Steps == 0 && x.Until == nil && x.When == "" {
			b.recovery.left = 1
		}
		if x.When != "" {
			b.recovery.when, _ = b.flow.def.ParseCondition(x.When) // mayRecover read it
		}
	case MethodOffer:
		b.recovery = &recovery{step: x, goal: -1}
		b.goOnOffering(at)
	case MethodRestart:
		b.resume(at)
	default:
		changed, as, _ := b.tryJump(x)
		r := Record{
			ID: by, FiredBy: -1, Input: len(b.states) - 1, Undoes: -1, Began: at, Ended: at, From: b.place,
			Changed: changed,
		}
		b.write(changed)
		if x.Method == MethodForward {
			r.Kind = JumpForward
			b.enter(r)
			b.resume(at)
			break
		}
		r.Kind = JumpBack
		for i := range b.history {
			if h := &b.history[i]; h.Kind == Transition && h.Mark == Unmarked && h.Output > as {
				h.Mark = Jumped
				b.free(h.Task)
			}
		}
		b.enter(r).As = as
		b.stop.Consistent, b.stop.State, b.stop.Since = true, len(b.states)-1,
			"it jumped back, and waits for the next step of recovery"
	}
	return ""
}

// resume offers the current state. That ends the interruption, unless the state interrupts the instance by itself.
func (b *Board) resume(at int64) {
	first := b.stop
	b.stop, b.recovery = nil, nil
	b.Last().Status, b.Last().Reason = Regular, ""
	b.follow(at)
	if b.stop != nil {
		first.State, first.Consistent = b.stop.State, b.stop.Consistent
		if b.stop.Cause != first.Cause {
			first.Since = b.stop.Cause
		}
		b.stop = first
	}
}

// offerGoal is the state back to which compensation must go before the current one is offered: the oldest that
// fired what ran in parallel with what produced it and came to nothing; -1: none.
func (b *Board) offerGoal() int {
	goal := -1
	for _, r := range b.besides() {
		if goal < 0 || r.FiredBy < goal {
			goal = r.FiredBy
		}
	}
	return goal
}

// besides are the records of what ran in parallel with what produced the current state, came to nothing, and was fired
// by an earlier one. What nobody had taken did not run.
func (b *Board) besides() (out []*Record) {
	t := b.producer()
	if t.Kind != Transition {
		return nil
	}
	for i := range b.history {
		r := &b.history[i]
		came := r.Mark == Aborted || r.Mark == Compensated || r.Mark == Jumped
		if b.steps++; came && r.Kind == Transition && r != t && r.FiredBy < b.Last().As && r.overlaps(t) {
			out = append(out, r)
		}
	}
	return out
}

// overlaps reports whether two transitions were executed at one time. One may end where the other begins.
func (r *Record) overlaps(t *Record) bool { return r.From < r.To && r.From < t.To && t.From < r.To }

// goOnOffering offers the current state, or waits for the next compensation that must come before.
func (b *Board) goOnOffering(at int64) {
	x := b.recovery
	if x.goal >= 0 && b.Last().As > x.goal {
		b.stopUnless(b.mayUndo())
		return
	}
	if x.goal = b.offerGoal(); x.goal < 0 {
		b.resume(at)
		return
	}
	b.stopUnless(b.mayUndo())
}

// stopUnless ends the recovery where the next compensation is not possible: what was done stands.
func (b *Board) stopUnless(why string) {
	if why != "" {
		b.recovery = nil
		b.stop.Since = why
	}
}

// FireUndo enters that the holder begins the compensation that the recovery waits for. It says why that
// changes nothing; empty: it does.
func (b *Board) FireUndo(job Job, of ID, at int64) string {
	b.place++
	switch u := b.Undoing(); {
	case u == nil:
		return "nothing is to be compensated"
	case u.By != of || u.Task != job.Task:
		return "something else is to be compensated"
	case u.Job != Job{}:
		return "the compensation runs already"
	}
	b.recovery.job, b.recovery.began, b.recovery.from = job, at, b.place
	return ""
}

// Undone enters that a compensation ended with updates, by that fact. Its state must be equivalent to the one
// before the transition, and break no strict constraint. It says why that changes nothing; empty: there is a new state.
func (b *Board) Undone(job Job, by ID, updates map[workflow.DataName]workflow.Value, at int64) string {
	b.place++
	if b.recovery == nil || b.recovery.job != job {
		return "the compensation is not pending"
	}
	t := b.producer()
	changed := b.differing(updates)
	before := b.write(changed)
	if why := b.badlyDesigned(t); why != "" {
		b.write(before)
		b.undoFails(why, by, changed, at)
		b.recovery = nil
		b.stop.Since = why
		return why
	}
	t.Mark = Compensated
	b.free(t.Task)
	as := b.history[b.states[t.Input]].As
	undoes := b.states[t.Output]
	b.enter(Record{
		ID: by, Kind: Compensation, Task: t.Task, Job: job, FiredBy: -1, Input: len(b.states) - 1, Undoes: undoes,
		Began: b.recovery.began, Ended: at, Changed: changed,
	}).As = as
	b.stop.State = len(b.states) - 1
	b.recovery.job = Job{}
	b.goOnRecovering(at)
	return ""
}

// RefusesUndo says why the end of the compensation that the recovery waits for, with these updates, would bring no state;
// empty: it would. It changes nothing.
func (b *Board) RefusesUndo(job Job, updates map[workflow.DataName]workflow.Value) string {
	if b.recovery == nil || b.recovery.job != job {
		return ""
	}
	before := b.write(b.differing(updates))
	defer func() { b.write(before) }()
	return b.badlyDesigned(b.producer())
}

// restored reports whether the current data are equivalent to what was there before a transition: as it was then, or
// with what amendments have changed since.
func (b *Board) restored(t *Record) bool {
	is := string(b.bits)
	if is == b.history[b.states[t.Input]].satisfies {
		return true
	}
	now := b.write(b.becoming(b.before(t.Input)))
	defer b.write(now)
	return is == string(b.bits)
}

// becoming is what must be set so that the current data are some others: what these lack is null then.
func (b *Board) becoming(data map[workflow.DataName]workflow.Value) map[workflow.DataName]workflow.Value {
	out := maps.Clone(data)
	for n := range b.values {
		if _, has := data[n]; !has {
			out[n] = nil
		}
	}
	return b.differing(out)
}

// badlyDesigned says why the current data are not what the compensation of a transition must bring; empty: they are.
func (b *Board) badlyDesigned(t *Record) string {
	switch {
	case !b.restored(t):
		return fmt.Sprintf("the compensation of %s is badly designed: its state is not equivalent to S%d, which was before",
			b.called(t.Task), t.Input)
	case b.strict > 0:
		return fmt.Sprintf("the compensation of %s is badly designed: its state breaks the constraint %s",
			b.called(t.Task), b.firstBroken())
	}
	return ""
}

func (b *Board) undoFailure(t workflow.TaskName, reason string) string {
	return fmt.Sprintf("the compensation of %s failed: %s", b.called(t), reason)
}

// called is what people read a task as: its name, with its label.
func (b *Board) called(t workflow.TaskName) string { return b.flow.def.WithLabel(t) }

// goOnRecovering waits for the next compensation, or ends the recovery.
func (b *Board) goOnRecovering(at int64) {
	x := b.recovery
	if x.step.Method == MethodOffer {
		b.goOnOffering(at)
		return
	}
	x.left--
	enough := x.left <= 0
	if x.step.Until != nil {
		until := &b.history[b.states[*x.step.Until]]
		enough = enough && (b.Last().satisfies == until.satisfies || b.Last().As == until.As)
	}
	if x.when != nil {
		enough = enough && holds(x.when, b.values, b.instance, b.age)
	}
	if enough {
		b.recovery = nil
		return
	}
	if why := b.mayUndo(); why != "" {
		b.stopUnless(fmt.Sprintf("compensation went as far as it can, and did not come to where it was to stop (%s): %s",
			x.step.stops(), why))
	}
}

// stops are where compensation is to stop, as it was ordered.
func (x Step) stops() string {
	var out []string
	if x.Steps > 0 {
		out = append(out, fmt.Sprintf("steps: %d", x.Steps))
	}
	if x.Until != nil {
		out = append(out, fmt.Sprintf("until: S%d", *x.Until))
	}
	if x.When != "" {
		when := []rune(x.When)
		if len(when) > mostShown {
			when = append(when[:mostShown-1], '…')
		}
		out = append(out, "when: "+string(when))
	}
	return strings.Join(out, ", ")
}

// mostShown bounds the letters of a condition that are shown beside something else.
const mostShown = 80

// UndoFailed enters that a compensation failed for good: the chain stops there. It says why that changes
// nothing; empty: it does.
func (b *Board) UndoFailed(job Job, reason string, at int64) string {
	b.place++
	if b.recovery == nil || b.recovery.job != job {
		return "the compensation is not pending"
	}
	b.undoFails(reason, ID{}, nil, at)
	b.stop.Since = b.undoFailure(job.Task, reason)
	b.recovery = nil
	return ""
}

// undoFails adds the record of the compensation that runs, if one does, which brought no state: why, and by which fact it
// would have changed what, if it ended with a result.
func (b *Board) undoFails(why string, by ID, changed map[workflow.DataName]workflow.Value, at int64) {
	if b.recovery.job != (Job{}) {
		b.history = append(b.history, b.undoFailed(why, by, changed, at))
	}
}

// undoFailed is the record of the compensation that runs, if it brings no state.
func (b *Board) undoFailed(why string, by ID, changed map[workflow.DataName]workflow.Value, at int64) Record {
	x, now := b.recovery, b.State()
	return Record{
		ID: by, Kind: Compensation, Task: x.job.Task, Job: x.job, FiredBy: -1, Input: -1, Output: now,
		Undoes: b.states[b.producer().Output], As: now, Began: x.began, Ended: at, From: x.from, To: b.place,
		Mark: Aborted, Status: Regular, Changed: changed, Reason: why,
	}
}
