package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

// round says which round a task belongs to: a number, from 1, for each loop that contains it, the outermost first.
type round []int

// first reports whether it is the first of all.
func (v round) first() bool { return !slices.ContainsFunc(v, func(n int) bool { return n > 1 }) }

// firstOf is the first of all rounds of what is in as many loops.
func firstOf(v round) round {
	out := make(round, len(v))
	for i := range out {
		out[i] = 1
	}
	return out
}

// with is the round in which the last number is n.
func (v round) with(n int) round { return append(slices.Clone(v[:len(v)-1]), n) }

// named is the name of a task in a round. In the first one it is the task's own.
func (v round) named(t *Task) TaskName {
	if v.first() {
		return t.Name
	}
	words := make([]string, len(v))
	for i, n := range v {
		words[i] = strconv.Itoa(n)
	}
	return t.Name + "." + TaskName(strings.Join(words, "."))
}

// called is the label of a task in a round, if the task has one. It does not say how many rounds there are, so
// that an amendment may change that.
func (v round) called(t *Task, sign string) string {
	if t.Label == "" {
		return ""
	}
	out := ""
	if !v.first() {
		for i, n := range v {
			out += map[bool]string{true: " · ", false: "."}[i == 0] + strconv.Itoa(n)
		}
	}
	if out += sign; len([]rune(out)) >= MaxLabel {
		return "" // of a loop in a loop in many others the name says enough
	}
	label := []rune(t.Label)
	return string(label[:min(len(label), MaxLabel-len([]rune(out)))]) + out
}

// all calls fn for each round of what is in these loops.
func all(path []*loop, fn func(v round)) {
	v := firstOf(make(round, len(path)))
	for {
		fn(slices.Clone(v))
		i := len(v) - 1
		for ; i >= 0 && v[i] == path[i].times; i-- {
			v[i] = 1
		}
		if i < 0 {
			return
		}
		v[i]++
	}
}

// expand writes out the rounds of all loops as tasks. Of a definition that has mistakes nothing is written out.
func (r *reader) expand(l *looped) {
	if len(l.loops) == 0 || len(r.list) > 0 || !l.nest() {
		return
	}
	l.checkBodies()
	e := &expansion{
		looped: l, rules: map[*Task]*roundRule{}, awaited: map[*loop]bool{}, made: map[*loop][]*Task{},
		own: map[*Task]Task{}, original: map[*Task]*Task{}, outer: map[*Task]int{},
	}
	if len(r.list) > 0 || !e.fits() {
		return
	}
	if r.doubting {
		e.suspect()
	}
	e.note()
	e.writeOut()
	if len(r.list) == 0 {
		r.check()
	}
}

// note keeps the definition as it is written.
func (e *expansion) note() {
	said := map[*Task]object{}
	for _, x := range e.loops {
		loop := Loop{Last: x.last.Name, First: x.first.Name, Times: x.times}
		for t := range x.body {
			loop.Tasks = append(loop.Tasks, t.Name)
		}
		slices.Sort(loop.Tasks)
		e.def.loops = append(e.def.loops, loop)
		o := object{"times": x.times}
		put(o, "from", x.first.Name, x.last.Name)
		put(o, "while", x.while, "")
		said[x.last] = o
	}
	slices.SortFunc(e.def.loops, func(a, b Loop) int { return strings.Compare(string(a.Last), string(b.Last)) })
	e.def.canonical = canonical(e.def, said)
	e.def.rounds = map[TaskName]Round{}
}

// expansion writes out loops.
type expansion struct {
	*looped
	rules    map[*Task]*roundRule // of tasks whose rule is another than the one written
	awaited  map[*loop]bool       // something outside waits for the success of its last task
	made     map[*loop][]*Task    // what is new, by the outermost loop
	own      map[*Task]Task       // as they are written
	original map[*Task]*Task      // of what is new, the task in whose partition it is
	outer    map[*Task]int        // in which round of the outermost loop it is
}

// roundRule is the rule of a task in the making.
type roundRule struct {
	after []TaskName
	when  []string // all of them must hold
	at    *node    // of what was written
}

// fits reports whether the rounds can be written out within the limits of a definition, before that is done.
func (e *expansion) fits() bool {
	tasks, bytes, most := 0, 0, e.loops[len(e.loops)-1]
	for _, t := range e.def.Tasks {
		times, size := 1, 0
		for _, n := range e.places[t] {
			size += n.size()
		}
		for _, x := range e.of[t].path() {
			if times *= x.times; times > MaxTasks {
				break
			}
		}
		of := times
		spares, _ := e.stands(t)
		if x := e.of[t]; x != nil && t.when != "" {
			of += times * (2 + spares) // what asks whether its when holds, and what stands in for that
		}
		if x := e.of[t]; x != nil && x.last == t && x.again != nil {
			of += (times + times/x.times) * (2 + spares) // what asks whether the loop goes on, and its end
		}
		tasks, bytes = tasks+of, bytes+size*min(times, 2*MaxSource/max(size, 1)+1) // it fits into 32 bits
		if tasks > 2*MaxTasks || bytes > 2*MaxSource {
			break
		}
	}
	switch {
	case tasks > MaxTasks:
		e.on(most.at, "have fewer rounds, or make the loop a workflow of its own",
			"with the rounds of its loops written out the definition may have more than %d tasks", MaxTasks)
	case bytes > MaxSource:
		e.on(most.at, "have fewer rounds, or make the loop a workflow of its own",
			"with the rounds of its loops written out the definition has more than %d bytes", MaxSource)
	default:
		return true
	}
	return false
}

// writeOut makes the tasks of all rounds, and then their rules, which may mention any of them.
func (e *expansion) writeOut() {
	for _, t := range e.def.Tasks {
		e.own[t] = *t
		for _, name := range t.Rule.tasks() {
			e.awaits(t, e.def.Task(name))
		}
	}
	for _, t := range slices.Clone(e.def.Tasks) {
		x := e.of[t]
		if x == nil {
			if slices.ContainsFunc(t.Rule.tasks(), func(n TaskName) bool { return e.of[e.def.Task(n)] != nil }) {
				e.rule(t, t, nil)
			}
			continue
		}
		delete(e.places[t], "repeat")
		all(x.path(), func(v round) { e.round(t, v) })
	}
	for _, x := range e.loops {
		all(x.path()[:len(x.path())-1], func(v round) { e.end(x, v) })
	}
	if len(e.list) > 0 {
		return
	}
	e.place()
	for _, t := range slices.Clone(e.def.Tasks) {
		if rule := e.rules[t]; rule != nil {
			e.settle(t, rule)
		}
	}
}

// awaits notes that the success of the last task of a loop is waited for outside.
func (e *expansion) awaits(t, of *Task) {
	x := e.of[of]
	if x == nil || x.last != of || x.body[t] {
		return
	}
	t.Rule.Terms(func(leaf *Rule) {
		if leaf.Op == OpTask && leaf.Task == of.Name && leaf.Transition == BecameSucceeded {
			e.awaited[x] = true
		}
	})
}

// round makes a task in one round.
func (e *expansion) round(t *Task, v round) {
	own, c := e.own[t], t
	e.def.rounds[t.Name] = Round{Of: t.Name, Loop: e.of[t].last.Name, Numbers: firstOf(v)}
	if !v.first() {
		c = &Task{}
		*c = own
		c.Name, c.Label = v.named(t), v.called(t, "")
		e.add(c, t, v)
	}
	e.rule(c, t, v)
	if x := e.of[t]; x.last == t && x.again != nil && x.times > 1 && e.judges(x, v[len(v)-1]) {
		e.judge(x, v)
	}
}

// judges reports whether there is a task that says after a round, of which there is another number, that it is over. One
// of that name which was kept says nothing of the loop as it is now.
func (e *expansion) judges(x *loop, n int) bool {
	_, releases := e.stands(x.last)
	return releases || n < x.times
}

// stands is how many tasks stand in for a task, one after the other, and whether the failure of the last releases.
func (e *expansion) stands(t *Task) (n int, releases bool) {
	for ; n <= maxContingencies; n++ {
		if t.OnFailure == FailRelease {
			return n, true
		}
		if t = e.def.Task(t.Contingency); t == nil {
			break
		}
	}
	return n, false
}

// spare has others stand in for what was made beside a task, as often as for that: a partition may fail as a whole.
func (e *expansion) spare(g, of *Task, v round) {
	n, releases := e.stands(of)
	if releases {
		n++
	}
	for range n {
		c := &Task{}
		*c = *g
		c.Name, c.ContingencyOnly, c.OnFailure, c.Contingency = g.Name+".else", true, FailBlock, ""
		e.add(c, of, v)
		e.places[c] = map[string]*node{}
		delete(e.original, c) // it is in no partition
		g.OnFailure, g.Contingency = FailContingency, c.Name
		g = c
	}
}

// add takes in what is new.
func (e *expansion) add(c, of *Task, v round) {
	path := e.of[of].path()
	if e.def.index[c.Name] != nil || !ValidName(string(c.Name)) {
		e.on(path[0].at, "rename it, or one of the tasks of the loop; a name has at most 128 bytes",
			"its rounds need a task %s, which is a task already, or no name", excerpt(string(c.Name)))
		return
	}
	e.heads[c], e.places[c] = e.heads[of], maps.Clone(e.places[of])
	if e.places[c] == nil {
		e.places[c] = map[string]*node{}
	}
	e.def.index[c.Name] = c
	beside := strings.TrimPrefix(strings.TrimPrefix(string(c.Name), string(v.named(of))), ".")
	e.def.rounds[c.Name] = Round{Of: of.Name, Loop: e.of[of].last.Name, Numbers: v, Beside: beside}
	e.scope.known[c.Name] = true
	e.made[path[0]] = append(e.made[path[0]], c)
	e.original[c], e.outer[c] = of, MaxRounds+1
	if len(v) > 0 {
		e.outer[c] = v[0]
	}
}

// asker makes an automatic task that writes down once whether a condition about data holds, for a rule that must
// not see how that changes later; it gives the data item. What is null does not hold.
func (e *expansion) asker(of *Task, v round, name TaskName, label string, condition ast.Node) (*Task, DataName) {
	item := itemOf(name)
	g := e.step(of, v, name, label)
	g.Application, g.Out = AppSet, []DataName{item}
	at := e.of[of].path()[0].at
	if e.scope.data[item] != nil || e.scope.conditions[item] != nil {
		e.on(at, "rename it, or the task", "the rounds of %s need data %s, which is there already", of.Name, item)
		return g, item
	}
	decl := &DataDecl{Name: item, Type: TypeBoolean}
	e.heads[decl] = at
	e.scope.data[decl.Name] = decl
	e.def.Data = append(e.def.Data, *decl)
	text := spell(&ast.BinaryNode{Operator: "??", Left: condition, Right: &ast.BoolNode{Value: false}})
	if set := e.expression(textAt(at, text), e.scope, boolType); set != nil {
		g.With.Set = map[DataName]*Expr{item: set}
	}
	return g, item
}

// step makes an automatic task beside another, which does nothing.
func (e *expansion) step(of *Task, v round, name TaskName, label string) *Task {
	g := &Task{
		Name: name, Label: label, Type: Automatic, Application: AppNoop, OnFailure: FailBlock, Reconcile: KeepFirst,
		OnConflict: ConflictApply, Urgency: DefaultUrgency, Timeout: e.own[of].Timeout,
	}
	e.add(g, of, v)
	e.places[g] = map[string]*node{}
	return g
}

// textAt is a text as if it stood at a place.
func textAt(at *node, text string) *node {
	return &node{kind: scalarNode, line: at.line, col: at.col, value: text, text: text}
}

// judge makes the task that says, after a round, whether there is another.
func (e *expansion) judge(x *loop, v round) {
	name, label := v.named(x.last)+".again", v.called(x.last, " ↻")
	var g *Task
	if v[len(v)-1] < x.times {
		g, _ = e.asker(x.last, v, name, label, x.again)
	} else {
		g = e.step(x.last, v, name, label)
	}
	e.rules[g] = &roundRule{after: []TaskName{v.named(x.last)}, at: x.at}
	e.spare(g, x.last, v)
}

// goesOn is what a rule asks so that the round of a loop after v has begun: a task that has succeeded, and data
// that hold; none: always.
func (e *expansion) goesOn(x *loop, v round) (TaskName, []string) {
	if x.again == nil {
		return v.named(x.last), nil
	}
	g := v.named(x.last) + ".again"
	return g, []string{string(itemOf(g))}
}

// itemOf is the data item that a task writes which asks for something.
func itemOf(asker TaskName) DataName {
	if strings.ContainsFunc(string(asker), func(c rune) bool { return c >= utf8.RuneSelf }) {
		sum := sha256.Sum256([]byte(asker)) // of other alphabets no letter may stand in the name of data
		return DataName("round_" + hex.EncodeToString(sum[:8]))
	}
	return DataName(MakeDataName(string(asker)))
}

// ended is the task that has succeeded when a loop has ended well. v are the rounds of the loops around it.
func (e *expansion) ended(x *loop, v round) TaskName {
	if x.again == nil || x.times == 1 {
		return append(slices.Clone(v), x.times).named(x.last)
	}
	return v.named(x.last) + ".end"
}

// end makes the task for which those wait that wait for a loop.
func (e *expansion) end(x *loop, v round) {
	name := e.ended(x, v)
	if !e.awaited[x] || x.again == nil || x.times == 1 {
		return
	}
	var ways []string
	for n := 1; n <= x.times; n++ {
		w := append(slices.Clone(v), n)
		switch g := w.named(x.last) + ".again"; {
		case n < x.times:
			ways = append(ways, fmt.Sprintf("succeeded(%q) and not %s", string(g), itemOf(g)))
		case e.judges(x, n):
			ways = append(ways, fmt.Sprintf("succeeded(%q)", string(g)))
		default:
			ways = append(ways, fmt.Sprintf("succeeded(%q)", string(w.named(x.last))))
		}
	}
	g := e.step(x.last, v, name, v.called(x.last, " ✓"))
	e.rules[g] = &roundRule{when: []string{"(" + strings.Join(ways, ") or (") + ")"}, at: x.at}
	e.spare(g, x.last, v)
}

// rule works out the rule of a task in a round, c, which is written as t.
func (e *expansion) rule(c, t *Task, v round) {
	path := e.of[t].path()
	inner := len(path) // as many loops contain it in which it is not the first
	for inner > 0 && path[inner-1].first == t {
		inner--
	}
	out := &roundRule{at: e.ruleNode(t)}
	for i := len(path) - 1; i >= inner; i-- {
		if v[i] > 1 {
			g, data := e.goesOn(path[i], v[:i+1].with(v[i]-1))
			out.after, out.when = []TaskName{g}, data
			c.TimeToWait = 0
			e.rules[c] = out
			return
		}
	}
	own := e.own[t]
	for _, name := range own.After {
		out.after = append(out.after, e.succeeded(e.def.Task(name), path, v))
	}
	var data []ast.Node
	if own.when != "" {
		tree, err := parseExpr(own.when)
		if err != nil {
			return // it was read before
		}
		if tree, data = e.parts(t, tree, inner > 0); tree != nil {
			out.when = append(out.when, spell(e.moved(tree, path, v)))
		}
	}
	for i := inner - 1; i >= 0; i-- {
		if v[i] > 1 {
			if e.mayHoldBefore(path[i], own.Rule) {
				g, data := e.goesOn(path[i], v[:i+1].with(v[i]-1))
				out.after, out.when = append(out.after, g), append(out.when, data...)
			}
			break
		}
	}
	if len(data) > 0 {
		g, item := e.asker(t, v, v.named(t)+".if", v.called(t, " ?"), conjunction(data))
		e.rules[g] = out
		e.spare(g, t, v)
		out = &roundRule{after: []TaskName{g.Name}, when: []string{string(item)}, at: out.at}
	}
	e.rules[c] = out
}

// mayHoldBefore reports whether a rule could hold although no task of a loop has done anything.
func (e *expansion) mayHoldBefore(x *loop, rule *Rule) bool {
	if rule == nil {
		return true
	}
	holds := func(arg *Rule) bool { return e.mayHoldBefore(x, arg) }
	switch rule.Op {
	case OpAnd:
		return !slices.ContainsFunc(rule.Args, func(arg *Rule) bool { return !holds(arg) })
	case OpOr:
		return slices.ContainsFunc(rule.Args, holds)
	case OpTask:
		return rule.Negated || !x.body[e.def.Task(rule.Task)]
	}
	return true
}

// parts takes what is about data out of a rule within a loop: it is asked once in each round.
func (e *expansion) parts(t *Task, tree ast.Node, inner bool) (tasks ast.Node, data []ast.Node) {
	if !inner {
		return tree, nil
	}
	var rest []ast.Node
	for _, part := range conjuncts(tree) {
		speaks, asks := firstTerm(part) != nil, asksData(part)
		switch {
		case speaks && asks:
			e.on(e.ruleNode(t), "join them by and, or have a task of its own set data by the one",
				"the when of %s, which is in a loop, mixes tasks and data under or or not", t.Name)
		case asks:
			data = append(data, part)
		default:
			rest = append(rest, part)
		}
	}
	if len(rest) > 0 {
		tasks = conjunction(rest)
	}
	return tasks, data
}

// conjuncts are the parts of which all must hold.
func conjuncts(n ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && operatorName(b.Operator) == "and" {
		return append(conjuncts(b.Left), conjuncts(b.Right)...)
	}
	return []ast.Node{n}
}

func conjunction(parts []ast.Node) ast.Node {
	out := parts[0]
	for _, p := range parts[1:] {
		out = &ast.BinaryNode{Operator: "and", Left: out, Right: p}
	}
	return out
}

// asksData reports whether a part of a rule is about data.
func asksData(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.UnaryNode:
		if operatorName(n.Operator) == "not" {
			return asksData(n.Node)
		}
	case *ast.BinaryNode:
		if op := operatorName(n.Operator); op == "and" || op == "or" {
			return asksData(n.Left) || asksData(n.Right)
		}
	}
	_, is := transitionCall(n)
	return !is
}

// moved is a rule whose tasks are those of a round, or of the loops that it waits for.
func (e *expansion) moved(n ast.Node, path []*loop, v round) ast.Node {
	switch n := n.(type) {
	case *ast.UnaryNode:
		return &ast.UnaryNode{Operator: n.Operator, Node: e.moved(n.Node, path, v)}
	case *ast.BinaryNode:
		if op := operatorName(n.Operator); op == "and" || op == "or" {
			return &ast.BinaryNode{Operator: n.Operator, Left: e.moved(n.Left, path, v), Right: e.moved(n.Right, path, v)}
		}
	case *ast.CallNode:
		if name, ok := transitionCall(n); ok {
			return e.term(name, n, path, v)
		}
	}
	return n
}

// term is what a term about a task comes to. What is outside of a loop waits for the failure in any round, and else for
// the first round, or for the end of the loop if it waits for the success of its last task.
func (e *expansion) term(name string, n *ast.CallNode, path []*loop, v round) ast.Node {
	arg, _ := n.Arguments[0].(*ast.StringNode)
	of := e.def.Task(TaskName(arg.Value))
	var names []TaskName
	switch transitions[name] {
	case BecameSucceeded:
		names = append(names, e.succeeded(of, path, v))
	case BecameFailed:
		around := e.of[of].path()
		common, times := sharedLoops(path, around), 1
		for _, x := range around[common:] {
			times *= x.times
		}
		if times > maxExprNodes/4 { // nor could it be read
			e.on(around[common].at, "have fewer rounds",
				"a rule asks whether %s failed in any of its %d rounds: at most %d can stand in a rule", of.Name, times,
				maxExprNodes/4)
			return n
		}
		all(around[common:], func(deeper round) {
			names = append(names, append(slices.Clone(v[:common]), deeper...).named(of))
		})
	default:
		names = append(names, e.firstRound(of, path, v).named(of))
	}
	call := func(of TaskName) ast.Node {
		return &ast.CallNode{Callee: n.Callee, Arguments: []ast.Node{&ast.StringNode{Value: string(of)}}}
	}
	out := call(names[0])
	for _, other := range names[1:] {
		out = &ast.BinaryNode{Operator: "or", Left: out, Right: call(other)}
	}
	return out
}

// succeeded is the task whose success is meant where that of another is asked for.
func (e *expansion) succeeded(of *Task, path []*loop, v round) TaskName {
	around, w := e.of[of].path(), e.firstRound(of, path, v)
	if n := len(around); n > 0 && sharedLoops(path, around) < n && around[n-1].last == of {
		return e.ended(around[n-1], w[:n-1])
	}
	return w.named(of)
}

// firstRound is the present round of the loops that both tasks are in, and the first of others.
func (e *expansion) firstRound(of *Task, path []*loop, v round) round {
	around := e.of[of].path()
	out := slices.Clone(v[:sharedLoops(path, around)])
	for len(out) < len(around) {
		out = append(out, 1)
	}
	return out
}

// sharedLoops is how many loops contain both.
func sharedLoops(a, b []*loop) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// place puts what is new behind the loop to which it belongs, and into partitions.
func (e *expansion) place() {
	left := map[*loop]int{} // how many tasks of a loop are still to come
	for t, x := range e.of {
		if t != nil {
			left[x.path()[0]]++
		}
	}
	var tasks []*Task
	for _, t := range e.def.Tasks {
		tasks = append(tasks, t)
		if x := e.of[t]; x != nil {
			outer := x.path()[0]
			if left[outer]--; left[outer] == 0 {
				slices.SortStableFunc(e.made[outer], func(a, b *Task) int { return e.outer[a] - e.outer[b] })
				tasks = append(tasks, e.made[outer]...)
			}
		}
	}
	in := map[TaskName]int{}
	for i, p := range e.def.Partitions {
		for _, name := range p.Tasks {
			in[name] = i
		}
		e.def.Partitions[i].Tasks = slices.Clone(p.Tasks)
	}
	for _, t := range tasks {
		if of := e.original[t]; of != nil {
			p := &e.def.Partitions[in[of.Name]]
			p.Tasks = append(p.Tasks, t.Name)
			e.scope.tasks = append(e.scope.tasks, string(t.Name))
		}
	}
	e.def.Tasks = tasks
}

// settle gives a task its rule.
func (e *expansion) settle(t *Task, rule *roundRule) {
	t.After = nil
	for _, name := range rule.after {
		if !slices.Contains(t.After, name) {
			t.After = append(t.After, name)
		}
	}
	if e.places[t] == nil {
		e.places[t] = map[string]*node{}
	}
	delete(e.places[t], "when")
	delete(e.places[t], "after")
	t.When, t.when = "", ""
	if len(rule.after) > 0 {
		e.places[t]["after"] = rule.at
	}
	if len(rule.when) > 0 {
		text := rule.when[0]
		if len(rule.when) > 1 {
			text = "(" + strings.Join(rule.when, ") and (") + ")"
		}
		if len(text) > MaxExpression {
			e.on(rule.at, "have fewer rounds, or shorter names",
				"with the rounds of loops written out the rule of %s has %d bytes: at most %d are allowed", t.Name,
				len(text), MaxExpression)
			return
		}
		tree, err := parseExpr(text)
		if err != nil {
			e.on(rule.at, "have fewer rounds, or shorter names",
				"with the rounds of loops written out the rule of %s cannot be read: %s", t.Name, err.message)
			return
		}
		t.When = spell(tree)
		e.places[t]["when"] = textAt(rule.at, t.When)
	}
	t.Rule = e.taskRule(t)
}

// suspect notes what works, but probably not as it is meant.
func (e *expansion) suspect() {
	g, searched := e.def.ways(), 0
	writers := map[DataName][]*Task{}
	for _, t := range e.def.Tasks {
		for _, name := range t.Out {
			writers[name] = append(writers[name], t)
		}
	}
	for _, x := range e.loops {
		if x.again == nil {
			continue
		}
		n := x.at.get("while")
		expr := e.expression(n, e.scope, boolType)
		if expr == nil {
			continue
		}
		within := maps.Clone(x.body)
		for t := range x.body {
			for c, n := e.def.Task(t.Contingency), 0; c != nil && n < maxContingencies; c, n = e.def.Task(c.Contingency), n+1 {
				within[c] = true
			}
		}
		changes, beside := len(expr.names) == 0, map[*Task]bool(nil)
		for _, name := range expr.names {
			for _, t := range writers[name] {
				if within[t] {
					changes = true
					continue
				}
				if beside == nil && searched < maxLoops {
					searched++
					beside = g.beside(x)
				}
				if beside[t] && !t.ContingencyOnly {
					e.suspicion(n, "%s may set %s while the loop that ends with %s is at work: "+
						"whether there is another round may depend on which comes first", t.Name, name, x.last.Name)
				}
			}
		}
		if !changes {
			e.suspicion(n, "no task of the loop that ends with %s sets what its while asks for: it is done once, or %d times",
				x.last.Name, x.times)
		}
	}
}

func (e *expansion) suspicion(n *node, format string, args ...any) {
	e.doubts = append(e.doubts, Doubt{n.line, n.col, cut(fmt.Sprintf(format, args...))})
}

// beside are the tasks that neither come before a loop nor after it.
func (g *graph) beside(x *loop) map[*Task]bool {
	after := make([][]int, len(g.tasks))
	for i, before := range g.before {
		for _, p := range before {
			after[p] = append(after[p], i)
		}
	}
	before, behind := reached(g.index[x.first.Name], g.before), reached(g.index[x.last.Name], after)
	out := map[*Task]bool{}
	for i, t := range g.tasks {
		out[t] = !x.body[t] && !before[i] && !behind[i]
	}
	return out
}

// OfRounds reports whether data were made for the rounds of a loop. Nobody gives them.
func (d *Definition) OfRounds(n DataName) bool {
	return slices.ContainsFunc(d.Writers(n), func(t TaskName) bool {
		return itemOf(t) == n && (strings.HasSuffix(string(t), ".again") || strings.HasSuffix(string(t), ".if"))
	})
}
