package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/test/testdisk"
)

// The disk fills up by somebody else's doing: commits say so, reads go on, and
// with room again so do commits; a restart on the full disk is refused.
func TestFullDisk(t *testing.T) {
	disk := testdisk.Small(t, "120", "a full disk")
	if disk == "" {
		return
	}
	dir, filler := filepath.Join(disk, "store"), filepath.Join(disk, "filler")
	s := open(t, dir, Options{Preset: Small})
	mustCommit(t, s, "before")
	for range 2 {
		testdisk.Fill(t, filler)
		for range 3 {
			if err := s.CommitWait([]Write{{Key: []byte("full"), Value: make([]byte, 1000)}}); !errors.Is(err, ErrFull) {
				t.Fatalf("commit: %v, want ErrFull", err)
			}
			mustHave(t, s, "before", true)
			mustHave(t, s, "full", false)
		}
		if _, err := Open(filepath.Join(disk, "other"), Options{Preset: Small}); !errors.Is(err, ErrFull) {
			t.Fatalf("opening a store on a full disk: %v, want ErrFull", err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, s, "after")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, Options{Preset: Small})
	defer s.Close()
	mustHave(t, s, "before", true)
	mustHave(t, s, "full", false)
	mustHave(t, s, "after", true)
}

// The store itself fills the disk: it stops in time, with what it had promised
// readable, and never dies of SIGBUS.
func TestFillingTheDisk(t *testing.T) {
	disk := testdisk.Small(t, "160", "a full disk")
	if disk == "" {
		return
	}
	dir := filepath.Join(disk, "store")
	s := open(t, dir, Options{Preset: Small})
	value := make([]byte, 100_000)
	acked := 0
	for {
		err := s.CommitWait([]Write{{Key: []byte{byte(acked >> 8), byte(acked)}, Value: value}})
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		acked++
	}
	there := 0
	if err := s.Scan(nil, func(_, v []byte) error { there++; return nil }); err != nil || there != acked {
		t.Fatalf("%d of %d values can be read, %v", there, acked, err)
	}
	if acked < 300 {
		t.Fatalf("full after %d values of 100 kB on a disk of 160 MiB", acked)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// When even the reserve is gone Close does not flush, and the log is read again.
func TestCloseOnFullDiskLosesNothing(t *testing.T) {
	disk := testdisk.Small(t, "120", "a full disk")
	if disk == "" {
		return
	}
	dir, filler := filepath.Join(disk, "store"), filepath.Join(disk, "filler")
	s := open(t, dir, Options{Preset: Small})
	mustCommit(t, s, "before")
	testdisk.Fill(t, filler)
	if err := s.Close(); !errors.Is(err, ErrFull) {
		t.Fatalf("close: %v, want ErrFull", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := Open(dir, Options{Preset: Small}); !errors.As(err, &locked) {
		t.Fatalf("opening in the process that could not flush: %v, want a LockedError", err)
	}
	// What the next process finds: a copy stands for it.
	left := t.TempDir()
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s = open(t, left, Options{Preset: Small})
	defer s.Close()
	mustHave(t, s, "before", true)
}
