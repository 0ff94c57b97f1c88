package waits

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"
)

// Clock counts the time of one wait. Note is what whoever waits notes of it.
type Clock[N any] struct {
	elapsed time.Duration // until since
	since   time.Duration // Boot; while running
	running bool
	seen    bool // still wanted
	// Known is how many facts there were when the wait was looked at, of a kind that facts
	// may have begin again.
	Known int
	Note  N
}

// Read is the time on a clock, at a moment (Boot).
func (c *Clock[N]) Read(now time.Duration) time.Duration {
	if !c.running {
		return c.elapsed
	}
	return c.elapsed + max(now-c.since, 0)
}

// Running reports whether the clock runs: not while what it is for rests.
func (c *Clock[N]) Running() bool { return c.running }

// Clocks are all waits of a node in one instance. Those for its own tasks, and leases, stay until
// they are ended; of all others only those stay that are wanted at each pass.
type Clocks[N any] struct {
	own, others, leases map[Key]*Clock[N]
	// savedAt is when the waits were last handed out to be stored, and stored what
	// they were; every is the time between two savings, everyOwn what it must be for
	// the own ones, everyLease while only leases run. changed: what is stored could make a wait end too early.
	savedAt, every, everyOwn, everyLease time.Duration
	stored                               map[Key]bool
	changed                              bool
	steps                                *int
}

// New counts no wait yet. It adds to steps how many waits it looks at.
func New[N any](steps *int) Clocks[N] {
	return Clocks[N]{
		own: map[Key]*Clock[N]{}, others: map[Key]*Clock[N]{}, leases: map[Key]*Clock[N]{},
		every: saveEvery, everyOwn: saveEvery, everyLease: saveLeases,
		stored: map[Key]bool{}, steps: steps,
	}
}

// of are the clocks among which a wait's is.
func (cs *Clocks[N]) of(k Key) map[Key]*Clock[N] {
	switch {
	case k.Kind.own():
		return cs.own
	case k.Kind == Lease:
		return cs.leases
	}
	return cs.others
}

// Get is the clock of a wait; nil: it has none.
func (cs *Clocks[N]) Get(k Key) *Clock[N] { return cs.of(k)[k] }

// Own are the clocks of this node's own tasks, in no order.
func (cs *Clocks[N]) Own() iter.Seq2[Key, *Clock[N]] { return maps.All(cs.own) }

// Others are all other clocks, in no order.
func (cs *Clocks[N]) Others() iter.Seq2[Key, *Clock[N]] { return maps.All(cs.others) }

// Leases ends those leases of which runs says so by their names, and has all stored as often as the
// shortest of the others asks for: runs says how long they last.
func (cs *Clocks[N]) Leases(runs func(name string) (total time.Duration, yes bool)) {
	cs.everyLease = saveLeases
	for k := range cs.leases {
		*cs.steps++
		total, yes := runs(k.Name)
		if !yes {
			delete(cs.leases, k)
			continue
		}
		cs.LeaseLasts(total)
	}
}

// LeaseLasts is Lasts for a lease, until these are gone through once more (Leases).
func (cs *Clocks[N]) LeaseLasts(total time.Duration) {
	cs.everyLease = min(cs.everyLease, max(saveWithin(total), saveEvery))
}

// LenLeases is how many leases there are.
func (cs *Clocks[N]) LenLeases() int { return len(cs.leases) }

// Len is how many waits there are.
func (cs *Clocks[N]) Len() int { return len(cs.own) + len(cs.others) + len(cs.leases) }

// LenOthers is how many there are but for own tasks.
func (cs *Clocks[N]) LenOthers() int { return len(cs.others) }

// Run says that a wait is wanted, and whether its clock runs now. It returns the time on it.
func (cs *Clocks[N]) Run(k Key, running bool, now time.Duration) time.Duration {
	c := cs.Get(k)
	if c == nil {
		c = cs.Begin(k, 0, now)
		c.running = running
	}
	c.seen = true
	if c.running != running {
		c.elapsed, c.since, c.running = c.Read(now), now, running
		cs.changed = cs.changed || !running && cs.stored[k]
	}
	return c.Read(now)
}

// RunFrom is Run for a wait of which some had passed already when it began here.
func (cs *Clocks[N]) RunFrom(elapsed time.Duration, k Key, running bool, now time.Duration) time.Duration {
	if cs.Get(k) == nil && elapsed > 0 {
		cs.Begin(k, elapsed, now)
	}
	return cs.Run(k, running, now)
}

// Begin starts a wait of which some has passed already. It is stored at once among few,
// and where what is stored is an earlier wait of the same name. One of many is stored
// with the next waits, so that each costs only itself: a crash before makes it longer.
func (cs *Clocks[N]) Begin(k Key, elapsed, now time.Duration) *Clock[N] {
	c := &Clock[N]{elapsed: elapsed, since: now, running: true}
	cs.of(k)[k] = c
	cs.changed = cs.changed || cs.stored[k] || cs.Len() <= fewWaits
	return c
}

// fewWaits is how many waits of an instance are all stored whenever one begins.
const fewWaits = 32

// BeginAfter starts a wait once what it is for was handed over.
func (cs *Clocks[N]) BeginAfter(k Key, elapsed, now time.Duration) *Clock[N] {
	delete(cs.others, k.HandOver())
	return cs.Begin(k, elapsed, now)
}

// Drop ends a wait for which something was found that it had not counted from its
// beginning. What is stored of it goes at once: restored, it would be over too early.
func (cs *Clocks[N]) Drop(k Key) {
	delete(cs.of(k), k)
	cs.changed = cs.changed || cs.stored[k]
}

// End ends a wait: what it was for has come.
func (cs *Clocks[N]) End(k Key) { delete(cs.of(k), k) }

// Only ends the waits for own tasks that are not among these. What is stored of them goes at once, as in Sweep.
func (cs *Clocks[N]) Only(wanted map[Key]bool) {
	for k := range cs.own {
		*cs.steps++
		if !wanted[k] {
			cs.changed = cs.changed || cs.stored[k]
			delete(cs.own, k)
		}
	}
}

// Clear ends all waits.
func (cs *Clocks[N]) Clear() {
	clear(cs.others)
	clear(cs.own)
	clear(cs.leases)
}

// Pass begins a pass over what is waited for of others: only what it finds wanted stays (Sweep).
func (cs *Clocks[N]) Pass() {
	cs.every = saveEvery
	for _, c := range cs.others {
		*cs.steps++
		c.seen = false
	}
}

// Keep has a wait, or the one for its hand-over, stay as it is.
func (cs *Clocks[N]) Keep(k Key) {
	for _, k := range []Key{k, k.HandOver()} {
		if c := cs.others[k]; c != nil {
			c.seen = true
		}
	}
}

// Sweep ends those waits for others that nobody wanted since the pass began. What is stored of them goes at once:
// an instance that is loaded again would have the wait go on, with all the time in between, if it is wanted by then.
// Of many that are each about an attempt it goes with the next waits, so that each costs only itself.
func (cs *Clocks[N]) Sweep() {
	for k, c := range cs.others {
		*cs.steps++
		if !c.seen {
			delete(cs.others, k)
			cs.changed = cs.changed || cs.stored[k] && (k.Kind.whole() || len(cs.others) < fewWaits)
		}
	}
}

// saveEvery is how often at least running waits are stored; short waits are stored
// more often, so that a reboot with a wrong clock costs no more than a twentieth of a
// wait (docs/design.md, idea 8).
const (
	saveEvery    = 30 * time.Second
	minSaveEvery = time.Second
	// saveLeases is how often leases are stored where nothing else runs: they last for days, and there may be
	// many instances of which nothing else is clocked.
	saveLeases = time.Hour
)

// saveWithin is how often waits are stored while one of that length runs.
func saveWithin(total time.Duration) time.Duration { return max(total/20, minSaveEvery) }

// Lasts says how long a wait lasts that runs: short ones have the waits stored more often, until
// the next pass.
func (cs *Clocks[N]) Lasts(total time.Duration) { cs.every = min(cs.every, saveWithin(total)) }

// OwnLasts is Lasts for a wait for an own task, until those are gone through once more (OwnAgain).
func (cs *Clocks[N]) OwnLasts(total time.Duration) { cs.everyOwn = min(cs.everyOwn, saveWithin(total)) }

// OwnAgain says that the own tasks are gone through once more.
func (cs *Clocks[N]) OwnAgain() { cs.everyOwn = saveEvery }

// ToSave are the waits to be stored now, among so many facts; nil: nothing needs to be.
func (cs *Clocks[N]) ToSave(now time.Duration, facts int) *Stored {
	every, _ := cs.pace()
	n, due := cs.Len(), now >= cs.savedAt+every
	if n == 0 && len(cs.stored) == 0 || n > 0 && !cs.changed && !due {
		cs.changed = false
		return nil
	}
	cs.changed, cs.savedAt = false, now
	ws := &Stored{Known: facts}
	clear(cs.stored)
	for _, clocks := range []map[Key]*Clock[N]{cs.own, cs.others, cs.leases} {
		for k, c := range clocks {
			*cs.steps++
			cs.stored[k] = true
			ws.All = append(ws.All, Wait{Key: k, Elapsed: c.Read(now), Running: c.running})
			if k.Kind.ofFacts() {
				ws.Known = min(ws.Known, c.Known)
			}
		}
	}
	slices.SortFunc(ws.All, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return ws
}

// NextSave is when the waits should be stored again; ok is false while none runs.
func (cs *Clocks[N]) NextSave() (at time.Duration, ok bool) {
	every, ok := cs.pace()
	return cs.savedAt + every, ok
}

// pace is the time between two savings; ok is false while no wait runs.
func (cs *Clocks[N]) pace() (every time.Duration, ok bool) {
	ok = len(cs.own) > 0 // these run
	for _, c := range cs.others {
		ok = ok || c.running
	}
	if !ok && len(cs.leases) > 0 {
		return cs.everyLease, true
	}
	return min(cs.every, cs.everyOwn), ok
}

// Restore puts back what was stored, of which so much time has passed since. facts is how many
// there are now. If those are not here that were looked at for the waits, it is not known for
// which tasks of others time was counted: then that begins again.
func (cs *Clocks[N]) Restore(ws Stored, passed, now time.Duration, facts int) {
	for _, w := range ws.All {
		cs.stored[w.Key] = true
		if w.Key.Kind.ofFacts() && ws.Known != facts {
			cs.changed = true
			continue
		}
		c := &Clock[N]{elapsed: w.Elapsed, since: now, running: w.Running, seen: true}
		if w.Running {
			c.elapsed += max(passed, 0)
		}
		if w.Key.Kind.ofFacts() {
			c.Known = facts
		}
		cs.of(w.Key)[w.Key] = c
	}
}
