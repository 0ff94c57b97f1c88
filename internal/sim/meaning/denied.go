package meaning

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about authors with several chains: an author in a fresh chain knows
// what its other chains show that it knew (the convergence rule, 7). What an author knew
// that did not count for certain goes the same way (8).

// denies reports whether fact x denies fact y: another chain of its author knew of y,
// and no more of the others heard first of x than of that.
func (m *Meaning) denies(x, y int) bool {
	if m.h.knew(x, y) {
		return false
	}
	author := m.h.facts[x].Chain.Author
	return slices.ContainsFunc(m.chains(author), func(c fact.Chain) bool {
		f := m.firstToKnow(c, y)
		if f == none || c == m.h.facts[x].Chain || m.h.knew(f, x) || m.h.knew(x, f) {
			return false
		}
		return m.heardFirst(f, x) >= m.heardFirst(x, f)
	})
}

// chains are the chains of an author.
func (m *Meaning) chains(author workflow.PartnerID) (out []fact.Chain) {
	for i, f := range m.h.facts {
		if m.in.has(i) && f.Chain.Author == author && !slices.Contains(out, f.Chain) {
			out = append(out, f.Chain)
		}
	}
	return out
}

// firstToKnow is the first fact of a chain, before it was forked, that counts and knew of
// another: what does not count nobody names, so nobody shows that it knows of it.
func (m *Meaning) firstToKnow(c fact.Chain, g int) int {
	fork := m.forks[c]
	for i, f := range m.h.facts {
		if m.counts.has(i) && f.Chain == c && (fork == 0 || f.Seq < fork) && m.h.knew(i, g) {
			return i
		}
	}
	return none
}

// heardFirst counts the others, of those who took part from the start, that showed to
// know of x and not of y.
func (m *Meaning) heardFirst(x, y int) (n int) {
	for _, p := range m.genesis.Succession {
		if p != m.h.facts[x].Chain.Author && slices.ContainsFunc(m.chains(p), func(c fact.Chain) bool {
			f := m.firstToKnow(c, x)
			return f != none && !m.h.knew(f, y)
		}) {
			n++
		}
	}
	return n
}

// weigh works out which verdicts are void, which successes go behind others, and upon
// which start's word an attempt was built.
func (m *Meaning) weigh(sl *Slot) {
	for _, a := range sl.Attempts {
		for _, r := range a.rulings {
			r.void = slices.ContainsFunc(a.successes, func(s int) bool {
				return m.despite(r.at, s) || m.denies(r.at, s)
			})
		}
	}
	for _, a := range sl.Attempts {
		slices.SortFunc(a.successes, func(x, y int) int { return cmp.Or(m.rank(a, x)-m.rank(a, y), x-y) })
		s := a.success()
		_, adopted := m.adopted[s] // which whoever gave the attempt up may have done as well
		for _, r := range a.rulings {
			a.overruled = a.overruled ||
				(s != none && !adopted && r.final && !r.void && (m.despite(s, r.at) || m.denies(s, r.at)))
		}
		a.base = none
		for _, start := range a.starts {
			if s == none || m.h.knew(s, start) {
				first(&a.base, start)
			}
		}
	}
	for _, a := range sl.Attempts {
		for b := a; b.after != nil; b = b.after {
			if b.by != nil && b.by.void {
				a.blame = append(a.blame, m.h.facts[b.by.at].Chain.Author)
			}
		}
		if s := a.success(); s != none && (m.deniesOthers(a, s) || m.despiteOthers(a, a.base)) {
			a.blame = append(a.blame, a.Partner)
		}
	}
}

// rank is how far behind the others of its attempt a success goes.
func (m *Meaning) rank(a *Attempt, s int) int {
	switch {
	case m.deniesOthers(a, s):
		return 2
	case slices.ContainsFunc(a.successes, func(o int) bool {
		return o != s && m.heardFirst(o, s) > m.heardFirst(s, o)
	}):
		return 1
	}
	return 0
}

// deniesOthers reports whether a fact about an attempt denies a success of another in
// its slot.
func (m *Meaning) deniesOthers(a *Attempt, i int) bool {
	return slices.ContainsFunc(a.slot.Attempts, func(o *Attempt) bool {
		return o != a && slices.ContainsFunc(o.successes, func(s int) bool { return m.denies(i, s) })
	})
}

// despiteOthers reports whether a start of an attempt, or of one built upon it, was written
// although its author knew the success of another in the attempt's slot, which is not held
// against it (the convergence rule, 8).
func (m *Meaning) despiteOthers(a *Attempt, start int) bool {
	return start != none && slices.ContainsFunc(a.slot.Attempts, func(o *Attempt) bool {
		return o != a && slices.ContainsFunc(o.successes, func(s int) bool { return m.despite(start, s) })
	})
}

// props reports whether u holds a up by a start that denies what stands against a, and is
// of an author because of which a goes behind. An author that has forked a chain denies so
// what its start knew, and that it had given a up.
func (m *Meaning) props(u, a *Attempt) bool {
	if u.base == none {
		return false
	}
	forked := slices.ContainsFunc(m.chains(u.Partner), func(c fact.Chain) bool { return m.forks[c] > 0 })
	return forked && a.overruled && u.Partner == a.Partner ||
		slices.Contains(a.blame, u.Partner) && (m.deniesOthers(a, u.base) || forked && m.despiteOthers(a, u.base))
}
