package choreo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file puts together what one peer is sent: what it lacks, so that it can take it in.

// Bundle is what one peer lacks of one instance.
type Bundle struct {
	Instance workflow.InstanceID
	Facts    []*Outgoing
	// First is set when the peer is not known to have anything of the
	// instance: it needs the definition too.
	First bool
	// More is set when not all fitted.
	More bool
	// SaysAll is set when a fact of ours is in it that was written when all was here that is here now: it
	// acknowledges all of that.
	SaysAll bool
}

// Describe says in short what a bundle brings, for debugging.
func (b *Bundle) Describe() string {
	var out []string
	for _, o := range b.Facts {
		out = append(out, fmt.Sprintf("%s.%d", o.e.Fact.Body.Kind(), o.e.Fact.Seq))
	}
	return strings.Join(out, " ")
}

// Outgoing is a fact on its way to a peer.
type Outgoing struct {
	e *log.Entry
	// Mine marks a fact of our own that has no attestation yet and goes with one: the
	// last of a chain in the bundle, and each that brings somebody in.
	Mine bool
}

// ID names the fact.
func (o *Outgoing) ID() fact.ID { return o.e.ID }

// Raw is the fact's encoding.
func (o *Outgoing) Raw() []byte { return o.e.Raw }

// Attest sets the attestation of a fact of our own.
func (o *Outgoing) Attest(a *fact.Attestation) { o.e.Att = a }

// Attestation of the fact, nil for facts that a later one of the chain covers.
func (o *Outgoing) Attestation() *fact.Attestation { return o.e.Att }

// Outgoing is what p lacks and is not under way to it, causes first, in about limit
// bytes: more only where a single fact is greater, or facts that nothing but one
// later attestation covers, and never more than one bundle in which they came here.
// In every chain the last fact is attested, or ours to attest, and so is each that
// brings somebody in. The introduction goes along where MaxBundle leaves it room.
// What it refused waits (crowded.go). Nil: nothing.
func (m *Machine) Outgoing(p workflow.PartnerID, limit int, now Moment) *Bundle {
	pr := m.peer(p)
	has := pr.acked.Join(pr.sent, &m.log.Steps)
	lacks := m.lackedBy(pr, now)
	if len(lacks) == 0 {
		return nil
	}
	intro := m.introduction(p, has)
	es := m.cut(lacks, limit-weigh(intro))
	if len(es) == 0 {
		return nil
	}
	b := &Bundle{Instance: m.log.Instance(), First: pr.acked.At(0) == 0, More: len(es) < len(lacks)}
	for _, e := range es {
		pr.sent = upTo(pr.sent, e, m.log)
		b.SaysAll = b.SaysAll || e == m.own && e.Past().Covers(m.log.All())
	}
	b.Facts = m.outgoing(withIntroduction(es, intro))
	return b
}

// outgoing makes facts ready to go. It marks those that we are to attest.
func (m *Machine) outgoing(es []*log.Entry) []*Outgoing {
	out, room := make([]*Outgoing, len(es)), make([]Outgoing, len(es))
	last := map[fact.ID]*Outgoing{}
	for i, e := range es {
		o := &room[i]
		*o = Outgoing{e: e, Mine: e.Fact.Body.BringsIn() && m.mine(e) && e.Att == nil}
		out[i] = o
		delete(last, e.Fact.Prev)
		last[e.ID] = o
	}
	for _, o := range last {
		o.Mine = m.mine(o.e) && o.e.Att == nil
	}
	return out
}

// withIntroduction puts the introduction among facts that go anyway, if all of it then
// still fits into a bundle. With the genesis alone, the fact of one participant always does.
func withIntroduction(es, intro []*log.Entry) []*log.Entry {
	if len(intro) == 0 {
		return es
	}
	all := slices.Concat(es, intro)
	slices.SortFunc(all, log.ByTime)
	all = slices.Compact(all)
	size := 0
	for _, e := range all {
		size += len(e.Raw)
	}
	if size > fact.MaxBundle {
		return es
	}
	return all
}

// introduction are the facts by which p sees that this node takes part and, with the
// genesis, that p does, as far as it does not have them: nobody takes in what somebody
// tells of an instance, nor the instance, without seeing that (BringsIn). They may come
// long after what p has; what is missing between, p asks for.
func (m *Machine) introduction(p workflow.PartnerID, has log.Vector) (out []*log.Entry) {
	shown := map[workflow.PartnerID]bool{}
	for _, who := range []workflow.PartnerID{m.self, p} {
		if who == p && has.At(0) > 0 {
			break
		}
		for l := m.lightest(who, has, shown); l != nil && l.by != nil; l = l.next {
			shown[l.next.who] = true
			if has.At(l.by.Strand.Place) < l.by.Fact.Seq {
				out = append(out, l.by)
			}
		}
		shown[who] = true
	}
	return out
}

// link is one of a row through which somebody takes part: the partner that gave work
// to the next, and the fact by which it did; by is nil at the end of the row.
type link struct {
	who    workflow.PartnerID
	by     *log.Entry
	next   *link
	weight int // of the facts up to the end of the row that go along
}

// lightest is the row of facts through which somebody takes part that weighs the least,
// from a participant who was one from the start, or was shown to be one. What has been
// received weighs nothing. Nil: there is none. However heavy a fact somebody else gives
// it work by, that does not keep it out.
func (m *Machine) lightest(who workflow.PartnerID, has log.Vector, shown map[workflow.PartnerID]bool) *link {
	open, done := []*link{{who: who}}, map[workflow.PartnerID]bool{}
	for len(open) > 0 {
		m.log.Steps += len(open)
		least := 0
		for i, l := range open {
			if l.weight < open[least].weight {
				least = i
			}
		}
		l := open[least]
		open = slices.Delete(open, least, least+1)
		if done[l.who] {
			continue
		}
		done[l.who] = true
		through := m.state.BroughtInBy(l.who)
		if shown[l.who] || slices.Contains(through, m.log.Genesis()) {
			return l
		}
		for _, by := range through {
			if by.Att == nil && !m.mine(by) {
				continue
			}
			weight := l.weight
			if has.At(by.Strand.Place) < by.Fact.Seq {
				weight += by.Weight()
			}
			open = append(open, &link{who: by.Fact.Chain.Author, by: by, next: l, weight: weight})
		}
	}
	return nil
}

// cut takes facts, in the order in which they came here, until they have limit bytes:
// each with those of its causal past, and those up to the one that attests it. What
// came in one bundle was whole in this sense, so no more than a bundle is ever taken
// at once, however sparsely the chains of others are attested and however they were
// written side by side.
func (m *Machine) cut(lacks []*log.Entry, limit int) []*log.Entry {
	if m.allFit(lacks, limit) {
		return lacks
	}
	left := make(map[*log.Entry]bool, len(lacks))
	for _, e := range lacks {
		left[e] = true
	}
	came := slices.Clone(lacks)
	slices.SortFunc(came, func(a, b *log.Entry) int { return cmp.Compare(a.Index, b.Index) })
	var out []*log.Entry
	size := 0
	for _, e := range came {
		if !left[e] {
			continue
		}
		whole, ok := m.whole(e, left)
		if !ok {
			continue
		}
		more := weigh(whole)
		if len(out) > 0 && size+more > limit {
			for _, x := range whole {
				left[x] = true
			}
			break
		}
		out = append(out, whole...)
		size += more
	}
	slices.SortFunc(out, log.ByTime)
	return out
}

// allFit reports whether all that somebody lacks has at most limit bytes, and each of it
// may go: it is ours, attested, or followed by what attests it.
func (m *Machine) allFit(lacks []*log.Entry, limit int) bool {
	size := 0
	for _, e := range lacks {
		m.log.Steps++
		if size += e.Weight(); size > limit || e.Att == nil && !m.mine(e) && e == e.Strand.Last() {
			return false
		}
	}
	return true
}

// whole takes out of left a fact with all that must go with it: its past, and what
// follows in its chain up to an attestation. It is not ok where there is none.
func (m *Machine) whole(e *log.Entry, left map[*log.Entry]bool) (whole []*log.Entry, ok bool) {
	take := func(x *log.Entry) {
		if left[x] {
			delete(left, x)
			whole = append(whole, x)
		}
	}
	take(e)
	for i := 0; i < len(whole); i++ {
		m.log.Steps++
		x := whole[i]
		for _, p := range x.Parents {
			take(p)
		}
		if x.Att == nil && !m.mine(x) {
			if x == x.Strand.Last() {
				return whole, false
			}
			take(x.Strand.Number(x.Fact.Seq + 1))
		}
	}
	return whole, true
}

// weigh is about how many bytes facts take in a bundle.
func weigh(es []*log.Entry) (n int) {
	for _, e := range es {
		n += e.Weight()
	}
	return n
}
