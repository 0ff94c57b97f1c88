package log

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
)

// Two facts with one number of one chain prove a fork: a lying author, or a
// store that was restored without anybody noticing. The chain stops there; the
// facts from the fork on count only where a good fact of another author has
// them in its past (docs/design.md, idea 1), so that what others built upon stays.
// That author must have taken part from the start: a fork could appoint others.
// A fact is good if it counts as far as forks go. It vouches also if it does not
// count for another reason: that reason may be what it knew (choreo/fact/limits.go, MaxVerdicts).
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
const MaxBranches = 8

// TakeForked are the chains that turned out to be forked since it was last called.
func (l *Log) TakeForked() []*Chain {
	forked := l.forked
	l.forked = nil
	return forked
}

// fork notes that two facts of a chain have a number.
func (l *Log) fork(c *Chain, number uint64) {
	if c.ForkedAt == 0 {
		l.forks++
		l.forked = append(l.forked, c)
		l.forkers[c.ID.Author] = true
	}
	if c.ForkedAt == 0 || (number < c.ForkedAt && len(c.Strands) <= MaxBranches) || len(c.Strands) == MaxBranches+1 {
		l.cuts++
	}
	if c.ForkedAt == 0 || number < c.ForkedAt {
		c.ForkedAt = number
	}
}

// Cut is the first number of a forked chain that does not count by itself.
func (c *Chain) Cut() uint64 {
	if len(c.Strands) > MaxBranches {
		return 1
	}
	return c.ForkedAt
}

// alone is the number up to which a strand's facts count by themselves.
func (l *Log) alone(s *Strand) uint64 {
	n := s.End()
	if s.Chain.ForkedAt > 0 {
		n = max(min(n, s.Chain.Cut()-1), s.Base())
	}
	if s == l.genesis.Strand {
		n = max(n, 1)
	}
	return n
}

// mark notes of facts, causes first, which are beyond a fork.
func (l *Log) mark(es []*Entry) {
	for _, e := range es {
		l.Steps++
		c := e.Strand.Chain
		e.Beyond = c.ForkedAt > 0 && e.Fact.Seq >= c.Cut() && e != l.genesis ||
			slices.ContainsFunc(e.Parents, func(p *Entry) bool { return p.Beyond })
	}
}

// Recount works out what counts of every strand, as far as forks go.
func (l *Log) Recount() {
	var grown []grown
	l.mark(l.order)
	for _, s := range l.strands {
		s.Good = s.Base()
	}
	for _, s := range l.strands {
		grown = l.raise(s, l.alone(s), grown)
	}
	l.vouch(grown)
}

// Count works out what new facts, causes first, change of what counts. It
// returns the strands of which more counts now.
func (l *Log) Count(es []*Entry) []*Strand {
	var grown []grown
	l.mark(es)
	for _, e := range es {
		if s := e.Strand; s.Chain.ForkedAt == 0 || e.Fact.Seq < s.Chain.Cut() {
			grown = l.raise(s, e.Fact.Seq, grown)
		}
	}
	return l.vouch(grown)
}

// grown is a strand of which more counts than before: than up to number was.
type grown struct {
	strand *Strand
	was    uint64
}

func (l *Log) raise(s *Strand, to uint64, q []grown) []grown {
	if to <= s.Good {
		return q
	}
	q = append(q, grown{s, s.Good})
	s.Good = to
	return q
}

// vouch has what came to count vouch for what its authors knew of others. It
// returns the strands of which more counts now, some perhaps twice.
func (l *Log) vouch(q []grown) (more []*Strand) {
	for ; len(q) > 0; q = q[1:] {
		s, was := q[0].strand, q[0].was
		more = append(more, s)
		author := s.Chain.ID.Author
		if !l.original[author] {
			continue
		}
		var before Vector
		if was > s.Base() {
			before = s.Number(was).Others
		}
		s.Number(s.Good).Others.Beyond(before, func(k int, n uint64) {
			l.Steps++
			if of := l.strands[k]; of.Chain.ID.Author != author {
				q = l.raise(of, n, q)
			}
		})
	}
	return more
}

// Forks are the chains that are proven to be forked, with the first number
// that two facts have.
func (l *Log) Forks() []fact.Head {
	if l.Forked() == 0 {
		return nil
	}
	var out []fact.Head
	for _, c := range l.chains {
		if c.ForkedAt > 0 {
			out = append(out, fact.Head{Chain: c.ID, Seq: c.ForkedAt})
		}
	}
	slices.SortFunc(out, fact.Head.Compare)
	return out
}
