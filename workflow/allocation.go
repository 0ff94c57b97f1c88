package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// candidateFields are what a constraint of allocation may read of the task to
// be done and of the partner, or person, who might do it.
var candidateFields = map[string]struct {
	typ valueType
	get func(*Env) any
}{
	"task.name":            {stringType, func(e *Env) any { return string(e.Task.Name) }},
	"task.type":            {stringType, func(e *Env) any { return string(e.Task.Type) }},
	"task.role":            {stringType, func(e *Env) any { return string(e.Task.Role) }},
	"task.priority":        {intType, func(e *Env) any { return int64(e.Task.Priority) }},
	"partner.name":         {stringType, func(e *Env) any { return e.Partner.Name }},
	"partner.id":           {stringType, func(e *Env) any { return string(e.Partner.ID) }},
	"partner.roles":        {listType, func(e *Env) any { return anyList(e.Partner.Roles) }},
	"partner.capabilities": {listType, func(e *Env) any { return anyList(e.Partner.Capabilities) }},
	"partner.availability": {numberType, func(e *Env) any { return e.Partner.Availability }},
}

func anyList[S ~string](list []S) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// candidate compiles task.field and partner.field.
func (c *compiler) candidate(n *ast.MemberNode, of string) operand {
	name := of + "."
	if field, ok := n.Property.(*ast.StringNode); ok {
		name += field.Value
	}
	f, known := candidateFields[name]
	if !known {
		var fields []string
		for k := range candidateFields {
			if strings.HasPrefix(k, of+".") {
				fields = append(fields, k)
			}
		}
		slices.Sort(fields)
		return c.errorf(n, "there are "+strings.Join(fields, ", "), "a %s has no such member", of)
	}
	return operand{typ: f.typ, run: func(env *Env) (any, error) {
		if of == "task" && env.Task == nil || of == "partner" && env.Partner == nil {
			return nil, nil
		}
		return f.get(env), nil
	}}
}

// performer compiles performer("task"): who performed it, null before that.
func (c *compiler) performer(n ast.Node, args []ast.Node) operand {
	task, hint, ok := c.scope.taskArgument("performer", args)
	if !ok {
		return c.errorf(n, hint, "performer wants the name of a task")
	}
	return operand{typ: stringType, run: func(env *Env) (any, error) {
		if who, known := env.Performers[task]; known {
			return who, nil
		}
		return nil, nil
	}}
}

// taskArgument reads the one argument of ready(), succeeded() and so on: the
// name of a task of this definition, in quotes.
func (s *scope) taskArgument(fn string, args []ast.Node) (name TaskName, hint string, ok bool) {
	hint = fmt.Sprintf("write %s(\"task\")", fn)
	if len(args) != 1 {
		return "", hint, false
	}
	switch arg := args[0].(type) {
	case *ast.StringNode:
		if s.known[TaskName(arg.Value)] {
			return TaskName(arg.Value), "", true
		}
		if near := didYouMean(arg.Value, s.tasks); near != "" {
			return "", near, false
		}
		return "", fmt.Sprintf("there is no task %q", arg.Value), false
	default:
		if text := spell(arg); s.known[TaskName(text)] {
			hint = fmt.Sprintf("write %s(%q)", fn, text)
		}
	}
	return "", hint, false
}
