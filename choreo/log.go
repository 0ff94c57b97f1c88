package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Log is a replica's set of facts of one instance. It is causally closed: with
// a fact it holds all that the fact's author had seen. It only grows.
type Log struct {
	instance workflow.InstanceID
	genesis  *entry
	byID     map[FactID]*entry
	chains   []*chain
	index    map[Chain]int
	order    []*entry // as inserted: causes before effects
	forked   bool     // some chain is

	steps int // taken by what grows with the log; tests count them
}

// entry is a fact in a log.
type entry struct {
	fact    *Fact
	id      FactID
	raw     []byte
	att     *Attestation // of this fact as a head; nil: a later one of the chain has one, or we are the author
	index   int          // place in Log.order, and in the store
	chain   int
	time    uint64   // logical: 1 + the greatest in its past
	clock   []uint64 // per chain, the greatest number in its past, itself included; chains beyond its end: 0
	parents []*entry
	counted bool // see State; facts without entitlement do not count
}

// chain is the facts of one author in one incarnation.
type chain struct {
	id    Chain
	facts []*entry // by number; of a fork, the branch that came first here
	forks []*entry // facts of other branches
	// forkedAt is the first number that two facts have; 0: none.
	forkedAt uint64
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
	l := &Log{instance: InstanceOf(id), byID: map[FactID]*entry{}, index: map[Chain]int{}}
	l.add(&entry{fact: genesis, id: id, raw: raw, att: att, time: 1})
	l.genesis = l.order[0]
	return l, nil
}

// Instance is the instance's ID.
func (l *Log) Instance() workflow.InstanceID { return l.instance }

// Len is the number of facts.
func (l *Log) Len() int { return len(l.order) }

// Has tells whether the fact is here.
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
			return fmt.Errorf("%w: number %d of %s", ErrMissingPast, f.Seq-1, f.Chain.Author)
		}
		if prev.fact.Chain != f.Chain || prev.fact.Seq != f.Seq-1 {
			return fmt.Errorf("%w: it does not follow the fact that it names as previous", ErrFactInvalid)
		}
		e.parents = append(e.parents, prev)
	}
	for _, h := range f.Seen {
		p := l.byID[h.ID]
		if p == nil {
			return fmt.Errorf("%w: number %d of %s", ErrMissingPast, h.Seq, h.Chain.Author)
		}
		if p.fact.Chain != h.Chain || p.fact.Seq != h.Seq {
			return fmt.Errorf("%w: it misnames a head that it has seen", ErrFactInvalid)
		}
		e.parents = append(e.parents, p)
	}
	return nil
}

func (l *Log) add(e *entry) {
	e.chain = l.chainOf(e.fact.Chain)
	c := l.chains[e.chain]
	e.clock = make([]uint64, max(e.chain+1, maxClock(e.parents)))
	for _, p := range e.parents {
		e.time = max(e.time, p.time+1)
		for i, n := range p.clock {
			e.clock[i] = max(e.clock[i], n)
		}
	}
	e.clock[e.chain] = e.fact.Seq
	switch seq := e.fact.Seq; {
	case seq == uint64(len(c.facts))+1 && (seq == 1 || c.facts[seq-2].id == e.fact.Prev):
		c.facts = append(c.facts, e)
	default:
		c.forks = append(c.forks, e)
		if c.forkedAt == 0 || seq < c.forkedAt {
			c.forkedAt = seq
		}
		l.forked = true
	}
	l.byID[e.id] = e
	e.index = len(l.order)
	l.order = append(l.order, e)
}

func maxClock(es []*entry) int {
	n := 0
	for _, e := range es {
		n = max(n, len(e.clock))
	}
	return n
}

func (l *Log) chainOf(c Chain) int {
	i, ok := l.index[c]
	if !ok {
		i = len(l.chains)
		l.index[c] = i
		l.chains = append(l.chains, &chain{id: c})
	}
	return i
}

// knew tells whether f's author knew of g when it wrote f: g is in f's past,
// or is f.
func (l *Log) knew(f, g *entry) bool {
	if f == g {
		return true
	}
	if l.chains[g.chain].forkedAt == 0 {
		return g.chain < len(f.clock) && f.clock[g.chain] >= g.fact.Seq
	}
	return l.past(f)[g]
}

// past is a fact's whole past, itself included. It walks: for forks only.
func (l *Log) past(fs ...*entry) map[*entry]bool {
	seen := map[*entry]bool{}
	for len(fs) > 0 {
		e := fs[len(fs)-1]
		fs = fs[:len(fs)-1]
		if !seen[e] {
			seen[e] = true
			fs = append(fs, e.parents...)
		}
	}
	return seen
}

// tips are a chain's facts that no other of the chain follows.
func (c *chain) tips() []*entry {
	if len(c.forks) == 0 {
		if len(c.facts) == 0 {
			return nil
		}
		return c.facts[len(c.facts)-1:]
	}
	return lasts(append(slices.Clone(c.facts), c.forks...))
}

// lasts are those of a chain's facts that no other of them follows.
func lasts(es []*entry) []*entry {
	followed := map[FactID]bool{}
	for _, e := range es {
		followed[e.fact.Prev] = true
	}
	return slices.DeleteFunc(es, func(e *entry) bool { return followed[e.id] })
}

// heeded are a chain's last facts that count.
func (c *chain) heeded() []*entry {
	tips := c.tips()
	if !slices.ContainsFunc(tips, func(e *entry) bool { return !e.counted }) {
		return tips
	}
	return lasts(slices.DeleteFunc(append(slices.Clone(c.facts), c.forks...), func(e *entry) bool { return !e.counted }))
}

// Heads are the last facts of all chains, sorted: what this replica knows.
func (l *Log) Heads() []Head {
	var hs []Head
	for _, c := range l.chains {
		for _, e := range c.tips() {
			hs = append(hs, e.head())
		}
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
	var hs []Head
	for _, c := range l.chains {
		for _, e := range c.heeded() {
			if prev == nil || !l.knew(prev, e) {
				hs = append(hs, e.head())
			}
		}
	}
	slices.SortFunc(hs, Head.compare)
	return hs
}

// covered says what somebody who has these heads has of our facts, per chain.
// ok is false where forks make numbers ambiguous.
func (l *Log) covered(heads []Head) (clock []uint64, ok bool) {
	clock = make([]uint64, len(l.chains))
	for _, h := range heads {
		if e := l.byID[h.ID]; e != nil {
			for i, n := range e.clock {
				clock[i] = max(clock[i], n)
			}
		} else if i, known := l.index[h.Chain]; known && h.Seq > uint64(len(l.chains[i].facts)) {
			// A head beyond ours: its holder has all of that chain that we have,
			// unless the chain is forked. One among ours that is not ours proves
			// a fork, and nothing that we have of the chain is known to be there.
			clock[i] = max(clock[i], uint64(len(l.chains[i].facts)))
		}
	}
	return clock, !l.forked
}

// missing are the facts that somebody with these heads lacks, causes first.
func (l *Log) missing(heads []Head) []*entry {
	clock, ok := l.covered(heads)
	if !ok {
		return l.missingByWalk(heads)
	}
	return l.since(clock)
}

// since are the facts beyond a clock, causes first.
func (l *Log) since(clock []uint64) []*entry {
	var out []*entry
	for i, c := range l.chains {
		have := uint64(0)
		if i < len(clock) {
			have = clock[i]
		}
		if have < uint64(len(c.facts)) {
			out = append(out, c.facts[have:]...)
		}
	}
	slices.SortFunc(out, byTime)
	return out
}

func (l *Log) missingByWalk(heads []Head) []*entry {
	var known []*entry
	for _, h := range heads {
		if e := l.byID[h.ID]; e != nil {
			known = append(known, e)
		}
	}
	has := l.past(known...)
	var out []*entry
	for _, e := range l.order {
		if !has[e] {
			out = append(out, e)
		}
	}
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
