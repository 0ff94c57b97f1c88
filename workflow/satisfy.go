package workflow

import (
	"math"
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"
)

// This file finds out whether an expression over data can hold at all. It knows
// comparisons of a data item, or of instance.age, with a constant or with itself, in, null, and what joins them; of all
// else only that it does not hold of null. It looks at maxClauses ways to hold, and of more it says nothing.

// atom is what one way to hold asks: of a data item, or (decl is nil) of what is not
// understood.
type atom struct {
	decl   *DataDecl
	op     string // ==, !=, <, <=, >, >=, in, not in, null, not null
	value  any    // in the evaluator's types
	values []any  // of in and not in
	fails  bool   // it does not hold: it is false, or null
}

// satisfier takes expressions apart.
type satisfier struct{ of *Definition }

// dnf lists the ways in which an expression can hold; known is false if there are too
// many. No way: it never holds.
func (s satisfier) dnf(n ast.Node, negated bool, depth int) (ways [][]atom, known bool) {
	if depth > maxExprNodes {
		return nil, false
	}
	switch n := n.(type) {
	case *ast.BoolNode:
		if n.Value != negated {
			return [][]atom{nil}, true
		}
		return nil, true
	case *ast.NilNode:
		return nil, true // null does not hold, nor does its not
	case *ast.UnaryNode:
		if operatorName(n.Operator) == "not" {
			return s.dnf(n.Node, !negated, depth+1)
		}
	case *ast.IdentifierNode:
		if e := s.of.Condition(DataName(n.Value)); e != nil {
			return s.expr(e, negated, depth+1)
		}
		if decl := s.decl(n); decl != nil {
			return [][]atom{{{decl: decl, op: "==", value: !negated}}}, true
		}
	case *ast.BinaryNode:
		return s.binary(n, negated, depth)
	}
	return [][]atom{s.opaque(n)}, true
}

// opaque are the atoms of what is not understood: neither it nor its not holds where what it is computed from is null.
func (s satisfier) opaque(n ast.Node) []atom {
	out := []atom{{}}
	for _, decl := range s.needs(n, 0) {
		out = append(out, atom{decl: decl, op: "not null"})
	}
	return out
}

// needs are data without which an expression is null, as far as that can be seen.
func (s satisfier) needs(n ast.Node, depth int) (out []*DataDecl) {
	var parts []ast.Node
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if decl := s.decl(n); decl != nil {
			return []*DataDecl{decl}
		}
	case *ast.MemberNode:
		parts = []ast.Node{n.Node, n.Property}
	case *ast.ChainNode:
		parts = []ast.Node{n.Node}
	case *ast.UnaryNode:
		parts = []ast.Node{n.Node}
	case *ast.BuiltinNode:
		parts = n.Arguments
	case *ast.CallNode:
		parts = n.Arguments
	case *ast.BinaryNode:
		return s.needsOfBoth(n, depth)
	}
	for _, part := range parts {
		if depth < maxExprNodes {
			out = append(out, s.needs(part, depth+1)...)
		}
	}
	return out
}

// needsOfBoth are the data without which an operator with two sides gives null.
func (s satisfier) needsOfBoth(n *ast.BinaryNode, depth int) []*DataDecl {
	op := operatorName(n.Operator)
	if depth >= maxExprNodes || op == "and" || op == "or" || op == "??" {
		return nil
	}
	left, right := s.needs(n.Left, depth+1), s.needs(n.Right, depth+1)
	value := func(side ast.Node, of []*DataDecl) bool { // it is not always null
		v, known := literal(side)
		return len(of) > 0 || known && v != nil
	}
	if (op == "==" || op == "!=") && !(value(n.Left, left) && value(n.Right, right)) {
		return nil // it may ask whether the other side is null
	}
	return append(left, right...)
}

// expr takes an expression apart by its spelling.
func (s satisfier) expr(e *Expr, negated bool, depth int) ([][]atom, bool) {
	tree, err := parseExpr(e.spelling)
	if err != nil {
		return nil, false
	}
	return s.dnf(tree, negated, depth)
}

func (s satisfier) decl(n ast.Node) *DataDecl {
	id, ok := n.(*ast.IdentifierNode)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(s.of.Data, func(d DataDecl) bool { return string(d.Name) == id.Value })
	if i < 0 {
		return nil
	}
	return &s.of.Data[i]
}

func (s satisfier) binary(n *ast.BinaryNode, negated bool, depth int) ([][]atom, bool) {
	op := operatorName(n.Operator)
	switch op {
	case "and", "or":
		left, known1 := s.dnf(n.Left, negated, depth+1)
		right, known2 := s.dnf(n.Right, negated, depth+1)
		if !known1 || !known2 {
			return nil, false
		}
		if (op == "or") != negated {
			out := append(slices.Clip(left), right...)
			return out, len(out) <= maxClauses
		}
		if len(left)*len(right) > maxClauses {
			return nil, false
		}
		var out [][]atom
		for _, a := range left {
			for _, b := range right {
				out = append(out, append(slices.Clip(a), b...))
			}
		}
		return out, true
	}
	if a := s.comparison(n, op, negated); a.decl != nil {
		return [][]atom{{a}}, true
	}
	return [][]atom{s.opaque(n)}, true
}

// ageItem stands for instance.age, as a whole number of nanoseconds. No data item has its name.
var ageItem = &DataDecl{Name: "instance.age", Type: TypeInteger, Required: true, Min: new(float64)}

// age is the atom of a comparison of instance.age with a constant; false: it is none.
func (s satisfier) age(n *ast.BinaryNode, op string, negated bool) (atom, bool) {
	other := n.Right
	if !isAge(n.Left) {
		other, op = n.Left, mirrored[op]
	}
	span, known := constantCall(other, "duration").(time.Duration)
	if !known || mirrored[op] == "" {
		return atom{}, false
	}
	if negated {
		op = turned[op]
	}
	return atom{decl: ageItem, op: op, value: int64(span)}, true
}

// constantCall is what a function gives of a constant text; nil: it is not that.
func constantCall(n ast.Node, name string) any {
	call, is := n.(*ast.BuiltinNode)
	if !is || call.Name != name || len(call.Arguments) != 1 {
		return nil
	}
	text, constant := call.Arguments[0].(*ast.StringNode)
	if !constant {
		return nil
	}
	v, err := functions[name].run([]any{text.Value})
	if err != nil {
		return nil
	}
	return v
}

// time is the atom of a comparison of a time with a constant one; no decl: that is not understood.
func (s satisfier) time(decl *DataDecl, other ast.Node, op string, negated bool) atom {
	v := constantCall(other, "date")
	if text, is := other.(*ast.StringNode); is {
		v, _ = functions["date"].run([]any{text.Value})
	}
	at, known := v.(time.Time)
	if !known || mirrored[op] == "" || len(decl.Enum) > 0 {
		return atom{}
	}
	if negated {
		op = turned[op]
	}
	return atom{decl: decl, op: op, value: at}
}

// turned are the operators that hold where the others do not, null apart.
var turned = map[string]string{
	"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "null": "not null",
	"not null": "null",
}

// swapped are the operators when the sides change places.
var swapped = map[string]string{"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

// alone is the atom of a comparison of a data item with itself: it is not null, and then the comparison holds or not.
func alone(decl *DataDecl, op string, negated bool) atom {
	switch holds := op == "==" || op == "<=" || op == ">="; {
	case swapped[op] == "":
		return atom{}
	case holds == negated:
		return atom{decl: decl, op: "in"} // none
	}
	return atom{decl: decl, op: "not null"}
}

// isNull is the atom of a comparison of a data item with null: one of order never holds.
func isNull(decl *DataDecl, op string, negated bool) atom {
	if op != "==" && op != "!=" {
		return atom{decl: decl, op: "in"} // none
	}
	if (op == "==") == negated {
		return atom{decl: decl, op: "not null"}
	}
	return atom{decl: decl, op: "null"}
}

// comparison is the atom of a comparison of a data item with a constant, or with itself; no decl: that is not understood.
func (s satisfier) comparison(n *ast.BinaryNode, op string, negated bool) atom {
	if isAge(n.Left) || isAge(n.Right) {
		a, _ := s.age(n, op, negated)
		return a
	}
	decl, other := s.decl(n.Left), n.Right
	if decl == nil && swapped[op] != "" {
		decl, other, op = s.decl(n.Right), n.Left, swapped[op]
	}
	value, known := literal(other)
	switch {
	case decl != nil && s.decl(other) == decl:
		return alone(decl, op, negated)
	case decl != nil && known && value == nil && swapped[op] != "":
		return isNull(decl, op, negated)
	}
	if decl != nil && decl.Type == TypeTime && mirrored[op] != "" {
		return s.time(decl, other, op, negated)
	}
	if decl == nil || turned[op] == "" || decl.Type == TypeTime || decl.Type == TypeQuery || decl.Type == TypeList ||
		decl.Type == TypeMap {
		return atom{}
	}
	a := atom{decl: decl, op: op}
	switch {
	case !known:
		return atom{}
	case op == "in":
		list, isList := value.([]any)
		if !isList {
			return atom{}
		}
		a.values = list
	case value == nil:
		return atom{}
	default:
		a.value = value
	}
	if negated {
		a.op = turned[a.op]
	}
	return a
}

// literal is the value of a part that is constant by its looks.
func literal(n ast.Node) (v any, known bool) {
	switch n := n.(type) {
	case *ast.NilNode:
		return nil, true
	case *ast.IdentifierNode:
		return nil, n.Value == "null"
	case *ast.BoolNode:
		return n.Value, true
	case *ast.IntegerNode:
		return int64(n.Value), true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.StringNode:
		return n.Value, true
	case *ast.UnaryNode:
		if v, known := literal(n.Node); known && n.Operator == "-" {
			if out, err := subtract(int64(0), v); err == nil {
				return out, true
			}
		}
	case *ast.ArrayNode:
		list := []any{}
		for _, item := range n.Nodes {
			v, known := literal(item)
			if !known {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	}
	return nil, false
}

// possible says of one way whether it can hold, as far as is known. Sure: nothing in it
// was left aside, so that there is a state in which it does hold.
func possible(way []atom) (can, sure bool) {
	sure = true
	of := map[*DataDecl][]atom{}
	for _, a := range way {
		if a.decl == nil {
			sure = false
			continue
		}
		of[a.decl] = append(of[a.decl], a)
	}
	for decl, atoms := range of {
		here, exact := oneItem(decl, atoms)
		if !here {
			return false, true
		}
		sure = sure && exact
	}
	return true, sure
}

// oneItem looks for a value of one data item that all atoms allow. Candidates are the
// constants that they name, and values beside and between these; that is exact, except
// where the range leaves others that are not tried: exact is then false.
func oneItem(decl *DataDecl, atoms []atom) (can, exact bool) {
	for _, v := range append(candidates(decl, atoms), any(nil)) {
		if allowed(decl, v) && !slices.ContainsFunc(atoms, func(a atom) bool { return !a.holds(v) }) {
			return true, true
		}
	}
	// A text may lie between two that are named; the other types have been tried whole.
	ordered := slices.ContainsFunc(atoms,
		func(a atom) bool { return slices.Contains([]string{"<", "<=", ">", ">="}, a.op) })
	if decl.Type == TypeString && len(decl.Enum) == 0 && ordered {
		return true, false
	}
	return false, true
}

// someValue stands for any value but null of a type whose values are not told apart.
type someValue struct{}

func allowed(decl *DataDecl, v any) bool {
	return v == nil || v == someValue{} || checkRange(decl, v) == nil
}

func (a atom) holds(v any) bool { return a.isTrue(v) != a.fails }

func (a atom) isTrue(v any) bool {
	isIn := func() bool {
		return slices.ContainsFunc(a.values, func(x any) bool { return x != nil && equal(x, v) })
	}
	switch {
	case a.op == "null" || a.op == "not null":
		return (v == nil) == (a.op == "null")
	case v == nil:
		return false
	case a.op == "in":
		return isIn()
	case a.op == "not in":
		return !isIn()
	case a.op == "==":
		return equal(a.value, v)
	case a.op == "!=":
		return !equal(a.value, v)
	}
	i, err := compare(v, a.value)
	if err != nil {
		return true // not understood, so not excluded
	}
	return map[string]bool{"<": i < 0, "<=": i <= 0, ">": i > 0, ">=": i >= 0}[a.op]
}

// candidates are values that atoms tell apart: one of each stretch between the constants.
func candidates(decl *DataDecl, atoms []atom) []any {
	var named []any
	for _, a := range atoms {
		named = append(named, a.values...)
		if a.value != nil {
			named = append(named, a.value)
		}
	}
	switch decl.Type {
	case TypeBoolean:
		return []any{true, false}
	case TypeInteger, TypeNumber:
		return numbersAround(decl, named)
	case TypeTime:
		if len(named) > 0 {
			return timesAround(named)
		}
		return []any{someValue{}}
	case TypeList, TypeMap, TypeQuery, TypeFile:
		return []any{someValue{}}
	}
	out := append(slices.Clone(named), decl.Enum...)
	other := "x"
	for _, v := range named { // longer than all that are named, so none of them
		if s, is := v.(string); is && len(s) >= len(other) {
			other = s + "x"
		}
	}
	return append(out, other)
}

// timesAround are the times that are named, and those just beside them.
func timesAround(named []any) (out []any) {
	for _, v := range named {
		if t, is := v.(time.Time); is {
			out = append(out, t, t.Add(-1), t.Add(1))
		}
	}
	return out
}

// numbersAround are the numbers that are named, and some just beside and between them,
// by the type of the item.
func numbersAround(decl *DataDecl, named []any) (out []any) {
	named = append(named, decl.Enum...)
	for _, limit := range []*float64{decl.Min, decl.Max} {
		if limit != nil {
			named = append(named, *limit)
		}
	}
	sorted := []float64{0}
	for _, v := range named {
		if f, is := float(v); is {
			sorted, out = append(sorted, f), append(out, v)
		}
	}
	slices.Sort(sorted)
	for i, f := range sorted {
		beside := []float64{f, f - 1, f + 1, math.Floor(f), math.Ceil(f), math.Floor(f) + 1, math.Ceil(f) - 1}
		if i > 0 {
			beside = append(beside, (f+sorted[i-1])/2)
		}
		for _, b := range beside {
			if v, err := plainFloat(b); err == nil {
				out = append(out, v)
			}
		}
	}
	return slices.DeleteFunc(out, func(v any) bool {
		_, whole := v.(int64)
		return decl.Type == TypeInteger && !whole && v != math.Trunc(v.(float64))
	})
}
