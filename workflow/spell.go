package workflow

import (
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// spell prints an expression in the one spelling of its meaning: and, or, not
// and null in words, one space around operators, parentheses only where they
// are needed. Reading it gives the same expression.
func spell(n ast.Node) string {
	var b strings.Builder
	speller{&b}.node(n, 0)
	return b.String()
}

type speller struct{ *strings.Builder }

// The strength of binding, as the library's parser has it.
const (
	bindConditional = 1
	bindOr          = 10
	bindAnd         = 15
	bindCompare     = 20
	bindSum         = 30
	bindNot         = 50
	bindProduct     = 60
	bindSign        = 90
	bindDefault     = 500
	bindMember      = 1000
)

var operatorNames = map[string]string{"&&": "and", "||": "or", "!": "not"}

func operatorName(op string) string {
	if name, ok := operatorNames[op]; ok {
		return name
	}
	return op
}

func binding(op string) int {
	switch op {
	case "or":
		return bindOr
	case "and":
		return bindAnd
	case "+", "-":
		return bindSum
	case "*", "/", "%":
		return bindProduct
	case "??":
		return bindDefault
	}
	return bindCompare
}

// node prints n, in parentheses when it binds less than its surroundings.
func (s speller) node(n ast.Node, around int) {
	switch n := n.(type) {
	case *ast.NilNode:
		s.WriteString("null")
	case *ast.IdentifierNode:
		s.WriteString(n.Value)
	case *ast.BoolNode:
		s.WriteString(strconv.FormatBool(n.Value))
	case *ast.IntegerNode:
		s.WriteString(strconv.Itoa(n.Value))
	case *ast.FloatNode:
		s.WriteString(spellFloat(n.Value))
	case *ast.StringNode:
		s.WriteString(strconv.Quote(n.Value))
	case *ast.ChainNode:
		s.node(n.Node, around)
	case *ast.MemberNode:
		s.member(n)
	case *ast.ArrayNode:
		s.list("[", n.Nodes, "]")
	case *ast.BuiltinNode:
		s.list(n.Name+"(", n.Arguments, ")")
	case *ast.CallNode:
		s.node(n.Callee, bindMember)
		s.list("(", n.Arguments, ")")
	case *ast.UnaryNode:
		s.unary(n, around)
	case *ast.BinaryNode:
		s.binary(n, around)
	case *ast.ConditionalNode:
		s.conditional(n, around)
	default:
		// What the language leaves out was refused before anybody asks for its
		// spelling; the library's is good enough for a message.
		s.WriteString(n.String())
	}
}

// spellFloat keeps a number that is not whole from being read as an integer.
func spellFloat(f float64) string {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

func (s speller) parens(needed bool, inside func()) {
	if needed {
		s.WriteByte('(')
		defer s.WriteByte(')')
	}
	inside()
}

func (s speller) member(n *ast.MemberNode) {
	s.node(n.Node, bindMember)
	if field, ok := n.Property.(*ast.StringNode); ok && ValidDataName(field.Value) && !reserved[field.Value] {
		s.WriteString("." + field.Value)
		return
	}
	s.WriteByte('[')
	s.node(n.Property, 0)
	s.WriteByte(']')
}

func (s speller) list(open string, nodes []ast.Node, end string) {
	s.WriteString(open)
	for i, n := range nodes {
		if i > 0 {
			s.WriteString(", ")
		}
		s.node(n, 0)
	}
	s.WriteString(end)
}

func (s speller) unary(n *ast.UnaryNode, around int) {
	op, bind := operatorName(n.Operator), bindSign
	if op == "not" {
		op, bind = "not ", bindNot
	}
	s.parens(bind < around, func() {
		s.WriteString(op)
		s.node(n.Node, bind+1)
	})
}

// binary keeps the grouping of the syntax tree, except that a chain of one
// and, or one or, needs none.
func (s speller) binary(n *ast.BinaryNode, around int) {
	op := operatorName(n.Operator)
	bind := binding(op)
	s.parens(bind < around, func() {
		left, right := bind, bind+1
		switch op {
		case "and", "or":
			left, right = s.mixed(n.Left, op, bind), s.mixed(n.Right, op, bind)
		case "??", "==", "!=", "<", "<=", ">", ">=", "in", "matches", "contains", "startsWith", "endsWith":
			left = bind + 1
		}
		if op != "??" {
			left, right = unless(n.Left, left), unless(n.Right, right)
		}
		s.node(n.Left, left)
		s.WriteString(" " + op + " ")
		s.node(n.Right, right)
	})
}

// unless asks for parentheses around a ?? beside another operator: the library reads the two together in no order.
func unless(side ast.Node, bind int) int {
	if b, ok := side.(*ast.BinaryNode); ok && b.Operator == "??" {
		return bindMember
	}
	return bind
}

// mixed asks for parentheses around an or in an and and the other way round,
// for the reader's sake.
func (s speller) mixed(side ast.Node, op string, bind int) int {
	if b, ok := side.(*ast.BinaryNode); ok {
		inner := operatorName(b.Operator)
		if (inner == "and" || inner == "or") && inner != op {
			return bindMember
		}
	}
	return bind
}

func (s speller) conditional(n *ast.ConditionalNode, around int) {
	s.parens(bindConditional < around, func() {
		s.node(n.Cond, bindConditional+1)
		s.WriteString(" ? ")
		s.node(n.Exp1, bindConditional+1)
		s.WriteString(" : ")
		s.node(n.Exp2, bindConditional+1)
	})
}
