package study

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow/lxpdl"
)

// maxNames bounds the tasks, and the resources, of a scenario.
const maxNames = 1000

// taskSource is a task as written, before names are resolved.
type taskSource struct {
	node  ast.Node
	name  string
	roles []string
	time  float64 // 0: the scenario's mean
	after []place
}

var taskKeys = []string{"name", "roles", "role", "time", "after"}

func (p *scenarioParser) takeTasks(n ast.Node) {
	for _, node := range p.elements(n, "tasks", maxNames) {
		p.takeTask(node)
	}
}

func (p *scenarioParser) takeTask(node ast.Node) {
	t := taskSource{node: node}
	for _, e := range p.entries(node, "a task") {
		switch e.name {
		case "name":
			t.name, _ = p.text(e.node, "a task's name")
		case "roles", "role":
			t.roles = append(t.roles, names(p.texts(e.node, e.name))...)
		case "time":
			p.set(&t.time, e.node, "time", positive)
		case "after":
			p.graph = true
			t.after = p.predecessors(e.node)
		default:
			p.unknown(e, "a task", taskKeys)
		}
	}
	p.addTask(t)
}

// predecessors takes an after; an empty list says that a task begins at once.
func (p *scenarioParser) predecessors(n ast.Node) []place {
	if s, list := n.(*ast.SequenceNode); list && len(s.Values) == 0 {
		return nil
	}
	return p.texts(n, "after")
}

func (p *scenarioParser) addTask(t taskSource) {
	switch {
	case t.name == "":
		p.fail(t.node, "", "a task has no name")
	case p.task(t.name) >= 0:
		p.fail(t.node, "give each task its own name", "task %q is defined twice", t.name)
	}
	if len(t.roles) == 0 {
		p.fail(t.node, "add roles: [ROLE]", "task %q has no role, so nobody may perform it", t.name)
	}
	p.tasks = append(p.tasks, t)
}

// task is the index of a task, −1 when there is none of that name.
func (p *scenarioParser) task(name string) int {
	return slices.IndexFunc(p.tasks, func(t taskSource) bool { return t.name == name })
}

func names(ps []place) []string {
	ns := make([]string, len(ps))
	for i, pl := range ps {
		ns[i] = pl.text
	}
	return ns
}

// takeProcess takes the tasks from an LXPDL file.
func (p *scenarioParser) takeProcess(n ast.Node) {
	file, ok := p.text(n, "process")
	if !ok {
		return
	}
	if p.open == nil {
		p.fail(n, "write the tasks into the scenario", "the process %q cannot be read here", file)
		return
	}
	src, err := p.open(file)
	if err != nil {
		p.fail(n, "", "the process cannot be read: %v", err)
		return
	}
	process, err := lxpdl.Parse(file, src)
	if err != nil {
		p.fail(n, "", "the process has mistakes:\n%v", err)
		return
	}
	if len(process.Loops) > 0 {
		l := process.Loops[0]
		p.fail(n, "take the transition out of the file, or write the rounds as tasks",
			"the process goes back from %q to %q, and a study does each task once", l.Last, l.First)
		return
	}
	if len(process.Tasks) > maxNames {
		p.fail(n, "", "the process has %d tasks: it must have at most %d", len(process.Tasks), maxNames)
		return
	}
	p.graph = true
	before := process.Predecessors()
	for _, t := range process.Tasks {
		var after []place
		for _, b := range before[t.Name] {
			after = append(after, place{b, n})
		}
		p.addTask(taskSource{node: n, name: t.Name, roles: t.Roles, time: t.Time, after: after})
	}
}

// finishTasks resolves the order of the tasks, which without any after is the
// file's, and keeps only the critical path when asked to.
func (p *scenarioParser) finishTasks() {
	tasks := make([]Task, len(p.tasks))
	for i, t := range p.tasks {
		tasks[i] = Task{Name: aptitude.TaskID(t.name), Roles: t.roles, Time: t.time}
		if t.time == 0 {
			tasks[i].Time = p.scenario.MeanTime
		}
		if !p.graph && i > 0 {
			tasks[i].After = []int{i - 1}
		}
		for _, a := range t.after {
			if before := p.task(a.text); before < 0 {
				p.fail(a.node, "name a task, or add it", "task %q comes after %q, which is not a task", t.name, a.text)
			} else if !slices.Contains(tasks[i].After, before) {
				tasks[i].After = append(tasks[i].After, before)
			}
		}
	}
	order, stuck := topological(tasks)
	if len(stuck) > 0 {
		p.fail(p.tasks[stuck[0]].node, "remove one after:", "tasks wait for each other: %s", p.taskNames(stuck))
		return
	}
	p.scenario.Process = tasks
	if p.scenario.CriticalPath {
		tasks = only(tasks, costliestPath(tasks, order))
	}
	p.scenario.Tasks = tasks
}

func (p *scenarioParser) taskNames(indexes []int) string {
	var ns []string
	for _, i := range indexes {
		ns = append(ns, p.tasks[i].name)
	}
	return strings.Join(ns, ", ")
}

// topological orders the tasks so that each comes after its predecessors; the
// rest, which wait for each other, is stuck.
func topological(tasks []Task) (order, stuck []int) {
	placed := make([]bool, len(tasks))
	for progress := true; progress; {
		progress = false
		for i, t := range tasks {
			if !placed[i] && !slices.ContainsFunc(t.After, func(b int) bool { return !placed[b] }) {
				placed[i] = true
				order = append(order, i)
				progress = true
			}
		}
	}
	for i := range tasks {
		if !placed[i] {
			stuck = append(stuck, i)
		}
	}
	return order, stuck
}

// only keeps the tasks of a path, one after the other.
func only(tasks []Task, path []int) []Task {
	kept := make([]Task, len(path))
	for i, t := range path {
		kept[i] = tasks[t]
		kept[i].After = nil
		if i > 0 {
			kept[i].After = []int{i - 1}
		}
	}
	return kept
}
