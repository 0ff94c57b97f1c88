package files_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	corruptions     = flag.Int("corruptions", 24, "how many corruptions TestCorruptedFolder tries")
	firstCorruption = flag.Uint64("first-corruption", 1, "the seed of the first")
)

// kept is a file that a folder holds, and what it should be.
type kept struct {
	file     workflow.File
	content  []byte
	instance workflow.InstanceID
	state    string // whole, coming, or unused: whole, and no instance has it yet
}

func (k kept) path(dir, kind string) string {
	return filepath.Join(dir, fmt.Sprintf("%x-%d%s", k.file.Root, k.file.Size, kind))
}

func (k kept) mention() files.Mention {
	return files.Mention{File: k.file, Instance: k.instance, Item: "plan", Gave: k.state == "whole"}
}

// host is a site that looks after its files as a node does.
type host struct {
	*site
	lost []string
}

func newHost(t *testing.T, dir string, all []kept, giver *site) *host {
	t.Helper()
	store, err := files.Open(dir, files.Options{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{site: newSite(t, t.TempDir(), files.Options{}, everybody{})}
	h.dir, h.link.to["giver"] = dir, giver.Topic
	h.Topic = files.New(store, files.Surroundings{
		Clock: clock{time.Now()}, Log: slog.New(slog.DiscardHandler), Partner: h.link, Instances: everybody{},
		Label: func(p workflow.PartnerID) string { return string(p) },
		Gone:  func(workflow.PartnerID) bool { return false },
		Lost:  func(what string) { h.lost = append(h.lost, what) },
		Mentions: func(_ context.Context, each func(files.Mention)) bool {
			for _, k := range all {
				if k.state != "unused" {
					each(k.mention())
				}
			}
			return true
		},
		Want: func(m files.Mention) files.Want {
			w := want(m.File, "giver")
			w.Instance, w.By = m.Instance, m.By
			return w
		},
	})
	return h
}

// image makes a folder with files of several lengths: some that instances have, one that no
// instance has yet, and one of which only a part has come.
func image(t *testing.T, dir string) (all []kept, giver *site) {
	t.Helper()
	s := newSite(t, dir, files.Options{}, everybody{})
	giver = newSite(t, t.TempDir(), files.Options{}, everybody{})
	for i, n := range []int{0, 5000, files.Chunk + 9, 3*files.Chunk - 1, 700, 2*files.Chunk + 7} {
		k := kept{instance: workflow.InstanceID{byte(i + 1)}, state: "whole"}
		switch i {
		case 4:
			k.state = "unused"
			k.file, k.content = s.upload(t, n)
		case 5:
			k.state = "coming"
			k.file, k.content = giver.upload(t, n)
			if err := giver.Give(k.file, k.instance.String(), "", time.Now()); err != nil {
				t.Fatal(err)
			}
			s.link.to["giver"], s.link.cutEach = giver.Topic, 3
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			w := want(k.file, "giver")
			w.Instance = k.instance
			if err := s.Fetch(ctx, w); err == nil {
				t.Fatal("it came whole")
			}
			cancel()
		default:
			k.file, k.content = s.upload(t, n)
			if _, err := giver.Put(t.Context(), "plan.pdf", bytes.NewReader(k.content), time.Now()); err != nil {
				t.Fatal(err)
			}
			for _, x := range []*site{s, giver} {
				if err := x.Give(k.file, k.instance.String(), "", time.Now()); err != nil {
					t.Fatal(err)
				}
			}
		}
		all = append(all, k)
	}
	return all, giver
}

// spoil does something to one file of a folder. It says what, and of which kind of what is kept.
func spoil(t *testing.T, dir string, all []kept, chance *rand.Rand) (k kept, kind, op, what string) {
	t.Helper()
	for {
		k = all[chance.IntN(len(all))]
		kind = []string{".data", ".data", ".sums", ".uses", ".part"}[chance.IntN(5)]
		b, err := os.ReadFile(k.path(dir, kind))
		if err != nil {
			continue // there is none
		}
		was := slices.Clone(b)
		op = []string{"flip", "cut", "zero", "remove"}[chance.IntN(4)]
		if len(b) == 0 {
			op = "remove"
		}
		path := k.path(dir, kind)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		switch op {
		case "flip":
			at, bit := chance.IntN(len(b)), chance.IntN(8)
			b[at] ^= 1 << bit
			what = fmt.Sprintf("bit %d of byte %d of %d", bit, at, len(b))
		case "cut":
			to := chance.IntN(len(b))
			what = fmt.Sprintf("to %d of %d", to, len(b))
			b = b[:to]
		case "zero":
			from := chance.IntN(len(b))
			to := min(len(b), from+1+chance.IntN(4096))
			clear(b[from:to])
			what = fmt.Sprintf("%d to %d of %d", from, to, len(b))
		case "remove":
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			return k, kind, op, ""
		}
		if bytes.Equal(b, was) {
			continue // it was zero before
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return k, kind, op, what
	}
}

// Whatever happens to one file of the folder, while the node runs or not: doctor and the next
// start say so, nobody gets other content, and what partners have comes back. What they say
// nothing of is harmless: all content is there in the end, the same.
func TestCorruptedFolder(t *testing.T) {
	outcomes := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		origin := t.TempDir()
		all, giver := image(t, origin)
		for seed := *firstCorruption; seed < *firstCorruption+uint64(*corruptions); seed++ {
			chance := rand.New(rand.NewPCG(seed, 0))
			dir, runs := filepath.Join(t.TempDir(), "files"), chance.IntN(2) == 0
			if err := os.CopyFS(dir, os.DirFS(origin)); err != nil {
				t.Fatal(err)
			}
			name, outcome := afterSpoiling(t, seed, dir, all, giver, chance, runs)
			outcomes[name+" "+outcome]++
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, k := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%4d × %s", outcomes[k], k)
	}
}

// report takes findings.
type report struct{ bad, ok []string }

func (r *report) OK(_, format string, args ...any) { r.ok = append(r.ok, fmt.Sprintf(format, args...)) }
func (r *report) Warn(_, what, _ string)           { r.bad = append(r.bad, what) }
func (r *report) Wrong(_, what, _ string)          { r.bad = append(r.bad, what) }

func afterSpoiling(
	t *testing.T, seed uint64, dir string, all []kept, giver *site, chance *rand.Rand, runs bool,
) (name, outcome string) {
	t.Helper()
	var h *host
	var d report
	giver.link.cut("giver", false)
	begin := func(reach bool) (end func()) {
		h = newHost(t, dir, all, giver)
		h.link.cut("giver", !reach)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { h.Keep(ctx); close(done) }()
		synctest.Wait()
		return func() { cancel(); <-done }
	}
	var k kept
	var kind, op, what string
	if runs {
		end := begin(false)
		if len(h.lost) > 0 {
			t.Errorf("before anything happened: %q", h.lost)
		}
		k, kind, op, what = spoil(t, dir, all, chance)
		h.Diagnose(t.Context(), &d)
		end()
	} else {
		k, kind, op, what = spoil(t, dir, all, chance)
		wrong, n, err := files.Examine(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		files.Report(&d, wrong, n)
		defer begin(false)()
	}
	name = fmt.Sprintf("%s of what is %s: %-6s", kind, k.state, op)
	said := fmt.Sprintf("seed %d, %s, %s, running %t", seed, name, what, runs)
	matters := kind == ".data" || kind == ".uses" || kind == ".sums" && k.state != "coming"
	noticed := len(h.lost) > 0
	if outcome = "harmless"; noticed {
		outcome = "noticed"
	}
	if matters && (!noticed || len(d.bad) == 0) {
		t.Errorf("%s: unnoticed: at the start %q, by doctor %q", said, h.lost, d.bad)
		outcome = "UNNOTICED"
	}
	if named := "file plan.pdf"; matters && kind == ".data" && !strings.Contains(strings.Join(d.bad, "\n"), named) {
		t.Errorf("%s: doctor does not name the file: %q", said, d.bad)
	}
	for _, k := range all { // nobody gets other content
		r, err := h.Reader(k.file)
		if err != nil {
			continue
		}
		if got, err := io.ReadAll(r); err == nil && !bytes.Equal(got, k.content) {
			t.Errorf("%s: other content is given", said)
		}
		r.Close()
	}
	if runs { // it starts again with its partner in reach
		defer begin(true)()
	} else {
		h.link.cut("giver", false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
	}
	if _, err := h.Sweep(func(string) bool { return true }, time.Now().Add(20*time.Hour)); err != nil {
		t.Error(err)
	}
	for _, k := range all {
		if k.state == "coming" { // a task needs it
			w := want(k.file, "giver")
			w.Instance = k.instance
			if err := h.Fetch(t.Context(), w); err != nil {
				t.Errorf("%s: it does not come: %v", said, err)
			}
		}
		r, err := h.Reader(k.file)
		if err != nil {
			if k.state != "unused" || kind != ".data" {
				t.Errorf("%s: in the end %s: %v", said, k.state, err)
			}
			continue
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, k.content) {
			t.Errorf("%s: in the end %s: other content, %v", said, k.state, err)
		}
		r.Close()
	}
	return name, outcome
}

// What the disk changed is given neither to people nor to programs, also right after a start,
// and who gives it again has it mended.
func TestFlippedContentIsNotGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := newSite(t, dir, files.Options{}, everybody{})
		f, b := s.put(t, 2*files.Chunk)
		p, _ := s.Path(f)
		bad := bytes.Clone(b)
		bad[files.Chunk+500] ^= 4
		flip := func() {
			if err := errors.Join(os.Chmod(p, 0o600), os.WriteFile(p, bad, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		r, err := s.Reader(f)
		if err != nil {
			t.Fatal(err)
		}
		flip() // while it is read
		if got, err := io.ReadAll(r); !errors.Is(err, files.ErrDamaged) || len(got) != files.Chunk {
			t.Errorf("%d bytes were given, and %v", len(got), err)
		}
		if _, here := s.Path(f); here {
			t.Error("it is still said to be here")
		}
		if _, err := s.Put(t.Context(), "plan.pdf", bytes.NewReader(b), time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := s.read(t, f); !bytes.Equal(got, b) {
			t.Error("given again by its user, it stays flipped")
		}
		flip()
		s = newSite(t, dir, files.Options{}, everybody{}) // starts again
		if sound, err := s.Sound(t.Context(), f, false); sound || err != nil {
			t.Errorf("after a start it is said to be sound: %v", err)
		}
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
		giver.put(t, 2*files.Chunk)
		s.link.knows("giver", giver.Topic)
		if err := s.Fetch(t.Context(), want(f, "giver")); err != nil || len(s.link.asked) != 2 {
			t.Errorf("mended by %d pieces: %v", len(s.link.asked), err)
		}
		if got := s.read(t, f); !bytes.Equal(got, b) {
			t.Error("it was mended to something else")
		}
	})
}

// A record that the disk lost or changed lets no content go.
func TestALostRecordLetsNothingGo(t *testing.T) {
	for _, how := range []string{"removed", "flipped"} {
		dir := t.TempDir()
		s := newSite(t, dir, files.Options{}, everybody{})
		f, _ := s.put(t, 1000)
		record := kept{file: f}.path(dir, ".uses")
		b, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		b[bytes.Index(b, []byte(" proved"))] ^= 1
		if how == "removed" {
			err = os.Remove(record)
		} else {
			err = os.WriteFile(record, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		s = newSite(t, dir, files.Options{}, everybody{})
		n, err := s.Sweep(func(string) bool { return true }, time.Now().Add(25*time.Hour))
		if _, here := s.Path(f); n != 0 || err != nil || !here {
			t.Errorf("%s: removed %d, %v, here %t", how, n, err, here)
		}
	}
}

// Content that an instance here has stays, although its record says nothing of that; and what was
// given here, and is not here at all, is said to be lost.
func TestInstancesAreAskedBeforeContentGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		before := newSite(t, dir, files.Options{}, everybody{})
		f, _ := before.upload(t, 10)
		away := kept{
			file: workflow.File{Name: "away.pdf", Size: 3, Root: [32]byte{1}}, instance: workflow.InstanceID{2},
			state: "whole",
		}
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
		h := newHost(t, dir, []kept{{file: f, instance: workflow.InstanceID{1}, state: "named"}, away}, giver)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go h.Keep(ctx)
		synctest.Wait()
		for range 60 { // hours
			h.Tick(clock{time.Now().Add(-time.Hour)}.Now())
			time.Sleep(time.Hour)
			synctest.Wait()
		}
		if _, here := h.Path(f); !here {
			t.Error("an instance here had it, and it was removed")
		}
		if len(h.lost) != 1 || !strings.Contains(h.lost[0], "file away.pdf (3 B) of instance 02") {
			t.Errorf("lost: %q", h.lost)
		}
	})
}

// A second reference with the same hash and another length is another file: the room of what is
// coming stays taken.
func TestAFalseLengthMakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 16 << 20 // a quarter: 4 MiB
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
		dir := t.TempDir()
		taker := newSite(t, dir, files.Options{Limit: limit}, everybody{})
		taker.link.to["giver"], taker.link.cutEach = giver.Topic, 8
		taker.link.cut("nobody", true)
		for i := range 12 {
			f, _ := giver.put(t, 4<<20-files.Overhead-100*i)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			err := taker.Fetch(ctx, want(f, "giver")) // the last piece does not come
			cancel()
			if first := i == 0; err == nil || strings.Contains(err.Error(), "there is room for") == first {
				t.Errorf("file %d: %v", i, err)
			}
			small := f
			small.Size = 1
			w := want(small, "nobody")
			w.Instance[0] = byte(i + 1)
			ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			err = taker.Fetch(ctx, w)
			cancel()
			if err == nil {
				t.Error("a file with a false length came")
			}
		}
		parts, err := filepath.Glob(filepath.Join(dir, "*.part"))
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for _, p := range parts {
			if info, err := os.Stat(p); err == nil {
				n += info.Size()
			}
		}
		if n == 0 || n > limit/4 {
			t.Errorf("parts have %d bytes, and the share is %d", n, limit/4)
		}
	})
}

// A file counts for each member whose instances have it: so two members hold no more than two
// shares, and none has more than its own when another lets go of what both had.
func TestAFileCountsForEachWhoHasIt(t *testing.T) {
	s := newSite(t, t.TempDir(), files.Options{Limit: 16 * files.Chunk}, everybody{})
	now := time.Now()
	n := 0
	use := func(root byte, by string) error {
		n++
		return s.Use(workflow.File{Name: "f", Size: 2*files.Chunk - files.Overhead, Root: [32]byte{root}},
			fmt.Sprint("i", n), by, now)
	}
	for _, c := range []struct {
		root byte
		by   string
		fits bool
	}{
		{1, "zed", true}, {2, "zed", true}, {3, "zed", false}, // two of 2 MiB are a share
		{1, "abe", true}, {1, "abe", true}, {2, "abe", true}, // the same count for abe, and each once
		{3, "abe", false}, {3, "", true}, {3, "bo", true}, {1, "", true},
	} {
		if err := use(c.root, c.by); (err == nil) != c.fits {
			t.Errorf("file %d of %q: %v", c.root, c.by, err)
		}
	}
	if _, err := s.Sweep(func(i string) bool { return i != "i1" && i != "i2" }, now.Add(25*time.Hour)); err != nil { // zed's are over
		t.Fatal(err)
	}
	if err := use(4, "abe"); err == nil {
		t.Error("abe has more than its share after zed let go of what both had")
	}
	if err := use(4, "zed"); err != nil {
		t.Errorf("zed has room again: %v", err)
	}
}
