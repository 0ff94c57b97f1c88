package strangers_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/node/wire"
)

// Members and strangers do their worst to a node, all at once and all from the
// same address: connections, streams, frames that are oversized, never end, or
// are garbage. Meanwhile an instance runs over the node and a partner, and
// somebody joins by an open invitation. What was done is counted.
func TestFloodDoesNotStopOthers(t *testing.T) {
	root := t.TempDir()
	if _, err := node.Init(filepath.Join(root, "one"), node.InitOptions{Mesh: "test", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	one := startReal(t, filepath.Join(root, "one"))
	two := startReal(t, one.admits(t, "two"))
	within(t, "one and two see each other", func() bool { return one.sees("two") && two.sees("one") })
	if _, err := one.Service().AddWorkflow(t.Context(), "pair.yaml", []byte(relayRace)); err != nil {
		t.Fatal(err)
	}
	nonsense, opener := one.member(t, "nonsense"), one.member(t, "opener")
	invitation := one.invites(t)

	felt := func(counters ...string) {
		for _, what := range counters {
			within(t, "the flood is felt: "+what, func() bool { return one.counted(t, what) > 0 })
		}
	}
	f := flood{ctx: t.Context()}
	defer f.ends()
	f.ctx, f.end = context.WithCancel(t.Context())
	f.talksNonsense(t, nonsense, one)
	f.opensAll(newRogue(t, opener.Key, opener.Chain, one))
	felt("refused.frame-malformed", "mesh.refused.malformed", "mesh.refused.shut-out")
	for range 20 {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		f.comesUninvited(newRogue(t, key, nil, one))
	}
	felt("mesh.refused.too-many")

	begun := time.Now()
	dir := filepath.Join(root, "three")
	if _, err := assemble.Join(t.Context(), dir, assemble.JoinOptions{Invitation: invitation, Name: "three"}); err != nil {
		t.Fatalf("nobody can join during the flood: %v", err)
	}
	startReal(t, dir)
	within(t, "the newcomer is seen", func() bool { return one.sees("three") && two.sees("three") })
	t.Logf("somebody joined within %s during the flood", time.Since(begun).Round(time.Millisecond))

	for range 3 {
		begun := time.Now()
		started, err := one.Service().Start(t.Context(),
			api.StartRequest{Workflow: "pair", Assign: map[string]string{"here": "one", "there": "two"}})
		if err != nil {
			t.Fatal(err)
		}
		within(t, "an instance ends", func() bool {
			in, err := two.Service().Show(t.Context(), started.ID)
			return err == nil && in.State == "succeeded"
		})
		t.Logf("an instance over two partners took %s during the flood", time.Since(begun).Round(time.Millisecond))
	}
	if !one.sees("two") || !two.sees("one") {
		t.Error("the flood cut partners off from each other")
	}
}

const relayRace = `
workflow: pair
tasks:
  a: {}
  b: {after: a}
  c: {after: b}
partitions:
  here: [a, c]
  there: [b]
`

// flood is what goes on until it ends.
type flood struct {
	ctx  context.Context
	end  context.CancelFunc
	work sync.WaitGroup
}

func (f *flood) ends() {
	f.end()
	f.work.Wait()
}

// again does something over and over, with a pause that leaves the others on this
// very machine some of its processors.
func (f *flood) again(fn func()) {
	f.work.Go(func() {
		for f.ctx.Err() == nil {
			fn()
			select {
			case <-time.After(5 * time.Millisecond):
			case <-f.ctx.Done():
			}
		}
	})
}

// talksNonsense: a member sends well-formed frames as fast as they are taken, and
// among them one that is none.
func (f *flood) talksNonsense(t *testing.T, m node.Member, to real) {
	talker, target := startTalker(t, m, to), to.id(t)
	useless, err := wire.Encode(&wire.Message{Have: make([]wire.DefinitionStamp, 100), Greeting: true, Wall: 1})
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	f.again(func() {
		for range 100 {
			if talker.Send(target, useless) == nil { // else it is cut off, or its queue is full
				sent++
			}
		}
		if sent > 200 {
			_ = talker.Send(target, []byte{wire.Version, 0xff}) // it has been cut off before
		}
	})
}

// opensAll: a member connects whenever it can, opens all the streams that it can,
// and announces frames that are too long, or never come.
func (f *flood) opensAll(r *rogue) {
	f.again(func() { r.asMember(f.ctx) })
	f.again(func() {
		r.on(f.ctx, framesProtocol, func(s network.Stream) error {
			_, err := s.Write([]byte{0xff, 0xff, 0xff, 0x7f, 'x'})
			return err
		})
	})
	for range 100 {
		f.again(func() {
			r.on(f.ctx, framesProtocol, func(s network.Stream) error {
				if _, err := s.Write(inBlock(binary.AppendUvarint(nil, 1<<20))); err != nil {
					return err
				}
				_, err := s.Read(make([]byte, 1)) // until it is cut off
				return err
			})
		})
	}
}

// comesUninvited: a stranger connects, again and again, and sends garbage.
func (f *flood) comesUninvited(r *rogue) {
	garbage := inBlock(framed(bytes.Repeat([]byte{wire.Version, 0xff}, 30<<10)))
	f.again(func() {
		_ = r.host.Connect(f.ctx, r.at) // it may be refused
		r.on(f.ctx, framesProtocol, func(s network.Stream) error { _, err := s.Write(garbage); return err })
	})
}

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

func (r real) invites(t *testing.T) (token string) {
	t.Helper()
	inv, err := r.Service().Invite(t.Context(), api.InviteRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return inv.Token
}

// admits makes a new member and returns its folder.
func (r real) admits(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = filepath.Join(filepath.Dir(r.dir), name)
	if _, err := assemble.Join(t.Context(), dir, assemble.JoinOptions{Invitation: r.invites(t), Name: name}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// member makes a new member and returns its credentials.
func (r real) member(t *testing.T, name string) node.Member {
	t.Helper()
	m, err := node.LoadMember(r.admits(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sees reports whether a partner is active, as this node sees it.
func (r real) sees(name string) bool {
	list, err := r.Service().Partners(context.Background())
	return err == nil && slices.ContainsFunc(list,
		func(p api.Partner) bool { return p.Name == name && p.State == string(membership.Active) })
}

func (r real) counted(t *testing.T, name string) uint64 {
	t.Helper()
	st, err := r.Service().Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Counters[name]
}

// within waits until cond holds: at once on an idle machine, and for as long as a
// loaded one may need.
func within(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
