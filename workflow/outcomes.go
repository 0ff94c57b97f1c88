package workflow

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// This file works out which values data can have, by what tasks set. It goes by each data item alone, so it finds
// more values than there are, and never fewer: what it says cannot be is so for certain. It knows what the built-in set
// makes of constants, of few values, and of ranges of numbers; of all other applications, of people and of other
// workflows it takes that they bring anything that the data may have.

const (
	// maxListed is up to how many values of a data item are told apart; more numbers are a range, and of more of
	// another type all are taken to be possible.
	maxListed = 32
	// maxOutcomes bounds how much is looked at. In what asks for more nothing is found.
	maxOutcomes = 50_000
)

// values are those that a data item can have.
type values struct {
	any  bool    // all that its declaration allows, apart from null
	null bool    // null
	list []Value // these
	// span: these numbers, or those of them that its declaration allows.
	span   bool
	lo, hi float64
}

var anything = values{any: true, null: true}

// region are the values that are among some and that all atoms allow.
type region struct {
	decl  *DataDecl
	of    values
	atoms []atom
}

// has reports whether there may be a value in it that more atoms allow.
func (r region) has(more ...atom) bool {
	atoms := append(slices.Clip(r.atoms), more...)
	allow := func(v any) bool { return !slices.ContainsFunc(atoms, func(a atom) bool { return !a.holds(v) }) }
	switch {
	case r.of.null && allow(nil):
		return true
	case !r.of.any && !r.of.span:
	case slices.ContainsFunc(atoms, func(a atom) bool { return a.op == "null" }):
		return false
	case !slices.ContainsFunc(atoms, func(a atom) bool { return a.op != "not null" }):
		return true
	default:
		if r.of.span {
			atoms = append(atoms, r.of.limits(r.decl)...)
		}
		can, _ := oneItem(r.decl, append(atoms, atom{decl: r.decl, op: "not null"}))
		return can
	}
	return slices.ContainsFunc(r.of.list, func(v Value) bool { return allowed(r.decl, v) && allow(v) })
}

// all reports whether each value in it is sure to satisfy an atom.
func (r region) all(a atom) bool {
	if a.decl == nil || turned[a.op] == "" {
		return false
	}
	not := a
	not.op = turned[a.op]
	nullOK := a.op == "null" || a.op == "not null" || !r.has(atom{decl: r.decl, op: "null"})
	return nullOK && !r.has(not)
}

// limits are the atoms that say in which range numbers are.
func (x values) limits(decl *DataDecl) (out []atom) {
	for op, f := range map[string]float64{">=": x.lo, "<=": x.hi} {
		if v, err := plainFloat(f); err == nil {
			out = append(out, atom{decl: decl, op: op, value: v})
		}
	}
	return out
}

// few are the values in it, where they can be listed: those that are, or the whole numbers of a short range.
func (r region) few() ([]Value, bool) {
	tried, named := slices.Clone(r.of.list), false
	for _, a := range r.atoms {
		switch {
		case a.op == "==":
			tried, named = []Value{a.value}, true
		case a.op == "in" && !named:
			tried, named = slices.Clone(a.values), true
		}
	}
	switch {
	case named:
		tried = slices.DeleteFunc(tried, func(v Value) bool { return v == nil })
		for i, v := range tried {
			c, err := CheckValue(r.decl, v)
			if err != nil {
				return nil, false
			}
			tried[i] = c
		}
	case r.decl.Type == TypeBoolean:
		tried = []Value{true, false}
	case len(r.decl.Enum) > 0 && (r.of.any || r.of.span):
		tried = slices.Clone(r.decl.Enum)
	case r.of.any || r.of.span:
		lo, hi, ok := r.bounds()
		if !ok || r.decl.Type != TypeInteger || hi-lo > maxListed {
			return nil, false
		}
		for f := math.Ceil(lo); f <= hi; f++ {
			tried = append(tried, int64(f))
		}
	}
	here := func(v Value) bool { return r.has(atom{decl: r.decl, op: "in", values: []any{v}}) }
	tried = slices.DeleteFunc(tried, func(v Value) bool { return !here(v) })
	if r.has(atom{decl: r.decl, op: "null"}) {
		tried = append(tried, nil)
	}
	return tried, len(tried) <= maxListed
}

// maxWhole is up to where whole numbers and those of 64 bits with a fraction are the same.
const maxWhole = 1 << 53

// bounds are those between which the numbers of a region are.
func (r region) bounds() (lo, hi float64, ok bool) {
	if r.decl.Type != TypeInteger && r.decl.Type != TypeNumber {
		return 0, 0, false
	}
	lo, hi = math.Inf(-1), math.Inf(1)
	narrow := func(from, to float64) { lo, hi = max(lo, from), min(hi, to) }
	if r.of.span {
		narrow(r.of.lo, r.of.hi)
	}
	if !r.of.span && !r.of.any {
		lowest, highest := ends(r.of.list)
		narrow(lowest, highest)
	}
	if r.decl.Min != nil {
		narrow(*r.decl.Min, hi)
	}
	if r.decl.Max != nil {
		narrow(lo, *r.decl.Max)
	}
	step := 0.0
	if r.decl.Type == TypeInteger {
		step = 1
	}
	for _, a := range r.atoms {
		f, isNumber := float(a.value)
		if !isNumber {
			continue
		}
		exact := step * one(f == math.Trunc(f) && math.Abs(f) < maxWhole)
		switch a.op {
		case "==":
			narrow(f, f)
		case "<":
			narrow(lo, f-exact)
		case "<=":
			narrow(lo, f)
		case ">":
			narrow(f+exact, hi)
		case ">=":
			narrow(f, hi)
		}
	}
	return lo, hi, lo <= hi
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// ends are the least and the greatest of some numbers.
func ends(list []Value) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range list {
		if f, is := float(v); is {
			lo, hi = min(lo, f), max(hi, f)
		}
	}
	return lo, hi
}

// outcomes works out what tasks set.
type outcomes struct {
	satisfier
	decls map[DataName]*DataDecl
	has   map[DataName]values // what data can have; absent: anything
	free  map[DataName]bool   // the start may give them whatever they allow
	steps int
}

func (d *doubter) outcomes() *outcomes {
	o := &outcomes{
		satisfier: d.satisfier, decls: map[DataName]*DataDecl{}, has: map[DataName]values{}, free: maps.Clone(d.given),
	}
	for i := range d.def.Data {
		o.decls[d.def.Data[i].Name] = &d.def.Data[i]
	}
	o.decls[ageItem.Name], o.has[ageItem.Name] = ageItem, values{any: true}
	return o
}

// tired reports whether too much was looked at.
func (o *outcomes) tired() bool { return o.steps > maxOutcomes }

// regionOf are the values that a data item can have where one way holds.
func (o *outcomes) regionOf(n DataName, way []atom) region {
	o.steps++
	r := region{decl: o.decls[n], of: anything}
	if has, known := o.has[n]; known {
		r.of = has
	}
	for _, a := range way {
		if a.decl == r.decl {
			r.atoms = append(r.atoms, a)
		}
	}
	return r
}

// can reports whether a way may hold.
func (o *outcomes) can(way []atom) bool {
	tried := map[*DataDecl]bool{nil: true}
	for _, a := range way {
		if !tried[a.decl] && !o.regionOf(a.decl.Name, way).has() {
			return false
		}
		tried[a.decl] = true
	}
	return true
}

// ways are those in which a task's rule may hold of data, as far as that is understood.
func (o *outcomes) ways(rule *Expr) (out [][]atom) {
	if rule == nil {
		return [][]atom{nil}
	}
	ways, known := o.expr(rule, false, 0)
	if !known {
		return [][]atom{nil}
	}
	for _, way := range ways {
		o.steps += len(way)
		if o.can(way) {
			out = append(out, way)
		}
	}
	return out
}

// sets is what a task may set a data item to, where it began as one way of its rule held. Sure: that is all that it
// may do, and the data item may have each of it.
func (o *outcomes) sets(t *Task, n DataName, way []atom) (out values, sure bool) {
	if t.Type != Automatic || t.Application != AppSet {
		return anything, true
	}
	e := t.With.Set[n]
	if e == nil { // it leaves it as it is
		return o.regionOf(n, way).of, true
	}
	if out, sure, known := o.tries(e, o.decls[n], way); known {
		return out, sure
	}
	tree, err := parseExpr(e.spelling)
	if err != nil {
		return anything, false
	}
	out = o.span(tree, way, 0)
	return out, out.fits(o.decls[n])
}

// fits reports whether a data item may have all of a range of numbers.
func (x values) fits(decl *DataDecl) bool {
	return !x.any && x.span && len(decl.Enum) == 0 && (decl.Min == nil || x.lo >= *decl.Min) &&
		(decl.Max == nil || x.hi <= *decl.Max)
}

// listed are the values of a list.
func listed(list []Value) (out values) {
	for _, v := range list {
		if v == nil {
			out.null = true
			continue
		}
		out.list = append(out.list, v)
	}
	return out
}

// tries evaluates an expression with all values that the data may have which it asks for; known is false if they are
// too many.
func (o *outcomes) tries(e *Expr, into *DataDecl, way []atom) (out values, sure, known bool) {
	if e.aged || strings.Contains(e.spelling, "instance.") { // it depends on more than data
		return out, false, false
	}
	envs := []map[DataName]Value{{}}
	for _, n := range e.names {
		list, few := o.regionOf(n, way).few()
		if !few || len(envs)*len(list) > maxListed {
			return out, false, false
		}
		var more []map[DataName]Value
		for _, env := range envs {
			for _, v := range list {
				with := maps.Clone(env)
				with[n] = v
				more = append(more, with)
			}
		}
		envs = more
	}
	sure = true
	var list []Value
	for _, data := range envs {
		o.steps++
		v, err := e.Eval(Env{Data: data})
		if err == nil {
			v, err = CheckValue(into, v)
		}
		if err != nil { // then it fails
			sure = false
			continue
		}
		list = append(list, v)
	}
	return listed(list), sure, true
}

// span is between which numbers a part of an expression is.
func (o *outcomes) span(n ast.Node, way []atom, depth int) values {
	if o.steps++; depth > maxExprNodes {
		return anything
	}
	if v, known := literal(n); known {
		if f, isNumber := float(v); isNumber {
			return values{span: true, lo: f, hi: f}
		}
		return anything
	}
	switch n := n.(type) {
	case *ast.IdentifierNode:
		decl := o.decl(n)
		if decl == nil {
			return anything
		}
		r := o.regionOf(decl.Name, way)
		lo, hi, ok := r.bounds()
		if !ok {
			return anything
		}
		return values{span: true, lo: lo, hi: hi, null: r.has(atom{decl: decl, op: "null"})}
	case *ast.BinaryNode:
		a, b := o.span(n.Left, way, depth+1), o.span(n.Right, way, depth+1)
		if !a.span || !b.span {
			return anything
		}
		out := values{span: true, null: a.null || b.null}
		switch n.Operator {
		case "+":
			out.lo, out.hi = a.lo+b.lo, a.hi+b.hi
		case "-":
			out.lo, out.hi = a.lo-b.hi, a.hi-b.lo
		default:
			return anything
		}
		return out.rounded()
	}
	return anything
}

// rounded leaves no bound at which numbers of 64 bits are rounded.
func (x values) rounded() values {
	if !(math.Abs(x.lo) < maxWhole) || x.lo != math.Trunc(x.lo) {
		x.lo = math.Inf(-1)
	}
	if !(math.Abs(x.hi) < maxWhole) || x.hi != math.Trunc(x.hi) {
		x.hi = math.Inf(1)
	}
	return x
}

// join is what either has. More than maxListed numbers are a range, of which a bound that grows goes to the next of
// some steps.
func join(a, b values, steps []float64) values {
	out := values{any: a.any || b.any, null: a.null || b.null}
	if out.any {
		return out
	}
	if !a.span && !b.span {
		out.list = slices.Clone(a.list)
		for _, v := range b.list {
			if !slices.ContainsFunc(out.list, func(x Value) bool { return equal(x, v) }) {
				out.list = append(out.list, v)
			}
		}
		if len(out.list) <= maxListed {
			return out
		}
	}
	lo, hi, numbers := math.Inf(1), math.Inf(-1), true
	for _, x := range []values{a, b} {
		if x.span {
			lo, hi = min(lo, x.lo), max(hi, x.hi)
			continue
		}
		lowest, highest := ends(x.list)
		lo, hi = min(lo, lowest), max(hi, highest)
		numbers = numbers && !slices.ContainsFunc(x.list, func(v Value) bool { _, is := float(v); return !is })
	}
	switch {
	case !numbers:
		return values{any: true, null: out.null}
	case a.span && lo >= a.lo && hi <= a.hi:
		return values{span: true, lo: a.lo, hi: a.hi, null: out.null}
	}
	out.list, out.span, out.lo, out.hi = nil, true, math.Inf(-1), math.Inf(1)
	for _, s := range steps { // ascending
		if s <= lo {
			out.lo = s
		}
		if s >= hi && s < out.hi {
			out.hi = s
		}
	}
	return out
}

func (x values) same(y values) bool {
	return x.any == y.any && x.null == y.null && x.span == y.span && x.lo == y.lo && x.hi == y.hi &&
		len(x.list) == len(y.list)
}

// settle finds out what data have that tasks set and that begin with a default, if the start gives no other: what
// they begin with, and what any task sets whose rule may hold of that, as often as it holds. false: it looked at too
// much. With unset, so of data that no task sets.
func (o *outcomes) settle(d *doubter, unset bool) bool {
	steps := o.thresholds(d)
	for n, decl := range o.decls {
		if decl.Default != nil && !decl.Required && !o.free[n] && (unset || len(d.writers[n]) > 0) {
			o.has[n] = listed([]Value{decl.Default})
		}
	}
	o.rest(d, steps, func(*Task) bool { return true }, nil)
	return !o.tired()
}

// bound leaves of what settle found what there is where tasks fire no more often than their times. It looks at the data
// that are made of one another, together: the tasks that set them fire all in all no more often than their times
// allow. false: it looked at too much.
func (o *outcomes) bound(d *doubter) bool {
	steps, all := o.thresholds(d), maps.Clone(o.has)
	bounded := func(t *Task) bool { return t.RepeatTimes > 0 }
	free := func(t *Task) bool { return t.RepeatTimes == 0 }
	found := map[DataName]values{}
	for _, group := range o.groups(d) {
		o.has = maps.Clone(all)
		most := 0
		for _, t := range d.def.Tasks {
			if slices.ContainsFunc(t.Out, func(n DataName) bool { return group[n] }) {
				most += t.RepeatTimes
			}
		}
		for n := range group {
			o.has[n] = listed([]Value{o.decls[n].Default})
		}
		o.rest(d, steps, free, group)
		for range most {
			then := maps.Clone(o.has) // what one of them sets, the others find when they fire the next time
			changed := o.fire(d, bounded, group, steps, then)
			if o.has = then; !changed || o.tired() {
				break
			}
			o.rest(d, steps, free, group)
		}
		for n := range group {
			found[n] = o.has[n]
		}
	}
	o.has = all
	maps.Copy(o.has, found)
	return !o.tired()
}

// groups are the data that settle follows, those together of which one is made of another.
func (o *outcomes) groups(d *doubter) (out []map[DataName]bool) {
	of := map[DataName]map[DataName]bool{}
	for n := range o.has {
		if n != ageItem.Name {
			of[n] = map[DataName]bool{n: true}
		}
	}
	for _, t := range d.def.Tasks {
		for _, n := range t.Out {
			e := t.With.Set[n]
			if e == nil || of[n] == nil {
				continue
			}
			for _, from := range e.names {
				if of[from] == nil || of[n][from] {
					continue
				}
				maps.Copy(of[n], of[from])
				for x := range of[from] {
					of[x] = of[n]
				}
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(of)) {
		if group := of[n]; group[n] {
			out = append(out, maps.Clone(group))
			clear(group)
		}
	}
	return out
}

// rest has some tasks fire until that brings nothing more.
func (o *outcomes) rest(d *doubter, steps []float64, which func(*Task) bool, only map[DataName]bool) {
	for o.fire(d, which, only, steps, o.has) && !o.tired() {
	}
}

// fire adds to the values that some data have (only; nil: all) what some tasks set that fire by those that there are. It
// reports whether there are more now.
func (o *outcomes) fire(
	d *doubter, which func(*Task) bool, only map[DataName]bool, steps []float64, into map[DataName]values,
) (more bool) {
	for _, t := range d.def.Tasks {
		if o.tired() {
			break
		}
		if d.off(t) || !which(t) {
			continue
		}
		for _, way := range o.ways(d.firedBy(t)) {
			for _, n := range t.Out {
				has, known := into[n]
				if !known || only != nil && !only[n] {
					continue
				}
				sets, _ := o.sets(t, n, way)
				if now := join(has, sets, steps); !now.same(has) {
					into[n], more = now, true
				}
			}
		}
	}
	return more
}

// firedBy is the rule without which a task does not begin, if that is one of data alone; nil: it may begin whatever
// they are, as where tasks follow a graph, or where it stands in for another or undoes it.
func (d *doubter) firedBy(t *Task) *Expr {
	if !d.driven || d.standsIn[t.Name] {
		return nil
	}
	return d.rule(t)
}

// thresholds are the numbers that rules, the end and declarations name, ascending.
func (o *outcomes) thresholds(d *doubter) (out []float64) {
	add := func(v any) {
		if f, is := float(v); is {
			out = append(out, f-1, f, f+1)
		}
	}
	of := []*Expr{d.def.Final}
	for _, t := range d.def.Tasks {
		of = append(of, d.rule(t))
	}
	for _, e := range of {
		if e == nil {
			continue
		}
		ways, _ := o.expr(e, false, 0)
		for _, way := range ways {
			for _, a := range way {
				if a.decl == ageItem {
					continue // no data are compared with it
				}
				add(a.value)
				for _, v := range a.values {
					add(v)
				}
			}
		}
	}
	for _, decl := range o.decls {
		add(decl.Default)
		for _, limit := range []*float64{decl.Min, decl.Max} {
			if limit != nil {
				add(*limit)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// starts reports whether initial may hold of data, the others being anything.
func (d *doubter) starts(data map[DataName]Value) bool {
	o := d.outcomes()
	for n, v := range data {
		o.has[n] = listed([]Value{v})
	}
	return len(o.ways(d.def.Initial)) > 0
}

// mustBeGiven finds the data that do not begin with their defaults, as initial does not hold of these. Where it does
// not hold of several together, all that it names may be given.
func (d *doubter) mustBeGiven() map[DataName]bool {
	given, defaults := map[DataName]bool{}, map[DataName]Value{}
	if d.def.Initial == nil {
		return given
	}
	for _, n := range d.def.Initial.names {
		decl := d.scope.data[n]
		switch v := decl.Default; {
		case v == nil || decl.Required:
		case d.starts(map[DataName]Value{n: v}):
			defaults[n] = v
		default:
			given[n] = true
		}
	}
	if !d.starts(defaults) {
		for n := range defaults {
			given[n] = true
		}
	}
	return given
}

// unreached finds rules that hold of nothing that the data come to, as they begin with their defaults, and an end
// that does not.
func (d *doubter) unreached() {
	d.unreachedBy("", func(o *outcomes) bool { return o.settle(d, false) })
	bound := func(t *Task) bool { return t.RepeatTimes > 0 }
	if d.driven && slices.ContainsFunc(d.def.Tasks, bound) {
		d.unreachedBy(", as tasks fire no more often than their times say",
			func(o *outcomes) bool { return o.settle(d, false) && o.bound(d) })
	}
}

// unreachedUnlessGiven finds rules, and an end, that do not hold of the defaults of data that no task sets, though they may of what
// tasks set.
func (d *doubter) unreachedUnlessGiven() {
	d.unreachedBy("", func(o *outcomes) bool { return o.settle(d, true) })
}

// unreachedBy finds them by a way to work out what data can have, which reports whether it did.
func (d *doubter) unreachedBy(as string, work func(*outcomes) bool) {
	o := d.outcomes()
	if !work(o) {
		return
	}
	for _, t := range d.def.Tasks {
		rule := d.firedBy(t)
		if rule == nil || t.Disabled || d.idle[t] || d.impossible(rule) || len(o.ways(rule)) > 0 {
			continue
		}
		d.idle[t] = true
		if d.fixed[DataName(rule.spelling)] {
			continue // it was said of the condition
		}
		d.doubt(d.ruleNode(t), "the rule of %s never holds%s%s", t.Name, as, d.because(rule, o, work))
	}
	if final := d.def.Final; final != nil && !d.endDoubted && len(o.ways(final)) == 0 {
		d.endDoubted = true
		d.doubt(d.written(d.def, "final"), "final never holds%s, so no instance ends well%s", as, d.because(final, o, work))
	}
}

// because says which data keep an expression from holding, and of which that asks that they begin with their defaults.
func (d *doubter) because(e *Expr, o *outcomes, work func(*outcomes) bool) string {
	o, sure := d.resting(e, o, work)
	n, alone := o.keeps(e)
	if !alone {
		return " of what tasks set, unless the start gives other data"
	}
	given := "other data"
	if sure {
		given = "another" + others(n, o.follows())
	}
	says := fmt.Sprintf(": %s is only ever %s, unless the start gives %s", n, o.has[n].text(), given)
	if off := d.offSetters(n); off != "" {
		says += fmt.Sprintf(" (%s not enabled)", off)
	}
	return says
}

// keeps is a data item that keeps an expression from holding by itself; false: there is none.
func (o *outcomes) keeps(e *Expr) (DataName, bool) {
	for _, n := range e.names {
		has, known := o.has[n]
		if !known {
			continue
		}
		delete(o.has, n)
		could := len(o.ways(e)) > 0
		if o.has[n] = has; could {
			return n, true
		}
	}
	return "", false
}

// others are the names of a data item and of those beside it, in words; empty: there are none beside it.
func others(n DataName, all []DataName) string {
	text := []string{string(n)}
	for _, other := range all {
		if other != n {
			text = append(text, string(other))
		}
	}
	last := len(text) - 1
	if last == 0 {
		return ""
	}
	return " " + strings.Join(text[:last], ", ") + " or " + text[last]
}

// follows are the data that settle follows from their defaults on.
func (o *outcomes) follows() []DataName {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.has)), func(n DataName) bool { return n == ageItem.Name })
}

// maxResting bounds what is looked at to find out on which defaults all that is said rests.
const maxResting = maxOutcomes

// resting follows no more data from their defaults on than it takes for an expression never to hold. It lets go of those
// first that the expression does not name. false: it looked at too much.
func (d *doubter) resting(e *Expr, o *outcomes, work func(*outcomes) bool) (*outcomes, bool) {
	without := func(names ...DataName) {
		less := d.outcomes()
		maps.Copy(less.free, o.free)
		for _, n := range names {
			less.free[n] = true
		}
		if work(less) && len(less.ways(e)) == 0 {
			o = less
		}
		d.rested += less.steps + len(d.def.Tasks)
	}
	if d.rested > maxResting {
		return o, false
	}
	asks := d.askedFor(e)
	without(slices.DeleteFunc(o.follows(), func(n DataName) bool { return asks[n] })...)
	tried := o.follows()
	slices.SortStableFunc(tried, func(a, b DataName) int { return slices.Index(e.names, a) - slices.Index(e.names, b) })
	for _, n := range tried {
		if d.rested > maxResting {
			return o, false
		}
		without(n)
	}
	return o, true
}

// askedFor are the data that an expression names, and those that tasks ask for which set one of them.
func (d *doubter) askedFor(e *Expr) map[DataName]bool {
	asks, todo := map[DataName]bool{}, slices.Clone(e.names)
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; asks[n] {
			continue
		}
		asks[n] = true
		for _, t := range d.writers[n] {
			for _, by := range []*Expr{d.firedBy(t), t.With.Set[n]} {
				if by != nil {
					todo = append(todo, by.names...)
				}
			}
		}
	}
	return asks
}

// text says which values there are, of those that are not anything.
func (x values) text() string {
	switch {
	case x.span && math.IsInf(x.lo, 0) && math.IsInf(x.hi, 0):
		return "a number"
	case x.span && math.IsInf(x.lo, 0):
		return fmt.Sprintf("at most %v", x.hi)
	case x.span && math.IsInf(x.hi, 0):
		return fmt.Sprintf("at least %v", x.lo)
	case x.span:
		return fmt.Sprintf("from %v to %v", x.lo, x.hi)
	}
	var list []string
	for i, v := range x.list {
		if i == 5 {
			list = append(list, "…")
			break
		}
		if s, is := v.(string); is {
			v = strconv.Quote(s)
		}
		list = append(list, fmt.Sprint(v))
	}
	if x.null {
		list = append(list, "null")
	}
	return strings.Join(list, ", ")
}

// mayEnd reports whether a task may make final hold where it did not: some data item that it sets is to be as a way
// asks to hold.
func (o *outcomes) mayEnd(d *doubter) bool {
	ways, known := o.expr(d.def.Final, false, 0)
	if !known {
		return true
	}
	ends := func(t *Task, began []atom, way []atom) bool {
		return slices.ContainsFunc(t.Out, func(n DataName) bool {
			decl := o.decls[n]
			if !slices.ContainsFunc(way, func(a atom) bool { return a.decl == decl }) {
				return false
			}
			sets, _ := o.sets(t, n, began)
			r := o.regionOf(n, way)
			r.of = sets
			return r.has()
		})
	}
	for _, way := range ways {
		opaque := slices.ContainsFunc(way, func(a atom) bool { return a.decl == nil })
		for _, t := range d.def.Tasks {
			if d.off(t) {
				continue
			}
			touches := func(n DataName) bool { return slices.Contains(d.def.Final.names, n) }
			if opaque && slices.ContainsFunc(t.Out, touches) {
				return true
			}
			for _, began := range o.ways(d.firedBy(t)) {
				if ends(t, began, way) || o.tired() {
					return true
				}
			}
		}
	}
	return false
}
