package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// closeTimeout bounds closing Badger after a failed write: on a disk that takes
// nothing any more Badger tries to flush for ever.
const closeTimeout = 30 * time.Second

// database is a Badger instance that can be closed and opened again under its
// users. After a failed write Badger must not be written to again: its memtable
// holds what its log may not, and it exits the process if its log file could not
// be made.
type database struct {
	open func() (*badger.DB, error)

	mu      sync.Mutex
	idle    *sync.Cond // users == 0
	db      *badger.DB // nil: not open; the next user opens it
	users   int
	closing bool
	dead    error // set for good when it cannot be opened any more
}

func newDatabase(open func() (*badger.DB, error)) (*database, error) {
	d := &database{open: open}
	d.idle = sync.NewCond(&d.mu)
	if _, err := d.acquire(); err != nil {
		return nil, err
	}
	d.release()
	return d, nil
}

// acquire returns the instance for use until release. It does not wait for a
// reopening: a reader that holds the old instance may ask for a second one.
func (d *database) acquire() (*badger.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.dead != nil:
		return nil, d.dead
	case d.closing:
		return nil, ErrReopening
	case d.db == nil:
		db, err := d.open()
		if err != nil {
			return nil, err
		}
		d.db = db
	}
	d.users++
	return d.db, nil
}

func (d *database) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users--
	if d.users == 0 {
		d.idle.Broadcast()
	}
}

// reopen closes the instance, which flushes all that was readable, and opens it
// again. When that fails the next user tries again.
func (d *database) reopen() error {
	if err := d.shut(); err != nil {
		return err
	}
	if _, err := d.acquire(); err != nil {
		return err
	}
	d.release()
	return nil
}

// close closes the instance for good.
func (d *database) close() error {
	err := d.shut()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead == nil {
		d.dead = ErrClosed
	}
	return err
}

// shut waits for the users and closes the instance. If Badger does not come back
// the database is dead: two instances must never work on one folder.
func (d *database) shut() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead != nil {
		return d.dead
	}
	d.closing = true
	for d.users > 0 {
		d.idle.Wait()
	}
	db := d.db
	d.db = nil
	var err error
	if db != nil {
		d.mu.Unlock()
		err = closeWithin(db, closeTimeout)
		d.mu.Lock()
	}
	d.closing = false
	if errors.Is(err, errStuck) {
		d.dead = err
	}
	return err
}

var errStuck = errors.New("the disk takes no writes: mend it and restart the node, what was acknowledged is in the log")

func closeWithin(db *badger.DB, limit time.Duration) error {
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case err := <-closed:
		return err
	case <-timeout.C:
		return fmt.Errorf("store: closing took over %v: %w", limit, errStuck)
	}
}
