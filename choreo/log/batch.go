package log

import (
	"errors"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
)

// batch are facts that arrived together, in any order, with what of their past
// is not here yet. All that is asked of it takes as many steps as the facts name
// parents: a batch in reverse costs what a sorted one does, and so does one that
// has to be refused.
type batch struct {
	log   *Log
	facts []fact.Received
	// lacks counts, for each fact, the parents that it waits for; waiting are,
	// by such a parent, the facts that do.
	lacks   []int
	waiting map[fact.ID][]int
}

// fewFacts is up to how many facts it is looked for one among the others one by one.
const fewFacts = 16

// inOrder reports whether these are few facts, each after all of its past, as they
// mostly come: then nothing else has to be known of them.
func (l *Log) inOrder(facts []fact.Received) bool {
	if len(facts) > fewFacts {
		return false
	}
	for i, f := range facts {
		for p := range f.Fact.Parents() {
			l.Steps++
			if !l.Has(p) && !slices.ContainsFunc(facts[:i], func(b fact.Received) bool { return b.ID == p }) {
				return false
			}
		}
	}
	return true
}

func newBatch(l *Log, facts []fact.Received) *batch {
	b := &batch{log: l, facts: facts, lacks: make([]int, len(facts)), waiting: map[fact.ID][]int{}}
	for i, f := range facts {
		for p := range f.Fact.Parents() {
			l.Steps++
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
	came := make(map[fact.ID]bool, len(b.facts))
	var free []int
	for i := range b.facts {
		if b.lacks[i] > 0 {
			continue
		}
		for free = append(free, i); len(free) > 0; {
			next := free[len(free)-1]
			free = free[:len(free)-1]
			b.log.Steps++
			if err := fn(next); err != nil {
				return err
			}
			id := b.facts[next].ID
			if came[id] {
				continue
			}
			came[id] = true
			for _, w := range b.waiting[id] {
				b.log.Steps++
				// One that stands later among the facts is reached there.
				if b.lacks[w]--; b.lacks[w] == 0 && w < i {
					free = append(free, w)
				}
			}
		}
	}
	return nil
}

// InsertAll adds facts whose pasts are here or among them, whatever their order.
// Of an error those before it stay.
func (l *Log) InsertAll(facts []fact.Received) (added []*Entry, err error) {
	if l.inOrder(facts) {
		for _, f := range facts {
			e, err := l.Insert(f.Fact, f.Raw, f.ID, f.Att)
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
		e, err := l.Insert(facts[i].Fact, facts[i].Raw, facts[i].ID, facts[i].Att)
		if e != nil {
			added = append(added, e)
		}
		return err
	})
	for i := 0; i < len(facts) && (err == nil || errors.Is(err, ErrMissingPast)); i++ {
		if b.lacks[i] > 0 {
			_, err = l.Insert(facts[i].Fact, facts[i].Raw, facts[i].ID, facts[i].Att)
		}
	}
	return added, err
}

// Vouched are the facts of a bundle without those that would stay here with nothing to
// vouch for them, because the later fact of their chain whose attestation covers
// them does not fit yet: no peer would take them from us, nor what we would then
// build upon them. In a bundle that fits as a whole all are vouched for.
func (l *Log) Vouched(facts []fact.Received) []fact.Received {
	if l.inOrder(facts) {
		return facts
	}
	fits, all := l.Fitting(facts)
	if all {
		return facts
	}
	return l.withoutBare(facts, fits)
}

// StillVouched is vouched for facts of which any others may have been lost: that they
// fit does not say that something vouches for them.
func (l *Log) StillVouched(facts []fact.Received) []fact.Received {
	fits, _ := l.Fitting(facts)
	return l.withoutBare(facts, fits)
}

// Fitting says which of the facts fit, and whether all do.
func (l *Log) Fitting(facts []fact.Received) (fits []bool, all bool) {
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
func (l *Log) withoutBare(facts []fact.Received, fits []bool) []fact.Received {
	// What does not fit stays among them: it says that something is missing.
	bare := l.Bare(facts, fits)
	out := make([]fact.Received, 0, len(facts))
	for _, f := range facts {
		if !bare[f.ID] {
			out = append(out, f)
		}
	}
	return out
}

// Bare are those of the facts which fit that nothing vouches for: no attestation
// of theirs, and none of one that follows in their chain. What builds upon them
// is as good as missing, and vouches for nothing either.
func (l *Log) Bare(facts []fact.Received, fits []bool) map[fact.ID]bool {
	follow := map[fact.ID]int{}                // how many that fit follow it in its chain
	attested := map[fact.ID]bool{}             // it has an attestation of its own
	children := map[fact.ID][]*fact.Received{} // that name it as their past
	here := make(map[fact.ID]*fact.Received, len(facts))
	for i := range facts {
		f := &facts[i]
		attested[f.ID] = attested[f.ID] || f.Att != nil
		if !fits[i] || here[f.ID] != nil || l.Has(f.ID) {
			continue
		}
		here[f.ID] = f
		follow[f.Fact.Prev]++
		for p := range f.Fact.Parents() {
			l.Steps++
			children[p] = append(children[p], f)
		}
	}
	out := map[fact.ID]bool{}
	var queue []*fact.Received
	drop := func(f *fact.Received) {
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
			l.Steps++
			drop(c)
		}
		prev := f.Fact.Prev
		if follow[prev]--; here[prev] != nil && follow[prev] == 0 && !attested[prev] {
			drop(here[prev])
		}
	}
	return out
}

// Misnamed refuses a bundle with a fact that names as previous, or as a head that it has
// seen, one that is here or in the bundle by another chain or number. Nobody honest holds
// such a fact, or passes it on. It is refused as a whole, since its attestation may be all that
// vouches for what is before it.
func (l *Log) Misnamed(facts []fact.Received) error {
	among := map[fact.ID]*fact.Fact{} // of more than a few
	if len(facts) > fewFacts {
		for _, f := range facts {
			among[f.ID] = f.Fact
		}
	}
	of := func(id fact.ID) *fact.Fact {
		if e := l.byID[id]; e != nil {
			return e.Fact
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
			if err := f.Follows(prev); err != nil {
				return err
			}
		}
		for _, h := range f.Seen {
			if p := of(h.ID); p != nil {
				if err := h.Names(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Runs say of each of the facts that are not here how much goes in with it or not at all: the
// run of its chain under one attestation.
func (l *Log) Runs(facts []fact.Received) map[fact.ID]Authored {
	bare, last, out := map[fact.ID]Authored{}, map[fact.ID]Authored{}, make(map[fact.ID]Authored, len(facts))
	for _, f := range facts {
		if l.Has(f.ID) {
			continue
		}
		of := bare[f.Fact.Prev]
		of.Facts, of.Bytes = of.Facts+1, of.Bytes+len(f.Raw)
		if out[f.ID] = of; f.Att == nil {
			bare[f.ID] = of
		}
	}
	for _, f := range slices.Backward(facts) {
		if whole, goesOn := last[f.ID]; goesOn && f.Att == nil {
			out[f.ID] = whole
		}
		last[f.Fact.Prev] = out[f.ID]
	}
	return out
}
