package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file reads off the facts that are here what their authors have named of others, or set aside, and whether all
// hear that.

// readOn works out what the facts that came since mean for the door.
func (m *Machine) readOn() {
	d := &m.door
	for ; d.looked < m.log.Len(); d.looked++ {
		e := m.log.Order()[d.looked]
		author := e.Fact.Chain.Author
		if author != m.self && !slices.Contains(d.authors, author) {
			d.authors = append(d.authors, author)
		}
		for _, by := range d.aside[e.ID] {
			m.hears(by, e, d.looked)
		}
		delete(d.aside, e.ID)
		for h := range e.Fact.Aside() {
			switch x := m.log.ByID()[h.ID]; {
			case author != m.self && x == nil && m.Participates(author):
				m.door.name(author, h)
				if !slices.Contains(d.aside[h.ID], author) {
					d.aside[h.ID] = append(d.aside[h.ID], author)
				}
			case author == m.self && x != nil:
				d.ours[x.Strand] = max(d.ours[x.Strand], h.Seq)
			case x != nil:
				m.hears(author, x, d.looked)
			}
		}
	}
}

// hears notes that another has set a fact aside that is here; at is where in the log this
// became known.
func (m *Machine) hears(by workflow.PartnerID, e *log.Entry, at int) {
	c := &m.door.crowded
	if e.Fact.Seq > max(m.namedIn(e.Strand), m.namedByOthers(e.Strand)) && m.isHeard(by) {
		c.heard[e.Fact.Chain.Author] = at
	}
	if c.theirs[e.Strand] == nil {
		c.theirs[e.Strand] = map[workflow.PartnerID]uint64{}
	}
	c.theirs[e.Strand][by] = max(c.theirs[e.Strand][by], e.Fact.Seq)
}

// namedIn is up to which number this node has named a strand: it built upon that, or
// set it aside.
func (m *Machine) namedIn(s *log.Strand) uint64 {
	n := max(s.Base(), m.door.ours[s])
	if m.own != nil {
		n = max(n, m.own.Others.At(s.Place))
	}
	return n
}

// namedByOthers is up to which number others have set a strand aside so that all hear it.
func (m *Machine) namedByOthers(s *log.Strand) (n uint64) {
	for by, seq := range m.door.crowded.theirs[s] {
		if seq > n && m.isHeard(by) {
			n = seq
		}
	}
	return n
}

// isHeard reports whether all take in what an author sets aside, as far as this node knows.
// Of more chains than one, or of one that is forked, some may lack what others have.
func (m *Machine) isHeard(author workflow.PartnerID) bool {
	chains := m.log.ByAuthor()[author]
	if !m.Participates(author) || len(chains) != 1 || chains[0].ForkedAt > 0 {
		return false
	}
	for _, p := range m.peers {
		if p.refused[author] != nil {
			return false
		}
	}
	return true
}
