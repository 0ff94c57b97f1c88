package wedsql

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// MaxSize bounds a file, in bytes.
const MaxSize = 1 << 20

// Parse reads a script. file is the file's name, for messages, and names the flow. The
// error is [workflow.Errors]: all mistakes at once.
func Parse(file string, src []byte) (*Document, error) {
	p := &parser{problems: native.Problems{File: file}, document: &Document{Name: flowName(file)}}
	switch {
	case len(src) > MaxSize:
		p.fail(position{1, 1}, "split it", "the file has more than %d bytes, which are the most that is read", MaxSize)
		return nil, p.problems.Err()
	case !utf8.Valid(src):
		p.fail(position{1, 1}, "save the file as UTF-8", "the file is no text in UTF-8")
		return nil, p.problems.Err()
	}
	text := strings.ReplaceAll(string(src), "\r\n", "\n")
	chars := characters(text)
	p.end = position{
		1 + strings.Count(text, "\n"), 1 + utf8.RuneCountInString(text[strings.LastIndexByte(text, '\n')+1:]),
	}
	p.tokens = scan(chars, p.end, p.fail)
	p.read()
	p.resolve()
	if err := p.problems.Err(); err != nil {
		return nil, err
	}
	return p.document, nil
}

// flowName is the file's name without folder and extension; empty: it comes from stdin, and has none.
func flowName(file string) string {
	if file == "-" {
		return ""
	}
	base := path.Base(strings.ReplaceAll(file, `\`, "/"))
	return strings.TrimSuffix(base, path.Ext(base))
}

// parser turns tokens into a document. Types are found when all is read.
type parser struct {
	tokens   []token // the last one is the end
	end      position
	document *Document
	problems native.Problems

	finals []*Predicate
}

func (p *parser) fail(at position, hint, format string, args ...any) {
	p.problems.Fail(at.line, at.column, hint, format, args...)
}

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept passes over words that come next in this order, and reports whether it did.
func (p *parser) accept(words ...string) bool {
	for i, w := range words {
		if i >= len(p.tokens) || !p.tokens[i].word(w) {
			return false
		}
	}
	p.tokens = p.tokens[len(words):]
	return true
}

// read goes through the statements.
func (p *parser) read() {
	for p.peek().kind != end {
		t := p.peek()
		switch {
		case t.is(";"):
			p.next()
			continue
		case t.kind == client: // it ends with its line
			p.next()
			p.skip(t)
			continue
		case t.word("insert"):
			p.insert()
		case t.word("begin", "commit", "end"), t.word("start") && p.tokens[1].word("transaction"):
		case t.word("set", "select", "show", "analyze", "vacuum"), t.word("create") && p.tokens[1].word("extension"):
			p.skip(t)
		default:
			p.fail(t.at, "a script has INSERT INTO wed_attr, wed_trig and wed_flow, BEGIN and COMMIT",
				"a statement that begins with %s is not translated", t.what())
		}
		p.skipStatement()
	}
}

// skip notes a statement that declares nothing.
func (p *parser) skip(t token) {
	what := strings.ToUpper(t.value)
	if t.kind == client {
		what = shorten(t.value)
	}
	p.document.skipped = append(p.document.skipped, skipped{what, t.at.line})
}

// skipStatement passes over what is left of a statement.
func (p *parser) skipStatement() {
	for p.peek().kind != end && !p.next().is(";") {
	}
}

// columns that each table has.
var columns = map[string][]string{
	"wed_attr": {"aname", "adv"},
	"wed_trig": {"tgname", "trname", "cname", "cpred", "cfinal", "timeout", "enabled"},
	"wed_flow": nil, // those are the attributes
}

// insert reads INSERT INTO table [(columns)] VALUES (…), (…), or DEFAULT VALUES.
func (p *parser) insert() {
	p.next()
	if !p.accept("into") {
		p.fail(p.peek().at, "", "want INTO after INSERT, have %s", p.peek().what())
		return
	}
	t := p.next()
	if p.peek().is(".") { // the schema stands before the table
		p.next()
		t = p.next()
	}
	known, found := columns[t.value]
	if !found || t.kind != word && t.kind != name {
		p.fail(t.at, "the tables are wed_attr, wed_trig and wed_flow", "rows of %s are not translated", t.what())
		return
	}
	var names []token
	if p.peek().is("(") {
		if names = p.columnNames(t.value, known); names == nil {
			return
		}
	}
	switch {
	case p.accept("default", "values"):
		p.row(t.value, row{at: t.at})
	case p.accept("values"):
		if names == nil {
			p.fail(t.at, fmt.Sprintf("write INSERT INTO %s (column, …) VALUES (…)", t.value),
				"the columns of %s are not named", t.value)
			return
		}
		p.rows(t.value, names)
	default:
		p.fail(p.peek().at, "", "want VALUES or DEFAULT VALUES, have %s", p.peek().what())
	}
}

// columnNames reads a list of names of columns; nil: there are mistakes in it.
func (p *parser) columnNames(table string, known []string) []token {
	p.next()
	var names []token
	for good := true; ; {
		t := p.next()
		switch {
		case t.kind != word && t.kind != name:
			p.fail(t.at, "", "want the name of a column, have %s", t.what())
			return nil
		case table != "wed_flow" && !slices.Contains(known, t.value):
			p.fail(t.at, "it has "+strings.Join(known, ", "), "%s has no column %s", table, t.what())
			good = false
		case slices.ContainsFunc(names, func(n token) bool { return n.value == t.value }):
			p.fail(t.at, "", "the column %s is there twice", t.what())
			good = false
		}
		names = append(names, t)
		switch t := p.next(); {
		case t.is(","):
		case t.is(")") && good:
			return names
		case t.is(")"):
			return nil
		default:
			p.fail(t.at, "", "want a comma or ) after the name of a column, have %s", t.what())
			return nil
		}
	}
}

// row is a row of a table.
type row struct {
	at      position
	columns []token
	values  []value
}

// get is the value of a column; the zero value if it is not there.
func (r row) get(column string) value {
	for i, c := range r.columns {
		if c.value == column {
			return r.values[i]
		}
	}
	return value{at: r.at}
}

// rows reads what follows VALUES.
func (p *parser) rows(table string, names []token) {
	for {
		r := row{at: p.peek().at, columns: names}
		if t := p.next(); !t.is("(") {
			p.fail(t.at, "", "want ( before the values of a row, have %s", t.what())
			return
		}
		for {
			v, good := p.value()
			if !good {
				return
			}
			r.values = append(r.values, v)
			t := p.next()
			if t.is(")") {
				break
			}
			if !t.is(",") {
				p.fail(t.at, "a text stands between quotes, and a quote inside of it is written twice",
					"want a comma or ) after a value, have %s", t.what())
				return
			}
		}
		if len(r.values) != len(names) {
			p.fail(r.at, "", "the row has %d values for %d columns", len(r.values), len(names))
		} else {
			p.row(table, r)
		}
		if !p.peek().is(",") {
			break
		}
		p.next()
	}
	if t := p.peek(); t.kind != end && !t.is(";") && !t.word("on", "returning") {
		p.fail(t.at, "end the statement with ;", "%s does not belong after the values", t.what())
	}
}

// row takes in one row.
func (p *parser) row(table string, r row) {
	switch table {
	case "wed_attr":
		p.attribute(r)
	case "wed_trig":
		p.trigger(r)
	case "wed_flow":
		p.start(r)
	}
}

func (p *parser) attribute(r row) {
	v := r.get("aname")
	a := Attribute{Name: p.needed(v, "aname, the name of an attribute"), at: v.at, value: r.get("adv")}
	if a.Name == "" {
		return
	}
	if slices.ContainsFunc(p.document.Attributes, func(b Attribute) bool { return b.Name == a.Name }) {
		p.fail(a.at, "give each its own name", "the attribute %q is declared twice", shorten(a.Name))
		return
	}
	p.document.Attributes = append(p.document.Attributes, a)
}

// needed is a text that must be there and say something.
func (p *parser) needed(v value, what string) string {
	if v.kind == "" || v.kind == opNull || strings.TrimSpace(v.text) == "" {
		p.fail(v.at, "", "a row has no %s", what)
		return ""
	}
	return v.text
}

func (p *parser) trigger(r row) {
	source := r.get("cpred")
	predicate := p.predicate(source)
	if p.truth(r.get("cfinal"), false, "cfinal") {
		p.finals = append(p.finals, predicate)
		if len(p.finals) == 2 {
			p.fail(source.at, fmt.Sprintf("the first is on line %d; join them with OR", p.finals[0].at.line),
				"there is more than one final condition")
		}
		return
	}
	named := r.get("tgname")
	t := Trigger{
		Name:       p.needed(named, "tgname, the name of a trigger"),
		Transition: p.needed(r.get("trname"), "trname, the name of a transition"),
		Condition:  r.get("cname").text, Predicate: predicate,
		Timeout: p.timeout(r.get("timeout")), Disabled: !p.truth(r.get("enabled"), true, "enabled"), at: r.at,
	}
	if t.Name != "" && slices.ContainsFunc(p.document.Triggers, func(u Trigger) bool { return u.Name == t.Name }) {
		p.fail(named.at, "give each its own name", "the trigger %q is declared twice", shorten(t.Name))
		return
	}
	p.document.Triggers = append(p.document.Triggers, t)
}

// predicate reads a predicate out of a literal. Its tree is nil if it has mistakes.
func (p *parser) predicate(v value) *Predicate {
	out := &Predicate{Source: v.text, at: v.at}
	if v.kind != opText {
		p.fail(v.at, "write it between $$ and $$", "a row has no cpred, the predicate of a condition")
		return out
	}
	out.tree = parsePredicate(v.chars, v.last, p.fail)
	return out
}

func (p *parser) start(r row) {
	s := Start{at: r.at}
	for i, c := range r.columns {
		s.Input = append(s.Input, Input{Attribute: c.value, at: c.at, value: r.values[i]})
	}
	p.document.Starts = append(p.document.Starts, s)
}

// workflowTypes names the type of a literal by that of the native language.
var workflowTypes = map[string]workflow.DataType{
	opText: workflow.TypeString, opNumber: workflow.TypeInteger, opTruth: workflow.TypeBoolean,
}
