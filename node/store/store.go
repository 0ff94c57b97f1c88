package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
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
	ledger ledger
	// entering is held from a commit until the ledger has it. next is that unit's
	// change; doubt, that of one of which it is not known whether it happened.
	entering    sync.Mutex
	next, doubt *change
	committer
}

// Open opens the store in dir, which it makes if need be. A folder that another
// process has open gives a *LockedError; one made by a newer program and a full disk
// (ErrFull) are refused with the reason. Every file is read and checked. A damaged
// store is made again from all that can still be read; Damage says what was lost.
func Open(dir string, o Options) (*Store, error) {
	o, sz, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: cannot make the folder: %w", noSpace(err))
	}
	lock, err := acquireLock(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: o, lock: lock}
	s.commit = s.commitUnits
	s.ledger.dir, s.ledger.rangeOf, s.ledger.is.ranges = dir, o.Range, map[string]tally{}
	if err := s.openDatabase(sz); err != nil {
		if s.db != nil {
			err = errors.Join(err, s.db.close())
		}
		return nil, errors.Join(err, s.ledger.close(), lock.release())
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
	return s.checkedOpen(badgerOptions(filepath.Join(s.dir, dataName), sz, s.opts.Logger))
}

// openBadger turns Badger's errors and panics about damaged files into one
// message that says what to do.
func openBadger(dir string, bo badger.Options) (db *badger.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			db, err = nil, fmt.Errorf("store %s cannot be opened (%w): if starting again does not help, restore the folder from a backup, or move it away and fetch from partners", dir, noSpace(err))
		}
	}()
	return badger.Open(bo)
}

// room says ErrFull when less than need, which is the reserve or a part of it, is
// free.
func (s *Store) room(need int64) error {
	free, err := freeSpace(s.dir)
	if err != nil {
		return fmt.Errorf("store: cannot ask for free space: %w", err)
	}
	if free < need {
		return fmt.Errorf("store %s: %w: %d MiB free, at least %d MiB needed: make room on the disk", s.dir, ErrFull,
			free>>20, need>>20)
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

// Reserve is how many bytes must be free on the disk for anything to be written.
func (s *Store) Reserve() int64 { return s.opts.Reserve }

// ReserveAt is the Reserve of the store in a folder, which need not be open nor be there yet.
func ReserveAt(dir string, o Options) (int64, error) {
	o, sz, err := o.complete()
	if err != nil {
		return 0, err
	}
	m, err := readMeta(dir)
	return o.reserve(max(sz.memtable, m.Memtable)), err
}

// Get returns a copy of the value under key, or ErrNotFound. It sees every unit
// whose done was called, and perhaps later ones. An error that wraps ErrDamaged says
// that reading again will not help.
func (s *Store) Get(key []byte) (value []byte, err error) {
	db, err := s.db.acquire()
	if err != nil {
		return nil, err
	}
	defer s.db.release()
	defer caught(&err)
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

// caught turns a panic of Badger's, which it has on files that changed under it, into
// an error.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("store: %w: %v: mutirao doctor reads all of it; starting again mends what can be mended",
			ErrDamaged, r)
	}
}

// Scan calls fn for each key that begins with prefix, in byte order, as of one
// moment. The slices are valid during fn only. An error of fn ends the scan and
// is returned. fn may use the store, but not Close it or wait for a commit. A scan of
// a whole range (Options.Range) that comes to another number of entries than there
// should be ends with ErrDamaged.
func (s *Store) Scan(prefix []byte, fn func(key, value []byte) error) error {
	_, _, should := s.ledger.moment(prefix)
	n, err := s.scan(prefix, fn)
	if err != nil || n == should || len(prefix) == 0 || string(s.ledger.rangeOf(prefix)) != string(prefix) {
		return err
	}
	return s.recount(prefix)
}

// recount counts a range again, at a moment without commits. If there is none, it is
// not counted: the next start will.
func (s *Store) recount(prefix []byte) error {
	for range 5 {
		before, quiet, _ := s.ledger.moment(prefix)
		n, err := s.scan(prefix, func(_, _ []byte) error { return nil })
		if err != nil {
			return err
		}
		after, still, should := s.ledger.moment(prefix)
		switch {
		case !quiet || !still || before != after:
		case n != should:
			return fmt.Errorf("store: %w: %d entries under %q, want %d", ErrDamaged, n, prefix, should)
		default:
			return nil
		}
	}
	return nil
}

func (s *Store) scan(prefix []byte, fn func(key, value []byte) error) (n int64, err error) {
	db, err := s.db.acquire()
	if err != nil {
		return 0, err
	}
	defer s.db.release()
	txn := db.NewTransaction(false)
	defer txn.Discard()
	err = scan(txn, prefix, func(key, value []byte) error {
		if string(key) == unitKey {
			return nil
		}
		n++
		return fn(key, value)
	})
	return n, err
}

// scan reads the entries of a transaction. A panic of fn's stays one.
func scan(txn *badger.Txn, prefix []byte, fn func(key, value []byte) error) (err error) {
	ours := false // the panic
	defer func() {
		if !ours {
			caught(&err)
		}
	}()
	o := badger.DefaultIteratorOptions
	o.Prefix = prefix
	o.PrefetchValues = false // values are in the tree: nothing to fetch
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		err := item.Value(func(value []byte) error {
			ours = true
			err := fn(item.Key(), value)
			ours = false
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Damage is what was found lost when the store was opened, now or before, until Settle.
func (s *Store) Damage() kv.Damage {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.ledger.damage
}

// Settle forgets the damage, durably: its user has made durable what follows from it.
func (s *Store) Settle() error {
	s.entering.Lock()
	defer s.entering.Unlock()
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	was := s.ledger.damage
	s.ledger.damage = kv.Damage{}
	err := s.ledger.rewrite()
	if err != nil {
		s.ledger.damage = was
	}
	return err
}

// Verify reads every file and every entry, while the store goes on. Its error says what
// is damaged: to be mended by opening the store again.
func (s *Store) Verify() error {
	s.entering.Lock() // so that the books fit what the transaction sees
	db, err := s.db.acquire()
	if err != nil {
		s.entering.Unlock()
		return err
	}
	defer s.db.release()
	should := s.ledger.snapshot()
	txn := db.NewTransaction(false)
	s.entering.Unlock()
	defer txn.Discard()
	is, _, err := s.tallyAll(txn)
	if err == nil && is.all != should.all {
		err = fmt.Errorf("store: %w: it holds %d entries and should hold %d; %d of %d groups of entries differ",
			ErrDamaged, is.all.count, should.all.count, len(differing(should, is)), len(should.ranges))
	}
	for _, t := range db.Tables() {
		path := filepath.Join(s.dir, dataName, fmt.Sprintf("%06d.sst", t.ID))
		terr := readTable(path, nil)
		// A table that was merged into others meanwhile is cut and removed.
		if terr != nil && slices.ContainsFunc(db.Tables(), func(x badger.TableInfo) bool { return x.ID == t.ID }) {
			err = errors.Join(err, fmt.Errorf("store: %w: table %s: %w", ErrDamaged, filepath.Base(path), terr))
		}
	}
	return err
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
		_ = s.ledger.close() // the next opening makes it again
		return fmt.Errorf("store closed without a flush: %w", err)
	}
	if err := errors.Join(s.db.close(), s.ledger.close()); err != nil {
		return fmt.Errorf("store: closing: %w", err)
	}
	return s.lock.release()
}
