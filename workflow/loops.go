package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// MaxRounds bounds repeat: {times: N} where tasks wait for tasks: each round is written out.
const MaxRounds = 64

// MaxRepeats bounds how often repeat: {times: N} lets a task fire.
const MaxRepeats = 1_000_000

// loop is what a task with repeat says in a workflow whose tasks wait for tasks: what lies on the ways
// from first to last is done again while a condition holds (docs/language.md, Loops). The reader writes
// the rounds out as tasks, so that nothing else knows of loops.
type loop struct {
	first, last *Task
	times       int
	again       ast.Node // nil: it is always done so often
	while       string   // its one spelling
	at          *node    // where it is written
	body        map[*Task]bool
	around      *loop // the smallest one that contains it
}

// Loop is a loop as it is written: what repeat says of its last task.
type Loop struct {
	Last, First TaskName
	Times       int
	Tasks       []TaskName // those of one round as they are written, by name
}

// Round is where in its loops a task is. One that is written belongs to the first round of each.
type Round struct {
	Of   TaskName // the task that is written
	Loop TaskName // the last task of the smallest loop that contains it
	// Numbers are the rounds, from 1, of each loop that contains it, the outermost first. The end of a loop has none of
	// that loop.
	Numbers []int
	// Beside is what nobody wrote, and stands beside a task: what asks whether its loop goes on (again), what comes when
	// that has ended (end), what asks for the data of its rule (if), with ".else" for each that stands in for one of these.
	Beside string
}

func (x Round) String() string {
	words := make([]string, len(x.Numbers))
	for i, n := range x.Numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ".")
}

// looped are the loops of a definition.
type looped struct {
	*reader
	loops []*loop
	of    map[*Task]*loop // the smallest that contains a task
}

// repeatKeys are those of repeat as a mapping; from and while are for workflows whose tasks wait for tasks.
var repeatKeys = []key[Task]{
	{"times", func(r *reader, n *node, t *Task) { t.RepeatTimes = int(r.integer(n, 1, MaxRepeats)) }},
	{"from", func(r *reader, n *node, _ *Task) { r.name(n) }},
	{"while", kept[Task]},
}

// repeat reads true, false, or a mapping with a bound.
func (r *reader) repeat(n *node, t *Task) {
	if n.kind != mapNode {
		t.Repeat = r.boolean(n)
		return
	}
	inner := &Task{}
	if readMap(r, n, repeatKeys, inner) && r.written(inner, "times") == nil {
		r.on(n, "write times: N", "repeat does not say how often")
	}
	t.Repeat, t.RepeatTimes = true, inner.RepeatTimes
}

// checkRepeat reports what a task that repeats, in a workflow that is driven by its data, does not say, and what
// one that does not repeat says.
func (r *reader) checkRepeat(t *Task, driven bool) {
	switch {
	case !t.Repeat || !driven:
		r.refuse(t, "on-conflict", "write repeat: true, or leave it out",
			"on-conflict is about tasks that repeat in a workflow that is driven by its data")
	case r.written(t, "when") == nil:
		r.on(r.where(t, "repeat"), "write when: an expression over data; or repeat: {times: N, while: …}",
			"a task repeats at each data state that satisfies its when, and it has none")
	}
}

// loops tells the tasks that repeat at data states from the last ones of loops. A loop is where tasks wait
// for tasks, and wherever one says while or from.
func (r *reader) loops() *looped {
	l := &looped{reader: r, of: map[*Task]*loop{}}
	graph := false
	for _, t := range r.def.Tasks {
		n := r.written(t, "repeat")
		graph = graph || len(t.Rule.tasks()) > 0 || len(t.After) > 0 ||
			n != nil && (n.get("while") != nil || n.get("from") != nil)
	}
	for _, t := range r.def.Tasks {
		r.checkRepeat(t, !graph)
		if t.Repeat && graph {
			if x := l.read(t); x != nil {
				l.loops = append(l.loops, x)
			}
		}
	}
	return l
}

// read reads one loop; nil: it has a mistake.
func (l *looped) read(t *Task) *loop {
	at := l.written(t, "repeat")
	x := &loop{first: t, last: t, times: t.RepeatTimes, at: at}
	rounds := fmt.Sprintf("from 1 to %d; each round is written out as tasks of its own", MaxRounds)
	if n := at.get("times"); n != nil { // which of the two bounds it has was not known when it was read
		l.hint(n, fmt.Sprintf("from 1 to %d", MaxRepeats), rounds)
	}
	before := len(l.list)
	switch {
	case at.kind != mapNode:
		l.on(at, "write repeat: {times: N, while: CONDITION}",
			"where tasks wait for tasks a loop has a bound, and repeat: true has none")
	case x.times > MaxRounds && x.times <= MaxRepeats:
		l.on(at.get("times"), rounds, "%d is out of range where tasks wait for tasks", x.times)
	case t.ContingencyOnly:
		l.on(at, "leave out its repeat", "%s is only a contingency or a compensation: nothing starts its rounds", t.Name)
	}
	if from := at.get("from"); from != nil && ValidName(from.text) {
		if x.first = l.def.Task(TaskName(from.text)); x.first == nil {
			l.on(from, l.scope.memory.didYouMean(from.text, l.scope.tasks), "there is no task %q", from.text)
		}
	}
	l.condition(x, t)
	if len(l.list) > before || x.times < 1 || x.times > MaxRounds || x.first == nil {
		return nil
	}
	t.Repeat, t.RepeatTimes = false, 0
	return x
}

// condition reads under which condition a loop goes on.
func (l *looped) condition(x *loop, t *Task) {
	n := x.at.get("while")
	if n == nil || n.isNull() {
		asks := false
		t.Rule.Terms(func(leaf *Rule) { asks = asks || leaf.Op == OpData })
		if asks && x.at.kind == mapNode {
			l.on(x.at, "write while: CONDITION beside times; when is asked before the first round alone",
				"%s has a when about data, and its repeat does not say under which condition it is done again", t.Name)
		}
		return
	}
	e := l.expression(n, l.scope, boolType)
	if e == nil {
		return
	}
	if e.aged {
		l.within(n, 0, "have a task set data by it", "while is about data alone: instance.age has no place in it")
	}
	x.again, x.while = l.syntax(n), e.spelling
}

// The limits of loops of several tasks, so that finding out what belongs to each costs little.
const (
	maxLoops  = 100
	maxBodies = 20 * MaxTasks // tasks of all of them together
)

// nest finds what belongs to each loop, and that loops do not cross. It reports whether all is well.
func (l *looped) nest() bool {
	before := len(l.list)
	g := l.def.ways()
	several, bodies := 0, 0
	for _, x := range l.loops {
		x.body = map[*Task]bool{x.last: true}
		if x.first == x.last {
			continue
		}
		if several++; several > maxLoops || bodies > maxBodies {
			l.on(x.at, "cut it into sub-workflows",
				"the loops of several tasks are too many, or too large: at most %d are allowed, and %d tasks in all of them",
				maxLoops, maxBodies)
			return false
		}
		x.body = g.between(x.first, x.last)
		if bodies += len(x.body); len(x.body) == 0 {
			l.on(x.at.get("from"), "name a task for which "+string(x.last.Name)+" waits, directly or not",
				"no way leads from %s to %s", x.first.Name, x.last.Name)
		}
	}
	if len(l.list) > before {
		return false
	}
	slices.SortFunc(l.loops, func(a, b *loop) int {
		return cmp.Or(len(a.body)-len(b.body), strings.Compare(string(a.last.Name), string(b.last.Name)))
	})
	top := map[*Task]*loop{} // the largest so far that contains a task
	for _, y := range l.loops {
		common := map[*loop][]TaskName{}
		for t := range y.body {
			if x := top[t]; x != nil {
				common[x] = append(common[x], t.Name)
			}
			if top[t] = y; l.of[t] == nil {
				l.of[t] = y
			}
		}
		for x, tasks := range common {
			x.around = y
			if len(tasks) < len(x.body) || len(tasks) == len(y.body) {
				l.on(x.at, "one of two loops is within the other, or they have no task in common",
					"the loops that end with %s and with %s cross: %s is in both", x.last.Name, y.last.Name, slices.Min(tasks))
			}
		}
	}
	return len(l.list) == before
}

// path is the loops that contain x, and x, from the outermost.
func (x *loop) path() (out []*loop) {
	for ; x != nil; x = x.around {
		out = append(out, x)
	}
	slices.Reverse(out)
	return out
}

// ways is the order of tasks by their rules alone.
func (d *Definition) ways() *graph {
	g := &graph{tasks: d.Tasks, index: make(map[TaskName]int, len(d.Tasks)), before: make([][]int, len(d.Tasks))}
	for i, t := range d.Tasks {
		g.index[t.Name] = i
	}
	for i, t := range d.Tasks {
		for _, name := range t.Rule.tasks() {
			if p, ok := g.index[name]; ok {
				g.before[i] = append(g.before[i], p)
			}
		}
	}
	return g
}

// between are the tasks on the ways from one to another, both included; empty: there is no way.
func (g *graph) between(from, to *Task) map[*Task]bool {
	after := make([][]int, len(g.tasks))
	for i, before := range g.before {
		for _, p := range before {
			after[p] = append(after[p], i)
		}
	}
	ahead, behind := reached(g.index[from.Name], after), reached(g.index[to.Name], g.before)
	out := map[*Task]bool{}
	for i := range ahead {
		if behind[i] {
			out[g.tasks[i]] = true
		}
	}
	return out
}

// reached are all nodes to which edges lead, with the one at which they begin.
func reached(from int, edges [][]int) map[int]bool {
	seen := map[int]bool{from: true}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range edges[queue[0]] {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return seen
}

// checkBodies reports what has no place in a loop.
func (l *looped) checkBodies() {
	stands := map[TaskName]TaskName{}
	for _, t := range l.def.Tasks {
		for _, name := range []TaskName{t.Contingency, t.Compensate.task()} {
			if name != "" {
				stands[name] = t.Name
			}
		}
	}
	for _, t := range l.def.Tasks {
		x := l.of[t]
		if x == nil {
			l.checkOutside(t)
			continue
		}
		within := fmt.Sprintf("in the loop that ends with %s", x.last.Name)
		if t.Produces.Name != "" {
			l.on(l.where(t, "produces"), "have a task after the loop make the data set",
				"%s makes a data set %s: each round would make it (not yet)", t.Name, within)
		}
		if t.TimeToWait > 0 && slices.ContainsFunc(x.path(), func(y *loop) bool { return y.first != t }) {
			l.on(l.where(t, "time-to-wait"), "leave it out, or have the task come before the loop",
				"%s has time-to-wait %s: it would start in rounds that are not needed", t.Name, within)
		}
		if by := stands[t.Name]; by != "" {
			l.on(l.head(t), "name a task without after and when", "%s stands in for or undoes %s, and is %s", t.Name, by, within)
		}
		for _, name := range []TaskName{t.Contingency, t.Compensate.task()} {
			if c := l.def.Task(name); c != nil && !c.ContingencyOnly && l.of[c] == nil {
				l.on(l.head(t), "leave out after and when of "+string(name),
					"%s is %s, and %s, which stands in for it or undoes it, has a rule of its own", t.Name, within, name)
			}
		}
		for _, name := range t.Rule.tasks() {
			if c := l.def.Task(name); c != nil && c.ContingencyOnly {
				l.on(l.ruleNode(t), "ask for the task in whose place it is",
					"%s is %s, and asks for %s, which is only a contingency", t.Name, within, name)
			}
		}
	}
	l.checkAllocation()
}

// checkOutside reports an emergency trigger that asks whether one of a loop failed: no round that was not needed
// must fire it.
func (l *looped) checkOutside(t *Task) {
	if t.TimeToWait == 0 {
		return
	}
	t.Rule.Terms(func(leaf *Rule) {
		if leaf.Op == OpTask && leaf.Transition == BecameFailed && l.of[l.def.Task(leaf.Task)] != nil {
			l.on(l.where(t, "time-to-wait"), "leave time-to-wait out, or ask for a task after the loop",
				"%s has time-to-wait and asks whether %s failed, which is done in rounds (not yet)", t.Name, leaf.Task)
		}
	})
}

// checkAllocation reports constraints of allocation that name a task which is done in rounds.
func (l *looped) checkAllocation() {
	n := l.written(l.def, "constraints")
	for i, c := range l.def.Constraints {
		if c.Violated == nil || i >= len(n.items) {
			continue
		}
		at := n.items[i].get("violated")
		tree := l.syntax(at)
		if tree == nil {
			continue
		}
		var texts textFinder
		ast.Walk(&tree, &texts)
		for _, text := range texts {
			if t := l.def.Task(TaskName(text)); t != nil && l.of[t] != nil {
				l.on(at, "take the task out of the loop, or ask for task.role",
					"the constraint %s names %s, which is done in rounds, each a task of its own (not yet)", c.Name, text)
			}
		}
	}
}

type textFinder []string

func (f *textFinder) Visit(n *ast.Node) {
	if s, ok := (*n).(*ast.StringNode); ok {
		*f = append(*f, s.Value)
	}
}
