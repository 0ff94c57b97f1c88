package files

import (
	"fmt"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// One measurement moves the rate a quarter of the way; without time nothing was measured.
func TestMeasured(t *testing.T) {
	for _, x := range []struct {
		rate, bytes int64
		span        time.Duration
		want        int64
	}{
		{0, 500, time.Second, 500}, {100, 500, time.Second, 200}, {100, 50, 0, 100}, {400, 0, time.Second, 400},
		{3, 1, time.Hour, 3}, {0, 1, time.Hour, 1},
	} {
		if got := measured(x.rate, x.bytes, x.span); got != x.want {
			t.Errorf("%d bytes in %s make %d of %d, want %d", x.bytes, x.span, got, x.rate, x.want)
		}
	}
}

// Each partner has a rate of its own; of too many those are forgotten that gave nothing for longest.
func TestRates(t *testing.T) {
	var r rates
	r.note("slow", 100, time.Second, time.Second)
	for i := range maxRates - 1 {
		r.note(workflow.PartnerID(fmt.Sprint(i)), 500, time.Second, time.Duration(i+2)*time.Second)
	}
	if got := r.of["slow"].rate; got != 100 {
		t.Errorf("%d bytes a second, want 100", got)
	}
	r.note("another", 500, time.Second, time.Hour)
	if _, known := r.of["slow"]; known || len(r.of) != maxRates || r.of["another"].rate != 500 {
		t.Errorf("%d are kept, that of slow %v", len(r.of), known)
	}
}
