package wedsql

import (
	"strings"
)

// The limits of a predicate: brackets in brackets, and the words and signs of which it
// consists; what the native format takes is less.
const (
	maxDepth  = 100
	maxTokens = 4000
)

// node is a part of a predicate as written, with what BETWEEN and the like stand for
// taken apart.
type node struct {
	op   string // see below
	args []*node
	at   position

	text    string // of a literal that is a text or number, of an attribute: its name as written
	quoted  bool   // the attribute's name stands in double quotes
	holds   bool   // of the literal of a truth
	escape  rune   // of like; 0: none
	capital bool   // of like: capitals and small letters are alike
}

// The operators of nodes: and, or, not; = <> < <= > >=; in (the first argument in the
// others); like; null and unknown (is null; is unknown, of a truth); known (is true, or holds is what null counts as); same
// (is not distinct from). And the leaves:
const (
	opAttribute = "attribute"
	opText      = "text"
	opNumber    = "number"
	opTruth     = "truth"
	opNull      = "NULL"
)

// predicateParser reads one predicate by the precedence that PostgreSQL has, from the
// weakest: or, and, not, is, comparison, then between, in and like.
type predicateParser struct {
	tokens []token
	fail   func(at position, hint, format string, args ...any)
	failed bool
	depth  int
}

// parsePredicate reads the characters of a predicate; nil: it has mistakes, which are
// reported.
func parsePredicate(chars []char, last position, fail func(position, string, string, ...any)) *node {
	p := &predicateParser{}
	p.fail = func(at position, hint, format string, args ...any) {
		if !p.failed { // what follows a mistake is not understood
			fail(at, hint, format, args...)
		}
		p.failed = true
	}
	p.tokens = scan(chars, last, p.fail)
	if len(p.tokens) > maxTokens {
		p.fail(p.tokens[maxTokens].at, "have a transition work out a part of it into an attribute",
			"the predicate has more than %d words and signs", maxTokens)
		return nil
	}
	if p.peek().kind == end {
		p.fail(last, "write what must hold, such as step = 'asked'", "the predicate is empty")
		return nil
	}
	n := p.or()
	if t := p.peek(); t.kind != end {
		p.unexpected(t)
	}
	if p.failed {
		return nil
	}
	return n
}

func (p *predicateParser) peek() token { return p.tokens[0] }

func (p *predicateParser) next() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *predicateParser) accept(words ...string) bool {
	if p.peek().word(words...) {
		p.next()
		return true
	}
	return false
}

// foreign are operators and words that SQL has and predicates here have not, with what
// may be written instead.
var foreign = map[string]string{
	"==": "write = for is equal", "+": "", "-": "", "*": "", "/": "", "%": "", "||": "", "^": "",
	"~": "write LIKE", "~*": "write ILIKE", "!~": "write NOT LIKE", "!~*": "write NOT ILIKE", "~~": "write LIKE",
	"~~*": "write ILIKE",
	"!~~": "write NOT LIKE", "!~~*": "write NOT ILIKE",
	"::": "leave the type out: the attribute takes that of the literals", "->": "",
	"select": "", "exists": "", "case": "", "cast": "leave the type out", "any": "write IN", "all": "",
	"similar": "write LIKE",
}

// unexpected reports what does not fit.
func (p *predicateParser) unexpected(t token) {
	if hint, known := foreign[t.value]; known && (t.kind == symbol || t.kind == word) {
		if hint == "" {
			hint = "predicates have attributes and literals, = <> < > <= >=, AND, OR, NOT, IS, IN, BETWEEN and LIKE; have a transition work out the rest"
		}
		p.fail(t.at, hint, "%s is not translated", t.what())
		return
	}
	p.fail(t.at, "an operator, a comma, a quote or a bracket may be missing before it", "%s does not fit here",
		t.what())
}

func (p *predicateParser) or() *node {
	left := p.and()
	for t := p.peek(); p.accept("or"); t = p.peek() {
		left = &node{op: "or", args: []*node{left, p.and()}, at: t.at}
	}
	return left
}

func (p *predicateParser) and() *node {
	left := p.not()
	for t := p.peek(); p.accept("and"); t = p.peek() {
		left = &node{op: "and", args: []*node{left, p.not()}, at: t.at}
	}
	return left
}

func (p *predicateParser) not() *node {
	negated := false
	first := p.peek()
	for p.accept("not") {
		negated = !negated
	}
	n := p.is()
	if first.word("not") {
		n = &node{op: "not", args: []*node{n}, at: first.at}
		if !negated { // an even number of them asks for a truth, too
			n = &node{op: "not", args: []*node{n}, at: first.at}
		}
	}
	return n
}

// is reads IS NULL and its like, which follow a whole comparison.
func (p *predicateParser) is() *node {
	n := p.comparison()
	t := p.peek()
	switch {
	case p.accept("isnull"):
		return &node{op: "null", args: []*node{n}, at: t.at}
	case p.accept("notnull"):
		return negate(&node{op: "null", args: []*node{n}, at: t.at})
	case !p.accept("is"):
		return n
	}
	not := p.accept("not")
	of := p.peek()
	out := &node{args: []*node{n}, at: t.at}
	switch {
	case p.accept("null"):
		out.op = "null"
	case p.accept("unknown"):
		out.op = "unknown"
	case p.accept("true"):
		out.op = "known"
	case p.accept("false"):
		out.op, out.holds = "known", true
		not = !not
	case p.accept("distinct"):
		if !p.accept("from") {
			p.unexpected(p.peek())
		}
		out.op, out.args = "same", []*node{n, p.comparison()}
		not = !not
	default:
		p.fail(of.at, "write IS NULL, IS TRUE, IS FALSE, IS UNKNOWN or IS DISTINCT FROM, each with or without NOT",
			"%s does not follow IS", of.what())
	}
	if not {
		return negate(out)
	}
	return out
}

func negate(n *node) *node { return &node{op: "not", args: []*node{n}, at: n.at} }

// comparison reads at most one: a < b < c means nothing in SQL.
func (p *predicateParser) comparison() *node {
	left := p.ranged()
	t := p.peek()
	if t.kind != symbol {
		return left
	}
	op := t.value
	switch op {
	case "!=":
		op = "<>"
	case "=", "<>", "<", "<=", ">", ">=":
	default:
		return left
	}
	p.next()
	return &node{op: op, args: []*node{left, p.ranged()}, at: t.at}
}

// ranged reads BETWEEN, IN and LIKE.
func (p *predicateParser) ranged() *node {
	left := p.value()
	t := p.peek()
	not := t.word("not") && p.tokens[1].word("between", "in", "like", "ilike", "similar")
	if not {
		p.next()
		t = p.peek()
	}
	var out *node
	switch {
	case p.accept("between"):
		out = p.between(left, t.at)
	case p.accept("in"):
		out = p.in(left, t.at)
	case p.accept("like"):
		out = p.like(left, t.at, false)
	case p.accept("ilike"):
		out = p.like(left, t.at, true)
	case not:
		p.unexpected(t)
		return left
	default:
		return left
	}
	if not {
		return negate(out)
	}
	return out
}

func (p *predicateParser) between(left *node, at position) *node {
	symmetric := p.accept("symmetric")
	if !symmetric {
		p.accept("asymmetric")
	}
	low := p.value()
	if !p.accept("and") {
		p.fail(p.peek().at, "write BETWEEN low AND high", "want AND after BETWEEN, have %s", p.peek().what())
	}
	high := p.value()
	within := func(low, high *node) *node {
		return &node{op: "and", at: at, args: []*node{
			{op: ">=", args: []*node{left, low}, at: at}, {op: "<=", args: []*node{left, high}, at: at},
		}}
	}
	if symmetric {
		return &node{op: "or", args: []*node{within(low, high), within(high, low)}, at: at}
	}
	return within(low, high)
}

func (p *predicateParser) in(left *node, at position) *node {
	if t := p.next(); !t.is("(") {
		p.fail(t.at, "write IN ('a', 'b')", "want ( after IN, have %s", t.what())
	}
	out := &node{op: "in", args: []*node{left}, at: at}
	for !p.failed {
		out.args = append(out.args, p.nested())
		if p.peek().is(",") {
			p.next()
			continue
		}
		if t := p.next(); !t.is(")") {
			p.unexpected(t)
		}
		break
	}
	return out
}

// nested reads a whole predicate, or a value, within another.
func (p *predicateParser) nested() *node {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek().at, "take the brackets apart", "at most %d brackets may stand in each other", maxDepth)
	}
	defer func() { p.depth-- }()
	if p.failed {
		return &node{op: opNull}
	}
	return p.or()
}

func (p *predicateParser) like(left *node, at position, capital bool) *node {
	pattern := p.value()
	out := &node{op: "like", args: []*node{left, pattern}, at: at, escape: '\\', capital: capital}
	if pattern.op != opText && pattern.op != opNull && !p.failed {
		p.fail(pattern.at, "write the pattern between quotes", "the pattern of LIKE must be a literal")
	}
	if p.accept("escape") {
		t := p.next()
		switch {
		case t.kind != text || len(t.chars) > 1:
			p.fail(t.at, "write ESCAPE '!'", "what follows ESCAPE must be one character, or none, between quotes")
		case len(t.chars) == 0:
			out.escape = 0
		default:
			out.escape = t.chars[0].r
		}
	}
	if pattern.op == opText && out.escape != 0 && !p.failed {
		escaped := false
		for _, r := range pattern.text {
			escaped = !escaped && r == out.escape
		}
		if escaped {
			p.fail(pattern.at, "write it twice",
				"the pattern ends with the character that takes away the meaning of the next")
		}
	}
	return out
}

// value reads a literal, an attribute, or what stands between brackets.
func (p *predicateParser) value() *node {
	t := p.peek()
	switch {
	case p.failed:
	case t.is("("):
		p.next()
		n := p.nested()
		if t := p.next(); !t.is(")") {
			p.unexpected(t)
		}
		return n
	case t.is("-"), t.is("+"):
		return p.signed()
	case t.kind == number:
		p.next()
		return &node{op: opNumber, text: t.value, at: t.at}
	case t.kind == text:
		p.next()
		return &node{op: opText, text: t.value, at: t.at}
	case p.accept("true", "false"):
		return &node{op: opTruth, holds: t.value == "true", at: t.at}
	case p.accept("null"):
		return &node{op: opNull, at: t.at}
	case t.kind == name || t.kind == word && !keywords[t.value]:
		p.next()
		if next := p.peek(); next.is("(") || next.is(".") || next.kind == text {
			p.fail(t.at, "predicates have attributes by their names, and literals",
				"%s is no attribute: functions, types and tables are not translated", t.what())
		}
		return &node{op: opAttribute, text: t.value, quoted: t.kind == name, at: t.at}
	default:
		p.unexpected(t)
	}
	return &node{op: opNull, at: t.at}
}

// signed reads a number with its sign.
func (p *predicateParser) signed() *node {
	sign := p.next()
	t := p.next()
	if t.kind != number {
		p.fail(sign.at, "a sign belongs to a number", "%s is not translated here", sign.what())
	}
	return &node{op: opNumber, text: strings.TrimPrefix(sign.value+t.value, "+"), at: sign.at}
}

// keywords cannot name an attribute without double quotes.
var keywords = map[string]bool{
	"and": true, "or": true, "not": true, "in": true, "like": true, "ilike": true, "similar": true, "is": true,
	"isnull": true, "notnull": true,
	"null": true, "true": true, "false": true, "select": true, "case": true, "cast": true, "any": true, "all": true,
	"some":     true,
	"distinct": true, "from": true, "where": true, "symmetric": true, "asymmetric": true, "array": true, "end": true,
	"when": true, "then": true, "else": true,
}

// pattern is that of a like in its parts: characters, and what stands for % and _. The
// character after the escape one is itself.
func (n *node) pattern(anyText, anyCharacter any) []any {
	var out []any
	escaped := false
	for _, r := range n.args[1].text {
		switch {
		case !escaped && n.escape != 0 && r == n.escape:
			escaped = true
			continue
		case !escaped && r == '%':
			out = append(out, anyText)
		case !escaped && r == '_':
			out = append(out, anyCharacter)
		default:
			out = append(out, r)
		}
		escaped = false
	}
	return out
}
