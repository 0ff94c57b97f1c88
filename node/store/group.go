package store

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// writeOverhead is what a write costs in a transaction beside key and value, in
// bytes: at least what Badger counts for it.
const writeOverhead = 32

func writeSize(w Write) int64 { return int64(len(w.Key) + len(w.Value) + writeOverhead) }

// writeGroup commits, in one Badger transaction, as many units from the first as
// fit, and returns how many. Badger syncs its log once per transaction: this is
// the group commit.
func (s *Store) writeGroup(units []unit) (int, error) {
	if err := s.room(s.opts.Reserve); err != nil {
		return len(units), err
	}
	s.entering.Lock()
	defer s.entering.Unlock()
	if err := s.settleDoubt(); err != nil {
		return len(units), err
	}
	db, err := s.db.acquire()
	if err != nil {
		return len(units), err
	}
	n := fit(units, db.MaxBatchSize(), db.MaxBatchCount())
	s.next = nil
	s.ledger.setUnderway(true)
	defer func() { s.ledger.setUnderway(s.doubt != nil) }()
	err = s.commit(db, units[:n])
	s.db.release()
	if err != nil {
		s.doubt = s.next
		err = errors.Join(fmt.Errorf("store: the write failed, read again to see what is there: %w", noSpace(err)),
			s.db.reopen())
		return n, errors.Join(err, s.settleDoubt())
	}
	s.enter(s.next)
	return n, nil
}

// enter makes the ledger have a unit that is in the database; nil: none.
func (s *Store) enter(c *change) {
	if c == nil {
		return
	}
	if err := s.ledger.enter(c); err != nil {
		s.opts.Logger.Warn("the ledger is written again with the next unit", "error", err)
	}
}

// settleDoubt finds out whether a unit is there whose write failed.
func (s *Store) settleDoubt() error {
	if s.doubt == nil {
		return nil
	}
	b, err := s.Get([]byte(unitKey))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if unit, _, ok := decodeUnit(b); ok && unit == s.doubt.unit {
		s.enter(s.doubt)
	}
	s.doubt = nil
	return nil
}

// unitKey is where each transaction stores its unit's record.
const unitKey = "!mutirao!unit"

// unitCost is what that record takes in a transaction.
const unitCost = int64(len(unitKey)) + 24 + writeOverhead

// fit says how many units, from the first, one transaction can take. One always
// fits: MaxUnit and MaxUnitWrites are below any preset's transaction.
func fit(units []unit, maxSize, maxWrites int64) int {
	size, writes := writeOverhead+unitCost, int64(2) // Badger's end mark, and our record
	for i, u := range units {
		size += u.size
		writes += int64(len(u.writes))
		if i > 0 && (size >= maxSize || writes >= maxWrites) {
			return i
		}
	}
	return len(units)
}

// commitUnits is one transaction. Units later in the group overwrite earlier ones.
func (s *Store) commitUnits(db *badger.DB, units []unit) (err error) {
	defer caught(&err)
	txn := db.NewTransaction(true)
	defer txn.Discard()
	c, empty := s.ledger.begin(), true
	for _, u := range units {
		for _, w := range u.writes {
			empty = false
			if err := s.put(txn, c, w); err != nil {
				return err
			}
		}
	}
	if empty {
		return nil
	}
	if err := txn.Set([]byte(unitKey), c.unitRecord()); err != nil {
		return err
	}
	s.next = c
	return txn.Commit()
}

// put makes a write part of a transaction, and notes what it changes.
func (s *Store) put(txn *badger.Txn, c *change, w Write) error {
	name := s.ledger.rangeOf(w.Key)
	is, was := tally{}, tally{}
	switch {
	case w.New:
	case len(name) == len(w.Key): // a range of one entry
		was = c.of(&s.ledger, name)
	default:
		var err error
		if was, err = stored(txn, w.Key); err != nil {
			return err
		}
	}
	if !w.Delete {
		is = one(w.Key, w.Value)
	}
	c.replace(&s.ledger, name, was, is)
	if w.Delete {
		return txn.Delete(w.Key)
	}
	return txn.Set(w.Key, w.Value)
}

// stored is the tally of what a key holds, as a transaction sees it.
func stored(txn *badger.Txn, key []byte) (t tally, err error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	return t, item.Value(func(value []byte) error {
		t = one(key, value)
		return nil
	})
}
