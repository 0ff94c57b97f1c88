package choreo

import (
	"math/bits"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file names, in `seen` facts of this node's own, what it has of an author of whom it takes no more in (admit.go).

// nameAll names, once, all that is here of an author of whom no more is taken in for
// itself: others may have other facts of it. It reports whether a fact was added.
func (d *decision) nameAll() (added bool) {
	d.readOn()
	authors := d.door.authors
	d.door.authors = nil
	for _, p := range authors {
		if !d.mustName(p) {
			continue
		}
		seen, aside := d.unnamedOf(p)
		if len(seen)+len(aside) == 0 {
			continue
		}
		seen = append(seen, d.log.Unseen(d.own)...) // what else is new goes with it
		slices.SortFunc(seen, fact.Head.Compare)
		slices.SortFunc(aside, fact.Head.Compare)
		for seen = slices.Compact(seen); len(seen)+len(aside) > 0; {
			s, a := min(len(seen), fact.MaxHeadsSeen), min(len(aside), fact.MaxHeadsSeen)
			if _, err := d.say(fact.Body{Seen: &fact.Seen{Aside: aside[:a]}}, seen[:s]); err == nil {
				added = true
			}
			seen, aside = seen[s:], aside[a:]
		}
	}
	return added
}

// mustName reports whether an author has come to a limit here, or has forked a chain
// too often, of which this node has not yet named as much as that. It says so once.
func (m *Machine) mustName(p workflow.PartnerID) (must bool) {
	d, of := &m.door, m.log.Authored()[p]
	stood, here := d.stood[p], d.spent(of)
	if d.cut[p] {
		here.cut = bits.Len(uint(of.Facts))
	}
	if here != stood {
		d.stood[p] = here
		must = d.spent(m.namedOf(p)) != here
	}
	for _, c := range m.log.ByAuthor()[p] {
		if len(c.Strands) <= log.MaxBranches || d.forked[c] {
			continue
		}
		d.forked[c] = true
		named := 0
		for _, s := range c.Strands {
			named += state.AsInt(m.namedIn(s) > s.Base())
		}
		must = must || named <= log.MaxBranches
	}
	return must
}

// namedOf is how much of an author this node has named.
func (m *Machine) namedOf(p workflow.PartnerID) (of log.Authored) {
	for _, c := range m.log.ByAuthor()[p] {
		known := false
		for _, s := range c.Strands {
			n := m.namedIn(s)
			known = known || n > s.Base()
			of.Facts += int(n - s.Base())
			for _, e := range s.Facts[:n-s.Base()] {
				m.log.Steps++
				of.Bytes += len(e.Raw)
			}
		}
		of.Chains += state.AsInt(known)
	}
	return of
}

// unnamedOf are the last facts of an author's chains that this node has not named: seen
// is what counts, the rest is set aside. A fork took that away, or its author was not
// entitled to it; others are to have it too, but who has no room for it is to have what
// this node says all the same.
func (m *Machine) unnamedOf(p workflow.PartnerID) (seen, aside []fact.Head) {
	for _, c := range m.log.ByAuthor()[p] {
		counts := c.Heeded()
		for _, s := range c.Strands {
			if last := s.Last(); !slices.Contains(counts, last) && m.namedIn(s) < last.Fact.Seq {
				aside = append(aside, last.Head())
			}
		}
		for _, e := range counts {
			if m.own == nil || !m.log.Knew(m.own, e) {
				seen = append(seen, e.Head())
			}
		}
	}
	return seen, aside
}
