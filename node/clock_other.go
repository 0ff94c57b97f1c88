//go:build !linux

package node

import "time"

// bootTime is not told by Go on this system.
func bootTime() (time.Duration, bool) { return 0, false }

// readBootID: without a clock that survives a restart there is none.
func readBootID() (string, bool) { return "", false }
