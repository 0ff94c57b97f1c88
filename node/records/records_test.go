package records

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// mesh are nodes that keep sets equal, and what is on its way between them.
type mesh struct {
	now   time.Duration
	nodes map[workflow.PartnerID]*member
	under []frame
	lost  func() bool // nil: nothing is lost
}

type frame struct {
	from, to workflow.PartnerID
	m        *wire.Message
}

// member is one node with its set.
type member struct {
	*mesh
	id    workflow.PartnerID
	known map[[16]byte][]byte
	peers []workflow.PartnerID
	x     *Exchange
	said  []string // what it said, in order
}

// newMesh is a mesh of nodes of which each is connected with all others.
func newMesh(names ...workflow.PartnerID) *mesh {
	m := &mesh{nodes: map[workflow.PartnerID]*member{}}
	for _, id := range names {
		n := &member{mesh: m, id: id, known: map[[16]byte][]byte{}}
		for _, p := range names {
			if p != id {
				n.peers = append(n.peers, p)
			}
		}
		n.x = New(Surroundings{
			Set: n, Peers: n, Clock: m, Part: func(m *wire.Message) **wire.Records { return &m.Users },
			TooOften: "too-often", Nudge: func() {},
		})
		m.nodes[id] = n
	}
	return m
}

func (m *mesh) Now() moment.Now { return moment.Now{Awake: m.now} }

// pass lets time go by, and has everybody do what is due.
func (m *mesh) pass(d time.Duration) {
	m.now += d
	for _, id := range slices.Sorted(maps.Keys(m.nodes)) {
		m.nodes[id].x.Tick(m.Now())
	}
}

// deliver delivers what is under way, and what comes of it.
func (m *mesh) deliver() {
	for len(m.under) > 0 {
		f := m.under[0]
		m.under = m.under[1:]
		if m.lost == nil || !m.lost() {
			m.nodes[f.to].take(f.from, f.m)
		}
	}
}

func (n *member) take(from workflow.PartnerID, m *wire.Message) {
	n.x.Take(from, m, func(list [][]byte) {
		var news [][]byte
		for _, b := range list {
			if n.add(b) {
				news = append(news, b)
			}
		}
		if len(news) > 0 {
			n.x.Pass(news, from)
		}
	})
}

func (n *member) add(b []byte) bool {
	sum := sha256.Sum256(b)
	id := [16]byte(sum[:16])
	known := n.known[id] != nil
	n.known[id] = b
	return !known
}

func (n *member) sorted() [][16]byte {
	return slices.SortedFunc(maps.Keys(n.known), func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
}

func (n *member) IDs() [][]byte { return Names(n.sorted()) }

func (n *member) Digest() [sha256.Size]byte { return sha256.Sum256(bytes.Join(n.IDs(), nil)) }

func (n *member) LackedBy(ids [][]byte, size int) (out [][]byte) {
	has := Named[[16]byte](ids)
	for _, id := range n.sorted() {
		if size > 0 && !slices.Contains(has, id) {
			out, size = append(out, n.known[id]), size-len(n.known[id])
		}
	}
	return out
}

func (n *member) UpPeers() []workflow.PartnerID { return n.peers }

func (n *member) Transmit(p workflow.PartnerID, m *wire.Message) {
	what := "is told the digest"
	switch r := m.Users; {
	case r.Asks:
		what = "is asked"
	case len(r.List) > 0:
		what = fmt.Sprintf("is sent %d", len(r.List))
	}
	n.said = append(n.said, fmt.Sprintf("%s %s", p, what))
	if n.nodes[p] != nil {
		n.under = append(n.under, frame{n.id, p, m})
	}
}

func (n *member) Broadcast(m *wire.Message) {
	for _, p := range n.peers {
		n.Transmit(p, m)
	}
}

func (n *member) Refuse(why string, p workflow.PartnerID) {
	n.said = append(n.said, fmt.Sprintf("%s of %s refused", why, p))
}

// happened is what a node said since it was last asked.
func (n *member) happened() string {
	out := strings.Join(n.said, ", ")
	n.said = nil
	return out
}

func is(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s; want %s", what, got, want)
	}
}

func digest(n *member) *wire.Message {
	var m wire.Message
	n.x.Greet(&m)
	return &m
}

// Of several partners with other digests one is asked, the next where that one says nothing,
// and none for what came meanwhile. Others are told that there is news once all of it is here.
func TestOnePartnerIsAskedAtATime(t *testing.T) {
	m := newMesh("us", "ana", "bea", "eva")
	us := m.nodes["us"]
	for _, p := range us.peers {
		m.nodes[p].add([]byte("a record"))
		us.take(p, digest(m.nodes[p]))
	}
	is(t, "three others", us.happened(), "ana is asked")
	m.under = nil // ana is silent
	m.now += patience - 1
	us.x.askNext()
	is(t, "while ana may answer", us.happened(), "")
	next, _ := us.x.Tick(m.Now())
	if us.happened(); next != 1 {
		t.Errorf("it wants to be called in %v, when ana's time is over", next)
	}
	m.now++
	us.x.Tick(m.Now())
	is(t, "ana says nothing", us.happened(), "bea is asked")
	m.deliver()
	is(t, "bea answers", us.happened(), "ana is told the digest, eva is told the digest")
	m.pass(patience)
	is(t, "all is here", us.happened(), "")
}

// Where the end of an answer is lost, others are told of what came all the same.
func TestTheEndOfAnAnswerIsLost(t *testing.T) {
	m := newMesh("us", "ana", "bea")
	us, ana := m.nodes["us"], m.nodes["ana"]
	ana.add([]byte("a record"))
	us.take("ana", digest(ana))
	is(t, "another digest", us.happened(), "ana is asked")
	us.take("ana", &wire.Message{Users: &wire.Records{List: [][]byte{[]byte("a record")}}})
	is(t, "what came", us.happened(), "")
	m.now += patience
	us.x.askNext()
	is(t, "no more comes", us.happened(), "bea is told the digest")
}

// A partner that answers bit by bit, or with what is known already, does not keep this node
// from asking others.
func TestAnswersWithoutEnd(t *testing.T) {
	m := newMesh("us", "mal", "ana")
	us, ana := m.nodes["us"], m.nodes["ana"]
	ana.add([]byte("a record"))
	us.take("mal", &wire.Message{Users: &wire.Records{Digest: bytes.Repeat([]byte{1}, sha256.Size)}})
	us.take("ana", digest(ana))
	is(t, "two others", us.happened(), "mal is asked")
	for i := range 40 {
		us.take("mal", &wire.Message{Users: &wire.Records{List: [][]byte{{byte(i)}}}})
		m.pass(patience / 2)
	}
	if got := us.happened(); !strings.Contains(got, "ana is asked") {
		t.Errorf("bit by bit: %s", got)
	}
	m.under = nil
	m.pass(longest)
	large := bytes.Repeat([]byte{7}, maxAnswer)
	us.take("mal", &wire.Message{Users: &wire.Records{Digest: bytes.Repeat([]byte{2}, sha256.Size)}})
	us.happened()
	asked := 0
	for i := range 100 {
		us.take("mal", &wire.Message{Users: &wire.Records{
			List: [][]byte{large}, Digest: bytes.Repeat([]byte{byte(i)}, sha256.Size),
		}})
		asked += strings.Count(us.happened(), "mal is asked")
	}
	if asked > asking.Burst { // once for more than the first 1 MiB, and as often as its ration is
		t.Errorf("it is asked %d times, want no more than a partner is for its digests", asked)
	}
}

// What a partner tells of its own accord is passed on at once, to all but that one.
func TestNewsIsPassedOn(t *testing.T) {
	m := newMesh("us", "ana", "bea")
	us := m.nodes["us"]
	us.take("ana", &wire.Message{Users: &wire.Records{List: [][]byte{[]byte("news")}}})
	is(t, "news", us.happened(), "bea is sent 1")
	us.take("ana", &wire.Message{Users: &wire.Records{List: [][]byte{[]byte("news")}}})
	is(t, "the same again", us.happened(), "")
}

// What is more than fits an answer is asked for again until all of it is here; each frame is
// bounded, and no partner is sent what it named.
func TestLargeSetsComeInParts(t *testing.T) {
	m := newMesh("us", "ana")
	us, ana := m.nodes["us"], m.nodes["ana"]
	record := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 8<<10) }
	for i := range 3 * maxAnswer / (16 << 10) {
		ana.add(record(i))
	}
	us.take("ana", digest(ana))
	asked, most, sent := 0, 0, 0
	for len(m.under) > 0 {
		f := m.under[0]
		m.under = m.under[1:]
		size := 0
		for _, b := range f.m.Users.List {
			size += len(b)
		}
		most, sent = max(most, size), sent+size
		if f.m.Users.Asks {
			asked++
		}
		m.nodes[f.to].take(f.from, f.m)
	}
	if us.Digest() != ana.Digest() {
		t.Errorf("%d records are here, of %d", len(us.known), len(ana.known))
	}
	if asked != 3 || most > MaxBytes || sent != 3*maxAnswer {
		t.Errorf("asked %d times; the largest frame has %d bytes of records, all %d", asked, most, sent)
	}
}

// A partner that asks, or has itself asked, again and again is answered, and asked, at a
// limited rate; others do not pay for it.
func TestQuestionsAreRationed(t *testing.T) {
	m := newMesh("us", "mal", "ana")
	us := m.nodes["us"]
	us.add([]byte("a record"))
	m.nodes["ana"].add([]byte("another"))
	for range 1000 {
		us.take("mal", &wire.Message{Users: &wire.Records{Asks: true}})
	}
	said := us.happened()
	if n := strings.Count(said, "mal is sent 1"); n != answering.Burst {
		t.Errorf("answered %d times", n)
	}
	if n := strings.Count(said, "too-often of mal refused"); n != 1000-answering.Burst {
		t.Errorf("refused %d times", n)
	}
	for i := range 1000 {
		us.take("mal", &wire.Message{Users: &wire.Records{
			Digest: bytes.Repeat([]byte{byte(i), byte(i >> 8)}, sha256.Size/2),
		}})
	}
	if n := strings.Count(us.happened(), "mal is asked"); n != asking.Burst {
		t.Errorf("asked %d times", n)
	}
	m.under = nil
	us.take("ana", digest(m.nodes["ana"]))
	m.pass(patience)
	if got := us.happened(); !strings.Contains(got, "ana is asked") {
		t.Errorf("ana is not asked: %s", got)
	}
	us.take("ana", &wire.Message{Users: &wire.Records{Asks: true}})
	is(t, "ana asks", us.happened(), "ana is sent 1")
}

// Whatever is lost, and in whatever order partners meet: once frames arrive again, all have
// what one of them had.
func TestSetsBecomeEqual(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMesh("a", "b", "c", "d", "e")
		rng := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(rt, "seed")))
		bad := true
		m.lost = func() bool { return bad && rng.IntN(3) == 0 }
		ids := slices.Sorted(maps.Keys(m.nodes))
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			n := m.nodes[ids[rng.IntN(len(ids))]]
			switch rng.IntN(4) {
			case 0:
				b := []byte(fmt.Sprint("record ", rng.Uint64()))
				n.add(b)
				n.x.Share([][]byte{b}, "")
			case 1: // it meets somebody
				p := n.peers[rng.IntN(len(n.peers))]
				n.Transmit(p, digest(n))
				m.nodes[p].Transmit(n.id, digest(m.nodes[p]))
			case 2:
				m.pass(time.Duration(rng.IntN(3)) * time.Second)
			default:
				rng.Shuffle(len(m.under), func(i, j int) { m.under[i], m.under[j] = m.under[j], m.under[i] })
				m.deliver()
			}
		}
		bad = false
		for range 180 { // rations are spent, by then
			m.deliver()
			m.pass(time.Second)
		}
		for _, id := range ids {
			if m.nodes[id].Digest() != m.nodes["a"].Digest() {
				rt.Fatalf("%s knows %d records, a %d", id, len(m.nodes[id].known), len(m.nodes["a"].known))
			}
		}
	})
}
