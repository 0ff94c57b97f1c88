package api

import (
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Code says what kind of "no" an error is. What the errors of a node mean is in
// node.Explain.
type Code string

// The codes (docs/commands.md, Exit status).
const (
	Failed     Code = "failed"      // it was tried and failed
	Invalid    Code = "invalid"     // the request is wrong
	NotFound   Code = "not-found"   // there is no such thing
	NoNode     Code = "no-node"     // no node runs that could be asked
	NotAllowed Code = "not-allowed" // somebody else may
	Refused    Code = "refused"     // a rule says no
	NotYet     Code = "not-yet"     // what is asked for is not here yet, and may come
	Internal   Code = "internal"    // our own fault
)

// statuses are what a code is for whoever does not read it.
var statuses = []struct {
	code       Code
	exit, http int
}{
	{Failed, 1, 500},
	{Invalid, 2, 400},
	{NotFound, 3, 404},
	{NoNode, 4, 503},
	{NotAllowed, 5, 403},
	{Refused, 6, 409},
	{NotYet, 1, 503},
	{Internal, 1, 500},
}

// Codes are all codes.
func Codes() (all []Code) {
	for _, s := range statuses {
		all = append(all, s.code)
	}
	return all
}

// Exit is the exit status of a command that ends with an error of that code.
func (c Code) Exit() int {
	exit, _ := c.statuses()
	return exit
}

// HTTP is the status of a reply that is an error of that code.
func (c Code) HTTP() int {
	_, status := c.statuses()
	return status
}

// statuses of a code that this version does not know are those of Failed.
func (c Code) statuses() (exit, http int) {
	for _, s := range statuses {
		if s.code == c {
			return s.exit, s.http
		}
	}
	return Failed.statuses()
}

// Error is an error that may be shown to a user: what, why, and the next step.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Problems are, of a definition that is wrong, its mistakes with their places; Message has them too.
	Problems []Problem `json:"problems,omitempty"`

	message error // Message, with its partners not in words yet
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "\nhint: " + e.Hint
}

// Errorf makes an Error with that code.
func Errorf(code Code, format string, args ...any) *Error {
	message := said.Errorf(format, args...)
	return &Error{Code: code, Message: message.Error(), message: message}
}

// Judge makes an Error of one from below that means that code in this place. Where it
// means the same wherever it comes from, node.Explain says so.
func Judge(code Code, err error) *Error {
	return &Error{Code: code, Message: err.Error(), message: err}
}

// Problem is a mistake in a definition, as mutirao workflow check reports it.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // from 1
	Col     int    `json:"col"`  // from 1, in characters
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// WrongDefinition makes an Error of what is wrong with a definition that somebody gave.
func WrongDefinition(err error) *Error {
	out := Judge(Invalid, err)
	var found workflow.Errors
	errors.As(err, &found)
	for _, p := range found {
		out.Problems = append(out.Problems,
			Problem{File: p.File, Line: p.Line, Col: p.Col, Message: p.Message, Hint: p.Hint})
	}
	return out
}

// Exit is the exit status of a command that ends with the error. A definition with mistakes is what
// mutirao workflow check fails for, and no wrong use of the command line.
func (e *Error) Exit() int {
	if len(e.Problems) > 0 {
		return Failed.Exit()
	}
	return e.Code.Exit()
}

// Named returns e with the partners in its message by what name says: itself, if
// there are none.
func (e *Error) Named(name func(workflow.PartnerID) string) *Error {
	if len(said.Partners(e.message)) == 0 {
		return e
	}
	named := *e
	named.Message = said.Render(e.message, name)
	return &named
}

// ErrStopping is what is answered while the node goes down.
var ErrStopping = Errorf(NoNode, "the node is stopping")

// WithHint returns e with the next step added.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}
