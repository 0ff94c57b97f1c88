package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a definition, at its place.
type Problem struct {
	File    string
	Line    int // from 1; 0: it is not known where
	Col     int // from 1, in characters; 0 likewise
	Message string
	Hint    string // what to do about it; may be empty
}

func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Message)
	if p.Line == 0 {
		s = p.File + ": " + p.Message
	}
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// Errors are all the mistakes of a definition, in the order of their places.
type Errors []Problem

// Error prints one line for each mistake: file:line:col: message (hint).
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders the mistakes by place and drops repetitions: a mistake in a
// model is found again in each task that takes it.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(e)
}
