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
	db, err := s.db.acquire()
	if err != nil {
		return len(units), err
	}
	n := fit(units, db.MaxBatchSize(), db.MaxBatchCount())
	err = s.commit(db, units[:n])
	s.db.release()
	if err != nil {
		err = errors.Join(fmt.Errorf("store: the write failed, read again to see what is there: %w", noSpace(err)), s.db.reopen())
	}
	return n, err
}

// fit says how many units, from the first, one transaction can take. One always
// fits: MaxUnit and MaxUnitWrites are below any preset's transaction.
func fit(units []unit, maxSize, maxWrites int64) int {
	size, writes := int64(writeOverhead), int64(1) // Badger's end mark
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
func commitUnits(db *badger.DB, units []unit) error {
	txn := db.NewTransaction(true)
	defer txn.Discard()
	empty := true
	for _, u := range units {
		for _, w := range u.writes {
			empty = false
			if err := put(txn, w); err != nil {
				return err
			}
		}
	}
	if empty {
		return nil
	}
	return txn.Commit()
}

func put(txn *badger.Txn, w Write) error {
	if w.Delete {
		return txn.Delete(w.Key)
	}
	return txn.Set(w.Key, w.Value)
}
