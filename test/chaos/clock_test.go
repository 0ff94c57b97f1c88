//go:build linux

package chaos_test

import (
	"crypto/sha256"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node"
)

// clock is the machine's, with a wall clock that can be set, and a boot clock
// that began again where the device is said to have been rebooted. All else of
// the process, timers included, goes by the machine's clocks.
type clock struct {
	*node.SystemClock
	wrong  atomic.Int64 // ns
	booted time.Duration
	boot   string
}

func newClock(wrong, booted string) (*clock, error) {
	c := &clock{SystemClock: node.NewSystemClock(), boot: booted}
	if wrong != "" {
		d, err := time.ParseDuration(wrong)
		if err != nil {
			return nil, err
		}
		c.wrong.Store(int64(d))
	}
	if booted != "" {
		n, err := strconv.ParseInt(booted, 10, 64)
		if err != nil {
			return nil, err
		}
		c.booted = time.Duration(n)
	}
	return c, nil
}

// BootID names the boot that was pretended, or the machine's.
func (c *clock) BootID() string {
	if c.boot != "" {
		return "rebooted at " + c.boot
	}
	return c.SystemClock.BootID()
}

func (c *clock) Now() moment.Now {
	now := c.SystemClock.Now()
	now.Boot -= c.booted
	now.Wall = now.Wall.Add(time.Duration(c.wrong.Load()))
	return now
}

// Wall clocks jump by multiples of jump, so that when a fact was written can
// be read from its author's clock however wrong that was: a run is shorter.
const (
	jump     = 6 * time.Hour
	maxJumps = 3 // trust.ClockSkew, beyond which certificates do not hold yet, is 24 h
)

// written is when a fact was written, from what its author's clock said.
func (tm *team) written(at time.Time) time.Duration {
	d := at.Sub(tm.begun) % jump
	if d < -time.Second {
		d += jump
	}
	return d
}

func hash(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}
