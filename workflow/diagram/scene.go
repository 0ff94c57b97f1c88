package diagram

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// scene is what is drawn, before anybody decides where.
type scene struct {
	language string
	title    string
	doc      string
	lanes    []lane
	boxes    []box
	index    map[workflow.TaskName]int
	edges    []edge
	place    []int // of each box in the order of the definition

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
	s := &scene{language: opt.Language, title: d.Called(), doc: d.Doc, index: map[workflow.TaskName]int{}}
	for _, t := range d.Written() {
		s.index[t.Name] = len(s.boxes)
		s.boxes = append(s.boxes, box{task: t, lane: -1, state: opt.States[t.Name], known: s.age(opt.Known[t.Name])})
	}
	for _, p := range d.Partitions {
		partner := opt.Partners[p.Name]
		if partner == "" {
			partner = p.Partner
		}
		s.addLane(lane{name: cmp.Or(p.Label, string(p.Name)), partner: partner}, p.Tasks)
	}
	var rest []workflow.TaskName
	for _, b := range s.boxes {
		if b.lane < 0 {
			rest = append(rest, b.task.Name)
		}
	}
	if len(rest) > 0 {
		s.addLane(lane{name: s.say("any available partner")}, rest)
	}
	for _, t := range d.Written() {
		s.addEdges(t)
	}
	s.place = make([]int, len(s.boxes))
	for i, name := range d.TopoOrder() {
		if box, drawn := s.index[name]; drawn {
			s.place[box] = i
		}
	}
	s.orderLanes()
	return s
}

// orderLanes puts the lanes in the order in which work comes to them.
func (s *scene) orderLanes() {
	first := func(l lane) int {
		least := len(s.boxes)
		for _, i := range l.boxes {
			least = min(least, s.place[i])
		}
		return least
	}
	slices.SortStableFunc(s.lanes, func(a, b lane) int { return first(a) - first(b) })
	for i, l := range s.lanes {
		for _, box := range l.boxes {
			s.boxes[box].lane = i
		}
	}
}

func (s *scene) addLane(l lane, tasks []workflow.TaskName) {
	for _, name := range tasks {
		i, drawn := s.index[name]
		if !drawn {
			continue
		}
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
			kind, label := s.termLook(leaf)
			add(edge{s.index[leaf.Task], to, kind, label})
		}
	})
	if t.Contingency != "" {
		add(edge{to, s.index[t.Contingency], standIn, s.say("contingency")})
	}
	if t.Compensate != nil && t.Compensate.Task != "" {
		add(edge{to, s.index[t.Compensate.Task], undoing, s.say("undo")})
	}
}

func (s *scene) termLook(leaf *workflow.Rule) (edgeKind, string) {
	became := s.say(string(leaf.Transition))
	switch {
	case leaf.Negated:
		return other, s.say("not %s", became)
	case leaf.Transition == workflow.BecameSucceeded:
		return success, ""
	case leaf.Transition == workflow.BecameFailed:
		return failure, s.say("failed")
	}
	return other, became
}

// byPeople reports whether a person performs the task.
func (b box) byPeople() bool {
	return b.task.Type == workflow.Manual || b.task.Type == workflow.SemiAutomatic
}

// detail says who or what performs the task.
func (s *scene) detail(b box) string {
	t := b.task
	switch t.Type {
	case workflow.Manual:
		return orElse(string(t.Role), s.say("anyone"))
	case workflow.SemiAutomatic:
		return fmt.Sprintf("%s, %s", t.Role, t.Application)
	case workflow.SubWorkflow:
		return s.say("workflow %s", t.Uses.Workflow)
	}
	return string(t.Application)
}

// condition is what the task's rule, or its condition as a trigger, asks of data, or empty.
func (s *scene) condition(b box) string {
	var asked []string
	if c := b.task.Condition; c != nil {
		asked = append(asked, c.String())
	}
	b.task.Rule.Terms(func(leaf *workflow.Rule) {
		if leaf.Op == workflow.OpData {
			asked = append(asked, leaf.Data.String())
		}
	})
	if len(asked) == 0 {
		return ""
	}
	return s.say("if %s", strings.Join(asked, "; "))
}

// wait is the time-to-wait, or empty.
func (b box) wait() string {
	if b.task.TimeToWait == 0 {
		return ""
	}
	return workflow.FormatDuration(b.task.TimeToWait)
}

// names is what people call the task and, where that is something else, its name.
func (b box) names() string {
	if b.task.Label == "" {
		return string(b.task.Name)
	}
	return fmt.Sprintf("%s (%s)", b.task.Label, b.task.Name)
}

// description tells all that matters of a task, for those who point at it or
// cannot see it.
func (s *scene) description(i int) string {
	b := s.boxes[i]
	parts := []string{
		fmt.Sprintf("%s: %s", b.names(), s.say(string(b.task.Type))), s.detail(b),
		s.say("partition %s", s.lanes[b.lane].name),
	}
	if b.state != "" {
		parts = append(parts, s.say(string(b.state)))
	}
	if b.known != "" {
		parts = append(parts, b.known)
	}
	if len(b.task.After) > 0 {
		parts = append(parts, s.say("after %s", join(b.task.After)))
	}
	if b.task.When != "" {
		parts = append(parts, s.say("when %s", strings.TrimSpace(b.task.When)))
	}
	if w := b.wait(); w != "" {
		parts = append(parts, s.say("starts by itself when undecided for %s", w))
	}
	if b.task.Timeout > 0 {
		parts = append(parts, s.say("timeout %s", workflow.FormatDuration(b.task.Timeout)))
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
