package files_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// tiny is one of any number of files of so many bytes.
func tiny(i int, size int64) workflow.File {
	f := workflow.File{Name: "f", Size: size}
	binary.BigEndian.PutUint64(f.Root[:], uint64(i)+1)
	return f
}

// Empty files take room, too: a member has a share of the number of files.
func TestEmptyFilesTakeRoom(t *testing.T) {
	const most = 64
	s := newSite(t, t.TempDir(), files.Options{Limit: 4 * most * files.Overhead}, everybody{})
	for i := range most + 10 {
		err := s.Use(tiny(i, 0), fmt.Sprint("i", i), "mal", time.Now())
		if (err == nil) != (i < most) {
			t.Fatalf("empty file %d: %v", i, err)
		}
		if err != nil && !strings.Contains(err.Error(),
			"there are as many files as there is room for, each counts 32.8 kB besides its bytes") {
			t.Errorf("it says %v", err)
		}
	}
	if err := s.Use(tiny(1000, 5), "i", "bo", time.Now()); err != nil {
		t.Errorf("another member has no room: %v", err)
	}
}

// Where files have no room it is said whether the limit is in the way, or the disk.
func TestWhatRoomLacks(t *testing.T) {
	free := uint64(1 << 40)
	s := newSite(t, t.TempDir(), files.Options{
		Limit: 1 << 20, Space: func() (uint64, uint64, error) { return free, 1 << 41, nil },
	}, everybody{})
	big := workflow.File{Name: "f", Size: 3 << 20}
	for _, x := range []struct {
		free    uint64
		byLimit bool
	}{{1 << 40, true}, {1 << 10, false}} {
		free = x.free
		lacks, limit, err := s.Lacks([]files.Coming{{File: big}})
		if err != nil || lacks < 2<<20 || limit > 0 != x.byLimit {
			t.Errorf("with %d bytes free it lacks %d, by the limit, which must be %d: %v", x.free, lacks, limit, err)
		}
		if is := s.ByLimit(); is != x.byLimit {
			t.Errorf("with %d bytes free the limit is in the way: %t", x.free, is)
		}
	}
}

// Where not even the reserve is free, that lacks as well.
func TestTheReserveLacksAsWell(t *testing.T) {
	s := newSite(t, t.TempDir(), files.Options{
		Limit: 1 << 30, Reserve: 10 << 20, Space: func() (uint64, uint64, error) { return 4 << 20, 1 << 41, nil },
	}, everybody{})
	lacks, _, err := s.Lacks([]files.Coming{{File: workflow.File{Name: "f", Size: 3 << 20}}})
	if err != nil || lacks != 9<<20 {
		t.Errorf("it lacks %d, %v, want %d", lacks, err, 9<<20)
	}
	if lacks, _, err := s.Lacks(nil); err != nil || lacks != 0 {
		t.Errorf("for nothing it lacks %d, %v", lacks, err)
	}
}

// The limit that is said to do does so, and one byte less does not: for files of this node's own, of a member, whose
// share is a quarter, and where all members together come to theirs.
func TestTheLimitThatWouldDo(t *testing.T) {
	big := workflow.File{Name: "f", Size: 3 << 20}
	for _, by := range []string{"", "m0", "m1", "m5"} {
		with := func(limit int64) (int64, int64) {
			s := newSite(t, t.TempDir(), files.Options{Limit: 1 << 40}, everybody{})
			for i := range 5 {
				if err := s.Use(tiny(i, 2<<20), fmt.Sprint("i", i), fmt.Sprint("m", i), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			s.SetLimit(limit)
			lacks, would, err := s.Lacks([]files.Coming{{File: big, By: by}})
			if err != nil {
				t.Fatal(err)
			}
			return lacks, would
		}
		_, limit := with(1 << 20)
		if lacks, _ := with(limit); lacks > 0 {
			t.Errorf("files that %q pays for: with a limit of %d it lacks %d", by, limit, lacks)
		}
		if lacks, again := with(limit - 1); lacks == 0 || again != limit {
			t.Errorf("files that %q pays for: with a byte less than %d it lacks %d, and would take %d", by, limit, lacks, again)
		}
	}
}

// What one file more costs does not depend on how many there are.
func TestStepsOfRoom(t *testing.T) {
	for _, n := range []int{10, 100, 1000} {
		s := newSite(t, t.TempDir(), files.Options{Limit: 1 << 40}, everybody{})
		for i := range n {
			if err := s.Use(tiny(i, 10), fmt.Sprint("i", i), fmt.Sprint("m", i%7), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		before := s.Weighed()
		if err := s.Use(tiny(n, 10), "one more", "m0", time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Lacks([]files.Coming{{File: tiny(n+1, 10), By: "m1"}}); err != nil {
			t.Fatal(err)
		}
		if steps := s.Weighed() - before; steps > 4 {
			t.Errorf("with %d files, one more weighs %d", n, steps)
		}
	}
}

// The ledger is right after whatever happens, also where the disk fails in between and after each start.
func TestTheLedgerIsRight(t *testing.T) {
	for seed := range uint64(8) {
		chance, dir := rand.New(rand.NewPCG(seed, 9)), t.TempDir()
		broken := false
		o := files.Options{Limit: 1 << 40}.Failing(func(string) error {
			if broken && chance.IntN(3) == 0 {
				return errors.New("the disk fails")
			}
			return nil
		})
		s := newSite(t, dir, o, everybody{})
		now := time.Now()
		for range 150 {
			broken = chance.IntN(4) == 0
			i, by := chance.IntN(12), []string{"", "mal", "bo"}[chance.IntN(3)]
			instance := fmt.Sprint("i", chance.IntN(6), by)
			var err error
			switch chance.IntN(6) {
			case 0, 1:
				err = s.Use(tiny(i, int64(i)), instance, by, now)
			case 2:
				var f workflow.File
				if f, err = s.Put(t.Context(), "f", strings.NewReader(strings.Repeat("x", i)), now); err == nil {
					err = s.Give(f, instance, by, now)
				}
			case 3:
				_, err = s.Sweep(func(string) bool { return chance.IntN(3) > 0 }, now)
			case 4:
				now = now.Add(13 * time.Hour)
			case 5:
				s = newSite(t, dir, o, everybody{})
			}
			if err != nil && !broken {
				t.Fatal(err)
			}
			if err := s.Audit(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}
