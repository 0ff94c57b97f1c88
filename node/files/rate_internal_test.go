package files

import (
	"testing"
	"time"
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
