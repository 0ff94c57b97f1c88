package store

import (
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// failing makes the next group commit fail, after or before the write happened, as
// a disk that fails to sync may.
func failing(s *Store, cause error, afterWriting bool) {
	once := sync.Once{}
	s.commit = func(db *badger.DB, units []unit) error {
		var err error
		failed := false
		once.Do(func() {
			failed = true
			if afterWriting {
				err = s.commitUnits(db, units)
			}
		})
		if failed {
			return errors.Join(cause, err)
		}
		return s.commitUnits(db, units)
	}
}

// After a failed write the store goes on, and what can be read then is what a
// restart finds: a failed unit is there wholly or not at all, and stays so.
func TestFailedWrite(t *testing.T) {
	for _, afterWriting := range []bool{false, true} {
		dir := t.TempDir()
		s := open(t, dir, Options{Preset: Small})
		mustCommit(t, s, "before")
		failing(s, syscall.EIO, afterWriting)
		err := s.CommitWait([]Write{{Key: []byte("x"), Value: []byte("1")}, {Key: []byte("y"), Value: []byte("1")}})
		if !errors.Is(err, syscall.EIO) || errors.Is(err, ErrFull) {
			t.Fatalf("commit: %v, want EIO", err)
		}
		mustHave(t, s, "before", true)
		mustHave(t, s, "x", afterWriting)
		mustHave(t, s, "y", afterWriting)
		mustCommit(t, s, "after")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, Options{Preset: Small})
		for key, want := range map[string]bool{"before": true, "x": afterWriting, "y": afterWriting, "after": true} {
			mustHave(t, s, key, want)
		}
		s.Close()
	}
}

func TestNoSpaceIsErrFull(t *testing.T) {
	s := open(t, t.TempDir(), Options{Preset: Small})
	defer s.Close()
	failing(s, syscall.ENOSPC, false)
	if err := s.CommitWait([]Write{{Key: []byte("x")}}); !errors.Is(err, ErrFull) {
		t.Fatalf("commit: %v, want ErrFull", err)
	}
	mustCommit(t, s, "x")
}

// A reader that is in the middle of a scan when a write fails finishes it on the
// old instance; meanwhile others are told to read again.
func TestScanDuringReopening(t *testing.T) {
	s := open(t, t.TempDir(), Options{Preset: Small})
	defer s.Close()
	for _, key := range []string{"a", "b", "c"} {
		mustCommit(t, s, key)
	}
	failing(s, syscall.EIO, false)
	failed := make(chan error, 1)
	seen := 0
	err := s.Scan(nil, func(key, _ []byte) error {
		if seen++; seen > 1 {
			return nil
		}
		s.Commit([]Write{{Key: []byte("d")}}, func(err error) { failed <- err })
		for { // until the reopening waits for this scan
			if _, err := s.Get(key); errors.Is(err, ErrReopening) {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	if err != nil || seen != 3 {
		t.Fatalf("the scan saw %d keys, %v; want 3", seen, err)
	}
	if err := <-failed; !errors.Is(err, syscall.EIO) {
		t.Fatalf("commit: %v, want EIO", err)
	}
	mustHave(t, s, "c", true)
}

func TestFullQueueIsRefusedInTurn(t *testing.T) {
	s := open(t, t.TempDir(), Options{Preset: Small, MaxQueued: 10_000})
	defer s.Close()
	hold := make(chan struct{})
	s.Commit(nil, func(error) { <-hold }) // the committer waits here
	results := make(chan error, 4)
	value := make([]byte, 4000)
	for _, key := range []string{"1", "2", "3", "4"} {
		s.Commit([]Write{{Key: []byte(key), Value: value}}, func(err error) { results <- err })
	}
	close(hold)
	for i := range 4 {
		if err := <-results; errors.Is(err, ErrQueueFull) != (i >= 2) {
			t.Errorf("unit %d: %v", i+1, err)
		}
	}
	mustCommit(t, s, "there is room again")
}

func mustCommit(t *testing.T, s *Store, key string) {
	t.Helper()
	if err := s.CommitWait([]Write{{Key: []byte(key), Value: []byte("1")}}); err != nil {
		t.Fatal(err)
	}
}

func mustHave(t *testing.T, s *Store, key string, want bool) {
	t.Helper()
	_, err := s.Get([]byte(key))
	if want && err != nil || !want && !errors.Is(err, ErrNotFound) {
		t.Fatalf("get %q: %v, want it there: %v", key, err, want)
	}
}
