package strangers_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/mesh"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	helloProtocol  protocol.ID = "/mutirao/hello/1.0.0"
	framesProtocol protocol.ID = "/mutirao/frames/2.0.0"
)

// helloHeader is what a hello without credentials has.
const helloHeader = 1 + 8

// rogue is a libp2p host that does with the protocols what no node does.
type rogue struct {
	host  host.Host
	hello []byte
	at    peer.AddrInfo
	in    atomic.Bool // it was admitted, over the connection that it has or had
}

// newRogue aims a rogue at a node. A nil chain: it is a stranger.
func newRogue(t *testing.T, key ed25519.PrivateKey, chain trust.Chain, at real) *rogue {
	t.Helper()
	k, err := crypto.UnmarshalEd25519PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	h, err := libp2p.New(libp2p.Identity(k), libp2p.NoListenAddrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // its connections may be cut already
	r := &rogue{host: h, hello: append(binary.BigEndian.AppendUint64([]byte{1}, 1), trust.EncodeChain(chain)...)}
	for _, a := range at.Addrs() {
		info, err := peer.AddrInfoFromString(a + "/p2p/" + string(at.id(t)))
		if err != nil {
			t.Fatal(err)
		}
		r.at.ID, r.at.Addrs = info.ID, append(r.at.Addrs, info.Addrs...)
	}
	return r
}

// asMember sees that there is a connection on which it was admitted, if it can.
func (r *rogue) asMember(ctx context.Context) {
	if r.in.Load() && r.host.Network().Connectedness(r.at.ID) == network.Connected {
		return
	}
	r.in.Store(false)
	_ = r.host.Network().ClosePeer(r.at.ID) // there may be none
	r.in.Store(r.host.Connect(ctx, r.at) == nil && r.saysHello(ctx))
}

// saysHello goes through the hello; false: it was not let in.
func (r *rogue) saysHello(ctx context.Context) bool {
	s, err := r.host.NewStream(ctx, r.at.ID, helloProtocol)
	if err != nil {
		return false
	}
	_ = s.SetDeadline(time.Now().Add(5 * time.Second)) // a failure shows in what follows
	if _, err := s.Write(framed(r.hello)); err != nil {
		return false
	}
	in := bufio.NewReader(s)
	for range 2 { // their verdict and their hello
		n, err := binary.ReadUvarint(in)
		if err != nil || n > 1<<20 {
			return false
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(in, b); err != nil || n == 1 && b[0] != 0 {
			return false
		}
	}
	_, err = s.Write(framed([]byte{0}))
	return err == nil
}

func framed(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

// inBlock is b in a block of a frames stream, as it is.
func inBlock(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))<<1), b...) }

// on opens a stream over a connection that exists and does fn on it until that
// fails.
func (r *rogue) on(ctx context.Context, proto protocol.ID, fn func(network.Stream) error) {
	if len(r.hello) > helloHeader && !r.in.Load() {
		return // it has a certificate, and uses it first
	}
	s, err := r.host.NewStream(network.WithNoDial(ctx, "a rogue connects by asMember"), r.at.ID, proto)
	if err != nil {
		return
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	for fn(s) == nil && ctx.Err() == nil {
	}
}

// startTalker is a member's mesh without its node.
func startTalker(t *testing.T, m node.Member, at real) *mesh.Mesh {
	t.Helper()
	talker, err := mesh.New(mesh.Config{
		Key: m.Key, Boot: 1, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}, Handler: deaf{},
		Hello: func() []byte { return trust.EncodeChain(m.Chain) },
		Admit: func(workflow.PartnerID, []byte, uint64) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := talker.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(talker.SetAddrs(at.id(t), at.Addrs()), talker.Want(at.id(t), true)); err != nil {
		t.Fatal(err)
	}
	return talker
}

func (r real) id(t *testing.T) workflow.PartnerID {
	t.Helper()
	m, err := node.LoadMember(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	return m.ID()
}

// deaf hears nobody.
type deaf struct{}

func (deaf) OnFrame(workflow.PartnerID, []byte) {}
func (deaf) OnUp(workflow.PartnerID)            {}
func (deaf) OnDown(workflow.PartnerID)          {}
