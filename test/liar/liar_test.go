//go:build linux

package liar_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/internal/testnode"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/mesh"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// liar has a member's key and certificate, and the project's own packages to write
// what it likes. It answers nothing.
type liar struct {
	t      *testing.T
	ctx    context.Context
	who    node.Member
	mesh   *mesh.Mesh
	victim workflow.PartnerID
	other  workflow.PartnerID

	mu    sync.Mutex
	heads map[workflow.InstanceID][]choreo.Head // every fact that was sent to it
	sent  int                                   // frames
}

// newLiar has mal connect to ana.
func newLiar(ctx context.Context, t *testing.T, v *victims) *liar {
	t.Helper()
	who, err := node.LoadMember(v.malFolder)
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{t: t, ctx: ctx, who: who, heads: map[workflow.InstanceID][]choreo.Head{}}
	l.mesh, err = mesh.New(mesh.Config{
		Key: who.Key, Boot: 1 << 40, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}, Handler: l,
		Hello: func() []byte { return membership.EncodeChain(who.Chain) },
		Admit: func(workflow.PartnerID, []byte, uint64) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.mesh.Close(); err != nil {
			t.Error(err)
		}
	})
	l.victim, l.other = l.aimAt(v.ana), l.aimAt(v.bea)
	return l
}

// aimAt connects to a node.
func (l *liar) aimAt(n *testnode.Node) workflow.PartnerID {
	l.t.Helper()
	st, err := n.API.Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	if err := errors.Join(l.mesh.SetAddrs(st.ID, st.Addresses), l.mesh.Want(st.ID, true)); err != nil {
		l.t.Fatal(err)
	}
	return st.ID
}

// OnFrame notes what facts there are.
func (l *liar) OnFrame(_ workflow.PartnerID, frame []byte) {
	m, err := wire.Decode(frame)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fs := range m.Facts {
		for _, w := range fs.Facts {
			if f, id, err := choreo.DecodeFact(w.Raw); err == nil {
				h := choreo.Head{Chain: f.Chain, Seq: f.Seq, ID: id}
				if !slices.Contains(l.heads[fs.Instance], h) {
					l.heads[fs.Instance] = append(l.heads[fs.Instance], h)
				}
			}
		}
	}
}

func (l *liar) OnUp(workflow.PartnerID)   {}
func (l *liar) OnDown(workflow.PartnerID) {}

// knows are the facts of an instance that were sent to the liar, the genesis
// first; it waits for them.
func (l *liar) knows(instance string) (workflow.InstanceID, []choreo.Head) {
	l.t.Helper()
	id, err := workflow.ParseInstanceID(instance)
	if err != nil {
		l.t.Fatal(err)
	}
	var hs []choreo.Head
	testnode.Within(l.t, time.Minute, "the liar is told of its instance", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		hs = slices.Clone(l.heads[id])
		return len(hs) > 0
	})
	return id, hs
}

// say sends a message to ana as soon as it is taken, and for no longer than a while.
// It reports whether it was.
func (l *liar) say(m *wire.Message) bool {
	b, err := wire.Encode(m)
	if err != nil {
		l.t.Fatalf("the liar cannot encode its lie: %v", err)
	}
	return l.sayRaw(l.victim, b)
}

func (l *liar) sayRaw(to workflow.PartnerID, b []byte) bool {
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end) && l.ctx.Err() == nil; {
		if l.mesh.Send(to, b) == nil {
			l.sent++
			return true
		}
		select {
		case <-l.ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
	return false
}

// lie is a fact of the liar's, not attested yet.
type lie struct {
	raw []byte
	id  choreo.FactID
	f   *choreo.Fact
}

func (l *liar) fact(instance workflow.InstanceID, incarnation uint64, seq uint64, prev choreo.FactID, seen []choreo.Head, b choreo.Body) lie {
	f := &choreo.Fact{
		Format: choreo.FormatFact, Instance: instance, Seq: seq, Prev: prev, Seen: seen, Body: b, At: time.Now().UnixMilli(),
		Chain: choreo.Chain{Author: l.who.ID(), Incarnation: choreo.Incarnation(binary.BigEndian.AppendUint64(nil, incarnation))},
	}
	return l.encoded(f)
}

// encMode encodes as facts are encoded: a liar is held back by no check of ours.
var encMode, _ = cbor.CoreDetEncOptions().EncMode() // constants of the library

func (l *liar) encoded(f *choreo.Fact) lie {
	raw, err := encMode.Marshal(f)
	if err != nil {
		l.t.Fatal(err)
	}
	return lie{raw, choreo.FactID(sha256.Sum256(append([]byte("mutirao/fact/1\x00"), raw...))), f}
}

func (l *liar) sign(domain string, msg []byte) []byte { return membership.Sign(l.who.Key, domain, msg) }

// chain is n facts that say nothing, one after the other.
func (l *liar) chain(instance workflow.InstanceID, incarnation uint64, seen []choreo.Head, n int) []lie {
	out := make([]lie, n)
	var prev choreo.FactID
	for i := range out {
		out[i] = l.fact(instance, incarnation, uint64(i+1), prev, seen, choreo.Body{Seen: &choreo.Seen{}})
		prev, seen = out[i].id, nil
	}
	return out
}

// bundle attests facts and puts them into a message's part.
func (l *liar) bundle(instance workflow.InstanceID, definition []byte, ls ...lie) wire.Facts {
	ids := make([]choreo.FactID, len(ls))
	for i, x := range ls {
		ids[i] = x.id
	}
	atts := choreo.Attest(ids, l.sign)
	out := wire.Facts{Instance: instance, Definition: definition}
	for i, x := range ls {
		out.Facts = append(out.Facts, wire.Fact{Raw: x.raw, Att: atts[i]})
	}
	return out
}

// tell sends facts of one instance, as many in a frame as fit.
func (l *liar) tell(instance workflow.InstanceID, ls []lie) {
	for part := range slices.Chunk(ls, 700) {
		if !l.say(&wire.Message{Facts: []wire.Facts{l.bundle(instance, nil, part...)}}) {
			return // it is cut off
		}
	}
}

// creates makes the genesis of an instance of a definition, all of it at ana, but for
// a partition called mine.
func (l *liar) creates(def *workflow.Definition, change func(*choreo.Fact)) (workflow.InstanceID, lie) {
	g := &choreo.Genesis{
		Definition: def.Hash(), Succession: []workflow.PartnerID{l.who.ID(), l.victim}, Coordination: workflow.Choreography,
	}
	if _, err := rand.Read(g.Nonce[:]); err != nil {
		l.t.Fatal(err)
	}
	for _, p := range def.Partitions {
		who := l.victim
		if p.Name == "mine" {
			who = l.who.ID()
		}
		g.Assign = append(g.Assign, choreo.Placement{Partition: p.Name, Partner: who})
	}
	f := &choreo.Fact{Format: choreo.FormatFact, Seq: 1, At: time.Now().UnixMilli(), Body: choreo.Body{Genesis: g},
		Chain: choreo.Chain{Author: l.who.ID(), Incarnation: choreo.Incarnation{1}}}
	if change != nil {
		change(f)
	}
	g0 := l.encoded(f)
	return choreo.InstanceOf(g0.id), g0
}
