package workflow

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"
)

// code is a checked part of an expression, ready to run. A nil value is null.
type code func(env *Env) (any, error)

// operand is a checked part with what is known of it.
type operand struct {
	typ  valueType
	run  code
	decl *DataDecl // it is this data item

	// constant: its value is known now.
	constant bool
	value    any
}

func constant(typ valueType, v any) operand {
	return operand{typ: typ, constant: true, value: v, run: func(*Env) (any, error) { return v, nil }}
}

// broken stands for a part whose mistake is already reported; it fits everywhere.
var broken = operand{typ: anyType, run: func(*Env) (any, error) { return nil, nil }}

// compiler checks one expression and makes it run.
type compiler struct {
	scope *scope
	fail  func(offset int, hint, message string)

	names  map[DataName]bool
	ages   map[time.Duration]bool
	aged   bool // instance.age was mentioned
	ageLeg bool // the part being compiled is a side of a comparison with a constant
	parts  int  // with those of the conditions that are named
}

// scope is what an expression may mention.
type scope struct {
	data  map[DataName]*DataDecl
	tasks []string // in the order written, for hints
	known map[TaskName]bool

	// conditions are those of the definition; readCondition reads one that is not read yet.
	conditions    map[DataName]*condition
	readCondition func(DataName, *condition)

	memory *memory

	// The rest depends on where the expression stands.
	decides    bool // a condition: ages must be foreseeable
	allocation bool // task, partner and performer are known
	timeless   bool // a named condition: it is about data alone
}

// memory is what is worked out once for all expressions of a definition.
type memory struct {
	compared  int      // for hints, see didYouMean
	dataNames []string // sorted
	readable  []string // those, and the names of conditions
	enums     map[*DataDecl]map[Value]bool
	open      []DataName // the conditions that are being read, each named by the one before
}

func newMemory() *memory { return &memory{enums: map[*DataDecl]map[Value]bool{}} }

// dataNames are those of all data, sorted.
func (s *scope) dataNames() []string {
	if len(s.memory.dataNames) != len(s.data) {
		s.memory.dataNames = nil
		for name := range s.data {
			s.memory.dataNames = append(s.memory.dataNames, string(name))
		}
		slices.Sort(s.memory.dataNames)
	}
	return s.memory.dataNames
}

// allows reports whether an enum has a value.
func (s *scope) allows(d *DataDecl, v Value) bool {
	values, known := s.memory.enums[d]
	if !known {
		values = make(map[Value]bool, len(d.Enum))
		for _, e := range d.Enum { // they are not lists or maps
			values[e] = true
		}
		s.memory.enums[d] = values
	}
	switch v.(type) {
	case string, int64:
		if values[v] {
			return true
		}
	}
	return slices.ContainsFunc(d.Enum, func(e Value) bool { return equal(e, v) })
}

// compile checks an expression's syntax tree. Mistakes go to fail; the result
// is then of no use.
func (s *scope) compile(src string, n ast.Node, fail func(offset int, hint, message string)) (*Expr, operand) {
	c := &compiler{scope: s, fail: fail, names: map[DataName]bool{}, ages: map[time.Duration]bool{}}
	op := c.node(n)
	e := &Expr{
		Source: src, spelling: spell(n), typ: op.typ, run: op.run, constant: op.constant, aged: c.aged, parts: c.parts,
		names: slices.Sorted(maps.Keys(c.names)), ages: slices.Sorted(maps.Keys(c.ages)),
	}
	return e, op
}

func (c *compiler) node(n ast.Node) operand {
	c.parts++
	switch n := n.(type) {
	case *ast.NilNode:
		return constant(nullType, nil)
	case *ast.BoolNode:
		return constant(boolType, n.Value)
	case *ast.IntegerNode:
		return c.integer(n)
	case *ast.FloatNode:
		return constant(numberType, n.Value)
	case *ast.StringNode:
		return constant(stringType, n.Value)
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.ChainNode:
		return c.node(n.Node)
	case *ast.UnaryNode:
		return c.fold(c.unary(n), n)
	case *ast.BinaryNode:
		return c.fold(c.binary(n), n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.ArrayNode:
		return c.array(n)
	case *ast.BuiltinNode:
		return c.fold(c.call(n, n.Name, n.Arguments), n)
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.fold(c.call(n, callee.Value, n.Arguments), n)
		}
	}
	return c.errorf(n, "expressions have comparisons, arithmetic, and, or, not, in, ?:, ?? and the functions "+
		functionNames(), "%s is not part of the expression language", construct(n))
}

// construct names what the expression language left out.
func construct(n ast.Node) string {
	switch n.(type) {
	case *ast.VariableDeclaratorNode:
		return "let"
	case *ast.SequenceNode:
		return "a sequence with ;"
	case *ast.SliceNode:
		return "a slice"
	case *ast.MapNode:
		return "a map literal"
	case *ast.BytesNode:
		return "a bytes literal"
	case *ast.PointerNode, *ast.PredicateNode:
		return "a predicate"
	}
	return "this"
}

func (c *compiler) errorf(n ast.Node, hint, format string, args ...any) operand {
	c.fail(n.Location().From, hint, fmt.Sprintf(format, args...))
	return broken
}

// fold computes what is constant now, so that its mistakes show now.
func (c *compiler) fold(op operand, n ast.Node) operand {
	if !op.constant {
		return op
	}
	v, err := op.run(&Env{})
	if err != nil {
		return c.errorf(n, "", "%v", err)
	}
	out := constant(op.typ, v)
	if v == nil {
		out.typ = nullType
	}
	return out
}

// integer refuses literals that a 32 bit machine cannot read: a definition is
// valid everywhere or nowhere.
func (c *compiler) integer(n *ast.IntegerNode) operand {
	if n.Value != int(int32(n.Value)) {
		return c.errorf(n, fmt.Sprintf("write %d.0", n.Value), "the whole number %d is beyond 32 bits", n.Value)
	}
	return constant(intType, int64(n.Value))
}

func (c *compiler) identifier(n *ast.IdentifierNode) operand {
	if n.Value == "null" {
		return constant(nullType, nil)
	}
	name := DataName(n.Value)
	decl := c.scope.data[name]
	switch {
	case c.scope.allocation && (n.Value == "task" || n.Value == "partner"):
		return c.errorf(n, "write "+n.Value+".name", "%s is not a value", n.Value)
	case n.Value == "instance":
		return c.errorf(n, "write instance.id or instance.age", "instance is not a value")
	case c.scope.conditions[name] != nil:
		return c.condition(n, c.scope.conditions[name])
	case decl == nil:
		return c.unknownName(n)
	}
	c.names[name] = true
	return operand{typ: valueTypeOf(decl.Type), decl: decl, run: func(env *Env) (any, error) {
		return importValue(decl, env.Data[name])
	}}
}

func (c *compiler) unknownName(n *ast.IdentifierNode) operand {
	hint := c.scope.memory.didYouMean(n.Value, c.scope.readable())
	switch {
	case hint != "":
	case c.scope.known[TaskName(n.Value)]:
		hint = fmt.Sprintf("%s is a task: write succeeded(%q)", n.Value, n.Value)
	default:
		hint = "declare it under data:; text stands in quotes"
	}
	return c.errorf(n, hint, "unknown name %q", n.Value)
}

// member reads a field of instance, task or partner, a map's entry, or a
// list's element.
func (c *compiler) member(n *ast.MemberNode) operand {
	if id, ok := n.Node.(*ast.IdentifierNode); ok {
		switch {
		case id.Value == "instance":
			return c.instance(n)
		case c.scope.allocation && (id.Value == "task" || id.Value == "partner"):
			return c.candidate(n, id.Value)
		}
	}
	of, key := c.node(n.Node), c.node(n.Property)
	switch {
	case of.typ == listType && !key.typ.numeric() && !key.typ.open():
		return c.errorf(n, "write list[0] for the first", "a list is read by an integer, not by %s", key.typ.a())
	case of.typ == mapType && key.typ != stringType && !key.typ.open():
		return c.errorf(n, "", "a map is read by a string, not by %s", key.typ.a())
	case of.typ != listType && of.typ != mapType && !of.typ.open():
		return c.errorf(n, "", "%s has no members", of.typ.a())
	}
	return operand{typ: anyType, run: func(env *Env) (any, error) { return both(env, of.run, key.run, element) }}
}

// element is a list's or map's member; what is not there is null.
func element(of, key any) (any, error) {
	switch of := of.(type) {
	case []any:
		if i, ok := key.(int64); ok {
			if i < 0 || i >= int64(len(of)) {
				return nil, nil
			}
			return importAny(of[i])
		}
	case map[string]any:
		if k, ok := key.(string); ok {
			return importAny(of[k])
		}
	}
	return nil, fmt.Errorf("%s cannot be read by %s", typeOf(of).a(), typeOf(key).a())
}

func (c *compiler) instance(n *ast.MemberNode) operand {
	field, _ := n.Property.(*ast.StringNode)
	switch {
	case field != nil && field.Value == "id":
		return operand{typ: stringType, run: func(env *Env) (any, error) { return env.Instance, nil }}
	case field == nil || field.Value != "age":
		return c.errorf(n, "there are instance.id and instance.age", "the instance has no such member")
	case c.scope.timeless:
		return c.errorf(n, "write instance.age where the condition is named: NAME and instance.age > …",
			"a named condition is about data alone: instance.age has no place in it")
	case c.scope.decides && !c.ageLeg:
		return c.errorf(n, `write for example instance.age > duration("1h")`,
			"instance.age may only be compared, by < <= > >=, with a constant duration")
	}
	c.aged = true
	return operand{typ: durationType, run: func(env *Env) (any, error) { return env.Age, nil }}
}

func (c *compiler) conditional(n *ast.ConditionalNode) operand {
	cond, yes, no := c.node(n.Cond), c.node(n.Exp1), c.node(n.Exp2)
	c.wantBool(n.Cond, cond, "the condition of ?:")
	typ := yes.typ
	switch {
	case yes.typ == no.typ || no.typ == nullType:
	case yes.typ == nullType:
		typ = no.typ
	case yes.typ.numeric() && no.typ.numeric():
		typ = numberType
	default:
		typ = anyType
	}
	return operand{typ: typ, run: func(env *Env) (any, error) {
		v, err := truth(cond.run(env))
		switch {
		case err != nil || v == nil:
			return nil, err
		case v == true:
			return yes.run(env)
		}
		return no.run(env)
	}}
}

func (c *compiler) array(n *ast.ArrayNode) operand {
	var parts []operand
	out := operand{typ: listType, constant: true}
	for _, item := range n.Nodes {
		op := c.node(item)
		out.constant = out.constant && op.constant
		parts = append(parts, op)
	}
	out.run = func(env *Env) (any, error) {
		list := make([]any, len(parts))
		for i, p := range parts {
			v, err := p.run(env)
			if err != nil {
				return nil, err
			}
			list[i] = export(v)
		}
		return list, nil
	}
	return c.fold(out, n)
}

// wantBool reports an operand that can never be true or false.
func (c *compiler) wantBool(n ast.Node, op operand, what string) {
	if op.typ != boolType && !op.typ.open() {
		c.errorf(n, "compare it with something", "%s must be a boolean, not %s", what, op.typ.a())
	}
}
