package wedsql

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// value is a value of a row.
type value struct {
	kind  string // opText, opNumber, opTruth or opNull; empty: none was given
	text  string
	chars []char // of a text
	last  position
	at    position
}

// value reads a value; not good: there is none, which is reported.
func (p *parser) value() (v value, good bool) {
	t := p.next()
	v.at = t.at
	switch {
	case t.word("default"):
	case t.word("null"):
		v.kind = opNull
	case t.word("true", "false"):
		v.kind, v.text = opTruth, t.value
	case t.kind == text, t.word("interval") && p.peek().kind == text:
		if t.kind == word {
			t = p.next()
		}
		v.kind, v.text, v.chars, v.last = opText, t.value, t.chars, t.last()
	case t.kind == number:
		v.kind, v.text = opNumber, t.value
	case (t.is("-") || t.is("+")) && p.peek().kind == number:
		v.kind, v.text = opNumber, strings.TrimPrefix(t.value+p.next().value, "+")
	default:
		p.fail(t.at, "write a text between quotes, a number, TRUE, FALSE, NULL or DEFAULT", "%s is no value", t.what())
		return v, false
	}
	for p.peek().is("::") { // a type, which changes nothing here
		p.next()
		if n := p.next(); n.kind != word && n.kind != name {
			p.fail(n.at, "", "want a type after ::, have %s", n.what())
			return v, false
		}
	}
	return v, true
}

// last is where the characters of a text end.
func (t token) last() position {
	if len(t.chars) == 0 {
		return t.at
	}
	at := t.chars[len(t.chars)-1].at
	at.column++
	return at
}

// truths are how PostgreSQL writes them, and beginnings of these.
func parseTruth(s string) (holds, known bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	for _, w := range []string{"true", "yes", "1"} {
		if s != "" && strings.HasPrefix(w, s) {
			return true, true
		}
	}
	for _, w := range []string{"false", "no", "0"} {
		if s != "" && strings.HasPrefix(w, s) {
			return false, true
		}
	}
	return s == "on", slices.Contains([]string{"on", "of", "off"}, s)
}

// truth is a column that is true or false.
func (p *parser) truth(v value, usual bool, what string) bool {
	if v.kind == "" || v.kind == opNull {
		return usual
	}
	holds, known := parseTruth(v.text)
	if !known || v.kind == opNumber {
		p.fail(v.at, "write TRUE or FALSE", "%s is neither true nor false: %q", what, shorten(v.text))
	}
	return holds
}

// timeout reads an interval: 02:30:00, 3d18h, 3 days 02:30:00, 90 minutes.
func (p *parser) timeout(v value) time.Duration {
	if v.kind == "" || v.kind == opNull {
		return 0
	}
	d, good := native.Interval(v.text)
	switch {
	case !good || v.kind == opTruth:
		p.fail(v.at, "write HH:MM:SS, or for example 3d18h", "%q is no time limit", shorten(v.text))
	case d <= 0 || d > workflow.MaxDuration:
		p.fail(v.at, "leave it out for none", "the time limit %q must be more than zero, and at most %s",
			shorten(v.text), workflow.FormatDuration(workflow.MaxDuration))
	}
	return d
}

// convert brings a value as written to a type of the native language; good is false if
// it is none of them. Null is nil.
func (v value) convert(t workflow.DataType) (out workflow.Value, good bool) {
	if v.kind == "" || v.kind == opNull {
		return nil, true
	}
	switch s := strings.TrimSpace(v.text); t {
	case workflow.TypeInteger:
		i, err := strconv.ParseInt(s, 10, 64)
		return i, err == nil
	case workflow.TypeNumber:
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil && !strings.ContainsAny(s, "nNiIxXpP_")
	case workflow.TypeBoolean:
		return parseTruth(s)
	}
	return v.text, true
}
