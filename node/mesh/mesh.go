package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Mesh is this node's end of its connections. Its methods may be called from any
// goroutine.
type Mesh struct {
	cfg      Config
	limits   Limits
	id       workflow.PartnerID
	host     *parts
	puncher  *holepunch.Service // nil: none
	view     *view
	counters *counters
	gate     *gate
	relays   []ma.Multiaddr
	requests chan struct{} // a token per request being handled
	born     time.Time     // monotonic times are counted from here
	hushing  sync.Mutex    // held while a silence begins or ends
	silent   atomic.Bool   // nobody is talked to (silence.go)
	unwanted unwanted

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // our goroutines

	// mu guards what follows and the fields of partner and link that say so. It is
	// never held while calling out.
	mu       sync.RWMutex
	closed   bool
	leaving  chan struct{} // closed when Close or a silence begins
	partners map[peer.ID]*partner
	byID     map[workflow.PartnerID]*partner // the same: decoding an ID for each frame is dear
	links    map[string]*link                // by connection ID

	own []string // own addresses as of the last look; watchAddrs' alone
}

// New starts a mesh node: it listens, and answers those that connect.
func New(cfg Config) (*Mesh, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	adoptLog(cfg.Logger)
	m := &Mesh{
		cfg: cfg, limits: cfg.Limits,
		counters: newCounters(), requests: make(chan struct{}, cfg.Limits.Requests), born: time.Now(),
		partners: map[peer.ID]*partner{}, byID: map[workflow.PartnerID]*partner{}, links: map[string]*link{},
		leaving: make(chan struct{}),
	}
	m.silent.Store(cfg.Silent)
	m.gate = newGate(m)
	if m.relays, err = parseRelays(cfg.Relay.Via); err != nil {
		return nil, err
	}
	h, err := m.newHost()
	if err != nil {
		return nil, err
	}
	m.host, m.id = h, partnerID(h.ID())
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if m.puncher, err = cfg.Relay.newPuncher(h); err == nil {
		m.view, err = newView(m)
	}
	if err == nil {
		err = cfg.Prepare(m)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	m.own = m.Addrs()
	h.SetStreamHandler(helloProtocol, m.acceptHello)
	h.SetStreamHandler(framesProtocol, m.acceptFrames)
	h.Network().Notify(&network.NotifyBundle{
		ConnectedF:    func(_ network.Network, c network.Conn) { m.connected(c) },
		DisconnectedF: func(_ network.Network, c network.Conn) { m.disconnected(c) },
	})
	for _, c := range h.Network().Conns() { // those that came before Notify
		m.connected(c)
		if c.IsClosed() {
			m.disconnected(c)
		}
	}
	m.spawn(m.watchAddrs)
	if cfg.Discovery != "" {
		m.spawn(m.discover)
	}
	return m, nil
}

// Close sends what is queued, as far as partners take it within farewellTime,
// cuts all connections and waits until the handler was told and nothing runs any
// more.
func (m *Mesh) Close() error {
	m.hushing.Lock() // a silence that begins has closed leaving, until it has begun
	m.mu.Lock()
	first := !m.closed
	m.closed = true
	if first {
		close(m.leaving)
	}
	m.mu.Unlock()
	m.hushing.Unlock()
	if first {
		m.awaitFarewells()
	}
	m.cancel()
	var err error
	if m.puncher != nil {
		err = m.puncher.Close()
	}
	err = errors.Join(err, m.host.Close())
	for _, l := range m.allLinks() {
		l.cut()
	}
	m.work.Wait()
	return err
}

// spawn runs f in a goroutine that Close waits for. After Close it does nothing.
func (m *Mesh) spawn(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spawnLocked(f)
}

func (m *Mesh) spawnLocked(f func()) {
	if !m.closed {
		m.work.Go(f)
	}
}

// now is the monotonic time since the mesh was made.
func (m *Mesh) now() time.Duration { return time.Since(m.born) }

// ID is this node's partner ID.
func (m *Mesh) ID() workflow.PartnerID { return m.id }

// Counters are totals since New.
func (m *Mesh) Counters() Counters { return m.counters.read() }

// Send queues a frame of 1 to Limits.Frame bytes for a connected partner. The
// frame must not be changed afterwards. It never waits: ErrNotConnected until
// OnUp, ErrQueueFull when the partner is too slow.
func (m *Mesh) Send(p workflow.PartnerID, frame []byte) error {
	if len(frame) == 0 || len(frame) > m.limits.Frame {
		return fmt.Errorf("mesh: %w: %d bytes, 1 to %d are possible", ErrFrameSize, len(frame), m.limits.Frame)
	}
	m.mu.RLock()
	to := m.byID[p]
	m.mu.RUnlock()
	if to == nil {
		return fmt.Errorf("mesh: %s: %w", p, ErrNotConnected)
	}
	if err := to.queue.put(frame); err != nil {
		if errors.Is(err, ErrQueueFull) {
			m.counters.refuse(ReasonQueueFull)
		}
		return fmt.Errorf("mesh: %s: %w", p, err)
	}
	return nil
}

// ClosePeer cuts all connections with p. It does not keep p from connecting again:
// Admit does that. Frames of p are not handed over after it returns, except one
// that the handler may be working on.
func (m *Mesh) ClosePeer(p workflow.PartnerID) {
	for _, l := range m.allLinks() {
		if l.partner.id == p {
			l.cut()
		}
	}
}

func (m *Mesh) allLinks() []*link {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([]*link, 0, len(m.links))
	for _, l := range m.links {
		all = append(all, l)
	}
	return all
}

// PeerInfo describes a connected partner.
type PeerInfo struct {
	ID workflow.PartnerID
	// Addr is the multiaddr at the other end of the connection that is sent on.
	Addr  string
	Since time.Time
	// RTT is the last measured round trip, 0 if not yet measured.
	RTT time.Duration
	// Boot is the partner's boot counter.
	Boot                    uint64
	FramesIn, FramesOut     uint64
	BytesIn, BytesOut       uint64
	QueueFrames, QueueBytes int
}

// Peers are the connected partners, ordered by ID.
func (m *Mesh) Peers() []PeerInfo {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []PeerInfo
	for _, p := range m.partners {
		if p.current != nil {
			all = append(all, p.info())
		}
	}
	slices.SortFunc(all, func(a, b PeerInfo) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
