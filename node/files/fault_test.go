package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A disk that is full while a file comes is this node's own fault: no other partner is tried, nobody is blamed, people
// are told what to do, and all of it comes when there is room, and only what is missing.
func TestADiskThatIsFullBlamesNobody(t *testing.T) {
	for name, how := range map[string]func(free *atomic.Int64, full *atomic.Bool){
		"the reserve is reached":    func(free *atomic.Int64, _ *atomic.Bool) { free.Store(1000) },
		"the disk takes no more":    func(_ *atomic.Int64, full *atomic.Bool) { full.Store(true) },
		"it is full from the start": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var free atomic.Int64
				var full atomic.Bool
				if free.Store(1 << 30); how == nil {
					free.Store(0)
				}
				giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
				f, b := giver.put(t, 6*files.Chunk)
				small, _ := giver.put(t, 10)
				var pieces atomic.Int64
				o := files.Options{
					Space:   func() (uint64, uint64, error) { return uint64(free.Load()) + 500, 1 << 40, nil },
					Reserve: 500,
				}
				taker := newSite(t, t.TempDir(), o.Failing(func(step string) error {
					if step == "write .part" {
						if pieces.Add(1) == 3 && how != nil {
							how(&free, &full)
						}
					}
					if full.Load() && (strings.HasPrefix(step, "write") || strings.HasPrefix(step, "sync")) {
						return fmt.Errorf("write: %w", syscall.ENOSPC)
					}
					return nil
				}), everybody{})
				taker.link.to["giver"], taker.link.to["other"], taker.link.to["third"] = giver.Topic, giver.Topic,
					giver.Topic
				taker.link.takes = 10 * time.Millisecond
				ended := make(chan error, 2)
				asked := want(f, "giver", "other", "third")
				go func() { ended <- taker.Fetch(t.Context(), asked) }()
				time.Sleep(time.Minute)
				words := taker.Waits(workflow.InstanceID{}, f)
				if !strings.Contains(words, "this node cannot keep it") ||
					!strings.Contains(words, "free some on the disk") ||
					strings.Contains(words, "giver") || strings.Contains(words, "other") {
					t.Errorf("people are told %q", words)
				}
				var d report
				taker.Diagnose(t.Context(), &d)
				if len(d.bad) != 1 || !strings.Contains(d.bad[0], "no file can come") {
					t.Errorf("doctor says %q", d.bad)
				}
				before := taker.link.total()
				go func() { ended <- taker.Fetch(t.Context(), want(small, "giver", "other")) }()
				time.Sleep(time.Hour)
				if n := taker.link.total() - before; n > 0 {
					t.Errorf("%d requests while nothing can be kept", n)
				}
				if len(taker.link.refused) > 0 {
					t.Errorf("somebody is blamed: %v", taker.link.refused)
				}
				free.Store(1 << 30)
				full.Store(false)
				for range 2 {
					if err := <-ended; err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(taker.read(t, f), b) {
					t.Error("other bytes came")
				}
				for at, n := range taker.link.asked {
					if n > 2 { // a chunk for the break, and the one after it, which was on its way
						t.Errorf("the piece at %d was asked for %d times", at, n)
					}
				}
				if words := taker.Unkept(); words != "" {
					t.Errorf("still %q", words)
				}
			})
		})
	}
}

// total is how often anything was asked for.
func (l *link) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// What a disk is too small for fails at once, with the reason; what it is only too full for now waits.
func TestADiskThatIsTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
		f, _ := giver.put(t, 3*files.Chunk)
		for _, total := range []uint64{2 * files.Chunk, 8 * files.Chunk} {
			var free atomic.Uint64
			free.Store(2 * files.Chunk)
			o := files.Options{Space: func() (uint64, uint64, error) { return free.Load(), total, nil }, Reserve: 100}
			taker := newSite(t, t.TempDir(), o, everybody{})
			taker.link.knows("giver", giver.Topic)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			ended := make(chan error, 1)
			go func() { ended <- taker.Fetch(ctx, want(f, "giver")) }()
			time.Sleep(time.Minute)
			var d report
			if taker.Diagnose(t.Context(), &d); total > 3*files.Chunk &&
				(len(d.bad) != 1 || !strings.Contains(d.bad[0], "1 of the files that are to come cannot")) {
				t.Errorf("doctor says %q", d.bad)
			}
			if n := taker.link.total(); total > 3*files.Chunk && n > 0 {
				t.Errorf("partners were asked %d times", n)
			}
			small, _ := giver.put(t, 100)
			if took := taker.comes(t, want(small, "giver")); took > time.Second {
				t.Errorf("a small file took %v, for which there is room", took)
			}
			err := <-ended
			cancel()
			if waits := errors.Is(err, context.DeadlineExceeded); err == nil || waits == (total < 3*files.Chunk) {
				t.Errorf("on a disk of %d: %v", total, err)
			}
			if slices.Contains(taker.link.refused, "files-beyond-room") {
				t.Errorf("on a disk of %d whoever began the instance is blamed", total)
			}
			if waits := errors.Is(err, context.DeadlineExceeded); waits {
				free.Store(4 * files.Chunk)
				if took := taker.comes(t, want(f, "giver")); took > time.Second {
					t.Errorf("when there was room it took %v", took)
				}
			}
			if s := fmt.Sprint(err); !strings.Contains(s, "and the disk of the node's folder holds 2.1 MB beside its reserve") &&
				!strings.Contains(s, "its disk is full: 2.1 MB are free beside its reserve, and file plan.pdf needs 3.15 MB") {
				t.Errorf("it says %s", s)
			}
		}
	})
}

// Of files that come together for one task, and for which a disk has not room enough, those come whole for which it
// has, those that come first before others; and no byte comes of the others, of which it is said why.
func TestOfFilesWithoutRoomForAllSomeComeWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
		dir, refs := t.TempDir(), []files.Ref{}
		for i, chunks := range []int{6, 7, 3} {
			f, _ := giver.put(t, chunks*files.Chunk)
			refs = append(refs, files.Ref{Item: workflow.DataName(fmt.Sprint("f", i)), File: f})
		}
		var total atomic.Int64
		total.Store(10 * files.Chunk)
		taker := newSite(t, dir, files.Options{
			Space:   func() (uint64, uint64, error) { return uint64(total.Load() - content(t, dir)), 1 << 40, nil },
			Reserve: files.Chunk / 2,
		}, everybody{})
		taker.link.knows("giver", giver.Topic)
		taker.link.takes = 10 * time.Millisecond
		taker.ahead(0, "starter", refs, nil, "giver")
		time.Sleep(time.Minute)
		for i, want := range []int64{6, 0, 3} {
			if have, _ := taker.Have(refs[i].File); have != want*files.Chunk {
				t.Errorf("of file %d there are %d bytes, want %d chunks", i, have, want)
			}
		}
		if words := taker.Waits(workflow.InstanceID{}, refs[1].File); !strings.Contains(words, "its disk is full") {
			t.Errorf("of what has no room it is said: %s", words)
		}
		total.Store(20 * files.Chunk)
		time.Sleep(6 * time.Minute)
		if _, whole := taker.Have(refs[1].File); !whole {
			t.Errorf("it did not come when there was room: %s", taker.Waits(workflow.InstanceID{}, refs[1].File))
		}
		if taker.ahead(0, "starter", nil, nil); !taker.Idle() {
			t.Error("something is remembered of what came")
		}
	})
}

// content is how many bytes of content a folder has.
func content(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	for _, kind := range []string{"*.part", "*.data"} {
		paths, err := filepath.Glob(filepath.Join(dir, kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil { // else it got another name meanwhile
				bytes += info.Size()
			}
		}
	}
	return bytes
}

// withRoomForTen are one that gives files and one that takes them, and has room for ten chunks.
func withRoomForTen(t *testing.T) (giver, taker *site) {
	t.Helper()
	giver = newSite(t, t.TempDir(), files.Options{}, everybody{})
	dir := t.TempDir()
	taker = newSite(t, dir, files.Options{
		Space: func() (uint64, uint64, error) { return uint64(10*files.Chunk - content(t, dir)), 1 << 40, nil },
	}, everybody{})
	taker.link.knows("giver", giver.Topic)
	return giver, taker
}

// A file that is promised room holds up none of those that have it before: a member's no file that a user waits for,
// and one whose giver is away none of the same task.
func TestPromisedRoomHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver, taker := withRoomForTen(t)
		taker.link.drips("slow", giver.Topic, 64<<10)
		first, _ := giver.put(t, 8*files.Chunk)
		second, _ := giver.put(t, 7*files.Chunk)
		taker.ahead(0, "starter", []files.Ref{{Item: "first", File: first}}, nil, "slow")
		time.Sleep(10 * time.Second)
		asked := want(second, "giver")
		asked.Asked = true
		if took := taker.comes(t, asked); took > time.Second {
			t.Errorf("what somebody waits for took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		giver, taker := withRoomForTen(t)
		taker.link.hang("mute", true)
		first, _ := giver.put(t, 8*files.Chunk)
		second, _ := giver.put(t, 7*files.Chunk)
		if err := giver.Give(second, workflow.InstanceID{1}.String(), "", time.Now()); err != nil {
			t.Fatal(err)
		}
		taker.ahead(0, "starter", []files.Ref{{Item: "first", File: first}}, nil, "mute")
		taker.ahead(1, "starter", []files.Ref{{Item: "second", File: second}}, nil, "giver")
		time.Sleep(time.Minute)
		if _, whole := taker.Have(second); !whole {
			t.Errorf("a file whose giver is here did not come: %s", taker.Waits(workflow.InstanceID{1}, second))
		}
	})
}

// What the kernel could not sync may be on no disk, though it can be read: it comes again.
func TestWhatWasNotSyncedComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
		f, b := giver.put(t, 2*files.Chunk)
		failed := 0
		taker := newSite(t, t.TempDir(), files.Options{}.Failing(func(step string) error {
			if step == "sync .part" && failed < 1 {
				failed++
				return syscall.EIO
			}
			return nil
		}), everybody{})
		taker.link.knows("giver", giver.Topic)
		if err := taker.Fetch(t.Context(), want(f, "giver")); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(taker.read(t, f), b) {
			t.Error("other bytes came")
		}
		for at := int64(0); at < f.Size; at += files.Piece {
			if n := taker.link.asked[at]; n != 2 {
				t.Errorf("the piece at %d came %d times, want once more after it was not synced", at, n)
			}
		}
		if err := taker.gives(t, f, 0); err != nil {
			t.Errorf("it is not given on: %v", err)
		}
	})
}

// A full disk can be made room on: what no instance has goes, though there is no room to note that first.
func TestAFullDiskIsSwept(t *testing.T) {
	var full atomic.Bool
	here := 0
	s := newSite(t, t.TempDir(), files.Options{}.Failing(func(step string) error {
		if step == "remove .data" {
			full.Store(false) // there is room again
		}
		if full.Load() && strings.HasPrefix(step, "write") {
			return syscall.ENOSPC
		}
		return nil
	}), everybody{})
	f, _ := s.upload(t, 5000)
	full.Store(true)
	n, err := s.Sweep(func(string) bool { here++; return true }, time.Now().Add(25*time.Hour))
	if _, is := s.Path(f); n != 1 || err != nil || is {
		t.Errorf("%d went: %v", n, err)
	}
}

// A content that could not be removed, and that an instance comes to have then, stays.
func TestWhatCouldNotBeRemovedCanBeUsed(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, dir, files.Options{}.Failing(func(step string) error {
		if step == "remove .data" {
			return syscall.EIO
		}
		return nil
	}), everybody{})
	f, _ := s.upload(t, 5000)
	if _, err := s.Sweep(func(string) bool { return true }, time.Now().Add(25*time.Hour)); err == nil {
		t.Fatal("it went")
	}
	if err := s.Give(f, workflow.InstanceID{}.String(), "", time.Now()); err != nil {
		t.Fatal(err)
	}
	s = newSite(t, dir, files.Options{}, everybody{})
	if _, here := s.Path(f); !here {
		t.Error("it is not here after a start")
	}
	if err := s.gives(t, f, 0); err != nil {
		t.Errorf("it is not given: %v", err)
	}
}

// Partners that take requests and answer none do not hold up a file that another has, though they are asked first; and
// the next file is not asked of them again.
func TestMutePartnersComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest, taker := siteThatTakes(t)
		var from []workflow.PartnerID
		for i := range 30 {
			p := workflow.PartnerID(fmt.Sprint("mute", i))
			from = append(from, p)
			taker.link.hang(p, true)
		}
		f, _ := honest.put(t, 3*files.Chunk)
		if took := taker.comes(t, want(f, append(from[:2:2], "giver")...)); took > 5*time.Second {
			t.Errorf("with two mute partners before it, it took %v", took)
		}
		g, _ := honest.put(t, 10)
		if took := taker.comes(t, want(g, append(slices.Clone(from), "giver")...)); took > 5*time.Minute {
			t.Errorf("with thirty mute partners before it, it took %v", took)
		}
		before := taker.link.total()
		h, _ := honest.put(t, 11)
		if took := taker.comes(t, want(h, append(slices.Clone(from), "giver")...)); took > time.Second {
			t.Errorf("after they were known to be mute it took %v", took)
		}
		if n := taker.link.total() - before; n > 4 {
			t.Errorf("%d requests for a small file", n)
		}
		for _, p := range from { // they speak again
			taker.link.hang(p, false)
			taker.link.knows(p, honest.Topic)
		}
		time.Sleep(11 * time.Minute)
		k, _ := honest.put(t, 12)
		if took := taker.comes(t, want(k, from[0])); took > time.Second {
			t.Errorf("from one that answers again it took %v", took)
		}
	})
}

// Many members with many files each that nobody answers for, and mute partners without end, hold up a file of another
// member for no longer than a moment; and no more wait for answers at once than there are places.
func TestManyMuteMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest, taker := siteThatTakes(t)
		most := 0
		for m := range 40 {
			refs := named(25)
			var from []workflow.PartnerID
			for i := range refs {
				refs[i].File.Root[31] = byte(m)
			}
			for i := range 25 {
				p := workflow.PartnerID(fmt.Sprint("mute", m, "-", i))
				taker.link.hang(p, true)
				from = append(from, p)
			}
			taker.ahead(byte(m), workflow.PartnerID(fmt.Sprint("liar", m)), refs, nil, from...)
		}
		worst := time.Duration(0)
		for i := range 30 {
			for range 20 {
				time.Sleep(time.Second)
				most = max(most, taker.Lent())
				if words := taker.TooMany(); words != "" {
					t.Fatalf("after %ds, with nobody who has a file of theirs: %s", i*20, words)
				}
			}
			f, _ := honest.put(t, 100+i)
			worst = max(worst, taker.comes(t, want(f, "giver")))
		}
		if t.Logf("at worst %v, %d waited at once", worst, most); worst > 2*time.Second || most > files.Lendable {
			t.Errorf("a file took %v, and %d waited for answers at once", worst, most)
		}
	})
}

// A giver that goes mute in the middle of a file does not keep its turn while it is waited for.
func TestAGiverGoesMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest, taker := siteThatTakes(t)
		taker.link.knows("fading", honest.Topic)
		taker.link.fades = "fading"
		var refs []files.Ref
		for i := range 6 {
			f, _ := honest.put(t, 2*files.Chunk+i)
			refs = append(refs, files.Ref{Item: workflow.DataName(fmt.Sprint("f", i)), File: f})
		}
		taker.ahead(0, "starter", refs, nil, "fading")
		time.Sleep(3 * time.Second)
		f, _ := honest.put(t, 9)
		if took := taker.comes(t, want(f, "giver")); took > 10*time.Second {
			t.Errorf("a file of the same member took %v", took)
		}
		g, _ := honest.put(t, 8)
		others := want(g, "giver")
		if others.By = "another"; taker.comes(t, others) > time.Second {
			t.Error("one of another member had to wait")
		}
	})
}
