package log

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Log is a replica's set of facts of one instance. It is causally closed: with
// a fact it holds all that the fact's author had seen. It only grows.
type Log struct {
	instance workflow.InstanceID
	genesis  *Entry
	byID     map[fact.ID]*Entry
	chains   []*Chain
	index    map[fact.Chain]*Chain
	byAuthor map[workflow.PartnerID][]*Chain
	authored map[workflow.PartnerID]Authored // how much is here of an author
	strands  []*Strand
	order    []*Entry // as inserted: causes before effects
	all      Vector   // what is here
	heeded   Vector   // up to which facts count, at least

	forks    int                         // how many chains are forked
	cuts     int                         // how often what counts of a chain by itself became less
	forked   []*Chain                    // since somebody last looked
	forkers  map[workflow.PartnerID]bool // who forked a chain
	original map[workflow.PartnerID]bool

	Steps int // taken by what grows with the log; tests count them
}

// Instance is the instance's ID.
func (l *Log) Instance() workflow.InstanceID { return l.instance }

// Len is the number of facts.
func (l *Log) Len() int { return len(l.order) }

// Has reports whether the fact is here.
func (l *Log) Has(id fact.ID) bool { return l.byID[id] != nil }

func (l *Log) ChainOf(id fact.Chain) *Chain {
	c := l.index[id]
	if c == nil {
		c = &Chain{ID: id}
		l.index[id] = c
		l.byAuthor[id.Author] = append(l.byAuthor[id.Author], c)
		l.chains = append(l.chains, c)
	}
	return c
}

// Knew reports whether f's author knew of g when it wrote f: g is in f's past,
// or is f.
func (l *Log) Knew(f, g *Entry) bool {
	l.Steps++
	if f.Strand == g.Strand {
		return f.Fact.Seq >= g.Fact.Seq
	}
	return f.Others.At(g.Strand.Place) >= g.Fact.Seq
}

// Heed notes that a fact counts. Where there are few strands its own vector serves:
// it mostly knows all that counts.
func (l *Log) Heed(e *Entry) {
	if l.heeded.levels == 1 {
		l.heeded = l.heeded.Join(e.Past(), &l.Steps)
		return
	}
	l.heeded = l.heeded.With(e.Strand.Place, e.Fact.Seq)
}

// HeedNothing notes that nothing counts yet.
func (l *Log) HeedNothing() {
	l.heeded = Vector{}
	for _, st := range l.strands {
		st.Entered, st.Counted = st.Base(), nil
	}
}

// Heads are the last facts of all chains, sorted: what this replica knows.
func (l *Log) Heads() []fact.Head {
	hs := make([]fact.Head, 0, len(l.strands))
	for _, st := range l.strands {
		hs = append(hs, st.Last().Head())
	}
	slices.SortFunc(hs, fact.Head.Compare)
	return hs
}

// Unseen are the heads of what counts that are not in the past of prev (nil: of
// nothing), in the form of Fact.Seen. What does not count is left out: else the
// next fact of anybody who knows of a fork would make both its branches count.
func (l *Log) Unseen(prev *Entry) []fact.Head {
	var known Vector
	if prev != nil {
		known = prev.Past()
		l.heeded = l.heeded.Join(known, &l.Steps) // of the same parts, where they agree
	}
	var hs []fact.Head
	looked := map[*Chain]bool{}
	l.heeded.Beyond(known, func(k int, _ uint64) {
		c := l.strands[k].Chain
		if looked[c] {
			return
		}
		looked[c] = true
		for _, e := range c.Heeded() {
			l.Steps++
			if prev == nil || !l.Knew(prev, e) {
				hs = append(hs, e.Head())
			}
		}
	})
	slices.SortFunc(hs, fact.Head.Compare)
	return hs
}

// Covered says what somebody who has these heads has of our facts. Of disputed chains it is
// known to have another branch than ours.
func (l *Log) Covered(heads []fact.Head, disputed map[*Chain]bool) (v Vector) {
	for _, h := range heads {
		l.Steps++
		if e := l.byID[h.ID]; e != nil {
			if v.At(e.Strand.Place) < e.Fact.Seq {
				v = v.Join(e.Past(), &l.Steps)
			}
			continue
		}
		// A head beyond ours: its holder has all of that chain that we have, unless
		// the chain is known to be forked. One among ours that is not ours proves a
		// fork, and nothing that we have of the chain is known to be there.
		if c := l.index[h.Chain]; c != nil && c.ForkedAt == 0 && !disputed[c] && h.Seq > c.Strands[0].End() &&
			v.At(c.Strands[0].Place) < c.Strands[0].End() {
			v = v.With(c.Strands[0].Place, c.Strands[0].End())
		}
	}
	return v
}

// Since are the facts beyond what somebody has, causes first.
func (l *Log) Since(has Vector) []*Entry {
	var out []*Entry
	l.all.Beyond(has, func(k int, _ uint64) {
		s := l.strands[k]
		out = append(out, s.Facts[max(has.At(k), s.Base())-s.Base():]...)
	})
	slices.SortFunc(out, ByTime)
	return out
}

// Authored is how much there is of an author.
type Authored struct{ Chains, Facts, Bytes int }
