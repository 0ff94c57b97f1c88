package store

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
)

// reservedPrefixes begin the keys that Badger keeps for itself, and ours.
var reservedPrefixes = [][]byte{[]byte("!badger!"), []byte("!mutirao!")}

func reserved(key []byte) bool {
	return slices.ContainsFunc(reservedPrefixes, func(p []byte) bool { return bytes.HasPrefix(key, p) })
}

// unit is what one Commit call queued. With refused set it only waits for its
// turn to say so.
type unit struct {
	writes  []Write
	size    int64
	refused error
	done    func(error)
}

// committer writes queued units in groups: while one group is being synced the
// next one gathers.
type committer struct {
	// write writes as many of the units, from the first, as fit in one
	// transaction, and returns how many.
	write     func([]unit) (int, error)
	maxQueued int64
	stopped   chan struct{}

	mu     sync.Mutex
	filled *sync.Cond // the queue got a unit, or closed
	queue  []unit
	queued int64 // bytes of queue and of the group being written
	closed bool
}

func (c *committer) start(maxQueued int64, write func([]unit) (int, error)) {
	c.write, c.maxQueued, c.stopped = write, maxQueued, make(chan struct{})
	c.filled = sync.NewCond(&c.mu)
	go c.run()
}

// stop waits until all that is queued was written. It says false if the
// committer was stopped before.
func (c *committer) stop() bool {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	c.filled.Signal()
	<-c.stopped
	return first
}

// Commit queues writes as one atomic unit and returns at once. done is called
// from the committer's goroutine, in the order of the Commit calls, once the unit
// is durable or has failed; it may call Commit, but must not wait for a commit and
// should be quick: everybody's next commit waits for it. The writes' slices must
// not be changed before done. (On a closed store done is called from a goroutine
// of its own.)
//
// See the package comment for what an error means. The queue is bounded in bytes
// (Options.MaxQueued), so callers should bound what they have in flight.
func (c *committer) Commit(writes []Write, done func(error)) {
	u := unit{writes: writes, done: done}
	u.size, u.refused = check(writes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		go done(ErrClosed)
		return
	}
	if u.refused == nil && c.queued+u.size > c.maxQueued {
		u.refused = fmt.Errorf("store: %w: %d bytes wait, at most %d may: wait for earlier commits", ErrQueueFull,
			c.queued, c.maxQueued)
	}
	if u.refused != nil {
		u.writes, u.size = nil, 0
	}
	c.queued += u.size
	c.queue = append(c.queue, u)
	c.filled.Signal()
}

// CommitWait commits writes as one unit and waits until it is durable.
func (c *committer) CommitWait(writes []Write) error {
	result := make(chan error, 1)
	c.Commit(writes, func(err error) { result <- err })
	return <-result
}

// check measures a unit and says why it can never be committed, if so.
func check(writes []Write) (size int64, err error) {
	if len(writes) > MaxUnitWrites {
		return 0, fmt.Errorf("store: %w: %d writes in one unit, at most %d are possible: split it", ErrTooBig,
			len(writes), MaxUnitWrites)
	}
	for _, w := range writes {
		switch {
		case len(w.Key) == 0:
			return 0, fmt.Errorf("store: %w: a key is empty", ErrInvalid)
		case reserved(w.Key):
			return 0, fmt.Errorf("store: %w: key %q begins as one of %q, which are reserved", ErrInvalid, w.Key,
				reservedPrefixes)
		case len(w.Key) > MaxKey:
			return 0, fmt.Errorf("store: %w: a key of %d bytes, at most %d are possible", ErrTooBig, len(w.Key), MaxKey)
		case len(w.Value) > MaxValue:
			return 0, fmt.Errorf("store: %w: the value of %q has %d bytes, at most %d are possible: keep it outside of the store", ErrTooBig, w.Key, len(w.Value), MaxValue)
		}
		size += writeSize(w)
	}
	if size > MaxUnit {
		return 0, fmt.Errorf("store: %w: a unit of %d bytes, at most %d are possible: split it", ErrTooBig, size,
			MaxUnit)
	}
	return size, nil
}

func (c *committer) run() {
	defer close(c.stopped)
	for units := c.take(nil); len(units) > 0; units = c.take(units) {
		for rest := units; len(rest) > 0; {
			n, err := c.write(rest)
			c.finish(rest[:n], err)
			rest = rest[n:]
		}
		clear(units) // let go of the writes
	}
}

// finish tells a group's units how it went.
func (c *committer) finish(units []unit, err error) {
	var size int64
	for _, u := range units {
		size += u.size
		if u.refused != nil {
			u.done(u.refused)
		} else {
			u.done(err)
		}
	}
	c.mu.Lock()
	c.queued -= size
	c.mu.Unlock()
}

// take waits for units and returns all that are queued; none means the end. It
// keeps the spent slice for the queue's next growth.
func (c *committer) take(spent []unit) []unit {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && !c.closed {
		c.filled.Wait()
	}
	units := c.queue
	c.queue = spent[:0]
	return units
}
