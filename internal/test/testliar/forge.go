package testliar

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Forger writes what it likes about one instance, in a chain of its own.
type Forger struct {
	l           *Liar
	instance    workflow.InstanceID
	incarnation uint64
	last        lie
}

// Forger writes about an instance under an incarnation of the liar's choice.
func (l *Liar) Forger(id workflow.InstanceID, incarnation uint64) *Forger {
	return &Forger{l: l, instance: id, incarnation: incarnation}
}

// Says writes the next fact, that has seen those heads, and sends it to the victim.
func (f *Forger) Says(ctx context.Context, b fact.Body, seen ...fact.Head) fact.ID {
	seq := uint64(1)
	if f.last.f != nil {
		seq += f.last.f.Seq
	}
	f.last = f.l.fact(f.instance, f.incarnation, seq, f.last.id, seen, b)
	f.l.say(ctx, &wire.Message{Facts: []wire.Facts{f.l.bundle(f.instance, nil, f.last)}})
	return f.last.id
}

// Who is the identity of the member that lies.
func (l *Liar) Who() node.Member { return l.who }

// Victim is the node that it aims at.
func (l *Liar) Victim() workflow.PartnerID { return l.victim }

// Says sends a message to the victim. It reports whether that was taken.
func (l *Liar) Says(ctx context.Context, m *wire.Message) bool { return l.say(ctx, m) }

// Begins begins an instance of a definition, all of it at the victim but for a
// partition called mine. Change alters the genesis; nil: it stays as it is.
func (l *Liar) Begins(ctx context.Context, def *workflow.Definition, change func(*fact.Fact)) workflow.InstanceID {
	id, g := l.creates(def, change)
	l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, def.Canonical(), g)}})
	return id
}

// Lists adds a definition to what the mesh shares, with a proper notice.
func (l *Liar) Lists(ctx context.Context, def *workflow.Definition) {
	l.say(ctx, &wire.Message{Definitions: []wire.Definition{l.definition(def)}})
}

// Evicts has the victim told that a partner is evicted, by the liar's word.
func (l *Liar) Evicts(ctx context.Context, p workflow.PartnerID) {
	by := trust.Issuer{Mesh: l.who.Mesh, Key: l.who.Key, Chain: l.who.Chain}
	e, _ := by.Evict(trust.Eviction{Partner: p, Reason: "a lie", At: trust.WallOf(time.Now())},
		trust.NewRevocations(l.who.Mesh), nil) // it is refused here already
	l.say(ctx, &wire.Message{Evictions: &wire.Records{List: [][]byte{trust.EncodeEviction(e)}}})
}

// Request asks the victim by a protocol of the mesh's.
func (l *Liar) Request(ctx context.Context, addrs []string, protocol string, req []byte) ([]byte, error) {
	return l.mesh.Request(ctx, l.victim, addrs, protocol, req)
}

// Pair has one liar begin instances in which another takes part, which writes 3 MiB
// into each. What the victim does not take of that, the first names as seen.
func Pair(ctx context.Context, one, other *Liar, instances int) {
	type begun struct {
		id workflow.InstanceID
		ls []lie
	}
	var all []begun
	for range instances {
		id, g := one.creates(one.def, func(f *fact.Fact) {
			f.Body.Genesis.Succession = append(f.Body.Genesis.Succession, other.who.ID())
		})
		one.say(ctx, &wire.Message{Facts: []wire.Facts{one.bundle(id, one.def.Canonical(), g)}})
		seen, prev := []fact.Head{{Chain: g.f.Chain, Seq: 1, ID: g.id}}, fact.ID{}
		var ls []lie
		for i := range 15 {
			ls = append(ls, other.fact(id, 7, uint64(i+1), prev, seen, fact.Body{Success: &fact.Success{
				Attempt: fact.AttemptID{Slot: "a"}, Try: 1,
				Outputs: map[workflow.DataName]workflow.Value{"s": strings.Repeat("x", 200<<10)},
			}}))
			seen, prev = nil, ls[i].id
		}
		all = append(all, begun{id, ls})
	}
	writes := func() {
		for _, b := range all {
			for part := range slices.Chunk(b.ls, 2) {
				other.say(ctx, &wire.Message{Facts: []wire.Facts{other.bundle(b.id, nil, part...)}})
			}
		}
	}
	writes() // over two connections: what comes early comes again
	for _, b := range all {
		one.Forger(b.id, 9).Says(ctx, fact.Body{Seen: &fact.Seen{}},
			fact.Head{Chain: b.ls[0].f.Chain, Seq: 1 << 40, ID: fact.ID{1}})
	}
	writes()
	writes()
}
