package node

import (
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// outbox collects what one round sends, one message a peer. Facts of our own
// are signed together, once.
type outbox struct {
	n        *contacts
	messages map[workflow.PartnerID]*wire.Message
	sizes    map[workflow.PartnerID]int
	unsigned []*choreo.Outgoing
	bundles  []addressed
}

type addressed struct {
	to   workflow.PartnerID
	b    *choreo.Bundle
	d    *library.Definition
	next bool // it is the instance's turn there (lineup)
}

func (c *contacts) newOutbox() *outbox {
	return &outbox{n: c, messages: map[workflow.PartnerID]*wire.Message{}, sizes: map[workflow.PartnerID]int{}}
}

func (o *outbox) message(p workflow.PartnerID) *wire.Message {
	m := o.messages[p]
	if m == nil {
		m = &wire.Message{}
		o.messages[p] = m
	}
	return m
}

// heads adds what is known of one instance, in parts if there is much of it.
func (o *outbox) heads(p workflow.PartnerID, all wire.Heads) {
	for _, h := range all.Parts() {
		size := 64
		for _, x := range h.Heads {
			size += len(x.Chain.Author) + 64
		}
		if len(o.message(p).Heads) == wire.MaxInstances || o.sizes[p]+size > wire.MaxFacts {
			o.post(p)
		}
		m := o.message(p)
		m.Heads = append(m.Heads, h)
		o.sizes[p] += size
	}
}

// refusal adds that an instance was not taken in.
func (o *outbox) refusal(p workflow.PartnerID, r wire.Refusal) {
	m := o.message(p)
	if len(m.Refusals) == wire.MaxInstances {
		o.post(p)
		m = o.message(p)
	}
	m.Refusals = append(m.Refusals, r)
}

// facts adds what a peer lacks of one instance.
func (o *outbox) facts(a addressed) {
	for _, f := range a.b.Facts {
		if f.Mine {
			o.unsigned = append(o.unsigned, f)
		}
	}
	o.bundles = append(o.bundles, a)
}

// flush signs and sends.
func (o *outbox) flush() {
	o.sign()
	for _, a := range o.bundles {
		o.pack(a)
	}
	for _, p := range slices.Sorted(maps.Keys(o.messages)) {
		o.post(p)
	}
}

// sign attests all unsigned facts with one signature.
func (o *outbox) sign() {
	slices.SortFunc(o.unsigned, func(a, b *choreo.Outgoing) int { return compareIDs(a.ID(), b.ID()) })
	o.unsigned = slices.CompactFunc(o.unsigned, func(a, b *choreo.Outgoing) bool { return a.ID() == b.ID() })
	ids := make([]fact.ID, len(o.unsigned))
	for i, f := range o.unsigned {
		ids[i] = f.ID()
	}
	key := o.n.member.Key
	for i, att := range fact.Attest(ids,
		func(domain string, msg []byte) []byte { return trust.Sign(key, domain, msg) }) {
		o.unsigned[i].Attest(att)
	}
}

func compareIDs(a, b fact.ID) int { return slices.Compare(a[:], b[:]) }

// pack puts a bundle into the peer's message, sending what is full.
func (o *outbox) pack(a addressed) {
	w := wire.Facts{Instance: a.b.Instance, Facts: make([]wire.Fact, 0, len(a.b.Facts)), More: a.b.More, Next: a.next}
	size := 256
	if a.b.First {
		w.Definition = a.d.Def.Canonical()
		size += len(w.Definition)
	}
	for _, f := range a.b.Facts {
		w.Facts = append(w.Facts, wire.Fact{Raw: f.Raw(), Att: f.Attestation()})
		size += len(f.Raw()) + 16
		if att := f.Attestation(); att != nil {
			size += att.Size()
		}
	}
	if m := o.message(a.to); len(m.Facts) == wire.MaxInstances || o.sizes[a.to]+size > wire.MaxFacts {
		o.post(a.to)
	}
	m := o.message(a.to)
	m.Facts = append(m.Facts, w)
	o.sizes[a.to] += size
}

// post sends a peer's message as it stands.
func (o *outbox) post(p workflow.PartnerID) {
	m := o.messages[p]
	delete(o.messages, p)
	delete(o.sizes, p)
	if m != nil {
		o.n.transmit(p, m)
	}
}
