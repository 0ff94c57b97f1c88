package log

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/said"
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

// Errors of Insert.
var (
	// ErrMissingPast is returned when a fact's past is not wholly here; ask for it.
	ErrMissingPast = errors.New("facts before it are missing")
	// ErrOtherInstance is returned for a fact of another instance.
	ErrOtherInstance = errors.New("fact of another instance")
)

// NewLog starts a replica from an instance's genesis.
func NewLog(genesis *fact.Fact, raw []byte, id fact.ID, att *fact.Attestation) (*Log, error) {
	if genesis.Body.Genesis == nil {
		return nil, fmt.Errorf("%w: an instance starts with its genesis, not a %s", fact.ErrInvalid,
			genesis.Body.Kind())
	}
	l := &Log{
		instance: fact.InstanceOf(id), byID: map[fact.ID]*Entry{}, index: map[fact.Chain]*Chain{},
		byAuthor: map[workflow.PartnerID][]*Chain{}, authored: map[workflow.PartnerID]Authored{},
		original: map[workflow.PartnerID]bool{}, forkers: map[workflow.PartnerID]bool{},
	}
	for _, p := range genesis.Body.Genesis.Succession {
		l.original[p] = true
	}
	l.add(&Entry{Fact: genesis, ID: id, Raw: raw, Att: att, Time: 1})
	l.genesis = l.order[0]
	return l, nil
}

// Instance is the instance's ID.
func (l *Log) Instance() workflow.InstanceID { return l.instance }

// Len is the number of facts.
func (l *Log) Len() int { return len(l.order) }

// Has reports whether the fact is here.
func (l *Log) Has(id fact.ID) bool { return l.byID[id] != nil }

// Insert adds a fact whose past is here. A fact that is here already returns
// nil and no error.
func (l *Log) Insert(f *fact.Fact, raw []byte, id fact.ID, att *fact.Attestation) (*Entry, error) {
	if old := l.byID[id]; old != nil {
		if old.Att == nil {
			old.Att = att
		}
		return nil, nil
	}
	if f.Body.Genesis != nil || f.Instance != l.instance {
		return nil, ErrOtherInstance
	}
	e := &Entry{Fact: f, ID: id, Raw: raw, Att: att}
	if err := l.link(e); err != nil {
		return nil, err
	}
	l.add(e)
	return e, nil
}

// link finds the fact's parents and checks that it goes on where they end.
func (l *Log) link(e *Entry) error {
	f := e.Fact
	e.Parents = make([]*Entry, 0, 1+len(f.Seen))
	if f.Seq > 1 {
		prev := l.byID[f.Prev]
		if prev == nil {
			return said.Errorf("%w: number %d of %s", ErrMissingPast, f.Seq-1, f.Chain.Author)
		}
		if err := f.Follows(prev.Fact); err != nil {
			return err
		}
		e.Parents = append(e.Parents, prev)
	}
	for _, h := range f.Seen {
		p := l.byID[h.ID]
		if p == nil {
			return said.Errorf("%w: number %d of %s", ErrMissingPast, h.Seq, h.Chain.Author)
		}
		if err := h.Names(p.Fact); err != nil {
			return err
		}
		e.Parents = append(e.Parents, p)
	}
	return nil
}

func (l *Log) add(e *Entry) {
	e.Strand = l.strandFor(e)
	e.Others = l.othersOf(e)
	for _, p := range e.Parents {
		e.Time = max(e.Time, p.Time+1)
	}
	e.Strand.Facts = append(e.Strand.Facts, e)
	l.all.set(e.Strand.Place, e.Fact.Seq)
	author := e.Fact.Chain.Author
	of := l.authored[author]
	l.authored[author] = Authored{Chains: len(l.byAuthor[author]), Facts: of.Facts + 1, Bytes: of.Bytes + len(e.Raw)}
	l.byID[e.ID] = e
	e.Index = len(l.order)
	l.order = append(l.order, e)
}

// strandFor is the strand that a fact goes on with, a new one where none ends in
// the fact before it.
func (l *Log) strandFor(e *Entry) *Strand {
	c := l.ChainOf(e.Fact.Chain)
	var prev *Entry
	if e.Fact.Seq > 1 {
		if prev = e.Parents[0]; prev.Strand.Last() == prev {
			return prev.Strand
		}
	}
	s := &Strand{Place: len(l.strands), Chain: c, from: prev}
	s.Good, s.Entered = s.Base(), s.Base()
	l.strands = append(l.strands, s)
	c.Strands = append(c.Strands, s)
	if len(c.Strands) > 1 {
		l.fork(c, e.Fact.Seq)
	}
	return s
}

// othersOf is what a fact's author knew of other strands than the fact's own.
func (l *Log) othersOf(e *Entry) (v Vector) {
	for i, p := range e.Parents {
		l.Steps++
		switch {
		case p.Strand != e.Strand:
			if v.At(p.Strand.Place) < p.Fact.Seq {
				v = v.Join(p.Past(), &l.Steps)
			}
		case i == 0:
			v = p.Others
		}
	}
	return v
}

// Past is all that a fact's author knew, the fact included.
func (e *Entry) Past() Vector {
	if e.whole.root == nil {
		e.whole = e.Others.With(e.Strand.Place, e.Fact.Seq)
	}
	return e.whole
}

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

// Heads are the last facts of all chains, sorted: what this replica knows.
func (l *Log) Heads() []fact.Head {
	hs := make([]fact.Head, 0, len(l.strands))
	for _, st := range l.strands {
		hs = append(hs, st.Last().Head())
	}
	slices.SortFunc(hs, fact.Head.Compare)
	return hs
}

func (e *Entry) Head() fact.Head {
	return fact.Head{Chain: e.Fact.Chain, Seq: e.Fact.Seq, ID: e.ID}
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

// ByTime orders facts by logical time, then hash: a total order in which
// causes come before effects.
func ByTime(a, b *Entry) int {
	if n := cmp.Compare(a.Time, b.Time); n != 0 {
		return n
	}
	return a.ID.Compare(b.ID)
}
