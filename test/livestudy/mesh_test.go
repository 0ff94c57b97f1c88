package livestudy

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// mesh is real nodes in one goroutine and in virtual time, connected with the first
// of them (the hubs), on disks that keep everything and links that lose nothing. What happens follows from its seed.
type mesh struct {
	t     testing.TB
	r     *rand.Rand
	now   time.Duration
	seq   int
	queue queue
	nodes []*machine
	byID  map[workflow.PartnerID]*machine
}

// machine is a device with its node. As a performer it does one thing at a time, in
// the order in which it was given them.
type machine struct {
	m      *mesh
	i      int
	member node.Member
	disk   disk
	node   *node.Node
	api    api.Service // of node
	steps  int
	free   time.Duration // when it will have done all that it was given
	// takes is how long it takes for a task of an instance; it says so when a job starts.
	takes   func(j runner.Job) time.Duration
	answers map[string]func(workflow.PartnerID, []byte) ([]byte, error) // by protocol
	// wrote is told of every instance of which facts became durable.
	wrote func(workflow.InstanceID)
}

// latency is how long a frame is under way.
const latency = time.Millisecond

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// place is what a partner of the mesh is called and what roles it has.
type place struct {
	name  string
	roles []workflow.RoleName
}

// members are the keys of those that may be in a mesh, in the order of their IDs,
// which is that in which equals are preferred: as the study prefers the first in the
// file.
var members = sync.OnceValue(func() (out []member) {
	for i := range 20 {
		var s [ed25519.SeedSize]byte
		copy(s[:], fmt.Sprintf("study %d", i))
		key := ed25519.NewKeyFromSeed(s[:])
		out = append(out, member{key, trust.IDOf(key.Public().(ed25519.PublicKey))})
	}
	slices.SortFunc(out, func(a, b member) int { return cmp.Compare(a.id, b.id) })
	return out
})

type member struct {
	key ed25519.PrivateKey
	id  workflow.PartnerID
}

func newMesh(t testing.TB, seed uint64, connectionTime time.Duration, places []place, hubs int) *mesh {
	m := &mesh{t: t, r: rand.New(rand.NewPCG(seed, 77)), byID: map[workflow.PartnerID]*machine{}}
	founder := members()[0].key
	is := trust.Mesh{Name: "study", Founder: trust.IDOf(founder.Public().(ed25519.PublicKey))}
	for i, p := range places {
		chain, err := trust.Issuer{Mesh: is, Key: founder}.Issue(trust.Certificate{
			Partner: members()[i].id, Name: p.name, Roles: p.roles, Serial: trust.Serial{byte(i + 1)},
			NotBefore: trust.WallOf(epoch.Add(-time.Hour)), NotAfter: trust.WallOf(epoch.Add(10_000 * time.Hour)),
		})
		if err != nil {
			t.Fatal(err)
		}
		x := &machine{
			m: m, i: i, member: node.Member{Key: members()[i].key, Mesh: is, Chain: chain},
			disk:    disk{data: map[string][]byte{}},
			answers: map[string]func(workflow.PartnerID, []byte) ([]byte, error){},
		}
		x.disk.wrote = func(id workflow.InstanceID) {
			if x.wrote != nil {
				x.wrote(id)
			}
		}
		cfg := configs.Default(configs.Local)
		cfg.ConnectionTime, cfg.Shards = connectionTime, 1
		x.node, err = node.New(node.Parts{
			Member: x.member, Config: cfg, Store: &x.disk, Runner: x, Clock: x, Version: "study", Chance: m.r.Float64,
			Random: m.random,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		x.api = x.node.Service()
		m.nodes, m.byID[x.member.ID()] = append(m.nodes, x), x
	}
	for _, x := range m.nodes {
		if err := x.node.BeginStepped(node.Network{Carrier: carrier{x}, Requester: carrier{x}}); err != nil {
			t.Fatal(err)
		}
		x.step()
	}
	for i, a := range m.nodes {
		for _, b := range m.nodes[:min(i, hubs)] {
			a.act(func() { a.node.OnUp(b.member.ID()) })
			b.act(func() { b.node.OnUp(a.member.ID()) })
		}
	}
	m.run(m.now + time.Second)
	return m
}

func (m *mesh) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.r.Uint32())
	}
	return b
}

// step has a node do what is due, and comes back when something is due again.
func (x *machine) step() {
	x.steps++
	num := x.steps
	x.m.at(x.m.now+x.node.Step(), func() {
		if x.steps == num {
			x.step()
		}
	})
}

// act has something happen at a node.
func (x *machine) act(fn func()) {
	fn()
	x.step()
}

// does has the machine do something that takes a while, after all else that it has
// to do.
func (x *machine) does(for_ time.Duration, then func()) {
	x.free = max(x.free, x.m.now) + for_
	x.m.at(x.free, then)
}

// Now implements node.Clock.
func (x *machine) Now() moment.Now {
	return moment.Now{Awake: x.m.now + time.Hour, Boot: x.m.now + time.Hour, Wall: epoch.Add(x.m.now)}
}

// BootID names the only boot.
func (x *machine) BootID() string { return "boot" }

// After is not used by a node that is driven by Step.
func (x *machine) After(time.Duration) <-chan time.Time { return nil }

// Has implements node.Runner.
func (x *machine) Has(workflow.ApplicationName) bool { return true }

// Cancel implements node.Runner.
func (x *machine) Cancel(string) {}

// Start implements node.Runner.
func (x *machine) Start(j runner.Job, done func(runner.Result)) {
	x.does(x.takes(j), func() { x.act(func() { done(runner.Result{}) }) })
}

// carrier is a node's end of the links.
type carrier struct{ x *machine }

func (carrier) Addrs() []string                             { return []string{"/ip4/127.0.0.1/tcp/1"} }
func (carrier) SetAddrs(workflow.PartnerID, []string) error { return nil }
func (carrier) Want(workflow.PartnerID, bool) error         { return nil }
func (carrier) ClosePeer(workflow.PartnerID)                {}
func (carrier) Distrust(workflow.PartnerID)                 {}
func (carrier) Silence(bool)                                {}
func (carrier) Relayed() []workflow.PartnerID               { return nil }
func (carrier) Refused() map[string]uint64                  { return nil }
func (carrier) Traffic() api.Traffic                        { return api.Traffic{} }

// HandleRequest has requests answered.
func (c carrier) HandleRequest(proto string, _ bool, fn func(workflow.PartnerID, []byte) ([]byte, error)) {
	c.x.answers[proto] = fn
}

// Request asks a partner, which answers at once.
func (c carrier) Request(_ context.Context, p workflow.PartnerID, _ []string, proto string, req []byte) ([]byte, error) {
	to := c.x.m.byID[p]
	if to == nil || to.answers[proto] == nil {
		return nil, errors.New("nobody answers that")
	}
	out, err := to.answers[proto](c.x.member.ID(), req)
	c.x.m.at(c.x.m.now, to.step)
	return out, err
}

func (c carrier) Send(p workflow.PartnerID, frame []byte) error {
	m, from := c.x.m, c.x.member.ID()
	to := m.byID[p]
	if to == nil {
		return errors.New("nobody is there")
	}
	m.at(m.now+latency, func() { to.act(func() { to.node.OnFrame(from, frame) }) })
	return nil
}

// disk keeps everything.
type disk struct {
	data  map[string][]byte
	wrote func(workflow.InstanceID)
}

// factKeys begin the keys of facts in a node's store (node/keys.go).
const factKeys = 'f'

func (d *disk) Commit(writes []kv.Write, done func(error)) {
	for _, w := range writes {
		if w.Delete {
			delete(d.data, string(w.Key))
			continue
		}
		d.data[string(w.Key)] = bytes.Clone(w.Value)
		if w.Key[0] == factKeys {
			d.wrote(workflow.InstanceID(w.Key[1 : 1+len(workflow.InstanceID{})]))
		}
	}
	done(nil)
}

func (d *disk) CommitWait(writes []kv.Write) (err error) {
	d.Commit(writes, func(e error) { err = e })
	return err
}

func (d *disk) Get(key []byte) ([]byte, error) {
	if v, ok := d.data[string(key)]; ok {
		return v, nil
	}
	return nil, kv.ErrNotFound
}

func (d *disk) Scan(prefix []byte, fn func(key, value []byte) error) error {
	var found []string
	for k := range d.data {
		if strings.HasPrefix(k, string(prefix)) {
			found = append(found, k)
		}
	}
	slices.Sort(found)
	for _, k := range found {
		if err := fn([]byte(k), d.data[k]); err != nil {
			return err
		}
	}
	return nil
}

// at puts something on the queue; run lets time pass.
func (m *mesh) at(t time.Duration, fn func()) {
	m.seq++
	heap.Push(&m.queue, todo{t, m.seq, fn})
}

func (m *mesh) run(until time.Duration) {
	for len(m.queue) > 0 && m.queue[0].at <= until {
		m.next()
	}
	m.now = until
}

func (m *mesh) next() {
	t := heap.Pop(&m.queue).(todo)
	m.now = t.at
	t.fn()
}

type todo struct {
	at  time.Duration
	seq int
	fn  func()
}

type queue []todo

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(todo)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
