package files_test

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// used has so many instances have a file, from a number on.
func used(t *testing.T, s *site, f workflow.File, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := s.Use(f, instanceNumber(i), "mal", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

func instanceNumber(i int) string {
	return workflow.InstanceID{byte(i), byte(i >> 8)}.String()
}

// What is stored when one instance more has a file does not depend on how many have it.
func TestStepsOfRecords(t *testing.T) {
	s := newSite(t, t.TempDir(), files.Options{}, everybody{})
	f, _ := s.upload(t, 10)
	cost := func(from, to int) int {
		before := s.Recorded()
		used(t, s, f, from, to)
		return (s.Recorded() - before) / (to - from)
	}
	first, last := cost(0, 4*files.BlockUses), cost(8*files.BlockUses, 12*files.BlockUses)
	if t.Logf("%d bytes for each of the first, %d for each of the last", first, last); last > first+first/20 {
		t.Errorf("each of the first instances has %d bytes stored, each of the last %d", first, last)
	}
}

// The record of a file that many instances have comes back as it was, also when all instances of a block of it are
// gone; and a block that is lost or damaged is a record that is.
func TestBlocksOfARecord(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, dir, files.Options{}, everybody{})
	f, _ := s.put(t, 1000)
	all, _ := s.Instances(f)
	used(t, s, f, 1000, 1000+3*files.BlockUses)
	for i := range 3 * files.BlockUses {
		all = append(all, instanceNumber(1000+i))
	}
	slices.Sort(all)
	same := func(what string) {
		t.Helper()
		if got, sure := s.Instances(f); !sure || !slices.Equal(got, all) {
			t.Fatalf("%s: %d instances are known (that these are all: %t), want %d", what, len(got), sure, len(all))
		}
	}
	again := func(what string) {
		t.Helper()
		if wrong, _, err := files.Examine(t.Context(), dir); err != nil || len(wrong) > 0 {
			t.Errorf("%s: %v %v", what, wrong, err)
		}
		s = newSite(t, dir, files.Options{}, everybody{})
		same(what)
	}
	again("as it was")
	gone := map[string]bool{}
	for i := files.BlockUses - 10; i < 2*files.BlockUses+10; i++ { // the second block and parts of others
		gone[instanceNumber(1000+i)] = true
	}
	all = slices.DeleteFunc(all, func(id string) bool { return gone[id] })
	if _, err := s.Sweep(func(id string) bool { return !gone[id] }, time.Now().Add(25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	same("after some are gone")
	again("after some are gone")
	record := kept{file: f}.path(dir, ".uses")
	if _, err := os.Stat(record + "1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a block that nothing is in is still there: %v", err)
	}
	used(t, s, f, 5000, 5003)
	all = slices.Sorted(slices.Values(append(all, instanceNumber(5000), instanceNumber(5001), instanceNumber(5002))))
	again("after others came")
	block, err := os.ReadFile(record + "2")
	if err != nil {
		t.Fatal(err)
	}
	for _, spoilt := range [][]byte{
		nil, {}, block[:len(block)/2], slices.Concat(block[:40], []byte{block[40] ^ 1}, block[41:]),
	} {
		if err := os.WriteFile(record+"2", spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		if spoilt == nil {
			if err := os.Remove(record + "2"); err != nil {
				t.Fatal(err)
			}
		}
		wrong, _, err := files.Examine(t.Context(), dir)
		if err != nil || len(wrong) != 1 ||
			!strings.Contains(wrong[0].What, "the record of which instances have it is") {
			t.Errorf("%d of %d bytes of a block: %v %v", len(spoilt), len(block), wrong, err)
		}
		x := newSite(t, dir, files.Options{}, everybody{})
		if _, sure := x.Instances(f); sure {
			t.Errorf("%d of %d bytes of a block, and nobody notices", len(spoilt), len(block))
		}
		if n, err := x.Sweep(func(string) bool { return true }, time.Now().Add(25*time.Hour)); n > 0 || err != nil {
			t.Errorf("%d of %d bytes of a block: %d contents are let go, %v", len(spoilt), len(block), n, err)
		}
		if err := os.WriteFile(record+"2", block, 0o600); err != nil { // for the next
			t.Fatal(err)
		}
	}
}

// Whichever step fails, or is the last before the node is killed, while a record gets a block, and while one loses all
// of its instances: what was said to be noted is, and nothing is taken for lost.
func TestEachStepOfBlocks(t *testing.T) {
	before := t.TempDir()
	s := newSite(t, before, files.Options{}, everybody{})
	f, _ := s.upload(t, 10)
	used(t, s, f, 0, files.BlockUses-1)
	s.Stop()
	for _, killed := range []bool{false, true} {
		for failing := 1; ; failing++ {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(before)); err != nil {
				t.Fatal(err)
			}
			steps, what := 0, ""
			s := newSite(t, dir, files.Options{}.Failing(func(step string) error {
				if steps++; steps == failing || killed && steps > failing {
					what = cmp.Or(what, step)
					return syscall.ENOSPC
				}
				return nil
			}), everybody{})
			noted := map[string]bool{}
			for i := range files.BlockUses - 1 {
				noted[instanceNumber(i)] = true
			}
			for i := files.BlockUses - 1; i < files.BlockUses+2; i++ {
				if s.Use(f, instanceNumber(i), "mal", time.Now()) == nil {
					noted[instanceNumber(i)] = true
				}
			}
			late := func(id string) bool {
				return id == instanceNumber(files.BlockUses) || id == instanceNumber(files.BlockUses+1)
			}
			_, swept := s.Sweep(func(id string) bool { return !late(id) }, time.Now().Add(25*time.Hour))
			over := steps < failing
			check := func(about string, s *site) {
				t.Helper()
				got, sure := s.Instances(f)
				for id := range noted {
					if !slices.Contains(got, id) && !late(id) {
						t.Errorf("%s: %s is not known to have the file", about, id)
					}
				}
				if over && swept == nil && slices.ContainsFunc(got, late) {
					t.Errorf("%s: what was let go is there", about)
				}
				if wrong, _, err := files.Examine(t.Context(), dir); !sure || err != nil || len(wrong) > 0 {
					t.Errorf("%s: that these are all: %t; %v %v", about, sure, wrong, err)
				}
			}
			about := fmt.Sprintf("step %d, %s, fails (for good: %t)", failing, what, killed)
			s.Stop()
			s = newSite(t, dir, files.Options{}, everybody{})
			check(about, s)
			used(t, s, f, 3000, 3003)
			noted[instanceNumber(3000)], noted[instanceNumber(3002)] = true, true
			s.Stop()
			check(about+", and gone on", newSite(t, dir, files.Options{}, everybody{}))
			if over {
				if t.Logf("%d steps", failing-1); failing < 20 {
					t.Errorf("there were only %d steps", failing-1)
				}
				break
			}
		}
	}
}

// A block was damaged, and an instance more gets the file. Wherever the node is killed meanwhile, it is not taken for
// known which instances have it.
func TestAUseBesideADamagedBlock(t *testing.T) {
	before := t.TempDir()
	s := newSite(t, before, files.Options{}, everybody{})
	f, _ := s.upload(t, 10)
	used(t, s, f, 0, 3*files.BlockUses)
	s.Stop()
	block := kept{file: f}.path(before, ".uses2")
	b, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	b[40] ^= 1
	if err := os.WriteFile(block, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for last := 0; ; last++ {
		dir, steps := t.TempDir(), 0
		if err := os.CopyFS(dir, os.DirFS(before)); err != nil {
			t.Fatal(err)
		}
		s := newSite(t, dir, files.Options{}.Failing(func(string) error {
			if steps++; steps > last {
				return syscall.ENOSPC
			}
			return nil
		}), everybody{})
		used := s.Use(f, instanceNumber(5000), "mal", time.Now())
		s.Stop()
		known, sure := newSite(t, dir, files.Options{}, everybody{}).Instances(f)
		if sure || used == nil && !slices.Contains(known, instanceNumber(5000)) {
			t.Errorf("killed after step %d: %d are known, and these are all: %t; the use: %v", last, len(known), sure,
				used)
		}
		if steps <= last {
			break
		}
	}
}

// An earlier version had all instances in one block: they are known, and stored in blocks when one more comes.
func TestRecordsOfAnEarlierVersion(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, dir, files.Options{}, everybody{})
	f, _ := s.upload(t, 10)
	s.Stop()
	b := []byte("mutirao file whole \"plan.pdf\"\n")
	for i := range 2 * files.BlockUses {
		b = fmt.Appendf(b, "%s mal proved\n", instanceNumber(i))
	}
	b = fmt.Appendf(b, "sum %x\n", sha256.Sum256(b))
	if err := os.WriteFile(kept{file: f}.path(dir, ".uses"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s = newSite(t, dir, files.Options{}, everybody{})
		if known, sure := s.Instances(f); !sure || len(known) != 2*files.BlockUses+i {
			t.Errorf("%d are known, that these are all: %t", len(known), sure)
		}
		used(t, s, f, 5000+i, 5001+i)
		s.Stop()
	}
}
