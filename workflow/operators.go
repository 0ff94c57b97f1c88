package workflow

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
)

// unary compiles not and the signs.
func (c *compiler) unary(n *ast.UnaryNode) operand {
	op := c.node(n.Node)
	out := operand{constant: op.constant}
	switch n.Operator {
	case "not", "!":
		if op.typ != boolType && !op.typ.open() {
			return c.errorf(n, "not binds tightly: write not (a == b)", "not wants a boolean, not %s", op.typ.a())
		}
		out.typ = boolType
		out.run = func(env *Env) (any, error) { return negate(op.run(env)) }
	default:
		if !op.typ.numeric() && op.typ != durationType && !op.typ.open() {
			return c.errorf(n, "", "%s wants a number, not %s", n.Operator, op.typ.a())
		}
		zero, apply := constant(intType, int64(0)), arithmetic[n.Operator]
		out.typ = op.typ
		out.run = func(env *Env) (any, error) { return both(env, zero.run, op.run, apply) }
		if op.typ == durationType {
			zero = constant(durationType, time.Duration(0))
		}
	}
	return out
}

// binary compiles operators with two sides.
func (c *compiler) binary(n *ast.BinaryNode) operand {
	left, right := c.sides(n)
	out := operand{typ: boolType, constant: left.constant && right.constant}
	switch n.Operator {
	case "and", "&&":
		c.wantBool(n.Left, left, "a side of and")
		c.wantBool(n.Right, right, "a side of and")
		out.run = kleene(left.run, right.run, false)
	case "or", "||":
		c.wantBool(n.Left, left, "a side of or")
		c.wantBool(n.Right, right, "a side of or")
		out.run = kleene(left.run, right.run, true)
	case "==", "!=":
		return c.equality(n, left, right, out)
	case "<", "<=", ">", ">=":
		return c.ordering(n, left, right, out)
	case "+", "-", "*", "/", "%":
		return c.arithmetic(n, left, right, out)
	case "in":
		return c.in(n, left, right, out)
	case "contains", "startsWith", "endsWith", "matches":
		return c.text(n, left, right, out)
	case "??":
		out.typ = left.typ
		if left.typ != right.typ {
			out.typ = anyType
		}
		out.run = func(env *Env) (any, error) {
			if v, err := left.run(env); v != nil || err != nil {
				return v, err
			}
			return right.run(env)
		}
	default:
		return c.errorf(n, "", "the operator %s is not part of the expression language", n.Operator)
	}
	return out
}

// sides compiles the two sides of an operator. A constant text next to a time
// is read as a time. An age next to a constant is noted.
func (c *compiler) sides(n *ast.BinaryNode) (left, right operand) {
	switch n.Operator {
	case "<", "<=", ">", ">=":
		c.ageLeg = isAge(n.Left) != isAge(n.Right)
	}
	ageLeft := c.ageLeg && isAge(n.Left)
	ageRight := c.ageLeg && isAge(n.Right)
	c.ageLeg = ageLeft
	left = c.node(n.Left)
	c.ageLeg = ageRight
	right = c.node(n.Right)
	c.ageLeg = false
	switch {
	case ageLeft:
		c.threshold(n, n.Operator, right)
	case ageRight:
		c.threshold(n, mirrored[n.Operator], left)
	}
	return c.asTime(n.Left, left, right), c.asTime(n.Right, right, left)
}

var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}

func isAge(n ast.Node) bool {
	m, ok := n.(*ast.MemberNode)
	if !ok {
		return false
	}
	of, isName := m.Node.(*ast.IdentifierNode)
	field, isField := m.Property.(*ast.StringNode)
	return isName && isField && of.Value == "instance" && field.Value == "age"
}

// threshold notes the first age at which instance.age OP limit has its later
// value.
func (c *compiler) threshold(n ast.Node, op string, limit operand) {
	span, ok := limit.value.(time.Duration)
	switch {
	case ok && (op == ">" || op == "<="):
		c.ages[span+1] = true
	case ok:
		c.ages[span] = true
	case c.scope.decides && limit.typ == durationType:
		c.errorf(n, `write for example instance.age > duration("1h")`,
			"instance.age may only be compared with a constant duration")
	}
}

// asTime reads op as a time when it is a constant text next to a time.
func (c *compiler) asTime(n ast.Node, op, other operand) operand {
	text, ok := op.value.(string)
	if !ok || other.typ != timeType {
		return op
	}
	t, err := parseTime(text)
	if err != nil {
		return c.errorf(n, "", "%v", err)
	}
	return constant(timeType, t)
}

func (c *compiler) equality(n *ast.BinaryNode, left, right, out operand) operand {
	negated := n.Operator == "!="
	if left.typ == nullType || right.typ == nullType {
		tested := left
		if left.typ == nullType {
			tested = right
		}
		out.run = func(env *Env) (any, error) {
			v, err := tested.run(env)
			return (v == nil) != negated, err
		}
		return out
	}
	if !left.typ.comparable(right.typ) {
		return c.errorf(n, "", "%s is never equal to %s", left.typ.a(), right.typ.a())
	}
	c.checkEnum(n, left, right)
	c.checkEnum(n, right, left)
	out.run = func(env *Env) (any, error) {
		return both(env, left.run, right.run, func(a, b any) (any, error) { return equal(a, b) != negated, nil })
	}
	return out
}

// checkEnum reports a constant that a data item can never have.
func (c *compiler) checkEnum(n ast.Node, item, value operand) {
	if item.decl == nil || len(item.decl.Enum) == 0 || !value.constant || value.value == nil {
		return
	}
	if c.scope.allows(item.decl, value.value) {
		return
	}
	var known []string
	for _, e := range item.decl.Enum {
		known = append(known, fmt.Sprint(e))
	}
	hint := c.scope.memory.didYouMean(fmt.Sprint(value.value), known)
	if hint == "" {
		hint = "its values are " + strings.Join(known, ", ")
	}
	c.errorf(n, hint, "%s is never %v", item.decl.Name, value.value)
}

func (c *compiler) ordering(n *ast.BinaryNode, left, right, out operand) operand {
	if !left.typ.open() && !orderable(left.typ) || !right.typ.open() && !orderable(right.typ) ||
		!left.typ.comparable(right.typ) {
		hint := ""
		if left.typ == durationType || right.typ == durationType {
			hint = `write a duration as duration("1h")`
		}
		return c.errorf(n, hint, "%s cannot be compared with %s by %s", left.typ.a(), right.typ.a(), n.Operator)
	}
	holds := map[string]func(int) bool{
		"<": func(i int) bool { return i < 0 }, "<=": func(i int) bool { return i <= 0 },
		">": func(i int) bool { return i > 0 }, ">=": func(i int) bool { return i >= 0 },
	}[n.Operator]
	out.run = func(env *Env) (any, error) {
		return both(env, left.run, right.run, func(a, b any) (any, error) {
			i, err := compare(a, b)
			return holds(i), err
		})
	}
	return out
}

func orderable(t valueType) bool {
	return t.numeric() || t == stringType || t == timeType || t == durationType
}

func (c *compiler) arithmetic(n *ast.BinaryNode, left, right, out operand) operand {
	typ, ok := resultType(n.Operator, left.typ, right.typ)
	if !ok {
		return c.errorf(n, "", "%s does not fit %s and %s", n.Operator, left.typ.a(), right.typ.a())
	}
	if f, isNumber := float(right.value); isNumber && f == 0 && (n.Operator == "/" || n.Operator == "%") {
		return c.errorf(n, "", "%v", errZero)
	}
	apply := arithmetic[n.Operator]
	out.typ = typ
	out.run = func(env *Env) (any, error) { return both(env, left.run, right.run, apply) }
	return out
}

// resultType says what an arithmetic operator makes of two types.
func resultType(op string, a, b valueType) (valueType, bool) {
	switch {
	case a.open() || b.open():
		return anyType, true
	case a.numeric() && b.numeric() && op == "%":
		return intType, a == intType && b == intType
	case a.numeric() && b.numeric() && (op == "/" || a == numberType || b == numberType):
		return numberType, true
	case a.numeric() && b.numeric():
		return intType, true
	case a == stringType && b == stringType:
		return stringType, op == "+"
	case a == timeType && b == timeType:
		return durationType, op == "-"
	case a == timeType && b == durationType:
		return timeType, op == "+" || op == "-"
	case a == durationType && b == timeType:
		return timeType, op == "+"
	case a == durationType && b == durationType:
		return durationType, op == "+" || op == "-"
	}
	return anyType, false
}

func (c *compiler) in(n *ast.BinaryNode, left, right, out operand) operand {
	if right.typ != listType && right.typ != mapType && !right.typ.open() {
		return c.errorf(n, "for a part of a text write text contains part",
			"in wants a list or a map on its right, not %s", right.typ.a())
	}
	if list, ok := right.value.([]any); ok {
		for _, v := range list {
			c.checkEnum(n, left, operand{constant: true, value: v})
			if !left.typ.comparable(typeOf(v)) && left.typ != timeType {
				return c.errorf(n, "", "%s is never equal to %s", left.typ.a(), typeOf(v).a())
			}
		}
	}
	out.run = func(env *Env) (any, error) { return both(env, left.run, right.run, member) }
	return out
}

func member(v, of any) (any, error) {
	switch of := of.(type) {
	case []any:
		for _, item := range of {
			if item, _ := importAny(item); equal(export(v), export(item)) {
				return true, nil
			}
		}
		return false, nil
	case map[string]any:
		key, ok := v.(string)
		_, found := of[key]
		return ok && found, nil
	}
	return nil, fmt.Errorf("in wants a list or a map, not %s", typeOf(of).a())
}

// text compiles the operators on texts. A pattern must be constant, so that it
// is compiled once and its mistakes show when the definition is checked.
func (c *compiler) text(n *ast.BinaryNode, left, right, out operand) operand {
	for _, side := range []operand{left, right} {
		if side.typ != stringType && !side.typ.open() {
			return c.errorf(n, "", "%s wants texts, not %s", n.Operator, side.typ.a())
		}
	}
	var test func(s, part string) bool
	switch n.Operator {
	case "contains":
		test = strings.Contains
	case "startsWith":
		test = strings.HasPrefix
	case "endsWith":
		test = strings.HasSuffix
	default:
		pattern, ok := right.value.(string)
		re, err := regexp.Compile(pattern)
		if !ok || err != nil {
			return c.errorf(n.Right, "it is a regular expression in quotes (RE2)",
				"the pattern of matches must be constant and valid")
		}
		test = func(s, _ string) bool { return re.MatchString(s) }
	}
	out.run = func(env *Env) (any, error) {
		return both(env, left.run, right.run, func(a, b any) (any, error) {
			s, ok1 := a.(string)
			part, ok2 := b.(string)
			if !ok1 || !ok2 {
				return nil, fmt.Errorf("%s wants texts, not %s and %s", n.Operator, typeOf(a).a(), typeOf(b).a())
			}
			return test(s, part), nil
		})
	}
	return out
}

// both runs two parts and applies an operation to them; null if either is.
func both(env *Env, left, right code, apply func(a, b any) (any, error)) (any, error) {
	a, err := left(env)
	if err != nil {
		return nil, err
	}
	b, err := right(env)
	if a == nil || b == nil || err != nil {
		return nil, err
	}
	return apply(a, b)
}

var errNotBoolean = errors.New("and, or, not and ?: want booleans")

// truth checks that a part's result is a boolean or null.
func truth(v any, err error) (any, error) {
	if _, ok := v.(bool); v != nil && !ok && err == nil {
		return nil, fmt.Errorf("%w, not %s", errNotBoolean, typeOf(v).a())
	}
	return v, err
}

func negate(v any, err error) (any, error) {
	v, err = truth(v, err)
	if b, ok := v.(bool); ok {
		return !b, err
	}
	return nil, err
}

// kleene is or (absorbing true) and and (absorbing false) in three values.
func kleene(left, right code, absorbing bool) code {
	return func(env *Env) (any, error) {
		a, err := truth(left(env))
		if err != nil || a == absorbing {
			return a, err
		}
		b, err := truth(right(env))
		switch {
		case err != nil || b == absorbing:
			return b, err
		case a == nil:
			return nil, nil
		}
		return b, nil
	}
}
