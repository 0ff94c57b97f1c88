package workflow

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// NotYAML says in our words why a text is not YAML, where, and what to do. err is
// what the YAML library found. Its words are for authors of parsers, and its place
// is where it noticed, often a line too early or too late. So the text itself is
// looked at, from that place on. The package configs and the study use it too.
func NotYAML(file string, src []byte, err error) Problem { return notYAML(file, src, err, KeyHint) }

// notYAML is NotYAML of a text in which hint says how a key with its value is written.
func notYAML(file string, src []byte, err error, hint func(text string) string) Problem {
	tokens, _ := YAMLTokens(src) // none, if the library cannot even cut the text
	s := stumble{lines: strings.Split(string(src), "\n"), line: 1, col: 1, tokens: tokens, hint: hint}
	var at yaml.Error
	if errors.As(err, &at) {
		s.message = at.GetMessage()
		if tk := at.GetToken(); tk != nil && tk.Position != nil {
			s.line, s.col = min(max(tk.Position.Line, 1), len(s.lines)), max(tk.Position.Column, 1)
		}
	}
	for _, look := range []func() (Problem, bool){s.known, s.tab, s.brackets, s.keys, s.after, s.text} {
		if p, found := look(); found {
			p.File = file
			return p
		}
	}
	return Problem{
		File: file, Line: s.line, Col: s.col, Message: "this cannot be read as YAML",
		Hint: "look here and in the line above for a colon or a quote that is missing, and at the indentation",
	}
}

// stumble is a text that is not YAML, with the place where the library noticed.
type stumble struct {
	lines     []string
	line, col int
	message   string // the library's
	hint      func(text string) string
	tokens    token.Tokens
}

func (s stumble) here(message, hint string) (Problem, bool) {
	return Problem{Line: s.line, Col: s.col, Message: message, Hint: hint}, true
}

// char is the character where the library noticed.
func (s stumble) char() string {
	if line := []rune(s.lines[s.line-1]); s.col <= len(line) {
		return string(line[s.col-1])
	}
	return ""
}

// keyHere names the key that begins where the library noticed.
func (s stumble) keyHere() string {
	line := []rune(s.lines[s.line-1])
	if key, _, is := strings.Cut(string(line[min(s.col-1, len(line)):]), ":"); is && strings.TrimSpace(key) != "" {
		return "key " + strings.TrimSpace(key)
	}
	return "this key"
}

// known are the mistakes that the library tells rightly.
func (s stumble) known() (Problem, bool) {
	switch c := s.char(); {
	case strings.Contains(s.message, "end character of"):
		return s.here(fmt.Sprintf("the %s that opens here is not closed", c), "close it with "+c+" where the text ends")
	case strings.Contains(s.message, "escape character"):
		return s.here(`a \ and what follows it mean nothing between " "`,
			`write \\ for a backslash, or put the text between ' '`)
	case strings.Contains(s.message, "already defined"), strings.Contains(s.message, "duplicate key"):
		return s.here(fmt.Sprintf("%s is there twice", s.keyHere()), "leave one of them out")
	case c == "%" && s.col == 1:
		return s.here("YAML directives are not part of the language", "leave the line out")
	case c == "@" || c == "`" || c == "%":
		return s.here("no text begins with "+c, "put the text in quotes")
	}
	return Problem{}, false
}

// reach gives the lines, counted from 0, that the library may mean: from the one
// where it noticed to the next that has a key. Texts that go on in another line lie
// between.
func (s stumble) reach() []int {
	var out []int
	for i := s.line - 1; i < len(s.lines); i++ {
		if s.bare(i) {
			continue
		}
		out = append(out, i)
		if i >= s.line && keyRE.MatchString(s.content(i)) {
			break
		}
	}
	return out
}

// content is a line without its indentation and comment, and bare reports that there
// is none.
func (s stumble) content(i int) string { return withoutComment(strings.TrimSpace(s.lines[i])) }

func (s stumble) bare(i int) bool { return s.content(i) == "" }

// withoutComment is a line up to its comment: a # that stands first or after a space,
// and not in a text in quotes. Such a text begins where a value or a key may.
func withoutComment(line string) string {
	begins, before, quote := true, ' ', rune(0)
	for i, c := range line {
		switch {
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '#' && before == ' ':
			return strings.TrimRight(line[:i], " ")
		case begins && (c == '"' || c == '\''):
			quote = c
		}
		begins = strings.ContainsRune("[{,:-", c) || begins && c == ' '
		before = c
	}
	return line
}

// inBrackets are the lines, counted from 0, that begin between brackets. No indentation
// means anything there.
func (s stumble) inBrackets() map[int]bool {
	out := map[int]bool{}
	depth, line := 0, 0
	for _, tk := range s.tokens {
		for ; line < tk.Position.Line; line++ {
			out[line] = depth > 0
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
	}
	return out
}

// indent is how many characters stand before a line's content.
func (s stumble) indent(i int) int {
	return len(s.lines[i]) - len(strings.TrimLeft(s.lines[i], " \t"))
}

func (s stumble) tab() (Problem, bool) {
	for _, i := range s.reach() {
		if at := strings.IndexByte(s.lines[i][:s.indent(i)], '\t'); at >= 0 {
			return Problem{
				Line: i + 1, Col: at + 1, Message: "this line is indented with a tab",
				Hint: "indent with spaces, not with tabs",
			}, true
		}
	}
	return Problem{}, false
}

// quoteHint is what to do with a text that YAML reads as more than a text.
const quoteHint = "a text with , : { } [ ] or # in it stands in quotes"

// brackets finds a bracket that is not closed, or closes nothing.
func (s stumble) brackets() (Problem, bool) {
	var open []*token.Token
	inside := false // whether a bracket was open where the library noticed
	closing := map[token.Type]string{token.MappingStartType: "}", token.SequenceStartType: "]"}
	for _, tk := range s.tokens {
		line, col := tk.Position.Line, max(tk.Position.Column, 1)
		if line < s.line || line == s.line && col <= s.col {
			inside = len(open) > 0
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			open = append(open, tk)
		case token.MappingEndType, token.SequenceEndType:
			if len(open) == 0 {
				return Problem{Line: line, Col: col, Message: "this " + tk.Value + " closes nothing",
					Hint: "leave it out; " + quoteHint}, true
			}
			last := open[len(open)-1]
			if open = open[:len(open)-1]; closing[last.Type] != tk.Value {
				message := fmt.Sprintf("this %s stands where the %s of line %d, column %d, has to be closed", tk.Value,
					last.Value, last.Position.Line, last.Position.Column)
				return Problem{Line: line, Col: col, Message: message,
					Hint: "close it with " + closing[last.Type] + "; " + quoteHint}, true
			}
		}
	}
	if len(open) > 0 {
		first := open[0]
		return Problem{
			Line: first.Position.Line, Col: first.Position.Column,
			Message: "the " + first.Value + " that opens here is not closed",
			Hint:    "close it with " + closing[first.Type] + "; " + quoteHint,
		}, true
	}
	switch c := s.char(); {
	case inside:
		return s.here("this does not belong between brackets here",
			quoteHint+", and a comma parts one thing from the next")
	case c == "}" || c == "]":
		if p, found := s.colonMeant(s.line - 1); found {
			return p, true
		}
		return s.here("this "+c+" closes nothing", "leave it out; "+quoteHint)
	}
	return Problem{}, false
}

// colonMeant finds a line that has a sign in place of the colon after its key, so that no bracket opens after it.
func (s stumble) colonMeant(i int) (Problem, bool) {
	text := s.content(i)
	hint := s.hint(text)
	if hint == "" {
		return Problem{}, false
	}
	return Problem{
		Line: i + 1, Col: s.indent(i) + 1, Message: excerpt(text) + " is no key with a value", Hint: hint,
	}, true
}

// after finds what follows a text in quotes, or a list or mapping in brackets, that
// has ended.
func (s stumble) after() (Problem, bool) {
	before := []rune(s.lines[s.line-1])
	before = before[:min(s.col-1, len(before))]
	text := strings.TrimRight(string(before), " ")
	if end := len(text) - 1; end >= 0 && strings.ContainsRune(`"'}]`, rune(text[end])) {
		if p, found := s.colonMeant(s.line - 1); found {
			return p, true
		}
		return s.here("nothing may follow the "+text[end:]+" that ends the value", "leave it out; "+quoteHint)
	}
	return Problem{}, false
}

// keyRE is a line with a key: dashes of lists, the key, and its value.
var keyRE = regexp.MustCompile(`^((?:- +)*)("[^"]*"|'[^']*'|[^\s"'{\[#:-][^:#]*?|-[^\s:#][^:#]*?) *:(?:\s+(.*))?$`)

// keys finds a line that is no key with its value, or lies under none.
func (s stumble) keys() (Problem, bool) {
	bracketed := s.inBrackets()
	for _, i := range s.reach() {
		if bracketed[i] {
			continue
		}
		first := s.indent(i) + 1
		found := keyRE.FindStringSubmatch(s.content(i))
		if found == nil {
			text := strings.TrimLeft(s.content(i), "- ")
			if hint := s.hint(text); hint != "" {
				return Problem{
					Line: i + 1, Col: first, Message: fmt.Sprintf("%s is no key with a value", excerpt(text)),
					Hint: hint,
				}, true
			}
			if strings.HasPrefix(text, ":") {
				return Problem{
					Line: i + 1, Col: first, Message: "there is no key before this colon", Hint: "write KEY: VALUE",
				}, true
			}
			continue
		}
		if p, found := s.level(i, bracketed); found {
			return p, true
		}
		value := found[3]
		if at := strings.Index(value, ": "); at > 0 && !strings.ContainsAny(value[:1], `"'{[|>#`) {
			col := first + len([]rune(s.content(i))) - len([]rune(value[at:]))
			return Problem{
				Line: i + 1, Col: col, Message: "here is a second colon, as if the value were a key", Hint: quoteHint,
			}, true
		}
	}
	if s.message == "unexpected key name" {
		what := " has no colon"
		if strings.Contains(s.content(s.line-1), ":") {
			what = " is no key with a value"
		}
		return s.here(excerpt(s.content(s.line-1))+what,
			"write KEY: VALUE, or KEY: with what belongs to it indented below")
	}
	return Problem{}, false
}

// column is where a key or a dash stands, and what its line has.
type column struct {
	col, line int
	value     bool // a value stands on the same line
	key       string
}

// level finds a line whose first column fits none of the lines above.
func (s stumble) level(i int, bracketed map[int]bool) (Problem, bool) {
	var open, gone []column
	for j := range i {
		if !s.bare(j) && !bracketed[j] {
			open, _ = enter(open, s.columns(j))
		}
	}
	first := s.indent(i) + 1
	open, gone = enter(open, []column{{col: first}})
	above := open[:len(open)-1]
	switch {
	case len(above)+len(gone) == 0 || len(gone) > 0 && gone[0].col == first:
		return Problem{}, false
	case len(gone) > 0:
		fits := []string{}
		if len(above) > 0 {
			fits = append(fits, fmt.Sprint(above[len(above)-1].col))
		}
		fits = append(fits, fmt.Sprint(gone[0].col))
		return Problem{
			Line: i + 1, Col: first, Message: fmt.Sprintf("this line begins in column %d, and none above that it could belong to does", first),
			Hint: "begin it in column " + strings.Join(fits, " or "),
		}, true
	}
	if up := above[len(above)-1]; up.value {
		if p, found := s.colonless(up, i); found {
			return p, true
		}
		return Problem{
			Line: i + 1, Col: first, Message: fmt.Sprintf("this line lies under %s of line %d, which has its value already", up.key, up.line),
			Hint: fmt.Sprintf("begin it in column %d", up.col),
		}, true
	}
	return Problem{}, false
}

// columns are the columns that a line opens: of its dashes and of its key.
func (s stumble) columns(i int) (out []column) {
	text := s.content(i)
	at := s.indent(i) + 1
	for rest, dash := strings.CutPrefix(text, "- "); dash; rest, dash = strings.CutPrefix(text, "- ") {
		out = append(out, column{col: at, line: i + 1})
		at += len(text) - len(strings.TrimLeft(rest, " "))
		text = strings.TrimLeft(rest, " ")
	}
	if found := keyRE.FindStringSubmatch(text); found != nil {
		value := found[3]
		out = append(out, column{at, i + 1, value != "" && !strings.ContainsAny(value[:1], "|>#&"), found[2]})
	}
	return out
}

// enter opens a line's columns, and closes those that lie to the right of its first,
// or in the same place.
func enter(open, line []column) (now, gone []column) {
	if len(line) == 0 {
		return open, nil
	}
	at := slices.IndexFunc(open, func(c column) bool { return c.col >= line[0].col })
	if at < 0 {
		return append(open, line...), nil
	}
	gone = slices.Clone(open[at:])
	return append(open[:at], line...), gone
}

// The ways in which people who know other notations give a key its value. Of several lines that are all written so,
// YAML makes one text.
var (
	assignment = regexp.MustCompile(`^(["']?[\pL\pN_][\pL\pM\pN_.-]*["']?)\s*(=>|:=|->|=)\s*([^=]*)$`)
	several    = regexp.MustCompile(`^(["']?[\pL\pN_][\pL\pM\pN_.-]*["']?)\s*(=>|:=|->|=)\s*(.*?)\s+["']?[\pL\pN_][\pL\pM\pN_.-]*["']?\s*(?:=>|:=|->|=)(?:[^=]|$)`)
	keyless    = regexp.MustCompile(`^(=>|:=|=)(?:\s+([^=]*))?$`)
	clockTime  = regexp.MustCompile(`^["']?[0-9]+:[0-9]`)
	noSpace    = regexp.MustCompile(`^(["']?[\pL\pN_][\pL\pM\pN_.-]*["']?):([^\s/:].*)$`)
)

// assigned are the key, the sign and the value of a text with one of them; nil: it is none.
func assigned(text string) []string {
	m := assignment.FindStringSubmatch(text)
	if m != nil && strings.Contains(m[3], "->") {
		return nil
	}
	return m
}

// KeyHint says how a text has to be written that was meant to be a key with its
// value, or several, as key = value was; empty if it is no such text.
func KeyHint(text string) string {
	if m := assigned(text); m != nil {
		return strings.TrimSpace("write "+m[1]+": "+whole(m[3])) + ", with a colon and a space"
	}
	if m := several.FindStringSubmatch(text); m != nil && m[3] != "" {
		return "write " + m[1] + ": " + whole(m[3]) + ", with a colon and a space, and so each of these lines"
	}
	if m := keyless.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace("write KEY: "+whole(m[2])) + ", with a colon and a space, without " + m[1]
	}
	if m := noSpace.FindStringSubmatch(text); m != nil && !clockTime.MatchString(text) {
		return "put a space after the colon: " + m[1] + ": " + whole(m[2])
	}
	return ""
}

// entryHint is KeyHint in a definition, where an arrow may have been meant as an edge: the first task before the
// second, or a definition of another system.
func entryHint(text string) string {
	if strings.HasPrefix(text, "<") {
		return "this is XML: mutirao workflow import --from lxpdl, pdl or wed-xml translates such definitions"
	}
	hint := KeyHint(text)
	m := assigned(text)
	if m == nil {
		m = several.FindStringSubmatch(text)
	}
	if m == nil {
		return hint
	}
	from, to := m[1], m[3]
	if to == "" { // one arrow after the other
		to, _, _ = strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(text, from)),
			m[2])), " ")
	}
	if (m[2] != "=>" && m[2] != "->") || !ValidName(from) || !ValidName(to) || to[0] <= '9' { // as of edges, elsewhere
		return hint
	}
	wait := fmt.Sprintf("if %s is to wait for %s, write %s: {after: %s} under tasks", to, from, to, from)
	return strings.TrimPrefix(hint+"; "+wait, "; ")
}

// whole is a value for a hint. What opens a bracket may go on after the text.
func whole(value string) string {
	for _, pair := range []string{"{}", "[]"} {
		if strings.HasPrefix(value, pair[:1]) && !strings.HasSuffix(value, pair[1:]) {
			return pair[:1] + "…" + pair[1:]
		}
	}
	return plain.Cut(value, shown)
}

// excerpt is the beginning of a text in quotation marks.
func excerpt(text string) string { return fmt.Sprintf("%q", plain.Cut(text, shown)) }

// shown is how much of a text a message shows, in columns.
const shown = 40

// colonless finds a key that lacks its colon, beside the key up and before line i,
// counted from 0: what is meant to lie under it seems to lie under up.
func (s stumble) colonless(up column, i int) (Problem, bool) {
	for j := up.line; j < i; j++ {
		if text := s.content(j); s.indent(j)+1 == up.col && ValidName(text) {
			return Problem{
				Line: j + 1, Col: up.col,
				Message: fmt.Sprintf("%s stands where a key is expected, beside %s of line %d", excerpt(text), up.key,
					up.line),
				Hint: fmt.Sprintf("write %s: with a colon", text),
			}, true
		}
	}
	return Problem{}, false
}

// text finds a line that is neither a key nor an item of a list, or the wrong one of
// them, among keys or items.
func (s stumble) text() (Problem, bool) {
	i, bracketed := s.line-1, s.inBrackets()
	text, first := s.content(i), s.indent(i)+1
	if text == "" || bracketed[i] || keyRE.MatchString(text) || s.col != first {
		return Problem{}, false
	}
	var open []column
	for j := range i {
		if !s.bare(j) && !bracketed[j] {
			open, _ = enter(open, s.columns(j))
		}
	}
	open = slices.DeleteFunc(open, func(c column) bool { return c.col > first })
	if len(open) == 0 {
		return Problem{}, false
	}
	up := open[len(open)-1]
	const write = "write KEY: VALUE, or KEY: | with a text of several lines indented below"
	switch {
	case up.col == first && up.key == "":
		return s.here(fmt.Sprintf("%s stands where an item of the list of line %d is expected", excerpt(text), up.line),
			fmt.Sprintf("begin it with a dash and a space, or in column %d or later to go on with the item above",
				first+2))
	case up.col == first && strings.HasPrefix(text, "- "):
		return s.here(fmt.Sprintf("an item of a list stands where a key is expected, beside %s of line %d", up.key,
			up.line),
			"write KEY: VALUE, or put the list under its key, indented more")
	case up.col == first:
		return s.here(fmt.Sprintf("%s stands where a key is expected, beside %s of line %d", excerpt(text), up.key,
			up.line), write)
	case up.value:
		return s.here(fmt.Sprintf("%s lies under %s of line %d, which has its value already", excerpt(text), up.key,
			up.line),
			fmt.Sprintf("%s; begin it in column %d", write, up.col))
	}
	return Problem{}, false
}
