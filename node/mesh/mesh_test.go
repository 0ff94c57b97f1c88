package mesh

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// event is what a handler was told.
type event struct {
	kind  string // up, down or frame
	peer  workflow.PartnerID
	frame string
}

// recorder is a handler that keeps what it was told, and can be made to block.
type recorder struct {
	mu     sync.Mutex
	events []event
	news   chan struct{} // capacity 1
	block  chan struct{} // OnFrame waits until it is closed
}

func newRecorder() *recorder { return &recorder{news: make(chan struct{}, 1)} }

func (r *recorder) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	poke(r.news)
}

func (r *recorder) OnUp(p workflow.PartnerID)   { r.add(event{"up", p, ""}) }
func (r *recorder) OnDown(p workflow.PartnerID) { r.add(event{"down", p, ""}) }
func (r *recorder) OnFrame(p workflow.PartnerID, frame []byte) {
	r.mu.Lock()
	block := r.block
	r.mu.Unlock()
	if block != nil {
		<-block
	}
	r.add(event{"frame", p, string(frame)})
}

func (r *recorder) all() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]event(nil), r.events...)
}

func (r *recorder) count(kind string, p workflow.PartnerID) int {
	n := 0
	for _, e := range r.all() {
		if e.kind == kind && e.peer == p {
			n++
		}
	}
	return n
}

// patience is how long tests wait for what must happen.
const patience = time.Minute

// until waits for a condition that events may bring about.
func (r *recorder) until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-r.news:
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %v for: %s; events: %v", patience, what, r.all())
		}
	}
}

// node is a mesh with its handler.
type node struct {
	*Mesh
	*recorder
	cfg Config
}

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var (
	overQUIC = []string{"/ip4/127.0.0.1/udp/0/quic-v1"}
	overTCP  = []string{"/ip4/127.0.0.1/tcp/0"}
	overBoth = []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"}
)

// transports runs a test over each.
func transports(t *testing.T, test func(t *testing.T, listen []string)) {
	for name, listen := range map[string][]string{"quic": overQUIC, "tcp": overTCP, "both": overBoth} {
		t.Run(name, func(t *testing.T) { test(t, listen) })
	}
}

// start starts a node; change may alter its configuration.
func start(t testing.TB, listen []string, change ...func(*Config)) *node {
	t.Helper()
	n := &node{recorder: newRecorder()}
	n.cfg = Config{Key: newKey(t), Listen: listen, Boot: 1, Handler: n.recorder,
		Admit: func(workflow.PartnerID, []byte, uint64) error { return nil }}
	for _, c := range change {
		c(&n.cfg)
	}
	n.begin(t)
	return n
}

func (n *node) begin(t testing.TB) {
	t.Helper()
	m, err := New(n.cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.Mesh = m
	t.Cleanup(func() { m.Close() })
}

// knows puts the others into the address book and wants them.
func (n *node) knows(t testing.TB, others ...*node) {
	t.Helper()
	for _, o := range others {
		if err := n.SetAddrs(o.ID(), o.Addrs()); err != nil {
			t.Fatal(err)
		}
		if err := n.Want(o.ID(), true); err != nil {
			t.Fatal(err)
		}
	}
}

func (n *node) untilUp(t testing.TB, others ...*node) {
	t.Helper()
	for _, o := range others {
		n.until(t, fmt.Sprintf("%s up", o.ID()), func() bool { return n.isUp(o.ID()) })
	}
}

// isUp reports whether the last connection change of p was up.
func (n *node) isUp(p workflow.PartnerID) bool {
	return n.count("up", p) > n.count("down", p)
}

// send sends, waiting while the queue is full.
func (n *node) send(t testing.TB, to *node, frame string) {
	t.Helper()
	var err error
	n.until(t, "room in the queue", func() bool {
		err = n.Send(to.ID(), []byte(frame))
		return !errors.Is(err, ErrQueueFull)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (n *node) frames(from *node) []string {
	var all []string
	for _, e := range n.all() {
		if e.kind == "frame" && e.peer == from.ID() {
			all = append(all, e.frame)
		}
	}
	return all
}

func TestFramesArriveOnceAndInOrder(t *testing.T) {
	transports(t, func(t *testing.T, listen []string) {
		a, b := start(t, listen), start(t, listen)
		a.knows(t, b)
		a.untilUp(t, b)
		b.untilUp(t, a)
		const frames = 20_000
		var both sync.WaitGroup
		for _, way := range [][2]*node{{a, b}, {b, a}} {
			both.Go(func() {
				for i := range frames {
					way[0].send(t, way[1], fmt.Sprint(i))
				}
			})
		}
		both.Wait()
		for _, way := range [][2]*node{{a, b}, {b, a}} {
			way[1].until(t, "all frames", func() bool { return way[1].count("frame", way[0].ID()) >= frames })
			for i, f := range way[1].frames(way[0]) {
				if f != fmt.Sprint(i) {
					t.Fatalf("frame %d is %q", i, f)
				}
			}
			if first := way[1].all()[0]; first.kind != "up" {
				t.Fatalf("the first event is %v, want up", first)
			}
		}
	})
}
