package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// day is what a node does with files on a day: a user gives one to instance 1, one comes for instance 2 and an empty
// one for instance 3, and one goes that no instance has any more.
type day struct {
	giver        *site
	given        []byte
	comes, empty workflow.File
	old          workflow.File
	done         []string // what the node has said to be done
}

func newDay(t *testing.T, dir string) *day {
	d := &day{giver: newSite(t, t.TempDir(), files.Options{}, everybody{}), given: bytes.Repeat([]byte("given"), 500)}
	d.comes, _ = d.giver.upload(t, 2*files.Chunk+5)
	d.empty, _ = d.giver.upload(t, 0)
	for i, f := range []workflow.File{d.comes, d.empty} {
		if err := d.giver.Give(f, workflow.InstanceID{byte(i + 2)}.String(), "", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, dir, files.Options{}, everybody{})
	d.old, _ = s.upload(t, 300)
	if err := s.Use(d.old, "over", "mal", time.Now()); err != nil {
		t.Fatal(err)
	}
	return d
}

// run does all of it as far as it comes, and what was done before once more.
func (d *day) run(ctx context.Context, s *site) error {
	s.link.knows("giver", d.giver.Topic)
	d.done = nil
	f, err := s.Put(ctx, "given.txt", bytes.NewReader(d.given), time.Now())
	if err != nil {
		return err
	}
	d.done = append(d.done, "put")
	if err := s.Give(f, workflow.InstanceID{1}.String(), "", time.Now()); err != nil {
		return err
	}
	d.done = append(d.done, "given")
	for i, f := range []workflow.File{d.comes, d.empty} {
		w := want(f, "giver")
		w.Instance = workflow.InstanceID{byte(i + 2)}
		within, cancel := context.WithTimeout(ctx, time.Hour)
		err := s.Fetch(within, w)
		cancel()
		if err != nil {
			return err
		}
		d.done = append(d.done, fmt.Sprint("came ", i))
	}
	here := func(id string) bool { return id != "over" }
	for year := range 2 { // the disk's clock is not that of the bubble
		if _, err := s.Sweep(here, time.Now().AddDate(100+year, 0, 0)); err != nil {
			return err
		}
	}
	d.done = append(d.done, "swept")
	return nil
}

// gives reports whether a node gives the content of a file to partners for an instance.
func (s *site) gives(t *testing.T, f workflow.File, instance byte) error {
	t.Helper()
	req, err := wire.EncodeFileAsk(wire.FileAsk{
		Instance: workflow.InstanceID{instance}, Item: "plan", File: f.String(), Sums: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Answer("asker", req)
	return err
}

// holds checks that a node has what it said that it has, that what is here is given for the instance for which it
// came, and that it is what it was.
func (d *day) holds(t *testing.T, s *site, about string) {
	t.Helper()
	said := strings.Join(d.done, ", ")
	for i, f := range []workflow.File{d.comes, d.empty} {
		_, here := s.Path(f)
		if !here && strings.Contains(said, fmt.Sprint("came ", i)) {
			t.Errorf("%s: file %d is not here, which came (%s)", about, i, said)
		}
		if !here {
			continue
		}
		if err := s.gives(t, f, byte(i+2)); err != nil {
			t.Errorf("%s: file %d is here, and is not given for the instance for which it came: %v", about, i, err)
		}
		r, err := s.Reader(f)
		if err != nil {
			t.Errorf("%s: file %d: %v", about, i, err)
			continue
		}
		got, err := io.ReadAll(r)
		theirs := d.giver.read(t, f)
		if r.Close(); err != nil || !bytes.Equal(got, theirs) {
			t.Errorf("%s: file %d is something else: %v", about, i, err)
		}
	}
	if _, here := s.Path(d.old); here && strings.Contains(said, "swept") {
		t.Errorf("%s: what was removed is here", about)
	}
	if !strings.Contains(said, "given") {
		return
	}
	f, err := s.Put(t.Context(), "given.txt", bytes.NewReader(d.given), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.gives(t, f, 1); err != nil {
		t.Errorf("%s: what the user gave is not given: %v", about, err)
	}
}

// A node that is killed, after whichever step of what it does to its folder, and once more after whichever step when it
// goes on, has afterwards what it said to have; it takes nothing for lost, gives what came for whom it came, and can
// go on.
func TestKilledInEachWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		windows := 0
		each := 1
		if testing.Short() {
			each = 3
		}
		for last := 0; ; last += each {
			dir := t.TempDir()
			d := newDay(t, dir)
			killedAt := func(n int) error {
				var steps atomic.Int64
				s := newSite(t, dir, files.Options{}.Failing(func(string) error {
					if steps.Add(1) > int64(n) {
						return files.ErrKilled
					}
					return nil
				}), everybody{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- d.run(ctx, s) }()
				for range 60 {
					time.Sleep(time.Second)
					if steps.Load() > int64(n) {
						cancel()
					}
				}
				time.Sleep(100 * time.Hour)
				cancel()
				err := <-ended
				s.Stop()
				return err
			}
			if killedAt(last) == nil {
				break
			}
			windows++
			wrong, _, err := files.Examine(t.Context(), dir)
			if err != nil || len(wrong) > 0 {
				t.Errorf("killed after step %d: doctor says %v, %v", last, wrong, err)
			}
			d.holds(t, newSite(t, dir, files.Options{}, everybody{}), fmt.Sprint("killed after step ", last))
			_ = killedAt(last / 2) // or it was done before
			s := newSite(t, dir, files.Options{}, everybody{})
			d.holds(t, s, fmt.Sprint("killed after step ", last, " and again"))
			if err := d.run(t.Context(), s); err != nil {
				t.Errorf("killed after step %d, it cannot go on: %v", last, err)
			}
			d.holds(t, s, fmt.Sprint("killed after step ", last, ", then gone on"))
		}
		if t.Logf("%d windows", windows); windows*each < 40 {
			t.Errorf("it was killed in %d windows only", windows)
		}
	})
}

// Whichever step fails once, as on a disk that is full for a moment: what was said to be done is, what came is given for
// whom it came, now and after a start, and what waits comes after all.
func TestEachStepFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		each := 1
		if testing.Short() {
			each = 3
		}
		for failing := 1; ; failing += each {
			dir, what := t.TempDir(), ""
			var steps atomic.Int64
			d := newDay(t, dir)
			s := newSite(t, dir, files.Options{}.Failing(func(step string) error {
				if steps.Add(1) == int64(failing) {
					what = step
					return syscall.ENOSPC
				}
				return nil
			}), everybody{})
			err := d.run(t.Context(), s)
			if steps.Load() < int64(failing) {
				break
			}
			about := fmt.Sprintf("step %d, %s, fails", failing, what)
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: it says %v", about, err)
			}
			if n := len(s.link.refused) + strings.Count(s.log.String(), "giver"); n > 0 {
				t.Errorf("%s: a partner is blamed: %v\n%s", about, s.link.refused, s.log.String())
			}
			d.holds(t, s, about)
			s.Stop()
			d.holds(t, newSite(t, dir, files.Options{}, everybody{}), about+", and after a start")
			if err := d.run(t.Context(), s); err != nil && !strings.Contains(err.Error(), "stopping") {
				t.Errorf("%s, and it cannot go on: %v", about, err)
			}
		}
	})
}
