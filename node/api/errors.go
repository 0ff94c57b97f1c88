package api

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Code says what kind of "no" an error is. The command line turns it into its
// exit status, the server into an HTTP status.
type Code string

// The codes (docs/commands.md, Exit status).
const (
	Failed     Code = "failed"      // it was tried and failed: exit 1, HTTP 500
	Invalid    Code = "invalid"     // the request is wrong: exit 2, HTTP 400
	NotFound   Code = "not-found"   // no such thing: exit 3, HTTP 404
	NoNode     Code = "no-node"     // no running node to talk to: exit 4
	NotAllowed Code = "not-allowed" // exit 5, HTTP 403
	Refused    Code = "refused"     // a rule says no: exit 6, HTTP 409
	Internal   Code = "internal"    // our own fault: exit 1, HTTP 500
)

// Error is an error that may be shown to a user: what, why, and the next step.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`

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

// WithHint returns e with the next step added.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}
