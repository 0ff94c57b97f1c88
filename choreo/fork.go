package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Two facts with one number of one chain prove a fork: a lying author, or a
// store that was restored without anybody noticing. The chain stops there; the
// facts from the fork on count only where a good fact of another author has
// them in its past (docs/design.md, idea 1), so that what others built upon stays.
// That author must have taken part from the start: a fork could appoint others.
// A fact is good if it counts as far as forks go. It vouches also if it does not
// count for another reason: that reason may be what it knew (limits.go, MaxVerdicts).
// If only what counts vouched, it would count just where what it vouches for does not.
//
// With a fact those before it in its chain count as well. So what counts is a
// number for each strand, and one fork costs its own length once:
//
//	good(strand) = the greatest of: the number before the fork; what the good
//	               facts of others who took part from the start knew of it
//
// Nobody is restored from a backup unnoticed that often: of a chain with more
// than maxBranches nothing counts by itself. So a liar has everything applied again
// at most so often, however many forks it makes.
const maxBranches = 8

// takeForked are the chains that turned out to be forked since it was last called.
func (l *Log) takeForked() []*chain {
	forked := l.forked
	l.forked = nil
	return forked
}

// fork notes that two facts of a chain have a number.
func (l *Log) fork(c *chain, number uint64) {
	if c.forkedAt == 0 {
		l.forks++
		l.forked = append(l.forked, c)
		l.forkers[c.id.Author] = true
	}
	if c.forkedAt == 0 || (number < c.forkedAt && len(c.strands) <= maxBranches) || len(c.strands) == maxBranches+1 {
		l.cuts++
	}
	if c.forkedAt == 0 || number < c.forkedAt {
		c.forkedAt = number
	}
}

// dispute notes that a peer has a fact which forks a chain that is not forked here, and
// which is not taken in: numbers say nothing of what that peer has of the chain.
func (m *Machine) dispute(from workflow.PartnerID, f Received) {
	c, p := m.log.index[f.Fact.Chain], m.peer(from)
	if c == nil || c.forkedAt > 0 || p.disputed[c] || f.Fact.Seq > c.strands[0].end() {
		return
	}
	if p.disputed == nil {
		p.disputed = map[*chain]bool{}
	}
	p.disputed[c] = true
	p.acked = p.acked.with(c.strands[0].place, 0).join(m.log.covered(p.heads, p.disputed), &m.log.steps)
	m.perhapsDue[from] = true
}

// cut is the first number of a forked chain that does not count by itself.
func (c *chain) cut() uint64 {
	if len(c.strands) > maxBranches {
		return 1
	}
	return c.forkedAt
}

// alone is the number up to which a strand's facts count by themselves.
func (l *Log) alone(s *strand) uint64 {
	n := s.end()
	if s.chain.forkedAt > 0 {
		n = max(min(n, s.chain.cut()-1), s.base())
	}
	if s == l.genesis.strand {
		n = max(n, 1)
	}
	return n
}

// mark notes of facts, causes first, which are beyond a fork.
func (l *Log) mark(es []*entry) {
	for _, e := range es {
		l.steps++
		c := e.strand.chain
		e.beyond = c.forkedAt > 0 && e.fact.Seq >= c.cut() && e != l.genesis ||
			slices.ContainsFunc(e.parents, func(p *entry) bool { return p.beyond })
	}
}

// recount works out what counts of every strand, as far as forks go.
func (l *Log) recount() {
	var grown []grown
	l.mark(l.order)
	for _, s := range l.strands {
		s.good = s.base()
	}
	for _, s := range l.strands {
		grown = l.raise(s, l.alone(s), grown)
	}
	l.vouch(grown)
}

// count works out what new facts, causes first, change of what counts. It
// returns the strands of which more counts now.
func (l *Log) count(es []*entry) []*strand {
	var grown []grown
	l.mark(es)
	for _, e := range es {
		if s := e.strand; s.chain.forkedAt == 0 || e.fact.Seq < s.chain.cut() {
			grown = l.raise(s, e.fact.Seq, grown)
		}
	}
	return l.vouch(grown)
}

// grown is a strand of which more counts than before: than up to number was.
type grown struct {
	strand *strand
	was    uint64
}

func (l *Log) raise(s *strand, to uint64, q []grown) []grown {
	if to <= s.good {
		return q
	}
	q = append(q, grown{s, s.good})
	s.good = to
	return q
}

// vouch has what came to count vouch for what its authors knew of others. It
// returns the strands of which more counts now, some perhaps twice.
func (l *Log) vouch(q []grown) (more []*strand) {
	for ; len(q) > 0; q = q[1:] {
		s, was := q[0].strand, q[0].was
		more = append(more, s)
		author := s.chain.id.Author
		if !l.original[author] {
			continue
		}
		var before vector
		if was > s.base() {
			before = s.number(was).others
		}
		s.number(s.good).others.beyond(before, func(k int, n uint64) {
			l.steps++
			if of := l.strands[k]; of.chain.id.Author != author {
				q = l.raise(of, n, q)
			}
		})
	}
	return more
}

// Forked reports whether a partner's last chain here is proven to be forked.
func (m *Machine) Forked(p workflow.PartnerID) bool {
	chains := m.log.byAuthor[p]
	return len(chains) > 0 && chains[len(chains)-1].forkedAt > 0
}

// Forks are the chains that are proven to be forked, with the first number
// that two facts have.
func (l *Log) Forks() []Head {
	var out []Head
	for _, c := range l.chains {
		if c.forkedAt > 0 {
			out = append(out, Head{Chain: c.id, Seq: c.forkedAt})
		}
	}
	slices.SortFunc(out, Head.compare)
	return out
}
