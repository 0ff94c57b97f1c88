package gossip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/host"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Handler is told what comes from others. It may block for a while; nothing
// but news waits then.
type Handler interface {
	// OnNews gets what author published, not verified beyond its signature.
	OnNews(author workflow.PartnerID, news []byte)
	// OnVerdict says that partners agree, or do not any more, that p is silent.
	OnVerdict(p workflow.PartnerID, reachable bool)
}

// Config is what a Gossip needs; all but Logger is required.
type Config struct {
	Mesh Mesh
	// Host is a libp2p host that shows members only; pubsub is made from it.
	Host    host.Host
	Handler Handler
	Timing  Timing
	Logger  *slog.Logger
}

// Gossip is this node's part in it. Its methods may be called from any
// goroutine and never block.
type Gossip struct {
	cfg       Config
	transport *transport
	list      *memberlist.Memberlist
	pubsub    *pubsub.PubSub
	topic     *pubsub.Topic
	news      *pubsub.Subscription
	outgoing  chan []byte
	verdicts  chan verdict

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	members map[workflow.PartnerID]*member
	queue   []workflow.PartnerID // to be joined, in order of request
	wake    chan struct{}        // capacity 1: look at queue
}

// member is one who may take part.
type member struct {
	alive   bool // by memberlist's last word
	queued  bool // in queue
	missing int  // how often it was looked for in vain (reportMissing)
}

type verdict struct {
	partner workflow.PartnerID
	alive   bool
}

// outgoingNews bounds what waits to be published, verdictsWaiting what waits
// for the handler.
const (
	outgoingNews    = 64
	verdictsWaiting = 1024
)

// New starts gossiping. It registers its protocols with the mesh, so call it
// before members can be admitted. It takes part only with members that Follow
// named.
func New(cfg Config) (*Gossip, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Gossip{
		cfg: cfg, outgoing: make(chan []byte, outgoingNews), verdicts: make(chan verdict, verdictsWaiting),
		members: map[workflow.PartnerID]*member{}, wake: make(chan struct{}, 1),
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	if err := errors.Join(g.startMemberlist(), g.startPubSub()); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.work.Go(g.publish)
	g.work.Go(g.receive)
	g.work.Go(g.judge)
	g.work.Go(g.reconnect)
	g.work.Go(g.watchSuspects)
	return g, nil
}

func (g *Gossip) startMemberlist() error {
	g.transport = newTransport(g.cfg.Mesh, g.heard)
	c := g.cfg.Timing.memberlist()
	c.Name = string(g.cfg.Mesh.ID())
	c.Transport = g.transport
	c.Logger = log.New(memberlistLog{g.cfg.Logger}, "", 0)
	d := delegate{g}
	c.Events, c.Alive = d, d
	var err error
	if g.list, err = memberlist.Create(c); err != nil {
		return fmt.Errorf("gossip: memberlist: %w", err)
	}
	return nil
}

// leaveTime is how long Close waits for others to hear that we leave.
const leaveTime = 300 * time.Millisecond

// Close says good-bye and ends all that runs.
func (g *Gossip) Close() error {
	var errs []error
	if g.list != nil {
		if err := g.list.Leave(leaveTime); err != nil {
			g.cfg.Logger.Debug("nobody heard that this node leaves", "error", err)
		}
		errs = append(errs, g.list.Shutdown())
	}
	if g.news != nil {
		g.news.Cancel()
	}
	g.cancel()
	g.work.Wait()
	if g.topic != nil {
		if err := g.topic.Close(); err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Follow says who may take part, and who may not any more.
func (g *Gossip) Follow(p workflow.PartnerID, follow bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case p == g.cfg.Mesh.ID():
	case !follow:
		delete(g.members, p)
	case g.members[p] == nil:
		g.members[p] = &member{}
		g.transport.know(p)
		if g.cfg.Mesh.Connected(p) {
			g.queueLocked(p)
		}
	}
}

// Met says that there is a new connection to p.
func (g *Gossip) Met(p workflow.PartnerID) { g.heard(p) }

// heard has p joined again if memberlist thinks it dead, or never knew it.
func (g *Gossip) heard(p workflow.PartnerID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.members[p]; m != nil && !m.alive {
		g.queueLocked(p)
	}
}

func (g *Gossip) follows(p workflow.PartnerID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members[p] != nil
}

// memberlistLog passes memberlist's lines on, as details.
type memberlistLog struct{ log *slog.Logger }

var _ io.Writer = memberlistLog{}

func (w memberlistLog) Write(line []byte) (int, error) {
	w.log.Debug(string(line))
	return len(line), nil
}
