package library

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Why what a partner lists is not taken in.
var (
	errNoRoom = errors.New(
		"a partner lists more workflows than this node may: remove some, or raise limits.workflows")
	errNoShare  = errors.New("one member lists more workflows than one may: it removes some, or raise limits.workflows")
	errNotTheir = errors.New("a workflow was listed under a name that belongs to another")
	errTooFast  = errors.New("definitions of a partner come faster than they are read; it is asked again")
)

// offer is what somebody says of a definition, read and proved.
type offer struct {
	claim
	hash      workflow.Hash
	name      workflow.Name
	canonical []byte
}

// read reads an offer. Signatures are proved as far as they are not known here.
func (d *Definitions) read(w wire.Definition) (*offer, error) {
	o := &offer{canonical: w.Canonical, claim: claim{notices: w.Notices}}
	var known [][]byte
	for i, b := range w.Notices {
		n, err := trust.DecodeNotice(b)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			o.first, o.author, o.hash, o.name = n, n.Author, n.Definition, n.Name
			if l := d.listing(o.hash); l != nil {
				known = l.claims[o.author].all()
			}
		}
		if n.Definition != o.hash || n.Author != o.author || n.Name != o.name || n.Number != uint64(i+1) {
			return nil, fmt.Errorf("notice %d of workflow %s by %s does not follow those before it", n.Number, n.Name,
				n.Author)
		}
		if i < len(known) && bytes.Equal(known[i], b) {
			continue
		}
		if err := n.Verify(d.mesh); err != nil {
			return nil, err
		}
		if n.Issuer != n.Author && !d.administers(n) {
			return nil, said.Errorf("notice of workflow %s by %s, who administers no more: %w",
				n.Name, n.Issuer, trust.ErrNotAllowed)
		}
	}
	return o, nil
}

// merge takes in what a peer says of a definition and reports whether it was news.
// spend is asked before a definition is taken apart: false puts that off.
func (d *Definitions) merge(
	w wire.Definition, now time.Time, spend func(author workflow.PartnerID, bytes int) bool,
) (news bool, author workflow.PartnerID, err error) {
	if len(w.Notices) == 0 {
		return false, "", errors.New("a definition of nobody's")
	}
	first, err := trust.DecodeNotice(w.Notices[0])
	if err != nil {
		return false, "", err
	}
	l := d.listing(first.Definition)
	if l != nil && len(l.claims[first.Author].all()) >= len(w.Notices) {
		return false, "", nil
	}
	o, err := d.read(w)
	if err != nil {
		return false, "", err
	}
	listed := o.listed()
	if !listed && (l == nil || l.claims[o.author] == nil) {
		d.notAway(o.stamp(o.hash))
		return false, "", nil // the removal of what was never listed here, or is forgotten
	}
	var e *Definition
	if listed && (l == nil || l.bare) {
		if e = d.Fresh(o.hash); e == nil {
			if !spend(o.author, len(o.canonical)) {
				return false, o.author, errTooFast
			}
			if e, err = decode(o.canonical); err != nil {
				return false, "", err
			}
		}
		if e.Hash != o.hash || e.name() != o.name {
			return false, "", fmt.Errorf("definition %s came under the name of another", e.name())
		}
	} else if l.about.Name != o.name {
		return false, "", fmt.Errorf("definition %s came under the name of another", l.about.Name)
	}
	return d.take(o, e, now)
}

// take takes in an offer that is in order, if there is room for it.
func (d *Definitions) take(o *offer, e *Definition, now time.Time) (news bool, author workflow.PartnerID, err error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	l := d.listing(o.hash)
	switch {
	case l == nil && e == nil, l != nil && l.bare && e == nil && o.listed():
		return false, "", nil // it was swept away meanwhile: its sender is asked again
	case l == nil:
		l = newListing(e)
	}
	old := l.claims[o.author]
	if len(old.all()) >= len(o.notices) {
		return false, "", nil // it came by another way meanwhile
	}
	if o.listed() && !old.listed() {
		if own := d.owner(o.name, &o.claim); !d.entitled(own, &o.claim) {
			err = d.turnAway(o, errNotTheir)
			if d.shown(l) != nil {
				err = nil // it is listed, by whose name it is: nothing is refused
			}
			return false, o.author, err
		}
		if err := d.roomFor(&o.claim, l.size); err != nil {
			return false, o.author, d.turnAway(o, err)
		}
	}
	c := o.claim
	c.edited = now
	if old != nil {
		c.first = old.first
	}
	if err = d.put(change{l, e, &c}); err == nil && !c.listed() {
		err = d.forget()
	}
	return err == nil, o.author, err
}

// roomFor tells, by an error, why there is no room for another that an author lists.
// All others fill as much as the node's limit, and one member, unless it
// administers, a share of it. The node's own user has as much room besides.
func (d *Definitions) roomFor(c *claim, size int) error {
	if c.author == d.self {
		return nil // of a time that this node's store has forgotten
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all := 0
	for author, n := range d.listed {
		if author != d.self {
			all += n.n
		}
	}
	switch {
	case all >= d.room.All:
		return errNoRoom
	case d.administers(c.first):
	case d.listed[c.author].n >= d.room.One || d.listed[c.author].bytes+size > maxAuthorBytes:
		return errNoShare
	}
	return nil
}

// turnAway notes an offer that is not taken in.
func (d *Definitions) turnAway(o *offer, why error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.away) < d.room.All {
		d.away[o.stamp(o.hash)] = why != errNotTheir
	}
	return why
}

// notAway notes that a definition that was not taken in was removed.
func (d *Definitions) notAway(s wire.DefinitionStamp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.away, func(old wire.DefinitionStamp, _ bool) bool {
		return old.Claim == s.Claim && old.Number < s.Number
	})
}

// Trouble says what is wrong; empty: nothing.
func (d *Definitions) Trouble() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, room := range d.away {
		if room {
			return errNoRoom.Error()
		}
	}
	return ""
}

// stamps says what this node knows, for peers to compare, and what they need not
// send.
func (d *Definitions) stamps() []wire.DefinitionStamp {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Collect(maps.Keys(d.away))
	for _, l := range d.entries {
		for _, c := range l.claims {
			out = append(out, c.stamp(l.hash))
		}
	}
	slices.SortFunc(out, func(a, b wire.DefinitionStamp) int { return bytes.Compare(a.Claim[:], b.Claim[:]) })
	return out
}

// lacking are those of the stamps that say more than is known here.
func (d *Definitions) lacking(theirs []wire.DefinitionStamp) map[wire.Claim]uint64 {
	known := numbers(d.stamps())
	out := map[wire.Claim]uint64{}
	for _, s := range theirs {
		if s.Number > known[s.Claim] {
			out[s.Claim] = s.Number
		}
	}
	return out
}

func numbers(stamps []wire.DefinitionStamp) map[wire.Claim]uint64 {
	out := make(map[wire.Claim]uint64, len(stamps))
	for _, s := range stamps {
		out[s.Claim] = max(s.Number, out[s.Claim])
	}
	return out
}

// newer are the entries that somebody with these stamps lacks, one after the
// other, as they are stored; an error is about one of them.
func (d *Definitions) newer(have []wire.DefinitionStamp) iter.Seq2[wire.Definition, error] {
	known := numbers(have)
	type lack struct {
		hash    workflow.Hash
		notices [][]byte
	}
	var list []lack
	owners := map[workflow.Name]owner{}
	d.mu.Lock()
	for name := range d.named {
		owners[name] = d.ownerLocked(name, nil)
	}
	byHash := func(a, b workflow.Hash) int { return bytes.Compare(a[:], b[:]) }
	for _, h := range slices.SortedFunc(maps.Keys(d.entries), byHash) {
		l := d.entries[h]
		for _, c := range l.claims {
			if s := c.stamp(h); s.Number > known[s.Claim] && d.entitled(owners[l.about.Name], c) {
				list = append(list, lack{h, c.notices})
			}
		}
	}
	d.mu.Unlock()
	return func(yield func(wire.Definition, error) bool) {
		for _, x := range list {
			w := wire.Definition{Notices: x.notices}
			var err error
			if len(x.notices)%2 == 1 {
				w.Canonical, err = d.canonical(x.hash)
			}
			if !yield(w, err) {
				return
			}
		}
	}
}
