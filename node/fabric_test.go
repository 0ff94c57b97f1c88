package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// fabric connects the nodes of a test. It delivers frames in order, loses them
// when told to, and holds every frame against what is durable at its sender:
// nothing may be sent, and nothing acknowledged, that is not.
type fabric struct {
	t testing.TB

	mu     sync.Mutex
	plugs  map[workflow.PartnerID]*plug
	frames []carried
	lose   func(from, to workflow.PartnerID, m *wire.Message) bool
	hidden map[workflow.PartnerID]bool // strangers do not reach them
	// unheard reports whether an answer is lost on its way; nil: none.
	unheard func(by workflow.PartnerID, protocol string) bool
	takes   time.Duration // that a frame is under way
}

// carried is a frame that was sent, whether or not it was lost.
type carried struct {
	from, to workflow.PartnerID
	m        *wire.Message
	sent     int // milliseconds since the test began
}

func newFabric(t testing.TB) *fabric {
	return &fabric{t: t, plugs: map[workflow.PartnerID]*plug{}}
}

// plug is one node's end: its node.Carrier.
type plug struct {
	f    *fabric
	id   workflow.PartnerID
	disk *disk
	node *node.Node

	// Guarded by f.mu.
	addrs    []string
	silent   bool
	lines    map[workflow.PartnerID]*line // to here, by the partner at the other end
	last     map[workflow.PartnerID]*line // the newest, in use or not
	wanted   map[workflow.PartnerID]bool
	book     map[workflow.PartnerID][]string
	handlers map[string]func(workflow.PartnerID, []byte) ([]byte, error)
	open     map[string]bool // to those that nobody admits, too
}

// line carries frames to one side of a connection.
type line struct {
	frames chan []byte
	cut    chan struct{}
	ended  chan struct{} // OnDown was called
	before *line
}

func (f *fabric) plugIn(id workflow.PartnerID, d *disk, n *node.Node, addr string) *plug {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &plug{
		f: f, id: id, disk: d, node: n, addrs: []string{addr}, lines: map[workflow.PartnerID]*line{},
		last: map[workflow.PartnerID]*line{}, wanted: map[workflow.PartnerID]bool{},
		book:     map[workflow.PartnerID][]string{},
		handlers: map[string]func(workflow.PartnerID, []byte) ([]byte, error){}, open: map[string]bool{},
	}
	f.plugs[id] = p
	return p
}

// connect connects two nodes, both of which must admit the other.
func (f *fabric) connect(a, b *plug) {
	f.t.Helper()
	f.mu.Lock()
	silent := a.silent || b.silent
	f.mu.Unlock()
	if silent {
		return
	}
	for _, x := range [][2]*plug{{a, b}, {b, a}} {
		if err := x[0].node.Admit(x[1].id, x[1].node.Hello(), x[1].node.Boot()); err != nil {
			f.t.Errorf("%s does not admit %s: %v", x[0].id, x[1].id, err)
			return
		}
	}
	f.mu.Lock()
	la, lb := newLine(a.last[b.id]), newLine(b.last[a.id])
	a.lines[b.id], b.lines[a.id] = la, lb
	a.last[b.id], b.last[a.id] = la, lb
	f.mu.Unlock()
	go la.deliver(a, b.id)
	go lb.deliver(b, a.id)
}

func newLine(before *line) *line {
	return &line{frames: make(chan []byte, 4096), cut: make(chan struct{}), ended: make(chan struct{}), before: before}
}

// deliver hands p what comes from a peer, after it knows that the connection
// before this one has ended.
func (l *line) deliver(p *plug, from workflow.PartnerID) {
	defer close(l.ended)
	if l.before != nil {
		<-l.before.ended
		l.before = nil
	}
	p.node.OnUp(from)
	defer p.node.OnDown(from)
	for {
		select {
		case <-l.cut:
			return
		default:
		}
		select {
		case frame := <-l.frames:
			if l.underWay(p.f) {
				p.node.OnFrame(from, frame)
			}
		case <-l.cut:
			return
		}
	}
}

// slow has frames be under way for so long, one after the other.
func (f *fabric) slow(takes time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takes = takes
}

// underWay waits while a frame is, and reports whether it arrives.
func (l *line) underWay(f *fabric) bool {
	f.mu.Lock()
	takes := f.takes
	f.mu.Unlock()
	if takes == 0 {
		return true
	}
	select {
	case <-time.After(takes):
		return true
	case <-l.cut:
		return false
	}
}

// disconnect cuts the connection of two nodes, if there is one. Frames under
// way are lost.
func (f *fabric) disconnect(a, b *plug) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range [][2]*plug{{a, b}, {b, a}} {
		if l := x[0].lines[x[1].id]; l != nil {
			close(l.cut)
			delete(x[0].lines, x[1].id)
		}
	}
}

// unplug takes a node off, as the end of its process does.
func (f *fabric) unplug(p *plug) {
	for _, id := range p.peers() {
		f.mu.Lock()
		other := f.plugs[id]
		f.mu.Unlock()
		f.disconnect(p, other)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plugs[p.id] == p {
		delete(f.plugs, p.id)
	}
}

func (p *plug) peers() []workflow.PartnerID {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	var out []workflow.PartnerID
	for id := range p.lines {
		out = append(out, id)
	}
	return out
}

// losing has frames lost for which fn says so; nil: none.
func (f *fabric) losing(fn func(from, to workflow.PartnerID, m *wire.Message) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose = fn
}

// hide keeps a node out of the reach of those who are not connected with it.
func (f *fabric) hide(id workflow.PartnerID, hidden bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hidden = map[workflow.PartnerID]bool{id: hidden}
}

// sent are the frames that were sent so far and for which keep says so.
func (f *fabric) sent(keep func(carried) bool) []carried {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []carried
	for _, c := range f.frames {
		if keep(c) {
			out = append(out, c)
		}
	}
	return out
}

// Addrs implements node.Carrier.
func (p *plug) Addrs() []string { return p.addrs }

// SetAddrs implements node.Carrier.
func (p *plug) SetAddrs(id workflow.PartnerID, addrs []string) error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.book[id] = addrs
	return nil
}

// Want implements node.Carrier. Tests connect nodes themselves.
func (p *plug) Want(id workflow.PartnerID, want bool) error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.wanted[id] = want
	return nil
}

// wants reports whether a node would dial another, and where.
func (p *plug) wants(id workflow.PartnerID) (bool, []string) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return p.wanted[id], p.book[id]
}

// Send implements node.Carrier.
func (p *plug) Send(to workflow.PartnerID, frame []byte) error {
	m, err := wire.Decode(frame)
	if err != nil {
		p.f.t.Errorf("%s sends a frame that nobody can read: %v", p.id, err)
		return err
	}
	p.audit(to, m)
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if p.lines[to] == nil {
		return errors.New("not connected")
	}
	if os.Getenv("MUTIRAO_TEST_LOG") != "" {
		p.f.t.Logf("%6d ms %s", elapsed(), describe(p.id, to, m))
	}
	p.f.frames = append(p.f.frames, carried{from: p.id, to: to, m: m, sent: elapsed()})
	if p.f.lose != nil && p.f.lose(p.id, to, m) {
		return nil
	}
	select {
	case p.f.plugs[to].lines[p.id].frames <- frame:
		return nil
	default:
		return errors.New("queue full")
	}
}

// audit fails the test when a message tells what is not durable here.
func (p *plug) audit(to workflow.PartnerID, m *wire.Message) {
	if len(m.Facts)+len(m.Heads) == 0 {
		return
	}
	durable := p.disk.facts(p.f.t)
	for _, fs := range m.Facts {
		for _, w := range fs.Facts {
			f, id, err := fact.Decode(w.Raw)
			if err != nil {
				p.f.t.Errorf("%s sends a fact that nobody can read: %v", p.id, err)
			} else if !durable[id] {
				p.f.t.Errorf("%s sent to %s before it was durable: %s number %d of %s", p.id, to, f.Body.Kind(), f.Seq,
					f.Chain.Author)
			}
		}
	}
	for _, hs := range m.Heads {
		for _, h := range hs.Heads {
			if !durable[h.ID] {
				p.f.t.Errorf("%s told %s (mode %d) that it has, before it was durable: number %d of %s", p.id, to,
					hs.Mode, h.Seq, h.Chain.Author)
			}
		}
	}
}

// ClosePeer implements node.Carrier.
func (p *plug) ClosePeer(id workflow.PartnerID) {
	p.f.mu.Lock()
	other := p.f.plugs[id]
	p.f.mu.Unlock()
	if other != nil {
		p.f.disconnect(p, other)
	}
}

// Silence implements node.Carrier: what is under way arrives, then nobody is connected.
func (p *plug) Silence(on bool) {
	p.f.mu.Lock()
	p.silent = on
	p.f.mu.Unlock()
	if !on {
		return
	}
	time.Sleep(10 * time.Millisecond)
	for _, id := range p.peers() {
		p.ClosePeer(id)
	}
}

// Distrust, Relayed, Refused and Traffic implement node.Carrier.
func (p *plug) Distrust(id workflow.PartnerID) { p.ClosePeer(id) }
func (*plug) Relayed() []workflow.PartnerID    { return nil }
func (*plug) Refused() map[string]uint64       { return nil }
func (*plug) Traffic() api.Traffic             { return api.Traffic{} }

// network is the plug as a node is given it.
func (p *plug) network() node.Network { return node.Network{Carrier: p, Requester: p} }

// HandleRequest implements node.Carrier.
func (p *plug) HandleRequest(protocol string, open bool, fn func(workflow.PartnerID, []byte) ([]byte, error)) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.handlers[protocol], p.open[protocol] = fn, open
}

// Request implements node.Requester: of members that are connected, and of
// others what is open to strangers.
func (p *plug) Request(
	ctx context.Context, to workflow.PartnerID, _ []string, protocol string, req []byte,
) ([]byte, error) {
	p.f.mu.Lock()
	other := p.f.plugs[to]
	answers := p.lines[to] != nil || other != nil && other.open[protocol]
	p.f.mu.Unlock()
	if !answers {
		return nil, errors.New("not connected")
	}
	type answer struct {
		b   []byte
		err error
	}
	came := make(chan answer, 1)
	go func() {
		b, err := stranger{p.f, p.id}.Request(context.Background(), to, nil, protocol, req)
		came <- answer{b, err}
	}()
	select {
	case a := <-came:
		return a.b, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stranger asks in the name of a node that is nobody's member yet: a
// node.Requester.
type stranger struct {
	f  *fabric
	id workflow.PartnerID
}

// Request implements node.Requester.
func (s stranger) Request(
	_ context.Context, to workflow.PartnerID, _ []string, protocol string, req []byte,
) ([]byte, error) {
	s.f.mu.Lock()
	p := s.f.plugs[to]
	if s.f.hidden[to] && p != nil && p.lines[s.id] == nil {
		p = nil
	}
	s.f.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("%s is not there", to)
	}
	s.f.mu.Lock()
	fn := p.handlers[protocol]
	s.f.mu.Unlock()
	if fn == nil {
		return nil, fmt.Errorf("%s does not answer %s", to, protocol)
	}
	b, err := fn(s.id, req)
	s.f.mu.Lock()
	lost := s.f.unheard != nil && s.f.unheard(s.id, protocol)
	s.f.mu.Unlock()
	switch {
	case lost:
		return nil, errors.New("the connection was lost")
	case err != nil:
		return nil, answered{err}
	}
	return b, nil
}

// answered is an error that the other side answered with: an invitation.Answer.
type answered struct{ error }

func (a answered) Answer() string { return a.Error() }

// describe says in short what a message holds about instances.
func describe(from, to workflow.PartnerID, m *wire.Message) string {
	out := fmt.Sprintf("%s → %s:", short(from), short(to))
	for _, fs := range m.Facts {
		out += fmt.Sprintf(" facts of %.4s", fs.Instance)
		for _, w := range fs.Facts {
			if f, _, err := fact.Decode(w.Raw); err == nil {
				out += fmt.Sprintf(" %s-%s.%d", f.Body.Kind(), short(f.Chain.Author), f.Seq)
			}
		}
	}
	for _, hs := range m.Heads {
		out += fmt.Sprintf(" %s %.4s", []string{"ack", "ask", "answer"}[hs.Mode], hs.Instance)
		for _, h := range hs.Heads {
			out += fmt.Sprintf(" %s.%d", short(h.Chain.Author), h.Seq)
		}
	}
	if m.Greeting {
		out += " greeting"
	}
	return out
}

// short is the end of a partner's ID, which tells partners apart.
func short(id workflow.PartnerID) string { return string(id[len(id)-3:]) }
