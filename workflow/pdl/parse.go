package pdl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// Limits of what is read.
const (
	MaxSize = 1 << 20 // of a file, in bytes

	maxDepth = 100 // of rules in rules
)

// Parse reads a PDL file. name is the file's name, for messages. A file that is no
// UTF-8 is read as Windows-1252, which the language's time wrote. The error is
// [workflow.Errors]: all mistakes at once.
func Parse(name string, src []byte) (*Document, error) {
	p := &parser{problems: native.Problems{File: name}, document: &Document{}}
	switch {
	case len(src) > MaxSize:
		p.fail(position{1, 1}, "split it", "the file has more than %d bytes, which are the most that is read", MaxSize)
		return nil, p.problems.Err()
	case !utf8.Valid(src):
		decoded, err := charmap.Windows1252.NewDecoder().Bytes(src)
		if err != nil {
			p.fail(position{1, 1}, "save the file as UTF-8", "the file is no text: %v", err)
			return nil, p.problems.Err()
		}
		src = decoded
	}
	text := strings.ReplaceAll(string(src), "\r\n", "\n")
	p.tokens = (&scanner{rest: text, at: position{1, 1}, fail: p.fail}).all()
	p.read()
	p.resolve()
	if err := p.problems.Err(); err != nil {
		return nil, err
	}
	return p.document, nil
}

// parser turns tokens into a document. Names are resolved when all are known.
type parser struct {
	tokens   []token // the last one is the end
	document *Document
	problems native.Problems
}

func (p *parser) fail(at position, hint, format string, args ...any) {
	p.problems.Fail(at.line, at.column, hint, format, args...)
}

// peek is the token that comes next.
func (p *parser) peek() token { return p.tokens[0] }

// next passes over a token and returns it. The end is never passed.
func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept passes over the symbol if it comes next, and reports whether it did.
func (p *parser) accept(s string) bool {
	if !p.peek().is(s) {
		return false
	}
	p.next()
	return true
}

// expect passes over the symbol that must come next.
func (p *parser) expect(s, after string) bool {
	if p.accept(s) {
		return true
	}
	p.fail(p.peek().at, "", "want %s after %s, have %s", s, after, p.peek().what())
	return false
}

// what describes a token for messages.
func (t token) what() string {
	if t.kind == end {
		return "the end of the file"
	}
	return fmt.Sprintf("%q", shorten(t.value))
}

var validName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// identifier reads a name; empty: what comes next is none, which is reported.
func (p *parser) identifier(of string) (string, position) {
	t := p.peek()
	if t.kind != word {
		p.fail(t.at, "", "want the name of %s, have %s", of, t.what())
		return "", t.at
	}
	p.next()
	if !validName.MatchString(t.value) {
		p.fail(t.at, "a name begins with a letter A to Z and goes on with letters, digits, _ and -", "%s is no name",
			t.what())
	}
	return t.value, t.at
}

// read goes through the blocks of the file.
func (p *parser) read() {
	for p.peek().kind != end {
		t := p.next()
		switch t.keyword() {
		case "WORKFLOW":
			p.workflow()
		case "TASK":
			p.model()
		case "APPLICATION":
			p.application()
		case "":
			if !t.is(";") {
				p.misplaced(t)
			}
		default:
			p.misplaced(t)
		}
	}
	d := p.document
	if len(d.Workflows)+len(d.Models)+len(d.Applications) == 0 && p.problems.Number() == 0 {
		p.fail(position{1, 1}, "a PDL file has WORKFLOW name { … }, TASK name { … } or APPLICATION name { … }",
			"nothing is defined")
	}
}

// misplaced reports what begins no block, and passes over it.
func (p *parser) misplaced(t token) {
	p.fail(t.at, "a file has blocks of WORKFLOW, TASK and APPLICATION", "%s begins no block", t.what())
	p.skipBlock()
}

// skipBlock passes over the rest of what nobody knows: up to the end of its braces,
// or to a semicolon before them.
func (p *parser) skipBlock() {
	for depth := 0; p.peek().kind != end; {
		switch t := p.next(); {
		case t.is("{"):
			depth++
		case t.is("}"):
			if depth--; depth <= 0 {
				return
			}
		case t.is(";") && depth == 0:
			return
		}
	}
}

// clauses reads what stands between braces: for each keyword the function that
// reads its clause. Semicolons are passed over, also where they are missing.
func (p *parser) clauses(of string, known map[string]func(at position)) {
	if !p.expect("{", of) {
		p.skipBlock()
		return
	}
	seen := make(map[string]bool)
	for {
		t := p.next()
		switch clause := known[t.keyword()]; {
		case t.is("}"):
			return
		case t.kind == end:
			p.fail(t.at, "", "%s does not end: a } is missing", of)
			return
		case t.is(";"):
		case clause != nil:
			if seen[t.keyword()] && !repeats[t.keyword()] {
				p.fail(t.at, "", "%s has %s twice", of, t.keyword())
			}
			seen[t.keyword()] = true
			clause(t.at)
		default:
			p.fail(t.at, "it may have "+strings.Join(sortedKeys(known), ", "), "%s does not belong into %s", t.what(),
				of)
			p.skipClause()
		}
	}
}

// repeats are the keywords that may come more than once in a block.
var repeats = map[string]bool{
	"FILE": true, "QUERY": true, "STRING": true, "NUMBER": true, "TASK": true, "SUB_WORKFLOW": true,
}

// skipClause passes over the rest of a clause that nobody knows.
func (p *parser) skipClause() {
	for {
		switch t := p.peek(); {
		case t.kind == end, t.is("}"), t.is(";"):
			return
		case t.is("{"):
			p.skipBlock()
			return
		}
		p.next()
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// shorten keeps messages readable whatever the file holds.
func shorten(s string) string { return plain.Cut(s, 40) }
