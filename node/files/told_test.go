package files_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// until fetches a file for as long as it takes at most.
func (s *site) until(t *testing.T, f workflow.File, most time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	return s.Fetch(ctx, want(f, "giver"))
}

// wantElsewhere checks whether a giver knows that another has all of a file.
func (s *site) wantElsewhere(t *testing.T, f workflow.File, want bool, when string) {
	t.Helper()
	if got := s.Elsewhere(f); got != want {
		t.Errorf("%s, the giver knows that the file is elsewhere: %v", when, got)
	}
}

// A file is only at its giver as long as the last answer is lost, and as long as what says that it came is; also where
// the giver was started again in between.
func TestALastAnswerThatIsLostCountsAsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{0, 1, files.Piece, 2*files.Chunk + 5} {
			dir := t.TempDir()
			giver, taker := newSite(t, dir, files.Options{}, everybody{}), newSite(t, t.TempDir(), files.Options{}, everybody{})
			taker.link.knows("giver", giver.Topic)
			f, _ := giver.put(t, size)
			if size > 0 {
				taker.link.lose(f.Size - f.Size%files.Piece)
				if f.Size%files.Piece == 0 {
					taker.link.lose(f.Size - files.Piece)
				}
				if taker.until(t, f, time.Minute) == nil {
					t.Fatalf("%d bytes came though the last of them were lost", size)
				}
				giver.wantElsewhere(t, f, false, "as the last answer was lost")
			}
			taker.link.lose(f.Size)
			if err := taker.until(t, f, 10*time.Minute); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			giver.Stop()
			again := newSite(t, dir, files.Options{}, everybody{})
			again.wantElsewhere(t, f, true, "as it was told, and only the answer to that was lost")
			taker.link.knows("giver", again.Topic)
			taker.link.lose()
			time.Sleep(time.Minute)
			if left := taker.Untold(); left > 0 {
				t.Errorf("%d are still to be told", left)
			}
		}
	})
}

// Whoever fetches a file and is killed, at whichever step, has not said that it has it before it does after its next
// start; and once it has it, it says so, whatever was lost in between.
func TestOnlyWhatIsOnTheDiskIsSaidToBeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for last := int64(0); ; last++ {
			dir := t.TempDir()
			giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
			f, _ := giver.put(t, files.Chunk+5)
			var steps atomic.Int64
			taker := newSite(t, dir, files.Options{}.Failing(func(string) error {
				if steps.Add(1) > last {
					return files.ErrKilled
				}
				return nil
			}), everybody{})
			taker.link.knows("giver", giver.Topic)
			done := taker.until(t, f, time.Minute) == nil
			time.Sleep(time.Minute)
			taker.Stop()
			said := giver.Elsewhere(f)
			next := newSite(t, dir, files.Options{}, everybody{})
			next.link.knows("giver", giver.Topic)
			if _, here := next.Path(f); said && !here {
				t.Errorf("killed after step %d: it said that it has the file, and has not", last)
			}
			next.Tick(clock{}.Now())
			if err := next.until(t, f, time.Minute); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			giver.wantElsewhere(t, f, true, "once it is there")
			if done {
				break
			}
		}
	})
}

// What is on the disk when a node is killed before it could say so, it says after its next start.
func TestWhatWasNotSaidIsSaidAfterAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		giver, taker := newSite(t, t.TempDir(), files.Options{}, everybody{}), newSite(t, dir, files.Options{}, everybody{})
		f, _ := giver.put(t, files.Chunk+5)
		taker.link.knows("giver", giver.Topic)
		taker.link.hushed = true
		if err := taker.until(t, f, time.Minute); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		taker.Stop()
		giver.wantElsewhere(t, f, false, "as nobody has said so")
		next := newSite(t, dir, files.Options{}, everybody{})
		next.link.knows("giver", giver.Topic)
		next.link.cut("giver", true)
		next.Tick(clock{}.Now())
		time.Sleep(time.Hour)
		giver.wantElsewhere(t, f, false, "as it is out of reach")
		next.link.cut("giver", false)
		time.Sleep(time.Minute)
		giver.wantElsewhere(t, f, true, "once it is in reach")
		if next.Untold() > 0 {
			t.Error("it is to be told again")
		}
	})
}

// Whoever may not read a file is not believed to have it, and that is counted; nor is anybody in an instance for which it was
// not given.
func TestOnlyWhoMayReadIsBelieved(t *testing.T) {
	for _, x := range []struct {
		instance workflow.InstanceID
		denied   error
		believed bool
	}{{believed: true}, {denied: errors.New("it is for others")}, {instance: workflow.InstanceID{1}}} {
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{denied: x.denied})
		f, _ := giver.put(t, 300)
		req, err := wire.EncodeFileAsk(wire.FileAsk{Instance: x.instance, Item: "plan", File: f.String(), Offset: f.Size})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := giver.Answer("asker", req); (err == nil) != x.believed {
			t.Errorf("%+v: it is answered %v", x, err)
		}
		giver.wantElsewhere(t, f, x.believed, "as somebody said so")
		if refused := slices.Contains(giver.link.refused, "file"); refused != (x.denied != nil) {
			t.Errorf("%+v: counted as refused: %v", x, refused)
		}
	}
}
