// Package assemble puts a node together from its adapters: the Badger store,
// the libp2p mesh, the runner, the local API and the web page beside it.
//
// Promises: what Open opened, Run or Close closes, in the reverse order; a
// host that Run reports ready can be talked to.
//
// It imports configs, internal/private, membership, membership/gossip, membership/trust,
// node, node/api, node/api/httpapi, node/databases, node/doctor, node/files, node/mesh,
// node/runner, node/store, node/web and workflow; cmd/mutirao and internal/test/testnode
// import it.
package assemble

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/gossip"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/databases"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/mesh"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/store"
	"github.com/mutirao-mesh/mutirao/node/web"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// JoinOptions are an invitation and the name to join under.
type JoinOptions struct {
	Invitation string
	Name       string
}

// Joined says what a new member became.
type Joined struct {
	Mesh  string
	Name  string
	Roles []string
}

// Join redeems an invitation and makes dir the folder of a new member.
func Join(ctx context.Context, dir string, o JoinOptions) (*Joined, error) {
	m, err := node.Join(ctx, dir, o.Invitation, o.Name, dial)
	if err != nil {
		return nil, err
	}
	j := &Joined{Mesh: m.Mesh.Name, Name: m.Chain.Leaf().Name}
	for _, r := range m.Chain.Leaf().Roles {
		j.Roles = append(j.Roles, string(r))
	}
	return j, nil
}

// dial makes a host for a node that is nobody's member yet: it asks, and
// answers nobody.
func dial(key ed25519.PrivateKey) (node.Requester, func(), error) {
	m, err := mesh.New(mesh.Config{
		Key: key, Boot: 1, Preset: mesh.Small, Listen: []string{"/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0"},
		Admit:   func(workflow.PartnerID, []byte, uint64) error { return errors.New("not a member yet") },
		Handler: deaf{},
	})
	if err != nil {
		return nil, nil, err
	}
	return m, func() { _ = m.Close() }, nil //nolint:errcheck // nothing was sent that Close could lose
}

// deaf hears nobody.
type deaf struct{}

func (deaf) OnFrame(workflow.PartnerID, []byte) {}
func (deaf) OnUp(workflow.PartnerID)            {}
func (deaf) OnDown(workflow.PartnerID)          {}

// storeFolder and filesFolder are the store's and that of files, inside the node's.
const (
	storeFolder = "store"
	filesFolder = "files"
)

// Host is a node with all that it runs on.
type Host struct {
	dir    string
	cfg    configs.Config
	log    *slog.Logger
	store  *store.Store
	runner *runner.Runner
	node   *node.Node
	mesh   *mesh.Mesh
	gossip *gossip.Gossip
	api    *httpapi.Server
	ready  chan struct{}
}

// Open opens the node of a folder. It talks to nobody before Run.
func Open(dir string, cfg configs.Config, version string, log *slog.Logger) (*Host, error) {
	return OpenBy(node.NewSystemClock(), dir, cfg, version, log)
}

// OpenBy is Open with another clock than the machine's, for tests in which
// clocks go wrong.
func OpenBy(clock node.Clock, dir string, cfg configs.Config, version string, log *slog.Logger) (*Host, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &Host{dir: dir, cfg: cfg, log: log, ready: make(chan struct{})}
	if loose := h.loose(); len(loose) > 0 {
		return nil, loose[0]
	}
	member, err := node.LoadMember(dir)
	if err != nil {
		return nil, err
	}
	if h.store, err = store.Open(filepath.Join(dir, storeFolder),
		store.Options{Preset: presetOf(cfg), Range: node.StoreRange, Logger: log}); err != nil {
		return nil, err
	}
	asked := databases.New(cfg.Databases, dir, log)
	h.runner = runner.New(cfg.Applications,
		runner.Options{Parallel: cfg.Parallel, Databases: asked, Dir: dir, Logger: log})
	space := func() (free, total uint64, err error) { return diskSpace(dir) }
	content, err := files.Open(filepath.Join(dir, filesFolder), files.Options{
		// Files leave more than the store needs: else what others have come here would stop it.
		Limit: cfg.Limits.Files, Space: space, Reserve: 2 * uint64(h.store.Reserve()),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the folder for files: %w", err), h.Close())
	}
	h.node, err = node.New(node.Parts{
		Files:  content,
		Member: member, Config: cfg, Store: h.store, Ran: ran(dir), Vouching: h.store,
		Reserve: uint64(h.store.Reserve()),
		Runner:  h.runner, Instant: true, Asker: h.runner, Clock: clock, Version: version, Logger: log,
		Space: space, Battery: battery,
		Keys: node.UserKeysIn(dir),
		Bare: bareInterfaces, Loose: h.loose, Unfit: func() []string { return runner.Unfit(cfg.Applications, dir) },
		Unasked: asked.Unfit,
	})
	if errors.Is(err, node.ErrLeft) {
		noteLeft(dir)
		err = fmt.Errorf("the node in %s %w", dir, err)
	}
	if err == nil {
		err = h.openMesh(member)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Host) openMesh(member node.Member) error {
	c := h.meshConfig()
	c.Key, c.Boot, c.Hello, c.Admit, c.Evicted = member.Key, h.node.Boot(), h.node.Hello, h.node.Admit, h.node.Evicted
	c.Handler, c.OnAddrs, c.Prepare, c.Logger = h.node, h.node.OnAddrs, h.openGossip, h.log
	c.Silent = h.node.Away()
	if h.cfg.Discovery {
		c.Discovery = "mutirao-" + member.Mesh.ID().String()[:6] // enough to tell a few meshes apart
	}
	var err error
	if c.Prefer, err = loadPorts(h.dir, meshPorts); err != nil {
		return err
	}
	if h.mesh, err = mesh.New(c); errors.Is(err, mesh.ErrNowhere) {
		return api.Errorf(api.Failed, "%w", err).
			WithHint("under listen%s, or with --listen, name an address of this machine, or all: /ip4/0.0.0.0/tcp/0 (port 0: any that is free); where the address comes later, start the node then: its unit for systemd tries again by itself",
				configs.Place(h.dir, "listen"))
	}
	if err != nil {
		return err
	}
	return savePorts(h.dir, meshPorts, c.Prefer, h.mesh.Listening())
}

// spareConnections is the least that libp2p is given, so that there is room for
// newcomers and for partners that connect again; each partner may have two
// connections for a moment.
const spareConnections = 64

// meshConfig is what the node's configuration means for its connections.
func (h *Host) meshConfig() mesh.Config {
	c := mesh.Config{
		Listen: h.cfg.Listen, Preset: mesh.Default, Plain: !h.cfg.Compression,
		Relay: mesh.Relay{Via: h.cfg.Relays, Serve: h.cfg.Relay, Punch: h.cfg.HolePunching},
	}
	c.Limits.Connections = max(spareConnections, 2*h.cfg.Limits.Connections)
	// Beats come more often than this, so that pings are sent to the silent only.
	c.Limits.PingEvery, c.Limits.PingTimeout = 5*time.Second, 2*time.Second
	if h.cfg.Preset == configs.Mobile || h.cfg.Store == configs.StoreSmall {
		c.Preset = mesh.Small
	}
	if h.cfg.Preset == configs.Mobile {
		c.Limits.PingEvery, c.Limits.PingTimeout = 2*time.Minute, 10*time.Second
	}
	return c
}

func (h *Host) openGossip(m *mesh.Mesh) (err error) {
	timing := gossip.LAN()
	switch h.cfg.Preset {
	case configs.Mobile:
		timing = gossip.Mobile()
	case configs.Local:
		timing = gossip.Local()
	}
	h.gossip, err = gossip.New(gossip.Config{
		Mesh: m, Host: m.Members(), Handler: h.node, Timing: timing, Logger: h.log,
	})
	return err
}

// Run runs the node until ctx ends, goes down in good order and closes everything.
func (h *Host) Run(ctx context.Context) error {
	err := h.node.Begin(node.Network{Carrier: carrier{h.mesh}, Requester: h.mesh, Gossip: h.gossip})
	if err != nil {
		return errors.Join(err, h.Close())
	}
	if err = h.serve(); err == nil {
		close(h.ready)
	} else { // what has begun ends in good order, before the store is closed
		stopped, stop := context.WithCancel(ctx)
		stop()
		ctx = stopped
	}
	err = errors.Join(err, h.node.Run(ctx))
	if h.Left() == membership.LeavesForGood {
		noteLeft(h.dir)
	}
	return errors.Join(err, h.Close())
}

// serve serves the local API: where the configuration leaves the port open, at the usual
// one, or else at the one it had before instead.
func (h *Host) serve() error {
	before, err := loadPorts(h.dir, apiPorts)
	if err != nil {
		return err
	}
	o := h.apiOptions()
	o.Prefer, o.Written = apiChoices(before), configs.Place(h.dir, "api")
	if h.api, err = httpapi.Serve(h.dir, h.cfg.API, h.node.Service(), o); err != nil {
		return err
	}
	if strings.HasPrefix(h.cfg.API, "unix:") {
		return nil // a socket has no port
	}
	_, port, err := net.SplitHostPort(h.api.Access().Address)
	if err != nil {
		return err
	}
	return savePorts(h.dir, apiPorts, before, apiRemembered(before, port))
}

// apiOptions are how the local API is served. The files that tls names may be
// relative to the node's folder.
func (h *Host) apiOptions() httpapi.Options {
	return httpapi.Options{Logger: h.log, Ready: h.node.Ready(), Page: web.New(h.node.Service(), h.log),
		Happened: h.node.Happened, SignedIn: h.signedIn, Certificate: h.file(h.cfg.TLS.Certificate), Key: h.file(h.cfg.TLS.Key),
		Networks: networkAddresses}
}

// signedIn reports whether a user is signed in at this node.
func (h *Host) signedIn(user string) bool {
	_, err := h.node.Service().WorklistUnanswered(context.Background(), user) // the least that is refused to anybody else
	return err == nil
}

// loose says which of the node's private files are not its user's alone.
func (h *Host) loose() []*private.LooseError {
	out := private.Check(h.dir, slices.Concat(node.PrivateFiles(), node.UserKeyFiles(h.dir))...)
	var key *private.LooseError
	if errors.As(private.CheckKey(h.file(h.cfg.TLS.Key)), &key) {
		out = append(out, key)
	}
	return out
}

// file is where a file lies that the configuration names; empty for none.
func (h *Host) file(path string) string {
	return configs.In(h.dir, path)
}

// Left says how the node left its mesh, if that is why Run ended.
func (h *Host) Left() membership.Going { return h.node.Left() }

// Ready is closed when the local API answers.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// Service is the node itself, for callers in its own process.
func (h *Host) Service() api.Service { return h.node.Service() }

// Fingerprint is node.Node.Fingerprint: no part of the API, for tests that compare nodes.
func (h *Host) Fingerprint(ctx context.Context, ref string) ([]byte, error) {
	return h.node.Fingerprint(ctx, ref)
}

// Address is where the local API is served, once Ready.
func (h *Host) Address() string { return fmt.Sprint(h.api.Access().Address) }

// Addrs are the addresses at which partners reach the node.
func (h *Host) Addrs() []string { return h.mesh.Addrs() }

// stopWait is how long requests to the API may take to end when the node stops.
const stopWait = 2 * time.Second

// Close closes what Open opened: of a host that Run did not.
func (h *Host) Close() error {
	var errs []error
	if h.api != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait)
		defer cancel()
		errs = append(errs, h.api.Close(ctx))
		h.api = nil
	}
	if h.gossip != nil {
		errs = append(errs, h.gossip.Close())
		h.gossip = nil
	}
	if h.mesh != nil {
		errs = append(errs, h.mesh.Close())
		h.mesh = nil
	}
	h.runner.Close()
	return errors.Join(append(errs, h.store.Close())...)
}
