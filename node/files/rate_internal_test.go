package files

import (
	"fmt"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// One measurement moves the rate a quarter of the way, of what a byte takes if it is less; without time nothing was measured.
func TestMeasured(t *testing.T) {
	for _, x := range []struct {
		rate, bytes int64
		span        time.Duration
		want        int64
	}{
		{0, 500, time.Second, 500}, {100, 500, time.Second, 200}, {100, 50, 0, 100}, {400, 0, time.Second, 400},
		{3, 1, time.Hour, 2}, {60_000_000, 1_000_000, 8 * time.Second, 496_894}, {0, 1, time.Hour, 1},
	} {
		if got := measured(x.rate, x.bytes, x.span); got != x.want {
			t.Errorf("%d bytes in %s make %d of %d, want %d", x.bytes, x.span, got, x.rate, x.want)
		}
	}
}

// What is waited for says how quickly it comes, also where nothing does, as soon as that is less.
func TestUnderWay(t *testing.T) {
	for _, x := range []struct {
		rate, bytes int64
		span        time.Duration
		want        int64
	}{
		{500, 0, time.Second / 2, 500}, {500, 1 << 20, time.Second, 500}, {1 << 20, 0, 4 * time.Second, 8 << 10},
		{1 << 20, 96 << 10, 4 * time.Second, 32 << 10}, {0, 0, time.Second / 2, 0}, {0, 0, 4 * time.Second, 8 << 10},
		{5, 0, 1000 * time.Hour, 1},
	} {
		if got := underWay(x.rate, x.bytes, x.span); got != x.want {
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
