package mesh

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func TestHelloCarriesCredentialsAndBoot(t *testing.T) {
	type shown struct {
		peer  workflow.PartnerID
		hello string
		boot  uint64
	}
	seen := make(chan shown, 2)
	asks := func(says string, boot uint64) func(*Config) {
		return func(c *Config) {
			c.Boot = boot
			c.Hello = func() []byte { return []byte(says) }
			c.Admit = func(p workflow.PartnerID, hello []byte, boot uint64) error {
				seen <- shown{p, string(hello), boot}
				return nil
			}
		}
	}
	a, b := start(t, overBoth, asks("i am a", 3)), start(t, overBoth, asks(strings.Repeat("b", 64<<10), 7))
	a.knows(t, b)
	a.untilUp(t, b)
	b.untilUp(t, a)
	got := map[shown]bool{<-seen: true, <-seen: true}
	if !got[shown{a.ID(), "i am a", 3}] || !got[shown{b.ID(), strings.Repeat("b", 64<<10), 7}] {
		t.Fatal("the credentials or boot counters did not arrive as they were sent")
	}
	info := a.Peers()
	if len(info) != 1 || info[0].ID != b.ID() || info[0].Boot != 7 {
		t.Fatalf("peers of a: %+v", info)
	}
	a.until(t, "a measured round trip", func() bool { return a.Peers()[0].RTT > 0 })
}

// refuses makes a node that admits nobody.
func refuses(c *Config) {
	c.Admit = func(workflow.PartnerID, []byte, uint64) error { return errors.New("not on the list\n") }
}

func TestWhoIsNotAdmittedStaysOut(t *testing.T) {
	for _, c := range []struct {
		name               string
		dialler, listener  func(*Config)
		refuser, reasonFor int // 0 the dialler, 1 the listener
	}{
		{"listener refuses", func(*Config) {}, refuses, 1, 0},
		{"dialler refuses", refuses, func(*Config) {}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := start(t, overBoth, c.dialler), start(t, overBoth, c.listener)
			nodes := []*node{a, b}
			a.knows(t, b)
			a.until(t, "a refusal", func() bool { return nodes[c.refuser].Counters().Refused[ReasonNotAdmitted] > 0 })
			l := a.liveLink(b.host.ID())
			if l == nil {
				t.Fatal("the refused connection is gone before its time")
			}
			err := l.wait(t.Context())
			var told *RefusedError
			if c.refuser == 1 && (!errors.As(err, &told) || told.Reason != "not on the list?") {
				t.Fatalf("a was told %v", err)
			}
			if s, err := l.open(t.Context(), framesProtocol); err == nil {
				s.Write(appendFrame(nil, []byte("let me in")))
				if _, err := s.Read(make([]byte, 1)); err == nil {
					t.Fatal("the frames stream was answered")
				}
			}
			for _, n := range nodes {
				if len(n.all()) != 0 || len(n.Peers()) != 0 {
					t.Fatalf("handler events %v, peers %v; want none", n.all(), n.Peers())
				}
			}
			if err := a.Send(b.ID(), []byte("x")); !errors.Is(err, ErrNotConnected) {
				t.Fatalf("send: %v, want ErrNotConnected", err)
			}
		})
	}
}

// A refused connection is closed after a while, and somebody who is admitted later
// gets in by the dialler's own effort.
func TestAdmittedLater(t *testing.T) {
	open := make(chan struct{})
	a := start(t, overBoth, func(c *Config) { c.Limits.StrangerTime = 100 * time.Millisecond })
	b := start(t, overBoth, func(c *Config) {
		c.Limits.StrangerTime = 100 * time.Millisecond
		c.Admit = func(workflow.PartnerID, []byte, uint64) error {
			select {
			case <-open:
				return nil
			default:
				return errors.New("come back later")
			}
		}
	})
	a.knows(t, b)
	a.until(t, "two refusals", func() bool { return b.Counters().Refused[ReasonNotAdmitted] >= 2 })
	close(open)
	a.untilUp(t, b)
}

// Without a hello nothing is answered, and the connection is closed in time.
func TestNoHelloNoService(t *testing.T) {
	b := start(t, overBoth, func(c *Config) { c.Limits.HelloTimeout = 300 * time.Millisecond })
	served := false
	b.HandleRequest("/test/1", true, func(workflow.PartnerID, []byte) ([]byte,
		error) {
		served = true
		return nil, nil
	})
	a := silentNode(t)
	c := a.connect(t, b)
	for _, proto := range []string{string(framesProtocol), "/test/1"} {
		s, err := a.open(t, c, proto)
		if err != nil {
			continue // reset before the protocol was agreed on
		}
		s.Write(appendFrame(nil, []byte("\x00hi")))
		if _, err := s.Read(make([]byte, 1)); err == nil {
			t.Fatalf("%s was answered before a hello", proto)
		}
	}
	b.until(t, "the end of the connection", func() bool { return c.IsClosed() })
	if n := b.Counters().Refused[ReasonNoHello]; n != 3 || served {
		t.Fatalf("%d counted, want 3 (two streams, one connection); served: %v", n, served)
	}
}

func TestBadHellos(t *testing.T) {
	b := start(t, overBoth)
	for name, message := range map[string][]byte{
		"another version": append([]byte{9}, make([]byte, 8)...),
		"cut short":       {helloVersion, 0, 0},
	} {
		a := silentNode(t)
		s := a.stream(t, a.connect(t, b), string(helloProtocol))
		s.Write(appendFrame(nil, message))
		answer := make([]byte, 2)
		if _, err := s.Read(answer); err != nil || answer[1] != verdictNo {
			t.Errorf("%s: answered %v, %v; want a refusal", name, answer, err)
		}
	}
	a := silentNode(t)
	c := a.connect(t, b)
	s := a.stream(t, c, string(helloProtocol))
	s.Write([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	b.until(t, "the connection with an oversized hello cut", func() bool { return c.IsClosed() })
	if n := b.Counters().Refused[ReasonMalformed]; n != 3 {
		t.Errorf("%d malformed hellos counted, want 3", n)
	}
}

func TestStrangersAreLimited(t *testing.T) {
	b := start(t, overBoth, func(c *Config) { c.Limits.Strangers = 4 })
	for range 10 {
		silentNode(t).connect(t, b)
	}
	b.until(t, "strangers cut", func() bool { return b.Counters().Refused[ReasonTooMany] >= 6 })
	member := start(t, overBoth)
	b.knows(t, member) // a wanted partner is no stranger
	b.untilUp(t, member)
}

// Both sides dial at the same moment, again and again: each pair ends up connected
// and stays so.
func TestBothDial(t *testing.T) {
	transports(t, func(t *testing.T, listen []string) {
		for range 5 {
			a, b := start(t, listen), start(t, listen)
			a.knows(t, b)
			b.knows(t, a)
			a.untilUp(t, b)
			b.untilUp(t, a)
			a.send(t, b, "hello b")
			b.send(t, a, "hello a")
			a.until(t, "a frame each way", func() bool { return len(a.frames(b)) == 1 && len(b.frames(a)) == 1 })
			if n := a.count("down", b.ID()) + b.count("down", a.ID()); n != 0 {
				t.Fatalf("the connection flapped %d times", n)
			}
		}
	})
}

// Ten nodes, each told of all others, are all connected.
func TestTenNodes(t *testing.T) {
	nodes := make([]*node, 10)
	for i := range nodes {
		nodes[i] = start(t, overBoth)
	}
	others := func(n *node) []*node {
		var all []*node
		for _, o := range nodes {
			if o != n {
				all = append(all, o)
			}
		}
		return all
	}
	for _, n := range nodes {
		n.knows(t, others(n)...)
	}
	for _, n := range nodes {
		n.untilUp(t, others(n)...)
		if peers := n.Peers(); len(peers) != len(nodes)-1 {
			t.Fatalf("%d peers, want %d", len(peers), len(nodes)-1)
		}
	}
}

// A node that ended and came back under the same identity at another port is
// followed as soon as its new address is known: within two seconds, and what ten
// connections take on this machine.
func TestRestartElsewhere(t *testing.T) {
	transports(t, func(t *testing.T, listen []string) {
		a, b := start(t, listen), start(t, listen)
		begin := time.Now()
		a.knows(t, b)
		a.untilUp(t, b)
		most := 2*time.Second + 10*time.Since(begin)
		old := b.Addrs()
		b.Close()
		a.until(t, "b down", func() bool { return a.count("down", b.ID()) == 1 })
		b.cfg.Boot++
		b.begin(t)
		if fmt.Sprint(b.Addrs()) == fmt.Sprint(old) {
			t.Fatal("the restarted node has the same port: the test shows nothing")
		}
		begin = time.Now()
		if err := a.SetAddrs(b.ID(), b.Addrs()); err != nil {
			t.Fatal(err)
		}
		a.untilUp(t, b)
		if took := time.Since(begin); took > most {
			t.Fatalf("following took %v, at most %v", took, most)
		}
		a.send(t, b, "welcome back")
		b.until(t, "the frame", func() bool { return len(b.frames(a)) == 1 })
	})
}

// A newer process of a partner closes connections to its predecessor. (Two meshes
// with one key stand for a killed process, whose connections look alive, and its
// successor.)
func TestHigherBootClosesStaleConnections(t *testing.T) {
	a, old := start(t, overQUIC), start(t, overQUIC)
	old.knows(t, a)
	a.untilUp(t, old)
	successor := start(t, overQUIC, func(c *Config) { c.Key, c.Boot = old.cfg.Key, 2 })
	if err := old.Want(a.ID(), false); err != nil { // a dead process dials nobody
		t.Fatal(err)
	}
	successor.knows(t, a)
	successor.untilUp(t, a)
	a.until(t, "the new process up", func() bool {
		peers := a.Peers()
		return len(peers) == 1 && peers[0].Boot == 2
	})
	old.until(t, "the old one cut", func() bool { return old.count("down", a.ID()) == 1 })
	if n := a.Counters().Refused[ReasonStale]; n != 1 {
		t.Fatalf("%d stale connections counted, want 1", n)
	}
	a.send(t, successor, "for the new one")
	successor.until(t, "the frame", func() bool { return len(successor.frames(a)) == 1 })
}

func TestClosePeer(t *testing.T) {
	a, b := start(t, overBoth), start(t, overBoth)
	a.knows(t, b)
	a.untilUp(t, b)
	a.ClosePeer(b.ID())
	a.until(t, "down and, since it is wanted, up again", func() bool {
		return a.count("down", b.ID()) == 1 && a.count("up", b.ID()) == 2
	})
	if err := a.Want(b.ID(), false); err != nil {
		t.Fatal(err)
	}
	a.ClosePeer(b.ID())
	a.until(t, "down", func() bool { return a.count("down", b.ID()) == 2 })
	if err := a.Send(b.ID(), []byte("x")); !errors.Is(err, ErrNotConnected) {
		t.Fatalf("send: %v, want ErrNotConnected", err)
	}
}

// Other addresses of a partner that is connected and well change nothing.
func TestNewAddressesOfAConnectedPartner(t *testing.T) {
	a, b := start(t, overBoth), start(t, overBoth)
	a.knows(t, b)
	a.untilUp(t, b)
	a.until(t, "the first round trip", func() bool { return a.Peers()[0].RTT > 0 })
	before := a.Peers()[0].Since
	if err := a.SetAddrs(b.ID(), append(b.Addrs(), "/ip4/192.0.2.1/tcp/1")); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		a.send(t, b, fmt.Sprint(i))
	}
	b.until(t, "the frames", func() bool { return len(b.frames(a)) == 100 })
	if !a.Peers()[0].Since.Equal(before) || a.count("down", b.ID()) != 0 {
		t.Fatal("the connection was replaced")
	}
}

func TestOwnAddressChangeIsTold(t *testing.T) {
	told := make(chan []string, 10)
	home := []ma.Multiaddr{
		ma.StringCast("/ip4/127.0.0.1"), ma.StringCast("/ip4/192.0.2.7"), ma.StringCast("/ip6/fe80::1"),
	}
	moved := make(chan struct{})
	restore := interfaceAddrs
	interfaceAddrs = func() ([]ma.Multiaddr, error) {
		select {
		case <-moved:
			return []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1")}, nil
		default:
			return home, nil
		}
	}
	t.Cleanup(func() { interfaceAddrs = restore })
	a := start(t, []string{"/ip4/0.0.0.0/tcp/0"}, func(c *Config) {
		c.OnAddrs = func(addrs []string) { told <- addrs }
		c.Limits.WatchEvery = 10 * time.Millisecond
	})
	if addrs := a.Addrs(); len(addrs) != 1 || !strings.HasPrefix(addrs[0], "/ip4/192.0.2.7/tcp/") {
		t.Fatalf("addresses %q, want the one that others can use", addrs)
	}
	close(moved)
	select {
	case addrs := <-told:
		if len(addrs) != 1 || !strings.HasPrefix(addrs[0], "/ip4/127.0.0.1/tcp/") {
			t.Fatalf("told %q, want loopback, which is all there is", addrs)
		}
	case <-time.After(patience):
		t.Fatal("the change was not told")
	}
	a.Close() // before interfaceAddrs is restored
}

func TestAddressBookIsBounded(t *testing.T) {
	a := start(t, overTCP, func(c *Config) { c.Limits.Partners, c.Limits.Addresses = 3, 2 })
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprintf("/ip4/192.0.2.%d/tcp/1", i))
	}
	ids := make([]workflow.PartnerID, 5)
	for i := range ids {
		id := trust.IDOf(newKey(t).Public().(ed25519.PublicKey))
		ids[i] = id
		if err := a.SetAddrs(id, many); (err != nil) != (i >= 3) {
			t.Fatalf("partner %d: %v", i, err)
		}
	}
	a.Mesh.mu.RLock()
	held, addrs := len(a.partners), len(a.partners[mustPeer(t, ids[0])].addrs)
	a.Mesh.mu.RUnlock()
	if held != 3 || addrs != 2 {
		t.Fatalf("%d partners with %d addresses, want 3 with 2", held, addrs)
	}
	if err := a.SetAddrs(ids[0], nil); err != nil {
		t.Fatal(err)
	}
	if err := a.SetAddrs(ids[4], many); err != nil {
		t.Fatalf("there is room again: %v", err)
	}
	if err := a.SetAddrs(ids[1], []string{"nonsense", "/ip4/192.0.2.9/tcp/1"}); err == nil ||
		!strings.Contains(err.Error(), "nonsense") {
		t.Fatalf("a bad address: %v", err)
	}
	if err := a.SetAddrs("nobody", many); err == nil {
		t.Fatal("an ID that is none was taken")
	}
}

// What the rest of the node calls a partner, libp2p calls so, too.
func TestIDsAreThoseOfMembership(t *testing.T) {
	a := start(t, overTCP)
	if id := trust.IDOf(a.cfg.Key.Public().(ed25519.PublicKey)); id != a.ID() {
		t.Fatalf("membership calls it %s, the mesh %s", id, a.ID())
	}
	key, err := trust.PublicKey(a.ID())
	if err != nil || !key.Equal(a.cfg.Key.Public()) {
		t.Fatalf("the key in its ID: %v, want the node's key", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{
		Key: newKey(t), Admit: func(workflow.PartnerID, []byte, uint64) error { return nil }, Handler: newRecorder(),
	}
	for want, spoil := range map[string]func(*Config){
		"an Ed25519 key has 64": func(c *Config) { c.Key = c.Key[:32] },
		"Admit is not set":      func(c *Config) { c.Admit = nil },
		"Handler is not set":    func(c *Config) { c.Handler = nil },
		`unknown preset "big"`:  func(c *Config) { c.Preset = "big" },
		"cannot listen anywhere:\n/ip4/192.0.2.1/tcp/0: this machine does not have this address now": func(c *Config) { c.Listen = []string{"/ip4/192.0.2.1/tcp/0"} },
		"failed to parse": func(c *Config) { c.Listen = []string{"here"} },
	} {
		c := good
		spoil(&c)
		if m, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q", err, want)
			if m != nil {
				m.Close()
			}
		}
	}
}

// silent is a libp2p host that speaks only when told to.
type silent struct{ *Mesh }

// silentNode makes a host without a hello.
func silentNode(t testing.TB) silent {
	t.Helper()
	cfg, err := Config{Key: newKey(t), Listen: overTCP, Handler: newRecorder(),
		Admit: func(workflow.PartnerID, []byte, uint64) error { return nil }}.complete()
	if err != nil {
		t.Fatal(err)
	}
	m := &Mesh{cfg: cfg, limits: cfg.Limits, counters: newCounters(), born: time.Now()}
	m.gate = newGate(m)
	if m.host, err = m.newHost(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.host.Close() })
	return silent{m}
}

func (s silent) connect(t testing.TB, to *node) network.Conn {
	t.Helper()
	for _, a := range to.Addrs() {
		s.host.Peerstore().AddAddr(to.host.ID(), ma.StringCast(a), time.Hour)
	}
	c, err := s.host.Network().DialPeer(t.Context(), to.host.ID())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s silent) open(t testing.TB, c network.Conn, proto string) (network.Stream, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	st, err := (&link{mesh: s.Mesh, conn: c}).open(ctx, protocol.ID(proto))
	if err == nil {
		err = st.SetDeadline(time.Now().Add(patience))
	}
	return st, err
}

func (s silent) stream(t testing.TB, c network.Conn, proto string) network.Stream {
	t.Helper()
	st, err := s.open(t, c, proto)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func mustPeer(t testing.TB, p workflow.PartnerID) peer.ID {
	t.Helper()
	id, err := peerID(p)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
