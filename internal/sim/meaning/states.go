package meaning

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says where each task stands, by the three-valued rules of the language.

// finding is what a rule or a term comes to.
type finding struct {
	truth     workflow.Truth
	byFailure bool // impossible since something failed
	bySuccess bool // impossible since something succeeded that was to fail
	released  bool // it counts no more
}

func yes() finding       { return finding{truth: workflow.True} }
func undecided() finding { return finding{truth: workflow.Undecided} }

// settle works out all states from nothing. Where tasks wait for data that they
// would write for each other, and nothing is under way, what is undecided stays so.
func (m *Meaning) settle() {
	m.propagate()
	if m.cyclic() && m.stuck() {
		m.idle = true
		m.propagate()
	}
}

func (m *Meaning) propagate() {
	for more := true; more; {
		more = false
		for _, sl := range m.slots {
			if s := m.stateOf(sl); s != sl.State {
				sl.State, more = s, true
			}
		}
	}
}

// stuck reports whether something waits for data, and nothing is under way.
func (m *Meaning) stuck() bool {
	waits := false
	for _, sl := range m.slots {
		switch {
		case sl.State == workflow.Ready || sl.State == workflow.Running:
			return false
		case sl.State == workflow.NotReady && sl.Task.TimeToWait > 0:
			return false
		case sl.State == workflow.NotReady && asksData(sl.Task.Rule):
			if m.rule3(sl).truth == workflow.True {
				return false
			}
			waits = true
		}
	}
	return waits
}

// cyclic reports whether slots wait for each other in a circle, by data.
func (m *Meaning) cyclic() bool {
	left := slices.Clone(m.slots)
	for {
		free := slices.DeleteFunc(slices.Clone(left), func(sl *Slot) bool {
			return slices.ContainsFunc(m.waitsFor(sl), func(x *Slot) bool { return slices.Contains(left, x) })
		})
		if len(free) == 0 {
			return len(left) > 0
		}
		left = slices.DeleteFunc(left, func(sl *Slot) bool { return slices.Contains(free, sl) })
	}
}

// waitsFor are the slots that a slot waits for, or for what they write.
func (m *Meaning) waitsFor(sl *Slot) []*Slot {
	out := m.before(sl)
	sl.Task.Rule.Terms(func(r *workflow.Rule) {
		if r.Op == workflow.OpData {
			for _, w := range m.writers(r.Data) {
				if w != sl {
					out = append(out, w)
				}
			}
		}
	})
	return out
}

// writers are the slots that may write data of an expression.
func (m *Meaning) writers(e *workflow.Expr) (out []*Slot) {
	for _, t := range m.def.Tasks {
		if slices.ContainsFunc(e.Names(), func(n workflow.DataName) bool { return slices.Contains(t.Out, n) }) {
			out = append(out, m.slotsOf(t.Name)...)
		}
	}
	return out
}

func asksData(r *workflow.Rule) (asks bool) {
	r.Terms(func(x *workflow.Rule) { asks = asks || x.Op == workflow.OpData })
	return asks
}

func (m *Meaning) stateOf(sl *Slot) workflow.State {
	switch {
	case sl.Pick != nil:
		return workflow.Succeeded
	case sl.outcome != nil:
		return workflow.Failed
	case m.cancelled && m.leftOut(sl): // it stays so
		return workflow.Skipped
	case m.cancelled, sl.Current.off != none:
		return workflow.Aborted
	case sl.Current.start != none:
		return workflow.Running
	case sl.begun():
		return workflow.Ready
	}
	switch f := m.rule3(sl); {
	case sl.Task.Disabled, m.final && !m.broken:
		return workflow.Skipped
	case f.truth == workflow.Impossible && f.byFailure:
		return workflow.Blocked
	case f.truth == workflow.Impossible:
		return workflow.Skipped
	case m.broken && sl.Task.TimeToWait == 0: // nothing begins, but for emergencies
		return workflow.Blocked
	case f.truth == workflow.True && !asksData(sl.Task.Rule) && !m.broken:
		return workflow.Ready
	}
	return workflow.NotReady
}

// leftOut reports whether nobody began a slot's task and it is not needed.
func (m *Meaning) leftOut(sl *Slot) bool {
	if sl.begun() || sl.Current.off != none {
		return false
	}
	f := m.rule3(sl)
	return sl.Task.Disabled || (m.final && !m.broken) || (f.truth == workflow.Impossible && !f.byFailure)
}

// begun reports whether somebody recorded that the slot is ready, or started it.
func (sl *Slot) begun() bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.ready != none || a.start != none })
}

// rule3 is what a slot's rule comes to. A rule of which nothing is left holds.
func (m *Meaning) rule3(sl *Slot) finding {
	if sl.Task.Rule == nil {
		return yes()
	}
	f := m.part(sl, sl.Task.Rule)
	if f.released {
		return yes()
	}
	return f
}

func (m *Meaning) part(sl *Slot, r *workflow.Rule) finding {
	switch r.Op {
	case workflow.OpTask:
		return m.taskTerm(sl, r)
	case workflow.OpData:
		return m.dataTerm(sl, r.Data)
	}
	var parts []finding
	for _, x := range r.Args {
		if f := m.part(sl, x); !f.released {
			parts = append(parts, f)
		}
	}
	if len(parts) == 0 {
		return finding{released: true}
	}
	best := func(a, b finding) int { return int(a.truth) - int(b.truth) }
	f := slices.MinFunc(parts, best)
	if r.Op == workflow.OpOr {
		f = slices.MaxFunc(parts, best)
	}
	for _, p := range parts {
		f.byFailure = f.byFailure || (p.truth == f.truth && p.byFailure)
	}
	return f
}

// taskTerm: for an emergency task only a success that was to be a failure ends the
// wait.
func (m *Meaning) taskTerm(sl *Slot, r *workflow.Rule) finding {
	f := m.transition(r.Task, r.Transition)
	if sl.Task.TimeToWait > 0 && (f.released || (f.truth == workflow.Impossible && !f.bySuccess)) {
		f = undecided()
	}
	if r.Negated && !f.released {
		f.truth = workflow.True - f.truth
		f.byFailure = f.byFailure && f.truth == workflow.Impossible
	}
	return f
}

// transition is what is known of a task that made a transition. Of one that is only
// a contingency: the best of the slots that it may fill.
func (m *Meaning) transition(t workflow.TaskName, tr workflow.Transition) finding {
	if sl := m.bySlot[t]; sl != nil {
		return sl.transition(tr)
	}
	var out finding
	for _, sl := range m.slotsOf(t) {
		f := m.standIn(sl, t, tr)
		switch {
		case f.truth > out.truth:
			f.byFailure = f.byFailure || out.byFailure
			out = f
		case f.truth == out.truth:
			out.byFailure = out.byFailure || f.byFailure
		}
	}
	return out
}

// whether is true, or may become so, or never.
func whether(is, open, byFailure bool) finding {
	switch {
	case is:
		return yes()
	case open:
		return undecided()
	}
	return finding{byFailure: byFailure}
}

func (sl *Slot) transition(tr workflow.Transition) finding {
	open := !sl.State.Done()
	started := slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.start != none })
	failed := sl.State == workflow.Failed || sl.State == workflow.Aborted // called off, and nothing took its place
	broken := sl.State == workflow.Blocked || failed
	switch tr {
	case workflow.BecameReady:
		return whether(sl.State == workflow.Ready || started || sl.Pick != nil, open, broken)
	case workflow.BecameRunning:
		return whether(started || sl.Pick != nil, open, broken)
	case workflow.BecameFailed:
		f := whether(failed, open, sl.State == workflow.Blocked)
		f.bySuccess = f.truth == workflow.Impossible && sl.Pick != nil
		return f
	}
	if sl.State == workflow.Failed && sl.outcome != nil && sl.outcome.action.Kind == workflow.FailRelease {
		return finding{released: true}
	}
	return whether(sl.Pick != nil && !sl.Held, open, broken)
}

// standIn is transition for a task that may stand in for a slot's own.
func (m *Meaning) standIn(sl *Slot, t workflow.TaskName, tr workflow.Transition) finding {
	open := !sl.State.Done()
	var a *Attempt
	for _, x := range sl.Attempts {
		if x.task.Name == t && (a == nil || x.depth < a.depth || (x.depth == a.depth && x.assigned < a.assigned)) {
			a = x
		}
	}
	if a == nil {
		return whether(false, open, false)
	}
	a = m.latest(a)
	done := a.success() != none
	switch tr {
	case workflow.BecameReady:
		return yes()
	case workflow.BecameRunning:
		return whether(a.start != none || done, open, false)
	case workflow.BecameFailed:
		f := whether(len(a.rulings) > 0 && !done, open, false)
		f.bySuccess = f.truth == workflow.Impossible && done
		return f
	}
	return whether(done && a.Stands, open, len(a.rulings) > 0)
}

// latest is the last attempt at what an attempt is to do: passed on, or done once more by order.
func (m *Meaning) latest(a *Attempt) *Attempt {
	byAuthority := func(x, y *Attempt) int { return m.authority(x.assigned, y.assigned) }
	for {
		counting := slices.DeleteFunc(slices.Clone(a.rulings), func(r *ruling) bool { return r.void })
		blocked := len(counting) > 0 && slices.MinFunc(counting,
			func(x, y *ruling) int { return m.authority(x.at, y.at) }).action.Kind != workflow.FailContingency
		switch {
		case len(a.passed) > 0:
			a = slices.MinFunc(a.passed, byAuthority)
		case blocked && len(a.again) > 0:
			a = slices.MinFunc(a.again, byAuthority)
		default:
			return a
		}
	}
}

// dataTerm: what does not hold yet may, while somebody else may write the data.
func (m *Meaning) dataTerm(sl *Slot, e *workflow.Expr) finding {
	v, err := e.Eval(m.env())
	if ok, is := v.(bool); err == nil && is && ok {
		return yes()
	}
	moves := slices.ContainsFunc(m.writers(e), func(w *Slot) bool { return w != sl && !w.State.Done() })
	if sl.Task.TimeToWait > 0 || (moves && !m.idle) {
		return undecided()
	}
	return finding{}
}

// overall says how the instance stands.
func (m *Meaning) overall() workflow.InstanceState {
	if m.cancelled {
		return workflow.InstanceCancelled
	}
	out := workflow.InstanceSucceeded
	for _, sl := range m.slots {
		switch {
		case !sl.State.Done() || (sl.Pending && sl.Pick == nil):
			return workflow.InstanceRunning
		case sl.State == workflow.Blocked:
			out = workflow.InstanceBlocked
		case (sl.State == workflow.Failed || sl.State == workflow.Aborted) && out == workflow.InstanceSucceeded &&
			!m.handled(sl):
			out = workflow.InstanceFailed
		}
	}
	switch {
	case m.broken:
		return workflow.InstanceBlocked
	case m.final:
		return workflow.InstanceSucceeded
	case m.def.Final != nil && m.def.Flow() == nil && out != workflow.InstanceBlocked:
		return workflow.InstanceFailed
	}
	return out
}

// handled reports whether a failure was released, or a task took it up that asked
// for it and started.
func (m *Meaning) handled(sl *Slot) bool {
	if sl.outcome != nil && sl.outcome.action.Kind == workflow.FailRelease {
		return true
	}
	for _, d := range m.slots {
		asks := false
		d.Task.Rule.Terms(func(r *workflow.Rule) {
			asks = asks || (r.Op == workflow.OpTask && r.Transition == workflow.BecameFailed && r.Task == sl.Task.Name)
		})
		if asks && d.Current.start != none {
			return true
		}
	}
	return false
}
