package choreo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// peer is what this node knows of another participant's replica. Nothing of it
// is kept on disk: after a restart the peers say again what they have. There
// is no outbox; what is owed follows from the log (design.md, idea 1).
type peer struct {
	incarnation Incarnation
	// acked is what the peer has made durable, sent what is under way to it,
	// both as clocks of our log.
	acked, sent []uint64
	heads       []Head // as it said last; for forks
	// owed is what must reach it now, as a clock.
	owed []uint64
}

func (m *Machine) peer(p workflow.PartnerID) *peer {
	pr := m.peers[p]
	if pr == nil {
		pr = &peer{}
		m.peers[p] = pr
	}
	return pr
}

// has notes that the peer holds a fact, and with it the fact's past.
func (p *peer) has(l *Log, e *entry) {
	if e != nil && !l.forked {
		p.acked = maxed(p.acked, e.clock)
	}
}

func maxed(a, b []uint64) []uint64 {
	if len(a) < len(b) {
		a = append(a, make([]uint64, len(b)-len(a))...)
	}
	for i, n := range b {
		a[i] = max(a[i], n)
	}
	return a
}

// covers tells whether clock a has all of b.
func covers(a, b []uint64) bool {
	for i, n := range b {
		if n > 0 && (i >= len(a) || a[i] < n) {
			return false
		}
	}
	return true
}

// owe says that all of our chain so far must reach p.
func (m *Machine) owe(p workflow.PartnerID) {
	if m.own != nil {
		m.oweFact(p, m.own)
	}
}

// oweFact says that a fact, and with it its past, must reach p.
func (m *Machine) oweFact(p workflow.PartnerID, e *entry) {
	if p != m.self && p != "" {
		pr := m.peer(p)
		pr.owed = maxed(pr.owed, e.clock)
	}
}

// Owes tells whether p lacks something that must reach it now.
func (m *Machine) Owes(p workflow.PartnerID) bool {
	pr := m.peers[p]
	return pr != nil && !covers(pr.acked, pr.owed)
}

// due tells whether p lacks something that must reach it now and is not under
// way to it.
func (m *Machine) due(p workflow.PartnerID) bool {
	pr := m.peers[p]
	if pr == nil || !m.Owes(p) {
		return false
	}
	for i, n := range pr.owed {
		if n > max(at(pr.acked, i), at(pr.sent, i)) {
			return true
		}
	}
	return false
}

func at(clock []uint64, i int) uint64 {
	if i < len(clock) {
		return clock[i]
	}
	return 0
}

// Behind tells whether p is not known to have all that this replica has.
func (m *Machine) Behind(p workflow.PartnerID) bool {
	if m.log.forked {
		return len(m.log.missing(m.peer(p).heads)) > 0
	}
	return !covers(m.peer(p).acked, m.clock())
}

// clock is what this replica has.
func (m *Machine) clock() []uint64 {
	c := make([]uint64, len(m.log.chains))
	for i, ch := range m.log.chains {
		c[i] = uint64(len(ch.facts))
	}
	return c
}

// Acknowledge notes what a peer says that it has made durable. A new
// incarnation voids what was known of it.
func (m *Machine) Acknowledge(from workflow.PartnerID, inc Incarnation, heads []Head) {
	p := m.peer(from)
	if p.incarnation != inc {
		*p = peer{incarnation: inc, owed: p.owed}
	}
	p.heads = heads
	if m.log.forked {
		p.sent = nil // Outgoing goes by heads, and these are new
	}
	clock, _ := m.log.covered(heads)
	p.acked = maxed(p.acked, clock)
}

// Restate is Acknowledge for a peer that says all that it has, in a question or
// an answer: what it was believed to have beyond that, it has not. (It may have
// lied, or facts may have been put under its name on the way.)
func (m *Machine) Restate(from workflow.PartnerID, inc Incarnation, heads []Head) {
	m.peer(from).acked = nil
	m.Acknowledge(from, inc, heads)
}

// AheadOfUs tells whether heads name a fact of our own chain that is not here,
// or facts of it came from others: then this store was rolled back, and a new
// incarnation is needed.
func (m *Machine) AheadOfUs(heads []Head) bool {
	return m.rolledBack() || slices.ContainsFunc(heads, func(h Head) bool { return h.Chain == m.chain && m.log.byID[h.ID] == nil })
}

// Forget has the next Outgoing send again what was not acknowledged: after a
// reconnection, or when an acknowledgement is overdue.
func (m *Machine) Forget(p workflow.PartnerID) { m.peer(p).sent = nil }

// HeldElsewhere tells whether another participant has made the instance durable.
func (m *Machine) HeldElsewhere() bool {
	for _, p := range m.peers {
		if len(p.acked) > 0 && p.acked[0] > 0 {
			return true
		}
	}
	return false
}

// Bundle is what one peer lacks of one instance.
type Bundle struct {
	Instance workflow.InstanceID
	Facts    []*Outgoing
	// First is set when the peer is not known to have anything of the
	// instance: it needs the definition too.
	First bool
	// More is set when not all fitted.
	More bool
}

// Outgoing is a fact on its way to a peer.
type Outgoing struct {
	e *entry
	// Mine marks a chain's last fact in the bundle that is our own and has no
	// attestation yet.
	Mine bool
}

// ID names the fact.
func (o *Outgoing) ID() FactID { return o.e.id }

// Raw is the fact's encoding.
func (o *Outgoing) Raw() []byte { return o.e.raw }

// Attestation of the fact, nil for facts that a later one of the chain covers.
func (o *Outgoing) Attestation() *Attestation { return o.e.att }

// Attest sets the attestation of a fact of our own.
func (o *Outgoing) Attest(a *Attestation) { o.e.att = a }

// Outgoing is what p lacks and is not under way to it, at most limit bytes of
// facts (one fact at least), causes first. In every chain the last fact is
// attested, or ours to attest. Nil: nothing.
func (m *Machine) Outgoing(p workflow.PartnerID, limit int) *Bundle {
	pr := m.peer(p)
	var es []*entry
	if m.log.forked {
		if pr.sent != nil {
			return nil // until it acknowledges or Forget: numbers are ambiguous
		}
		es = m.log.missing(pr.heads)
	} else {
		es = m.log.since(maxed(slices.Clone(pr.acked), pr.sent))
	}
	all := len(es)
	es = m.cut(es, limit)
	if len(es) == 0 {
		return nil
	}
	b := &Bundle{Instance: m.log.instance, First: at(pr.acked, 0) == 0, More: len(es) < all}
	last := map[FactID]*Outgoing{}
	for _, e := range es {
		o := &Outgoing{e: e}
		b.Facts = append(b.Facts, o)
		delete(last, e.fact.Prev)
		last[e.id] = o
		pr.sent = maxed(pr.sent, e.clock)
	}
	for _, o := range last {
		o.Mine = o.e.fact.Chain.Author == m.self && o.e.att == nil
	}
	return b
}

// cut takes as many facts as fit in limit such that each chain ends in one
// that is attested or ours.
func (m *Machine) cut(es []*entry, limit int) []*entry {
	size, good := 0, 0
	open := map[FactID]bool{} // unattested, and not followed by another
	for i, e := range es {
		if size += len(e.raw); size > limit && good > 0 {
			break
		}
		delete(open, e.fact.Prev)
		if e.att == nil && e.fact.Chain.Author != m.self {
			open[e.id] = true
		}
		if len(open) == 0 {
			good = i + 1
		}
	}
	return es[:good]
}

// Describe says in short what a bundle brings, for debugging.
func (b *Bundle) Describe() string {
	var out []string
	for _, o := range b.Facts {
		out = append(out, fmt.Sprintf("%s.%d", o.e.fact.Body.Kind(), o.e.fact.Seq))
	}
	return strings.Join(out, " ")
}
