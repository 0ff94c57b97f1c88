package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Log is a replica's set of facts of one instance. It is causally closed: with
// a fact it holds all that the fact's author had seen. It only grows.
type Log struct {
	instance workflow.InstanceID
	genesis  *entry
	byID     map[FactID]*entry
	chains   []*chain
	index    map[Chain]*chain
	byAuthor map[workflow.PartnerID][]*chain
	authored map[workflow.PartnerID]authored // how much is here of an author
	strands  []*strand
	order    []*entry // as inserted: causes before effects
	all      vector   // what is here
	heeded   vector   // up to which facts count, at least

	forks    int                         // how many chains are forked
	cuts     int                         // how often what counts of a chain by itself became less
	forked   []*chain                    // since somebody last looked
	forkers  map[workflow.PartnerID]bool // who forked a chain
	original map[workflow.PartnerID]bool

	steps int // taken by what grows with the log; tests count them
}

// entry is a fact in a log.
type entry struct {
	fact    *Fact
	id      FactID
	raw     []byte
	att     *Attestation // of this fact as a head; nil: a later one of the chain has one, or we are the author
	index   int          // place in Log.order, and in the store
	strand  *strand
	time    uint64 // logical: 1 + the greatest in its past
	others  vector // of its past, what is in other strands than its own
	whole   vector // once asked for: its past, itself included
	parents []*entry
	beyond  bool   // it, or something in its past, comes after a fork, and does not count by itself (fork.go)
	counted bool   // see State; facts without entitlement do not count
	why     string // it does not count
	told    bool   // and that is counted (Machine.Uncounted)
	late    bool   // of a verdict: its author knew of a higher office than it claims

	// checked: what the fact shows was checked by somebody who trusts; then roles are
	// what it proves, or untrue says why it proves nothing (rights.go).
	checked bool
	roles   []workflow.RoleName
	untrue  error
	// word is what the word of a person in it proved, once it was checked (claims.go); nil:
	// there is none.
	word *voiced
}

// chain is the facts of one author in one incarnation.
type chain struct {
	id      Chain
	strands []*strand // the first is the one that came first here; more than one: it is forked
	// forkedAt is the first number that two facts have; 0: none.
	forkedAt uint64
}

// strand is a part of a chain in which each fact follows the one before: the
// whole chain, or what came first of it here, or a branch of it.
type strand struct {
	place int // in Log.strands
	chain *chain
	from  *entry   // the fact that it branches off from; nil: it starts the chain
	facts []*entry // the first follows from
	// good is the number up to which its facts count as far as forks go, entered
	// the one up to which State has applied them. Kept where some chain is forked.
	good, entered uint64
	counted       []*entry // those that count, in order
	said          int      // how often one counted that says more than what its author has seen
}

// base is the number before that of the strand's first fact.
func (s *strand) base() uint64 {
	if s.from == nil {
		return 0
	}
	return s.from.fact.Seq
}

// end is the number of the strand's last fact.
func (s *strand) end() uint64 { return s.base() + uint64(len(s.facts)) }

// number is the strand's fact of that number, which is one of its own.
func (s *strand) number(n uint64) *entry { return s.facts[n-s.base()-1] }

// last is the strand's last fact.
func (s *strand) last() *entry { return s.facts[len(s.facts)-1] }

// lastCounted is the strand's last fact that counts; nil: none does.
func (s *strand) lastCounted() *entry {
	if len(s.counted) == 0 {
		return nil
	}
	return s.counted[len(s.counted)-1]
}

// countedBefore are the strand's facts that count, of those before a number.
func (s *strand) countedBefore(n uint64) []*entry {
	return s.counted[:sort.Search(len(s.counted), func(i int) bool { return s.counted[i].fact.Seq >= n })]
}

// Errors of Insert.
var (
	// ErrMissingPast is returned when a fact's past is not wholly here; ask for it.
	ErrMissingPast = errors.New("facts before it are missing")
	// ErrOtherInstance is returned for a fact of another instance.
	ErrOtherInstance = errors.New("fact of another instance")
)

// NewLog starts a replica from an instance's genesis.
func NewLog(genesis *Fact, raw []byte, id FactID, att *Attestation) (*Log, error) {
	if genesis.Body.Genesis == nil {
		return nil, fmt.Errorf("%w: an instance starts with its genesis, not a %s", ErrFactInvalid, genesis.Body.Kind())
	}
	l := &Log{
		instance: InstanceOf(id), byID: map[FactID]*entry{}, index: map[Chain]*chain{},
		byAuthor: map[workflow.PartnerID][]*chain{}, authored: map[workflow.PartnerID]authored{},
		original: map[workflow.PartnerID]bool{}, forkers: map[workflow.PartnerID]bool{},
	}
	for _, p := range genesis.Body.Genesis.Succession {
		l.original[p] = true
	}
	l.add(&entry{fact: genesis, id: id, raw: raw, att: att, time: 1})
	l.genesis = l.order[0]
	return l, nil
}

// Instance is the instance's ID.
func (l *Log) Instance() workflow.InstanceID { return l.instance }

// Len is the number of facts.
func (l *Log) Len() int { return len(l.order) }

// Has reports whether the fact is here.
func (l *Log) Has(id FactID) bool { return l.byID[id] != nil }

// insert adds a fact whose past is here. A fact that is here already returns
// nil and no error.
func (l *Log) insert(f *Fact, raw []byte, id FactID, att *Attestation) (*entry, error) {
	if old := l.byID[id]; old != nil {
		if old.att == nil {
			old.att = att
		}
		return nil, nil
	}
	if f.Body.Genesis != nil || f.Instance != l.instance {
		return nil, ErrOtherInstance
	}
	e := &entry{fact: f, id: id, raw: raw, att: att}
	if err := l.link(e); err != nil {
		return nil, err
	}
	l.add(e)
	return e, nil
}

// link finds the fact's parents and checks that it goes on where they end.
func (l *Log) link(e *entry) error {
	f := e.fact
	if f.Seq > 1 {
		prev := l.byID[f.Prev]
		if prev == nil {
			return said.Errorf("%w: number %d of %s", ErrMissingPast, f.Seq-1, f.Chain.Author)
		}
		if err := f.follows(prev.fact); err != nil {
			return err
		}
		e.parents = append(e.parents, prev)
	}
	for _, h := range f.Seen {
		p := l.byID[h.ID]
		if p == nil {
			return said.Errorf("%w: number %d of %s", ErrMissingPast, h.Seq, h.Chain.Author)
		}
		if err := h.names(p.fact); err != nil {
			return err
		}
		e.parents = append(e.parents, p)
	}
	return nil
}

// follows checks that a fact goes on with the one that it names as previous.
func (f *Fact) follows(prev *Fact) error {
	if prev.Chain != f.Chain || prev.Seq != f.Seq-1 {
		return fmt.Errorf("%w: it does not follow the fact that it names as previous", ErrFactInvalid)
	}
	return nil
}

// names checks that a head says of the fact that it names which chain and number it has.
func (h Head) names(f *Fact) error {
	if f.Chain != h.Chain || f.Seq != h.Seq {
		return fmt.Errorf("%w: it misnames a head that it has seen", ErrFactInvalid)
	}
	return nil
}

func (l *Log) add(e *entry) {
	e.strand = l.strandFor(e)
	e.others = l.othersOf(e)
	for _, p := range e.parents {
		e.time = max(e.time, p.time+1)
	}
	e.strand.facts = append(e.strand.facts, e)
	l.all.set(e.strand.place, e.fact.Seq)
	author := e.fact.Chain.Author
	of := l.authored[author]
	l.authored[author] = authored{chains: len(l.byAuthor[author]), facts: of.facts + 1, bytes: of.bytes + len(e.raw)}
	l.byID[e.id] = e
	e.index = len(l.order)
	l.order = append(l.order, e)
}

// strandFor is the strand that a fact goes on with, a new one where none ends in
// the fact before it.
func (l *Log) strandFor(e *entry) *strand {
	c := l.chainOf(e.fact.Chain)
	var prev *entry
	if e.fact.Seq > 1 {
		if prev = e.parents[0]; prev.strand.last() == prev {
			return prev.strand
		}
	}
	s := &strand{place: len(l.strands), chain: c, from: prev}
	s.good, s.entered = s.base(), s.base()
	l.strands = append(l.strands, s)
	c.strands = append(c.strands, s)
	if len(c.strands) > 1 {
		l.fork(c, e.fact.Seq)
	}
	return s
}

// othersOf is what a fact's author knew of other strands than the fact's own.
func (l *Log) othersOf(e *entry) (v vector) {
	for i, p := range e.parents {
		l.steps++
		switch {
		case p.strand != e.strand:
			if v.at(p.strand.place) < p.fact.Seq {
				v = v.join(p.past(), &l.steps)
			}
		case i == 0:
			v = p.others
		}
	}
	return v
}

// past is all that a fact's author knew, the fact included.
func (e *entry) past() vector {
	if e.whole.root == nil {
		e.whole = e.others.with(e.strand.place, e.fact.Seq)
	}
	return e.whole
}

func (l *Log) chainOf(id Chain) *chain {
	c := l.index[id]
	if c == nil {
		c = &chain{id: id}
		l.index[id] = c
		l.byAuthor[id.Author] = append(l.byAuthor[id.Author], c)
		l.chains = append(l.chains, c)
	}
	return c
}

// knew reports whether f's author knew of g when it wrote f: g is in f's past,
// or is f.
func (l *Log) knew(f, g *entry) bool {
	l.steps++
	if f.strand == g.strand {
		return f.fact.Seq >= g.fact.Seq
	}
	return f.others.at(g.strand.place) >= g.fact.Seq
}

// heed notes that a fact counts. Where there are few strands its own vector serves:
// it mostly knows all that counts.
func (l *Log) heed(e *entry) {
	if l.heeded.levels == 1 {
		l.heeded = l.heeded.join(e.past(), &l.steps)
		return
	}
	l.heeded = l.heeded.with(e.strand.place, e.fact.Seq)
}

// heedNothing notes that nothing counts yet.
func (l *Log) heedNothing() {
	l.heeded = vector{}
	for _, st := range l.strands {
		st.entered, st.counted = st.base(), nil
	}
}

// heeded are a chain's last facts that count, of each of its branches.
func (c *chain) heeded() []*entry {
	followed := map[*entry]bool{}
	for _, s := range c.strands[1:] {
		if len(s.counted) > 0 {
			followed[s.from] = true
		}
	}
	var out []*entry
	for _, s := range c.strands {
		if e := s.lastCounted(); e != nil && !followed[e] {
			out = append(out, e)
		}
	}
	return out
}

// Heads are the last facts of all chains, sorted: what this replica knows.
func (l *Log) Heads() []Head {
	hs := make([]Head, 0, len(l.strands))
	for _, st := range l.strands {
		hs = append(hs, st.last().head())
	}
	slices.SortFunc(hs, Head.compare)
	return hs
}

func (e *entry) head() Head {
	return Head{Chain: e.fact.Chain, Seq: e.fact.Seq, ID: e.id}
}

// unseen are the heads of what counts that are not in the past of prev (nil: of
// nothing), in the form of Fact.Seen. What does not count is left out: else the
// next fact of anybody who knows of a fork would make both its branches count.
func (l *Log) unseen(prev *entry) []Head {
	var known vector
	if prev != nil {
		known = prev.past()
		l.heeded = l.heeded.join(known, &l.steps) // of the same parts, where they agree
	}
	var hs []Head
	looked := map[*chain]bool{}
	l.heeded.beyond(known, func(k int, _ uint64) {
		c := l.strands[k].chain
		if looked[c] {
			return
		}
		looked[c] = true
		for _, e := range c.heeded() {
			l.steps++
			if prev == nil || !l.knew(prev, e) {
				hs = append(hs, e.head())
			}
		}
	})
	slices.SortFunc(hs, Head.compare)
	return hs
}

// covered says what somebody who has these heads has of our facts. Of disputed chains it is
// known to have another branch than ours.
func (l *Log) covered(heads []Head, disputed map[*chain]bool) (v vector) {
	for _, h := range heads {
		l.steps++
		if e := l.byID[h.ID]; e != nil {
			if v.at(e.strand.place) < e.fact.Seq {
				v = v.join(e.past(), &l.steps)
			}
			continue
		}
		// A head beyond ours: its holder has all of that chain that we have, unless
		// the chain is known to be forked. One among ours that is not ours proves a
		// fork, and nothing that we have of the chain is known to be there.
		if c := l.index[h.Chain]; c != nil && c.forkedAt == 0 && !disputed[c] && h.Seq > c.strands[0].end() &&
			v.at(c.strands[0].place) < c.strands[0].end() {
			v = v.with(c.strands[0].place, c.strands[0].end())
		}
	}
	return v
}

// since are the facts beyond what somebody has, causes first.
func (l *Log) since(has vector) []*entry {
	var out []*entry
	l.all.beyond(has, func(k int, _ uint64) {
		s := l.strands[k]
		out = append(out, s.facts[max(has.at(k), s.base())-s.base():]...)
	})
	slices.SortFunc(out, byTime)
	return out
}

// byTime orders facts by logical time, then hash: a total order in which
// causes come before effects.
func byTime(a, b *entry) int {
	if n := cmp.Compare(a.time, b.time); n != 0 {
		return n
	}
	return a.id.compare(b.id)
}
