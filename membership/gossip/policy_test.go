package gossip_test

import (
	"bytes"
	"container/heap"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The policy by which lists come to agree, simulated in virtual time with real
// lists and signed records: a node that hears a record that is new to it passes
// it on to all that it is connected with; on contact lists are compared; now
// and then each compares its list with somebody's. A node here is connected
// with six others at most, so that news has a way to go; one message in twenty
// is lost; a hop takes 20 to 120 ms.
const (
	degree       = 6
	lossPerMille = 50
	minHop       = 20 * time.Millisecond
	maxHop       = 120 * time.Millisecond
	compareEvery = 10 * time.Second
)

type simulated struct {
	t     *testing.T
	r     *rand.Rand
	mesh  trust.Mesh
	nodes []*simNode
	now   time.Duration
	queue events
	cut   bool // no messages between even and odd nodes
	seq   int
	sent  int // messages
}

type simNode struct {
	key   ed25519.PrivateKey
	own   membership.Record
	list  *membership.List
	peers []int
}

type simEvent struct {
	at  time.Duration
	seq int
	do  func()
}

type events []simEvent

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(simEvent)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *simulated) clock() moment.Now {
	return moment.Now{Awake: s.now, Boot: s.now, Wall: epoch.Add(s.now)}
}

func (s *simulated) after(d time.Duration, do func()) {
	s.seq++
	heap.Push(&s.queue, simEvent{s.now + d, s.seq, do})
}

func simKey(i int) ed25519.PrivateKey {
	seed := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("policy"), uint64(i)))
	return ed25519.NewKeyFromSeed(seed[:])
}

// newSimulated makes n nodes that know each other, and one more whom nobody
// knows, which is the last.
func newSimulated(t *testing.T, n int, seed uint64) *simulated {
	s := &simulated{t: t, r: rand.New(rand.NewPCG(seed, uint64(n)))}
	founder := simKey(0)
	id := func(k ed25519.PrivateKey) workflow.PartnerID {
		return trust.IDOf(k.Public().(ed25519.PublicKey))
	}
	s.mesh = trust.Mesh{Name: "sim", Founder: id(founder)}
	issuer := trust.Issuer{Mesh: s.mesh, Key: founder}
	for i := range n + 1 {
		x := &simNode{key: simKey(i)}
		chain, err := issuer.Issue(trust.Certificate{Partner: id(x.key), Name: fmt.Sprintf("n%d", i),
			Serial:    trust.Serial{byte(i), byte(i >> 8), 1},
			NotBefore: trust.WallOf(epoch), NotAfter: trust.WallOf(epoch.Add(24 * time.Hour))})
		if err != nil {
			t.Fatal(err)
		}
		x.own = membership.Record{
			Partner: id(x.key), Version: membership.Version{Boot: 1, Seq: 1}, ConnectionTime: time.Hour, Chain: chain,
		}.Sign(x.key)
		x.list = membership.NewList(s.mesh, id(x.key), trust.NewRevocations(s.mesh))
		s.nodes = append(s.nodes, x)
	}
	for i, x := range s.nodes {
		if _, err := x.list.Publish(x.own, s.clock()); err != nil {
			t.Fatal(err)
		}
		for j, y := range s.nodes[:n] {
			if i != j && i < n {
				x.list.Restore(membership.Stored{Record: y.own, Validated: trust.WallOf(epoch)}, s.clock())
			}
		}
	}
	s.connect(n)
	return s
}

// connect gives each of n nodes neighbours by chance; a ring keeps them
// together.
func (s *simulated) connect(n int) {
	link := func(i, j int) {
		s.nodes[i].peers = append(s.nodes[i].peers, j)
		s.nodes[j].peers = append(s.nodes[j].peers, i)
	}
	for i := range n {
		link(i, (i+1)%n)
		for len(s.nodes[i].peers) < min(degree, n-1) {
			link(i, (i+1+s.r.IntN(n-1))%n)
		}
	}
}

// send has a message arrive after a while, or not.
func (s *simulated) send(from, to int, arrive func()) {
	s.sent++
	if s.cut && from%2 != to%2 || s.r.IntN(1000) < lossPerMille {
		return
	}
	s.after(minHop+time.Duration(s.r.Int64N(int64(maxHop-minHop))), arrive)
}

// tell is news of one record; a node that has not heard it passes it on.
func (s *simulated) tell(from, to int, rec membership.Record) {
	s.send(from, to, func() { s.hear(from, to, rec) })
}

func (s *simulated) hear(from, at int, rec membership.Record) {
	before, known := s.nodes[at].list.Get(rec.Partner)
	if _, err := s.nodes[at].list.Apply(rec, 0, s.clock()); err != nil {
		s.t.Fatal(err)
	}
	after, _ := s.nodes[at].list.Get(rec.Partner)
	if known && before.Record.Version == after.Record.Version {
		return
	}
	for _, p := range s.nodes[at].peers {
		if p != from {
			s.tell(at, p, rec)
		}
	}
}

// compare has node at ask another for what it lacks.
func (s *simulated) compare(at, with int) {
	s.send(at, with, func() {
		records, _ := s.nodes[with].list.Newer(s.nodes[at].list.Digest())
		for _, rec := range records {
			s.tell(with, at, rec)
		}
	})
}

func (s *simulated) compareForEver(at int) {
	s.after(time.Duration(s.r.Int64N(int64(2*compareEvery))), func() {
		if peers := s.nodes[at].peers; len(peers) > 0 {
			s.compare(at, peers[s.r.IntN(len(peers))])
		}
		s.compareForEver(at)
	})
}

// change has a node publish a new record of itself.
func (s *simulated) change(i int) {
	x := s.nodes[i]
	x.own.Version.Seq++
	x.own = x.own.Sign(x.key)
	if _, err := x.list.Publish(x.own, s.clock()); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range x.peers {
		s.tell(i, p, x.own)
	}
}

// meet connects two nodes, which compare lists at once.
func (s *simulated) meet(i, j int) {
	s.nodes[i].peers = append(s.nodes[i].peers, j)
	s.nodes[j].peers = append(s.nodes[j].peers, i)
	s.greet(i, j)
}

func (s *simulated) greet(i, j int) {
	s.compare(i, j)
	s.compare(j, i)
	s.tell(i, j, s.nodes[i].own)
	s.tell(j, i, s.nodes[j].own)
}

func (s *simulated) agree() bool {
	first := membership.EncodeDigest(s.nodes[0].list.Digest())
	for _, x := range s.nodes[1:] {
		if !bytes.Equal(first, membership.EncodeDigest(x.list.Digest())) {
			return false
		}
	}
	return true
}

// until runs until the lists agree and returns how long that took, and how
// many messages a node sent meanwhile.
func (s *simulated) until(limit time.Duration) (took time.Duration, perNode float64) {
	s.t.Helper()
	start, sent := s.now, s.sent
	for next := s.now; ; {
		if s.now >= next {
			if s.agree() {
				return s.now - start, float64(s.sent-sent) / float64(len(s.nodes))
			}
			next = s.now + 50*time.Millisecond
		}
		if s.now-start > limit {
			s.t.Fatalf("%d nodes do not agree within %s", len(s.nodes), limit)
		}
		s.step()
	}
}

func (s *simulated) step() {
	e := heap.Pop(&s.queue).(simEvent)
	s.now = max(s.now, e.at)
	e.do()
}

func (s *simulated) run(d time.Duration) {
	for end := s.now + d; s.queue[0].at <= end; {
		s.step()
	}
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// After a join, a change, a split with changes on both sides and a loss, lists
// agree in a time that hardly grows with the mesh. (The loss is one in good
// order: that somebody fell silent each list finds by itself, with no message.)
func TestListsConvergeInVirtualTime(t *testing.T) {
	times := map[int]time.Duration{}
	for _, n := range []int{10, 30, 100, 300} {
		s := newSimulated(t, n-1, 1)
		for i := range s.nodes {
			s.compareForEver(i)
		}
		s.meet(n-1, 0)
		s.meet(n-1, (n-1)/2)
		join, joinCost := s.until(2 * time.Minute)

		s.change(n / 3)
		change, changeCost := s.until(2 * time.Minute)

		s.cut = true
		for i := range min(n, 20) {
			s.change(i)
		}
		s.run(30 * time.Second)
		s.cut = false
		for i := range s.nodes {
			for _, p := range s.nodes[i].peers {
				if p > i && p%2 != i%2 {
					s.greet(i, p)
				}
			}
		}
		split, splitCost := s.until(2 * time.Minute)

		s.nodes[n/2].own.Going = membership.Leaves
		s.change(n / 2)
		loss, lossCost := s.until(2 * time.Minute)
		t.Logf("%3d nodes: join %s (%.0f messages per node), change %s (%.0f), heal %s (%.0f), loss %s (%.0f)", n,
			ms(join), joinCost, ms(change), changeCost, ms(split), splitCost, ms(loss), lossCost)
		times[n] = max(join, change, split, loss)
	}
	// Thirty times the nodes: a lost last hop waits for a comparison, whatever
	// the size, and the way is some hops longer.
	if limit := 3*times[10] + 4*compareEvery; times[300] > limit {
		t.Errorf("300 nodes took %s, 10 took %s: want at most %s", times[300], times[10], limit)
	}
}
