package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Which stranger has to go when there is one too many.
func TestSurplus(t *testing.T) {
	const here, there = "/ip4/192.0.2.1/tcp/1", "/ip4/192.0.2.2/tcp/1"
	type guest struct {
		from   string
		shown  int32
		wanted bool
	}
	for _, c := range []struct {
		name         string
		total, from1 int
		guests       []guest // by age, the last is new
		goes         int     // -1: nobody
	}{
		{"room for all", 3, 3, []guest{{from: here}, {from: here}, {from: there}}, -1},
		{"the oldest from the same address", 9, 2, []guest{{from: there}, {from: here}, {from: here}, {from: here}}, 1},
		{"one without a hello before one with", 9, 2,
			[]guest{{from: here, shown: shownHello}, {from: here}, {from: here}}, 1},
		{"one without a request before one with", 9, 2,
			[]guest{{from: here, shown: shownReason}, {from: here, shown: shownHello}, {from: here}}, 1},
		{"the most crowded address yields to others", 3, 3,
			[]guest{{from: there}, {from: here}, {from: here}, {from: "/ip4/192.0.2.3/tcp/1"}}, 1},
		{"an IPv6 network is one address", 9, 1,
			[]guest{{from: "/ip6/2001:db8::1/tcp/1"}, {from: "/ip6/2001:db8::2/tcp/1"}}, 0},
		{"partners are no strangers", 1, 1, []guest{{from: here, wanted: true}, {from: here}}, -1},
		{"no place at all", 0, 0, []guest{{from: here}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &Mesh{links: map[string]*link{}, limits: Limits{Strangers: c.total, StrangersPerAddress: c.from1}}
			var all []*link
			for i, g := range c.guests {
				l := &link{
					mesh: m, partner: &partner{}, origin: originOf(ma.StringCast(g.from)), begin: time.Duration(i),
					done: make(chan struct{}),
				}
				if g.wanted {
					l.partner.wanted = &keeper{}
				}
				l.shows(g.shown)
				m.links[fmt.Sprint(i)] = l
				all = append(all, l)
			}
			goes := -1
			if l := m.surplusLocked(all[len(all)-1]); l != nil {
				goes = int(l.begin)
			}
			if goes != c.goes {
				t.Errorf("number %d goes, want %d", goes, c.goes)
			}
		})
	}
}

// Strangers who come again and again, from the same address, do not keep somebody
// from asking who has reason to.
func TestJoinerAmongStrangers(t *testing.T) {
	b := start(t, overBoth, func(c *Config) {
		c.Admit, c.Limits.Strangers, c.Limits.StrangersPerAddress = refuse, 4, 4
	})
	b.HandleRequest("/test/join/1", true, func(_ workflow.PartnerID, req []byte) ([]byte, error) { return req, nil })
	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	defer flood.Wait()
	defer stop()
	for range 12 {
		s := silentNode(t)
		to := peer.AddrInfo{ID: b.host.ID()}
		for _, a := range b.Addrs() {
			to.Addrs = append(to.Addrs, ma.StringCast(a))
		}
		flood.Go(func() {
			for ctx.Err() == nil {
				_ = s.host.Connect(ctx, to) // it may be refused
				pause(ctx, 5*time.Millisecond)
			}
		})
	}
	b.until(t, "there are too many", func() bool { return b.Counters().Refused[ReasonTooMany] > 0 })
	joiner := start(t, overBoth, func(c *Config) { c.Admit = refuse })
	b.until(t, "the joiner is answered twice over one connection", func() bool {
		for range 2 {
			if _, err := joiner.Request(ctx, b.ID(), b.Addrs(), "/test/join/1", []byte("please")); err != nil {
				return false
			}
		}
		return true
	})
}

func refuse(workflow.PartnerID, []byte, uint64) error { return errors.New("no member") }

// A stranger has few streams, however many it tries to open.
func TestStrangersStreams(t *testing.T) {
	transports(t, func(t *testing.T, listen []string) {
		b := start(t, listen)
		s := silentNode(t)
		c := s.connect(t, b)
		for range 3 * strangerStreams {
			st, err := c.NewStream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer st.Reset()
			// Over TCP a stream is known, and may be refused, before it has its first byte; over QUIC it is not.
			_, _ = st.Write([]byte{19})
		}
		b.until(t, "streams refused", func() bool { return b.Counters().Refused[ReasonTooMany] >= 2*strangerStreams })
		b.until(t, "the others alone are open", func() bool {
			open := 0
			for _, c := range b.host.Network().ConnsToPeer(s.host.ID()) {
				for _, st := range c.GetStreams() {
					if st.Stat().Direction == network.DirInbound {
						open++
					}
				}
			}
			return open <= strangerStreams
		})
	})
}

// An evicted key gets as far as a hello once, and then not for a while; a dial of
// ours does not get out either.
func TestEvictedKeysAreShutOut(t *testing.T) {
	evicted := start(t, overBoth)
	b := start(t, overBoth, func(c *Config) {
		c.Admit = refuse
		c.Evicted = func(p workflow.PartnerID) bool { return p == evicted.ID() }
		c.Limits.PenaltyTime = time.Hour
	})
	b.HandleRequest("/test/why/1", true,
		func(workflow.PartnerID, []byte) ([]byte, error) { return []byte("evicted"), nil })
	if why, err := evicted.Request(t.Context(), b.ID(), b.Addrs(), "/test/why/1", nil); err != nil ||
		string(why) != "evicted" {
		t.Fatalf("asked why it is kept out: %q, %v", why, err)
	}
	b.ClosePeer(evicted.ID())
	evicted.until(t, "cut off", func() bool { return evicted.liveLink(b.host.ID()) == nil })
	if _, err := evicted.Request(t.Context(), b.ID(), b.Addrs(), "/test/why/1", nil); err == nil {
		t.Error("it came back at once")
	}
	if n := b.Counters().Refused[ReasonShut]; n == 0 {
		t.Error("the gate refused nothing")
	}
	if n := b.Counters().Refused[ReasonNotAdmitted]; n != 1 {
		t.Errorf("%d hellos were judged, want 1", n)
	}
	if b.gate.InterceptPeerDial(evicted.host.ID()) {
		t.Error("the gate lets us dial it")
	}
}

// A member whose frames are oversized, or never come to an end, is cut off and
// kept away, over whichever transport; what it did is counted.
func TestViolatorsAreKeptAway(t *testing.T) {
	for name, c := range map[string]struct {
		bytes  []byte
		reason Reason
	}{
		"oversized":       {inBlock(binary.AppendUvarint(nil, 1<<30)), ReasonMalformed},
		"oversized block": {binary.AppendUvarint(nil, 1<<30), ReasonMalformed},
		"slow":            {inBlock(append(binary.AppendUvarint(nil, 1000), "the rest never comes"...)), ReasonSlow},
		"slow block":      {append(binary.AppendUvarint(nil, 1000), "the rest never comes"...), ReasonSlow},
	} {
		t.Run(name, func(t *testing.T) {
			transports(t, func(t *testing.T, listen []string) {
				b := start(t, listen, func(c *Config) {
					c.Limits.FrameTime, c.Limits.PenaltyTime = 50*time.Millisecond, time.Hour
				})
				m := start(t, listen, func(c *Config) {
					c.Limits.Faults = 100                 // it does not mind what becomes of its streams
					c.Limits.BackoffMin = 3 * time.Second // nor does it hurry to send again
				})
				m.knows(t, b)
				m.untilUp(t, b)
				b.untilUp(t, m)
				link := m.memberLink(b.host.ID())
				// A stream that m's own sender opens takes the place of the one that is
				// open, which then is no violation: there is another try.
				counted := func() uint64 { return b.Counters().Refused[c.reason] }
				for tries := 0; !link.ended() && counted() < uint64(b.limits.Faults); tries++ {
					if tries == 50 {
						t.Fatalf("%d violations were counted after %d tries", counted(), tries)
					}
					if err := link.breakFrames(t.Context(), c.bytes); err == nil {
						t.Fatal("the stream ended well")
					}
				}
				b.until(t, "it comes and is not let in", func() bool { return b.Counters().Refused[ReasonShut] > 0 })
				if n := counted(); n != uint64(b.limits.Faults) {
					t.Errorf("%d violations were counted, want %d", n, b.limits.Faults)
				}
				if b.Connected(m.ID()) {
					t.Error("it is connected")
				}
			})
		})
	}
}

// breakFrames sends bytes as frames and returns how the other ended that.
func (l *link) breakFrames(ctx context.Context, bytes []byte) error {
	s, err := l.open(ctx, framesProtocol)
	if err != nil {
		return err
	}
	defer s.Reset()
	if _, err := s.Write(bytes); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, s)
	return err
}

// Handshakes that are begun and left are bounded for an address.
func TestUnfinishedHandshakes(t *testing.T) {
	b := start(t, overTCP, func(c *Config) { c.Limits.Connections = 32 })
	to, err := networkAddress(b.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	b.until(t, "more than a part of the places refused",
		func() bool { return b.Counters().Refused[ReasonTooMany] >= 12-32/8 })
}

func networkAddress(a string) (string, error) {
	m, err := ma.NewMultiaddr(a)
	if err != nil {
		return "", err
	}
	_, host, err := manet.DialArgs(m)
	return host, err
}
