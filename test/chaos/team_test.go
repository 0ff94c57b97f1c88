//go:build linux

package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testlan"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	nodes          = 5
	connectionTime = 5 * time.Second
	// patience is for what a loaded machine does at its leisure.
	patience = time.Minute
)

// team is the nodes, what is wrong with them, and what they were asked to do.
type team struct {
	t     *testing.T
	dir   string
	lan   *testlan.LAN
	ps    []*proc
	liar  *liar // nil: nobody lies
	begun time.Time

	mu         sync.Mutex // guards what follows
	violations []string
	wrong      map[string]int // what is wrong → how many faults have it so
	started    map[string]*started
	defs       map[workflow.Name]*workflow.Definition
	workflows  []random
	done       []doneWork // in this round

	// What the checks have read.
	sum       total
	histories map[string]*history
	last      bool // all instances are looked at again
}

// started is an instance that a node said it had started.
type started struct{ at string }

// doneWork is what a person was told is done.
type doneWork struct {
	node string
	id   string
	task workflow.TaskName
}

// newTeam makes the network and the mesh; nil where that is not permitted.
func newTeam(t *testing.T) *team {
	hosts := nodes
	if *withLiar {
		hosts++
	}
	lan := testlan.New(t, fmt.Sprintf("muc%d", os.Getpid()), hosts, "chaos among real processes")
	if lan == nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "mutirao-chaos")
	if err != nil {
		t.Fatal(err)
	}
	tm := &team{
		t: t, dir: dir, lan: lan, begun: time.Now(), wrong: map[string]int{}, started: map[string]*started{},
		defs: map[workflow.Name]*workflow.Definition{}, sum: newTotal(),
	}
	t.Cleanup(tm.close)
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		tm.ps = append(tm.ps, &proc{tm: tm, host: i, name: name, dir: filepath.Join(dir, name)})
	}
	tm.gather()
	if *withLiar {
		tm.lieFrom(nodes, *seed)
	}
	return tm
}

func (tm *team) close() {
	if tm.liar != nil {
		tm.liar.stop()
	}
	for _, p := range tm.ps {
		p.crash()
	}
	if tm.t.Failed() {
		tm.t.Logf("the nodes' folders are kept in %s: each has its stderr.log, and \"mutirao up --dir FOLDER\" runs it again", tm.dir)
	} else if err := os.RemoveAll(tm.dir); err != nil {
		tm.t.Error(err)
	}
}

// gather founds the mesh and has all join.
func (tm *team) gather() {
	for _, p := range tm.ps {
		err := p.configure()
		if err == nil && p.host == 0 {
			err = found(p)
		}
		if err == nil {
			err = p.meet(tm.t.Context(), tm.ps[0])
		}
		if err != nil {
			tm.t.Fatal(err)
		}
	}
}

// violate notes that something does not hold.
func (tm *team) violate(format string, args ...any) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	text := fmt.Sprintf("%s: ", time.Since(tm.begun).Round(time.Millisecond)) + fmt.Sprintf(format, args...)
	if len(tm.violations) < 50 {
		tm.violations = append(tm.violations, text)
	}
}

func (tm *team) violated() []string {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.violations
}

// harness reports what has nothing to do with the nodes.
func (tm *team) harness(err error) {
	if err != nil {
		tm.violate("the test itself: %v", err)
	}
}

// round is a time of chaos, and the quiet after it.
func (tm *team) round(r *rand.Rand, span time.Duration, pace pace) {
	for _, p := range tm.ps {
		p.mu.Lock()
		p.reboots = 0
		p.mu.Unlock()
	}
	persons, dismiss := context.WithCancel(tm.t.Context())
	defer dismiss()
	var busy sync.WaitGroup
	for _, p := range tm.ps {
		r := rand.New(rand.NewPCG(r.Uint64(), 1))
		busy.Go(func() { p.person(persons, r, pace) })
	}
	chaos, heal := context.WithTimeout(tm.t.Context(), span)
	defer heal()
	var all sync.WaitGroup
	starts, faults := rand.New(rand.NewPCG(r.Uint64(), 2)), rand.New(rand.NewPCG(r.Uint64(), 3))
	all.Go(func() { tm.start(chaos, starts, pace) })
	all.Go(func() { tm.trouble(chaos, faults, pace) })
	all.Wait()
	tm.quiet(dismiss, &busy)
	tm.sum.rounds++
	tm.done = nil
}

// again looks at all instances of the run once more.
func (tm *team) again() {
	if len(tm.violated()) > 0 {
		return
	}
	tm.last = true
	tm.quiet(func() {}, &sync.WaitGroup{})
}

// within waits until cond holds, at most d; it reports whether it did.
func within(d time.Duration, cond func() bool) bool {
	for end := time.Now().Add(d); !cond(); {
		if time.Now().After(end) {
			return false
		}
		<-time.After(100 * time.Millisecond)
	}
	return true
}

// pause waits, or until ctx ends; it reports whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// between draws a duration.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

func join(lines []string) string { return strings.Join(lines, "\n") }
