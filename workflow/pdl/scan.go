package pdl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind of a token.
type kind int

const (
	end    kind = iota // of the file
	word               // a name, keyword or number
	text               // between double quotes
	symbol             // { } ( ) ; : , ->
)

// token is a piece of the text. value is without the quotes.
type token struct {
	kind  kind
	value string
	at    position
}

// is reports whether the token is that symbol.
func (t token) is(s string) bool { return t.kind == symbol && t.value == s }

// keyword is the token as keywords are compared: in capitals, with _ for -.
// Empty: it is no word.
func (t token) keyword() string {
	if t.kind != word {
		return ""
	}
	return strings.ToUpper(strings.ReplaceAll(t.value, "-", "_"))
}

// scanner cuts the text into tokens. What belongs to none is reported and passed over.
type scanner struct {
	rest string
	at   position
	fail func(at position, hint, format string, args ...any)
}

func (s *scanner) all() []token {
	var tokens []token
	for {
		t := s.next()
		tokens = append(tokens, t)
		if t.kind == end {
			return tokens
		}
	}
}

func (s *scanner) next() token {
	s.skipSpace()
	t := token{at: s.at}
	switch {
	case s.rest == "":
		return t
	case s.rest[0] == '"':
		return s.text()
	case strings.HasPrefix(s.rest, "->"):
		t.kind, t.value = symbol, s.take(2)
	case strings.IndexByte("{}();:,", s.rest[0]) >= 0:
		t.kind, t.value = symbol, s.take(1)
	default:
		n := wordLength(s.rest)
		if n == 0 {
			r, size := utf8.DecodeRuneInString(s.rest)
			s.take(size)
			s.fail(t.at, "names have letters, digits, _ and -; texts stand between double quotes",
				"%q does not belong here", r)
			return s.next()
		}
		t.kind, t.value = word, s.take(n)
	}
	return t
}

// wordLength is how many bytes of s are a name or a number. A - that begins -> is
// not part of it.
func wordLength(s string) int {
	for i, r := range s {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_', r == '.':
		case r == '-' && !strings.HasPrefix(s[i:], "->"):
		default:
			return i
		}
	}
	return len(s)
}

// text reads a string, which may run over lines: each line break in it, with the
// spaces around it, is one space.
func (s *scanner) text() token {
	t := token{kind: text, at: s.at}
	s.take(1)
	n := strings.IndexByte(s.rest, '"')
	if n < 0 {
		s.fail(t.at, `end it with "`, "a text that does not end")
		s.take(len(s.rest))
		return t
	}
	lines := strings.Split(s.take(n), "\n")
	for i := range lines {
		if len(lines) > 1 {
			lines[i] = strings.TrimSpace(lines[i])
		}
	}
	t.value = strings.Join(lines, " ")
	s.take(1)
	return t
}

// skipSpace passes over spaces and comments: // and # to the end of the line, and
// /* to */.
func (s *scanner) skipSpace() {
	for s.rest != "" {
		r, size := utf8.DecodeRuneInString(s.rest)
		switch {
		case unicode.IsSpace(r) || r == '\uFEFF':
			s.take(size)
		case strings.HasPrefix(s.rest, "//"), r == '#':
			s.take(until(s.rest, "\n"))
		case strings.HasPrefix(s.rest, "/*"):
			s.take(until(s.rest, "*/"))
		default:
			return
		}
	}
}

// until is how many bytes of s go on to the end of mark, or to that of s.
func until(s, mark string) int {
	if i := strings.Index(s, mark); i >= 0 {
		return i + len(mark)
	}
	return len(s)
}

// take passes over n bytes and returns them.
func (s *scanner) take(n int) string {
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	if lines := strings.Count(taken, "\n"); lines > 0 {
		s.at.line += lines
		s.at.column = 1
		s.at.column += utf8.RuneCountInString(taken[strings.LastIndexByte(taken, '\n')+1:])
	} else {
		s.at.column += utf8.RuneCountInString(taken)
	}
	return taken
}
