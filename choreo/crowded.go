package choreo

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about facts that a partner has no room for: their author fills there the
// part of the node, or of the instance, that it may (admit.go). How much that is differs
// from node to node, so one may have what another refuses. Hence:
//
//   - A node that refuses facts for that says so to their sender, with the author.
//   - The sender sets aside, in `seen` facts of its own, what it has of the author and
//     has not named: all that may change what counts. Nobody builds upon it by that, so
//     these facts are taken in whether there is room for the rest or not. One word is enough
//     for all: so all who were refused take turns, and none sets aside what another has,
//     as long as nobody refuses the facts of that one, too.
//   - What was refused is held back from that partner for a while. All else goes, also
//     what others have built upon it: that cannot be taken in yet, but it names what is
//     missing.
//   - As soon as a node has room for what it refused, or others have named that and it has
//     room to spare, it says to those who sent it that it takes it now. Then it comes again,
//     and what others have built upon it.
//
// Anybody may say falsely that it refuses or takes: so it makes this node write ever more
// seldom, and send again a few times in refusedPause. Nothing of this is kept: a partner
// that has started again is told again, and a node finds in its own facts what it has set
// aside.

const (
	// A partner is not sent what it has no room for: at first for firstRefused, each time
	// for twice as long, up to refusedPause. It begins again with the first after nothing
	// was refused for the last.
	firstRefused = 30 * time.Second
	refusedPause = 5 * time.Minute
	// maxTaken is how often a partner may say that it takes it now: in the pauses before
	// they are that long together, then in each.
	maxTaken = 4
	// What partners refuse of an author is set aside at once, then not sooner than after
	// pauses that are each twice the one before, up to the second. They become shorter
	// while nothing is refused.
	nameAgain   = 5 * time.Minute
	nameAtLeast = time.Hour
	// lookAgain is the pause after nothing was found that is to be set aside.
	lookAgain = time.Minute
	// nameTurn is how much later than the one before it, in the order of succession, a node
	// sets aside what all may: but not later than nameAgain.
	nameTurn = 10 * time.Second
)

// ErrNoRoom is returned where all that is missing before a fact was refused for want of
// room: it is of no use to ask for it.
var ErrNoRoom = errors.New("there is no room for the facts before it")

// Taking is that facts of an author are taken now that were refused for want of room: the
// partner that sent them is to send what is lacking.
type Taking struct{ From, Author workflow.PartnerID }

// Refuses reports whether facts were refused here for want of room, and nobody was told
// since that they are taken.
func (m *Machine) Refuses() bool { return len(m.door.crowded.refused) > 0 }

// Takes are those whose facts were refused here for want of room, and for which there is
// room now. It says so once.
func (m *Machine) Takes() (out []Taking) {
	if !m.Refuses() {
		return nil
	}
	m.readOn()
	refused := m.door.crowded.refused
	for _, author := range slices.Sorted(maps.Keys(refused)) {
		if t := refused[author]; m.door.hasRoom(author, t) {
			for _, from := range slices.Sorted(maps.Keys(t.from)) {
				out = append(out, Taking{from, author})
			}
			delete(refused, author)
		}
	}
	return out
}

// Refused tells the machine that a partner has no room for more facts of an author: those
// under way to it are held back for a while.
func (m *Machine) Refused(p, author workflow.PartnerID, now Moment) {
	chains := m.log.ByAuthor()[author]
	if p == m.self || len(chains) == 0 {
		return
	}
	pr := m.peer(p)
	r := pr.refused[author]
	if r == nil {
		if pr.refused == nil {
			pr.refused = map[workflow.PartnerID]*withheld{}
		}
		r = &withheld{}
		pr.refused[author] = r
		for other := range pr.refused { // the author may have set their facts aside in vain
			m.crowds(other, now)
		}
	}
	if now.Boot >= r.until {
		if r.pause == refusedPause {
			r.taken = 0
		}
		r.pause = min(max(2*r.pause, firstRefused), refusedPause)
		r.until = now.Boot + r.pause
	}
	for _, c := range chains {
		for _, s := range c.Strands {
			m.log.Steps++
			if n := pr.sent.At(s.Place); n > max(pr.acked.At(s.Place), r.held.At(s.Place)) {
				r.held = r.held.With(s.Place, n)
			}
		}
	}
	m.crowds(author, now)
}

// crowds notes that facts of an author may have to be set aside.
func (m *Machine) crowds(author workflow.PartnerID, now Moment) {
	c := &m.door.crowded
	if _, known := c.of[author]; !known && author != m.self {
		c.of[author] = now.Boot
	}
}

// Taken tells the machine that a partner takes facts of an author that it refused before:
// they go with what is sent again next (Forget). It reports whether any were held back.
func (m *Machine) Taken(p, author workflow.PartnerID) bool {
	pr := m.peers[p]
	if pr == nil {
		return false
	}
	r := pr.refused[author]
	if r == nil || r.taken == maxTaken || pr.acked.Covers(r.held) {
		return false
	}
	r.held, r.taken = log.Vector{}, r.taken+1
	m.perhapsDue[p] = true
	return true
}

// lackedBy are the facts, causes first, that a peer lacks, that are not under way to it,
// and that are not held back. What an author wrote upon what is held back is as well.
func (m *Machine) lackedBy(p *peer, now Moment) []*log.Entry {
	maps.DeleteFunc(p.refused, func(_ workflow.PartnerID, r *withheld) bool {
		if now.Boot >= r.until {
			r.held = log.Vector{}
		}
		return now.Boot >= r.until+refusedPause
	})
	lacks := m.log.Since(p.underWay(&m.log.Steps))
	if len(p.refused) == 0 {
		return lacks
	}
	return slices.DeleteFunc(lacks, func(e *log.Entry) bool {
		r := p.refused[e.Fact.Chain.Author]
		if r == nil || !slices.ContainsFunc(e.Parents, func(of *log.Entry) bool { return m.holds(p, of) }) {
			return false
		}
		r.held = r.held.With(e.Strand.Place, e.Fact.Seq)
		m.crowds(e.Fact.Chain.Author, now)
		return true
	})
}

// holds reports whether a peer lacks a fact that is held back from it.
func (m *Machine) holds(p *peer, e *log.Entry) bool {
	m.log.Steps++
	r := p.refused[e.Fact.Chain.Author]
	return r != nil && r.held.At(e.Strand.Place) >= e.Fact.Seq && p.acked.At(e.Strand.Place) < e.Fact.Seq
}

// nameRefused sets aside what partners have no room for. It reports whether a fact was
// added.
func (d *decision) nameRefused() (added bool) {
	c := &d.door.crowded
	if len(c.of) == 0 {
		return false // as mostly: then there is nothing to sort
	}
	for _, p := range slices.Sorted(maps.Keys(c.of)) {
		turn := min(time.Duration(d.state.PlaceOf(d.self))*nameTurn, nameAgain)
		if at := max(c.spoken[p].again, c.of[p]+turn); d.now.Boot < at {
			d.out.wake(at)
			continue
		}
		delete(c.of, p)
		d.readOn()
		before, heard := c.heard[p]
		if !heard {
			before = d.log.Len()
		}
		said := d.setAside(d.bearingOf(p, before))
		c.spoken[p] = c.spoken[p].next(d.now.Boot, said || heard)
		delete(c.heard, p)
		added = added || said
	}
	return added
}

// setAside sets heads aside. It reports whether a fact was added.
func (d *decision) setAside(aside []fact.Head) (added bool) {
	slices.SortFunc(aside, fact.Head.Compare)
	for part := range slices.Chunk(aside, fact.MaxHeadsSeen) {
		var seen []fact.Head
		if d.own == nil { // a first fact must have seen something
			seen = []fact.Head{d.log.Genesis().Head()}
		}
		if _, err := d.say(fact.Body{Seen: &fact.Seen{Aside: part}}, seen); err == nil {
			added = true
		}
	}
	return added
}

// bearingOf are the last facts of an author's chains that neither this node nor another has
// named and that bear upon what counts, without what came here since: that the other does not
// name may be as it had not come there.
func (m *Machine) bearingOf(p workflow.PartnerID, before int) (out []fact.Head) {
	for _, c := range m.log.ByAuthor()[p] {
		for _, s := range c.Strands {
			named := max(m.namedIn(s), m.namedByOthers(s))
			for n := s.End(); n > named; n-- {
				m.log.Steps++
				if e := s.Number(n); e.Index < before && e.Bears() {
					out = append(out, e.Head())
					break
				}
			}
		}
	}
	return out
}

// next is when more may be set aside after something was, or was not, now.
func (s spoken) next(now time.Duration, said bool) spoken {
	for quiet := now - s.again; s.pause > 0 && quiet >= s.pause; {
		quiet -= s.pause
		if s.pause /= 2; s.pause < nameAgain {
			s.pause = 0
		}
	}
	if !said {
		return spoken{now + lookAgain, s.pause}
	}
	s.pause = min(max(2*s.pause, nameAgain), nameAtLeast)
	return spoken{now + s.pause, s.pause}
}
