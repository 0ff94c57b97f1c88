package workflow

import (
	"fmt"
	"maps"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// transitions are the functions that a rule may ask of tasks.
var transitions = map[string]Transition{
	"ready": BecameReady, "running": BecameRunning, "succeeded": BecameSucceeded, "failed": BecameFailed,
}

// ruler turns the syntax tree of a when into a rule: not is pushed down to the
// leaves, and what speaks of no task becomes one leaf of data, as large as
// possible.
type ruler struct {
	scope *scope
	fail  func(offset int, hint, message string)
	// speaks are the parts that speak of tasks.
	speaks map[ast.Node]bool
	parts  int // of all leaves of data, with those of the conditions that they name
}

// newRuler is for the rule of one syntax tree.
func newRuler(s *scope, tree ast.Node, fail func(offset int, hint, message string)) *ruler {
	r := &ruler{scope: s, fail: fail, speaks: map[ast.Node]bool{}}
	r.note(tree)
	return r
}

// note finds the parts that speak of tasks, as far as a rule is taken apart: each
// part is looked at once.
func (r *ruler) note(n ast.Node) bool {
	speaks := false
	switch n := n.(type) {
	case *ast.UnaryNode:
		speaks = r.note(n.Node)
	case *ast.BinaryNode:
		left, right := r.note(n.Left), r.note(n.Right)
		speaks = left || right
	default:
		speaks = firstTerm(n) != nil
	}
	r.speaks[n] = speaks
	return speaks
}

func (r *ruler) rule(n ast.Node, negated bool) *Rule {
	if !r.speaks[n] {
		return r.data(n, negated)
	}
	switch n := n.(type) {
	case *ast.UnaryNode:
		if operatorName(n.Operator) == "not" {
			return r.rule(n.Node, !negated)
		}
	case *ast.BinaryNode:
		switch op := operatorName(n.Operator); op {
		case "and", "or":
			return r.junction(n, op, negated)
		}
	case *ast.CallNode:
		if name, ok := transitionCall(n); ok {
			return r.term(n, name, negated)
		}
	}
	r.fail(firstTerm(n).Location().From, "take it out of the "+constructOf(n),
		"ready(), running(), succeeded() and failed() may stand under and, or and not only")
	return nil
}

func constructOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.BinaryNode:
		return n.Operator
	case *ast.ConditionalNode:
		return "?:"
	}
	return "expression around it"
}

// junction flattens a chain of one operator.
func (r *ruler) junction(n *ast.BinaryNode, op string, negated bool) *Rule {
	out := &Rule{Op: OpAnd}
	if (op == "or") != negated {
		out.Op = OpOr
	}
	for _, side := range []ast.Node{n.Left, n.Right} {
		arg := r.rule(side, negated)
		switch {
		case arg == nil:
		case arg.Op == out.Op:
			out.Args = append(out.Args, arg.Args...)
		default:
			out.Args = append(out.Args, arg)
		}
	}
	return out
}

func (r *ruler) term(n *ast.CallNode, name string, negated bool) *Rule {
	task, mistake := r.scope.taskArgument(name, n, n.Arguments)
	if mistake != nil {
		r.fail(mistake.offset, mistake.hint, mistake.message)
		return nil
	}
	return &Rule{Op: OpTask, Transition: transitions[name], Task: task, Negated: negated}
}

func (r *ruler) data(n ast.Node, negated bool) *Rule {
	if negated {
		not := &ast.UnaryNode{Operator: "not", Node: n}
		not.SetLocation(n.Location())
		n = not
	}
	e, op := r.scope.compile(spell(n), n, r.fail)
	if before := r.parts; before <= maxExprNodes {
		if r.parts += e.parts; r.parts > maxExprNodes {
			r.fail(n.Location().From, "compute a part of it into a data item",
				fmt.Sprintf("with the conditions that it names the rule has more than %d parts", maxExprNodes))
		}
	}
	if op.typ != boolType && !op.typ.open() {
		r.fail(n.Location().From, "compare it with something",
			fmt.Sprintf("a rule must be a boolean, this is %s", op.typ.a()))
	}
	return &Rule{Op: OpData, Data: e}
}

// transitionCall reports whether n is a call of ready, running, succeeded or failed.
func transitionCall(n ast.Node) (name string, ok bool) {
	call, ok := n.(*ast.CallNode)
	if !ok {
		return "", false
	}
	callee, ok := call.Callee.(*ast.IdentifierNode)
	if !ok || transitions[callee.Value] == "" {
		return "", false
	}
	return callee.Value, true
}

// firstTerm is the first task term inside n, or nil.
func firstTerm(n ast.Node) ast.Node {
	var found termFinder
	ast.Walk(&n, &found)
	return found.first
}

type termFinder struct{ first ast.Node }

func (f *termFinder) Visit(n *ast.Node) {
	if _, ok := transitionCall(*n); ok && f.first == nil {
		f.first = *n
	}
}

// allOf is the rule that all tasks have succeeded, and the rest holds.
func allOf(after []TaskName, rest *Rule) *Rule {
	names := map[TaskName]bool{}
	for _, t := range after {
		names[t] = true
	}
	out := &Rule{Op: OpAnd}
	for _, t := range slices.Sorted(maps.Keys(names)) {
		out.Args = append(out.Args, &Rule{Op: OpTask, Transition: BecameSucceeded, Task: t})
	}
	switch {
	case rest == nil:
	case rest.Op == OpAnd:
		out.Args = append(out.Args, rest.Args...)
	default:
		out.Args = append(out.Args, rest)
	}
	switch len(out.Args) {
	case 0:
		return nil
	case 1:
		return out.Args[0]
	}
	return out
}
