// Package records keeps a set of signed records equal among partners: two of them compare
// digests, where those differ one names what it has, and the other sends the rest.
//
// Promises: it keeps no record itself, and holds no lock while it asks or tells anybody. What
// a peer lacks is cut into frames. Whether a record is good, and what follows from it, is the
// affair of whoever has the set.
//
// It imports membership/moment, node/wire and workflow; node/evictions and node/users import
// it.
package records

import (
	"bytes"
	"crypto/sha256"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// MaxBytes is how many bytes of records go into one frame.
const MaxBytes = wire.MaxFrame / 4

// CompareEvery is how often records are compared again with connected partners.
const CompareEvery = time.Minute

// Set is what the exchange asks about the records that are here.
type Set interface {
	// Digest is the same where the same is known.
	Digest() [sha256.Size]byte
	// IDs name all that is here, or will not be taken.
	IDs() [][]byte
	// LackedBy are the encoded records that a peer with these IDs lacks.
	LackedBy(ids [][]byte) [][]byte
}

// Peers are the members that are connected.
type Peers interface {
	UpPeers() []workflow.PartnerID
	Transmit(p workflow.PartnerID, m *wire.Message)
	Broadcast(m *wire.Message)
}

// Surroundings are what an exchange needs of the rest of a node.
type Surroundings struct {
	Set   Set
	Peers Peers
	// Part is what a message says of the set.
	Part func(*wire.Message) **wire.Records
}

// Exchange is the conversation about one set.
type Exchange struct {
	in   Surroundings
	next time.Duration // Awake: when records are compared again
}

// New is the conversation about a set, with nobody yet.
func New(in Surroundings) *Exchange { return &Exchange{in: in} }

// Greet puts the digest into a message.
func (x *Exchange) Greet(m *wire.Message) {
	d := x.in.Set.Digest()
	*x.in.Part(m) = &wire.Records{Digest: d[:]}
}

// Take has what a peer sends be taken in, tells it what it lacks, if it asks, and asks it
// where its digest is another.
func (x *Exchange) Take(from workflow.PartnerID, m *wire.Message, take func(list [][]byte)) {
	said := *x.in.Part(m)
	if said == nil {
		return
	}
	if len(said.List) > 0 {
		take(said.List)
	}
	if said.Asks {
		x.send(from, x.in.Set.LackedBy(said.IDs))
	}
	if ours := x.in.Set.Digest(); len(said.Digest) > 0 && !bytes.Equal(said.Digest, ours[:]) {
		x.in.Peers.Transmit(from, x.message(&wire.Records{Asks: true, IDs: x.in.Set.IDs()}))
	}
}

// Tick compares records now and then, if there are any, and says after what time to call it
// again. compared: it did, or would have.
func (x *Exchange) Tick(now moment.Now) (next time.Duration, compared bool) {
	if now.Awake >= x.next {
		x.next, compared = now.Awake+CompareEvery, true
		if len(x.in.Set.IDs()) > 0 {
			var m wire.Message
			x.Greet(&m)
			x.in.Peers.Broadcast(&m)
		}
	}
	return x.next - now.Awake, compared
}

// Share sends encoded records to all connected partners but one.
func (x *Exchange) Share(list [][]byte, but workflow.PartnerID) {
	for _, p := range x.in.Peers.UpPeers() {
		if p != but {
			x.send(p, list)
		}
	}
}

// send sends records, cut into frames.
func (x *Exchange) send(p workflow.PartnerID, list [][]byte) {
	for len(list) > 0 {
		k, size := 0, 0
		for k < len(list) && (k == 0 || size+len(list[k]) <= MaxBytes) {
			size += len(list[k])
			k++
		}
		x.in.Peers.Transmit(p, x.message(&wire.Records{List: list[:k]}))
		list = list[k:]
	}
}

func (x *Exchange) message(r *wire.Records) *wire.Message {
	var m wire.Message
	*x.in.Part(&m) = r
	return &m
}

// Named are the IDs that a peer named, without what is none.
func Named[ID ~[16]byte](ids [][]byte) []ID {
	out := make([]ID, 0, len(ids))
	for _, b := range ids {
		if len(b) == len(ID{}) {
			out = append(out, ID(b))
		}
	}
	return out
}

// Names are IDs as they are named to a peer.
func Names[ID ~[16]byte](ids []ID) [][]byte {
	out := make([][]byte, 0, len(ids))
	for _, id := range ids {
		out = append(out, id[:])
	}
	return out
}
