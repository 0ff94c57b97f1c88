package wedxml

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// The limits of a condition: brackets in brackets, and the words and signs of its
// expression.
const (
	maxDepth = 100
	maxWords = 4000
	maxParts = 1000 // of a native expression
)

// node is a part of an expression: and, or, not, or else a predicate by its number.
type node struct {
	op        string
	args      []*node
	predicate int
}

// conditions reads the conditions of a document.
type conditions struct {
	*parser
	attributes index
	data       native.Names
}

func newConditions(p *parser, attributes index) *conditions {
	c := &conditions{parser: p, attributes: attributes, data: newData(p.document)}
	return c
}

// newData gives the attributes their native names. What is valid stays as it is, also the name of a condition.
func newData(d *Document) native.Names {
	names := native.NewDataNames()
	for _, a := range d.Attributes {
		names.Keep("attribute", a.Name)
	}
	for _, c := range d.Conditions {
		names.Keep("condition", c.Name)
	}
	for _, a := range d.Attributes {
		names.OfKind("attribute", a.Name, "attribute")
	}
	return names
}

// read reads one condition, and what it means in the native language.
func (c *conditions) read(cond *Condition) {
	before := c.problems.Number()
	ids := index{}
	var predicates []native.Predicate
	for i, t := range cond.predicates {
		if _, there := ids[key(t.id)]; there && t.id != "" {
			c.fail(t.at, "give each its own Id", "the predicate %q is there twice", shorten(t.id))
		}
		ids[key(t.id)] = i
		predicates = append(predicates, c.comparison(t))
	}
	switch {
	case cond.expression != nil:
		cond.tree = c.expression(*cond.expression, ids)
	case len(cond.predicates) == 1:
		cond.tree = &node{}
	case len(cond.predicates) == 0:
		c.fail(cond.at, `write <Predicate Id="p">step = "asked"</Predicate>`, "the condition %q has no predicate",
			shorten(cond.Name))
	default:
		c.fail(cond.at, "write <Expression>id AND id</Expression>",
			"the condition %q has %d predicates, and no expression that joins them", shorten(cond.Name),
			len(cond.predicates))
	}
	if c.problems.Number() > before || cond.tree == nil {
		return
	}
	cond.means = cond.tree.native(predicates)
	if len(cond.means.String()) > workflow.MaxExpression || cond.means.Parts() > maxParts {
		c.fail(cond.at, "have a transition work out a part of it into an attribute",
			"the condition is too long: in the native language it may have %d bytes, and %d parts",
			workflow.MaxExpression, maxParts)
	}
}

// native is what an expression means.
func (n *node) native(predicates []native.Predicate) native.Predicate {
	args := make([]native.Predicate, len(n.args))
	for i, a := range n.args {
		args[i] = a.native(predicates)
	}
	switch n.op {
	case "and":
		return native.And(args...)
	case "or":
		return native.Or(args...)
	case "not":
		return native.Not(args[0])
	}
	return predicates[n.predicate]
}

// text is a text without the places of its characters.
func (t text) String() string {
	var b strings.Builder
	for _, c := range t.chars {
		b.WriteRune(c.r)
	}
	return b.String()
}

// trim cuts white space off both ends.
func trim(chars []char) []char {
	for len(chars) > 0 && unicode.IsSpace(chars[0].r) {
		chars = chars[1:]
	}
	for len(chars) > 0 && unicode.IsSpace(chars[len(chars)-1].r) {
		chars = chars[:len(chars)-1]
	}
	return chars
}

// operators of predicates, the longer ones first, with the native ones.
var operators = []struct{ written, native, mirrored string }{
	{"!=", "!=", "!="}, {"<>", "!=", "!="}, {"<=", "<=", ">="}, {">=", ">=", "<="}, {"==", "==", "=="},
	{"=", "==", "=="}, {"<", "<", ">"}, {">", ">", "<"},
}

// comparison reads a predicate: an attribute, an operator, a value.
func (c *conditions) comparison(t text) native.Predicate {
	at := t.at
	chars := trim(t.chars)
	if len(chars) > 0 {
		at = chars[0].at
	}
	place, op := -1, 0
	var quote rune
	for i, ch := range chars {
		switch {
		case quote != 0:
			if ch.r == quote {
				quote = 0
			}
			continue
		case ch.r == '"' || ch.r == '\'':
			quote = ch.r
			continue
		}
		for j, o := range operators {
			if place < 0 && strings.HasPrefix((text{chars: chars[i:min(i+2, len(chars))]}).String(), o.written) {
				place, op = i, j
			}
		}
	}
	if place < 0 {
		c.fail(at, `write for example step = "asked"`, "want one of = != < > <= >= in the predicate %q", shorten(t.id))
		return native.Null()
	}
	o := operators[op]
	left, right := trim(chars[:place]), trim(chars[place+len(o.written):])
	symbol := o.native
	if _, found := c.attributes[key(text{chars: left}.String())]; !found {
		if _, found := c.attributes[key(text{chars: right}.String())]; found { // 3 < days
			left, right, symbol = right, left, o.mirrored
		}
	}
	return c.compare(left, symbol, right, at)
}

// compare translates a comparison of an attribute with a value, or with another.
func (c *conditions) compare(left []char, op string, right []char, at position) native.Predicate {
	i, found := c.attributes[key(text{chars: left}.String())]
	if !found {
		c.fail(at, "define it, or correct the name", "there is no attribute %q", shorten(text{chars: left}.String()))
		return native.Null()
	}
	if len(right) > 0 {
		at = right[0].at
	}
	a := c.document.Attributes[i]
	name := native.Name(c.data.OfKind("attribute", a.Name, "attribute"))
	written := text{chars: right}.String()
	if j, found := c.attributes[key(written)]; found {
		b := c.document.Attributes[j]
		if a.Type != b.Type && (!numeric(a.Type) || !numeric(b.Type)) ||
			a.Type == workflow.TypeBoolean && op != "==" && op != "!=" {
			c.fail(at, "", "%s of type %s cannot be compared with %s of type %s", shorten(a.Name), a.Type,
				shorten(b.Name), b.Type)
		}
		return native.Compare(op, name, native.Name(c.data.OfKind("attribute", b.Name, "attribute")))
	}
	if strings.EqualFold(written, "null") {
		switch op {
		case "==":
			return native.IsNull(name)
		case "!=":
			return native.Not(native.IsNull(name))
		}
		return native.Null() // nothing is less than what is not known
	}
	value, good := c.value(a, right, op, at)
	if !good {
		return native.Null()
	}
	return native.Compare(op, name, value)
}

func numeric(t workflow.DataType) bool { return t == workflow.TypeInteger || t == workflow.TypeNumber }

// value reads a literal by the type of the attribute that it is compared with.
func (c *conditions) value(a Attribute, chars []char, op string, at position) (native.Predicate, bool) {
	written := text{chars: chars}.String()
	quoted := len(chars) > 1 && (chars[0].r == '"' || chars[0].r == '\'') && chars[len(chars)-1].r == chars[0].r
	if quoted {
		written = text{chars: chars[1 : len(chars)-1]}.String()
		q := string(chars[0].r)
		if inside := strings.ReplaceAll(written, q+q, ""); strings.Contains(inside, q) {
			c.fail(at, "write it twice", "a quote ends the text in its midst")
			return native.Null(), false
		}
		written = strings.ReplaceAll(written, q+q, q)
	}
	number, err := strconv.ParseFloat(written, 64)
	isNumber := err == nil && !math.IsNaN(number) && !math.IsInf(number, 0) && !strings.ContainsAny(written, "xXpP_")
	switch {
	case !quoted && !isNumber && !(a.Type == workflow.TypeBoolean && (written == "true" || written == "false")):
		c.fail(at, `write "text", a number, or null`,
			"%q is neither a text between quotes, a number, null nor an attribute", shorten(written))
	case a.Type == workflow.TypeString:
		return native.Text(written), true
	case a.Type == workflow.TypeTime:
		if _, err := workflow.CheckValue(&workflow.DataDecl{Name: "value", Type: a.Type}, written); err == nil {
			return native.Text(written), true
		}
		c.fail(at, "write for example 2026-07-01T08:00:00Z", "%s is of type %s, and %q is not", shorten(a.Name), a.Type,
			shorten(written))
	case a.Type == workflow.TypeBoolean:
		if b := strings.ToLower(written); (b == "true" || b == "false") && (op == "==" || op == "!=") {
			return native.Compare("==", native.Bool(b == "true"), native.Bool(true)), true
		}
		c.fail(at, "write = true or = false", "%s is of type %s", shorten(a.Name), a.Type)
	case !isNumber:
		c.fail(at, "write a number", "%s is of type %s, and %q is not", shorten(a.Name), a.Type, shorten(written))
	default:
		if i, err := strconv.ParseInt(written, 10, 64); err == nil {
			return native.Whole(i), true
		}
		return native.Fraction(number), true
	}
	return native.Null(), false
}

// expression reads how the predicates of a condition are joined.
func (c *conditions) expression(t text, ids index) *node {
	e := &expression{conditions: c, ids: ids, words: words(t), end: t.at}
	if len(t.chars) > 0 {
		e.end = t.chars[len(t.chars)-1].at
	}
	if len(e.words) > maxWords {
		c.fail(t.at, "make conditions of its parts", "the expression has more than %d words and signs", maxWords)
		return nil
	}
	n := e.or()
	if e.failed {
		return nil
	}
	if w, left := e.peek(); left {
		e.fail(w, "AND or OR may be missing before it", "%q does not fit here", shorten(w.word))
		return nil
	}
	return n
}

// placedWord is a word, or a sign, of an expression.
type placedWord struct {
	word string
	at   position
}

func words(t text) (out []placedWord) {
	for i := 0; i < len(t.chars); {
		r := t.chars[i].r
		j := i + 1
		switch {
		case unicode.IsSpace(r):
			i = j
			continue
		case strings.ContainsRune("()!", r):
		case r == '&' || r == '|':
			for j < len(t.chars) && t.chars[j].r == r {
				j++
			}
		default:
			for j < len(t.chars) && !unicode.IsSpace(t.chars[j].r) && !strings.ContainsRune("()!&|", t.chars[j].r) {
				j++
			}
		}
		out = append(out, placedWord{text{chars: t.chars[i:j]}.String(), t.chars[i].at})
		i = j
	}
	return out
}

// expression is one that is being read.
type expression struct {
	*conditions
	ids    index
	words  []placedWord
	end    position
	depth  int
	failed bool
}

func (e *expression) peek() (placedWord, bool) {
	if len(e.words) == 0 {
		return placedWord{"the end", e.end}, false
	}
	return e.words[0], true
}

func (e *expression) accept(spellings ...string) bool {
	w, there := e.peek()
	for _, s := range spellings {
		if there && strings.EqualFold(w.word, s) {
			e.words = e.words[1:]
			return true
		}
	}
	return false
}

func (e *expression) fail(w placedWord, hint, format string, args ...any) {
	if !e.failed {
		e.conditions.fail(w.at, hint, format, args...)
	}
	e.failed = true
}

func (e *expression) or() *node {
	n := e.and()
	for e.accept("or", "|", "||") {
		n = &node{op: "or", args: []*node{n, e.and()}}
	}
	return n
}

func (e *expression) and() *node {
	n := e.part()
	for e.accept("and", "&", "&&") {
		n = &node{op: "and", args: []*node{n, e.part()}}
	}
	return n
}

// part is a predicate, or what stands in brackets or after NOT.
func (e *expression) part() *node {
	w, there := e.peek()
	if e.depth++; e.depth > maxDepth {
		e.fail(w, "take the brackets apart", "at most %d brackets may stand in each other", maxDepth)
	}
	defer func() { e.depth-- }()
	switch {
	case e.failed:
		return &node{}
	case e.accept("not", "!"):
		return &node{op: "not", args: []*node{e.part()}}
	case e.accept("("):
		n := e.or()
		if last, _ := e.peek(); !e.accept(")") {
			e.fail(last, "", "want ), have %q", shorten(last.word))
		}
		return n
	case !there:
		e.fail(w, "", "the expression ends too early")
		return &node{}
	}
	i, found := e.ids[key(w.word)]
	if !found {
		e.fail(w, "an expression has the Ids of the condition's predicates, AND, OR and brackets",
			"there is no predicate %q", shorten(w.word))
		return &node{}
	}
	e.words = e.words[1:]
	return &node{predicate: i}
}
