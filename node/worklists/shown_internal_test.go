package worklists

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/worklist"
)

// What happened is told with the same second as lists show, which leave out what is less; a deadline, which is
// worked out from a clock, with the nearest.
func TestMomentsOfMessages(t *testing.T) {
	at := time.Date(2026, 3, 1, 11, 59, 59, 999e6, time.UTC)
	for kind, want := range map[worklist.MessageType]string{
		worklist.Started: "11:59:59", worklist.Ended: "11:59:59", worklist.TaskFailed: "11:59:59",
		worklist.Deadline: "12:00:00",
	} {
		if got := shownAt(worklist.Message{ID: worklist.MessageID{Type: kind}, At: at}).Format(time.TimeOnly); got != want {
			t.Errorf("%s is told at %s, want %s", kind, got, want)
		}
	}
}
