package worklist

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// item is what is known of one item.
type item struct {
	Place
	placed  bool
	facts   []*Fact       // in their one order
	refused map[ID]string // facts about it that change nothing

	// What follows from the facts:

	role    workflow.RoleName // who may do it since it was passed to another role; empty: as the task says
	under   ID                // the change of policy under which it is offered; zero: by the terms
	offer   ID                // the first offer under it
	all     bool              // offered to all of the role
	offered bool              // to anybody, by whatever policy
	to      map[User]bool     // offered to these
	holds   []*Hold
	open    *Hold // the one that counts
	works   []*work
	ends    []*End // of this round, those that may count
	due     *Due   // in place of the task's
	goes    bool   // somebody who may has said that it goes on beyond the deadline there is
	orders  []*Fact
	used    map[ID]bool // orders that were carried out
	passed  bool        // it passed to the responsible user as the deadline that it has now was near
	dueTo   bool        // it did so at whatever deadline: that user may do it
	rounds  int         // how often it was reopened
	prior   map[ID]*Fact
	units   unitsFor      // when units were last counted
	counts  counted       // what it adds to loads
	cannot  map[ID]bool   // orders that cannot be carried out as it stands
	wake    time.Duration // when Decide wants to look at it (Boot); 0: never
}

// Hold is what a grant, and those that extend it, give a user.
type Hold struct {
	User   User
	Grants []ID // the first, and those by which the same user took it further
	Mode   Mode
	Begun  bool
	// Ended says why it counts no more; empty: it counts. By is the fact that ended it.
	Ended string
	By    ID
	Lost  bool // it ended since another grant, of which its author did not know, counts

	lease  Grant // the last grant, for its lease
	leased ID
	// away is until when (Boot) a lock outlasts its lease as its user is away; back: the user is back since.
	away  time.Duration
	back  bool
	after []ID // facts that ended it, as far as they are entitled
	self  bool // its user ended it
}

// has reports whether a grant is part of the hold.
func (h *Hold) has(grant ID) bool { return slices.Contains(h.Grants, grant) }

// work is a result that somebody brought, whether or not it counts (rule 8).
type work struct {
	fact *Fact
	Result
	hold *Hold // nil: its grant never counted
	// early: the item was only kept for its user, who had not taken it.
	early bool
}

// void is why a result never counts by itself, whatever becomes of its grant; empty: it may.
func (w *work) void() string {
	switch {
	case w.early:
		return notTaken
	case w.fact.Unfit != "":
		return unfit + w.fact.Unfit
	}
	return ""
}

// End is how an item ended.
type End struct {
	By      ID // the Close or the Adopt
	Failed  bool
	Adopted bool
	Order   ID // it was stopped by this; zero: it ended with a result

	work *work
}

// clear forgets what follows from the facts.
func (it *item) clear() {
	it.refused, it.to, it.used, it.prior = map[ID]string{}, map[User]bool{}, map[ID]bool{}, map[ID]*Fact{}
	it.role, it.under, it.offer, it.all, it.holds, it.open, it.works, it.ends = "", ID{}, ID{}, false, nil, nil, nil,
		nil
	it.due, it.orders, it.goes, it.passed, it.dueTo, it.rounds, it.offered = nil, nil, false, false, false, 0, false
}

// add takes a fact in. What comes last in the order of facts, as nearly all do, is read on
// top of what was read; else all are read again.
func (it *item) add(b *Board, f *Fact) {
	at, _ := slices.BinarySearchFunc(it.facts, f, (*Fact).compare)
	it.facts = slices.Insert(it.facts, at, f)
	if at == len(it.facts)-1 && !it.mayUnseat(b, f) {
		b.steps++
		it.prefer(b, f)
		it.read(b, f)
	} else {
		it.replay(b)
	}
	b.changed(it)
}

// mayUnseat reports whether a fact may change what was read of those before it: it takes
// the result of a grant that lost to another.
func (it *item) mayUnseat(b *Board, f *Fact) bool {
	c, closes := f.Body.(Close)
	if !closes {
		return false
	}
	w := it.work(c.Result)
	return w == nil || it.open == nil || w.hold != it.open
}

// replay reads all facts in their one order: so what follows does not depend on the order
// in which they came (rule 1).
func (it *item) replay(b *Board) {
	it.clear()
	for _, f := range it.facts {
		b.steps++
		it.prefer(b, f)
	}
	for _, f := range it.facts {
		b.steps++
		it.read(b, f)
	}
}

func (it *item) read(b *Board, f *Fact) {
	x, ok := f.Body.(entering)
	if !ok {
		return
	}
	if why := x.enter(b, it, f); why != "" {
		it.refused[f.ID] = why
	}
}

// prefer notes the first Close of a grant's result: of two grants whose authors did not know
// of each other, the one with it prevails, since others may have built upon it (rule 7).
func (it *item) prefer(b *Board, f *Fact) {
	c, ok := f.Body.(Close)
	if !ok || f.Partner != it.Holder {
		return
	}
	if r := b.facts[c.Result]; r != nil && b.knew(f.ID, r.ID) {
		if res, is := r.Body.(Result); is && it.prior[res.Grant] == nil {
			it.prior[res.Grant] = f
		}
	}
}

// roleNow is the role that may do the item; empty: anybody.
func (it *item) roleNow() workflow.RoleName {
	if it.role != "" {
		return it.role
	}
	return it.Task.Role
}

// end is how the item ended; nil: it did not.
func (it *item) end() *End {
	for _, e := range it.ends {
		if e.By == it.Stands {
			return e
		}
	}
	if len(it.ends) > 0 {
		return it.ends[0]
	}
	return nil
}

// holdOf is the hold that a grant is part of; nil: it never counted.
func (it *item) holdOf(grant ID) *Hold {
	for _, h := range slices.Backward(it.holds) {
		if h.has(grant) {
			return h
		}
	}
	return nil
}

// work is a result by its name; nil: none is kept.
func (it *item) work(id ID) *work {
	for _, w := range it.works {
		if w.fact.ID == id {
			return w
		}
	}
	return nil
}
