package strangers_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/node/mesh"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// real is a node on libp2p and Badger.
type real struct {
	*assemble.Host
	dir string
}

func startReal(t *testing.T, dir string) real {
	t.Helper()
	h, err := assemble.Open(dir, configs.Default(configs.Local), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	select {
	case <-h.Ready():
	case err := <-done:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return real{h, dir}
}

func (r real) admits(t *testing.T, name string) string {
	t.Helper()
	inv, err := r.Service().Invite(t.Context(), api.InviteRequest{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(r.dir), name)
	if _, err := assemble.Join(t.Context(), dir, assemble.JoinOptions{Invitation: inv.Token, Name: name}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rogue is a libp2p host that does with the protocols what no node does.
type rogue struct {
	host  host.Host
	hello []byte
	at    peer.AddrInfo
}

const (
	helloProtocol  protocol.ID = "/mutirao/hello/1.0.0"
	framesProtocol protocol.ID = "/mutirao/frames/1.0.0"
)

// newRogue aims a rogue at a node. A nil chain: it is a stranger.
func newRogue(t *testing.T, key ed25519.PrivateKey, chain membership.Chain, at real) *rogue {
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
	st, err := at.Service().Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var target *peer.AddrInfo
	for _, a := range at.Addrs() {
		info, err := peer.AddrInfoFromString(a + "/p2p/" + string(st.ID))
		if err != nil {
			t.Fatal(err)
		}
		target = info
	}
	hello := binary.BigEndian.AppendUint64([]byte{1}, 1)
	return &rogue{h, append(hello, membership.EncodeChain(chain)...), *target}
}

// asMember connects and goes through the hello; false: it was not let in.
func (r *rogue) asMember(ctx context.Context) bool {
	if r.host.Network().Connectedness(r.at.ID) == network.Connected {
		return true
	}
	if r.host.Connect(ctx, r.at) != nil {
		return false
	}
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

// on opens a stream and writes what fn gives until that fails.
func (r *rogue) on(ctx context.Context, proto protocol.ID, fn func(network.Stream) error) {
	s, err := r.host.NewStream(ctx, r.at.ID, proto)
	if err != nil {
		return
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	for fn(s) == nil && ctx.Err() == nil {
	}
}

// A member and strangers do their worst, all at once: connections, streams,
// frames that are oversized, never end, or are garbage. The others go on
// working, newcomers join, and what was done is counted.
func TestFloodDoesNotStopOthers(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "one")
	if _, err := node.Init(dir, node.InitOptions{Mesh: "test", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	one := startReal(t, dir)
	two := startReal(t, one.admits(t, "two"))
	rogueMember := func(name string) *rogue {
		m, err := node.LoadMember(one.admits(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return newRogue(t, m.Key, m.Chain, one)
	}
	if _, err := one.Service().AddWorkflow(t.Context(), "pair.yaml", []byte(pair2)); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	again := func(fn func()) { // over and over, but not so fast that there is no time for the others on this very machine
		flood.Go(func() {
			for ctx.Err() == nil {
				fn()
				select {
				case <-time.After(5 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	garbage := framed(bytes.Repeat([]byte{wire.Version, 0xff}, 32<<10))
	valid, err := wire.Encode(&wire.Message{Have: make([]wire.DefinitionStamp, 1000), Greeting: true, Wall: 1})
	if err != nil {
		t.Fatal(err)
	}
	target := talkTo(t, one)
	talker := startTalker(t, one) // says well-framed nonsense, as fast as it is taken
	again(func() {
		for range 100 {
			_ = talker.Send(target, valid) // refused while it is cut off, or its queue is full
		}
		_ = talker.Send(target, []byte{wire.Version, 0xff})
	})
	member := rogueMember("opener") // opens all it can
	again(func() { member.asMember(ctx) })
	again(func() {
		member.on(ctx, framesProtocol, func(s network.Stream) error {
			_, err := s.Write([]byte{0xff, 0xff, 0xff, 0x7f, 'x'})
			return err
		})
	})
	for range 100 { // streams with a frame that is announced and never comes
		flood.Go(func() {
			member.on(ctx, framesProtocol, func(s network.Stream) error {
				_, err := s.Write(binary.AppendUvarint(nil, 1<<20))
				<-ctx.Done()
				return err
			})
		})
	}
	for range 20 {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		stranger := newRogue(t, key, nil, one)
		again(func() {
			_ = stranger.host.Connect(ctx, stranger.at) // it may be refused
			stranger.on(ctx, framesProtocol, func(s network.Stream) error { _, err := s.Write(garbage); return err })
		})
	}
	eventually(t, "the flood is felt", func() bool {
		c := counters(t, one)
		return c["refused.frame-malformed"] > 0 && c["mesh.refused.malformed"] > 0 && c["mesh.refused.no-hello"]+c["mesh.refused.stranger"]+c["mesh.refused.too-many"] > 0
	})

	for range 10 {
		begun := time.Now()
		started, err := one.Service().Start(t.Context(), api.StartRequest{Workflow: "pair", Assign: map[string]string{"here": "one", "there": "two"}})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "an instance ends", func() bool {
			in, err := two.Service().Show(t.Context(), started.ID)
			return err == nil && in.State == "succeeded"
		})
		t.Logf("an instance over two partners took %s during the flood", time.Since(begun).Round(time.Millisecond))
	}
	startReal(t, one.admits(t, "three"))
	eventually(t, "the newcomer is seen", func() bool {
		list, err := two.Service().Partners(t.Context())
		for _, p := range list {
			if p.Name == "three" && p.State == "active" {
				return err == nil
			}
		}
		return false
	})
	stop()
	flood.Wait()
	t.Logf("counted: %v", counters(t, one))
}

// startTalker is a member's mesh without its node.
func startTalker(t *testing.T, at real) *mesh.Mesh {
	t.Helper()
	m, err := node.LoadMember(at.admits(t, "talker"))
	if err != nil {
		t.Fatal(err)
	}
	talker, err := mesh.New(mesh.Config{
		Key: m.Key, Boot: 1, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}, Handler: deaf{},
		Hello: func() []byte { return membership.EncodeChain(m.Chain) },
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
	if err := errors.Join(talker.SetAddrs(talkTo(t, at), at.Addrs()), talker.Want(talkTo(t, at), true)); err != nil {
		t.Fatal(err)
	}
	return talker
}

func talkTo(t *testing.T, at real) workflow.PartnerID {
	t.Helper()
	m, err := node.LoadMember(at.dir)
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

const pair2 = `
workflow: pair
version: 1
tasks:
  a: {}
  b: {after: a}
  c: {after: b}
partitions:
  here: [a, c]
  there: [b]
`

func counters(t *testing.T, r real) map[string]uint64 {
	t.Helper()
	st, err := r.Service().Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Counters
}

// eventually polls cond for some seconds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
