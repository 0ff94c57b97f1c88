package jobs

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

type said struct{ error }

func (s said) Answer() string { return s.Error() }

// Why a holder cannot be asked is said in words of ours or its own, and never in those of the library in between.
func TestWhyAHolderCannotBeAsked(t *testing.T) {
	for want, err := range map[string]error{
		"the connection broke off":   errors.New("protocol /mutirao/work/1.0.0: connection closed (local): code: 0x0"),
		"it did not answer in time":  fmt.Errorf("protocol /mutirao/work/1.0.0: %w", context.DeadlineExceeded),
		"it says cannot do that now": fmt.Errorf("asking for /mutirao/work/1.0.0: %w", said{errors.New("cannot do that now")}),
	} {
		if got := unasked(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
