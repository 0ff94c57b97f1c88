package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// The exit statuses (docs/commands.md, Exit status). Scripts rely on them.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitNotFound   = 3
	exitNoNode     = 4
	exitNotAllowed = 5
	exitRefused    = 6
	exitTimeout    = 124
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
	status, message, hint := exitFailed, err.Error(), ""
	var exit *exitError
	var shown *api.Error
	var loose *private.LooseError
	var config *configs.Error
	switch {
	case errors.As(err, &exit):
		status, message, hint = exit.status, exit.message, exit.hint
	case errors.As(err, &shown):
		status, message, hint = statusOf(shown.Code), shown.Message, shown.Hint
		if status == exitUsage && hint == "" {
			hint = fmt.Sprintf("%s -h", cmd.CommandPath())
		}
	case errors.As(err, &loose):
		status, message, hint = exitRefused, loose.Error(), loose.Mend
	case errors.As(err, &config):
		status, hint = exitUsage, "mend it; docs/operating.md and configs/config.example.yaml have every key"
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

func statusOf(c api.Code) int {
	switch c {
	case api.Invalid:
		return exitUsage
	case api.NotFound:
		return exitNotFound
	case api.NoNode:
		return exitNoNode
	case api.NotAllowed:
		return exitNotAllowed
	case api.Refused:
		return exitRefused
	}
	return exitFailed
}
