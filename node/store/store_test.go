package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ name, meta, want string }{
		{"a newer format", `{"format":2}`, "use a newer mutirao"},
		{"no format", `{}`, "damaged: format 0"},
		{"damaged meta", `{"for`, "is damaged"},
		{"absurd memtable", `{"format":1,"memtable":99999999999}`, "memtable of 99999999999 bytes"},
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
	if _, err := Open(t.TempDir(), Options{Preset: "huge"}); err == nil || !strings.Contains(err.Error(), `unknown preset "huge"`) {
		t.Errorf("unknown preset: %v", err)
	}
}

func TestLostMetaIsNotANewStore(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, Options{}).Close()
	if err := os.Remove(filepath.Join(dir, metaName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "holds data but no store.json") {
		t.Fatalf("open: %v, want a refusal", err)
	}
}

func TestDamagedManifestIsExplained(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, Options{}).Close()
	if err := os.WriteFile(filepath.Join(dir, dataName, "MANIFEST"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "restore the folder from a backup") {
		t.Fatalf("open: %v, want an explanation", err)
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
