// Package strangers_test tries what peers that do not belong, and members that
// do what they may not, could try; each attempt must be refused and counted.
package strangers_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// world is a mesh of nodes in one goroutine, in virtual time: those that want
// each other and admit each other are connected, unless they are cut apart.
type world struct {
	t       *testing.T
	now     time.Duration
	mesh    trust.Mesh
	founder trust.Issuer
	serial  byte
	all     []*member
	frames  []frame
	apart   map[[2]*member]bool
	linked  map[[2]*member]bool
	// sniff sees every frame before it is delivered.
	sniff func(from, to *member, m *wire.Message)
}

// member is a node with its disk.
type member struct {
	w        *world
	name     string
	who      node.Member
	disk     *disk
	node     *node.Node
	api      api.Service // of node
	wants    map[workflow.PartnerID]bool
	requests map[string]func(workflow.PartnerID, []byte) ([]byte, error)
}

type frame struct {
	from, to *member
	b        []byte
}

// noon is when worlds begin.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const year = 366 * 24 * time.Hour

func keyOf(name string) ed25519.PrivateKey {
	var seed [ed25519.SeedSize]byte
	copy(seed[:], name)
	return ed25519.NewKeyFromSeed(seed[:])
}

func idOf(name string) workflow.PartnerID {
	return trust.IDOf(keyOf(name).Public().(ed25519.PublicKey))
}

// newWorld founds a mesh; its founder is called ana.
func newWorld(t *testing.T) *world {
	w := &world{t: t, apart: map[[2]*member]bool{}, linked: map[[2]*member]bool{}}
	w.mesh = trust.Mesh{Name: "fire-service", Founder: idOf("ana")}
	w.founder = trust.Issuer{Mesh: w.mesh, Key: keyOf("ana")}
	w.join("ana", w.certify("ana", year))
	return w
}

// certify has the founder issue a certificate from noon on.
func (w *world) certify(name string, lifetime time.Duration, roles ...workflow.RoleName) trust.Chain {
	return w.issue(w.founder, trust.Certificate{
		Partner: idOf(name), Name: name, Roles: roles, NotAfter: trust.WallOf(noon.Add(lifetime)),
	})
}

func (w *world) issue(by trust.Issuer, c trust.Certificate) trust.Chain {
	w.t.Helper()
	w.serial++
	c.Serial = trust.Serial{w.serial}
	if c.NotBefore == 0 {
		c.NotBefore = trust.WallOf(noon)
	}
	chain, err := by.Issue(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return chain
}

// join starts a node with this certificate.
func (w *world) join(name string, chain trust.Chain) *member {
	m := &member{w: w, name: name, disk: newDisk(), who: node.Member{Key: keyOf(name), Mesh: w.mesh, Chain: chain}}
	w.all = append(w.all, m)
	m.start()
	return m
}

// start starts the node from its disk, again if it is running.
func (m *member) start() {
	m.w.t.Helper()
	m.stop()
	m.wants = map[workflow.PartnerID]bool{}
	m.requests = map[string]func(workflow.PartnerID, []byte) ([]byte, error){}
	cfg := configs.Default(configs.Local)
	cfg.Shards = 1
	n, err := node.New(node.Parts{
		Member: m.who, Config: cfg, Store: m.disk, Runner: idle{}, Clock: clock{m.w}, Version: "test",
	})
	if err == nil {
		m.node, m.api = n, n.Service()
		err = n.BeginStepped(node.Network{Carrier: m, Requester: m})
	}
	if err != nil {
		m.w.t.Fatalf("%s: %v", m.name, err)
	}
}

// stop ends the node as kill does.
func (m *member) stop() {
	for _, o := range m.w.all {
		m.w.disconnect(m, o)
	}
	m.node, m.api = nil, nil
}

// meet tells two nodes of each other, as an invitation's welcome does.
func (w *world) meet(names ...*member) {
	w.t.Helper()
	for _, a := range names {
		for _, b := range names {
			if a != b {
				a.wants[b.who.ID()] = true
			}
		}
	}
	w.run(5 * time.Second)
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	for end := w.now + d; w.now < end; {
		w.connect()
		w.deliver()
		pause := 250 * time.Millisecond
		for _, m := range w.all {
			if m.node != nil {
				pause = min(pause, m.node.Step())
			}
		}
		w.deliver()
		w.now += max(pause, time.Millisecond)
	}
}

// deliver hands frames over until there are none left.
func (w *world) deliver() {
	for len(w.frames) > 0 {
		f := w.frames[0]
		w.frames = w.frames[1:]
		if f.to.node == nil || !w.linked[pair(f.from, f.to)] {
			continue
		}
		if w.sniff != nil {
			m, err := wire.Decode(f.b)
			if err != nil {
				w.t.Fatal(err)
			}
			w.sniff(f.from, f.to, m)
		}
		f.to.node.OnFrame(f.from.who.ID(), f.b)
		f.to.node.Step()
	}
}

// pair is the same whichever comes first.
func pair(a, b *member) [2]*member {
	if a.name > b.name {
		a, b = b, a
	}
	return [2]*member{a, b}
}

// connect connects nodes that want and admit each other.
func (w *world) connect() {
	for i, a := range w.all {
		for _, b := range w.all[:i] {
			k := pair(a, b)
			if a.node == nil || b.node == nil || w.linked[k] || w.apart[k] ||
				!a.wants[b.who.ID()] && !b.wants[a.who.ID()] {
				continue
			}
			if a.node.Admit(b.who.ID(), b.node.Hello(), 1) != nil ||
				b.node.Admit(a.who.ID(), a.node.Hello(), 1) != nil {
				continue
			}
			w.linked[k] = true
			a.node.OnUp(b.who.ID())
			b.node.OnUp(a.who.ID())
		}
	}
}

func (w *world) disconnect(a, b *member) {
	k := pair(a, b)
	if a == b || !w.linked[k] {
		return
	}
	delete(w.linked, k)
	for _, x := range [][2]*member{{a, b}, {b, a}} {
		if x[0].node != nil {
			x[0].node.OnDown(x[1].who.ID())
		}
	}
}

// cut keeps two nodes apart, or lets them meet again.
func (w *world) cut(a, b *member, apart bool) {
	w.apart[pair(a, b)] = apart
	if apart {
		w.disconnect(a, b)
	}
}

func (w *world) connected(a, b *member) bool { return w.linked[pair(a, b)] }

func (w *world) find(id workflow.PartnerID) *member {
	i := slices.IndexFunc(w.all, func(m *member) bool { return m.who.ID() == id })
	if i < 0 {
		return nil
	}
	return w.all[i]
}

// send has a member send a message that its node would not.
func (w *world) send(from, to *member, m *wire.Message) {
	w.t.Helper()
	b, err := wire.Encode(m)
	if err != nil {
		w.t.Fatal(err)
	}
	to.node.OnFrame(from.who.ID(), b)
	to.node.Step()
}

// counted is a counter of a node's status.
func (m *member) counted(name string) uint64 {
	m.w.t.Helper()
	st, err := m.api.Status(m.w.t.Context())
	if err != nil {
		m.w.t.Fatal(err)
	}
	return st.Counters[name]
}

// sees is the state in which a node lists a partner.
func (m *member) sees(name string) string {
	m.w.t.Helper()
	list, err := m.api.Partners(m.w.t.Context())
	if err != nil {
		m.w.t.Fatal(err)
	}
	for _, p := range list {
		if p.Name == name {
			return p.State
		}
	}
	return ""
}

// A member is its node's carrier.
var _ node.Carrier = (*member)(nil)

func (m *member) Addrs() []string                             { return []string{"/ip4/10.0.0.1/tcp/4001"} }
func (m *member) SetAddrs(workflow.PartnerID, []string) error { return nil }
func (m *member) Want(p workflow.PartnerID, want bool) error  { m.wants[p] = want; return nil }
func (m *member) HandleRequest(protocol string, _ bool, fn func(workflow.PartnerID, []byte) ([]byte, error)) {
	m.requests[protocol] = fn
}

func (m *member) ClosePeer(p workflow.PartnerID) {
	if o := m.w.find(p); o != nil {
		m.w.disconnect(m, o)
	}
}

func (m *member) Distrust(p workflow.PartnerID) { m.ClosePeer(p) }
func (*member) Silence(bool)                    {}
func (*member) Relayed() []workflow.PartnerID   { return nil }
func (*member) Refused() map[string]uint64      { return nil }
func (*member) Traffic() api.Traffic            { return api.Traffic{} }

func (m *member) Send(p workflow.PartnerID, b []byte) error {
	o := m.w.find(p)
	if o == nil || !m.w.connected(m, o) {
		return errors.New("not connected")
	}
	m.w.frames = append(m.w.frames, frame{m, o, b})
	return nil
}

// Request asks a node that runs, member or not.
func (m *member) Request(
	_ context.Context, p workflow.PartnerID, _ []string, protocol string, req []byte,
) ([]byte, error) {
	o := m.w.find(p)
	if o == nil || o.node == nil || m.w.apart[pair(m, o)] || o.requests[protocol] == nil {
		return nil, fmt.Errorf("%s does not answer %s", p, protocol)
	}
	return o.requests[protocol](m.who.ID(), req)
}

type clock struct{ w *world }

func (c clock) Now() moment.Now {
	return moment.Now{Awake: c.w.now + time.Hour, Boot: c.w.now + time.Hour, Wall: noon.Add(c.w.now)}
}
func (clock) BootID() string                       { return "boot" }
func (clock) After(time.Duration) <-chan time.Time { return nil }

// idle runs nothing: tasks are done by people.
type idle struct{}

func (idle) Has(workflow.ApplicationName) bool     { return false }
func (idle) Start(runner.Job, func(runner.Result)) {}
func (idle) Cancel(string)                         {}

// disk is a store in memory.
type disk struct{ data map[string][]byte }

func newDisk() *disk { return &disk{map[string][]byte{}} }

func (d *disk) Commit(writes []kv.Write, done func(error)) { done(d.CommitWait(writes)) }

func (d *disk) CommitWait(writes []kv.Write) error {
	for _, w := range writes {
		if w.Delete {
			delete(d.data, string(w.Key))
			continue
		}
		d.data[string(w.Key)] = bytes.Clone(w.Value)
	}
	return nil
}

func (d *disk) Get(key []byte) ([]byte, error) {
	if v, ok := d.data[string(key)]; ok {
		return v, nil
	}
	return nil, kv.ErrNotFound
}

func (d *disk) Scan(prefix []byte, fn func(key, value []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(d.data)) {
		if bytes.HasPrefix([]byte(k), prefix) {
			if err := fn([]byte(k), d.data[k]); err != nil {
				return err
			}
		}
	}
	return nil
}
