// Package contingency says what failures do to an instance: for each failed
// task its author's choice (block, release, contingency task), and for a whole
// failed partition the contingency partition P′ that is built from its tasks'
// choices (docs/systems.md, Failure: figures 19 to 22).
//
// Promises: a pure function of the definition and of how the instance stands;
// the same failures give the same responses in the same order, on every node.
// It decides what is to be done, never by whom or when.
//
// It imports workflow; choreo and choreo/state import it.
package contingency

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Failure is a failed execution: of the slot's own task, or of the contingency
// that stood in for it.
type Failure struct {
	Slot workflow.TaskName
	Task workflow.TaskName
	// Begun: it was ready or running, so that it has failed by itself, whatever
	// becomes of the tasks before it.
	Begun bool
}

// Filled is a view that knows of tasks which came to stand in a slot by another definition than that of now.
type Filled interface {
	// FilledBy are those tasks, by name.
	FilledBy(slot workflow.TaskName) []workflow.TaskName
}

// Response is what a failure does to its slot.
type Response struct {
	Slot workflow.TaskName
	// Failed is the task whose choice this is.
	Failed workflow.TaskName
	Kind   workflow.FailureAction
	// Contingency is the task that stands in, for FailContingency.
	Contingency workflow.TaskName
}

// Respond works out what failures do, taken together.
//
// Abort prevails: where the block of one failed task makes another's rule
// impossible, that one is blocked, its own choice (a contingency, a release) is
// not used, and there is no response for it. Tasks that had begun have failed
// by themselves and are not spared. view tells how the instance stood before;
// failures may come in any order.
func Respond(def *workflow.Definition, failures []Failure, view workflow.View) []Response {
	if len(failures) == 1 && failures[0].Begun {
		return []Response{respond(def, failures[0])} // nothing else can have a part in it
	}
	o := newOverlay(def, failures, view)
	if out := o.respond(failures); !o.circles {
		return out
	}
	return o.giveWay(failures)
}

// respond is the choice of a failed task's author; none is block.
func respond(def *workflow.Definition, f Failure) Response {
	t := def.Task(f.Task)
	return Response{
		Slot: f.Slot, Failed: f.Task, Kind: cmp.Or(t.OnFailure, workflow.FailBlock), Contingency: t.Contingency,
	}
}

var blocked = workflow.Finding{Truth: workflow.Impossible, ByFailure: true}

// effect is what the response leaves of succeeded(slot).
func (r Response) effect() workflow.Finding {
	switch r.Kind {
	case workflow.FailRelease:
		return workflow.Finding{Truth: workflow.Impossible, Dropped: true}
	case workflow.FailContingency:
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return blocked
}

// overlay is a view in which the responses worked out so far have happened.
type overlay struct {
	workflow.View
	def     *workflow.Definition
	slots   []workflow.TaskName                       // in rule order
	fills   map[workflow.TaskName][]workflow.TaskName // the slots that a task may fill
	writers map[workflow.DataName][]workflow.TaskName // the slots whose tasks may write a data item
	hopes   map[workflow.TaskName]map[node]bool       // by slot, what may yet come of it
	open    map[node]int                              // of how many open slots that may yet come
	failed  map[workflow.TaskName]Failure             // by slot
	answers map[workflow.TaskName]Response            // by slot
	ended   map[workflow.TaskName]bool                // tasks whose failure was answered
	decided map[workflow.TaskName]decision            // by slot
	rules   map[workflow.TaskName]*rule               // by slot
	terms   map[node][]*clause                        // of all rules, by what they are about
	dead    [2]heaped                                 // rules that can never hold any more, see clause.comes
	order   [][]workflow.TaskName                     // in which failures are looked at, see knots
	circles bool                                      // slots wait for each other's data
	// active counts the open slots at which something is under way or about to be, but
	// for those that a failure ends; forData those of the others that wait for data.
	active, forData int
	steps           int // taken by what grows with the definition; tests count them
}

func newOverlay(def *workflow.Definition, failures []Failure, view workflow.View) *overlay {
	o := &overlay{
		View: view, def: def, fills: map[workflow.TaskName][]workflow.TaskName{},
		writers: map[workflow.DataName][]workflow.TaskName{},
		hopes:   map[workflow.TaskName]map[node]bool{}, open: map[node]int{}, failed: map[workflow.TaskName]Failure{},
		answers: map[workflow.TaskName]Response{}, ended: map[workflow.TaskName]bool{},
		decided: map[workflow.TaskName]decision{},
		rules:   map[workflow.TaskName]*rule{}, terms: map[node][]*clause{},
	}
	for _, f := range failures {
		o.failed[f.Slot] = f
	}
	for _, slot := range def.TopoOrder() {
		if !def.Task(slot).ContingencyOnly {
			o.slots = append(o.slots, slot)
			o.enter(slot)
		}
	}
	return o
}

// enter finds out what may yet come of a slot.
func (o *overlay) enter(slot workflow.TaskName) {
	may := map[node]bool{}
	add := func(t *workflow.Task) {
		may[node{task: t.Name}] = true
		o.fills[t.Name] = append(o.fills[t.Name], slot)
		for _, n := range t.Out {
			if !may[node{data: n}] {
				may[node{data: n}] = true
				o.writers[n] = append(o.writers[n], slot)
			}
		}
	}
	for t := o.def.Task(slot); t != nil && !may[node{task: t.Name}]; t = o.def.Task(t.Contingency) {
		add(t)
	}
	if v, is := o.View.(Filled); is {
		for _, n := range v.FilledBy(slot) {
			if t := o.def.Task(n); t != nil && !may[node{task: n}] {
				add(t)
			}
		}
	}
	if o.hopes[slot] = may; o.isOpen(slot) {
		for n := range may {
			o.open[n]++
		}
	}
}

// respond answers the failures.
func (o *overlay) respond(failures []Failure) (out []Response) {
	knots := o.knots()
	o.order = knots
	o.circles = slices.ContainsFunc(knots, func(k []workflow.TaskName) bool { return len(k) > 1 })
	for _, f := range failures {
		if f.Begun {
			o.answer(f)
		}
	}
	o.readRules(knots)
	for i, knot := range knots {
		for _, slot := range knot {
			o.steps++
			if f, failed := o.failed[slot]; failed && !o.has(slot) {
				o.blockBefore(i, len(knots))
				if !o.has(slot) {
					o.answer(f)
				}
			}
		}
	}
	o.blockBefore(len(knots), len(knots))
	return o.responses()
}

// responses are the answers so far, in rule order.
func (o *overlay) responses() (out []Response) {
	for _, slot := range o.slots {
		if r, ok := o.answers[slot]; ok {
			out = append(out, r)
		}
	}
	return out
}

// blockBefore blocks what can never begin any more before a slot of that knot is looked
// at: all of it where there are circles of data, with what would wait in one for ever if
// nothing is under way.
func (o *overlay) blockBefore(knot, knots int) {
	if !o.circles {
		o.block(asItIs, knot)
		return
	}
	if o.block(asItIs, knots); o.quiescent() {
		o.block(atRest, knots)
	}
}

// isOpen reports whether something may yet come of a slot.
func (o *overlay) isOpen(slot workflow.TaskName) bool {
	return o.TaskTerm(workflow.BecameSucceeded, slot).Truth == workflow.Undecided
}

// decide has the rules hear what becomes of a slot.
func (o *overlay) decide(slot workflow.TaskName, d decision) {
	was := o.isOpen(slot)
	o.decided[slot] = d
	o.hear(node{task: slot})
	if was && !o.isOpen(slot) {
		for n := range o.hopes[slot] {
			o.steps++
			if o.open[n]--; o.open[n] <= 1 {
				o.hear(n) // one that may write an item itself does not wait for itself
			}
		}
	}
	o.follow(slot)
}

// answer has a failure do to its slot what its author chose.
func (o *overlay) answer(f Failure) {
	r := respond(o.def, f)
	o.answers[f.Slot] = r
	if !o.ended[f.Task] {
		o.ended[f.Task] = true
		o.hear(node{task: f.Task})
	}
	o.decide(f.Slot, decision{succeeded: r.effect(), failed: r.Kind != workflow.FailContingency})
}

// quiescent reports whether something waits for data and nothing is ready, running, or
// to fire a trigger. What waits for each other's data then waits for ever.
func (o *overlay) quiescent() bool { return o.active == 0 && o.forData > 0 }

// waits reports whether a slot follows its rule: it has not begun, or waits for what its
// contingency would wait for.
func (o *overlay) waits(slot workflow.TaskName) bool {
	_, failed := o.failed[slot]
	return failed || !o.begun(slot)
}

// begun reports whether what a slot has begun is recorded. One that is ready follows its
// rule before it starts, too: unless the rule is about data or an emergency trigger
// fired, as that is recorded.
func (o *overlay) begun(slot workflow.TaskName) bool {
	return o.View.TaskTerm(workflow.BecameRunning, slot).Truth != workflow.Undecided ||
		o.rules[slot].asks && o.View.TaskTerm(workflow.BecameReady, slot).Truth != workflow.Undecided
}

// mayBlock reports whether a slot is not decided, or only its contingency goes on,
// which waits for what its slot waited for.
func (o *overlay) mayBlock(slot workflow.TaskName) bool {
	return !o.has(slot) || o.decided[slot].succeeded.Truth == workflow.Undecided
}

func (o *overlay) has(slot workflow.TaskName) bool {
	_, ok := o.decided[slot]
	return ok
}

// decision is what the responses did to a slot: what they leave of succeeded(slot),
// and whether it has failed. Else it is blocked, or its contingency goes on.
type decision struct {
	succeeded workflow.Finding
	failed    bool
}

// TaskTerm answers for decided slots: failed(t) holds where a block or release
// ended the slot, and nothing else will that has not held before.
func (o *overlay) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	d, ok := o.decided[t]
	switch {
	case o.def.Task(t).ContingencyOnly:
		return o.standIn(tr, t)
	case !ok:
		return o.View.TaskTerm(tr, t)
	case d.succeeded.Truth == workflow.Undecided && (tr == workflow.BecameReady || tr == workflow.BecameRunning):
		if f := o.View.TaskTerm(tr, t); f.Truth == workflow.True {
			return f // as it was before its contingency goes on
		}
		return d.succeeded
	case tr == workflow.BecameSucceeded || d.succeeded.Truth == workflow.Undecided:
		return d.succeeded
	case tr == workflow.BecameFailed && d.failed:
		return workflow.Finding{Truth: workflow.True}
	case tr == workflow.BecameReady:
		tr = workflow.BecameRunning // a task that failed without a start is ready no more
	}
	if f := o.View.TaskTerm(tr, t); f.Truth != workflow.Undecided {
		return f
	}
	return blocked
}

// standIn is TaskTerm for a task that is only a contingency: what has not held yet
// may, while a slot is open that it may fill.
func (o *overlay) standIn(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	f := o.View.TaskTerm(tr, t)
	switch {
	case f.Truth != workflow.Undecided:
		return f
	case tr == workflow.BecameFailed && o.ended[t]:
		return workflow.Finding{Truth: workflow.True}
	case o.open[node{task: t}] > 0:
		return f
	}
	return blocked
}

// asked is the view of a slot whose rule asks. From a task with time-to-wait it keeps
// what must not disarm it: its rule stays undecided until the wait ends.
type asked struct {
	*overlay
	slot  workflow.TaskName
	waits bool
	rests bool // nothing is under way that could change the data: what is undecided about them stays so
}

// TaskTerm hides from a task that waits what must not disarm it.
func (a asked) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	return Spared(a.overlay.TaskTerm(tr, t), a.waits)
}

// DataTerm leaves what is not true undecided for a task that waits, and else while
// another slot may still write one of the data.
func (a asked) DataTerm(x *workflow.Expr) workflow.Finding {
	f := a.View.DataTerm(x)
	if f.Truth == workflow.Undecided && (a.rests || !slices.ContainsFunc(x.Names(), a.mayChange)) {
		f = workflow.Finding{}
	}
	return Spared(f, a.waits)
}

func (a asked) mayChange(n workflow.DataName) bool {
	others := a.open[node{data: n}]
	if a.hopes[a.slot][node{data: n}] {
		others-- // it is open, or nobody would ask
	}
	return others > 0
}

// Spared is what a term comes to for a task with time-to-wait (waits): nothing
// but a success that its rule did not want disarms it or shortens its wait, no
// failure, no release, and no predecessor that will never run
// (docs/systems.md, Emergency triggers).
func Spared(f workflow.Finding, waits bool) workflow.Finding {
	if waits && (f.Dropped || (f.Truth == workflow.Impossible && !f.BySuccess)) {
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return f
}
