package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is what is done when this node itself cannot keep what comes: its disk is full, is read-only,
// or gives errors. No partner is to blame, and none helps.

// The pauses after which it is tried whether the disk can be written again.
const (
	firstTry = 5 * time.Second
	maxTry   = 5 * time.Minute
)

// ownFault is why this node cannot keep what a partner gives.
type ownFault struct{ why error }

func (e *ownFault) Error() string {
	return fmt.Sprintf("this node cannot keep it: %v. It is tried again, %s", e.why, mendDisk)
}

func (e *ownFault) Unwrap() error { return e.why }

const mendDisk = "sooner once there is room: free some on the disk of the node's folder"

// own is an error of this node's own disk. That there is no room in somebody's share is none.
func own(err error) error {
	if room, fault := (*noRoom)(nil), (*ownFault)(nil); err == nil || errors.As(err, &room) || errors.As(err, &fault) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &ownFault{err}
}

// fullDisk says that the disk has no room, whoever fills it.
type fullDisk struct {
	file        workflow.File // empty: any
	free, needs int64
	promised    int64 // of free, to files that come before it
}

func (e *fullDisk) Error() string {
	needs := ""
	if e.promised > 0 {
		needs = fmt.Sprintf(", of which %s are for files that come before it", workflow.FormatSize(e.promised))
	}
	if e.file.Name != "" {
		needs += fmt.Sprintf(", and file %s needs %s", e.file.Name, workflow.FormatSize(e.needs))
	}
	return fmt.Sprintf("its disk is full: %s are free beside its reserve%s", workflow.FormatSize(e.free), needs)
}

// spare returns an error if the disk has not so many bytes free, beside the reserve.
func (s *Store) spare(bytes int64) error {
	free, err := s.within(bytes)
	if err == nil && free < bytes {
		err = &fullDisk{free: free, needs: bytes}
	}
	return err
}

// try finds out whether anything can be kept: room for a chunk is there, and something can be written.
func (s *Store) try() error {
	if err := s.spare(Chunk); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, newFile)
	if err != nil {
		return err
	}
	if err = s.writeAt(f, make([]byte, 4096), 0); err == nil {
		err = s.sync(f)
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// ill is that nothing can be kept.
type ill struct {
	why    error         // nil: all is well
	until  time.Duration // (Awake) nothing is tried
	pause  time.Duration
	trying bool
}

// fails notes that this node could not keep what came. If nothing at all can be kept no file has a turn
// until that is over.
func (t *Topic) fails() {
	why := t.try()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.judged(why)
}

// judged notes whether anything can be kept. The caller holds t.mu.
func (t *Topic) judged(why error) {
	if why == nil {
		if t.ill.why != nil {
			t.in.Log.Info("files can be kept again")
		}
		t.ill = ill{}
		return
	}
	if t.ill.why == nil {
		t.in.Log.Error("files cannot be kept, so none is fetched", "error", why)
	}
	pause := min(max(2*t.ill.pause, firstTry), maxTry)
	t.ill = ill{why: why, pause: pause, until: t.in.Clock.Now().Awake + pause}
}

// tryAgain finds out whether something can be kept again, beside what goes on. The caller holds t.mu.
func (t *Topic) tryAgain() {
	t.ill.trying = true
	t.work.Go(func() {
		why := t.try()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.judged(why)
		t.rouse()
	})
}

// Unkept is why this node cannot keep files that are to come, or one of them; empty: it can.
func (t *Topic) Unkept() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 { // nobody has tried for some time
		return ""
	}
	if t.ill.why != nil {
		return "no file can come: " + (&ownFault{t.ill.why}).Error()
	}
	n, one := 0, ""
	for _, c := range t.coming {
		if slices.ContainsFunc(c.orders, func(o *order) bool { return o.own }) {
			n++
			one = max(one, c.trouble) // always the same
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the files that are to come cannot: %s", n, one)
}
