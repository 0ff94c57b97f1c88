package runner

import "slices"

// turns is a queue in which instances take turns, so that one with a thousand
// ready tasks does not keep another's single task waiting. When the turn is one
// of those that a dispatching rule orders, the first of them by the rule takes
// it. Inside an instance the job with the highest priority comes first, else the order is that of
// arrival. The turn goes to the instance whose first job has the highest priority, but not past the one
// that has waited longest more than mostPassed times: whatever priority others write, everybody's turn
// comes. Its length is bounded by the node's limit of
// instances.
type turns struct {
	jobs    int                // that wait
	order   []string           // instances that wait, the next one first
	waiting map[string][]*work // by instance, never empty
	passed  map[string]int     // how often one that had waited longest was passed over for a higher priority
}

// mostPassed is how often that may be, in a row.
const mostPassed = 8

func (t *turns) push(w *work) {
	if t.waiting == nil {
		t.waiting, t.passed = make(map[string][]*work), make(map[string]int)
	}
	if len(t.waiting[w.Instance]) == 0 {
		t.order = append(t.order, w.Instance)
	}
	line := t.waiting[w.Instance]
	at := len(line)
	for at > 0 && line[at-1].Priority < w.Priority {
		at--
	}
	t.waiting[w.Instance] = slices.Insert(line, at, w)
	t.jobs++
}

// pop returns the job whose turn it is, or nil.
func (t *turns) pop() *work {
	if len(t.order) == 0 {
		return nil
	}
	at := t.first()
	instance := t.order[at]
	if longest := t.order[0]; t.waiting[instance][0].Priority > t.waiting[longest][0].Priority {
		t.passed[longest]++
	}
	delete(t.passed, instance)
	t.order = slices.Delete(t.order, at, at+1)
	w := t.waiting[instance][0]
	t.jobs--
	if rest := t.waiting[instance][1:]; len(rest) > 0 {
		t.waiting[instance] = rest
		t.order = append(t.order, instance)
	} else {
		delete(t.waiting, instance)
	}
	return w
}

// first is the place in order of the instance whose turn it is.
func (t *turns) first() int {
	next, at := t.waiting[t.order[0]][0], 0
	if t.passed[t.order[0]] >= mostPassed {
		return 0
	}
	for i, instance := range t.order {
		if w := t.waiting[instance][0]; w.Priority > next.Priority {
			next, at = w, i
		}
	}
	if next.Dispatching == "" {
		return at
	}
	for i, instance := range t.order {
		w := t.waiting[instance][0]
		if w.Priority == next.Priority && w.Dispatching == next.Dispatching && slices.Compare(w.Rank, next.Rank) < 0 {
			next, at = w, i
		}
	}
	return at
}

// remove takes w out and reports whether it was waiting.
func (t *turns) remove(w *work) bool {
	line := t.waiting[w.Instance]
	i := slices.Index(line, w)
	if i < 0 {
		return false
	}
	t.jobs--
	if line = slices.Delete(line, i, i+1); len(line) > 0 {
		t.waiting[w.Instance] = line
		return true
	}
	delete(t.waiting, w.Instance)
	delete(t.passed, w.Instance)
	t.order = slices.DeleteFunc(t.order, func(s string) bool { return s == w.Instance })
	return true
}
