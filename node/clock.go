package node

import (
	"encoding/hex"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
)

// SystemClock reads the clocks of this machine.
type SystemClock struct {
	started time.Time
	bootID  string
}

// NewSystemClock is the machine's clock. Where the system has no clock that
// counts suspend, its awake clock serves for both.
func NewSystemClock() *SystemClock {
	id, ok := readBootID()
	if !ok {
		id = hex.EncodeToString(random(16)) // as if the machine had just started
	}
	return &SystemClock{started: time.Now(), bootID: id}
}

// BootID names the machine's present boot.
func (c *SystemClock) BootID() string { return c.bootID }

// Now reads the clocks.
func (c *SystemClock) Now() moment.Now {
	wall := time.Now()
	awake := wall.Sub(c.started)
	boot, ok := bootTime()
	if !ok {
		boot = awake
	}
	return moment.Now{Awake: awake, Boot: boot, Wall: wall}
}

// After is time.After.
func (c *SystemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
