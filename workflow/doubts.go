package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// Doubt is what works in a definition, but probably not as it is meant.
type Doubt struct {
	Line    int // in the text
	Col     int // there
	Message string
}

// maxPairs bounds how many pairs of tasks are compared.
const maxPairs = 10_000

// Doubts looks for strict constraints that are broken at the start, for queries that no task asks, for resources
// that no task holds, for an end that cannot be reached, and at a flow that is driven by data, which is one with a
// task that repeats: data that nobody sets, rules and conditions that can never hold, that nothing that tasks set
// makes hold or that no task can change, tasks that fire for ever, also one another, and tasks that set the same side by side. It says only what
// is certain; it knows comparisons with constants, and what the built-in set makes of those. Of a text with mistakes
// there are none. shared are the pieces that it may take.
func Doubts(file string, src []byte, shared Shared) []Doubt {
	pr := &problems{file: file}
	r := newReader(pr)
	r.shared, r.doubting = shared, true
	root := readSource(src, pr)
	if root == nil {
		return nil
	}
	r.definition(root)
	repeats := func(t *Task) bool { return t.Repeat }
	if len(r.list) > 0 {
		return nil
	}
	d := &doubter{
		reader: r, satisfier: satisfier{r.def}, writers: map[DataName][]*Task{}, found: r.doubts,
		driven: slices.ContainsFunc(r.def.Tasks, repeats), standsIn: map[TaskName]bool{}, idle: map[*Task]bool{},
		restless: map[*Task]bool{}, fixed: map[DataName]bool{},
	}
	for _, t := range r.def.Tasks {
		d.standsIn[t.Contingency] = true
		if t.Compensate != nil {
			d.standsIn[t.Compensate.Task] = true
		}
	}
	for _, t := range r.def.Tasks {
		for _, n := range t.Out {
			if !d.off(t) {
				d.writers[n] = append(d.writers[n], t)
			}
		}
	}
	d.given = d.mustBeGiven()
	d.broken()
	d.unasked()
	d.unheld()
	d.misread()
	if !d.driven {
		d.end()
		d.unreached()
		d.unreachedUnlessGiven()
		return d.found
	}
	d.unset()
	d.never()
	d.end()
	d.fixedConditions()
	d.unreached()
	d.forever()
	d.sideBySide()
	d.unreachedUnlessGiven()
	d.fixedRules()
	slices.SortStableFunc(d.found, func(a, b Doubt) int { return a.Line - b.Line })
	return d.found
}

// doubter collects doubts.
type doubter struct {
	*reader
	satisfier
	writers map[DataName][]*Task // those that are not off
	found   []Doubt

	driven     bool              // by data
	standsIn   map[TaskName]bool // for another task, or undoes it: so it begins whatever its rule says
	endDoubted bool              // that final can be reached
	idle       map[*Task]bool    // their rules were said never to hold
	restless   map[*Task]bool    // they were said to fire for ever
	fixed      map[DataName]bool // conditions that were said never to change
	given      map[DataName]bool // they do not begin with their defaults, which initial excludes
	rested     int               // how much was looked at to find out on which defaults something rests
}

func (d *doubter) doubt(n *node, format string, args ...any) {
	d.found = append(d.found, Doubt{n.line, n.col, cut(fmt.Sprintf(format, args...))})
}

// off reports whether a task does nothing, as it is not enabled and stands in for no other.
func (d *doubter) off(t *Task) bool { return t.Disabled && !d.standsIn[t.Name] }

// offSetters are the tasks that would set some data, and are off, with their verb; empty: there are none.
func (d *doubter) offSetters(names ...DataName) string {
	var off []string
	for _, t := range d.def.Tasks {
		sets := func(n DataName) bool { return slices.Contains(t.Out, n) }
		if d.off(t) && slices.ContainsFunc(names, sets) {
			off = append(off, string(t.Name))
		}
	}
	switch len(off) {
	case 0:
		return ""
	case 1:
		return off[0] + " is"
	}
	return andAll(off) + " are"
}

// noTask are the words for the fact that no task sets some data.
func (d *doubter) noTask(names ...DataName) string {
	if off := d.offSetters(names...); off != "" {
		return "no task that is enabled (" + off + " not)"
	}
	return "no task"
}

// andAll joins words, two at least.
func andAll(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// dataOf are the data that a task's rule asks for, and whether it asks for nothing else but instance.age.
func dataOf(t *Task) (names []DataName, alone bool) {
	alone = true
	t.Rule.Terms(func(leaf *Rule) {
		if leaf.Op != OpData {
			alone = false
			return
		}
		names = append(names, leaf.Data.names...)
	})
	return names, alone
}

// aged reports whether a task's rule asks for instance.age.
func aged(t *Task) (asks bool) {
	t.Rule.Terms(func(leaf *Rule) { asks = asks || leaf.Op == OpData && leaf.Data.aged })
	return asks
}

// broken finds strict constraints that do not hold of the data with which an instance begins, if it is given none.
func (d *doubter) broken() {
	data := map[DataName]Value{}
	for _, x := range d.def.Data {
		if x.Default != nil {
			data[x.Name] = x.Default
		}
	}
	for _, c := range d.def.Constraints {
		given := func(n DataName) bool { return d.scope.data[n].Required && data[n] == nil }
		if c.When == nil || !c.Strict || slices.ContainsFunc(c.When.names, given) || !d.starts(d.defaultsOf(c.When)) {
			continue
		}
		if v, err := c.When.Eval(Env{Data: data}); err != nil || v != true {
			d.doubt(d.written(d.def, "constraints"),
				"the strict constraint %s does not hold of the data with which an instance begins, unless the start gives others: "+
					"what is null does not hold", c.Name)
		}
	}
}

// defaultsOf are the data that an expression names, with their defaults; nil: null.
func (d *doubter) defaultsOf(e *Expr) map[DataName]Value {
	data := map[DataName]Value{}
	for _, n := range e.names {
		data[n] = d.scope.data[n].Default
	}
	return data
}

// unasked finds queries that no task asks.
func (d *doubter) unasked() {
	for _, x := range d.def.Data {
		if x.Type == TypeQuery && len(d.writers[x.Name]) == 0 {
			d.doubt(d.head(d.scope.data[x.Name]),
				"%s asks database %s for %s, which stays null (have an automatic task ask: out: [%s])", d.noTask(x.Name),
				x.Database, x.Name, x.Name)
		}
	}
}

// unheld finds resources that no task holds: so nothing waits for them.
func (d *doubter) unheld() {
	n := d.written(d.def, "resources")
	if n == nil || n.isNull() {
		return
	}
	held := map[string]bool{}
	for _, t := range d.def.Tasks {
		for _, r := range t.Holds {
			held[string(r)] = true
		}
	}
	for _, e := range d.named(n, "resources") {
		if !held[e.key.text] {
			d.doubt(e.key, "no task holds the resource %s, so nothing waits for it (write holds: %s in the tasks that need one)",
				e.key.text, e.key.text)
		}
	}
}

// misread finds files whose readers are named as tasks are: a reader is a role, a partner or a user, and a file that
// nobody may read holds up whoever needs it.
func (d *doubter) misread() {
	roles := map[string]bool{}
	for _, t := range d.def.Tasks {
		roles[string(t.Role)] = true
	}
	for _, p := range d.def.Partitions {
		for _, role := range p.Roles {
			roles[string(role)] = true
		}
	}
	for _, x := range d.def.Data {
		for _, name := range x.Readers {
			if d.def.Task(TaskName(name)) != nil && !roles[name] {
				d.doubt(d.head(d.scope.data[x.Name]),
					"%s is a task, and readers of %s are roles, partners or users: without readers whoever does a task that has it under in may read it",
					name, x.Name)
			}
		}
	}
}

// unset finds data that rules ask for and nobody sets.
func (d *doubter) unset() {
	asked := map[DataName]bool{}
	for _, t := range d.def.Tasks {
		names, _ := dataOf(t)
		for _, n := range names {
			asked[n] = true
		}
	}
	if d.def.Final != nil {
		for _, n := range d.def.Final.names {
			asked[n] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(asked)) {
		decl := d.scope.data[n]
		if len(d.writers[n]) == 0 && decl.Default == nil && !decl.Required && d.starts(map[DataName]Value{n: nil}) {
			d.doubt(d.head(decl), "%s sets %s, and it has no default: rules that ask for it find null unless the start gives it",
				d.noTask(n), n)
		}
	}
}

// fixedConditions finds named conditions that never change.
func (d *doubter) fixedConditions() {
	for _, c := range d.def.Conditions {
		if says := d.settled(c.Expr); says != "" && !d.impossible(c.Expr) {
			d.fixed[c.Name] = true
			d.doubt(d.scope.conditions[c.Name].value, "the condition %s %s", c.Name, says)
		}
	}
}

// fixedRules finds rules that never change, of which it was not said that they never hold.
func (d *doubter) fixedRules() {
	for _, t := range d.def.Tasks {
		rule := d.firedBy(t)
		if rule == nil || t.Disabled || d.idle[t] || d.restless[t] || d.fixed[DataName(rule.spelling)] || d.impossible(rule) {
			continue
		}
		if says := d.settled(rule); says != "" {
			d.doubt(d.ruleNode(t), "the rule of %s %s", t.Name, says)
		}
	}
}

// settled says of an expression that it never changes, as no task sets what it asks for, all of which has a default
// that initial allows; empty: it may. Of what the start must give nobody knows how it is, and what has no default is found by unset.
func (d *doubter) settled(e *Expr) string {
	data, names := d.defaultsOf(e), []string{}
	for _, n := range e.names {
		if len(d.writers[n]) > 0 || data[n] == nil {
			return ""
		}
		names = append(names, string(n))
	}
	if len(names) == 0 || e.aged || !d.starts(data) {
		return ""
	}
	how := "never holds"
	if v, err := e.Eval(Env{Data: data}); err == nil && v == true {
		how = "always holds"
	}
	return fmt.Sprintf("%s, unless the start gives other data: %s sets %s", how, d.noTask(e.names...),
		strings.Join(names, ", "))
}

// impossible reports whether an expression can be seen never to hold.
func (d *doubter) impossible(e *Expr) bool {
	if e == nil {
		return false
	}
	return impossible(d.expr(e, false, 0))
}

// impossible reports whether none of the ways to hold can be.
func impossible(ways [][]atom, known bool) bool {
	return known && !slices.ContainsFunc(ways, func(way []atom) bool {
		can, _ := possible(way)
		return can
	})
}

// excludes is the strict constraint that does not hold where final does; nil: there is none, or that cannot be seen.
func (d *doubter) excludes() *Constraint {
	final, err := parseExpr(d.def.Final.spelling)
	if err != nil {
		return nil
	}
	for i, c := range d.def.Constraints {
		if c.When == nil || !c.Strict {
			continue
		}
		when, err := parseExpr(c.When.spelling)
		if err == nil && impossible(d.dnf(&ast.BinaryNode{Operator: "and", Left: final, Right: when}, false, 0)) {
			return &d.def.Constraints[i]
		}
	}
	return nil
}

// never finds conditions and rules that can never hold.
func (d *doubter) never() {
	of := map[DataName]bool{}
	for _, c := range d.def.Conditions {
		if of[c.Name] = d.impossible(c.Expr); of[c.Name] {
			d.doubt(d.scope.conditions[c.Name].value,
				"the condition %s can never hold: %s", c.Name, d.whyNever(c.Expr))
		}
	}
	for _, t := range d.def.Tasks {
		whole := d.rule(t)
		if whole != nil && !of[DataName(whole.spelling)] && d.impossible(whole) {
			d.doubt(d.ruleNode(t), "the rule of %s can never hold: %s", t.Name, d.whyNever(whole))
		}
	}
}

// whyNever says why an impossible expression never holds.
func (d *doubter) whyNever(e *Expr) string {
	ways, _ := d.expr(e, false, 0)
	none := func(a atom) bool { return impossible([][]atom{{a}}, true) }
	for _, way := range ways {
		if !slices.ContainsFunc(way, none) {
			return "what one part asks, another excludes"
		}
	}
	return "there is no value of which it holds"
}

// rule is the rule of a task that asks for data alone, as one expression; nil: it asks for
// more.
func (d *doubter) rule(t *Task) *Expr {
	if t.Rule == nil || t.Rule.Op != OpData {
		return nil
	}
	return t.Rule.Data
}

// end looks at the condition that ends an instance.
func (d *doubter) end() {
	final := d.def.Final
	if final == nil {
		if d.driven {
			d.doubt(d.written(d.def, "workflow"), "nothing says when an instance ends well, so each is interrupted where no rule holds any more: write final: CONDITION")
		}
		return
	}
	n := d.written(d.def, "final")
	d.endDoubted = true
	if d.impossible(final) {
		d.doubt(n, "final can never hold: no instance ends well")
		return
	}
	if c := d.excludes(); c != nil {
		d.doubt(n, "where final holds, the strict constraint %s does not: no instance ends well", c.Name)
		return
	}
	set := slices.ContainsFunc(final.names, func(name DataName) bool { return len(d.writers[name]) > 0 })
	switch {
	case len(final.ages) > 0 || final.constant:
	case !set:
		d.doubt(n, "%s sets what final asks for: it holds at the start, or never", d.noTask(final.names...))
		return
	case !d.outcomes().mayEnd(d):
		d.doubt(n, "%s sets what final asks for to a value with which it holds: it holds at the start, or never",
			d.noTask(final.names...))
		return
	}
	d.endDoubted = false
}

// forever finds tasks that fire again at each state that they make, whatever they set, and those that fire one
// another so.
func (d *doubter) forever() {
	c := d.circles()
	for _, t := range c.tasks {
		switch d.restless[t] = c.again(t); {
		case !d.restless[t]:
		case aged(t):
			d.doubt(d.ruleNode(t), "nothing that %s sets ends its own rule, nor the instance: once that is old enough it fires again at each state that it makes, until another task ends that", t.Name)
		default:
			d.doubt(d.ruleNode(t), "nothing that %s sets ends its own rule, nor the instance: it fires again at each state that it makes, until another task ends that", t.Name)
		}
	}
	for _, circle := range c.closed() {
		var names []string
		for _, t := range circle {
			names = append(names, string(t.Name))
		}
		d.doubt(d.ruleNode(circle[0]), "%s fire one another for ever: nothing that any task sets ends that, nor the instance",
			andAll(names))
	}
}

// sideBySide finds tasks that may run at one time and set the same.
func (d *doubter) sideBySide() {
	pairs := 0
	for _, name := range slices.Sorted(maps.Keys(d.writers)) {
		for i, a := range d.writers[name] {
			for _, b := range d.writers[name][:i] {
				if pairs++; pairs > maxPairs {
					return
				}
				if !d.together(a, b) {
					continue
				}
				d.doubt(d.ruleNode(a), "%s and %s can fire at one state, and both may set %s: %s", b.Name, a.Name, name,
					laterOf(a, b))
				break
			}
		}
	}
}

// laterOf says what becomes of the one that ends later of two transitions that set one item.
func laterOf(a, b *Task) string {
	switch fails := [2]bool{a.OnConflict == ConflictFail, b.OnConflict == ConflictFail}; {
	case fails[0] && fails[1]:
		return "what ends later fails (on-conflict: fail)"
	case fails[0]:
		return fmt.Sprintf("what ends later counts, but %s fails then (on-conflict: fail)", a.Name)
	case fails[1]:
		return fmt.Sprintf("what ends later counts, but %s fails then (on-conflict: fail)", b.Name)
	}
	return "what ends later counts"
}

// together reports whether there is a state that fires both tasks, for certain.
func (d *doubter) together(a, b *Task) bool {
	ruleA, ruleB := d.rule(a), d.rule(b)
	if aged(a) || aged(b) { // what one does at an age, the other may have done before
		return false
	}
	if !a.Repeat || !b.Repeat || a.Disabled || b.Disabled || ruleA == nil || ruleB == nil || d.idle[a] || d.idle[b] {
		return false
	}
	waysA, knownA := d.expr(ruleA, false, 0)
	waysB, knownB := d.expr(ruleB, false, 0)
	if !knownA || !knownB || len(waysA)*len(waysB) > maxClauses {
		return false
	}
	for _, x := range waysA {
		for _, y := range waysB {
			if can, sure := possible(append(slices.Clip(x), y...)); can && sure && !d.ended(x, y) {
				return true
			}
		}
	}
	return false
}

// ended reports whether final may hold wherever a way holds: such a state fires nothing.
func (d *doubter) ended(x, y []atom) bool {
	if d.def.Final == nil {
		return false
	}
	ends, known := d.expr(d.def.Final, false, 0)
	if !known {
		return true
	}
	ways := [][]atom{nil} // in which it does not hold: of each way in which it does something fails
	for _, end := range ends {
		var more [][]atom
		for _, way := range ways {
			for _, a := range end {
				a.fails = !a.fails
				more = append(more, append(slices.Clip(way), a))
			}
		}
		if ways = more; len(ways) > maxClauses {
			return true
		}
	}
	return !slices.ContainsFunc(ways, func(way []atom) bool {
		can, sure := possible(slices.Concat(x, y, way))
		return can && sure
	})
}
