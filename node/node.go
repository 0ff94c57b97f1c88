package node

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Node is one partner's node.
type Node struct {
	member  Member
	config  configs.Config
	store   Store
	runner  Runner
	clock   Clock
	version string
	chance  func() float64   // a number in [0, 1)
	random  func(int) []byte // so many random bytes
	log     *slog.Logger

	carrier     Carrier
	gossip      Gossip
	people      *people
	definitions *definitions
	reading     *budgets // of definitions, in bytes
	greetings   *budgets
	comparing   *budgets
	index       *index
	events      *feed
	shards      []*shard
	started     time.Time
	stepped     bool // driven by Step, in one goroutine
	ledger      *ledger
	learned     *learned
	nextBeat    time.Duration
	made        madeNews
	lastBeat    time.Duration
	signed      bool // the last sign of life was
	signs       signs
	nextWatch   time.Duration
	served      atomic.Pointer[chief] // the coordinator for which instances were last worked out
	overview    *overview
	refusals    *refusals
	usage       *usage
	lifetime    lifetime
	aged        time.Duration // the age that was written last
	nextRetain  time.Duration
	closed      closed
	nextSweep   time.Duration
	office      *office
	credentials credentials
	nudged      chan struct{} // capacity 1: something is due earlier
	space       func() (free, total uint64, err error)
	bare        func() []string
	loose       func() []*private.LooseError
	unfit       func() []string
	born        time.Time     // by the wall clock when the node started
	nextPull    time.Duration // when catchUp asks somebody in any case
	turn        int           // the partners that it asks
	bootID      string        // of the machine's present boot
	begun       chan struct{} // closed by Begin: carrier is set
	stopped     chan struct{}
	leaving     atomic.Bool   // it takes nothing new on, and goes when nothing stays
	forGood     atomic.Bool   // it will not come back
	hasLeft     chan struct{} // closed when it has left
	running     sync.WaitGroup

	reserve  uint64   // bytes that must be free for the store to write; 0: it did not say
	vouching Vouching // nil: the store knows nothing of what it should hold
	losses   losses
	// Instances of which the store does not hold what it should, as was found when it
	// was opened: of their facts, or only of their summaries.
	suspect, unlisted []workflow.InstanceID

	verifier  verifier
	restoring sync.Mutex // held while a restored store is dealt with
	restored  bool       // guarded by restoring: it was found out in this process

	mu       sync.Mutex // guards what follows
	boot     uint64
	inc      choreo.Incarnation
	links    map[workflow.PartnerID]*link
	isUp     map[workflow.PartnerID]bool
	greeted  map[workflow.PartnerID]time.Duration
	trouble  map[string]string
	late     map[workflow.InstanceID]string
	counters map[string]*atomic.Uint64
	askAt    time.Duration                    // Awake at which to ask why nobody is connected; 0: never
	clocks   map[workflow.PartnerID]time.Time // born, by the partners' wall clocks, as heard on contact
}

// New loads a node from its store. It talks to nobody before Begin.
func New(p Parts) (*Node, error) {
	p.Member.id = p.Member.ID()
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Chance == nil {
		p.Chance = rand.Float64
	}
	if p.Random == nil {
		p.Random = random
	}
	n := &Node{
		member: p.Member, config: p.Config, runner: p.Runner, clock: p.Clock, version: p.Version, log: p.Logger, chance: p.Chance, random: p.Random,
		index: newIndex(), events: newFeed(), begun: make(chan struct{}), stopped: make(chan struct{}), hasLeft: make(chan struct{}), started: p.Clock.Now().Wall, bootID: p.Clock.BootID(),
		links: map[workflow.PartnerID]*link{}, isUp: map[workflow.PartnerID]bool{}, greeted: map[workflow.PartnerID]time.Duration{},
		trouble: map[string]string{}, late: map[workflow.InstanceID]string{}, counters: map[string]*atomic.Uint64{}, clocks: map[workflow.PartnerID]time.Time{},
		nudged: make(chan struct{}, 1), space: p.Space, bare: p.Bare, loose: p.Loose, unfit: p.Unfit, ledger: newLedger(p.Member.ID(), p.Clock), learned: newLearned(p.Config),
		overview: newOverview(p.Config.Limits.Instances), refusals: newRefusals(), usage: newUsage(), credentials: credentials{mesh: p.Member.Mesh},
		reading: newBudgets(readingRation), greetings: newBudgets(greetingRation), comparing: newBudgets(comparingRation),
	}
	n.turn = int(n.chance() * math.MaxUint16) // not everybody the same
	n.served.Store(&chief{})
	now := p.Clock.Now()
	n.born = born(now.Wall, now)
	n.store = watchedStore{p.Store, n.troubled}
	n.vouching, _ = p.Store.(Vouching)
	if s, ok := p.Store.(interface{ Reserve() int64 }); ok {
		n.reserve = uint64(s.Reserve())
	}
	if err := errors.Join(n.recall(), n.mayComeBack()); err != nil {
		return nil, err
	}
	reborn := n.assess()
	unread, err := n.sift()
	if err != nil {
		return nil, err
	}
	reborn = reborn || unread
	if err := n.countBoot(reborn); err != nil {
		return nil, err
	}
	if n.people, err = loadPeople(p.Member, n.store, p.Clock, n.boot, n.inc); err != nil {
		return nil, err
	}
	n.definitions = newDefinitions(n.store, p.Config.Limits.Workflows, n.people)
	unknown := func(err error) { n.lost("a definition; partners tell it again (%v)", err) }
	if err := n.definitions.load(unknown); err != nil {
		return nil, err
	}
	n.people.changed, n.people.ledger, n.people.learned = n.partnerChanged, n.ledger, n.learned
	if err := n.learned.load(n.store); err != nil {
		return nil, err
	}
	n.gossip = direct{n}
	n.people.coordinator, n.people.office, n.people.tellStart = n.coordinator, n.holds, n.tellStart
	if n.office, err = newOffice(n); err != nil {
		return nil, err
	}
	n.checkStanding()
	for i := range max(p.Config.Shards, 1) {
		n.shards = append(n.shards, newShard(n, i))
	}
	if err := errors.Join(n.loadAge(), n.loadClosed()); err != nil {
		return nil, err
	}
	return n, n.loadInstances(reborn)
}

const (
	metaBoot        = "boot"
	metaIncarnation = "incarnation"
)

// countBoot counts the boot and finds the incarnation, or begins a new one.
func (n *Node) countBoot(reborn bool) error {
	b, err := n.store.Get(metaKey(metaBoot))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if len(b) == 8 {
		n.boot = binary.BigEndian.Uint64(b)
	}
	n.boot++
	inc, err := n.store.Get(metaKey(metaIncarnation))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if err != nil || reborn {
		inc = n.random(len(n.inc))
	}
	copy(n.inc[:], inc)
	writes := []kv.Write{
		{Key: metaKey(metaBoot), Value: binary.BigEndian.AppendUint64(nil, n.boot)},
		{Key: metaKey(metaIncarnation), Value: inc},
	}
	if reborn {
		writes = append(writes, n.rebornWrite())
	}
	return n.store.CommitWait(writes)
}

// Boot is this node's boot counter: how often it was started.
func (n *Node) Boot() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.boot
}

// Hello is what this node shows a peer first: its certificate chain.
func (n *Node) Hello() []byte { return membership.EncodeChain(n.people.chain()) }

// Admit judges what a peer showed.
func (n *Node) Admit(p workflow.PartnerID, hello []byte, _ uint64) error {
	if len(hello) == 0 {
		return errNoMember // somebody who wants to join
	}
	err := n.people.admit(p, hello)
	if err != nil {
		n.refuse("stranger."+whyNot(err), p)
	}
	return err
}

// Evicted reports whether a key is kept out whatever certificate it shows.
func (n *Node) Evicted(p workflow.PartnerID) bool { return n.people.keyEvicted(p) }

var errNoMember = errors.New("shows no certificate: only members are admitted")

// whyNot names the reason for which a certificate was refused.
func whyNot(err error) string {
	for _, r := range []struct {
		err  error
		name string
	}{
		{membership.ErrWrongMesh, "wrong-mesh"}, {membership.ErrForged, "forged"}, {membership.ErrRevoked, "evicted"},
		{membership.ErrExpired, "expired"}, {membership.ErrNotYet, "not-yet-valid"}, {membership.ErrNotAllowed, "not-allowed"},
	} {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "malformed"
}

// Begin has the node talk through a carrier: it announces itself, follows its
// partners and goes on with its instances. Without gossip it tells its partners
// itself what is new. Run must follow.
func (n *Node) Begin(c Carrier, g Gossip) error {
	if g != nil {
		n.gossip = g
	}
	for _, s := range n.shards {
		n.running.Go(func() { s.run(n.stopped) })
	}
	return n.begin(c)
}

func (n *Node) begin(c Carrier) error {
	n.carrier = c
	close(n.begun)
	c.HandleRequest(protocolHello, true, n.people.offer)
	c.HandleRequest(protocolProof, true, n.redeem)
	c.HandleRequest(protocolPass, true, n.pass)
	c.HandleRequest(protocolPassed, false, n.passed)
	c.HandleRequest(protocolStanding, true, n.tellStanding)
	c.HandleRequest(protocolData, false, n.people.giveData)
	c.HandleRequest(protocolLook, false, n.tellLook)
	n.alone()
	if err := n.announce(c.Addrs()); err != nil {
		return err
	}
	for _, p := range n.people.all() {
		if p.State == membership.Left {
			p.State = membership.Unreachable // it may be back, and think the same of us
		}
		n.follow(p)
	}
	return nil
}

// Run keeps the node going until ctx ends, and goes down in good order.
func (n *Node) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			if n.Left() == membership.Staying {
				n.depart(membership.GoesDown)
			}
			n.stop()
			return nil
		case <-n.hasLeft:
			n.stop()
			return nil
		case <-n.clock.After(n.pulse()):
		case <-n.nudged:
		}
	}
}

// stop ends what the node does.
func (n *Node) stop() {
	close(n.stopped)
	n.running.Wait()
}

// talks waits until the node may talk; a carrier may be there earlier.
func (n *Node) talks() bool {
	select {
	case <-n.begun:
		return true
	case <-n.stopped:
		return false
	}
}

// self says for which partner machines act.
func (n *Node) self() choreo.Self {
	return choreo.Self{Partner: n.member.ID(), Incarnation: n.incarnation(), Trust: &n.credentials}
}

func (n *Node) incarnation() choreo.Incarnation {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inc
}

func (n *Node) shardOf(id workflow.InstanceID) *shard {
	return n.shards[binary.BigEndian.Uint32(id[:])%uint32(len(n.shards))]
}

// post hands an event to a shard. It blocks while the shard's queue is full.
func (n *Node) post(s *shard, e event) bool {
	if n.stepped {
		s.local = append(s.local, e)
		return true
	}
	select {
	case s.events <- e:
		return true
	case <-n.stopped:
		return false
	}
}

// side does something beside what goes on, where that might wait for itself.
func (n *Node) side(fn func()) {
	if n.stepped {
		fn()
		return
	}
	go fn()
}

// postFromRunner hands in the end of a task. The runner may end a task before
// its Start returns, which is on the shard's own goroutine: so as not to wait
// for itself, a full queue is waited for elsewhere.
func (n *Node) postFromRunner(s *shard, e event) {
	if n.stepped {
		n.post(s, e)
		return
	}
	select {
	case s.events <- e:
	default:
		n.side(func() { n.post(s, e) })
	}
}

// do has fn run on the owner of an instance and waits until what it did is durable.
func (n *Node) do(ctx context.Context, id workflow.InstanceID, fn func(*shard) error) error {
	done := make(chan error, 1)
	return n.handIn(ctx, id, event{apply: fn, after: func(err error) { done <- err }}, done)
}

// peek has fn read an instance on its owner.
func (n *Node) peek(ctx context.Context, id workflow.InstanceID, fn func(*held)) error {
	done := make(chan error, 1)
	return n.handIn(ctx, id, event{look: func(s *shard) {
		h, err := s.find(id)
		if err == nil {
			fn(h)
			if h.sum.Settled { // it was loaded only to be read
				delete(s.held, id)
			}
		}
		done <- err
	}}, done)
}

// handIn hands an event to the owner of an instance and waits for the answer.
func (n *Node) handIn(ctx context.Context, id workflow.InstanceID, e event, done <-chan error) error {
	return n.handTo(ctx, n.shardOf(id), e, done)
}

// handTo hands an event to a shard and waits for the answer.
func (n *Node) handTo(ctx context.Context, s *shard, e event, done <-chan error) error {
	if !n.post(s, e) {
		return errStopping
	}
	if n.stepped {
		s.turn()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.stopped:
		return errStopping
	}
}

var errStopping = api.Errorf(api.NoNode, "the node is stopping")

// OnUp is called by the carrier when a member is connected.
func (n *Node) OnUp(p workflow.PartnerID) {
	if !n.talks() {
		return
	}
	n.mu.Lock()
	n.isUp[p] = true
	if n.links[p] == nil {
		n.links[p] = &link{}
	}
	n.links[p].contact.begin(n.clock.Now().Boot)
	n.mu.Unlock()
	n.people.reach(p, true)
	n.transmit(p, &wire.Message{
		Records: n.records(), Have: n.definitions.stamps(), Digest: n.people.digest(), Greeting: true,
		Evictions: n.evictionDigest(), Election: n.office.greeting(), Wall: n.clock.Now().Wall.UnixMilli(),
		Ended: n.index.endedWith(p),
	})
	n.met(p)
	for _, s := range n.shards {
		n.post(s, event{apply: func(s *shard) error { s.greet(p); return nil }})
	}
}

// OnDown is called by the carrier when the last connection to a member is gone.
func (n *Node) OnDown(p workflow.PartnerID) {
	n.mu.Lock()
	delete(n.isUp, p)
	n.mu.Unlock()
	n.people.forget(p)
	n.alone()
	n.people.reach(p, false)
}

func (n *Node) up(p workflow.PartnerID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.isUp[p]
}

// upPeers are the partners that are connected now.
func (n *Node) upPeers() []workflow.PartnerID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.isUp))
}

// OnFrame is called by the carrier with each frame of a member; while it does
// not return, no further frame of that connection comes.
func (n *Node) OnFrame(p workflow.PartnerID, frame []byte) {
	if !n.talks() {
		return
	}
	m, err := wire.Decode(frame)
	if err != nil {
		n.refuse("frame-malformed", p)
		n.log.Warn("frame refused", "from", p, "error", err)
		n.distrust(p)
		return
	}
	n.mu.Lock()
	l := n.links[p]
	n.mu.Unlock()
	if l != nil {
		l.contact.hear(n.clock.Now().Boot)
	}
	n.takeMembership(p, m)
	n.takeEvictions(p, m.Evictions)
	n.takeRenewal(p, m.Renewal)
	n.office.take(p, m.Election)
	n.takeClock(p, m.Wall)
	n.takeReports(p, m.Reports)
	n.takeEnded(p, m.Ended)
	n.takeDefinitions(p, m)
	for i := range m.Facts {
		n.routeFacts(p, &m.Facts[i])
	}
	for _, r := range m.Refusals {
		n.post(n.shardOf(r.Instance), event{apply: func(s *shard) error { return s.takeRefusal(p, r) }})
	}
	for i := range m.Heads {
		w := &m.Heads[i]
		n.post(n.shardOf(w.Instance), event{apply: func(s *shard) error { return s.takeHeads(p, w) }, after: n.logRefusal(p)})
	}
}

// distrust cuts the connections of a partner that sends garbage.
func (n *Node) distrust(p workflow.PartnerID) {
	if d, can := n.carrier.(Distrusting); can {
		d.Distrust(p)
		return
	}
	n.carrier.ClosePeer(p)
}

// routeFacts verifies facts, on the peer's own goroutine, and hands them on.
func (n *Node) routeFacts(p workflow.PartnerID, f *wire.Facts) {
	n.mu.Lock()
	l := n.links[p]
	n.mu.Unlock()
	if l == nil {
		return
	}
	facts, err := wire.DecodeFacts(f, &n.verifier)
	if err == nil {
		err = n.checkRights(p, facts)
	}
	if err != nil {
		why := "facts-malformed"
		if errors.Is(err, choreo.ErrForged) {
			why = "facts-forged"
		}
		n.refuse(why, p)
		n.log.Warn("facts refused", "from", p, "instance", f.Instance, "error", err)
		return
	}
	if author := n.stranger(p, facts); author != "" {
		n.refuse("facts-of-strangers", p)
		n.log.Info("facts put off", "from", p, "instance", f.Instance, "of", author, "because", "it is not on the partner list")
		return
	}
	n.readAhead(p, f)
	size := 0
	for _, w := range f.Facts {
		size += len(w.Raw)
	}
	if !n.queue(l, size) {
		return
	}
	posted := n.post(n.shardOf(f.Instance), event{apply: func(s *shard) error {
		l.done(size)
		return s.takeFacts(p, f, facts)
	}, after: n.logRefusal(p)})
	if !posted {
		l.done(size)
	}
}

func (n *Node) logRefusal(p workflow.PartnerID) func(error) {
	return func(err error) {
		if err != nil {
			n.refuse("facts-not-taken", p)
			n.log.Warn("message not taken", "from", p, "error", err)
		}
	}
}

func (n *Node) count(name string, by uint64) {
	n.mu.Lock()
	c := n.counters[name]
	if c == nil {
		c = &atomic.Uint64{}
		n.counters[name] = c
	}
	n.mu.Unlock()
	c.Add(by)
}

// spread is a chance part of d, which keeps nodes from acting at one moment.
func (n *Node) spread(d time.Duration) time.Duration {
	return time.Duration(n.chance() * float64(d))
}
