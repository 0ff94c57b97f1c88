package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// MaxConditions bounds the conditions of a definition: whether two data states are
// equivalent asks for all of them.
const MaxConditions = 10_000

// condition is a named condition while the definition is read. One that is named
// before it is read is read then.
type condition struct {
	value *node
	state readState
	means operand
	expr  *Expr // nil: it has a mistake
}

type readState uint8

const (
	unread readState = iota
	reading
	done
)

// conditions reads the named conditions. They may name each other, in any order.
func (r *reader) conditions() {
	n := r.written(r.def, "conditions")
	if n == nil || n.isNull() {
		return
	}
	if n.kind != mapNode {
		r.on(n, cmp.Or(entryHint(n.text), "write conditions: {name: expression}"), "want a mapping of names, have %s",
			n.what())
		return
	}
	entries := r.unique(n)
	if len(entries) > MaxConditions {
		r.on(n, "cut it into sub-workflows", "there are %d conditions: at most %d are allowed", len(entries),
			MaxConditions)
		return
	}
	r.scope.readCondition = r.readCondition
	r.scope.conditions = make(map[DataName]*condition, len(entries))
	for _, e := range entries {
		switch name := e.key.text; {
		case !ValidDataName(name):
			r.on(e.key, cmp.Or(entryHint(name), dataRule(name)), "%s is not a valid name for a condition",
				excerpt(name))
		case reserved[name]:
			r.on(e.key, "choose another name", "%q means something in expressions", name)
		case r.scope.data[DataName(name)] != nil:
			r.on(e.key, "choose another name for one of them", "%s is the name of data as well", name)
		default:
			r.scope.conditions[DataName(name)] = &condition{value: e.value}
		}
	}
	for _, e := range entries {
		c := r.scope.conditions[DataName(e.key.text)]
		if c == nil {
			continue
		}
		r.readCondition(DataName(e.key.text), c)
		r.def.Conditions = append(r.def.Conditions, Condition{DataName(e.key.text), c.expr})
	}
}

// readCondition reads one condition, and before it those that it names.
func (r *reader) readCondition(name DataName, c *condition) {
	if c.state != unread {
		return
	}
	m := r.scope.memory
	m.open = append(m.open, name)
	c.state, c.means = reading, broken
	defer func() {
		c.state = done
		m.open = m.open[:len(m.open)-1]
	}()
	tree := r.syntax(c.value)
	if tree == nil {
		return
	}
	s := r.scope
	s.decides, s.timeless = true, true
	expr, op := s.compile(c.value.text, tree, r.inside(c.value))
	if op.typ != boolType && op.typ != anyType {
		r.within(c.value, 0, "compare it with something",
			fmt.Sprintf("a condition must be a boolean, this is %s", op.typ.a()))
		return
	}
	c.expr, c.means = expr, operand{typ: op.typ, run: op.run, constant: op.constant, value: op.value}
}

// condition compiles a name of a condition: it stands for its expression.
func (c *compiler) condition(n *ast.IdentifierNode, named *condition) operand {
	name := DataName(n.Value)
	if named.state == reading {
		open := c.scope.memory.open
		circle := append(slices.Clone(open[slices.Index(open, name):]), name)
		return c.errorf(n, "one of them must not name the others", "conditions name each other in a circle: %s",
			joined(circle, " -> "))
	}
	c.scope.readCondition(name, named)
	e := named.expr
	if e == nil {
		return broken // its mistake is reported
	}
	for _, name := range e.names {
		c.names[name] = true
	}
	if c.parts += e.parts; c.parts > maxExprNodes {
		return c.errorf(n, "compute a part of it into a data item",
			"with the conditions that it names the expression has more than %d parts", maxExprNodes)
	}
	return named.means
}

// readable are the names of data and of conditions, for hints.
func (s *scope) readable() []string {
	if len(s.conditions) == 0 {
		return s.dataNames()
	}
	if s.memory.readable == nil {
		s.memory.readable = slices.Clone(s.dataNames())
		for _, name := range slices.Sorted(maps.Keys(s.conditions)) {
			s.memory.readable = append(s.memory.readable, string(name))
		}
	}
	return s.memory.readable
}
