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
	task, mistake := c.scope.taskArgument("performer", n, args)
	if mistake != nil {
		c.fail(mistake.offset, mistake.hint, mistake.message)
		return broken
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
func (s *scope) taskArgument(fn string, call ast.Node, args []ast.Node) (TaskName, *exprError) {
	mistake := &exprError{
		offset:  call.Location().From,
		message: fn + "() wants the name of one task",
		hint:    fmt.Sprintf("write %s(\"task\")", fn),
	}
	if len(args) != 1 {
		return "", mistake
	}
	mistake.offset = args[0].Location().From
	name, quoted := args[0].(*ast.StringNode)
	if !quoted {
		// A name with a hyphen reads as a subtraction.
		if text := strings.ReplaceAll(spell(args[0]), " ", ""); s.known[TaskName(text)] {
			mistake.offset = min(mistake.offset, call.Location().From+len(fn)+1)
			mistake.hint = fmt.Sprintf("write %s(%q)", fn, text)
		}
		return "", mistake
	}
	if !s.known[TaskName(name.Value)] {
		mistake.message = fmt.Sprintf("there is no task %q", name.Value)
		mistake.hint = s.memory.didYouMean(name.Value, s.tasks)
		return "", mistake
	}
	return TaskName(name.Value), nil
}
