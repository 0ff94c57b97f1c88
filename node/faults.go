package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A fault is a mistake in this program at which a machine panics: a fact of some member
// leads to it, and since facts are durable, a node that ended with it would end with it at
// each start. So it stops that one instance, which is set aside, and nothing else.
//
// The border is the machine. Every use of one by its shard goes through contained, and what
// panics below a function of package choreo, in what it calls and asks as well, is a fault
// of the instance. The machine may be torn: it is dropped and never used again, with all
// that the round would have done of the instance and that is not durable yet. What panics
// elsewhere ends the node, as nobody knows what is torn then; only where an instance is
// read for somebody, which changes nothing, that answer alone fails.
//
// The instance stays aside as long as the process runs: its facts would lead to the same,
// so nobody is asked for them, and what is said of it is neither read nor answered. The
// next start tries it once more, which may be of a newer version.
//
// What Go cannot recover from ends the node all the same: memory that is full, a stack
// that is, and maps that are written by two at once.

// faults are the instances at which machines panicked in this process. Shards and those
// who receive ask it.
type faults struct {
	loud bool         // nothing is contained (Parts.Loud)
	n    atomic.Int64 // how many there are, to be asked without the lock

	mu sync.Mutex // guards what follows; it calls nobody
	// of says whether an instance was stored, and so is set aside; another one is not
	// taken in.
	of      map[workflow.InstanceID]bool
	refused int             // of those, how many were not stored
	places  map[string]bool // from which the stack was logged

	lines *ration.Budgets // of the log, by whose instances they are about
}

const (
	// maxUntaken bounds how many instances are known that were not taken in. Those that
	// were set aside have room of their own (quota.go).
	maxUntaken = 1024
	// maxPlaces bounds how many stacks are logged.
	maxPlaces = 64
	// maxFaultText bounds how much of what a panic says is kept.
	maxFaultText = 200
	// maxFrames bounds how much of a stack is looked at.
	maxFrames = 4096
)

// faultLines is how many lines of the log a member may bring about with instances at which
// this program fails; a liar can make up as many of those as it likes. The counter "faults"
// has all of them.
var faultLines = ration.Ration{Burst: 16, Each: time.Minute}

func newFaults(loud bool) *faults {
	return &faults{
		loud: loud, of: map[workflow.InstanceID]bool{}, places: map[string]bool{}, lines: ration.New(faultLines),
	}
}

// has reports whether a machine panicked at an instance.
func (f *faults) has(id workflow.InstanceID) bool {
	if f.n.Load() == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, has := f.of[id]
	return has
}

// add notes one more; of too many that were not taken in, those before are forgotten: each
// panics once more if it comes again.
func (f *faults) add(id workflow.InstanceID, stored bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.of[id]; !known && !stored {
		f.refused++
	}
	f.of[id] = stored
	if f.refused > maxUntaken {
		for x, stored := range f.of {
			if !stored && x != id {
				delete(f.of, x)
			}
		}
		f.refused = 1
	}
	f.n.Store(int64(len(f.of)))
}

// untaken is how many instances were not taken in, as far as is remembered.
func (f *faults) untaken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

// first reports whether a place was not named before.
func (f *faults) first(place string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.places[place] || len(f.places) >= maxPlaces {
		return false
	}
	f.places[place] = true
	return true
}

// fault is what is known of one.
type fault struct {
	what, place string
	machine     bool // it happened in a machine
}

func (f *fault) String() string {
	return fmt.Sprintf("this program failed at it: %s, in %s", f.what, f.place)
}

var (
	core      = reflect.TypeFor[choreo.Machine]().PkgPath() + "."
	container = reflect.TypeFor[shard]().PkgPath() + ".(*shard).contained"
)

// whereItPanicked looks at the stack of a panic, from a deferred function: where it
// happened, and whether a machine was at work.
func whereItPanicked() (place string, machine bool) {
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicked := false
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case !panicked:
		case f.Function == container:
			return place, machine
		default:
			if place == "" && !strings.HasPrefix(f.Function, "runtime.") {
				place = fmt.Sprintf("%s (line %d)", f.Function, f.Line)
			}
			machine = machine || strings.HasPrefix(f.Function, core)
		}
	}
	return place, machine
}

// contained runs what is done with one instance, and reports whether it came to its end. If
// its machine panics, the instance is set aside, and fn is not run for it again.
func (s *shard) contained(id workflow.InstanceID, fn func()) (whole bool) {
	if s.n.faults.has(id) {
		return false
	}
	if s.n.faults.loud || s.within == id { // else what is around it would go on with the machine
		fn()
		return true
	}
	before := s.within
	s.within = id
	defer func() {
		s.within = before
		if whole {
			return
		}
		place, machine := whereItPanicked()
		if !machine && !s.reading {
			return // it goes on, with its whole stack
		}
		p := recover()
		if p == nil {
			return // the goroutine ends
		}
		s.failed(id, &fault{plain.Line(plain.CutBytes(fmt.Sprint(p), maxFaultText)), place, machine})
	}()
	fn()
	return true
}

// isStored reports whether anything of an instance is stored, listed or not: its list may be
// lost, or only a part of what it began with be durable. What cannot be read now may be there.
func (x *instances) isStored(id workflow.InstanceID) bool {
	if x.index.Has(id) {
		return true
	}
	if b, err := x.store.Get(index.Key(id)); !errors.Is(err, kv.ErrNotFound) {
		var sum index.Summary
		if err != nil || decode(b, &sum) != nil || !sum.Closed {
			return true
		}
	}
	found := false
	err := x.store.Scan(factPrefix(id), func(_, _ []byte) error {
		found = true
		return errEnough
	})
	return found || err != nil
}

var errEnough = errors.New("enough was read")

// failed takes an instance out of use at which its machine panicked.
func (s *shard) failed(id workflow.InstanceID, f *fault) {
	s.n.count("faults", 1)
	if !f.machine {
		s.logFault("this program failed as it read an instance; please report it", id, f)
		s.unread = s.failure(id)
		return
	}
	q, aside := s.n.index.AsideOf(id)
	stored := s.n.isStored(id)
	s.n.faults.add(id, stored)
	s.broken = append(s.broken, id)
	delete(s.again, id)
	s.n.ledger.TakeBack(id)
	if !stored { // there is nothing yet to be set aside
		s.logFault("this program failed at an instance, which is not taken in; please report it", id, f)
		s.unload(id)
		s.n.ledger.Drop(id)
		s.n.index.Forget(id)
		s.n.call(s.n.lineup.End(id))
		return
	}
	s.logFault("this program failed at an instance, which is set aside; please report it", id, f)
	s.n.count("quarantined", 1)
	if !aside {
		q.Since = s.n.clock.Now().Wall.UnixMilli()
	}
	q.Why, q.Fault = f.String(), true
	s.n.index.Forget(id)
	s.n.quarantine(id, q)
}

// logFault logs a fault, unless there were many lately at instances of the same member, or
// by its word; the first at a place in the program is logged with the stack in any case.
func (s *shard) logFault(what string, id workflow.InstanceID, f *fault) {
	sum, _ := s.n.index.Get(id)
	if h := s.held[id]; h != nil {
		sum = h.sum
	}
	by := cmp.Or(sum.By, s.heard)
	about := []any{"instance", id, "of", by, "panic", f.what, "in", f.place}
	level := slog.LevelError
	switch {
	case s.n.faults.first(f.place):
		about = append(about, "stack", string(debug.Stack()))
	case !s.n.faults.lines.Spend(by, 1, s.n.clock.Now().Awake):
		level = slog.LevelDebug
	}
	s.log.Log(context.Background(), level, what, about...)
}

// failure is the error for whoever asked for what could not be done with an instance.
func (s *shard) failure(id workflow.InstanceID) error {
	if q, aside := s.aside[id]; aside {
		return errAside(id, q)
	}
	return api.Errorf(api.Internal, "this program failed at instance %s", id).
		WithHint("the node's log says where; please report it, and try a newer version")
}

// carryOut has an event change the machines that it is about.
func (s *shard) carryOut(e event) (err error) {
	s.heard = e.from
	defer func() { s.heard = "" }()
	if e.taken != nil {
		e.taken()
	}
	if e.of == (workflow.InstanceID{}) {
		return e.apply(s)
	}
	if !s.contained(e.of, func() { err = e.apply(s) }) {
		return s.failure(e.of)
	}
	return err
}

// read has fn read an instance, and loads it for that.
func (s *shard) read(id workflow.InstanceID, fn func(*held)) error {
	defer func() { s.reading = false }()
	return s.visit(id, func(h *held) {
		s.reading = true
		fn(h)
	})
}

// visit is read for what does more than that with what it reads: a mistake of the node's own
// is no less one there than elsewhere.
func (s *shard) visit(id workflow.InstanceID, fn func(*held)) (err error) {
	whole := s.contained(id, func() {
		var h *held
		if h, err = s.find(id); err == nil {
			fn(h)
		}
	})
	if h := s.held[id]; h != nil && h.sum.Settled { // it was loaded only to be read
		s.unload(id)
	}
	if !whole {
		return s.failure(id)
	}
	return err
}

// leaveOut takes what a round was to do of the instances that failed in it, or since the
// one before, out of it, and adds that they are set aside. Whoever waits for them is told.
func (s *shard) leaveOut(b *batch) {
	broken := s.broken
	if s.broken = nil; len(broken) == 0 {
		return
	}
	is := make(map[workflow.InstanceID]bool, len(broken))
	for _, id := range broken {
		is[id] = true
	}
	b.without(is, s.failure)
	for _, id := range broken {
		if q, aside := s.aside[id]; aside {
			b.writes = append(b.writes, kv.Write{Key: quarantineKey(id), Value: encode(q)})
		}
	}
}
