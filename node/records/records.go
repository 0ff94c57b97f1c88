// Package records keeps a set of signed records equal among partners: two of them compare
// digests, where those differ one names what it has, and the other sends the rest.
//
// Promises: it keeps no record itself, and holds no lock while it asks or tells anybody. One
// partner is asked at a time, and the next where that one does not answer. An answer is
// bounded, and so is how often one partner is asked, and answered. Whether a record is good,
// and what follows from it, is the affair of whoever has the set.
//
// It imports membership/moment, node/ration, node/wire and workflow; node/evictions and
// node/users import it.
package records

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// MaxBytes is how many bytes of records go into one frame.
const MaxBytes = wire.MaxFrame / 4

const (
	// compareEvery is how often records are compared again with connected partners.
	compareEvery = time.Minute
	// patience is how long to wait for more of an answer before another is asked, and
	// longest for all of it: a partner that answers bit by bit must not keep others out.
	patience = 2 * time.Second
	longest  = 30 * time.Second
	// maxAnswer is after how many bytes of records an answer ends; whoever asked asks again.
	// More would not wait for a slow partner anyway (mesh.Limits).
	maxAnswer = 1 << 20
)

// asking is how often a partner is asked because of its digest, and answering how often one
// is answered: often enough to fetch all that a set may hold, and twice that.
var (
	asking    = ration.Ration{Burst: 8, Each: 10 * time.Second}
	answering = ration.Ration{Burst: 64, Each: 10 * time.Second}
)

// Set is what the exchange asks about the records that are here.
type Set interface {
	// Digest is the same where the same is known.
	Digest() [sha256.Size]byte
	// IDs name all that is here, or will not be taken.
	IDs() [][]byte
	// LackedBy are encoded records that a peer with these IDs lacks, in one order: all, or
	// the first that have so many bytes together.
	LackedBy(ids [][]byte, bytes int) [][]byte
}

// Peers are the members that are connected.
type Peers interface {
	UpPeers() []workflow.PartnerID
	Transmit(p workflow.PartnerID, m *wire.Message)
	Broadcast(m *wire.Message)
	// Refuse counts what was refused of a peer.
	Refuse(why string, p workflow.PartnerID)
}

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Surroundings are what an exchange needs of the rest of a node.
type Surroundings struct {
	Set   Set
	Peers Peers
	Clock Clock
	// Part is what a message says of the set.
	Part func(*wire.Message) **wire.Records
	// TooOften is why a question is refused that comes too often.
	TooOften string
	// Nudge has the node look at once for what is due.
	Nudge func()
}

// Exchange is the conversation about one set. It may be used by several goroutines.
type Exchange struct {
	in                Surroundings
	asking, answering *ration.Budgets
	next              time.Duration // Awake: when records are compared again

	mu    sync.Mutex // guards what follows
	asked question
	// others are those that told another digest than this node's meanwhile.
	others []told
}

// question is what this node asked last, until all of the answer is here.
type question struct {
	peer  workflow.PartnerID // none: nobody is asked
	until time.Duration      // Awake at which the next is asked, if nothing more comes
	last  time.Duration      // Awake at which it is asked in any case
	bytes int                // of records that came
	fresh bool               // some of them were
	news  bool               // so it was, then or in an earlier part of the answer
}

func questionTo(p workflow.PartnerID, now time.Duration) question {
	return question{peer: p, until: now + patience, last: now + longest}
}

// told is what a peer told.
type told struct {
	peer   workflow.PartnerID
	digest [sha256.Size]byte
}

// New is the conversation about a set, with nobody yet.
func New(in Surroundings) *Exchange {
	return &Exchange{in: in, asking: ration.New(asking), answering: ration.New(answering)}
}

// Greet puts the digest into a message.
func (x *Exchange) Greet(m *wire.Message) { *x.in.Part(m) = &wire.Records{Digest: x.digest()} }

func (x *Exchange) digest() []byte {
	d := x.in.Set.Digest()
	return d[:]
}

// Take has what a peer sends be taken in, tells it what it lacks, if it asks, and asks it
// where its digest is another.
func (x *Exchange) Take(from workflow.PartnerID, m *wire.Message, take func(list [][]byte)) {
	said := *x.in.Part(m)
	if said == nil {
		return
	}
	if len(said.List) > 0 {
		x.hear(from, said.List)
		take(said.List)
	}
	if said.Asks {
		x.answer(from, said.IDs)
	}
	if len(said.Digest) == sha256.Size {
		x.compare(from, [sha256.Size]byte(said.Digest))
	}
}

// hear waits on, where the one that was asked is answering.
func (x *Exchange) hear(from workflow.PartnerID, list [][]byte) {
	now := x.in.Clock.Now().Awake
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asked.peer != from {
		return
	}
	x.asked.until = min(now+patience, x.asked.last)
	for _, b := range list {
		x.asked.bytes += len(b)
	}
}

// Pass passes news on that a peer sent. What came as an answer others may have already: they
// are told the digest once all of it is here, and ask for what they lack.
func (x *Exchange) Pass(news [][]byte, from workflow.PartnerID) {
	x.mu.Lock()
	answer := x.asked.peer == from
	if answer {
		x.asked.fresh, x.asked.news = true, true
	}
	x.mu.Unlock()
	if !answer {
		x.Share(news, from)
	}
}

// compare has a peer asked that told another digest than this node's. What the one told that
// was asked ends its answer: then it is asked again, if it has left something out.
func (x *Exchange) compare(from workflow.PartnerID, digest [sha256.Size]byte) {
	same, now := digest == x.in.Set.Digest(), x.in.Clock.Now().Awake
	x.mu.Lock()
	was := x.asked
	ended := was.peer == from
	more := ended && !same && was.fresh && was.bytes >= maxAnswer
	x.others = slices.DeleteFunc(x.others, func(t told) bool { return t.peer == from })
	switch {
	case more:
		x.asked = questionTo(from, now)
		x.asked.news = true
	case ended:
		x.asked = question{}
	case !same:
		x.others = append(x.others, told{from, digest})
	}
	x.mu.Unlock()
	switch {
	case more:
		x.ask(from)
		return
	case ended && was.news:
		x.tell(from)
	}
	x.askNext()
}

// askNext asks the next of those whose digests differ, if nobody is asked who may answer
// still.
func (x *Exchange) askNext() {
	x.mu.Lock()
	idle := x.asked.peer == "" && len(x.others) == 0
	x.mu.Unlock()
	if idle {
		return
	}
	ours, up, now := x.in.Set.Digest(), x.in.Peers.UpPeers(), x.in.Clock.Now().Awake
	x.mu.Lock()
	was := x.asked
	if was.peer != "" && now < was.until {
		x.mu.Unlock()
		return
	}
	x.asked = question{}
	for x.asked.peer == "" && len(x.others) > 0 {
		t := x.others[0]
		x.others = x.others[1:]
		if t.digest != ours && slices.Contains(up, t.peer) && x.asking.Spend(t.peer, 1, now) {
			x.asked = questionTo(t.peer, now)
		}
	}
	to := x.asked.peer
	x.mu.Unlock()
	if was.news { // its end was lost
		x.tell(was.peer)
	}
	if to != "" {
		x.ask(to)
	}
}

// ask asks a peer for what is not here.
func (x *Exchange) ask(p workflow.PartnerID) {
	x.in.Peers.Transmit(p, x.message(&wire.Records{Asks: true, IDs: x.in.Set.IDs()}))
	x.in.Nudge() // Tick minds its silence
}

// answer tells a peer what it lacks. The digest ends the answer.
func (x *Exchange) answer(to workflow.PartnerID, ids [][]byte) {
	if !x.answering.Spend(to, 1, x.in.Clock.Now().Awake) {
		x.in.Peers.Refuse(x.in.TooOften, to)
		return
	}
	x.send(to, x.in.Set.LackedBy(ids, maxAnswer), x.digest())
}

// Tick compares records now and then, if there are any, and asks another where one does not
// answer. It says after what time to call it again; compared: it was time to compare.
func (x *Exchange) Tick(now moment.Now) (next time.Duration, compared bool) {
	if now.Awake >= x.next {
		x.next, compared = now.Awake+compareEvery, true
		if len(x.in.Set.IDs()) > 0 {
			var m wire.Message
			x.Greet(&m)
			x.in.Peers.Broadcast(&m)
		}
	}
	x.askNext()
	next = x.next - now.Awake
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asked.peer != "" {
		next = min(next, x.asked.until-now.Awake)
	}
	return next, compared
}

// tell tells the digest to all connected partners but one.
func (x *Exchange) tell(but workflow.PartnerID) {
	var m wire.Message
	x.Greet(&m)
	for _, p := range x.in.Peers.UpPeers() {
		if p != but {
			x.in.Peers.Transmit(p, &m)
		}
	}
}

// Share sends encoded records to all connected partners but one.
func (x *Exchange) Share(list [][]byte, but workflow.PartnerID) {
	for _, p := range x.in.Peers.UpPeers() {
		if p != but {
			x.send(p, list, nil)
		}
	}
}

// send sends records, cut into frames, the last of them with a digest.
func (x *Exchange) send(p workflow.PartnerID, list [][]byte, digest []byte) {
	for len(list) > 0 || digest != nil {
		k, size := 0, 0
		for k < len(list) && (k == 0 || size+len(list[k]) <= MaxBytes) {
			size += len(list[k])
			k++
		}
		r := &wire.Records{List: list[:k]}
		if list = list[k:]; len(list) == 0 {
			r.Digest, digest = digest, nil
		}
		x.in.Peers.Transmit(p, x.message(r))
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
