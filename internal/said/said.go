// Package said makes errors that speak of partners without knowing their names. An
// error keeps its format and arguments, so that the code that shows it to people
// can put the names in. No ID is looked for in finished texts, where it might stand in
// what somebody else wrote. Only an error that fmt.Errorf or errors.Join made keeps no
// arguments: in its text the text of what it wraps is looked for, as a whole. If somebody
// else wrote the very same words before it, the names go there; nothing else can happen.
//
// It imports workflow; many packages import it.
package said

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// text is an error that has not been put into words for good.
type text struct {
	error  // in words with short IDs; it wraps what the format wraps
	format string
	args   []any
}

// Unwrap gives the error in words, which wraps the arguments of %w.
func (t *text) Unwrap() error { return t.error }

// Errorf is fmt.Errorf that keeps its arguments. Its text has partners by their short
// IDs; see Render.
func Errorf(format string, args ...any) error {
	return &text{fmt.Errorf(format, worded(args, workflow.PartnerID.Short, keep)...), format, args}
}

// Render is the text of an error with partners by what name says. The text of an error
// that was not made by Errorf has that of what it wraps in it, by convention.
func Render(err error, name func(workflow.PartnerID) string) string {
	var inner []error
	switch e := err.(type) {
	case nil:
		return ""
	case *text:
		return fmt.Errorf(e.format, worded(e.args, name,
			func(inner error) error { return errors.New(Render(inner, name)) })...).Error()
	case interface{ Unwrap() error }:
		inner = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	}
	var words strings.Builder
	rest := err.Error()
	for _, e := range inner {
		if e == nil {
			continue
		}
		if at := indexWhole(rest, e.Error()); at >= 0 {
			words.WriteString(rest[:at] + Render(e, name))
			rest = rest[at+len(e.Error()):]
		}
	}
	return words.String() + rest
}

// indexWhole is where a text first stands in s and is no part of a longer word; -1:
// nowhere.
func indexWhole(s, text string) int {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	for from := 0; text != ""; {
		i := strings.Index(s[from:], text)
		if i < 0 {
			break
		}
		before, _ := utf8.DecodeLastRuneInString(s[:from+i])
		after, _ := utf8.DecodeRuneInString(s[from+i+len(text):])
		if !(inWord(first) && inWord(before)) && !(inWord(last) && inWord(after)) {
			return from + i
		}
		_, size := utf8.DecodeRuneInString(s[from+i:])
		from += i + size
	}
	return -1
}

// worded are arguments with partners by what name says, alone or in a list.
func worded(args []any, name func(workflow.PartnerID) string, inner func(error) error) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case workflow.PartnerID:
			out[i] = name(a)
		case []workflow.PartnerID:
			names := make([]string, len(a))
			for k, id := range a {
				names[k] = name(id)
			}
			out[i] = strings.Join(names, ", ")
		case error:
			out[i] = inner(a)
		default:
			out[i] = a
		}
	}
	return out
}

func keep(err error) error { return err }

// Partners are those that an error names, in the order of its text.
func Partners(err error) (out []workflow.PartnerID) {
	Render(err, func(id workflow.PartnerID) string {
		out = append(out, id)
		return ""
	})
	return out
}

// Join makes an error of texts and the partners between them: there is one more text.
func Join(texts []string, partners []workflow.PartnerID) error {
	args := []any{texts[0]}
	for i, id := range partners {
		args = append(args, id, texts[i+1])
	}
	return Errorf(strings.Repeat("%s", len(args)), args...)
}
