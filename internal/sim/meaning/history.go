// Package meaning says what a set of facts means by the words of the design, and
// whether each was right to be written when it was: a second, independent reading
// of the rules, to hold the product's against.
//
// Promises: it is small and naive. It works everything out from nothing, each
// time, from what the facts name as their past. It shares nothing with the product
// but the facts' encoding, the parser of definitions, the states that a line of data states has, and the evaluation of
// expressions over data.
//
// It imports choreo/fact, dataflow, workflow and worklist; internal/sim imports it.
package meaning

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// History is the facts of one instance, causes before effects.
type History struct {
	def   *workflow.Definition
	facts []known
	index map[fact.ID]int
	// refused are facts that do not count whatever they say.
	refused map[int]bool
	// hear finds whose word is in a claim; nil: claims are not looked at.
	hear func(*fact.Claim) (Voice, bool)
	// amended makes the definition with patches; nil: nobody amends anything. rounds are those that come with the last.
	amended func(patches []string) *workflow.Definition
	rounds  func(patches []string) []Round
	// stays is what forks leave of all; nil: not worked out yet.
	stays Set
}

type known struct {
	*fact.Fact
	id      fact.ID
	parents []int
	past    Set // itself included
	time    uint64
}

// Set is a part of a history.
type Set []uint64

func (s Set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s Set) add(i int)      { s[i/64] |= 1 << (i % 64) }

// without is what another set has beside this one.
func (s Set) without(o Set) Set {
	out := slices.Clone(o)
	for i := range out {
		out[i] &^= s[i]
	}
	return out
}

func (s Set) join(o Set) {
	for i := range o {
		s[i] |= o[i]
	}
}

// New orders facts. It is an error if what one names as its past is not among them.
func New(def *workflow.Definition, facts map[fact.ID]*fact.Fact) (*History, error) {
	h := &History{def: def, index: map[fact.ID]int{}, refused: map[int]bool{}}
	times := map[fact.ID]uint64{}
	for id := range facts {
		if err := timeOf(id, facts, times); err != nil {
			return nil, err
		}
	}
	for id, f := range facts {
		h.facts = append(h.facts, known{Fact: f, id: id, time: times[id]})
	}
	slices.SortFunc(h.facts, func(a, b known) int {
		return cmp.Or(cmp.Compare(a.time, b.time),
			compareIDs(a.id, b.id))
	})
	for i := range h.facts {
		f := &h.facts[i]
		h.index[f.id] = i
		f.past = make(Set, len(h.facts)/64+1)
		for _, p := range parents(f.Fact) {
			f.parents = append(f.parents, h.index[p])
			f.past.join(h.facts[h.index[p]].past)
		}
		f.past.add(i)
	}
	return h, nil
}

// parents are the facts that a fact names as its past: all else follows from them.
func parents(f *fact.Fact) (out []fact.ID) {
	if f.Seq > 1 {
		out = append(out, f.Prev)
	}
	for _, s := range f.Seen {
		out = append(out, s.ID)
	}
	return out
}

// timeOf works out the logical times of a fact and of its past: one more than the
// latest of its parents.
func timeOf(id fact.ID, facts map[fact.ID]*fact.Fact, times map[fact.ID]uint64) error {
	for todo := []fact.ID{id}; len(todo) > 0; {
		top := todo[len(todo)-1]
		f := facts[top]
		if f == nil {
			return fmt.Errorf("fact %s is in the past of another and is not there", top.Short())
		}
		time, ready := uint64(1), true
		for _, p := range parents(f) {
			if t := times[p]; t == 0 {
				todo, ready = append(todo, p), false
			} else {
				time = max(time, t+1)
			}
		}
		if ready {
			times[top], todo = time, todo[:len(todo)-1]
		}
	}
	return nil
}

func compareIDs(a, b fact.ID) int { return slices.Compare(a[:], b[:]) }

// Refuse has a fact not count. What of the words of those who lie counts is not worked
// out here a second time.
func (h *History) Refuse(id fact.ID) { h.refused[h.index[id]] = true }

// Bereft reports whether a fork took away something that a fact's author knew, and which the
// author does not hold up: as it took no part from the start, or as the forked chain is its own.
func (h *History) Bereft(id fact.ID) bool {
	i := h.index[id]
	author := h.facts[i].Chain.Author
	fromTheStart := slices.Contains(h.facts[0].Body.Genesis.Succession, author)
	lost := h.left().without(h.before(i))
	for j, f := range h.facts {
		if lost.has(j) && (!fromTheStart || f.Chain.Author == author) {
			return true
		}
	}
	return false
}

// left is what forks leave of all.
func (h *History) left() Set {
	if h.stays == nil {
		h.stays = h.good(h.All())
	}
	return h.stays
}

// All is the whole history.
func (h *History) All() Set {
	s := make(Set, len(h.facts)/64+1)
	for i := range h.facts {
		s.add(i)
	}
	return s
}

// Only is a part of the history: what keep says.
func (h *History) Only(keep func(fact.ID) bool) Set {
	s := make(Set, len(h.facts)/64+1)
	for i := range h.facts {
		if keep(h.facts[i].id) {
			s.add(i)
		}
	}
	return s
}

// before is a fact's past without itself.
func (h *History) before(i int) Set {
	s := make(Set, len(h.facts)/64+1)
	for _, p := range h.facts[i].parents {
		s.join(h.facts[p].past)
	}
	return s
}

// knew reports whether fact i's author knew of fact j when it wrote it.
func (h *History) knew(i, j int) bool { return h.facts[i].past.has(j) }

// earlier reports whether fact i comes before fact j in the total order of facts.
func earlier(i, j int) bool { return i < j }

// doubtful reports whether a fact comes at or after a number of its chain that was used twice. Whether such a fact counts
// depends on what else is known: who got its own lost chain back knows of it, and may not count it yet.
func (h *History) doubtful(i int) bool {
	fork := h.forks(h.All())[h.facts[i].Chain]
	return fork > 0 && fork <= h.facts[i].Seq
}

// Forked reports whether somebody used a number of a chain twice.
func (h *History) Forked() bool { return len(h.Forkers()) > 0 }

// Forkers are those who used a number of a chain of theirs twice.
func (h *History) Forkers() (out []workflow.PartnerID) {
	for c := range h.forks(h.All()) {
		if !slices.Contains(out, c.Author) {
			out = append(out, c.Author)
		}
	}
	slices.Sort(out)
	return out
}

// forks are, by chain, the first number that was used twice; 0: none was; 1 also
// for a chain that has more than eight ends, which is no accident.
func (h *History) forks(in Set) map[fact.Chain]uint64 {
	type place struct {
		chain fact.Chain
		seq   uint64
	}
	used := map[place]int{}
	ends := map[fact.Chain]int{}
	followed := map[fact.ID]bool{}
	for i, f := range h.facts {
		if in.has(i) {
			used[place{f.Chain, f.Seq}]++
			followed[f.Prev] = followed[f.Prev] || f.Seq > 1
		}
	}
	for i, f := range h.facts {
		if in.has(i) && !followed[f.id] {
			ends[f.Chain]++
		}
	}
	out := map[fact.Chain]uint64{}
	for p, n := range used {
		if n > 1 && (out[p.chain] == 0 || p.seq < out[p.chain]) {
			out[p.chain] = p.seq
		}
	}
	for c, n := range ends {
		if n > maxEnds {
			out[c] = 1
		}
	}
	return out
}

// maxEnds is how often a chain may have been forked by accident: a store that was
// put back unnoticed.
const maxEnds = 8

// good are the facts of a set that forks leave: those before a fork, and those of
// which a good fact of another author knew who took part from the start.
func (h *History) good(in Set) Set {
	forks := h.forks(in)
	original := map[workflow.PartnerID]bool{}
	for _, p := range h.facts[0].Body.Genesis.Succession {
		original[p] = true
	}
	out := make(Set, len(in))
	for i, f := range h.facts {
		if fork := forks[f.Chain]; in.has(i) && (fork == 0 || f.Seq < fork || i == 0) {
			out.add(i)
		}
	}
	for more := len(forks) > 0; more; {
		more = false
		for i, f := range h.facts {
			if !out.has(i) || !original[f.Chain.Author] {
				continue
			}
			for j, g := range h.facts {
				if in.has(j) && !out.has(j) && h.knew(i, j) && g.Chain.Author != f.Chain.Author {
					out.add(j)
					more = true
				}
			}
		}
		for i, f := range h.facts { // with a fact those before it in its chain
			if out.has(i) && f.Seq > 1 {
				if p := h.index[f.Prev]; !out.has(p) {
					out.add(p)
					more = true
				}
			}
		}
	}
	return out
}

// beyond are the facts of a set that come after a fork, and do not count by themselves, and
// those with such a fact in their past.
func (h *History) beyond(in Set, forks map[fact.Chain]uint64) Set {
	out := make(Set, len(in))
	for i, f := range h.facts { // causes first
		fork := forks[f.Chain]
		after := fork > 0 && f.Seq >= fork && i > 0
		if in.has(i) && (after || slices.ContainsFunc(f.parents, out.has)) {
			out.add(i)
		}
	}
	return out
}
