package library

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// added is what came of listing a definition or a piece. What is to be spread is in say, unless it is listed already.
type added struct {
	*listing
	say []wire.Definition
}

// add lists definitions and pieces in the name of this node; again, if they were taken off: all of them, with one write,
// or none. They are kept as their canonical forms say, so that every node has the tasks in the same order. The caller has
// not named one of them twice.
func (d *Definitions) add(now time.Time, forms ...[]byte) ([]added, error) {
	var all []*Definition
	for _, canonical := range forms {
		e, err := decode(canonical)
		if err != nil {
			return nil, api.Judge(api.Invalid, err)
		}
		all = append(all, e)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	var changes []change
	out := make([]added, len(all))
	for i, e := range all {
		l, next, err := d.claimNext(e, len(changes)+1, now)
		if err != nil {
			return nil, err
		}
		if out[i].listing = l; next != nil {
			changes = append(changes, change{l, e, next})
			out[i].say = []wire.Definition{{Notices: next.notices, Canonical: e.canonical()}}
		}
	}
	if err := d.put(changes...); err != nil {
		return nil, err
	}
	for i, e := range all {
		out[i].listing = d.listing(e.Hash)
	}
	return out, nil
}

// claimNext is the claim by which this node lists a definition, the last of so many that are new; nil: it is listed.
// The caller holds d.changing.
func (d *Definitions) claimNext(e *Definition, fresh int, now time.Time) (l *listing, next *claim, err error) {
	name := e.name()
	l = d.listing(e.Hash)
	if l == nil {
		l = newListing(e)
	}
	if d.shown(l) != nil {
		return l, nil, nil
	}
	c := l.claims[d.self]
	notices := c.all()
	if len(notices)+1 > trust.MaxNotices {
		return nil, nil, api.Errorf(api.Refused, "workflow %s was added and removed as often as it can be", name).
			WithHint("give it another version")
	}
	if n := d.count(d.self); n+fresh > d.room.All {
		return nil, nil, api.Errorf(api.Refused, "this node lists %d workflows of its own, and may list %d", n, d.room.All).
			WithHint("remove some that are not used any more: mutirao workflow remove NAME; or raise limits.workflows")
	}
	n, err := d.announce(l, d.self, len(notices)+1, d.after(name, trust.WallOf(now)))
	if err != nil {
		return nil, nil, err
	}
	if c == nil {
		c = &claim{author: d.self, first: n}
	}
	if o := d.owner(name, c); !d.entitled(o, c) {
		return nil, nil, api.Errorf(api.NotAllowed, "the name %s belongs to another: %s was the first to list something under it",
			name, o.author).
			WithHint("choose another name, or have the founder or a delegate add it")
	}
	return l, &claim{d.self, c.first, append(slices.Clip(notices), trust.EncodeNotice(n)), now}, nil
}

func (c *claim) all() [][]byte {
	if c == nil {
		return nil
	}
	return c.notices
}

// announce signs the next notice about a definition.
func (d *Definitions) announce(l *listing, author workflow.PartnerID, number int, at trust.Wall) (trust.Notice, error) {
	return d.rights.Issuer().Announce(trust.Notice{
		Definition: l.hash, Name: l.about.Name, Author: author, Number: uint64(number), Removed: number%2 == 0,
		At: at,
	})
}

// after is now or, where an edition of that name was added no earlier, the second after it:
// what is added last is the newest, also within one second, and where a clock was ahead.
func (d *Definitions) after(name workflow.Name, now trust.Wall) trust.Wall {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.ownerLocked(name, nil)
	for _, l := range d.named[name] {
		if c := d.shownLocked(l, o); c != nil {
			now = max(now, c.at()+1)
		}
	}
	return now
}

// at is when a claim was made last, by its author.
func (c *claim) at() trust.Wall {
	n, err := trust.DecodeNotice(c.notices[len(c.notices)-1])
	if err != nil { // it was decoded when it came
		return 0
	}
	return n.At
}

// count is how many definitions an author lists.
func (d *Definitions) count(author workflow.PartnerID) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listed[author].n
}

// administers reports whether a notice is by the founder or a delegate that was
// not evicted since.
func (d *Definitions) administers(n trust.Notice) bool {
	return n.Administers(d.mesh) && (len(n.Chain) == 0 || d.rights.Good(n.Chain))
}

// owner says whose a name is: the founder's and delegates', or one author's.
type owner struct {
	administrators bool
	author         workflow.PartnerID
	first          trust.Notice // the author's
}

// owner finds whose a name is, with a claim that may be new.
func (d *Definitions) owner(name workflow.Name, newcomer *claim) (o owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ownerLocked(name, newcomer)
}

func (d *Definitions) ownerLocked(name workflow.Name, newcomer *claim) (o owner) {
	look := func(c *claim) {
		admin := d.administers(c.first)
		earlier := cmp.Or(cmp.Compare(c.first.At, o.first.At), cmp.Compare(c.author, o.author)) < 0
		if o.author == "" || admin && !o.administrators || admin == o.administrators && earlier {
			o = owner{admin, c.author, c.first}
		}
	}
	if newcomer != nil {
		look(newcomer)
	}
	for _, l := range d.named[name] {
		for _, c := range l.claims {
			look(c)
		}
	}
	return o
}

// entitled reports whether a claim is by the owner of the name.
func (d *Definitions) entitled(o owner, c *claim) bool {
	return c.author == o.author || o.administrators && d.administers(c.first)
}

// shown is the claim by which a definition is listed; nil: it is not.
func (d *Definitions) shown(l *listing) *claim {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shownLocked(l, d.ownerLocked(l.about.Name, nil))
}

func (d *Definitions) shownLocked(l *listing, o owner) *claim {
	var best *claim
	for _, c := range l.claims {
		if c.listed() && d.entitled(o, c) && (best == nil || c.author < best.author) {
			best = c
		}
	}
	return best
}

// remove takes a definition off the list, and returns what is to be spread.
func (d *Definitions) remove(l *listing, now time.Time) (say []wire.Definition, err error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	l = d.listing(l.hash)
	me := d.rights.Issuer()
	mayAll := me.IsFounder() || me.Chain.Leaf().Delegate && d.rights.Good(me.Chain)
	for _, author := range slices.Sorted(maps.Keys(l.claims)) {
		c := l.claims[author]
		if !c.listed() || author != d.self && !mayAll {
			continue
		}
		n, err := d.announce(l, author, len(c.notices)+1, trust.WallOf(now))
		if err != nil {
			return say, err
		}
		next := &claim{author, c.first, append(slices.Clip(c.notices), trust.EncodeNotice(n)), now}
		if err := d.put(change{l, nil, next}); err != nil {
			return say, err
		}
		say = append(say, wire.Definition{Notices: next.notices})
		l = d.listing(l.hash)
	}
	if c := d.shown(l); c != nil {
		return say, api.Errorf(api.NotAllowed,
			"workflow %s is listed by another, %s: only its author, the founder and delegates take it off the list",
			l.about.Name, c.author).
			WithHint("ask one of them")
	}
	return say, d.forget()
}
