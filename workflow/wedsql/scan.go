package wedsql

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// position is a place in the file, from 1; the column in characters.
type position struct{ line, column int }

// char is a character and where in the file it stands: that of a predicate stands
// inside of a literal.
type char struct {
	r  rune
	at position
}

// characters are those of a text.
func characters(text string) []char {
	out := make([]char, 0, len(text))
	at := position{1, 1}
	for _, r := range text {
		out = append(out, char{r, at})
		if at.column++; r == '\n' {
			at = position{at.line + 1, 1}
		}
	}
	return out
}

// kind of a token.
type kind int

const (
	end    kind = iota // of the file, or of the literal that holds a predicate
	word               // a name or keyword
	name               // a name in double quotes
	text               // a literal in quotes or dollars
	number             // digits, with or without a point and an exponent
	symbol             // what is left: operators, brackets, separators
	client             // a line for the client program, such as \connect
)

// token is a piece of SQL.
type token struct {
	kind  kind
	value string // of a word in small letters; of a text and a name without the quotes
	chars []char // of a text
	at    position
}

func (t token) is(s string) bool { return t.kind == symbol && t.value == s }

func (t token) word(words ...string) bool {
	for _, w := range words {
		if t.kind == word && t.value == w {
			return true
		}
	}
	return false
}

// what describes a token for messages.
func (t token) what() string {
	switch t.kind {
	case end:
		return "the end"
	case text:
		return "the text '" + shorten(t.value) + "'"
	}
	return fmt.Sprintf("%q", shorten(t.value))
}

// shorten keeps messages readable whatever the file holds.
func shorten(s string) string { return plain.Cut(plain.Line(s), 40) }

// scanner cuts characters into tokens. What belongs to none is reported and passed over.
type scanner struct {
	rest []char
	last position // where the end is
	fail func(at position, hint, format string, args ...any)
}

func scan(chars []char, last position, fail func(position, string, string, ...any)) []token {
	s := &scanner{rest: chars, last: last, fail: fail}
	var out []token
	for {
		t := s.next()
		if out = append(out, t); t.kind == end {
			return out
		}
	}
}

// at is where the scanner stands.
func (s *scanner) at() position {
	if len(s.rest) == 0 {
		return s.last
	}
	return s.rest[0].at
}

// peek is the i-th character from here; 0: there is none.
func (s *scanner) peek(i int) rune {
	if i >= len(s.rest) {
		return 0
	}
	return s.rest[i].r
}

// has reports whether these characters come next.
func (s *scanner) has(text string) bool {
	i := 0
	for _, r := range text {
		if s.peek(i) != r {
			return false
		}
		i++
	}
	return true
}

func (s *scanner) skip(n int) { s.rest = s.rest[min(n, len(s.rest)):] }

// take passes over n characters and returns them.
func (s *scanner) take(n int) string {
	var b strings.Builder
	for _, c := range s.rest[:n] {
		b.WriteRune(c.r)
	}
	s.skip(n)
	return b.String()
}

func (s *scanner) next() token {
	for {
		s.space()
		if t, found := s.token(); found {
			return t
		}
	}
}

// token reads a token; not found: what stands here is reported and passed over.
func (s *scanner) token() (t token, found bool) {
	t.at = s.at()
	switch c := s.peek(0); {
	case len(s.rest) == 0:
	case c == '\'':
		return s.quotes(t, false), true
	case (c == 'e' || c == 'E') && s.peek(1) == '\'':
		s.skip(1)
		return s.quotes(t, true), true
	case c == '"':
		return s.name(t), true
	case c == '$':
		return s.dollars(t)
	case isDigit(c) || c == '.' && isDigit(s.peek(1)):
		return s.number(t), true
	case letter(c):
		n := 1
		for letter(s.peek(n)) || isDigit(s.peek(n)) || s.peek(n) == '$' {
			n++
		}
		t.kind, t.value = word, strings.ToLower(s.take(n))
	case c == '\\':
		t.kind, t.value = client, strings.TrimSpace(s.take(s.until("\n")))
	default:
		return s.symbol(t)
	}
	return t, true
}

func letter(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// until is how many characters there are before a text, or before the end.
func (s *scanner) until(text string) int {
	runes := []rune(text)
	for i := range s.rest {
		found := true
		for j, r := range runes {
			found = found && s.peek(i+j) == r
		}
		if found {
			return i
		}
	}
	return len(s.rest)
}

// space passes over white space and comments; those between /* and */ may hold others.
func (s *scanner) space() {
	for {
		switch {
		case unicode.IsSpace(s.peek(0)) || s.peek(0) == '\uFEFF':
			s.skip(1)
		case s.has("--"):
			s.skip(s.until("\n"))
		case s.has("/*"):
			s.comment()
		default:
			return
		}
	}
}

func (s *scanner) comment() {
	at, depth := s.at(), 0
	for len(s.rest) > 0 {
		switch {
		case s.has("/*"):
			depth++
			s.skip(2)
		case s.has("*/"):
			s.skip(2)
			if depth--; depth == 0 {
				return
			}
		default:
			s.skip(1)
		}
	}
	s.fail(at, "close it with */", "a comment does not end")
}

// quotes reads a text between single quotes. Two of them are one; with escapes, a
// backslash begins one. Texts on lines of their own, one below the other, are one.
func (s *scanner) quotes(t token, escapes bool) token {
	t.kind = text
	s.skip(1)
	for {
		switch c := s.peek(0); {
		case len(s.rest) == 0:
			s.fail(t.at, "close it with a quote; inside of a text a quote is written twice", "a text does not end")
			return t.done()
		case c == '\'' && s.peek(1) == '\'':
			t.chars = append(t.chars, s.rest[0])
			s.skip(2)
		case c == '\'':
			s.skip(1)
			if !s.continues() {
				return t.done()
			}
		case c == '\\' && escapes:
			t.chars = append(t.chars, s.escape())
		default:
			t.chars = append(t.chars, s.rest[0])
			s.skip(1)
		}
	}
}

// done gives a text its value.
func (t token) done() token {
	var b strings.Builder
	for _, c := range t.chars {
		b.WriteRune(c.r)
	}
	t.value = b.String()
	return t
}

// continues passes over a new line and the quote behind it, if a text goes on there.
func (s *scanner) continues() bool {
	lines := false
	for i := range s.rest {
		switch c := s.peek(i); {
		case c == '\n':
			lines = true
		case c == '\'' && lines:
			s.skip(i + 1)
			return true
		case !unicode.IsSpace(c):
			return false
		}
	}
	return false
}

// escape reads a backslash and what it stands for.
func (s *scanner) escape() char {
	c := char{s.peek(1), s.at()}
	digits, base, limit, from := "0123456789abcdef", rune(16), 0, 2
	switch c.r {
	case 'b', 'f', 'n', 'r', 't':
		c.r = map[rune]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[c.r]
	case 'x':
		limit = 2
	case 'u':
		limit = 4
	case 'U':
		limit = 8
	case '0', '1', '2', '3', '4', '5', '6', '7':
		digits, base, limit, from = "01234567", 8, 3, 1
	}
	if limit == 0 {
		s.skip(2)
		return c
	}
	s.skip(from)
	var value rune
	n := 0
	for ; n < limit && value < unicode.MaxRune; n++ {
		d := strings.IndexRune(digits, unicode.ToLower(s.peek(0)))
		if d < 0 || s.peek(0) == 0 {
			break
		}
		value = value*base + rune(d)
		s.skip(1)
	}
	if n == 0 || value == 0 || value > unicode.MaxRune || value >= 0xD800 && value <= 0xDFFF ||
		from == 2 && limit == 2 && value > 0x7f {
		s.fail(c.at, "write the character itself", "this stands for no character")
		value = unicode.ReplacementChar
	}
	c.r = value
	return c
}

// name reads a name between double quotes.
func (s *scanner) name(t token) token {
	t.kind = name
	s.skip(1)
	for {
		switch {
		case len(s.rest) == 0:
			s.fail(t.at, "close it with a double quote", "a name does not end")
			return t.done()
		case s.has(`""`):
			t.chars = append(t.chars, s.rest[0])
			s.skip(2)
		case s.peek(0) == '"':
			s.skip(1)
			return t.done()
		default:
			t.chars = append(t.chars, s.rest[0])
			s.skip(1)
		}
	}
}

// dollars reads a text between $$ and $$, or between $tag$ and $tag$.
func (s *scanner) dollars(t token) (token, bool) {
	n := 1
	for letter(s.peek(n)) || n > 1 && isDigit(s.peek(n)) {
		n++
	}
	if s.peek(n) != '$' {
		s.fail(t.at, "a text stands between $$ and $$", "$ does not belong here")
		s.skip(1)
		return t, false
	}
	tag := s.take(n + 1)
	length := s.until(tag)
	t.kind, t.chars = text, s.rest[:length]
	s.skip(length)
	if len(s.rest) == 0 {
		s.fail(t.at, "close it with "+tag, "a text does not end")
	}
	s.skip(n + 1)
	return t.done(), true
}

// digits is where digits that begin at n end.
func (s *scanner) digits(n int) int {
	for isDigit(s.peek(n)) {
		n++
	}
	return n
}

func (s *scanner) number(t token) token {
	n := s.digits(0)
	if s.peek(n) == '.' {
		n = s.digits(n + 1)
	}
	if e := s.peek(n); e == 'e' || e == 'E' {
		signed := n + 1
		if s.peek(signed) == '+' || s.peek(signed) == '-' {
			signed++
		}
		if isDigit(s.peek(signed)) {
			n = s.digits(signed)
		}
	}
	t.kind, t.value = number, s.take(n)
	if letter(s.peek(0)) {
		s.fail(t.at, "put a space between them, or quotes around a text", "a letter follows the number %s",
			shorten(t.value))
	}
	return t
}

// operators of more than one character, the longer ones first.
var operators = []string{
	"!~~*", "!~~", "~~*", "!~*", "<=", ">=", "<>", "!=", "==", "::", "||", "->", "~~", "!~", "~*", ":=", "=>",
}

func (s *scanner) symbol(t token) (token, bool) {
	t.kind = symbol
	for _, op := range operators {
		if s.has(op) {
			t.value = s.take(len(op))
			return t, true
		}
	}
	if c := s.peek(0); !strings.ContainsRune("()[],;=<>+-*/%.:^~|&#!?@", c) {
		s.fail(t.at, "texts stand between single quotes", "%q does not belong here", c)
		s.skip(1)
		return t, false
	}
	t.value = s.take(1)
	return t, true
}
