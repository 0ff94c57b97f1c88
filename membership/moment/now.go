package moment

import "time"

// Now is a node's three clocks read at one moment. The first two count from
// any fixed point of the current boot and never go back.
type Now struct {
	// Awake does not count suspend. Others' silence and the leases that a
	// voter granted are measured by it: a node that slept knows nothing.
	Awake time.Duration
	// Boot counts suspend too (CLOCK_BOOTTIME). A coordinator's own lease is
	// measured by it: what it was promised runs out while it sleeps.
	Boot time.Duration
	// Wall is what people see; it may be wrong (see [trust.ClockSkew]).
	Wall time.Time
}

// Never is after how long whoever has nothing due is asked again all the same.
const Never = time.Hour

// Grace is how long a node waits after a gap (restart, suspend, stop) before
// it draws conclusions from silence: it has to be found again first.
func Grace(connectionTime time.Duration) time.Duration {
	return min(connectionTime, 10*time.Second)
}
