package choreo

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
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
	log    *log.Log
	state  *state.State
	shares Shares
	// declined are the facts, declinedOf the same by author, who takes no part together
	// under "". By the partner that named it, named is up to which number that one has
	// seen a chain of which this is not here, wanted what it has seen or set aside that
	// is not here, with what comes before it.
	declined   map[fact.ID]Declined
	declinedOf map[workflow.PartnerID]map[fact.ID]bool
	named      map[workflow.PartnerID]map[fact.Chain]uint64
	wanted     map[workflow.PartnerID]map[fact.ID]bool
	counts     map[Declined]int

	looked int // entries of the log of which the rest has been worked out
	// authors have facts among those that nobody looked at yet for naming.
	authors []workflow.PartnerID
	// aside is what others have set aside that is not here, with those that did, ours
	// up to which number this node has set a strand aside.
	aside map[fact.ID][]workflow.PartnerID
	ours  map[*log.Strand]uint64
	// stood are the limits of authors, and the forked chains, for which this node has
	// named all that it may have.
	stood  map[workflow.PartnerID]spent
	forked map[*log.Chain]bool
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

func newDoor(self workflow.PartnerID, l *log.Log, s *state.State) door {
	return door{
		self: self, log: l, state: s,
		declined: map[fact.ID]Declined{}, declinedOf: map[workflow.PartnerID]map[fact.ID]bool{},
		counts: map[Declined]int{},
		named:  map[workflow.PartnerID]map[fact.Chain]uint64{}, wanted: map[workflow.PartnerID]map[fact.ID]bool{},
		aside: map[fact.ID][]workflow.PartnerID{}, ours: map[*log.Strand]uint64{},
		stood:  map[workflow.PartnerID]spent{},
		forked: map[*log.Chain]bool{},
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
// without those of forked chains, whose author may be honest (choreo/log/fork.go).
func (m *Machine) Uncounted() map[workflow.PartnerID]int {
	return m.state.TakeUncounted()
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

// wasCut notes that a run of an author was declined that had begun within the limits.
func (d *door) wasCut(author workflow.PartnerID) {
	if !d.state.Participates(author) && d.log.Authored()[author].Facts == 0 {
		return // there may be any number of them, and nothing is to be named
	}
	d.cut[author] = true
	if !slices.Contains(d.authors, author) {
		d.authors = append(d.authors, author)
	}
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

// Has reports whether a fact is here.
func (m *Machine) Has(id fact.ID) bool { return m.log.Has(id) }

// Lives is how many chains of an author are here: one for each time that its store was
// made or restored while it took part.
func (m *Machine) Lives(p workflow.PartnerID) int { return len(m.log.ByAuthor()[p]) }

// Authored calls each with how many facts of an author are here, and their bytes.
func (m *Machine) Authored(each func(author workflow.PartnerID, facts, bytes int)) {
	for p, of := range m.log.Authored() {
		each(p, of.Facts, of.Bytes)
	}
}

// AuthoredBy is how many facts of an author are here, and their bytes.
func (m *Machine) AuthoredBy(author workflow.PartnerID) (facts, bytes int) {
	of := m.log.Authored()[author]
	return of.Facts, of.Bytes
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

// nameSeen remembers what a fact names as seen of others, or sets aside, that is not
// here, if its author takes part, or is among those who come in with it.
func (d *door) nameSeen(f *fact.Fact, in map[workflow.PartnerID]bool) {
	by := f.Chain.Author
	if !d.state.Participates(by) && !in[by] {
		return
	}
	for _, h := range f.Seen {
		if h.Chain.Author != by {
			d.name(by, h)
			d.want(by, h.ID)
		}
	}
	for h := range f.Aside() {
		d.name(by, h)
		d.want(by, h.ID)
	}
}

// wantPast remembers what comes before a fact that somebody named.
func (d *door) wantPast(by workflow.PartnerID, f *fact.Fact) {
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
func (d *door) wantWhole(facts []fact.Received) {
	type wish struct {
		by workflow.PartnerID
		id fact.ID
	}
	at, next := make(map[fact.ID]fact.Received, len(facts)), map[fact.ID]fact.Received{}
	done := map[wish]bool{}
	var queue []wish
	add := func(by workflow.PartnerID, id fact.ID) {
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
		for p := range f.Fact.Parents() {
			d.log.Steps++
			if _, came := at[p]; came {
				add(by, p)
			}
		}
		if n, goesOn := next[f.ID]; goesOn && f.Att == nil {
			d.name(by, fact.Head{Chain: n.Fact.Chain, Seq: n.Fact.Seq, ID: n.ID})
			d.want(by, n.ID)
			add(by, n.ID)
		}
	}
}

// name remembers up to where somebody named a chain, if that is not here.
func (d *door) name(by workflow.PartnerID, h fact.Head) {
	if !d.log.Has(h.ID) && h.Seq > d.named[by][h.Chain] {
		withRoom(d.named, by)[h.Chain] = h.Seq
		d.crowded.named(h.Chain.Author)
	}
}

// want remembers a fact that somebody named, if it is not here.
func (d *door) want(by workflow.PartnerID, id fact.ID) {
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
func (d *door) wantedBy(id fact.ID) (by []workflow.PartnerID) {
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
func (d *door) isNamed(f fact.Received, chain bool) bool {
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

// declines says why a fact is not taken in; an empty reason: it is. Beyond is why it
// is not for itself.
func (d *door) declines(f fact.Received, beyond string) Declined {
	author := f.Fact.Chain.Author
	if author == d.self || d.log.Has(f.ID) {
		return Declined{}
	}
	if beyond != "" && !d.isNamed(f, beyond != TooManyForks) {
		return Declined{Author: author, Why: beyond}
	}
	for p := range f.Fact.Parents() {
		x, gone := d.declined[p]
		// An author that takes part and is within its limits has named what it has
		// seen of others: that is missing, and taken in when it comes again.
		if gone && (x.Author == author || !d.state.Participates(author)) {
			return Declined{Author: author, Why: x.Why}
		}
	}
	return Declined{}
}

func (d *door) decline(id fact.ID, x Declined) {
	d.counts[x]++
	by := workflow.PartnerID("")
	if d.state.Participates(x.Author) {
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
func (d *door) undecline(id fact.ID) {
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
		e := m.log.Order()[d.looked]
		author := e.Fact.Chain.Author
		if author != m.self && !slices.Contains(d.authors, author) {
			d.authors = append(d.authors, author)
		}
		for _, by := range d.aside[e.ID] {
			m.hears(by, e, d.looked)
		}
		delete(d.aside, e.ID)
		for h := range e.Fact.Aside() {
			switch x := m.log.ByID()[h.ID]; {
			case author != m.self && x == nil && m.Participates(author):
				m.door.name(author, h)
				if !slices.Contains(d.aside[h.ID], author) {
					d.aside[h.ID] = append(d.aside[h.ID], author)
				}
			case author == m.self && x != nil:
				d.ours[x.Strand] = max(d.ours[x.Strand], h.Seq)
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
		seen = append(seen, d.log.Unseen(d.own)...) // what else is new goes with it
		slices.SortFunc(seen, fact.Head.Compare)
		slices.SortFunc(aside, fact.Head.Compare)
		for seen = slices.Compact(seen); len(seen)+len(aside) > 0; {
			s, a := min(len(seen), fact.MaxHeadsSeen), min(len(aside), fact.MaxHeadsSeen)
			if _, err := d.say(fact.Body{Seen: &fact.Seen{Aside: aside[:a]}}, seen[:s]); err == nil {
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
	d, of := &m.door, m.log.Authored()[p]
	stood, here := d.stood[p], d.spent(of)
	if d.cut[p] {
		here.cut = bits.Len(uint(of.Facts))
	}
	if here != stood {
		d.stood[p] = here
		must = d.spent(m.namedOf(p)) != here
	}
	for _, c := range m.log.ByAuthor()[p] {
		if len(c.Strands) <= log.MaxBranches || d.forked[c] {
			continue
		}
		d.forked[c] = true
		named := 0
		for _, s := range c.Strands {
			named += state.AsInt(m.namedIn(s) > s.Base())
		}
		must = must || named <= log.MaxBranches
	}
	return must
}

// spent says which limits so much of an author has come to.
func (d *door) spent(of log.Authored) spent {
	s := d.shares
	return spent{
		chains: of.Chains >= fact.MaxChains, facts: s.Facts > 0 && of.Facts >= s.Facts,
		bytes: s.Bytes > 0 && of.Bytes+fact.MaxFact > s.Bytes, // some facts do not fit any more
	}
}

// namedIn is up to which number this node has named a strand: it built upon that, or
// set it aside.
func (m *Machine) namedIn(s *log.Strand) uint64 {
	n := max(s.Base(), m.door.ours[s])
	if m.own != nil {
		n = max(n, m.own.Others.At(s.Place))
	}
	return n
}

// namedOf is how much of an author this node has named.
func (m *Machine) namedOf(p workflow.PartnerID) (of log.Authored) {
	for _, c := range m.log.ByAuthor()[p] {
		known := false
		for _, s := range c.Strands {
			n := m.namedIn(s)
			known = known || n > s.Base()
			of.Facts += int(n - s.Base())
			for _, e := range s.Facts[:n-s.Base()] {
				m.log.Steps++
				of.Bytes += len(e.Raw)
			}
		}
		of.Chains += state.AsInt(known)
	}
	return of
}

// unnamedOf are the last facts of an author's chains that this node has not named: seen
// is what counts, the rest is set aside. A fork took that away, or its author was not
// entitled to it; others are to have it too, but who has no room for it is to have what
// this node says all the same.
func (m *Machine) unnamedOf(p workflow.PartnerID) (seen, aside []fact.Head) {
	for _, c := range m.log.ByAuthor()[p] {
		counts := c.Heeded()
		for _, s := range c.Strands {
			if last := s.Last(); !slices.Contains(counts, last) && m.namedIn(s) < last.Fact.Seq {
				aside = append(aside, last.Head())
			}
		}
		for _, e := range counts {
			if m.own == nil || !m.log.Knew(m.own, e) {
				seen = append(seen, e.Head())
			}
		}
	}
	return seen, aside
}
