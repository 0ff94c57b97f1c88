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
	return atUses(file, d, known, misfits)
}

// CheckReaders reports files that tasks of type workflow give to the workflows that they use, or take of them, and that
// others may read there than in d. That is no mistake: each definition says so for itself. Else it is as CheckUses.
func CheckReaders(file string, d *Definition, known func(Name) *Definition) Errors {
	return atUses(file, d, known, otherReaders)
}

func atUses(
	file string, d *Definition, known func(Name) *Definition, look func(*Definition, *Task, *Definition) [][2]string,
) Errors {
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
		for _, m := range look(d, t, sub) {
			out = append(out, Problem{
				File: file, Line: f.Line, Col: f.Col, Message: fmt.Sprintf("task %s: %s", t.Name, m[0]), Hint: m[1],
			})
		}
	}
	return out.sorted()
}

// otherReaders are the files that pass between a task and the workflow that it uses to other readers, each with a hint.
func otherReaders(d *Definition, t *Task, sub *Definition) (out [][2]string) {
	differ := func(verb string, own, other *DataDecl) {
		if own == nil || other == nil || own.Type != TypeFile || other.Type != TypeFile || sameReaders(own, other) {
			return
		}
		out = append(out, [2]string{
			fmt.Sprintf("it %s file %s, which %s here, and in workflow %s, as %s, %s", verb, own.Name, own.readBy(),
				sub.Name, other.Name, other.readBy()),
			"if that is not meant, give both the same readers",
		})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Uses.Input)) {
		if e := t.Uses.Input[name]; e != nil {
			for _, given := range e.Names() {
				differ("gives", d.Datum(given), sub.Datum(name))
			}
		}
	}
	for _, name := range t.Out {
		differ("takes", d.Datum(name), sub.Datum(name))
	}
	return out
}

func sameReaders(a, b *DataDecl) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Readers)), slices.Sorted(slices.Values(b.Readers)))
}

// readBy says who may read a file.
func (x *DataDecl) readBy() string {
	if len(x.Readers) == 0 {
		return "whoever has a task that reads it may read"
	}
	return "only " + strings.Join(x.Readers, ", ") + " may read"
}

// hasFile reports whether a data item is a file.
func (d *Definition) hasFile(name DataName) bool {
	x := d.Datum(name)
	return x != nil && x.Type == TypeFile
}

// isNoFile reports whether an expression gives a text that is none of the files among the data.
func (e *Expr) isNoFile(isFile func(DataName) bool) bool {
	return e != nil && e.typ == stringType && !slices.ContainsFunc(e.names, isFile)
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
		case decl.Type == TypeFile && e.isNoFile(d.hasFile):
			add("give it one of the files among the data", "%s of workflow %s is a file, and is given a text that is none", name,
				sub.Name)
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
