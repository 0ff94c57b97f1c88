package workflow

import "slices"

// checkWaits reports emergency triggers whose worst case is not finite: a
// task before them has no timeout. Behind another trigger nothing is asked, as
// that one is checked itself.
func (r *reader) checkWaits() {
	w := &waits{def: r.def, known: map[*Task]bool{}, bounded: map[*Task]bool{}}
	for _, t := range r.def.Tasks {
		if t.TimeToWait == 0 || r.full() || w.all(t.Rule.tasks()) {
			continue
		}
		r.on(r.where(t, "time-to-wait"), "give each of them a timeout, so that the longest wait is known",
			"time-to-wait needs a timeout on every path before %s: there is none at %s", t.Name,
			joined(w.open(t), ", "))
	}
}

// waits finds out which tasks end within a time that the definition implies.
type waits struct {
	def            *Definition
	known, bounded map[*Task]bool
	steps          int // of one search for what is open
}

// maxOpenSteps bounds how far tasks without a timeout are looked for: enough to
// name them all in what people write.
const maxOpenSteps = 20 * MaxTasks

func (w *waits) all(names []TaskName) bool {
	for _, name := range names {
		if t := w.def.Task(name); t != nil && !w.ends(t) {
			return false
		}
	}
	return true
}

// ends reports whether t, and whatever takes its place, ends within a time that
// is known. (A cycle is reported elsewhere.)
func (w *waits) ends(t *Task) bool {
	if w.known[t] {
		return w.bounded[t]
	}
	w.known[t], w.bounded[t] = true, true
	w.bounded[t] = t.Timeout > 0 && w.all([]TaskName{t.Contingency}) && (t.TimeToWait > 0 || w.all(t.Rule.tasks()))
	return w.bounded[t]
}

// open are the tasks before t that have no timeout, with the contingencies that
// may take their place, by name.
func (w *waits) open(t *Task) []TaskName {
	w.steps = 0
	seen := map[*Task]bool{t: true}
	var open []TaskName
	var visit func(names ...TaskName)
	visit = func(names ...TaskName) {
		for _, name := range names {
			p := w.def.Task(name)
			if p == nil || seen[p] || w.steps > maxOpenSteps {
				continue
			}
			seen[p] = true
			if p.Timeout == 0 {
				open = append(open, p.Name)
			}
			w.steps++
			visit(p.Contingency)
			if p.TimeToWait == 0 {
				visit(p.Rule.tasks()...)
			}
		}
	}
	visit(t.Rule.tasks()...)
	slices.Sort(open)
	return open
}
