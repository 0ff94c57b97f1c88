package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	corruptions     = flag.Int("corruptions", 24, "how many corruptions TestCorruption tries")
	firstCorruption = flag.Uint64("first-corruption", 1, "the first seed of TestCorruption")
)

// groups is how many groups of entries the store of these tests has: each has many
// entries that are written once, like facts, and one that is written again and again.
const groups = 40

func groupOf(key []byte) []byte { return key[:min(len(key), 4)] }

// unitOf is the n-th unit that is written, of group n modulo groups.
func unitOf(n uint64) []Write {
	g := n % groups
	value := make([]byte, 20+n*37%700)
	rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}).Read(value)
	return []Write{
		{Key: fmt.Appendf(nil, "f%03d/%08d", g, n), Value: value},
		{Key: fmt.Appendf(nil, "i%03d", g), Value: binary.BigEndian.AppendUint64(nil, n)},
		{Key: fmt.Appendf(nil, "w%03d", g), Value: value[:8], Delete: n/groups%3 == 2},
	}
}

// contentAfter is what a store holds after n units.
func contentAfter(n uint64) map[string]string {
	all := map[string]string{}
	for i := range n {
		apply(all, i)
	}
	return all
}

func apply(all map[string]string, n uint64) {
	for _, w := range unitOf(n) {
		if all[string(w.Key)] = string(w.Value); w.Delete {
			delete(all, string(w.Key))
		}
	}
}

func content(t *testing.T, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := s.Scan(nil, func(key, value []byte) error { all[string(key)] = string(value); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// writeUnits writes units to a store, in a process of its own: in runs that each end
// with Close, and then more until it is killed. It prints how many are durable.
func writeUnits(dir string) error {
	n, say := uint64(0), bufio.NewWriter(os.Stdout)
	for run := range 5 {
		s, err := Open(dir, Options{Preset: Small, Range: groupOf})
		if err != nil {
			return err
		}
		for i := 0; i < 150 || run == 4; i++ {
			done := make(chan error, 8)
			for range 8 {
				s.Commit(unitOf(n), func(err error) { done <- err })
				n++
			}
			for range 8 {
				if err := <-done; err != nil {
					return err
				}
			}
			if fmt.Fprintln(say, n); say.Flush() != nil {
				return nil
			}
		}
		if err := s.Close(); err != nil {
			return err
		}
		fmt.Fprintln(say, "closed")
	}
	return nil
}

// image is the folder of a store, and how many units were acknowledged in it.
type image struct {
	name  string
	dir   string
	acked uint64
}

// images makes stores: one that was closed, and some that were killed.
func images(t *testing.T) []image {
	var out []image
	for _, c := range []struct {
		name   string
		closed int    // how many runs end with Close
		more   uint64 // units after them
	}{{"closed", 3, 0}, {"killed", 4, 900}, {"killed early", 0, 40}} {
		dir := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), unitsDir+"="+dir)
		out1, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines, im, closed, last := bufio.NewScanner(out1), image{name: c.name, dir: dir}, 0, uint64(0)
		for lines.Scan() {
			if lines.Text() == "closed" {
				if closed++; closed == c.closed && c.more == 0 {
					break
				}
				last = im.acked
				continue
			}
			fmt.Sscan(lines.Text(), &im.acked)
			if closed == c.closed && c.more > 0 && im.acked >= last+c.more {
				break
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it said in its last moments counts
			fmt.Sscan(lines.Text(), &im.acked)
		}
		child.Wait() // it was killed
		if im.acked == 0 {
			t.Fatalf("%s: nothing was written", c.name)
		}
		out = append(out, im)
	}
	return out
}

// copyTo copies a folder; what is zero at the end of a file stays a hole.
func copyTo(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, path)
		if err != nil || d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, rel), b[:used(b)], 0o600); err != nil {
			return err
		}
		return os.Truncate(filepath.Join(to, rel), int64(len(b)))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// used is the length of b without the zeroes at its end.
func used(b []byte) int {
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return n
}

// corrupt does something to a file of a folder, and says what and to which kind.
func corrupt(t *testing.T, dir string, chance *rand.Rand) (kind, what string) {
	t.Helper()
	var files []string
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	kinds := map[string][]string{}
	for _, path := range files {
		k := filepath.Ext(path)
		if k == "" || k == ".json" {
			k = filepath.Base(path)
		}
		kinds[k] = append(kinds[k], path)
	}
	names := slices.Sorted(maps.Keys(kinds))
	for _, k := range []string{".sst", ".mem", "MANIFEST", ledgerName} { // these matter most
		if kinds[k] != nil {
			names = append(names, k, k)
		}
	}
	kind = names[chance.IntN(len(names))]
	path := kinds[kind][chance.IntN(len(kinds[kind]))]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	full, n := len(b), max(used(b), 1)
	op := []string{"flip", "cut", "zero", "remove"}[chance.IntN(4)]
	if full == 0 {
		op = "remove"
	}
	switch op {
	case "flip":
		at := chance.IntN(min(n, full))
		bit := chance.IntN(8)
		b[at] ^= 1 << bit
		what = fmt.Sprintf("bit %d of byte %d of %d flipped", bit, at, n)
	case "cut":
		to := chance.IntN(n)
		b, full = b[:to], to
		what = fmt.Sprintf("cut to %d of %d bytes", to, n)
	case "zero":
		from := chance.IntN(n)
		to := min(n, from+1+chance.IntN(4096))
		if chance.IntN(8) == 0 {
			from, to = 0, n
		}
		clear(b[from:to])
		what = fmt.Sprintf("bytes %d to %d of %d zeroed", from, to, n)
	case "remove":
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return kind, "remove: " + filepath.Base(path)
	}
	if err := os.WriteFile(path, b[:min(used(b), full)], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(full)); err != nil {
		t.Fatal(err)
	}
	return kind, op + ": " + filepath.Base(path) + ", " + what
}

// Whatever happens to one file of a store: it opens, or says why not; all that was
// acknowledged is there, or what is lost is named; and then it goes on.
func TestCorruption(t *testing.T) {
	all := images(t)
	outcomes := map[string]int{}
	for seed := *firstCorruption; seed < *firstCorruption+uint64(*corruptions); seed++ {
		chance := rand.New(rand.NewPCG(seed, 0))
		im := all[chance.IntN(len(all))]
		dir := filepath.Join(t.TempDir(), "store")
		copyTo(t, im.dir, dir)
		kind, what := corrupt(t, dir, chance)
		op, _, _ := strings.Cut(what, ":")
		outcome := afterCorruption(t, fmt.Sprintf("seed %d, %s, %s", seed, im.name, what), dir, im.acked)
		outcomes[fmt.Sprintf("%-12s %-7s %s", kind, op, outcome)]++
		os.RemoveAll(dir)
	}
	for _, k := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%4d × %s", outcomes[k], k)
	}
}

// afterCorruption opens a store and says how it was, after that many acknowledged
// units: some more may have been written.
func afterCorruption(t *testing.T, what, dir string, acked uint64) (outcome string) {
	t.Helper()
	o := Options{Preset: Small, Range: groupOf}
	s, err := Open(dir, o)
	if err != nil {
		if !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%s: refused without advice: %v", what, err)
		}
		return "refused, with advice"
	}
	is, lost := content(t, s), s.Damage()
	var differ map[string]bool
	want := contentAfter(acked)
	for more := range uint64(9) { // eight are on their way at once
		d := map[string]bool{}
		if more > 0 {
			apply(want, acked+more-1)
		}
		for k, v := range want {
			if is[k] != v {
				d[string(groupOf([]byte(k)))] = true
			}
		}
		for k := range is {
			if _, ok := want[k]; !ok {
				d[string(groupOf([]byte(k)))] = true
			}
		}
		if differ == nil || len(d) < len(differ) {
			differ = d
		}
	}
	for _, r := range lost.Ranges {
		delete(differ, string(r))
	}
	switch {
	case len(differ) > 0 && !lost.Vanished:
		t.Errorf("%s: unnoticed: groups %v are not what was acknowledged; found: %+v", what,
			slices.Sorted(maps.Keys(differ)), lost)
		outcome = "UNNOTICED"
	case len(lost.Ranges) > 0:
		outcome = "lost and named"
	case lost.Vanished:
		outcome = "said that the end may be lost"
	case len(lost.Found) > 0:
		outcome = "mended, nothing lost"
	default:
		outcome = "harmless, nothing lost"
	}
	if err := s.Verify(); err != nil {
		t.Errorf("%s: after the opening, verify: %v", what, err)
	}
	mustCommit(t, s, "z and it goes on")
	is = content(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(dir, o)
	if err != nil {
		t.Errorf("%s: the second opening: %v", what, err)
		return outcome
	}
	defer s.Close()
	if again := s.Damage(); len(again.Found) != len(lost.Found) || !maps.Equal(is, content(t, s)) {
		t.Errorf("%s: the second opening finds %q, the first %q", what, again.Found, lost.Found)
	}
	if err := s.Settle(); err != nil || len(s.Damage().Found) > 0 {
		t.Errorf("%s: settled: %v, %+v", what, err, s.Damage())
	}
	return outcome
}

// What a crash leaves of a unit that was being written is cut off without alarm: all that was
// acknowledged is there, and nothing else.
func TestUnsyncedEndIsTrimmed(t *testing.T) {
	const units = 20
	dir, crashed := t.TempDir(), t.TempDir()
	o := Options{Preset: Small, Range: groupOf}
	s := open(t, dir, o)
	defer s.Close()
	write := func(n uint64) {
		t.Helper()
		if err := s.CommitWait(unitOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	logOf := func(dir string) (path string, b []byte) {
		t.Helper()
		logs, err := filepath.Glob(filepath.Join(dir, dataName, "*.mem"))
		if err != nil || len(logs) != 1 {
			t.Fatalf("logs %q (%v), want one", logs, err)
		}
		if b, err = os.ReadFile(logs[0]); err != nil {
			t.Fatal(err)
		}
		return logs[0], b
	}
	for n := range uint64(units) {
		write(n)
	}
	copyTo(t, dir, crashed)
	write(units)
	_, before := logOf(crashed)
	_, after := logOf(dir)
	from, to := 0, used(after)
	for before[from] == after[from] {
		from++
	}
	for _, part := range []int{1, (to - from) / 2, to - from - 1} {
		torn := filepath.Join(t.TempDir(), "store")
		copyTo(t, crashed, torn)
		path, b := logOf(torn)
		copy(b[from:], after[from:from+part])
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, torn, o)
		if d := s.Damage(); len(d.Found) > 0 || len(d.Ranges) > 0 || d.Vanished {
			t.Errorf("with %d bytes of %d of the next unit: %+v", part, to-from, d)
		}
		if !maps.Equal(content(t, s), contentAfter(units)) {
			t.Errorf("with %d bytes of %d of the next unit: the content is not that of %d units", part, to-from, units)
		}
		write := func() error { return s.CommitWait(unitOf(units)) }
		if err := errors.Join(s.Verify(), write(), s.Verify(), s.Close()); err != nil {
			t.Errorf("with %d bytes of %d of the next unit it does not go on: %v", part, to-from, err)
		}
	}
}

// A disk that loses, with a power loss, the end of the log that it had reported as synced is
// found out by the ledger. One that loses the end of both alike is not: then the store is
// whole, as it was before, and nobody can tell that there was more.
func TestALostEndIsUnnoticedWhereTheLedgerLosesItsOwn(t *testing.T) {
	const units, lost = 20, 10
	dir, earlier, later := t.TempDir(), t.TempDir(), t.TempDir()
	o := Options{Preset: Small, Range: groupOf}
	s := open(t, dir, o)
	defer s.Close()
	for n := range uint64(units + lost) {
		if n == units {
			copyTo(t, dir, earlier)
		}
		if err := s.CommitWait(unitOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	copyTo(t, dir, later)
	logs, err := filepath.Glob(filepath.Join(earlier, dataName, "*.mem"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %q (%v), want one", logs, err)
	}
	log := filepath.Join(dataName, filepath.Base(logs[0]))
	for _, c := range []struct {
		what    string
		loses   []string // what ends as it did earlier
		noticed bool
		holds   uint64
	}{
		{"nothing", nil, false, units + lost},
		{"the ledger", []string{ledgerName}, false, units + lost},
		{"the log", []string{log}, true, units},
		{"the log and the ledger", []string{log, ledgerName}, false, units},
	} {
		after := filepath.Join(t.TempDir(), "store")
		copyTo(t, later, after)
		for _, name := range c.loses {
			b, err := os.ReadFile(filepath.Join(earlier, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(after, name), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, after, o)
		d := s.Damage()
		if noticed := len(d.Found) > 0 || len(d.Ranges) > 0 || d.Vanished; noticed != c.noticed {
			t.Errorf("where %s loses its end: noticed %t, want %t: %+v", c.what, noticed, c.noticed, d)
		}
		if !maps.Equal(content(t, s), contentAfter(c.holds)) {
			t.Errorf("where %s loses its end the content is not that of %d units", c.what, c.holds)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A table that is damaged while the store is open is found by Verify, and named.
func TestVerifyOfAnOpenStore(t *testing.T) {
	dir := t.TempDir()
	o := Options{Preset: Small, Range: groupOf}
	s := open(t, dir, o)
	for n := range uint64(50) {
		if err := s.CommitWait(unitOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil { // which writes a table
		t.Fatal(err)
	}
	s = open(t, dir, o)
	defer s.Close()
	if err := s.Verify(); err != nil {
		t.Fatalf("before anything happened: %v", err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, dataName, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %q: %v", tables, err)
	}
	b, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 4
	if err := os.WriteFile(tables[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(tables[0])) {
		t.Errorf("a bit of %s flipped, and verify says %v", filepath.Base(tables[0]), err)
	}
}
