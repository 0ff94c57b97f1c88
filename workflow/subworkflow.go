package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SubWorkflows are the names of the workflows that d's tasks use, sorted.
func SubWorkflows(d *Definition) []Name {
	var out []Name
	for _, t := range d.Tasks {
		if t.Uses != nil {
			out = append(out, t.Uses.Workflow)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// CheckUses reports what does not fit between d's tasks of type workflow and the workflows
// that they use, as far as known gives these; nil: it is not known. Places are those of the
// key uses in file.
func CheckUses(file string, d *Definition, known func(Name) *Definition) Errors {
	var out Errors
	for _, f := range d.features {
		t := d.Task(f.Task)
		if f.Feature != "uses" || t == nil || t.Uses == nil {
			continue
		}
		sub := known(t.Uses.Workflow)
		if sub == nil {
			continue
		}
		for _, m := range misfits(d, t, sub) {
			out = append(out, Problem{
				File: file, Line: f.Line, Col: f.Col, Message: fmt.Sprintf("task %s: %s", t.Name, m[0]), Hint: m[1],
			})
		}
	}
	return out.sorted()
}

// misfits are what does not fit between a task and the workflow that it uses, each with a hint.
func misfits(d *Definition, t *Task, sub *Definition) (out [][2]string) {
	add := func(hint, format string, args ...any) {
		out = append(out, [2]string{fmt.Sprintf(format, args...), hint})
	}
	decls := map[DataName]*DataDecl{}
	var names []string
	for i := range sub.Data {
		decls[sub.Data[i].Name] = &sub.Data[i]
		names = append(names, string(sub.Data[i].Name))
	}
	meant := func(name DataName) string {
		if near := Nearest(string(name), names); near != "" {
			return "did you mean " + near + "?"
		}
		if len(names) == 0 {
			return "it declares no data"
		}
		return "it has: " + strings.Join(names, ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(t.Uses.Input)) {
		e, decl := t.Uses.Input[name], decls[name]
		switch {
		case decl == nil:
			add(meant(name), "workflow %s has no data %s to be given", sub.Name, name)
		case decl.Type == TypeQuery:
			add("leave it out", "%s of workflow %s is what database %s answers: it is not given", name, sub.Name,
				decl.Database)
		case e != nil && e.typ != anyType && !slices.Contains(assignable(decl.Type), e.typ):
			add("", "%s of workflow %s is %s, and is given %s", name, sub.Name, decl.Type.a(), e.typ.a())
		}
	}
	for i := range sub.Data {
		decl := &sub.Data[i]
		if decl.Required && decl.Default == nil && t.Uses.Input[decl.Name] == nil {
			add(fmt.Sprintf("write uses: {workflow: %s, input: {%s: …}}", sub.Name, decl.Name),
				"workflow %s needs a value for %s (%s)", sub.Name, decl.Name, decl.Type)
		}
	}
	for _, name := range t.Out {
		decl, own := decls[name], d.Datum(name)
		switch {
		case decl == nil:
			add(meant(name), "its out names %s, which workflow %s has not", name, sub.Name)
		case own != nil && !fits(own.Type, decl.Type):
			add("", "%s is %s here, and %s in workflow %s", name, own.Type.a(), decl.Type.a(), sub.Name)
		}
	}
	return out
}

// fits reports whether a value of one type may be taken for one of another.
func fits(to, from DataType) bool {
	switch {
	case to == from:
		return true
	case to == TypeList:
		return from == TypeQuery
	case to == TypeNumber:
		return from == TypeInteger
	}
	return false
}
