package workflow

import (
	"cmp"
	"fmt"
)

// with reads the arguments of an application.
func (r *reader) with(n *node, app ApplicationName) With {
	var w With
	if n.kind != mapNode {
		r.on(n, "write with: {argument: value}", "want a mapping, have %s", n.what())
		return w
	}
	switch app {
	case AppSet:
		w.Set = r.assignments(n)
	case AppSleep:
		readMap(r, n, sleepKeys, &w)
	case AppFail:
		readMap(r, n, failKeys, &w)
	case AppNoop:
		if len(n.entries) > 0 {
			r.on(n, "name an application, or leave with out", "noop takes no arguments")
		}
	default:
		r.arguments(n, &w)
	}
	return w
}

var sleepKeys = []key[With]{
	{"for", func(r *reader, n *node, w *With) { w.For = r.span(n) }},
}

var failKeys = []key[With]{
	{"reason", func(r *reader, n *node, w *With) { w.Reason = r.text(n) }},
}

// arguments of a configured application are passed as they are.
func (r *reader) arguments(n *node, w *With) {
	if len(n.entries) == 0 {
		return
	}
	w.Args, _ = r.value(n).(map[string]any)
	if err := checkSize(&DataDecl{Name: "with"}, w.Args); err != nil {
		r.on(n, "", "%v", err)
	}
}

// assignments reads data names with the expressions that give their values.
func (r *reader) assignments(n *node) map[DataName]*Expr {
	out := map[DataName]*Expr{}
	for _, e := range r.unique(n) {
		decl := r.scope.data[DataName(e.key.text)]
		if decl == nil {
			r.on(e.key, r.nearData(e.key.text), "there is no data %q", e.key.text)
			continue
		}
		x := r.expression(e.value, r.scope, assignable(decl.Type)...)
		if out[decl.Name] = x; r.doubting && decl.Type == TypeFile && x.isNoFile(r.isFile) {
			r.doubts = append(r.doubts, Doubt{
				Line: e.value.line, Col: e.value.col, Message: fmt.Sprintf("%s is a file, and this is a text that is none: "+
					"the task fails, unless that names a file", decl.Name),
			})
		}
	}
	return out
}

// assignable are the types that an expression may have to be set into data of
// type t. A text is read as a time.
func assignable(t DataType) []valueType {
	types := []valueType{nullType, valueTypeOf(t)}
	switch t {
	case TypeNumber:
		types = append(types, intType)
	case TypeTime:
		types = append(types, stringType)
	case anyData:
		types = append(types, boolType, intType, numberType, stringType, timeType, listType, mapType)
	}
	return types
}

// isFile reports whether a data item is a file.
func (r *reader) isFile(name DataName) bool {
	x := r.scope.data[name]
	return x != nil && x.Type == TypeFile
}

var usesKeys = []key[Use]{
	{"workflow", func(r *reader, n *node, u *Use) { u.Workflow = Name(r.name(n)) }},
	{"input", func(r *reader, n *node, u *Use) { u.Input = r.inputs(n) }},
}

// uses reads the name of a sub-workflow, or a mapping with its input.
func (r *reader) uses(n *node) *Use {
	u := &Use{}
	if n.kind != mapNode {
		u.Workflow = Name(r.name(n))
		return u
	}
	if readMap(r, n, usesKeys, u) && r.written(u, "workflow") == nil {
		r.on(n, "write workflow: NAME", "uses does not name a workflow")
	}
	return u
}

// inputs cannot be checked against the sub-workflow's data: it is another
// definition.
func (r *reader) inputs(n *node) map[DataName]*Expr {
	if n.kind != mapNode {
		r.on(n, cmp.Or(entryHint(n.text), "write input: {name: expression}"), "want a mapping, have %s", n.what())
		return nil
	}
	out := map[DataName]*Expr{}
	for _, e := range r.unique(n) {
		if !ValidDataName(e.key.text) {
			r.on(e.key, cmp.Or(entryHint(e.key.text), dataRule(e.key.text)), "%s is not a valid name for data",
				excerpt(e.key.text))
			continue
		}
		out[DataName(e.key.text)] = r.expression(e.value, r.scope, assignable(anyData)...)
	}
	return out
}

var compensateKeys = []key[Compensation]{
	{"application", func(r *reader, n *node, c *Compensation) { c.Application = ApplicationName(r.name(n)) }},
	{"task", func(r *reader, n *node, c *Compensation) { c.Task = TaskName(r.name(n)) }},
	{"with", kept[Compensation]},
}

// compensate reads the name of a task of this definition, else of an
// application, or a mapping that says which.
func (r *reader) compensate(n *node) *Compensation {
	c := &Compensation{}
	if n.kind != mapNode {
		name := r.name(n)
		if r.def.Task(TaskName(name)) != nil {
			c.Task = TaskName(name)
		} else {
			c.Application = ApplicationName(name)
		}
		return c
	}
	known := readMap(r, n, compensateKeys, c)
	if known && (r.written(c, "task") == nil) == (r.written(c, "application") == nil) {
		r.on(n, "write compensate: {task: TASK} or {application: NAME}",
			"a compensation is either a task or an application")
	}
	if task := r.written(c, "task"); task != nil && c.Task != "" && r.def.Task(c.Task) == nil {
		r.on(task, r.scope.memory.didYouMean(task.text, r.scope.tasks), "there is no task %q", c.Task)
	}
	if with := r.written(c, "with"); with != nil && !with.isNull() {
		if c.Task != "" {
			r.on(with, fmt.Sprintf("write it at %s", c.Task), "a compensating task has its own arguments")
		}
		c.With = r.with(with, c.Application)
	}
	return c
}
