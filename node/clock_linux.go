package node

import (
	"os"
	"strings"
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

// readBootID is the kernel's name for the machine's present boot.
func readBootID() (string, bool) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err == nil
}
