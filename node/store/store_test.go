package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/store/storetest"
)

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	for _, preset := range []Preset{Default, Small} {
		t.Run(string(preset), func(t *testing.T) {
			storetest.Run(t, func(t testing.TB, place string) storetest.Store {
				return open(t, place, Options{Preset: preset})
			})
		})
	}
}

// Every preset's transaction must take the greatest unit, and its memtable must
// keep the greatest value out of the value log.
func TestPresetsTakeTheGreatestUnit(t *testing.T) {
	for name, sz := range presets {
		batch := sz.memtable * 15 / 100 // as Badger computes it
		if MaxUnit+writeOverhead >= batch {
			t.Errorf("%s: a unit of %d does not fit in a transaction of %d", name, MaxUnit, batch)
		}
		const node = 128 // Badger's skip list nodes are smaller
		if MaxUnitWrites+1 >= batch/node {
			t.Errorf("%s: %d writes do not fit in a transaction of %d", name, MaxUnitWrites, batch/node)
		}
	}
}

func TestSecondOpenerIsToldWhoHoldsIt(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{Preset: Small})
	_, err := Open(dir, Options{Preset: Small})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("second open: %v, want a LockedError with process %d", err, os.Getpid())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, Options{Preset: Small}).Close()
}

// A store that is open is not examined: what it has not written yet would look damaged.
// It is told which process has it, and the store goes on as if nobody had asked.
func TestAnOpenStoreIsNotExamined(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{Preset: Small})
	put := func(key string) {
		t.Helper()
		if err := s.CommitWait([]kv.Write{{Key: []byte(key), Value: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	wrong, err := Examine(dir)
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || wrong != nil {
		t.Fatalf("found %q, %v, want a LockedError with process %d", wrong, err, os.Getpid())
	}
	put("b")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if wrong, err := Examine(dir); err != nil || len(wrong) > 0 {
		t.Errorf("once it is closed: found %q, %v", wrong, err)
	}
	s = open(t, dir, Options{Preset: Small})
	defer s.Close()
	for _, key := range []string{"a", "b"} {
		if v, err := s.Get([]byte(key)); err != nil || string(v) != "x" {
			t.Errorf("%s is %q, %v", key, v, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	sum := func(m meta) string {
		return fmt.Sprintf(`{"format":%d,"memtable":%d,"sum":%d}`, m.Format, m.Memtable, m.sum())
	}
	for _, c := range []struct{ name, meta, want string }{
		{"a newer format", sum(meta{Format: 2}), "use a newer mutirao"},
		{"no format", sum(meta{}), "damaged: format 0"},
		{"damaged meta", `{"for`, "is damaged"},
		{"another memtable", `{"format":1,"memtable":8388608,"sum":1}`, "its checksum is wrong"},
		{"absurd memtable", sum(meta{Format: 1, Memtable: 99999999999}), "memtable of 99999999999 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, metaName), []byte(c.meta), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time shows that no lock was left
				if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("open: %v, want %q", err, c.want)
				}
			}
		})
	}
	if _, err := Open(t.TempDir(), Options{Preset: "huge"}); err == nil ||
		!strings.Contains(err.Error(), `unknown preset "huge"`) {
		t.Errorf("unknown preset: %v", err)
	}
}

// Files that Badger cannot do without are made again from the others.
func TestLostFilesAreMadeAgain(t *testing.T) {
	for _, name := range []string{metaName, dataName + "/MANIFEST", dataName + "/KEYREGISTRY", dataName + "/DISCARD"} {
		for _, nonsense := range []bool{false, true} {
			if name == metaName && nonsense {
				continue // refused, see TestOpenRefuses
			}
			dir := t.TempDir()
			s := open(t, dir, Options{Preset: Small})
			mustCommit(t, s, "a")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name)
			err := os.Remove(path)
			if nonsense {
				err = os.WriteFile(path, []byte("nonsense"), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			s = open(t, dir, Options{Preset: Small})
			mustHave(t, s, "a", true)
			if d := s.Damage(); d.Vanished || len(d.Ranges) > 0 {
				t.Errorf("%s: %+v; want nothing lost", name, d)
			}
			s.Close()
		}
	}
}

func TestMemtableNeverShrinks(t *testing.T) {
	dir := t.TempDir()
	memtable := func(p Preset) int64 {
		s := open(t, dir, Options{Preset: p})
		defer s.Close()
		m, err := readMeta(dir)
		if err != nil {
			t.Fatal(err)
		}
		return m.Memtable
	}
	small, large := presets[Small].memtable, presets[Default].memtable
	for _, c := range []struct {
		preset Preset
		want   int64
	}{{Small, small}, {Default, large}, {Small, large}} {
		if got := memtable(c.preset); got != c.want {
			t.Fatalf("after opening with %s the memtable is %d, want %d", c.preset, got, c.want)
		}
	}
}
