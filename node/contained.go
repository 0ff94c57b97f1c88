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

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file runs what is done with an instance so that a panic in its machine stops that instance and nothing else.

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
		sum, unread := index.ReadSummary(b)
		if err != nil || unread != nil || !sum.Closed {
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
