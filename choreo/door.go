package choreo

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps what a node remembers of what it did not take in (admit.go): what that was, who named it, and
// what was refused for want of room (crowded.go).

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

// NoRoom reports whether it was for want of room, of which nodes have more or less, that
// facts were not taken in.
func (d Declined) NoRoom() bool {
	return d.Why == TooManyFacts || d.Why == TooManyBytes || d.Why == TooManyNamed
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

// crowded is what this node does about what partners refuse, and it refuses itself.
type crowded struct {
	of     map[workflow.PartnerID]time.Duration // authors of whom more may have to be set aside, since when (Boot)
	spoken map[workflow.PartnerID]spoken
	// theirs is up to which number others have set a strand aside, heard where in the log
	// the last fact is, since this node looked, in which another named more of an author.
	theirs  map[*log.Strand]map[workflow.PartnerID]uint64
	heard   map[workflow.PartnerID]int
	refused map[workflow.PartnerID]*turnedAway // here, by author
}

// turnedAway is that facts of an author were refused here for want of room.
type turnedAway struct {
	from  map[workflow.PartnerID]bool // those who sent them
	size  log.Authored                // of the smallest run for which there was none
	named bool                        // others named some of them
}

// spoken says when more of an author may be set aside (Boot), and how long the pause
// before that is.
type spoken struct{ again, pause time.Duration }

func newCrowded() crowded {
	return crowded{
		of: map[workflow.PartnerID]time.Duration{}, spoken: map[workflow.PartnerID]spoken{},
		theirs: map[*log.Strand]map[workflow.PartnerID]uint64{}, heard: map[workflow.PartnerID]int{},
		refused: map[workflow.PartnerID]*turnedAway{},
	}
}

// named notes that others named facts of an author: what was refused of it is taken where
// there is room to spare.
func (c *crowded) named(author workflow.PartnerID) {
	if t := c.refused[author]; t != nil {
		t.named = true
	}
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

// spent says which limits so much of an author has come to.
func (d *door) spent(of log.Authored) spent {
	s := d.shares
	return spent{
		chains: of.Chains >= fact.MaxChains, facts: s.Facts > 0 && of.Facts >= s.Facts,
		bytes: s.Bytes > 0 && of.Bytes+fact.MaxFact > s.Bytes, // some facts do not fit any more
	}
}

// turnAway notes that a fact was refused for want of room, which takes so much with its run;
// beyond is whether it was for itself, not only for what comes before it. Authors who take no
// part are as many as they like: of them, those beyond a limit are left to be sent again after
// a while.
func (d *door) turnAway(from, author workflow.PartnerID, size log.Authored, beyond bool) {
	c := &d.crowded
	t := c.refused[author]
	if t == nil {
		if len(c.refused) >= maxRemembered && !d.state.Participates(author) {
			return
		}
		t = &turnedAway{from: map[workflow.PartnerID]bool{}, size: size}
		c.refused[author] = t
	}
	t.from[from] = true
	if beyond && size.Bytes < t.size.Bytes {
		t.size = size
	}
}

// hasRoom reports whether there is room for something that was refused of an author, as
// visit.beyond and visit.takesNamed say of what comes.
func (d *door) hasRoom(author workflow.PartnerID, t *turnedAway) bool {
	s, of := d.shares, d.log.Authored()[author]
	size := t.size.Bytes + t.size.Facts*s.Each
	left := s.Left == nil || size <= s.Left(author)
	if t.named {
		return left || s.Spare == nil || size <= s.Spare()
	}
	return left && (s.Facts == 0 || of.Facts+t.size.Facts <= s.Facts) &&
		(s.Bytes == 0 || of.Bytes+t.size.Bytes <= s.Bytes)
}

// noRoomBefore reports whether all that is missing before facts was refused for want of
// room.
func (d *door) noRoomBefore(facts []fact.Received) bool {
	here := make(map[fact.ID]bool, len(facts))
	for _, f := range facts {
		here[f.ID] = true
	}
	for _, f := range facts {
		if d.log.Has(f.ID) {
			continue
		}
		for p := range f.Fact.Parents() {
			d.log.Steps++
			if !here[p] && !d.log.Has(p) && !d.declined[p].NoRoom() {
				return false
			}
		}
	}
	return true
}
