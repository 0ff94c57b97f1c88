package log

import (
	"cmp"
	"sort"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Entry is a fact in a log.
type Entry struct {
	Fact    *fact.Fact
	ID      fact.ID
	Raw     []byte
	Att     *fact.Attestation // of this fact as a head; nil: a later one of the chain has one, or we are the author
	Index   int               // place in Log.Order, and in the store
	Strand  *Strand
	Time    uint64 // logical: 1 + the greatest in its past
	Others  Vector // of its past, what is in other strands than its own
	whole   Vector // once asked for: its past, itself included
	Parents []*Entry
	Beyond  bool   // it, or something in its past, comes after a fork, and does not count by itself (fork.go)
	Counted bool   // see State; facts without entitlement do not count
	Why     string // it does not count
	Told    bool   // and that is counted (Machine.Uncounted)
	Late    bool   // of a verdict: its author knew of a higher office than it claims

	// Checked: what the fact shows was checked by somebody who trusts; then roles are
	// what it proves, or untrue says why it proves nothing (choreo/state/rights.go).
	Checked bool
	Roles   []workflow.RoleName
	Untrue  error
	// Word is what the word of a person in it proved, once it was checked (choreo/state/claims.go); nil:
	// there is none.
	Word *Voiced
}

// Chain is the facts of one author in one incarnation.
type Chain struct {
	ID      fact.Chain
	Strands []*Strand // the first is the one that came first here; more than one: it is forked
	// ForkedAt is the first number that two facts have; 0: none.
	ForkedAt uint64
}

// Strand is a part of a chain in which each fact follows the one before: the
// whole chain, or what came first of it here, or a branch of it.
type Strand struct {
	Place int // in Log.Strands
	Chain *Chain
	from  *Entry   // the fact that it branches off from; nil: it starts the chain
	Facts []*Entry // the first follows from
	// Good is the number up to which its facts count as far as forks go, entered
	// the one up to which State has applied them. Kept where some chain is forked.
	Good, Entered uint64
	Counted       []*Entry // those that count, in order
	Said          int      // how often one counted that says more than what its author has seen
}

// Voiced is whose word a claim has in it; or why it is nobody's.
type Voiced struct {
	By     fact.Speaker
	Untrue error
	// Adopted are the data that an adoption takes, once it counted (choreo/state/adopting.go).
	Adopted map[workflow.DataName]workflow.Value
}

func (e *Entry) Head() fact.Head {
	return fact.Head{Chain: e.Fact.Chain, Seq: e.Fact.Seq, ID: e.ID}
}

// Past is all that a fact's author knew, the fact included.
func (e *Entry) Past() Vector {
	if e.whole.root == nil {
		e.whole = e.Others.With(e.Strand.Place, e.Fact.Seq)
	}
	return e.whole
}

// Gave is what a success brought.
func (e *Entry) Gave() map[workflow.DataName]workflow.Value {
	if ok := e.Fact.Body.Success; ok != nil {
		return ok.Outputs
	}
	return e.Word.Adopted
}

// Speaker is who spoke in a fact, as far as that was checked; a zero one: nobody.
func (e *Entry) Speaker() fact.Speaker {
	if e.Word == nil {
		return fact.Speaker{}
	}
	return e.Word.By
}

// Bears reports whether a fact bears upon what counts: it counts, or vouches for others that
// a fork took away, or proves a fork (fork.go). One that only sets aside says nothing: else
// honest nodes would set each other's words aside without end.
func (e *Entry) Bears() bool {
	if c := e.Strand.Chain; c.ForkedAt > 0 && (e.Fact.Seq == e.Strand.Base()+1 || e.Fact.Seq == c.ForkedAt) {
		return true
	}
	seen := e.Fact.Body.Seen
	return len(e.Fact.Seen) > 0 || e.Counted && (seen == nil || len(seen.Aside) == 0)
}

// Weight is about how many bytes a fact takes in a bundle.
func (e *Entry) Weight() int {
	n := len(e.Raw) + 16
	if e.Att != nil {
		n += e.Att.Size()
	}
	return n
}

// ByTime orders facts by logical time, then hash: a total order in which
// causes come before effects.
func ByTime(a, b *Entry) int {
	if n := cmp.Compare(a.Time, b.Time); n != 0 {
		return n
	}
	return a.ID.Compare(b.ID)
}

// Heeded are a chain's last facts that count, of each of its branches.
func (c *Chain) Heeded() []*Entry {
	followed := map[*Entry]bool{}
	for _, s := range c.Strands[1:] {
		if len(s.Counted) > 0 {
			followed[s.from] = true
		}
	}
	var out []*Entry
	for _, s := range c.Strands {
		if e := s.lastCounted(); e != nil && !followed[e] {
			out = append(out, e)
		}
	}
	return out
}

// Base is the number before that of the strand's first fact.
func (s *Strand) Base() uint64 {
	if s.from == nil {
		return 0
	}
	return s.from.Fact.Seq
}

// End is the number of the strand's last fact.
func (s *Strand) End() uint64 { return s.Base() + uint64(len(s.Facts)) }

// Number is the strand's fact of that number, which is one of its own.
func (s *Strand) Number(n uint64) *Entry { return s.Facts[n-s.Base()-1] }

// Last is the strand's last fact.
func (s *Strand) Last() *Entry { return s.Facts[len(s.Facts)-1] }

// lastCounted is the strand's last fact that counts; nil: none does.
func (s *Strand) lastCounted() *Entry {
	if len(s.Counted) == 0 {
		return nil
	}
	return s.Counted[len(s.Counted)-1]
}

// CountedBefore are the strand's facts that count, of those before a number.
func (s *Strand) CountedBefore(n uint64) []*Entry {
	return s.Counted[:sort.Search(len(s.Counted), func(i int) bool { return s.Counted[i].Fact.Seq >= n })]
}
