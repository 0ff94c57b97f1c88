package choreo

import (
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says who has to do with the files that are among an instance's data
// (workflow.File). The facts carry references only; node/files keeps and fetches content.

// giving is a file that a data item had.
type giving struct {
	item workflow.DataName
	file string // workflow.File
}

// noteGivers notes who gave the files that a success brought. A giver is noted once, in the order in
// which the successes were learned; that costs nothing where there are no files.
func (s *State) noteGivers(a *Attempt, ok *entry) {
	for n, v := range ok.gave() {
		text, is := v.(string)
		if !is || !isFile(s.decls[n]) {
			continue
		}
		g, author := giving{n, text}, givenAt(a, ok)
		if slices.Contains(s.givers[g], author) {
			continue
		}
		if s.givers == nil {
			s.givers = map[giving][]workflow.PartnerID{}
		}
		s.givers[g] = append(s.givers[g], author)
	}
}

// GivenBy are the partners that ever gave a data item this file, each once: who started
// the instance with it, and who ended a task with it, whether or not that counts now. So they
// may have the content; whoever takes part may say so of a reference that it read, so it
// gives nobody a right.
func (m *Machine) GivenBy(n workflow.DataName, file string) (by []workflow.PartnerID) {
	if initiator := m.log.genesis.strand.chain.id.Author; m.state.genesis.Input[n] == file && isFile(m.state.decls[n]) {
		by = append(by, initiator)
	}
	for _, p := range m.state.givers[giving{item: n, file: file}] {
		if m.log.steps++; !slices.Contains(by, p) {
			by = append(by, p)
		}
	}
	return by
}

// Reads reports whether a partner has, or had, a task that reads a data item. With a role
// only a task counts that may says the partner could begin: whoever takes part can give
// itself another's contingency, and only shows its role when it starts.
func (m *Machine) Reads(p workflow.PartnerID, n workflow.DataName, may func(workflow.RoleName) bool) bool {
	return slices.ContainsFunc(m.state.slots, func(sl *Slot) bool {
		return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
			return a.Partner == p && slices.Contains(inputs(a.Task), n) && (a.Task.Role == "" || may(a.Task.Role))
		})
	})
}

// Reading is a file that a task reads which can begin, or runs.
type Reading struct {
	Item workflow.DataName
	File workflow.File
}

// beingRead are the files that this node's tasks read: of each item, how many tasks that can
// begin or run; and, once asked for, which files these are now.
type beingRead struct {
	tasks map[workflow.DataName]int
	by    map[*Slot]*workflow.Task // whose tasks these are
	files []Reading
	known bool
}

// look follows what a slot reads.
func (r *beingRead) look(sl *Slot, m *Machine) {
	if r.tasks == nil {
		r.tasks, r.by = map[workflow.DataName]int{}, map[*Slot]*workflow.Task{}
	}
	var reads *workflow.Task
	if a := sl.Current; a.Partner == m.self && (sl.State == workflow.Ready || sl.State == workflow.Running) {
		reads = a.Task
	}
	if was := r.by[sl]; was != reads {
		r.count(was, -1, m.state.decls)
		r.count(reads, +1, m.state.decls)
		if r.by[sl] = reads; reads == nil {
			delete(r.by, sl)
		}
	}
}

// count counts that a task reads its files now, or, with by = -1, does so no more.
func (r *beingRead) count(t *workflow.Task, by int, decls map[workflow.DataName]*workflow.DataDecl) {
	if t == nil {
		return
	}
	for _, n := range inputs(t) {
		if !isFile(decls[n]) {
			continue
		}
		was := r.tasks[n]
		if r.tasks[n] = was + by; was == 0 || was+by == 0 {
			r.known = false
		}
		if was+by == 0 {
			delete(r.tasks, n)
		}
	}
}

// mayMiss reports whether a partner may say of an attempt that the content of a file is lost that its task
// reads. Only its holder asks for that content; what others think of it is nobody's proof.
func (s *State) mayMiss(a *Attempt, author workflow.PartnerID) bool {
	return a.Partner == author &&
		slices.ContainsFunc(a.Task.In, func(n workflow.DataName) bool { return isFile(s.decls[n]) })
}

// missing is the incident that the content of a file is lost for good which an attempt was to read.
func (a *Attempt) missing() (IncidentView, bool) {
	for _, r := range a.rulings {
		if v := r.at.fact.Body.Verdict; v.Cause == CauseLost && !r.void {
			what := string(a.Task.Name) + ": " + reasonOf(v)
			return IncidentView{At: r.at.fact.At, Task: a.Task.Name, Who: a.Partner, What: what}, true
		}
	}
	return IncidentView{}, false
}

func isFile(d *workflow.DataDecl) bool { return d != nil && d.Type == workflow.TypeFile }

// takeRefiled reports whether a file among the data became another, or none, since it was last called.
func (s *State) takeRefiled() bool {
	refiled := s.refiled
	s.refiled = false
	return refiled
}

// FilesToRead are the files that tasks read which can begin or run with this partner, in the
// order of their items. They are not to be changed.
func (m *Machine) FilesToRead() []Reading {
	r := &m.look().reading
	if refiled := m.state.takeRefiled(); r.known && !refiled {
		return r.files
	}
	r.files, r.known = nil, true
	for _, n := range slices.Sorted(maps.Keys(r.tasks)) {
		m.log.steps++
		if f, given := m.file(n); given {
			r.files = append(r.files, Reading{Item: n, File: f})
		}
	}
	return r.files
}

// PeopleRead are the people's tasks that can begin or run with this partner and read a data item, by name.
func (m *Machine) PeopleRead(n workflow.DataName) (out []workflow.TaskName) {
	for _, t := range m.look().reading.by {
		if !t.ByNode() && slices.Contains(inputs(t), n) {
			out = append(out, t.Name)
		}
	}
	slices.Sort(out)
	return out
}

// FilesOf are the files that a task reads, as they are now.
func (m *Machine) FilesOf(t *workflow.Task) (out []workflow.File) {
	for _, n := range inputs(t) {
		if f, given := m.file(n); given {
			out = append(out, f)
		}
	}
	return out
}

// file is the file that a data item is now; false: it is none, or was not given.
func (m *Machine) file(n workflow.DataName) (f workflow.File, given bool) {
	text, given := m.state.values[n].(string)
	if !given || !isFile(m.state.decls[n]) {
		return f, false
	}
	f, err := workflow.ParseFile(text)
	return f, err == nil // a fact with anything else would not count
}

// ValueOf is the value of a data item now; nil: it has none.
func (m *Machine) ValueOf(n workflow.DataName) workflow.Value { return m.state.values[n] }
