package node

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/clocks"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/elections"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/joining"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/profile"
	"github.com/mutirao-mesh/mutirao/node/roster"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Node is one partner's node.
type Node struct {
	*contacts
	*crew
	parts Parts

	// What partners talk about (topics).
	roster       *roster.Topic
	evictions    *evictions.Topic
	certificates *certificates.Topic
	elections    *elections.Topic
	clocks       *clocks.Topic
	overview     *overview.Topic
	retention    *retention
	library      *library.Topic
	instances    *instances
	data         *datasets.Topic
	desk         *desk
	joining      *joining.Topic
	users        *users.Topic
	worklists    *worklists.Desk
	departure    *departure
	doctor       *doctor

	// What several of these share.
	life        *life
	losses      *losses
	own         *profile.Own
	people      *people
	partners    *partners
	definitions *library.Definitions
	index       *index

	started time.Time
	begun   chan struct{} // closed by Begin: there is a carrier
}

// New loads a node from its store. It talks to nobody before Begin.
func New(p Parts) (*Node, error) {
	n := &Node{parts: p, begun: make(chan struct{}), crew: newCrew(), index: newIndex()}
	t := newTools(p)
	turn := int(t.chance() * math.MaxUint16)
	n.started = t.clock.Now().Wall
	n.contacts = newContacts(t, func(p workflow.PartnerID) bool { return n.people.Known(p) })
	n.losses = &losses{tools: t, vouching: p.Vouching}
	if err := errors.Join(n.losses.recall(), mayComeBack(t.store)); err != nil {
		return nil, err
	}
	reborn := n.losses.assess(p.Ran)
	unread, err := n.losses.sift()
	if err != nil {
		return nil, err
	}
	if err := n.load(t, turn, reborn || unread); err != nil {
		return nil, err
	}
	return n, n.instances.loadInstances(reborn || unread)
}

// load puts together what a node is made of, in the order in which one thing needs
// another. Where two need each other, the first is given a function.
func (n *Node) load(t *tools, turn int, reborn bool) (err error) {
	n.life = &life{tools: t}
	var note *kv.Write
	if reborn {
		w := n.losses.rebornWrite()
		note = &w
	}
	if err := n.life.begin(note); err != nil {
		return err
	}
	var (
		c      = n.contacts
		ledger = newLedger(t.member.ID(), t.clock)
		learnt = newLearned(t.config)
		spread = func() error { return n.roster.Announce() }
	)
	evicted, err := evictions.Load(t.member.Mesh, t.store, t.member.welcome.Evictions)
	if err != nil {
		return err
	}
	own := trust.Issuer{Mesh: t.member.Mesh, Key: t.member.Key, Chain: t.member.Chain}
	wallet, err := certificates.Load(own, t.store, t.clock, evicted)
	if err != nil {
		return err
	}
	changed := func(e membership.Event, p membership.Partner) { n.roster.Changed(e, p) }
	list, err := roster.Load(roster.Whose{
		Self: t.member.ID(), Mesh: t.member.Mesh, Store: t.store, Clock: t.clock, Evicted: evicted,
		Load: ledger.load, Changed: changed,
	}, t.member.welcome.Records)
	if err != nil {
		return err
	}
	userSet, err := users.Load(t.member.Mesh, t.store, evicted)
	if err != nil {
		return err
	}
	n.people = &people{
		List: list, self: t.member.ID(), mesh: t.member.Mesh, evicted: evicted, wallet: wallet,
		userNamed: func(name string) string { return userSet.Namesake(name, t.clock.Now().Wall) },
	}
	sets, err := datasets.Load(t.store, t.clock)
	if err != nil {
		return err
	}
	self := profile.Surroundings{
		Self: t.member.ID(), Key: t.member.Key, Config: t.config, Store: t.store,
		Chain: wallet.Chain, Offer: sets.Offer, List: list.Publish,
	}
	if n.own, err = profile.Load(self, n.life.incarnation(), n.life.bootCount()); err != nil {
		return err
	}
	unknown := func(err error) { n.losses.lost("a definition; partners tell it again (%v)", err) }
	listed := t.config.Limits.Workflows
	n.definitions, err = library.Load(t.store, library.Room{All: listed, One: shareOf(listed), Shares: memberShare}, wallet, unknown)
	if err = errors.Join(err, learnt.load(t.store)); err != nil {
		return err
	}
	n.library = library.New(n.definitions, library.Surroundings{
		Clock: t.clock, Log: t.log, Peers: peers{c}, Members: members{n.people}, Publish: t.events.publish,
		Refused: func(ctx context.Context, h workflow.Hash) ([]string, error) { return n.desk.refusedStart(ctx, h) },
	})
	book := closings.New(closings.Whose{
		Self: t.member.ID(), Key: t.member.Key, Store: t.store, Clock: t.clock, Limit: t.config.Limits.Ended,
	})
	n.retention = newRetention(c, n.crew, n.index, n.people, n.definitions, book)
	n.joining, err = joining.New(joining.Surroundings{
		Store: t.store, Clock: t.clock, Peers: peers{c}, Members: members{n.people}, Certificates: wallet, Evictions: evicted,
		Random: random, Lifetime: Lifetime, Best: bestAddress,
	})
	if err != nil {
		return err
	}
	n.certificates = certificates.New(wallet, certificates.Surroundings{
		Peers: peers{c}, Members: members{n.people}, Log: t.log, Random: t.random, Trouble: t.troubles.set,
		Renewed: func() error { n.joining.Certified(); return spread() },
	})
	n.evictions = evictions.New(evicted, evictions.Surroundings{
		Self: t.member.ID(), Mesh: t.member.Mesh, Peers: peers{c}, Members: members{n.people},
		Certificates: n.certificates, Clock: t.clock, Log: t.log,
		Issued: userSet.IssuedBy, Chance: t.chance, Nudge: t.nudge, Aside: func(fn func()) { n.crew.side(fn) },
	})
	n.roster = roster.New(list, turn, roster.Surroundings{
		Self: t.member.ID(), Clock: t.clock, Log: t.log, Peers: peers{c}, Gossip: direct{c}, Own: n.own,
		Work: workload{ledger}, Mobile: t.config.Preset == configs.Mobile, Chance: t.chance, Publish: t.events.publish,
		Standing: n.certificates.CheckStanding, Compare: n.retention.Greet,
		Leaving:  func() bool { return n.departure.leaving.Load() },
		Concerns: func(p workflow.PartnerID) { n.instances.reconsider(p) },
		Outrun:   func(v membership.Version) { n.instances.restoration.outrun(v) },
	})
	n.elections, err = elections.New(elections.Surroundings{
		Self: t.member.ID(), Mesh: t.member.Mesh, Key: t.member.Key, Candidate: t.config.Candidate,
		Store: t.store, Clock: t.clock, Log: t.log, Random: t.random, Publish: t.events.publish, Nudge: t.nudge,
		Peers: peers{c}, Members: members{n.people}, Driver: driving{n.crew}, Incarnation: n.life.incarnation,
		ConnectionTime: n.own.ConnectionTime, MayAdminister: wallet.MayAdminister, Troubled: t.troubled,
	})
	if err != nil {
		return err
	}
	n.partners = &partners{
		people: n.people, offices: n.elections, ledger: ledger, learned: learnt, tellStart: n.roster.TellStart,
		users: userSet, clock: t.clock,
	}
	n.departure = &departure{
		contacts: c, crew: n.crew, people: n.people, wallet: wallet, own: n.own, partners: n.partners, elections: n.elections,
		announce: spread, hasLeft: make(chan struct{}),
	}
	n.clocks = clocks.New(clocks.Surroundings{Clock: t.clock, Label: n.people.label, Chain: wallet.Chain})
	n.overview = overview.New(overview.Surroundings{
		Self: t.member.ID(), Clock: t.clock, Offices: n.elections, Members: members{n.people}, Limit: t.config.Limits.Instances,
		Here:    func(id workflow.InstanceID) bool { _, here := n.index.get(id); return here },
		Another: func() { n.instances.touchAll() },
		Count:   t.count, Trouble: t.troubles.set, Publish: t.events.publish,
	})
	n.data = datasets.New(sets, datasets.Surroundings{
		Self: t.member.ID(), Mesh: t.member.Mesh, Clock: t.clock, Log: t.log, Members: members{n.people}, Partner: peers{c},
		Author: n.definitions.AuthorOf, Check: n.own.Check, Announce: spread, Pause: n.own.LoadPause, Nudge: t.nudge,
	})
	back := &restoration{
		tools: t, crew: n.crew, life: n.life, losses: n.losses, own: n.own, people: n.people, elections: n.elections,
		announce: spread,
	}
	n.instances = &instances{
		contacts: c, crew: n.crew, view: &view{contacts: c, people: n.people, partners: n.partners}, runner: n.parts.Runner,
		life: n.life, losses: n.losses, restoration: back, people: n.people, wallet: wallet, own: n.own,
		partners: n.partners, ledger: ledger,
		learned: learnt, definitions: n.definitions, library: n.library, data: n.data, index: n.index, usage: newUsage(),
		lineup: newLineup(), retention: n.retention, chief: n.overview.Chief,
		credentials: credentials{mesh: t.member.Mesh}, bootID: t.clock.BootID(),
	}
	n.desk = &desk{instances: n.instances, overview: n.overview, elections: n.elections}
	n.users, err = users.New(userSet, users.Surroundings{
		Self: t.member.ID(), Mesh: t.member.Mesh, Clock: t.clock, Log: t.log, Peers: peers{c}, Members: members{n.people},
		Certificates: wallet, Keys: cmp.Or[users.Keys](n.parts.Keys, noKeys{}), Random: t.random, Lifetime: Lifetime,
		Nudge: t.nudge, Publish: func(e api.Event) { t.events.publish(e); n.instances.peopleChanged() }, Work: n.desk.peoplesWork,
	})
	if err != nil {
		return err
	}
	items := peoplesItems{n.desk}
	n.worklists = worklists.New(worklists.Surroundings{
		Self: t.member.ID(), Clock: t.clock, Log: t.log, Peers: peers{c}, People: speakers{n.users, n.partners},
		Instances: items, Random: t.random, Name: n.people.name, Explain: n.explain, Known: items.known,
	})
	n.doctor = &doctor{
		contacts: c, parts: n.parts, losses: n.losses, people: n.people, wallet: wallet, own: n.own,
		evictions: n.evictions, elections: n.elections,
		clocks: n.clocks, users: n.users, retention: n.retention, index: n.index,
	}
	_ = n.certificates.CheckStanding() // noted
	for i := range max(t.config.Shards, 1) {
		n.crew.shards = append(n.crew.shards, newShard(n.instances, i))
	}
	if err := book.Load(); err != nil {
		return err
	}
	n.index.gone(book.Digests())
	return nil
}

// Hello is what this node shows a peer first: its certificate chain.
func (n *Node) Hello() []byte { return trust.EncodeChain(n.certificates.Chain()) }

// Evicted reports whether a key is kept out whatever certificate it shows.
func (n *Node) Evicted(p workflow.PartnerID) bool { return n.evictions.KeyEvicted(p) }

// Begin has the node talk: it announces itself, follows its partners and goes on with
// its instances. Run must follow.
func (n *Node) Begin(to Network) error {
	n.talkBy(to)
	for _, s := range n.shards {
		n.crew.running.Go(func() { s.run(n.stopped) })
	}
	return n.begin()
}

// talkBy takes what the node is given to talk by.
func (n *Node) talkBy(to Network) {
	n.carrier, n.requester = to.Carrier, to.Requester
	if to.Gossip != nil {
		n.roster.Spread(to.Gossip)
	}
}

func (n *Node) begin() error {
	close(n.begun)
	c := n.carrier
	c.HandleRequest(joining.ProtocolHello, true, n.joining.Offer)
	c.HandleRequest(joining.ProtocolProof, true, n.joining.Redeem)
	c.HandleRequest(joining.ProtocolPass, true, n.joining.Pass)
	c.HandleRequest(joining.ProtocolPassed, false, n.joining.Passed)
	c.HandleRequest(evictions.Protocol, true, n.evictions.Tell)
	c.HandleRequest(datasets.Protocol, false, n.data.Give)
	c.HandleRequest(users.ProtocolSignIn, false, n.users.Redeem)
	c.HandleRequest(users.ProtocolPass, false, n.users.Pass)
	c.HandleRequest(protocolLook, false, n.desk.tellLook)
	c.HandleRequest(worklists.ProtocolItems, false, n.worklists.AnswerItems)
	c.HandleRequest(worklists.ProtocolClaim, false, n.worklists.AnswerClaim)
	n.evictions.Alone()
	if err := n.roster.Announce(); err != nil {
		return err
	}
	for _, p := range n.people.All() {
		if p.State == membership.Left {
			p.State = membership.Unreachable // it may be back, and think the same of us
		}
		n.roster.Follow(p)
	}
	return nil
}

// Run keeps the node going until ctx ends, and goes down in good order.
func (n *Node) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			if n.departure.left() == membership.Staying {
				n.departure.depart(membership.GoesDown)
			}
			n.stop()
			return nil
		case <-n.departure.hasLeft:
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
	n.crew.running.Wait()
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

// OnAddrs is called by the carrier when this node's addresses changed.
func (n *Node) OnAddrs(addrs []string) {
	if n.talks() {
		n.roster.Moved(addrs)
	}
}

// OnNews is called by gossip with what a partner published.
func (n *Node) OnNews(author workflow.PartnerID, news []byte) {
	if n.talks() {
		n.roster.Heard(author, news)
	}
}

// OnVerdict is called by gossip when partners agree that p is silent, or not any more.
func (n *Node) OnVerdict(p workflow.PartnerID, reachable bool) {
	if n.talks() {
		n.roster.Agreed(p, reachable)
	}
}

// Admit judges what a peer showed.
func (n *Node) Admit(p workflow.PartnerID, hello []byte, _ uint64) error {
	return n.certificates.Admit(p, hello)
}
