package diagram

import (
	"fmt"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// scene is what is drawn, before anybody decides where.
type scene struct {
	title string
	doc   string
	lanes []lane
	boxes []box
	index map[workflow.TaskName]int
	edges []edge
	place []int // of each box in the order of the definition

	leftOut int // arrows that are not drawn
	steps   int // what laying it out took
}

// lane is a partition, or the contingencies that are in none.
type lane struct {
	name    string
	partner string
	boxes   []int
}

type box struct {
	task  *workflow.Task
	lane  int
	state workflow.State // empty: none is known
	known string         // as of when, where that is long ago
}

// edge leads from the box that is waited for to the one that waits.
type edge struct {
	from, to int
	kind     edgeKind
	label    string // empty for a success
}

type edgeKind string

const (
	success edgeKind = "success"
	failure edgeKind = "failure"
	other   edgeKind = "other" // ready, running, and what is negated
	standIn edgeKind = "contingency"
	undoing edgeKind = "compensation"
)

func newScene(d *workflow.Definition, opt Options) *scene {
	s := &scene{title: string(d.Name), doc: d.Doc, index: map[workflow.TaskName]int{}}
	for _, t := range d.Tasks {
		s.index[t.Name] = len(s.boxes)
		s.boxes = append(s.boxes, box{task: t, lane: -1, state: opt.States[t.Name], known: opt.Known[t.Name]})
	}
	for _, p := range d.Partitions {
		partner := opt.Partners[p.Name]
		if partner == "" {
			partner = p.Partner
		}
		s.addLane(lane{name: string(p.Name), partner: partner}, p.Tasks)
	}
	var rest []workflow.TaskName
	for _, b := range s.boxes {
		if b.lane < 0 {
			rest = append(rest, b.task.Name)
		}
	}
	if len(rest) > 0 {
		s.addLane(lane{name: "any available partner"}, rest)
	}
	for _, t := range d.Tasks {
		s.addEdges(t)
	}
	s.place = make([]int, len(s.boxes))
	for i, name := range d.TopoOrder() {
		s.place[s.index[name]] = i
	}
	return s
}

func (s *scene) addLane(l lane, tasks []workflow.TaskName) {
	for _, name := range tasks {
		i := s.index[name]
		s.boxes[i].lane = len(s.lanes)
		l.boxes = append(l.boxes, i)
	}
	s.lanes = append(s.lanes, l)
}

// addEdges adds what t waits for, what takes its place and what undoes it.
func (s *scene) addEdges(t *workflow.Task) {
	to := s.index[t.Name]
	seen := map[edge]bool{}
	add := func(e edge) {
		if !seen[e] {
			seen[e] = true
			s.edges = append(s.edges, e)
		}
	}
	t.Rule.Terms(func(leaf *workflow.Rule) {
		if leaf.Op == workflow.OpTask {
			kind, label := termLook(leaf)
			add(edge{s.index[leaf.Task], to, kind, label})
		}
	})
	if t.Contingency != "" {
		add(edge{to, s.index[t.Contingency], standIn, "contingency"})
	}
	if t.Compensate != nil && t.Compensate.Task != "" {
		add(edge{to, s.index[t.Compensate.Task], undoing, "undo"})
	}
}

func termLook(leaf *workflow.Rule) (edgeKind, string) {
	switch {
	case leaf.Negated:
		return other, "not " + string(leaf.Transition)
	case leaf.Transition == workflow.BecameSucceeded:
		return success, ""
	case leaf.Transition == workflow.BecameFailed:
		return failure, "failed"
	}
	return other, string(leaf.Transition)
}

// byPeople reports whether a person performs the task.
func (b box) byPeople() bool {
	return b.task.Type == workflow.Manual || b.task.Type == workflow.SemiAutomatic
}

// detail says who or what performs the task.
func (b box) detail() string {
	t := b.task
	switch t.Type {
	case workflow.Manual:
		return orElse(string(t.Role), "anyone")
	case workflow.SemiAutomatic:
		return fmt.Sprintf("%s, %s", t.Role, t.Application)
	case workflow.SubWorkflow:
		return "workflow " + string(t.Uses.Workflow)
	}
	return string(t.Application)
}

// condition is what the task's rule asks of data, or empty.
func (b box) condition() string {
	var asked []string
	b.task.Rule.Terms(func(leaf *workflow.Rule) {
		if leaf.Op == workflow.OpData {
			asked = append(asked, leaf.Data.String())
		}
	})
	if len(asked) == 0 {
		return ""
	}
	return "if " + strings.Join(asked, "; ")
}

// wait is the time-to-wait, or empty.
func (b box) wait() string {
	if b.task.TimeToWait == 0 {
		return ""
	}
	return workflow.FormatDuration(b.task.TimeToWait)
}

// description tells all that matters of a task, for those who point at it or
// cannot see it.
func (s *scene) description(i int) string {
	b := s.boxes[i]
	parts := []string{fmt.Sprintf("%s: %s", b.task.Name, b.task.Type), b.detail(), "partition " + s.lanes[b.lane].name}
	if b.state != "" {
		parts = append(parts, string(b.state))
	}
	if b.known != "" {
		parts = append(parts, b.known)
	}
	if len(b.task.After) > 0 {
		parts = append(parts, "after "+join(b.task.After))
	}
	if b.task.When != "" {
		parts = append(parts, "when "+strings.TrimSpace(b.task.When))
	}
	if w := b.wait(); w != "" {
		parts = append(parts, "starts by itself when undecided for "+w)
	}
	if b.task.Timeout > 0 {
		parts = append(parts, "timeout "+workflow.FormatDuration(b.task.Timeout))
	}
	return strings.Join(parts, "; ")
}

func join(names []workflow.TaskName) string {
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = string(n)
	}
	return strings.Join(words, ", ")
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
