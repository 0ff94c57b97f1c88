package choreo

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"

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
// any more (fork.go). What is beyond would count only where others built upon it, and
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

// Shares are how much of one author is taken in for itself, in an instance; 0: all.
type Shares struct {
	Facts, Bytes int
	// Left is how many bytes of an author have room beside this instance, where it
	// may fill a part of the node only; nil: any number.
	Left func(workflow.PartnerID) int
	// Spare is how many bytes have room of what others named as seen, where Left leaves
	// less; nil: any number.
	Spare func() int
	// Each is how many bytes a fact takes of Left and Spare beside its own.
	Each int
}

// PartOf is how much of one author each of so many partners may take in for itself, where
// each has that much room for what others named: what all of them together took in then
// fits at each, and one part is left for what they say themselves. Partners are those from
// the start, as a liar can bring in as many as it likes.
func PartOf[T int | int64](room T, partners int) T { return max(room/T(max(partners, 1)), 1) }

// Limit sets the shares of the authors.
func (m *Machine) Limit(s Shares) { m.door.shares = s }

// Why something was not taken in: more of its author than its share.
const (
	TooManyChains  = "chains"
	TooManyFacts   = "facts"
	TooManyForks   = "forks"   // more branches of one chain than are needed to know what it is worth
	TooManyBytes   = "bytes"   // in all instances together
	TooManyNamed   = "named"   // of what others named, than there is room to spare
	TooManyAuthors = "authors" // more authors who take no part than are heard
)

// Declined is how many facts of an author were not taken in, and why.
type Declined struct {
	Author workflow.PartnerID
	Why    string
	Facts  int
}

const (
	// maxOutsiders is how many authors are heard who take no part, or none any more:
	// a forked chain may have brought them in.
	maxOutsiders = 16
	// maxRemembered bounds what is remembered, by author, of facts that are not here:
	// of the author's facts, and of what it named. Of an author that floods it everything
	// is forgotten at once, and nothing of others.
	maxRemembered = 1024
)

// door is what a machine remembers of what it did not take in.
type door struct {
	self   workflow.PartnerID
	log    *Log
	state  *State
	shares Shares
	// declined are the facts, declinedOf the same by author, who takes no part together
	// under "". By the partner that named it, named is up to which number that one has
	// seen a chain of which this is not here, wanted what it has seen or set aside that
	// is not here, with what comes before it.
	declined   map[FactID]Declined
	declinedOf map[workflow.PartnerID]map[FactID]bool
	named      map[workflow.PartnerID]map[Chain]uint64
	wanted     map[workflow.PartnerID]map[FactID]bool
	counts     map[Declined]int

	looked int // entries of the log of which the rest has been worked out
	// authors have facts among those that nobody looked at yet for naming.
	authors []workflow.PartnerID
	// aside is what others have set aside that is not here, with those that did, ours
	// up to which number this node has set a strand aside.
	aside map[FactID][]workflow.PartnerID
	ours  map[*strand]uint64
	// stood are the limits of authors, and the forked chains, for which this node has
	// named all that it may have.
	stood  map[workflow.PartnerID]spent
	forked map[*chain]bool
	// cut are the authors of whom a run was declined that had begun within the limits.
	cut map[workflow.PartnerID]bool

	crowded crowded
}

// spent says of which limits no more of an author is taken in for itself. A run that is
// declined as a whole may keep an author below them for good: then cut is how often the number
// of its facts has doubled, so that few words are enough.
type spent struct {
	chains, facts, bytes bool
	cut                  int
}

func newDoor(self workflow.PartnerID, l *Log, s *State) door {
	return door{
		self: self, log: l, state: s,
		declined: map[FactID]Declined{}, declinedOf: map[workflow.PartnerID]map[FactID]bool{},
		counts: map[Declined]int{},
		named:  map[workflow.PartnerID]map[Chain]uint64{}, wanted: map[workflow.PartnerID]map[FactID]bool{},
		aside: map[FactID][]workflow.PartnerID{}, ours: map[*strand]uint64{}, stood: map[workflow.PartnerID]spent{},
		forked: map[*chain]bool{},
		cut:    map[workflow.PartnerID]bool{}, crowded: newCrowded(),
	}
}

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

// Uncounted is how many facts that do not count came since the last call, by author:
// without those of forked chains, whose author may be honest (fork.go).
func (m *Machine) Uncounted() map[workflow.PartnerID]int {
	return m.state.takeUncounted()
}

// admit are the facts without those that are beyond what is taken in of their
// author, and without what follows from those. It reports whether that is all.
func (m *Machine) admit(from workflow.PartnerID, facts []Received) (admitted []Received, all bool) {
	v := visit{
		m: m, of: map[workflow.PartnerID]authored{}, chains: map[Chain]string{},
		branches: map[Chain]int{}, follows: map[place]FactID{},
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
	in := m.state.broughtIn(facts)
	for i, f := range facts {
		if why[i] == "" {
			m.door.nameSeen(f.Fact, in)
		}
	}
	m.door.wantWhole(facts)
	v.runs, v.gone = m.log.runs(facts), map[FactID]Declined{}
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

// keepOut declines a fact; beyond is whether it is for itself, not only for what comes
// before it.
func (v *visit) keepOut(from workflow.PartnerID, f Received, d Declined, beyond bool) {
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
func (v *visit) proven(from workflow.PartnerID, facts, admitted []Received) []Received {
	m, l := v.m, v.m.log
	fits, _ := l.fitting(admitted)
	bare := l.bare(admitted, fits)
	if len(bare) == 0 {
		return admitted
	}
	of, children := map[FactID]Received{}, map[FactID][]Received{}
	for _, f := range admitted {
		if bare[f.ID] {
			of[f.ID] = f
			for p := range f.Fact.parents() {
				l.steps++
				children[p] = append(children[p], f)
			}
		}
	}
	var queue []Received
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
			l.steps++
			author := x.Fact.Chain.Author
			if v.gone[x.ID].Why != "" || author != d.Author && m.Participates(author) {
				continue
			}
			v.keepOut(from, x, Declined{Author: author, Why: d.Why}, true)
			m.door.wasCut(author)
			queue = append(queue, x)
		}
	}
	stays := make(map[FactID]bool, len(admitted))
	for _, f := range admitted {
		stays[f.ID] = !bare[f.ID]
	}
	return slices.DeleteFunc(admitted, func(f Received) bool {
		if !bare[f.ID] || v.gone[f.ID].Why != "" {
			return bare[f.ID]
		}
		for p := range f.Fact.parents() {
			l.steps++
			if !l.Has(p) && !stays[p] {
				return false
			}
		}
		return true
	})
}

// wasCut notes that a run of an author was declined that had begun within the limits.
func (d *door) wasCut(author workflow.PartnerID) {
	if !d.state.participates(author) && d.log.authored[author].facts == 0 {
		return // there may be any number of them, and nothing is to be named
	}
	d.cut[author] = true
	if !slices.Contains(d.authors, author) {
		d.authors = append(d.authors, author)
	}
}

// runs say of each of the facts that are not here how much goes in with it or not at all: the
// run of its chain under one attestation.
func (l *Log) runs(facts []Received) map[FactID]authored {
	bare, last, out := map[FactID]authored{}, map[FactID]authored{}, make(map[FactID]authored, len(facts))
	for _, f := range facts {
		if l.Has(f.ID) {
			continue
		}
		of := bare[f.Fact.Prev]
		of.facts, of.bytes = of.facts+1, of.bytes+len(f.Raw)
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

// visit counts what a batch of facts brings of each author.
type visit struct {
	m      *Machine
	of     map[workflow.PartnerID]authored
	chains map[Chain]string // that the batch opens, and why they are too many; "": they are not
	// branches are how many of a chain the batch opens, follows what was first of its
	// facts at a place.
	branches map[Chain]int
	follows  map[place]FactID
	named    int // bytes of what is taken in only as others named it
	// runs say with how much else each fact goes in (Log.runs), gone why it is declined.
	runs map[FactID]authored
	gone map[FactID]Declined
}

// place is where a chain goes on: after that fact.
type place struct {
	chain Chain
	prev  FactID
}

// tooMany reports whether a fact forks its chain where that has as many branches
// already as it takes for nothing of it to count by itself (fork.go).
func (v *visit) tooMany(f Received) bool {
	l, at := v.m.log, place{f.Fact.Chain, f.Fact.Prev}
	c := l.index[at.chain]
	if first, ok := v.follows[at]; ok && first == f.ID {
		return false
	} else if !ok {
		v.follows[at] = f.ID
		prev := l.byID[at.prev]
		if c == nil || prev != nil && prev.strand.last() == prev || prev == nil && f.Fact.Seq > 1 {
			return false // the chain goes on, here or in the batch
		}
	}
	strands := 1
	if c != nil {
		strands = len(c.strands)
	}
	if strands+v.branches[at.chain] > maxBranches {
		return true
	}
	v.branches[at.chain]++
	return false
}

// authored is how much there is of an author.
type authored struct{ chains, facts, bytes int }

// beyond says why a fact is more than is taken in of its author for itself; "": it
// is not.
func (v *visit) beyond(f Received) string {
	author, l := f.Fact.Chain.Author, v.m.log
	if author == v.m.self || l.Has(f.ID) {
		return ""
	}
	of, known := v.of[author]
	if !known {
		of = l.authored[author]
	}
	if why, opened := v.chains[f.Fact.Chain]; !opened && l.index[f.Fact.Chain] == nil {
		switch {
		case of.chains == 0 && !v.m.Participates(author) && v.outsiders() >= maxOutsiders:
			why = TooManyAuthors
		case of.chains >= MaxChains:
			why = TooManyChains
		default:
			of.chains++
		}
		v.chains[f.Fact.Chain] = why
	}
	why := v.chains[f.Fact.Chain]
	if why == "" && v.tooMany(f) {
		why = TooManyForks
	}
	if s := v.m.door.shares; why == "" &&
		(s.Facts > 0 && of.facts >= s.Facts || s.Bytes > 0 && of.bytes+len(f.Raw) > s.Bytes) {
		why = TooManyFacts
	}
	if s := v.m.door.shares; why == "" && s.Left != nil && v.new(author)+len(f.Raw)+s.Each > s.Left(author) {
		why = TooManyBytes
	}
	if why == "" {
		of.facts++
		of.bytes += len(f.Raw)
	}
	v.of[author] = of
	return why
}

// takesNamed reports whether there is room for a fact that is beyond what is taken in of
// its author for itself, and that another named: the one that names it may lie as well.
func (v *visit) takesNamed(f Received) bool {
	s, author := v.m.door.shares, f.Fact.Chain.Author
	if author == v.m.self || v.m.log.Has(f.ID) {
		return true
	}
	v.named += len(f.Raw) + s.Each
	own := s.Left == nil || v.new(author)+v.named <= s.Left(author)
	return own || s.Spare == nil || v.added()+v.named <= s.Spare()
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
	is, was := v.of[p], v.m.log.authored[p]
	return max(is.bytes-was.bytes, 0) + max(is.facts-was.facts, 0)*v.m.door.shares.Each
}

// Has reports whether a fact is here.
func (m *Machine) Has(id FactID) bool { return m.log.Has(id) }

// Lives is how many chains of an author are here: one for each time that its store was
// made or restored while it took part.
func (m *Machine) Lives(p workflow.PartnerID) int { return len(m.log.byAuthor[p]) }

// Authored calls each with how many facts of an author are here, and their bytes.
func (m *Machine) Authored(each func(author workflow.PartnerID, facts, bytes int)) {
	for p, of := range m.log.authored {
		each(p, of.facts, of.bytes)
	}
}

// AuthoredBy is how many facts of an author are here, and their bytes.
func (m *Machine) AuthoredBy(author workflow.PartnerID) (facts, bytes int) {
	of := m.log.authored[author]
	return of.facts, of.bytes
}

// outsiders are the authors here and in the batch who take no part.
func (v *visit) outsiders() (n int) {
	for p := range v.m.log.authored {
		if !v.m.Participates(p) {
			n++
		}
	}
	for p, of := range v.of {
		if of.chains > 0 && !v.m.Participates(p) && v.m.log.authored[p].chains == 0 {
			n++
		}
	}
	return n
}

// nameSeen remembers what a fact names as seen of others, or sets aside, that is not
// here, if its author takes part, or is among those who come in with it.
func (d *door) nameSeen(f *Fact, in map[workflow.PartnerID]bool) {
	by := f.Chain.Author
	if !d.state.participates(by) && !in[by] {
		return
	}
	for _, h := range f.Seen {
		if h.Chain.Author != by {
			d.name(by, h)
			d.want(by, h.ID)
		}
	}
	for h := range f.aside() {
		d.name(by, h)
		d.want(by, h.ID)
	}
}

// wantPast remembers what comes before a fact that somebody named.
func (d *door) wantPast(by workflow.PartnerID, f *Fact) {
	if f.Seq > 1 {
		d.want(by, f.Prev)
	}
	for _, h := range f.Seen {
		d.name(by, h)
		d.want(by, h.ID)
	}
}

// wantWhole remembers of the facts what comes before those that somebody named, and what
// follows them in their chain up to the attestation that vouches for them.
func (d *door) wantWhole(facts []Received) {
	type wish struct {
		by workflow.PartnerID
		id FactID
	}
	at, next := make(map[FactID]Received, len(facts)), map[FactID]Received{}
	done := map[wish]bool{}
	var queue []wish
	add := func(by workflow.PartnerID, id FactID) {
		if w := (wish{by, id}); !done[w] {
			done[w] = true
			queue = append(queue, w)
		}
	}
	for _, f := range facts {
		if d.log.Has(f.ID) {
			continue
		}
		at[f.ID] = f
		if _, forks := next[f.Fact.Prev]; !forks {
			next[f.Fact.Prev] = f
		}
		for _, by := range d.wantedBy(f.ID) {
			add(by, f.ID)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		by, f := queue[0].by, at[queue[0].id]
		d.wantPast(by, f.Fact)
		for p := range f.Fact.parents() {
			d.log.steps++
			if _, came := at[p]; came {
				add(by, p)
			}
		}
		if n, goesOn := next[f.ID]; goesOn && f.Att == nil {
			d.name(by, Head{Chain: n.Fact.Chain, Seq: n.Fact.Seq, ID: n.ID})
			d.want(by, n.ID)
			add(by, n.ID)
		}
	}
}

// name remembers up to where somebody named a chain, if that is not here.
func (d *door) name(by workflow.PartnerID, h Head) {
	if !d.log.Has(h.ID) && h.Seq > d.named[by][h.Chain] {
		withRoom(d.named, by)[h.Chain] = h.Seq
		d.crowded.named(h.Chain.Author)
	}
}

// want remembers a fact that somebody named, if it is not here.
func (d *door) want(by workflow.PartnerID, id FactID) {
	if !d.log.Has(id) {
		withRoom(d.wanted, by)[id] = true
	}
}

// withRoom is what is remembered by an author, with room for one more.
func withRoom[K comparable, V any](all map[workflow.PartnerID]map[K]V, by workflow.PartnerID) map[K]V {
	if all[by] == nil {
		all[by] = map[K]V{}
	}
	if len(all[by]) >= maxRemembered {
		clear(all[by])
	}
	return all[by]
}

// wantedBy are the partners that named or set aside a fact that is not here, or what comes after
// it.
func (d *door) wantedBy(id FactID) (by []workflow.PartnerID) {
	for p, of := range d.wanted {
		if of[id] {
			by = append(by, p)
		}
	}
	for _, p := range d.aside[id] {
		if !d.wanted[p][id] {
			by = append(by, p)
		}
	}
	return by
}

// isNamed reports whether another has named a fact that is not here; of its chain, only
// if that will do.
func (d *door) isNamed(f Received, chain bool) bool {
	if len(d.wantedBy(f.ID)) > 0 {
		return true
	}
	for _, of := range d.named {
		if chain && f.Fact.Seq <= of[f.Fact.Chain] {
			return true
		}
	}
	return false
}

// aside are the heads that a fact sets aside.
func (f *Fact) aside() iter.Seq[Head] {
	return func(yield func(Head) bool) {
		if f.Body.Seen == nil {
			return
		}
		for _, h := range f.Body.Seen.Aside {
			if h.Chain.Author != f.Chain.Author && !yield(h) {
				return
			}
		}
	}
}

// declines says why a fact is not taken in; an empty reason: it is. Beyond is why it
// is not for itself.
func (d *door) declines(f Received, beyond string) Declined {
	author := f.Fact.Chain.Author
	if author == d.self || d.log.Has(f.ID) {
		return Declined{}
	}
	if beyond != "" && !d.isNamed(f, beyond != TooManyForks) {
		return Declined{Author: author, Why: beyond}
	}
	for p := range f.Fact.parents() {
		x, gone := d.declined[p]
		// An author that takes part and is within its limits has named what it has
		// seen of others: that is missing, and taken in when it comes again.
		if gone && (x.Author == author || !d.state.participates(author)) {
			return Declined{Author: author, Why: x.Why}
		}
	}
	return Declined{}
}

func (d *door) decline(id FactID, x Declined) {
	d.counts[x]++
	by := workflow.PartnerID("")
	if d.state.participates(x.Author) {
		by = x.Author
	}
	if of := d.declinedOf[by]; len(of) >= maxRemembered {
		for old := range of {
			delete(d.declined, old)
		}
	}
	withRoom(d.declinedOf, by)[id], d.declined[id] = true, x
}

// undecline forgets that a fact was not taken in.
func (d *door) undecline(id FactID) {
	if x, was := d.declined[id]; was {
		delete(d.declined, id)
		for _, by := range []workflow.PartnerID{x.Author, ""} {
			delete(d.declinedOf[by], id)
		}
	}
}

// readOn works out what the facts that came since mean for the door.
func (m *Machine) readOn() {
	d := &m.door
	for ; d.looked < m.log.Len(); d.looked++ {
		e := m.log.order[d.looked]
		author := e.fact.Chain.Author
		if author != m.self && !slices.Contains(d.authors, author) {
			d.authors = append(d.authors, author)
		}
		for _, by := range d.aside[e.id] {
			m.hears(by, e, d.looked)
		}
		delete(d.aside, e.id)
		for h := range e.fact.aside() {
			switch x := m.log.byID[h.ID]; {
			case author != m.self && x == nil && m.Participates(author):
				m.door.name(author, h)
				if !slices.Contains(d.aside[h.ID], author) {
					d.aside[h.ID] = append(d.aside[h.ID], author)
				}
			case author == m.self && x != nil:
				d.ours[x.strand] = max(d.ours[x.strand], h.Seq)
			case x != nil:
				m.hears(author, x, d.looked)
			}
		}
	}
}

// nameAll names, once, all that is here of an author of whom no more is taken in for
// itself: others may have other facts of it. It reports whether a fact was added.
func (d *decision) nameAll() (added bool) {
	d.readOn()
	authors := d.door.authors
	d.door.authors = nil
	for _, p := range authors {
		if !d.mustName(p) {
			continue
		}
		seen, aside := d.unnamedOf(p)
		if len(seen)+len(aside) == 0 {
			continue
		}
		seen = append(seen, d.log.unseen(d.own)...) // what else is new goes with it
		slices.SortFunc(seen, Head.compare)
		slices.SortFunc(aside, Head.compare)
		for seen = slices.Compact(seen); len(seen)+len(aside) > 0; {
			s, a := min(len(seen), MaxHeadsSeen), min(len(aside), MaxHeadsSeen)
			if _, err := d.say(Body{Seen: &Seen{Aside: aside[:a]}}, seen[:s]); err == nil {
				added = true
			}
			seen, aside = seen[s:], aside[a:]
		}
	}
	return added
}

// mustName reports whether an author has come to a limit here, or has forked a chain
// too often, of which this node has not yet named as much as that. It says so once.
func (m *Machine) mustName(p workflow.PartnerID) (must bool) {
	d, of := &m.door, m.log.authored[p]
	stood, here := d.stood[p], d.spent(of)
	if d.cut[p] {
		here.cut = bits.Len(uint(of.facts))
	}
	if here != stood {
		d.stood[p] = here
		must = d.spent(m.namedOf(p)) != here
	}
	for _, c := range m.log.byAuthor[p] {
		if len(c.strands) <= maxBranches || d.forked[c] {
			continue
		}
		d.forked[c] = true
		named := 0
		for _, s := range c.strands {
			named += one(m.namedIn(s) > s.base())
		}
		must = must || named <= maxBranches
	}
	return must
}

// spent says which limits so much of an author has come to.
func (d *door) spent(of authored) spent {
	s := d.shares
	return spent{
		chains: of.chains >= MaxChains, facts: s.Facts > 0 && of.facts >= s.Facts,
		bytes: s.Bytes > 0 && of.bytes+MaxFact > s.Bytes, // some facts do not fit any more
	}
}

// namedIn is up to which number this node has named a strand: it built upon that, or
// set it aside.
func (m *Machine) namedIn(s *strand) uint64 {
	n := max(s.base(), m.door.ours[s])
	if m.own != nil {
		n = max(n, m.own.others.at(s.place))
	}
	return n
}

// namedOf is how much of an author this node has named.
func (m *Machine) namedOf(p workflow.PartnerID) (of authored) {
	for _, c := range m.log.byAuthor[p] {
		known := false
		for _, s := range c.strands {
			n := m.namedIn(s)
			known = known || n > s.base()
			of.facts += int(n - s.base())
			for _, e := range s.facts[:n-s.base()] {
				m.log.steps++
				of.bytes += len(e.raw)
			}
		}
		of.chains += one(known)
	}
	return of
}

// unnamedOf are the last facts of an author's chains that this node has not named: seen
// is what counts, the rest is set aside. A fork took that away, or its author was not
// entitled to it; others are to have it too, but who has no room for it is to have what
// this node says all the same.
func (m *Machine) unnamedOf(p workflow.PartnerID) (seen, aside []Head) {
	for _, c := range m.log.byAuthor[p] {
		counts := c.heeded()
		for _, s := range c.strands {
			if last := s.last(); !slices.Contains(counts, last) && m.namedIn(s) < last.fact.Seq {
				aside = append(aside, last.head())
			}
		}
		for _, e := range counts {
			if m.own == nil || !m.log.knew(m.own, e) {
				seen = append(seen, e.head())
			}
		}
	}
	return seen, aside
}
