package choreo

import (
	"errors"
	"iter"
	"slices"
)

// batch are facts that arrived together, in any order, with what of their past
// is not here yet. All that is asked of it takes as many steps as the facts name
// parents: a batch in reverse costs what a sorted one does, and so does one that
// has to be refused.
type batch struct {
	log   *Log
	facts []Received
	// lacks counts, for each fact, the parents that it waits for; waiting are,
	// by such a parent, the facts that do.
	lacks   []int
	waiting map[FactID][]int
}

// fewFacts is up to how many facts it is looked for one among the others one by one.
const fewFacts = 16

// inOrder reports whether these are few facts, each after all of its past, as they
// mostly come: then nothing else has to be known of them.
func (l *Log) inOrder(facts []Received) bool {
	if len(facts) > fewFacts {
		return false
	}
	for i, f := range facts {
		for p := range f.Fact.parents() {
			l.steps++
			if !l.Has(p) && !slices.ContainsFunc(facts[:i], func(b Received) bool { return b.ID == p }) {
				return false
			}
		}
	}
	return true
}

func newBatch(l *Log, facts []Received) *batch {
	b := &batch{log: l, facts: facts, lacks: make([]int, len(facts)), waiting: map[FactID][]int{}}
	for i, f := range facts {
		for p := range f.Fact.parents() {
			l.steps++
			if !l.Has(p) {
				b.lacks[i]++
				b.waiting[p] = append(b.waiting[p], i)
			}
		}
	}
	return b
}

// each calls fn for every fact whose past is here or among the facts that it was
// called for before, causes first, in an order as near as possible to the one in
// which they came. It stops where fn returns an error.
func (b *batch) each(fn func(i int) error) error {
	came := make(map[FactID]bool, len(b.facts))
	var free []int
	for i := range b.facts {
		if b.lacks[i] > 0 {
			continue
		}
		for free = append(free, i); len(free) > 0; {
			next := free[len(free)-1]
			free = free[:len(free)-1]
			b.log.steps++
			if err := fn(next); err != nil {
				return err
			}
			id := b.facts[next].ID
			if came[id] {
				continue
			}
			came[id] = true
			for _, w := range b.waiting[id] {
				b.log.steps++
				// One that stands later among the facts is reached there.
				if b.lacks[w]--; b.lacks[w] == 0 && w < i {
					free = append(free, w)
				}
			}
		}
	}
	return nil
}

// insertAll adds facts whose pasts are here or among them, whatever their order.
// Of an error those before it stay.
func (l *Log) insertAll(facts []Received) (added []*entry, err error) {
	if l.inOrder(facts) {
		for _, f := range facts {
			e, err := l.insert(f.Fact, f.Raw, f.ID, f.Att)
			if e != nil {
				added = append(added, e)
			}
			if err != nil {
				return added, err
			}
		}
		return added, nil
	}
	b := newBatch(l, facts)
	err = b.each(func(i int) error {
		e, err := l.insert(facts[i].Fact, facts[i].Raw, facts[i].ID, facts[i].Att)
		if e != nil {
			added = append(added, e)
		}
		return err
	})
	for i := 0; i < len(facts) && (err == nil || errors.Is(err, ErrMissingPast)); i++ {
		if b.lacks[i] > 0 {
			_, err = l.insert(facts[i].Fact, facts[i].Raw, facts[i].ID, facts[i].Att)
		}
	}
	return added, err
}

// parents are what a fact names as its past.
func (f *Fact) parents() iter.Seq[FactID] {
	return func(yield func(FactID) bool) {
		if f.Seq > 1 && !yield(f.Prev) {
			return
		}
		for _, h := range f.Seen {
			if !yield(h.ID) {
				return
			}
		}
	}
}

// vouched are the facts of a bundle without those that would stay here with nothing to
// vouch for them, because the later fact of their chain whose attestation covers
// them does not fit yet: no peer would take them from us, nor what we would then
// build upon them. In a bundle that fits as a whole all are vouched for.
func (l *Log) vouched(facts []Received) []Received {
	if l.inOrder(facts) {
		return facts
	}
	fits, all := l.fitting(facts)
	if all {
		return facts
	}
	return l.withoutBare(facts, fits)
}

// stillVouched is vouched for facts of which any others may have been lost: that they
// fit does not say that something vouches for them.
func (l *Log) stillVouched(facts []Received) []Received {
	fits, _ := l.fitting(facts)
	return l.withoutBare(facts, fits)
}

// fitting says which of the facts fit, and whether all do.
func (l *Log) fitting(facts []Received) (fits []bool, all bool) {
	fits = make([]bool, len(facts))
	b, n := newBatch(l, facts), 0
	_ = b.each(func(i int) error { // fn returns none
		fits[i] = true
		n++
		return nil
	})
	return fits, n == len(facts)
}

// withoutBare are the facts without those that fit and that nothing vouches for.
func (l *Log) withoutBare(facts []Received, fits []bool) []Received {
	// What does not fit stays among them: it says that something is missing.
	bare := l.bare(facts, fits)
	out := make([]Received, 0, len(facts))
	for _, f := range facts {
		if !bare[f.ID] {
			out = append(out, f)
		}
	}
	return out
}

// bare are those of the facts which fit that nothing vouches for: no attestation
// of theirs, and none of one that follows in their chain. What builds upon them
// is as good as missing, and vouches for nothing either.
func (l *Log) bare(facts []Received, fits []bool) map[FactID]bool {
	follow := map[FactID]int{}           // how many that fit follow it in its chain
	attested := map[FactID]bool{}        // it has an attestation of its own
	children := map[FactID][]*Received{} // that name it as their past
	here := make(map[FactID]*Received, len(facts))
	for i := range facts {
		f := &facts[i]
		attested[f.ID] = attested[f.ID] || f.Att != nil
		if !fits[i] || here[f.ID] != nil || l.Has(f.ID) {
			continue
		}
		here[f.ID] = f
		follow[f.Fact.Prev]++
		for p := range f.Fact.parents() {
			l.steps++
			children[p] = append(children[p], f)
		}
	}
	out := map[FactID]bool{}
	var queue []*Received
	drop := func(f *Received) {
		if !out[f.ID] {
			out[f.ID] = true
			queue = append(queue, f)
		}
	}
	for id, f := range here {
		if !attested[id] && follow[id] == 0 {
			drop(f)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		f := queue[0]
		for _, c := range children[f.ID] {
			l.steps++
			drop(c)
		}
		prev := f.Fact.Prev
		if follow[prev]--; here[prev] != nil && follow[prev] == 0 && !attested[prev] {
			drop(here[prev])
		}
	}
	return out
}

// misnamed refuses a bundle with a fact that names as previous, or as a head that it has
// seen, one that is here or in the bundle by another chain or number. Nobody honest holds
// such a fact, or passes it on. It is refused as a whole, since its attestation may be all that
// vouches for what is before it.
func (l *Log) misnamed(facts []Received) error {
	among := map[FactID]*Fact{} // of more than a few
	if len(facts) > fewFacts {
		for _, f := range facts {
			among[f.ID] = f.Fact
		}
	}
	of := func(id FactID) *Fact {
		if e := l.byID[id]; e != nil {
			return e.fact
		}
		if len(facts) > fewFacts {
			return among[id]
		}
		for _, f := range facts {
			if f.ID == id {
				return f.Fact
			}
		}
		return nil
	}
	for _, r := range facts {
		f := r.Fact
		if prev := of(f.Prev); f.Seq > 1 && prev != nil {
			if err := f.follows(prev); err != nil {
				return err
			}
		}
		for _, h := range f.Seen {
			if p := of(h.ID); p != nil {
				if err := h.names(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
