package choreo

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about how much of one author is taken in from partners. A member that
// lies may open a chain for every fact, or write without end. So of one author only
// so much is taken in for itself: MaxChains chains, and a share of facts and bytes.
// What that was may differ from node to node, hence a second rule and a third:
//
//   - What is beyond is taken in all the same where another who takes part names it
//     as seen, in a fact that is within the limits of its own author: others have built
//     upon it.
//   - A node that has all that it may have of an author names that in `seen` facts of
//     its own, once: it builds upon what counts, and sets the rest aside (Seen.Aside),
//     which others then take in and nobody builds upon.
//
// An attestation serves for a run of facts, and a run is taken in whole or not at all: no peer
// would take the start of one from us, nor what we then built upon it. So of a run of which
// something is beyond all is declined, and of one of which something is named all is taken in.
//
// How much room an author has differs from node to node, where their limits or what else
// they have do; what is refused for that its sender sets aside (crowded.go).
//
// Of a forked chain so many branches are taken in that nothing of it counts by itself
// any more (choreo/log/fork.go). What is beyond would count only where others built upon it, and
// then it is named.
//
// So what one honest partner has all get, and none ends with other facts for good;
// what a liar sends beyond that, nobody takes. For this there must be room at each for
// what a liar told each of them, another thing each time, and they have built upon: a share
// is no more than one part in as many as there are partners (PartOf). Two members that lie can name each
// other's facts: of what is named only so much is taken in that others have room left.
// What a node has named follows from its own facts: where each names the other's,
// they would else go on for ever.
//
// A fact that is not taken in is no error: its sender may be honest, and hears what is
// here as always. What it was and what others named are remembered for a while, as
// one may come long before the other.

// Limit sets the shares of the authors.
func (m *Machine) Limit(s Shares) { m.door.shares = s }

// Declined is what was not taken in since the last call, by author and reason.
func (m *Machine) Declined() []Declined {
	out := make([]Declined, 0, len(m.door.counts))
	for d, n := range m.door.counts {
		d.Facts = n
		out = append(out, d)
	}
	clear(m.door.counts)
	slices.SortFunc(out, func(a, b Declined) int {
		return cmp.Or(cmp.Compare(a.Author, b.Author), cmp.Compare(a.Why, b.Why))
	})
	return out
}

// admit are the facts without those that are beyond what is taken in of their
// author, and without what follows from those. It reports whether that is all.
func (m *Machine) admit(from workflow.PartnerID, facts []fact.Received) (admitted []fact.Received, all bool) {
	v := visit{
		m: m, of: map[workflow.PartnerID]log.Authored{}, chains: map[fact.Chain]string{},
		branches: map[fact.Chain]int{}, follows: map[place]fact.ID{},
	}
	why := make([]string, len(facts))
	within := len(m.door.declined) == 0
	for i, f := range facts {
		why[i] = v.beyond(f)
		within = within && why[i] == ""
	}
	if within {
		return facts, true
	}
	m.readOn()
	in := m.state.BroughtIn(facts)
	for i, f := range facts {
		if why[i] == "" {
			m.door.nameSeen(f.Fact, in)
		}
	}
	m.door.wantWhole(facts)
	v.runs, v.gone = m.log.Runs(facts), map[fact.ID]Declined{}
	for i, f := range facts {
		d := m.door.declines(f, why[i])
		if d.Why == "" && why[i] != "" && !v.takesNamed(f) {
			d = Declined{Author: f.Fact.Chain.Author, Why: TooManyNamed}
		}
		if d.Why != "" {
			v.keepOut(from, f, d, why[i] != "")
			continue
		}
		m.door.undecline(f.ID)
		admitted = append(admitted, f)
	}
	if len(v.gone) > 0 {
		admitted = v.proven(from, facts, admitted)
	}
	for _, f := range admitted {
		for _, of := range m.door.wanted {
			delete(of, f.ID)
		}
	}
	return admitted, false
}

// visit counts what a batch of facts brings of each author.
type visit struct {
	m      *Machine
	of     map[workflow.PartnerID]log.Authored
	chains map[fact.Chain]string // that the batch opens, and why they are too many; "": they are not
	// branches are how many of a chain the batch opens, follows what was first of its
	// facts at a place.
	branches map[fact.Chain]int
	follows  map[place]fact.ID
	named    int // bytes of what is taken in only as others named it
	// runs say with how much else each fact goes in (Log.Runs), gone why it is declined.
	runs map[fact.ID]log.Authored
	gone map[fact.ID]Declined
}

// place is where a chain goes on: after that fact.
type place struct {
	chain fact.Chain
	prev  fact.ID
}

// keepOut declines a fact; beyond is whether it is for itself, not only for what comes
// before it.
func (v *visit) keepOut(from workflow.PartnerID, f fact.Received, d Declined, beyond bool) {
	m := v.m
	v.gone[f.ID] = d
	m.door.decline(f.ID, d)
	if d.NoRoom() {
		m.door.turnAway(from, d.Author, v.runs[f.ID], beyond)
	}
	if d.Why == TooManyNamed {
		m.door.crowded.named(d.Author)
	}
	m.dispute(from, f)
}

// proven are the admitted of the facts without those that nothing vouches for any more, as the
// later fact of their chain whose attestation covers them was declined. They are declined
// for the same reason, and so is what their author built upon them. What others built upon
// them stays, where it says that they are missing.
func (v *visit) proven(from workflow.PartnerID, facts, admitted []fact.Received) []fact.Received {
	m, l := v.m, v.m.log
	fits, _ := l.Fitting(admitted)
	bare := l.Bare(admitted, fits)
	if len(bare) == 0 {
		return admitted
	}
	of, children := map[fact.ID]fact.Received{}, map[fact.ID][]fact.Received{}
	for _, f := range admitted {
		if bare[f.ID] {
			of[f.ID] = f
			for p := range f.Fact.Parents() {
				l.Steps++
				children[p] = append(children[p], f)
			}
		}
	}
	var queue []fact.Received
	for _, f := range facts {
		if v.gone[f.ID].Why != "" {
			queue = append(queue, f)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		f := queue[0]
		d, follow := v.gone[f.ID], children[f.ID]
		if prev, is := of[f.Fact.Prev]; is {
			follow = append(slices.Clone(follow), prev)
		}
		for _, x := range follow {
			l.Steps++
			author := x.Fact.Chain.Author
			if v.gone[x.ID].Why != "" || author != d.Author && m.Participates(author) {
				continue
			}
			v.keepOut(from, x, Declined{Author: author, Why: d.Why}, true)
			m.door.wasCut(author)
			queue = append(queue, x)
		}
	}
	stays := make(map[fact.ID]bool, len(admitted))
	for _, f := range admitted {
		stays[f.ID] = !bare[f.ID]
	}
	return slices.DeleteFunc(admitted, func(f fact.Received) bool {
		if !bare[f.ID] || v.gone[f.ID].Why != "" {
			return bare[f.ID]
		}
		for p := range f.Fact.Parents() {
			l.Steps++
			if !l.Has(p) && !stays[p] {
				return false
			}
		}
		return true
	})
}

// beyond says why a fact is more than is taken in of its author for itself; "": it
// is not.
func (v *visit) beyond(f fact.Received) string {
	author, l := f.Fact.Chain.Author, v.m.log
	if author == v.m.self || l.Has(f.ID) {
		return ""
	}
	of, known := v.of[author]
	if !known {
		of = l.Authored()[author]
	}
	if why, opened := v.chains[f.Fact.Chain]; !opened && l.Index()[f.Fact.Chain] == nil {
		switch {
		case of.Chains == 0 && !v.m.Participates(author) && v.outsiders() >= maxOutsiders:
			why = TooManyAuthors
		case of.Chains >= fact.MaxChains:
			why = TooManyChains
		default:
			of.Chains++
		}
		v.chains[f.Fact.Chain] = why
	}
	why := v.chains[f.Fact.Chain]
	if why == "" && v.tooMany(f) {
		why = TooManyForks
	}
	if s := v.m.door.shares; why == "" &&
		(s.Facts > 0 && of.Facts >= s.Facts || s.Bytes > 0 && of.Bytes+len(f.Raw) > s.Bytes) {
		why = TooManyFacts
	}
	if s := v.m.door.shares; why == "" && s.Left != nil && v.new(author)+len(f.Raw)+s.Each > s.Left(author) {
		why = TooManyBytes
	}
	if why == "" {
		of.Facts++
		of.Bytes += len(f.Raw)
	}
	v.of[author] = of
	return why
}

// tooMany reports whether a fact forks its chain where that has as many branches
// already as it takes for nothing of it to count by itself (choreo/log/fork.go).
func (v *visit) tooMany(f fact.Received) bool {
	l, at := v.m.log, place{f.Fact.Chain, f.Fact.Prev}
	c := l.Index()[at.chain]
	if first, ok := v.follows[at]; ok && first == f.ID {
		return false
	} else if !ok {
		v.follows[at] = f.ID
		prev := l.ByID()[at.prev]
		if c == nil || prev != nil && prev.Strand.Last() == prev || prev == nil && f.Fact.Seq > 1 {
			return false // the chain goes on, here or in the batch
		}
	}
	strands := 1
	if c != nil {
		strands = len(c.Strands)
	}
	if strands+v.branches[at.chain] > log.MaxBranches {
		return true
	}
	v.branches[at.chain]++
	return false
}

// takesNamed reports whether there is room for a fact that is beyond what is taken in of
// its author for itself, and that another named: the one that names it may lie as well.
func (v *visit) takesNamed(f fact.Received) bool {
	s, author := v.m.door.shares, f.Fact.Chain.Author
	if author == v.m.self || v.m.log.Has(f.ID) {
		return true
	}
	v.named += len(f.Raw) + s.Each
	own := s.Left == nil || v.new(author)+v.named <= s.Left(author)
	return own || s.Spare == nil || v.added()+v.named <= s.Spare()
}

// outsiders are the authors here and in the batch who take no part.
func (v *visit) outsiders() (n int) {
	for p := range v.m.log.Authored() {
		if !v.m.Participates(p) {
			n++
		}
	}
	for p, of := range v.of {
		if of.Chains > 0 && !v.m.Participates(p) && v.m.log.Authored()[p].Chains == 0 {
			n++
		}
	}
	return n
}

// added is how many bytes the batch brought so far of all authors.
func (v *visit) added() (n int) {
	for p := range v.of {
		n += v.new(p)
	}
	return n
}

// new is how many bytes of an author the batch brought so far, and took beside them.
func (v *visit) new(p workflow.PartnerID) int {
	is, was := v.of[p], v.m.log.Authored()[p]
	return max(is.Bytes-was.Bytes, 0) + max(is.Facts-was.Facts, 0)*v.m.door.shares.Each
}
