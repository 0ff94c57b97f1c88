package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
)

// dataName is the folder, inside the store's, that Badger has for itself.
const dataName = "data"

// Store is an open store. Its methods may be called from any goroutine.
type Store struct {
	dir  string
	opts Options
	lock *dirLock
	db   *database
	// commit writes a group; a test replaces it to make the disk fail.
	commit func(*badger.DB, []unit) error
	committer
}

// Open opens the store in dir, which it makes if need be. A folder that another
// process has open gives a *LockedError; one made by a newer program, a damaged
// one and a full disk (ErrFull) are refused with the reason.
func Open(dir string, o Options) (*Store, error) {
	o, sz, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, dataName), 0o700); err != nil {
		return nil, fmt.Errorf("store: cannot make the folder: %w", noSpace(err))
	}
	lock, err := acquireLock(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: o, lock: lock, commit: commitUnits}
	if err := s.openDatabase(sz); err != nil {
		return nil, errors.Join(err, lock.release())
	}
	s.committer.start(o.MaxQueued, s.writeGroup)
	return s, nil
}

// openDatabase settles the memtable's size and opens Badger.
func (s *Store) openDatabase(sz sizes) error {
	m, err := readMeta(s.dir)
	if err != nil {
		return err
	}
	sz.memtable = max(sz.memtable, m.Memtable)
	s.opts.Reserve = s.opts.reserve(sz.memtable)
	if err := s.room(s.opts.Reserve); err != nil {
		return err
	}
	if sz.memtable != m.Memtable {
		m.Memtable = sz.memtable
		if err := m.write(s.dir); err != nil {
			return err
		}
	}
	if err := dropStillborn(filepath.Join(s.dir, dataName)); err != nil {
		return err
	}
	bo := badgerOptions(filepath.Join(s.dir, dataName), sz, s.opts.Logger)
	s.db, err = newDatabase(func() (*badger.DB, error) {
		if err := s.room(s.opts.Reserve); err != nil {
			return nil, err
		}
		return openBadger(s.dir, bo)
	})
	return err
}

// openBadger turns Badger's errors and panics about damaged files into one
// message that says what to do.
func openBadger(dir string, bo badger.Options) (db *badger.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			db, err = nil, fmt.Errorf("store %s cannot be opened (%w): if its files are damaged, restore the folder from a backup or start with an empty one and fetch from partners", dir, noSpace(err))
		}
	}()
	return badger.Open(bo)
}

// dropStillborn removes empty logs: of memtables, and of values, of which each
// opening makes a new one. A process that is killed between making the file and
// giving it its size leaves one behind; nothing was written to it, and Badger
// refuses to open with it.
func dropStillborn(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil {
		return err
	}
	values, err := filepath.Glob(filepath.Join(dir, "*.vlog"))
	if err != nil {
		return err
	}
	for _, path := range append(logs, values...) {
		info, err := os.Stat(path)
		if err == nil && info.Size() == 0 {
			err = os.Remove(path)
		}
		if err != nil {
			return fmt.Errorf("store: an empty log cannot be removed: %w", err)
		}
	}
	return nil
}

// room says ErrFull when less than need, which is the reserve or a part of it, is
// free.
func (s *Store) room(need int64) error {
	free, err := freeSpace(s.dir)
	if err != nil {
		return fmt.Errorf("store: cannot ask for free space: %w", err)
	}
	if free < need {
		return fmt.Errorf("store %s: %w: %d MiB free, at least %d MiB needed: make room on the disk", s.dir, ErrFull, free>>20, need>>20)
	}
	return nil
}

// noSpace makes an error that says the disk is full recognisable as ErrFull.
func noSpace(err error) error {
	if isNoSpace(err) && !errors.Is(err, ErrFull) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// Get returns a copy of the value under key, or ErrNotFound. It sees every unit
// whose done was called, and perhaps later ones.
func (s *Store) Get(key []byte) ([]byte, error) {
	db, err := s.db.acquire()
	if err != nil {
		return nil, err
	}
	defer s.db.release()
	txn := db.NewTransaction(false)
	defer txn.Discard()
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) || errors.Is(err, badger.ErrEmptyKey) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("store: reading %q: %w", key, err)
	}
	return item.ValueCopy(nil)
}

// Scan calls fn for each key that begins with prefix, in byte order, as of one
// moment. The slices are valid during fn only. An error of fn ends the scan and
// is returned. fn may use the store, but not Close it or wait for a commit.
func (s *Store) Scan(prefix []byte, fn func(key, value []byte) error) error {
	db, err := s.db.acquire()
	if err != nil {
		return err
	}
	defer s.db.release()
	txn := db.NewTransaction(false)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.Prefix = prefix
	o.PrefetchValues = false // values are in the tree: nothing to fetch
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		err := item.Value(func(value []byte) error { return fn(item.Key(), value) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Size is what the store takes on the disk, in bytes: sorted tables and log. The
// value log is never written to and stays as small as Badger permits. Badger
// measures once a minute.
func (s *Store) Size() (lsm, vlog int64) {
	db, err := s.db.acquire()
	if err != nil {
		return 0, 0
	}
	defer s.db.release()
	return db.Size()
}

// Close commits what is queued, then closes the store. Units that are queued
// afterwards get ErrClosed. When the disk has no room to flush, Close leaves the
// folder locked until the process ends and says so; nothing is lost, the log is
// read again at the next Open.
func (s *Store) Close() error {
	if !s.committer.stop() {
		return nil // somebody else closes or closed it
	}
	// Half of the reserve: the memtables, with some room for a compaction.
	if err := s.room(s.opts.Reserve / 2); err != nil {
		return fmt.Errorf("store closed without a flush: %w", err)
	}
	if err := s.db.close(); err != nil {
		return fmt.Errorf("store: closing: %w", err)
	}
	return s.lock.release()
}
