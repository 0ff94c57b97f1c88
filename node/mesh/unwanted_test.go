package mesh

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// A partner that is not admitted and comes again and again is told of once for each reason, and again after a long
// while. What is remembered for that is bounded.
func TestWhoComesAgainIsToldOfOnce(t *testing.T) {
	var u unwanted
	now := time.Now()
	for _, x := range []struct {
		after  time.Duration
		who    workflow.PartnerID
		reason string
		want   slog.Level
	}{
		{0, "two", "evicted", slog.LevelInfo},
		{40 * time.Second, "two", "evicted", slog.LevelDebug},
		{80 * time.Second, "three", "evicted", slog.LevelInfo},
		{time.Hour, "two", "evicted", slog.LevelDebug},
		{time.Hour, "two", "its certificate ran out", slog.LevelInfo},
		{2 * time.Hour, "two", "its certificate ran out", slog.LevelDebug},
		{2 * time.Hour, "two", "evicted", slog.LevelDebug},
		{14 * time.Hour, "two", "its certificate ran out", slog.LevelInfo},
	} {
		if got := u.level(x.who, x.reason, now.Add(x.after)); got != x.want {
			t.Errorf("%s, %q after %s: told at %s, want %s", x.who, x.reason, x.after, got, x.want)
		}
	}
	for i := range 10 * unwantedMost {
		u.level(workflow.PartnerID(fmt.Sprint(i)), "a stranger", now)
	}
	if len(u.told) > unwantedMost {
		t.Errorf("%d are remembered, at most %d may be", len(u.told), unwantedMost)
	}
}
