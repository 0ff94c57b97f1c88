package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// Folders beside Badger's own.
const (
	orphanName  = "orphans"      // tables that MANIFEST does not name, until all is found to be there
	newName     = "data.new"     // a database that is being made of what can still be read
	damagedName = "data.damaged" // the files that it was made of, for people
)

// Examine reads all files of the store in a folder, and says what is wrong with them.
// It changes nothing, so it may not be called while the store is open: what a running
// store has not written yet would look damaged.
// A [LockedError] says that it is open.
func Examine(dir string) (wrong []string, err error) {
	release, err := holdStill(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	if _, err := readMeta(dir); err != nil {
		return nil, err
	}
	in, err := inspect(filepath.Join(dir, dataName))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	known, err := readLedger(dir)
	if err != nil {
		return nil, fmt.Errorf("store: the ledger cannot be read: %w", err)
	}
	switch {
	case known.there && !in.some && known.unit > 0:
		in.wrong = append(in.wrong, "its data are missing")
	case !known.there && in.some:
		in.wrong = append(in.wrong, "the ledger is missing or damaged: the last units may be gone")
	}
	return in.against(known), nil
}

// Holds reports whether the files of the store in a folder have an entry with a key that
// is never deleted. Like [Examine] it changes nothing, and may not be called while the
// store is open. What is damaged holds nothing.
func Holds(dir string, key []byte) (bool, error) {
	release, err := holdStill(dir)
	if err != nil {
		return false, err
	}
	defer release()
	data, found := filepath.Join(dir, dataName), false
	look := func(e entry) error {
		found = found || bytes.Equal(e.key, key)
		return nil
	}
	for _, kind := range []struct {
		ext  string
		read func(path string) error
	}{
		{".sst", func(path string) error { return readTable(path, look) }},
		{".mem", func(path string) error { _, err := readLog(path, look); return err }},
	} {
		files, err := numbered(data, kind.ext)
		if err != nil {
			return false, fmt.Errorf("store: %w", err)
		}
		for _, path := range files {
			if err := kind.read(path); err != nil && !errors.Is(err, errDamagedTable) {
				return false, fmt.Errorf("store: %w", err)
			}
		}
	}
	return found, nil
}

// against is what is wrong with the files by what the ledger knows, too.
func (in inspection) against(known record) []string {
	if in.behind > 0 && known.there && in.unit < known.unit {
		return append(in.wrong, fmt.Sprintf("a log is damaged: it can be read up to unit %d of %d, with %d bytes behind", in.unit, known.unit, in.behind))
	}
	return in.wrong
}

// checkedOpen opens the database with all that can be read of it, and sets the books.
// What is lost becomes the ledger's damage.
func (s *Store) checkedOpen(bo badger.Options) error {
	data := filepath.Join(s.dir, dataName)
	if err := s.prepare(data); err != nil {
		return err
	}
	in, err := inspect(data)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	known, err := readLedger(s.dir)
	if err == nil && !known.there && !in.some { // a new store
		known = record{there: true}
		err = s.ledger.rewrite()
	}
	if err != nil {
		return fmt.Errorf("store: the ledger cannot be read or made: %w", err)
	}
	in.wrong = in.against(known)
	if len(in.wrong) == 0 {
		if err := s.setOrphansAside(in.orphans); err != nil {
			return err
		}
	}
	is, lost, err := s.openRebuilt(bo, in.wrong, known)
	if len(in.wrong) == 0 && !errors.Is(err, ErrFull) {
		switch { // what inspect did not see: a MANIFEST that forgot tables is one as well
		case err != nil:
			in.wrong = append(in.wrong, err.Error())
		case len(lost.Found) > 0 && len(in.orphans) > 0:
			in.wrong = append(in.wrong, "MANIFEST does not name all tables")
		}
		if len(in.wrong) > 0 {
			is, lost, err = s.openRebuilt(bo, in.wrong, known)
		}
	}
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(s.dir, orphanName)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return s.begin(known, is, in.wrong, lost)
}

// openRebuilt opens the database, made again if something is wrong with it, and reads
// all of it.
func (s *Store) openRebuilt(bo badger.Options, wrong []string, known record) (is books, lost kv.Damage, err error) {
	if s.db != nil {
		if err := s.db.shut(); err != nil {
			return is, lost, err
		}
		s.db = nil
	}
	if len(wrong) > 0 {
		if err := s.rebuild(bo, wrong); err != nil {
			return is, lost, err
		}
	}
	s.db, err = newDatabase(func() (*badger.DB, error) {
		if err := s.room(s.opts.Reserve); err != nil {
			return nil, err
		}
		return openBadger(s.dir, bo)
	})
	if err != nil {
		return is, lost, err
	}
	is, unit, err := s.readBooks()
	if err != nil {
		return is, lost, err
	}
	return is, judge(known, is, unit), nil
}

// begin begins the ledger with what there is, and notes what was lost.
func (s *Store) begin(known record, is books, wrong []string, lost kv.Damage) error {
	d := known.damage // found at an earlier start, and not settled
	d.Found = append(d.Found, wrong...)
	d.Found = append(d.Found, lost.Found...)
	for _, r := range lost.Ranges {
		if !slices.ContainsFunc(d.Ranges, func(x []byte) bool { return string(x) == string(r) }) {
			d.Ranges = append(d.Ranges, r)
		}
	}
	d.Vanished = d.Vanished || lost.Vanished
	if len(wrong) > 0 {
		d.Found = append(d.Found, fmt.Sprintf("the database was made again from what can be read; the damaged files are kept in %s until the next damage", damagedName))
	}
	s.ledger.damage = d
	s.ledger.is = is
	s.ledger.is.unit = max(is.unit, known.unit)
	mend := len(lost.Found) > 0
	if mend {
		s.ledger.is.unit++ // no number is used twice
	}
	s.ledger.mu.Lock()
	err := s.ledger.rewrite()
	s.ledger.mu.Unlock()
	if err != nil || !mend {
		return err
	}
	db, err := s.db.acquire()
	if err != nil {
		return err
	}
	defer s.db.release()
	return db.Update(func(txn *badger.Txn) error {
		return txn.Set([]byte(unitKey), encodeUnit(s.ledger.is.unit, s.ledger.is.all))
	})
}

// judge compares what is in a database with what should be. unit is its own record:
// after which unit, and what it should hold with it.
func judge(known record, is books, unit *books) (lost kv.Damage) {
	whole := unit != nil && unit.all == is.all
	switch {
	case whole && known.there && unit.unit >= known.unit:
		return lost // at most the ledger lacks its last seconds
	case whole && !known.there:
		lost.Found = append(lost.Found, "the ledger is missing or damaged: the store agrees with itself, but its last units may be gone")
		lost.Vanished = true
		return lost
	case unit == nil && known.there && known.all == is.all:
		return lost // the record of the last unit alone
	case !known.there:
		lost.Found = append(lost.Found, "the store does not hold what it should, and the ledger is missing or damaged: nobody knows what is lost")
		lost.Vanished = true
		return lost
	}
	lost.Ranges = differing(known.books, is)
	what := fmt.Sprintf("the store holds %d entries and should hold %d", is.all.count, known.all.count)
	if whole {
		what = fmt.Sprintf("units %d to %d are gone, which had been acknowledged", unit.unit+1, known.unit)
	}
	lost.Found = append(lost.Found, fmt.Sprintf("%s: %d of %d groups of entries differ", what, len(lost.Ranges),
		len(known.ranges)))
	lost.Vanished = known.gaps || len(lost.Ranges) == 0
	return lost
}

// readBooks reads everything once. unit is the record of the last unit; nil: there is
// none.
func (s *Store) readBooks() (is books, unit *books, err error) {
	db, err := s.db.acquire()
	if err != nil {
		return is, nil, err
	}
	defer s.db.release()
	txn := db.NewTransaction(false)
	defer txn.Discard()
	return s.tallyAll(txn)
}

func (s *Store) tallyAll(txn *badger.Txn) (is books, unit *books, err error) {
	is.ranges = map[string]tally{}
	var name []byte // of the range whose tally is t
	var t tally
	add := func() {
		if t.count > 0 {
			is.set(string(name), is.ranges[string(name)].plus(t))
		}
		t = tally{}
	}
	err = scan(txn, nil, func(key, value []byte) error {
		if string(key) == unitKey {
			if n, all, ok := decodeUnit(value); ok {
				unit = &books{unit: n, all: all}
			}
			return nil
		}
		if r := s.ledger.rangeOf(key); string(r) != string(name) {
			add()
			name = append(name[:0], r...)
		}
		t = t.plus(one(key, value))
		return nil
	})
	add()
	if unit != nil {
		is.unit = unit.unit
	}
	return is, unit, err
}

// prepare ends what an earlier start had begun, and removes files that hold nothing:
// Badger refuses to open with damaged ones.
func (s *Store) prepare(data string) error {
	fresh := filepath.Join(s.dir, newName)
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(fresh, data); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("store: %w", err)
		}
	}
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("store: cannot make the folder: %w", noSpace(err))
	}
	return dropIdle(data)
}

// dropIdle removes what Badger makes again at each opening and never uses here: value
// logs (no value is large enough), their statistics, the registry of encryption keys
// (there are none), and logs that were not begun. A process that is killed between
// making a log and giving it its size leaves an empty one behind.
func dropIdle(dir string) error {
	idle := []string{
		filepath.Join(dir, "DISCARD"), filepath.Join(dir, "KEYREGISTRY"), filepath.Join(dir, "REWRITE-KEYREGISTRY"),
	}
	values, err := filepath.Glob(filepath.Join(dir, "*.vlog"))
	if err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil {
		return err
	}
	for _, path := range logs {
		if info, err := os.Stat(path); err == nil && info.Size() == 0 {
			idle = append(idle, path)
		}
	}
	for _, path := range append(idle, values...) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("store: a file that holds nothing cannot be removed: %w", err)
		}
	}
	return nil
}

// setOrphansAside moves tables out of Badger's way, which would delete them: what a
// crash left over, or what a damaged MANIFEST forgot.
func (s *Store) setOrphansAside(orphans []string) error {
	dir := filepath.Join(s.dir, orphanName)
	if len(orphans) > 0 {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("store: %w", noSpace(err))
		}
	}
	for _, path := range orphans {
		if err := os.Rename(path, filepath.Join(dir, filepath.Base(path))); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return nil
}

// rebuild makes a new database of all versions of all entries that can be read, and
// puts it in the place of the damaged one.
func (s *Store) rebuild(bo badger.Options, wrong []string) error {
	s.opts.Logger.Error("the store is damaged and is made again from what can be read", "dir", s.dir, "damage", wrong)
	data, fresh, old := filepath.Join(s.dir, dataName), filepath.Join(s.dir, newName), filepath.Join(s.dir, damagedName)
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := s.room(s.opts.Reserve + sizeOf(data)); err != nil {
		return fmt.Errorf("the store is damaged, and there is no room to mend it: %w", err)
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return fmt.Errorf("store: %w", noSpace(err))
	}
	bo.Dir, bo.ValueDir, bo.SyncWrites = fresh, fresh, false
	if err := fill(bo, data, filepath.Join(s.dir, orphanName)); err != nil {
		return fmt.Errorf("store %s is damaged and cannot be made again: %w", s.dir, noSpace(err))
	}
	if err := os.Rename(data, old); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := os.Rename(fresh, data); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncDir(s.dir)
}

// fill writes all entries of these folders into a new database.
func fill(bo badger.Options, from ...string) (err error) {
	db, err := badger.OpenManaged(bo)
	if err != nil {
		return err
	}
	batch := db.NewManagedWriteBatch()
	put := func(e entry) error {
		if e.deleted {
			return batch.DeleteAt(slices.Clone(e.key), e.version)
		}
		return batch.SetEntryAt(badger.NewEntry(slices.Clone(e.key), slices.Clone(e.value)), e.version)
	}
	for _, dir := range from {
		tables, terr := numbered(dir, ".sst")
		logs, lerr := numbered(dir, ".mem")
		err = errors.Join(err, terr, lerr)
		for _, path := range tables {
			if rerr := readTable(path, put); !errors.Is(rerr, errDamagedTable) && !errors.Is(rerr, os.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		}
		for _, path := range logs {
			_, rerr := readLog(path, put)
			err = errors.Join(err, rerr)
		}
	}
	if err != nil {
		batch.Cancel()
		return errors.Join(err, db.Close())
	}
	return errors.Join(batch.Flush(), db.Close())
}

// sizeOf is how many bytes the files of a folder take.
func sizeOf(dir string) (size int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) != ".mem" { // logs are mostly holes
			size += info.Size()
		}
	}
	return size
}
