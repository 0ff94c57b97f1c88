// Package testliar is a member that lies: it has a valid certificate and key, speaks
// the protocols by the project's own packages, and sends what no correct node sends.
//
// Promises: a Liar holds to no limit of ours but that of a frame, without which
// nothing of it would be read; each Attack ends by itself, also where the victim
// takes nothing of it. It never decides what is right: the tests do.
//
// It imports choreo/fact, membership/gossip, membership/trust, membership/users, node, node/files,
// node/mesh, node/wire, node/worklists, workflow and worklist; only tests import it.
package testliar

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/gossip"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/mesh"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Liar is a member that answers nothing, but for files that it named, and remembers what facts it was sent.
type Liar struct {
	who    node.Member
	mesh   *mesh.Mesh
	gossip *gossip.Gossip
	victim workflow.PartnerID
	def    *workflow.Definition // of the instances that it makes
	// Patience is how long it tries to get a frame to a victim that does not let it in.
	Patience time.Duration
	// Third takes part in the instances that the liar makes from now on, beside its
	// victim; "": nobody does.
	Third workflow.PartnerID
	// Sent counts frames and requests. It may be read when no attack is under way.
	Sent int

	mu    sync.Mutex // guards what follows
	told  map[workflow.InstanceID][]fact.Head
	about workflow.InstanceID
	// notices are the first of each definition that the liar was told of, at most maxTold.
	notices map[workflow.Hash][]byte

	files    filesOf
	numbered atomic.Uint64
}

// New has the member of a folder connect to others; its own node must not run.
func New(dir string) (*Liar, error) {
	who, err := node.LoadMember(dir)
	if err != nil {
		return nil, err
	}
	def, err := workflow.Parse("lie.yaml", []byte(ownWorkflow))
	if err != nil {
		return nil, err
	}
	l := &Liar{
		who: who, def: def, Patience: 40 * time.Second, told: map[workflow.InstanceID][]fact.Head{},
		notices: map[workflow.Hash][]byte{},
		files:   filesOf{named: map[string]int{}, closed: make(chan struct{})},
	}
	l.mesh, err = mesh.New(mesh.Config{
		Key: who.Key, Boot: 1 << 40, Listen: []string{"/ip4/0.0.0.0/udp/0/quic-v1"}, Handler: l,
		Hello: func() []byte { return trust.EncodeChain(who.Chain) },
		Admit: func(workflow.PartnerID, []byte, uint64) error { return nil },
		Prepare: func(m *mesh.Mesh) (err error) {
			l.gossip, err = gossip.New(gossip.Config{Mesh: m, Host: m.Members(), Handler: l, Timing: gossip.Mobile()})
			return err
		},
	})
	if err == nil {
		l.mesh.HandleRequest(files.Protocol, false, l.answerFile)
	}
	return l, err
}

const ownWorkflow = `
workflow: mine
data: {n: {type: number}, s: {type: string}}
tasks:
  a: {type: manual, in: [n, s]}
  b: {type: manual}
  c: {type: manual}
partitions:
  mine: [a]
  theirs: [c]
  yours: [b]
`

// Close ends its connections.
func (l *Liar) Close() error {
	close(l.files.closed)
	return errors.Join(l.gossip.Close(), l.mesh.Close())
}

// Aim connects to a node, which is the victim from now on.
func (l *Liar) Aim(id workflow.PartnerID, addrs []string) error {
	l.victim = id
	l.mu.Lock()
	l.about = workflow.InstanceID{}
	l.mu.Unlock()
	return errors.Join(l.mesh.SetAddrs(id, addrs), l.mesh.Want(id, true))
}

// Moved tells where a node is now that may be the victim.
func (l *Liar) Moved(id workflow.PartnerID, addrs []string) error { return l.mesh.SetAddrs(id, addrs) }

// OnFrame notes what facts there are.
func (l *Liar) OnFrame(_ workflow.PartnerID, frame []byte) {
	m, err := wire.Decode(frame)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range m.Definitions {
		if n, err := trust.DecodeNotice(d.Notices[0]); err == nil && len(l.notices) < maxTold {
			l.notices[n.Definition] = d.Notices[0]
		}
	}
	for _, fs := range m.Facts {
		for _, w := range fs.Facts {
			if f, id, err := fact.Decode(w.Raw); err == nil {
				h := fact.Head{Chain: f.Chain, Seq: f.Seq, ID: id}
				of := l.told[fs.Instance]
				if len(of) < maxTold && len(l.told) < 1000 && !slices.Contains(of, h) {
					l.told[fs.Instance] = append(of, h)
				}
			}
		}
	}
}

// listed are notices of the definitions that the liar was told of.
func (l *Liar) listed() (out []trust.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.notices {
		if n, err := trust.DecodeNotice(b); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// noticeOf is the notice that another's about the same definition must follow, if the
// liar was told of it.
func (l *Liar) noticeOf(n trust.Notice) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.notices[n.Definition]
}

// OnUp, OnDown, OnNews and OnVerdict are of no interest.
func (l *Liar) OnUp(workflow.PartnerID)            {}
func (l *Liar) OnDown(workflow.PartnerID)          {}
func (l *Liar) OnNews(workflow.PartnerID, []byte)  {}
func (l *Liar) OnVerdict(workflow.PartnerID, bool) {}

// maxTold is how many facts of an instance it remembers.
const maxTold = 64

// Knows says which facts of an instance were sent to the liar, the genesis first.
func (l *Liar) Knows(id workflow.InstanceID) []fact.Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.told[id])
}

// About has attacks be about an instance in which the liar takes part, and which it
// was told. Else it makes one with each victim.
func (l *Liar) About(id workflow.InstanceID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.about = id
}

// instance is what an attack is about, with its genesis.
func (l *Liar) instance(ctx context.Context) (workflow.InstanceID, []fact.Head) {
	l.mu.Lock()
	id, told := l.about, l.told[l.about]
	l.mu.Unlock()
	if len(told) > 0 {
		return id, told[:1]
	}
	id, g := l.creates(l.def, nil)
	l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, l.def.Canonical(), g)}})
	h := fact.Head{Chain: g.f.Chain, Seq: 1, ID: g.id}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.about, l.told[id] = id, []fact.Head{h}
	return id, []fact.Head{h}
}

// say sends a message to the victim as soon as it is taken. It reports whether it was.
func (l *Liar) say(ctx context.Context, m *wire.Message) bool {
	b, err := wire.Encode(m)
	if err != nil {
		panic(err) // an attack is too large for a frame: our bug
	}
	for end := time.Now().Add(l.Patience); time.Now().Before(end) && ctx.Err() == nil; {
		if l.mesh.Send(l.victim, b) == nil {
			l.Sent++
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
	return false
}

// lie is a fact of the liar's, not attested yet.
type lie struct {
	raw []byte
	id  fact.ID
	f   *fact.Fact
}

func (l *Liar) fact(
	id workflow.InstanceID, incarnation uint64, seq uint64, prev fact.ID, seen []fact.Head, b fact.Body,
) lie {
	return l.encoded(&fact.Fact{
		Format: fact.Format, Instance: id, Seq: seq, Prev: prev, Seen: seen, Body: b, At: time.Now().UnixMilli(),
		Chain: fact.Chain{
			Author: l.who.ID(), Incarnation: fact.Incarnation(binary.BigEndian.AppendUint64(nil, incarnation)),
		},
	})
}

// encMode encodes as facts are encoded: a liar is held back by no check of ours.
var encMode, _ = cbor.CoreDetEncOptions().EncMode() // constants of the library

// Encode gives a fact's bytes and name as choreo does, and checks nothing.
func Encode(f *fact.Fact) ([]byte, fact.ID) {
	raw, err := encMode.Marshal(f)
	if err != nil {
		panic(err) // every fact can be encoded
	}
	return raw, fact.ID(sha256.Sum256(append([]byte("mutirao/fact/2\x00"), raw...)))
}

func (l *Liar) encoded(f *fact.Fact) lie {
	raw, id := Encode(f)
	return lie{raw, id, f}
}

func (l *Liar) sign(domain string, msg []byte) []byte { return trust.Sign(l.who.Key, domain, msg) }

// chain is n facts that say nothing, one after the other.
func (l *Liar) chain(id workflow.InstanceID, incarnation uint64, seen []fact.Head, n int) []lie {
	out := make([]lie, n)
	var prev fact.ID
	for i := range out {
		out[i] = l.fact(id, incarnation, uint64(i+1), prev, seen, fact.Body{Seen: &fact.Seen{}})
		prev, seen = out[i].id, nil
	}
	return out
}

// bundle attests facts, each for itself, and puts them into a message's part.
func (l *Liar) bundle(id workflow.InstanceID, definition []byte, ls ...lie) wire.Facts {
	ids := make([]fact.ID, len(ls))
	for i, x := range ls {
		ids[i] = x.id
	}
	atts := fact.Attest(ids, l.sign)
	out := wire.Facts{Instance: id, Definition: definition, Next: true} // it fills all of its share
	for i, x := range ls {
		out.Facts = append(out.Facts, wire.Fact{Raw: x.raw, Att: atts[i]})
	}
	return out
}

// tell sends facts of one instance, as many in a frame as fit.
func (l *Liar) tell(ctx context.Context, id workflow.InstanceID, ls []lie) {
	for part := range slices.Chunk(ls, 700) {
		if !l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, nil, part...)}}) {
			return // it is cut off
		}
	}
}

// creates makes the genesis of an instance, all of it at the victim but for
// partitions called mine, and theirs.
func (l *Liar) creates(def *workflow.Definition, change func(*fact.Fact)) (workflow.InstanceID, lie) {
	g := &fact.Genesis{
		Definition: def.Hash(), Succession: []workflow.PartnerID{l.who.ID(), l.victim},
		Coordination: workflow.Choreography,
	}
	_, _ = rand.Read(g.Nonce[:]) // it never fails
	if l.Third != "" {
		g.Succession = append(g.Succession, l.Third)
	}
	for _, p := range def.Partitions {
		who := l.victim
		switch {
		case p.Name == "mine":
			who = l.who.ID()
		case p.Name == "theirs" && l.Third != "":
			who = l.Third
		}
		g.Assign = append(g.Assign, fact.Placement{Partition: p.Name, Partner: who})
	}
	f := &fact.Fact{Format: fact.Format, Seq: 1, At: time.Now().UnixMilli(), Body: fact.Body{Genesis: g},
		Chain: fact.Chain{Author: l.who.ID(), Incarnation: fact.Incarnation{1}}}
	if change != nil {
		change(f)
	}
	x := l.encoded(f)
	return fact.InstanceOf(x.id), x
}

// after follows a genesis in its chain.
func (l *Liar) after(id workflow.InstanceID, g lie, b fact.Body) lie {
	return l.encoded(&fact.Fact{
		Format: fact.Format, Instance: id, Chain: g.f.Chain, Seq: 2, Prev: g.id, At: time.Now().UnixMilli(),
		Body: b,
	})
}
