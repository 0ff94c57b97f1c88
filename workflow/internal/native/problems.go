package native

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// maxProblems are reported: nobody mends more at once.
const maxProblems = 200

// Problems are the mistakes that an importer finds in a file.
type Problems struct {
	File string
	all  workflow.Errors
}

// Fail reports a mistake at its place, from 1; the hint may be empty.
func (p *Problems) Fail(line, col int, hint, format string, args ...any) {
	if len(p.all) >= maxProblems {
		return
	}
	p.all = append(p.all, workflow.Problem{
		File: p.File, Line: line, Col: col, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// Number is how many were reported.
func (p *Problems) Number() int { return len(p.all) }

// Err are all of them, in the order of their places; nil: there are none.
func (p *Problems) Err() error {
	if len(p.all) == 0 {
		return nil
	}
	slices.SortStableFunc(p.all, func(a, b workflow.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return p.all
}
