package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The exit statuses that are no error's (docs/commands.md, Exit status); those of errors
// are api.Code.Exit. Scripts rely on them.
const (
	exitDone    = 0
	exitTimeout = 124
)

// exitError ends the program with a status that no api.Code stands for, or
// after its message has been said.
type exitError struct {
	status  int
	message string
	hint    string
}

func (e *exitError) Error() string { return e.message }

// usagef is a wrong use of the command line.
func usagef(format string, args ...any) error {
	return api.Errorf(api.Invalid, format, args...)
}

// report tells the user what went wrong, and returns the exit status.
func report(stderr io.Writer, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitDone
	}
	status, message, hint := api.Failed.Exit(), said.Render(err, workflow.PartnerID.Short), ""
	var exit *exitError
	var shown *api.Error
	switch {
	case errors.As(err, &exit):
		status, message, hint = exit.status, exit.message, exit.hint
	case errors.As(node.Explain(err, workflow.PartnerID.Short), &shown):
		status, message, hint = shown.Exit(), shown.Message, shown.Hint
		if shown.Code == api.Invalid && hint == "" && len(shown.Problems) == 0 {
			hint = fmt.Sprintf("%s -h", cmd.CommandPath())
		}
	case errors.Is(err, context.Canceled):
		message = "interrupted"
	}
	if message != "" {
		fmt.Fprintf(stderr, "mutirao: %s\n", localTimes(message))
	}
	if hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", localTimes(hint))
	}
	return status
}
