// Package contingency says what failures do to an instance: for each failed
// task its author's choice (block, release, contingency task), and for a whole
// failed partition the contingency partition P′ that is built from its tasks'
// choices (spec/choreography.md, Failure; figures 19 to 22).
//
// Promises: a pure function of the definition and of how the instance stands;
// the same failures give the same responses in the same order, whoever works
// them out. It decides what is to be done, never by whom or when.
//
// choreo, internal/sim and cmd may import it; it imports workflow and partition.
package contingency

import (
	"cmp"

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
	failed := make(map[workflow.TaskName]Failure, len(failures))
	for _, f := range failures {
		failed[f.Slot] = f
	}
	o := overlay{View: view, def: def, decided: map[workflow.TaskName]decision{}}
	var out []Response
	for _, slot := range def.TopoOrder() {
		f, ok := failed[slot]
		if !ok {
			o.pass(slot)
			continue
		}
		if !f.Begun && o.impossible(slot) {
			o.decided[slot] = decision{succeeded: blocked}
			continue
		}
		r := respond(def, f)
		out = append(out, r)
		o.decided[slot] = decision{succeeded: r.effect(), failed: r.Kind != workflow.FailContingency}
	}
	return out
}

// respond is the choice of a failed task's author; none is block.
func respond(def *workflow.Definition, f Failure) Response {
	t := def.Task(f.Task)
	return Response{Slot: f.Slot, Failed: f.Task, Kind: cmp.Or(t.OnFailure, workflow.FailBlock), Contingency: t.Contingency}
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
	decided map[workflow.TaskName]decision
}

// decision is what the responses did to a slot: what they leave of succeeded(slot),
// and whether it has failed. Else it is blocked, or its contingency goes on.
type decision struct {
	succeeded workflow.Finding
	failed    bool
}

// TaskTerm answers for decided slots: failed(t) holds where a block or release
// ended the slot, and nothing else will that has not held before.
func (o overlay) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	d, ok := o.decided[t]
	switch {
	case !ok:
		return o.View.TaskTerm(tr, t)
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

func (o overlay) impossible(slot workflow.TaskName) bool {
	return o.rule(slot).Truth == workflow.Impossible
}

func (o overlay) rule(slot workflow.TaskName) workflow.Finding {
	return o.def.Task(slot).Rule.Eval(emergency{o, o.def.Task(slot).TimeToWait > 0})
}

// pass lets a block go through a task that did not fail itself: it will be
// blocked, and so will what waits for it.
func (o overlay) pass(slot workflow.TaskName) {
	if o.def.Task(slot).ContingencyOnly {
		return
	}
	if f := o.View.TaskTerm(workflow.BecameReady, slot); f.Truth == workflow.Undecided && o.impossible(slot) {
		o.decided[slot] = decision{succeeded: blocked}
	}
}

// emergency keeps from a task with time-to-wait what must not disarm it: its
// rule stays undecided until the wait ends.
type emergency struct {
	workflow.View
	waits bool
}

// TaskTerm hides from a task that waits what must not disarm it.
func (e emergency) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	return Spared(e.View.TaskTerm(tr, t), e.waits)
}

// Spared is what a term comes to for a task with time-to-wait (waits): nothing
// but a success that its rule did not want disarms it or shortens its wait, no
// failure, no release, and no predecessor that will never run
// (spec/choreography.md, Emergency triggers).
func Spared(f workflow.Finding, waits bool) workflow.Finding {
	if waits && (f.Dropped || (f.Truth == workflow.Impossible && !f.BySuccess)) {
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return f
}

// DataTerm leaves what is not true undecided for a task that waits.
func (e emergency) DataTerm(x *workflow.Expr) workflow.Finding {
	return Spared(e.View.DataTerm(x), e.waits)
}
