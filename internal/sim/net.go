package sim

import (
	"bytes"
	"errors"
	"time"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// carrier is a node's end of the simulated links.
type carrier struct{ m *machine }

var errNotConnected = errors.New("simulated: not connected")

// Addrs is one address, made up.
func (c *carrier) Addrs() []string { return []string{"/ip4/127.0.0.1/tcp/1"} }

// SetAddrs and Want do nothing: nodes that can be connected are.
func (c *carrier) SetAddrs(workflow.PartnerID, []string) error { return nil }

// Want does nothing.
func (c *carrier) Want(workflow.PartnerID, bool) error { return nil }

// HandleRequest has requests answered (request.go).
func (c *carrier) HandleRequest(protocol string, _ bool, fn func(workflow.PartnerID, []byte) ([]byte, error)) {
	c.m.answers[protocol] = fn
}

// ClosePeer breaks the connection to a partner.
func (c *carrier) ClosePeer(p workflow.PartnerID) {
	if j, ok := c.m.w.who(p); ok {
		c.m.w.sever(c.m.i, j)
	}
}

// Distrust does the same.
func (c *carrier) Distrust(p workflow.PartnerID) { c.ClosePeer(p) }

// Silence has the node talk to nobody, on purpose, or to all again. What it sent before arrives.
func (c *carrier) Silence(on bool) {
	c.m.silent = on
	c.m.w.relink()
}

// Relayed are none: there are no relays.
func (c *carrier) Relayed() []workflow.PartnerID { return nil }

// Refused is nothing: the nodes themselves refuse.
func (c *carrier) Refused() map[string]uint64 { return nil }

// Traffic is nothing: the world counts frames.
func (c *carrier) Traffic() api.Traffic { return api.Traffic{} }

// Send delivers a frame after a while, if the link lets it through.
func (c *carrier) Send(p workflow.PartnerID, frame []byte) error {
	w := c.m.w
	j, ok := w.who(p)
	s := w.links[pair(c.m.i, j)]
	if !ok || s == nil || c.m.silent {
		return errNotConnected
	}
	w.out.Frames++
	l := letter{frame, w.checks.sent(c.m, frame)}
	w.checks.said(c.m.i, j, l.msg)
	if len(c.m.does) > 0 {
		frame = c.m.w.abuse(c.m, p, frame)
	}
	if c.m.lies > 0 {
		frame = w.lie(c.m, p, frame)
	}
	if !bytes.Equal(frame, l.frame) {
		l.frame = frame
		l.msg, _ = wire.Decode(frame) // nil: it is garbled
	}
	w.traced("n%d sends n%d %x", c.m.i, j, frame)
	times := 1
	if w.lossy > 0 {
		times = []int{0, 1, 1, 1, 1, 2}[w.r.IntN(6)]
	}
	for range times {
		w.deliver(c.m.i, j, s, l)
	}
	return nil
}

// letter is a frame on its way, and what it says, read once for all checks; nil: it
// cannot be read.
type letter struct {
	frame []byte
	msg   *wire.Message
}

func (w *world) deliver(i, j int, s *session, l letter) {
	delay := time.Duration(1+w.r.IntN(40)) * time.Millisecond
	if w.lossy > 0 {
		delay *= time.Duration(1 + w.r.IntN(50))
	}
	w.at(w.now+delay, func() {
		if w.links[pair(i, j)] != s || w.cut[[2]int{i, j}] > 0 || w.nodes[j].silent {
			return
		}
		from := w.nodes[i].id
		w.act(w.nodes[j], func(n *node.Node) {
			w.checks.hears(w.nodes[j], i, l.msg)
			n.OnFrame(from, l.frame)
		})
	})
}

func pair(i, j int) [2]int { return [2]int{min(i, j), max(i, j)} }

func (w *world) who(p workflow.PartnerID) (int, bool) {
	for i, m := range w.nodes {
		if m.id == p {
			return i, true
		}
	}
	return 0, false
}

// detection is how long a dead connection looks alive.
const detection = 8 * time.Second

// relink has connections broken and made, after a while, where the state of
// nodes and links asks for it.
func (w *world) relink() {
	for i := range w.nodes {
		for j := range i {
			w.checkPair(j, i)
		}
	}
}

func (w *world) reachable(i, j int) bool {
	return w.nodes[i].node != nil && w.nodes[j].node != nil && w.cut[[2]int{i, j}] == 0 && w.cut[[2]int{j, i}] == 0 &&
		!w.nodes[i].silent && !w.nodes[j].silent
}

func (w *world) checkPair(i, j int) {
	k := pair(i, j)
	s := w.links[k]
	switch ok := w.reachable(i, j); {
	case ok && s == nil:
		w.at(w.now+time.Duration(50+w.r.IntN(2000))*time.Millisecond, func() {
			if w.reachable(i, j) && w.links[k] == nil {
				w.connect(i, j)
			}
		})
	case !ok && s != nil:
		died := w.nodes[i].node == nil || w.nodes[j].node == nil
		wait := detection
		if died {
			wait = time.Duration(w.r.IntN(3000)) * time.Millisecond
		}
		a, b := w.nodes[i].node, w.nodes[j].node
		w.at(w.now+wait, func() {
			if w.links[k] == s && (!w.reachable(i, j) || w.nodes[i].node != a || w.nodes[j].node != b) {
				w.sever(i, j)
			}
		})
	case ok && s != nil && (s.a != w.nodes[k[0]].node || s.b != w.nodes[k[1]].node):
		w.sever(i, j) // one of them has been restarted meanwhile
	}
}

func (w *world) connect(i, j int) {
	k := pair(i, j)
	w.seq++
	s := &session{id: w.seq, a: w.nodes[k[0]].node, b: w.nodes[k[1]].node}
	w.links[k] = s
	for _, e := range [][2]int{{i, j}, {j, i}} {
		peer := w.nodes[e[1]].id
		w.act(w.nodes[e[0]], func(n *node.Node) {
			if w.links[k] == s {
				n.OnUp(peer)
			}
		})
	}
}

// sever ends a connection, at both ends.
func (w *world) sever(i, j int) {
	k := pair(i, j)
	s := w.links[k]
	if s == nil {
		return
	}
	delete(w.links, k)
	for _, e := range [][2]int{{k[0], k[1]}, {k[1], k[0]}} {
		m, peer := w.nodes[e[0]], w.nodes[e[1]].id
		was := s.a
		if e[0] == k[1] {
			was = s.b
		}
		w.at(w.now, func() {
			if m.node == was && w.links[k] == nil {
				w.act(m, func(n *node.Node) { n.OnDown(peer) })
			}
		})
	}
	w.checkPair(i, j)
}
