package node

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the machine started, suspend included.
func bootTime() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
