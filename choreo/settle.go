package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// settle brings slots, data and states up to date with what was applied. Only
// what changed, and what mentions it, is looked at again.
func (s *State) settle() {
	s.conclude()
	if s.cyclic {
		s.anew()
		return
	}
	s.propagate()
}

// anew works out all states from nothing, for a definition in which tasks wait
// for data that they would write for each other: there what was concluded
// before could hold itself up. What is undecided about data when nothing is
// under way that may change it stays as it is, and counts as impossible.
func (s *State) anew() {
	s.idle = false
	for _, sl := range s.slots {
		sl.State = workflow.NotReady
		s.touch(sl)
	}
	s.propagate()
	if s.idle = s.quiescent(); !s.idle {
		return
	}
	for _, sl := range s.slots {
		s.touch(sl)
	}
	s.propagate()
}

// quiescent tells whether nothing is under way that could change the data
// while something waits for data.
func (s *State) quiescent() bool {
	waits := false
	for _, sl := range s.slots {
		switch {
		case sl.State == workflow.Ready || sl.State == workflow.Running || s.armed(sl):
			return false
		case sl.State == workflow.NotReady && sl.hasData:
			if sl.Task.Rule.Eval(s.viewFor(sl)).Truth == workflow.True {
				return false // its holder is about to say so
			}
			waits = true
		}
	}
	return waits
}

// armed tells whether an emergency trigger may still fire.
func (s *State) armed(sl *Slot) bool {
	return sl.State == workflow.NotReady && sl.Task.TimeToWait > 0
}

func (s *State) propagate() {
	for len(s.dirty) > 0 {
		sl := s.dirty[0]
		s.dirty = s.dirty[1:]
		sl.queued = false
		s.writeData(sl)
		was, fresh := sl.State, sl.fresh
		sl.State, sl.fresh = s.stateOf(sl), false
		if sl.State == was && !fresh {
			continue
		}
		for _, d := range sl.dependents {
			s.touch(d)
		}
		for _, d := range sl.readers {
			s.touch(d)
		}
	}
	s.dirty = nil
}

// stateOf says where a slot's task stands.
func (s *State) stateOf(sl *Slot) workflow.State {
	a := sl.Current
	sl.Spared = false
	switch {
	case sl.Pick != nil:
		return workflow.Succeeded
	case sl.Outcome != nil:
		return workflow.Failed
	case s.cancel != nil:
		return workflow.Aborted
	case a.off != nil:
		return workflow.Aborted
	case a.start != nil:
		return workflow.Running
	case sl.begun():
		return workflow.Ready
	}
	switch f := sl.Task.Rule.Eval(s.viewFor(sl)); {
	case sl.Dropped != nil && f.Truth == workflow.True:
		sl.Spared = true
		return workflow.Skipped
	case f.Truth == workflow.True && !sl.hasData:
		return workflow.Ready
	case f.Truth == workflow.Impossible && f.ByFailure:
		return workflow.Blocked
	case f.Truth == workflow.Impossible:
		return workflow.Skipped
	}
	return workflow.NotReady
}

// begun tells whether the slot was recorded as ready, or started, in one of its
// attempts: a contingency then goes on at once. One that stands in for a task
// that was still waiting, as in a partition that failed as a whole, waits for
// what that task waited for (spec/choreography.md, Failure, Fig. 22).
func (sl *Slot) begun() bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.ready != nil || a.start != nil })
}

// view answers the leaves of one slot's rule.
type view struct {
	s         *State
	of        *Slot // whose rule it is
	emergency bool
}

func (s *State) viewFor(sl *Slot) view { return view{s, sl, sl.Task.TimeToWait > 0} }

// TaskTerm says what a rule may hold of a task's slot. For a task with
// time-to-wait only a success that its rule did not want makes a term
// impossible: the wait goes on.
func (v view) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	return contingency.Spared(v.s.term(tr, t), v.emergency)
}

func (s *State) term(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	if sl := s.bySlot[t]; sl != nil {
		return sl.term(tr)
	}
	// A task that is only a contingency: what holds of it in any slot that it
	// may fill; impossible where no slot is left that may need it.
	out := workflow.Finding{Truth: workflow.Impossible}
	for _, sl := range s.slotsOf(t) {
		f := s.termOf(sl, tr, t)
		if f.Truth > out.Truth {
			out = f
		}
		out.ByFailure = out.ByFailure || (f.Truth == out.Truth && f.ByFailure)
	}
	return out
}

func truth(held, possible, byFailure bool) workflow.Finding {
	switch {
	case held:
		return workflow.Finding{Truth: workflow.True}
	case possible:
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return workflow.Finding{Truth: workflow.Impossible, ByFailure: byFailure}
}

// term is what a transition of the slot comes to.
func (sl *Slot) term(tr workflow.Transition) workflow.Finding {
	if sl.Spared {
		if tr == workflow.BecameFailed {
			return workflow.Finding{Truth: workflow.Impossible, BySuccess: true}
		}
		return workflow.Finding{Truth: workflow.True}
	}
	open := !sl.State.Done()
	started := slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.start != nil })
	byFailure := sl.State == workflow.Blocked || sl.State == workflow.Failed
	switch tr {
	case workflow.BecameReady:
		return truth(sl.State == workflow.Ready || started || sl.Pick != nil, open, byFailure)
	case workflow.BecameRunning:
		return truth(started || sl.Pick != nil, open, byFailure)
	case workflow.BecameFailed:
		f := truth(sl.State == workflow.Failed, open, sl.State == workflow.Blocked)
		f.BySuccess = f.Truth == workflow.Impossible && sl.Pick != nil
		return f
	}
	if sl.State == workflow.Failed && sl.Outcome != nil && sl.Outcome.action.Kind == workflow.FailRelease { // no outcome: its state is about to change
		return workflow.Finding{Truth: workflow.Impossible, Dropped: true}
	}
	return truth(sl.Pick != nil && !sl.Held, open, byFailure)
}

// termOf is what a transition of a task that is only a contingency comes to in
// one slot.
func (s *State) termOf(sl *Slot, tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	open := !sl.State.Done()
	a := s.standIn(sl, t)
	if a == nil {
		return truth(false, open, false)
	}
	switch done := a.success() != nil; tr {
	case workflow.BecameReady:
		return truth(true, true, false)
	case workflow.BecameRunning:
		return truth(a.start != nil || done, open, false)
	case workflow.BecameFailed:
		f := truth(len(a.rulings) > 0 && !done, open, false)
		f.BySuccess = f.Truth == workflow.Impossible && done
		return f
	default:
		return truth(done && a.stands == standing, open, len(a.rulings) > 0)
	}
}

// standIn is the attempt in a slot at a task that is only a contingency: whoever
// it was passed on to. nil: there is none yet.
func (s *State) standIn(sl *Slot, t workflow.TaskName) *Attempt {
	i := slices.IndexFunc(sl.Attempts, func(a *Attempt) bool { return a.Task.Name == t })
	if i < 0 {
		return nil
	}
	return s.lastOf(sl.Attempts[i])
}

// DataTerm evaluates a term about data: false or null is undecided while a
// task that may write one of its names can still run, else impossible; for a
// task with time-to-wait it is undecided always.
func (v view) DataTerm(e *workflow.Expr) workflow.Finding {
	val, err := e.Eval(workflow.Env{Data: v.s.values(), Instance: v.s.log.instance.String()})
	if yes, ok := val.(bool); ok && yes && err == nil {
		return workflow.Finding{Truth: workflow.True}
	}
	if v.emergency || (!v.s.idle && v.s.mayChange(e.Names(), v.of)) {
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return workflow.Finding{Truth: workflow.Impossible}
}

// mayChange tells whether somebody may still write one of the data, before of
// itself runs.
func (s *State) mayChange(names []workflow.DataName, of *Slot) bool {
	for _, n := range names {
		for _, w := range s.def.Writers(n) {
			for _, sl := range s.slotsOf(w) {
				if sl != of && !sl.State.Done() {
					return true
				}
			}
		}
	}
	return false
}

// values are the current data.
func (s *State) values() map[workflow.DataName]workflow.Value {
	out := make(map[workflow.DataName]workflow.Value, len(s.data))
	for n, w := range s.data {
		out[n] = w.value
	}
	return out
}

// writeData brings up to date what the slot's successes may have written
// (converge.go, rule 6).
func (s *State) writeData(sl *Slot) {
	for _, a := range sl.Attempts {
		was, is := a.wrote, a.success()
		if a.stands != standing {
			is = nil
		}
		if was == is {
			continue
		}
		a.wrote = is
		for _, e := range []*entry{was, is} {
			if e != nil {
				for n := range e.fact.Body.Success.Outputs {
					s.rewrite(n)
				}
			}
		}
	}
}

// rewrite finds the current value of one data item among the standing writes.
func (s *State) rewrite(n workflow.DataName) {
	delete(s.data, n)
	delete(s.conflicts, n)
	if v, ok := s.genesis.Input[n]; ok {
		s.data[n] = written{v, s.log.genesis}
	} else if d := s.decls[n]; d != nil && d.Default != nil {
		s.data[n] = written{d.Default, s.log.genesis}
	}
	var writes []*entry
	for _, w := range s.def.Writers(n) {
		for _, sl := range s.slotsOf(w) {
			for _, a := range sl.Attempts {
				if v, ok := a.output(n); ok && !slices.Contains(writes, a.success()) {
					writes = append(writes, a.success())
					if cur, has := s.data[n]; !has || byTime(a.success(), cur.by) > 0 {
						s.data[n] = written{v, a.success()}
					}
				}
			}
		}
	}
	cur := s.data[n]
	for _, w := range writes {
		if w != cur.by && !s.log.knew(cur.by, w) {
			s.conflicts[n] = true
		}
	}
	for _, sl := range s.asking[n] {
		s.touch(sl)
	}
}

// output is what a standing success wrote to a data item.
func (a *Attempt) output(n workflow.DataName) (workflow.Value, bool) {
	if a.wrote == nil {
		return nil, false
	}
	v, ok := a.wrote.fact.Body.Success.Outputs[n]
	return v, ok
}

// overall says how the instance stands (language.md, final).
func (s *State) overall() workflow.InstanceState {
	if s.cancel != nil {
		return workflow.InstanceCancelled
	}
	blocked, failed := false, false
	for _, sl := range s.slots {
		switch {
		case !sl.State.Done() || (sl.Pending != nil && sl.Pick == nil):
			return workflow.InstanceRunning
		case sl.State == workflow.Blocked:
			blocked = true
		case sl.State == workflow.Failed:
			failed = failed || !s.handled(sl)
		}
	}
	switch {
	case blocked:
		return workflow.InstanceBlocked
	case failed:
		return workflow.InstanceFailed
	}
	return workflow.InstanceSucceeded
}

// handled tells whether a failure was released, or taken up by a task that
// started and whose rule asks for it.
func (s *State) handled(sl *Slot) bool {
	if sl.Outcome.action.Kind == workflow.FailRelease {
		return true
	}
	return slices.ContainsFunc(sl.dependents, func(d *Slot) bool {
		asks := false
		d.Task.Rule.Terms(func(r *workflow.Rule) {
			asks = asks || (r.Op == workflow.OpTask && r.Transition == workflow.BecameFailed && r.Task == sl.Task.Name)
		})
		return asks && d.Current.start != nil
	})
}
