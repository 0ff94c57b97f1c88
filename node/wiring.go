package node

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/addresses"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/clocks"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/elections"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/jobs"
	"github.com/mutirao-mesh/mutirao/node/joining"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/lineup"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/profile"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/roster"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// New loads a node from its store. It talks to nobody before Begin.
func New(p Parts) (*Node, error) {
	n := &Node{begun: make(chan struct{}), crew: newCrew()}
	t := newTools(p)
	turn := int(t.chance() * math.MaxUint16)
	s := &stock{
		parts: p, started: t.clock.Now().Wall, index: index.New(), losses: &losses{tools: t, vouching: p.Vouching},
		ledger: assignment.NewLedger(t.member.ID(), t.clock), learned: assignment.NewLearned(!t.config.Learning, t.store),
	}
	n.contacts = newContacts(t, func(p workflow.PartnerID) bool { return n.people.Known(p) })
	if err := errors.Join(s.losses.recall(), mayComeBack(t.store)); err != nil {
		return nil, err
	}
	reborn := s.losses.assess(p.Ran)
	unread, err := s.losses.sift()
	if err != nil {
		return nil, err
	}
	if err := n.load(t, s, turn, reborn || unread); err != nil {
		return nil, err
	}
	return n, n.instances.loadInstances(reborn || unread)
}

// This file puts together what a node is made of, in the order in which one thing needs
// another: what is read from the store, who belongs to the mesh, the instances, and people's
// work. Where two need each other, the first is given a function.

// load puts a node together.
func (n *Node) load(t *tools, s *stock, turn int, reborn bool) error {
	n.life = &life{tools: t}
	var note *kv.Write
	if reborn {
		w := s.losses.rebornWrite()
		note = &w
	}
	if err := n.life.begin(note); err != nil {
		return err
	}
	if err := n.read(t, s); err != nil {
		return err
	}
	if err := n.wireMembers(t, s, turn); err != nil {
		return err
	}
	n.wireInstances(t, s)
	if err := n.wirePeoplesWork(t, s); err != nil {
		return err
	}
	n.service = n.newService(t, s)
	_ = n.certificates.CheckStanding() // noted
	for i := range max(t.config.Shards, 1) {
		n.crew.shards = append(n.crew.shards, newShard(n.instances, i))
	}
	s.index.Gone(s.book.Digests())
	return nil
}

// announce tells partners of this node's record.
func (n *Node) announce() error { return n.roster.Announce() }

// read reads what the parts of a node begin with.
func (n *Node) read(t *tools, s *stock) (err error) {
	if s.evicted, err = evictions.Load(t.member.Mesh, t.store, t.member.welcome.Evictions); err != nil {
		return err
	}
	own := trust.Issuer{Mesh: t.member.Mesh, Key: t.member.Key, Chain: t.member.Chain}
	if s.wallet, err = certificates.Load(own, t.store, t.clock, s.evicted); err != nil {
		return err
	}
	changed := func(e membership.Event, p membership.Partner) { n.roster.Changed(e, p) }
	if s.list, err = roster.Load(roster.Whose{
		Self: t.member.ID(), Mesh: t.member.Mesh, Store: t.store, Clock: t.clock, Evicted: s.evicted,
		Load: s.ledger.Load, Changed: changed,
	}, t.member.welcome.Records); err != nil {
		return err
	}
	if s.users, err = users.Load(t.member.Mesh, t.store, s.evicted); err != nil {
		return err
	}
	if s.sets, err = datasets.Load(t.store, t.clock); err != nil {
		return err
	}
	self := profile.Surroundings{
		Self: t.member.ID(), Key: t.member.Key, Config: t.config, Store: t.store,
		Chain: s.wallet.Chain, Offer: s.sets.Offer, List: s.list.Publish,
	}
	if s.own, err = profile.Load(self, n.life.incarnation(), n.life.bootCount()); err != nil {
		return err
	}
	unknown := func(err error) { s.losses.lost("a definition; partners tell it again (%v)", err) }
	listed := t.config.Limits.Workflows
	s.definitions, err = library.Load(t.store, library.Room{All: listed, One: quota.Share(listed), Shares: quota.Members},
		s.wallet, unknown)
	if err = errors.Join(err, s.learned.Load()); err != nil {
		return err
	}
	s.book = closings.New(closings.Whose{
		Self: t.member.ID(), Key: t.member.Key, Store: t.store, Clock: t.clock, Limit: t.config.Limits.Ended,
	})
	return s.book.Load()
}

// wireMembers makes what is about the mesh: who belongs to it, who is here, and who coordinates.
func (n *Node) wireMembers(t *tools, s *stock, turn int) (err error) {
	n.people = &people{
		List: s.list, self: t.member.ID(), mesh: t.member.Mesh, evicted: s.evicted, wallet: s.wallet,
		userNamed: func(name string) string { return s.users.Namesake(name, t.clock.Now().Wall) },
	}
	n.retention = newRetention(n.contacts, n.crew, s.index, n.people, s.definitions, s.book)
	n.joining, err = joining.New(joining.Surroundings{
		Store: t.store, Clock: t.clock, Peers: peers{n.contacts}, Members: members{n.people}, Certificates: s.wallet,
		Evictions: s.evicted,
		Random:    random, Lifetime: Lifetime, Best: addresses.Best,
	})
	if err != nil {
		return err
	}
	n.certificates = certificates.New(s.wallet, certificates.Surroundings{
		Peers: peers{n.contacts}, Members: members{n.people}, Log: t.log, Random: t.random, Trouble: t.troubles.note,
		Renewed: func() error { n.joining.Certified(); return n.announce() },
	})
	n.evictions = evictions.New(s.evicted, evictions.Surroundings{
		Self: t.member.ID(), Mesh: t.member.Mesh, Peers: peers{n.contacts}, Members: members{n.people},
		Certificates: n.certificates, Clock: t.clock, Log: t.log,
		Issued: s.users.IssuedBy, Unseen: n.joining.Unseen, Chance: t.chance, Nudge: t.nudge,
		Aside: func(fn func()) { n.crew.side(fn) },
	})
	n.roster = roster.New(s.list, turn, roster.Surroundings{
		Self: t.member.ID(), Clock: t.clock, Log: t.log, Peers: peers{n.contacts}, Gossip: direct{n.contacts},
		Own:  s.own,
		Work: s.ledger, Mobile: t.config.Preset == configs.Mobile, Chance: t.chance,
		Publish: t.events.publish, Nudge: t.nudge,
		Standing: n.certificates.CheckStanding, Compare: n.retention.Greet,
		Leaving: func() bool { return n.departure.leaving.Load() || n.absence.goes() },
		Away:    func() bool { _, away := n.absence.away(); return away },
		Concerns: func(p workflow.PartnerID) {
			s.partners.See(p, n.people.Reachable(p))
			if n.people.Gone(p) {
				s.ledger.People().Forget(p)
			}
			n.instances.reconsider(p)
			if n.people.GoneForGood(p) {
				n.instances.nested.gone(p)
			}
		},
		Outrun: func(v membership.Version) { n.instances.restoration.outrun(v) },
	})
	n.elections, err = elections.New(elections.Surroundings{
		Self: t.member.ID(), Mesh: t.member.Mesh, Key: t.member.Key, Candidate: t.config.Candidate,
		Store: t.store, Clock: t.clock, Log: t.log, Random: t.random, Publish: t.events.publish, Nudge: t.nudge,
		Peers: peers{n.contacts}, Members: members{n.people}, Driver: driving{n.crew}, Incarnation: n.life.incarnation,
		ConnectionTime: s.own.ConnectionTime, MayAdminister: s.wallet.MayAdminister, Troubled: t.troubled,
	})
	if err != nil {
		return err
	}
	s.partners = assignment.New(n.people, assignment.Surroundings{
		Self: t.member.ID(), Offices: n.elections, Ledger: s.ledger, Learned: s.learned, Users: s.users, Clock: t.clock,
		ClockWrong: func() bool { return n.clocks.Wrong() },
		Told:       func(since time.Duration) time.Duration { return n.departure.tellStart(since) },
	})
	n.departure = &departure{
		contacts: n.contacts, crew: n.crew, people: n.people, wallet: s.wallet, own: s.own, partners: s.partners,
		elections: n.elections,
		announce:  n.announce, inAWhile: n.roster.TellStart, hasLeft: make(chan struct{}),
	}
	n.clocks = clocks.New(clocks.Surroundings{
		Clock: t.clock, Peers: peers{n.contacts}, Gone: n.people.Evicted, Label: n.people.label, Chain: s.wallet.Chain,
	})
	return nil
}

// wireInstances makes what is about workflows: their definitions, data and instances.
func (n *Node) wireInstances(t *tools, s *stock) {
	n.library = library.New(s.definitions, library.Surroundings{
		Clock: t.clock, Log: t.log, Peers: peers{n.contacts}, Members: members{n.people}, Publish: t.events.publish,
		Refused: func(ctx context.Context, h workflow.Hash) (why, notes []string, err error) {
			return n.desk.refusedStart(ctx, h)
		},
	})
	n.overview = overview.New(overview.Surroundings{
		Self: t.member.ID(), Clock: t.clock, Offices: n.elections, Members: members{n.people},
		Limit:   t.config.Limits.Instances,
		Here:    func(id workflow.InstanceID) bool { _, here := s.index.Get(id); return here },
		Labels:  s.definitions.Labels,
		Another: func() { n.instances.touchAll() },
		Count:   t.count, Trouble: t.troubles.set, Publish: t.events.publish,
	})
	n.data = datasets.New(s.sets, datasets.Surroundings{
		Self: t.member.ID(), Mesh: t.member.Mesh, Clock: t.clock, Log: t.log, Members: members{n.people},
		Partner: peers{n.contacts},
		Author:  s.definitions.AuthorOf, Check: s.own.Check, Announce: n.announce, Pause: s.own.LoadPause,
		Nudge: t.nudge,
	})
	back := &restoration{
		tools: t, crew: n.crew, life: n.life, losses: s.losses, own: s.own, people: n.people, elections: n.elections,
		announce: n.announce,
	}
	n.instances = &instances{
		contacts: n.contacts, crew: n.crew,
		runner: s.parts.Runner, instant: s.parts.Instant,
		life: n.life, losses: s.losses, restoration: back, people: n.people, wallet: s.wallet, own: s.own,
		partners: s.partners, ledger: s.ledger,
		learned: s.learned, definitions: s.definitions, library: n.library, roster: n.roster, data: n.data,
		index: s.index, usage: newUsage(),
		lineup: lineup.New(), retention: n.retention, chief: n.overview.Chief,
		credentials: credentials{mesh: t.member.Mesh}, bootID: t.clock.BootID(), faults: newFaults(s.parts.Loud),
	}
	n.instances.trust = &n.instances.credentials
	if s.parts.trust != nil {
		n.instances.trust = s.parts.trust(n.instances.trust)
	}
	n.desk = &desk{
		contacts: n.contacts, crew: n.crew, people: n.people, partners: s.partners,
		index: s.index, definitions: s.definitions, library: n.library, data: n.data, ledger: s.ledger,
		retention: n.retention, wallet: s.wallet, self: n.instances.self, overview: n.overview, elections: n.elections,
	}
	n.filing = n.newFiling(t, s)
	n.desk.filing = n.filing
	n.instances.filing = n.filing
	n.jobs = n.newJobs(t, s)
	n.instances.served = n.jobs.Served
	n.crew.recalled = n.jobs.Recalled
	n.instances.view = n.newView(t, s)
	n.desk.view = n.instances.view
	n.instances.runner = n.filing.First(&asksFirst{
		Runner: n.jobs.Workers(s.parts.Runner), databases: s.parts.Asker, asking: map[string]*question{},
	})
	n.instances.nested = &nested{desk: n.desk, filing: n.filing, busy: map[string]bool{}, awaited: map[attemptOf]awaitedFile{}}
	if s.parts.Files != nil {
		n.filing.Files = files.New(s.parts.Files, files.Surroundings{
			Clock: t.clock, Log: t.log, Partner: peers{n.contacts}, Instances: n.filing, Label: n.people.label,
			Gone: n.people.GoneForGood, Away: n.people.Gone,
			Again: n.filing.Again,
			Lost:  func(what string) { s.losses.lost("%s", what) }, Mentions: n.filing.Mentions,
			Want: n.filing.WantAgain,
		})
	}
}

// newFiling is what instances have to do with files.
func (n *Node) newFiling(t *tools, s *stock) *filing.Desk {
	return filing.New(filing.Surroundings{
		Self: t.member.ID(), Clock: t.clock, Log: t.log, Index: s.index, Instances: filed{n.desk}, People: n.people,
		Partners: s.partners, Data: n.data,
		Definition: func(h workflow.Hash) *workflow.Definition {
			if e, err := s.definitions.Get(h); err == nil {
				return e.Def
			}
			return nil
		},
		NoData: func(def *workflow.Definition, text string) error { return noData(api.NotFound, def, text) },
		Up:     n.contacts.up, Go: n.crew.running.Go, Stopped: n.stopped,
	})
}

// newView is how people see instances.
func (n *Node) newView(t *tools, s *stock) *show.View {
	return show.New(show.Surroundings{
		Self: t.member.ID(), Clock: t.clock, People: n.people, Partners: s.partners, Files: shownFiles{n.filing},
		Contact: n.contacts.shown, TellsWithin: antiEntropy + 2*firstPause, Ahead: n.clocks.AheadOf,
		Works: func(id workflow.InstanceID, a fact.AttemptID, w *api.JobWorker) bool {
			s, here := n.jobs.Look(jobKey(id, a))
			if here && s.Worker != nil && w != nil {
				jobs.Tells(w, s)
			}
			return here && s.Worker == nil
		},
		ChildsFile: func(id workflow.InstanceID, a fact.AttemptID) string {
			return n.instances.nested.waitsForFile(id, a)
		},
		Signed: users.Signed,
	})
}

// wirePeoplesWork makes what is about users and their tasks.
func (n *Node) wirePeoplesWork(t *tools, s *stock) (err error) {
	n.users, err = users.New(s.users, users.Surroundings{
		Self: t.member.ID(), Mesh: t.member.Mesh, Clock: t.clock, Log: t.log, Peers: peers{n.contacts},
		Members:      members{n.people},
		Certificates: s.wallet, Keys: cmp.Or[users.Keys](s.parts.Keys, noKeys{}), Random: t.random, Lifetime: Lifetime,
		Person: n.instances.credentials.person,
		Nudge:  t.nudge, Publish: func(e api.Event) {
			t.events.publish(e)
			s.partners.SeeUsers()
			n.instances.peopleChanged()
			n.worklists.PeopleChanged()
		},
		Work: n.desk.peoplesWork, Waits: func(user string) []string { return n.worklists.Waiting(user) },
	})
	if err != nil {
		return err
	}
	n.desk.persons = n.users
	n.instances.mayHaveBegun = n.users.MayBegin
	n.filing.MayAsk = n.users.MayAsk
	n.filing.Keeps = func(id workflow.InstanceID) bool { return n.worklists.Keeps(id) }
	n.filing.Gives = func(to workflow.PartnerID, id workflow.InstanceID, item workflow.DataName, f workflow.File) bool {
		return n.worklists.Gives(to, id, item, f)
	}
	n.filing.Vouched = func(ctx context.Context, reader workflow.PartnerID, user string, id workflow.InstanceID,
		item workflow.DataName, f workflow.File,
	) (bool, error) {
		return n.worklists.Vouched(ctx, reader, user, id, item, f)
	}
	items := peoplesItems{n.desk, n.filing}
	n.worklists, err = worklists.New(worklists.Surroundings{
		Self: t.member.ID(), Clock: t.clock, Log: t.log, Peers: peers{n.contacts},
		People:    speakers{n.users, s.partners},
		Instances: items, Loads: s.ledger.People(), Store: t.store, Nudge: t.nudge,
		Aside: func(fn func()) { n.crew.side(fn) },
		Waits: func() bool { return n.crew.waits() }, Random: t.random,
		Watched: t.events.watched, Publish: t.events.publish, Has: n.filing.Has, Lacks: n.filing.Lacks, NoRoom: n.filing.NoRoom,
		OnlyHere: n.filing.OnlyHere, Got: n.filing.Got, Rate: n.filing.Rate,
		Give: n.filing.GiveFor, HasGiven: n.filing.HasGiven, Vouch: n.filing.Vouch,
		Name: n.people.name, Partner: n.people.Find, Explain: n.explain, Known: items.known,
		Absent: n.instances.view.Absent, Gone: n.people.GoneForGood, Witness: n.overview.WitnessAt,
		Evicted: s.evicted.KeyEvicted, Heard: n.people.heard,
		Away:  func() (time.Time, bool) { return n.absence.away() },
		Until: func() *time.Time { return n.absence.until() },
		ConnectionTime: func(p workflow.PartnerID) time.Duration {
			return max(n.people.ConnectionTime(p), s.own.ConnectionTime())
		},
		Runs: s.own.Runs, MayLock: s.parts.mayLock,
	})
	if err != nil {
		return err
	}
	n.instances.followed = n.worklists.Changed
	n.absence, err = loadAbsence(&absence{
		contacts: n.contacts, crew: n.crew, departure: n.departure, announce: n.announce, worklists: n.worklists,
		filing:  n.filing,
		label:   n.people.label,
		refresh: s.list.Gap,
	})
	n.prefetcher = &prefetcher{
		contacts: n.contacts, crew: n.crew, worklists: n.worklists, filing: n.filing, absence: n.absence,
		running: make(chan struct{}, 1),
	}
	return err
}

// newService is what this node can be asked.
func (n *Node) newService(t *tools, s *stock) *service {
	work := worklistService{
		worklists: n.worklists, filing: n.filing, desk: n.desk, items: peoplesItems{desk: n.desk, filing: n.filing},
		explain: n.explain,
	}
	return &service{
		statusService{
			contacts: n.contacts, people: n.people, certificates: n.certificates, definitions: s.definitions,
			retention: n.retention, departure: n.departure, absence: n.absence, filing: n.filing, index: s.index,
			life: n.life, losses: s.losses, parts: s.parts, started: s.started,
		},
		meshService{
			joining: n.joining, evictions: n.evictions, elections: n.elections, departure: n.departure, worklists: n.worklists,
			absence: n.absence, doctor: n.newDoctor(s, &work), explain: n.explain,
		},
		profileService{
			tools: t, own: s.own, people: n.people, learned: s.learned, instances: n.instances, jobs: n.jobs,
			announce: n.announce, explain: n.explain,
		},
		libraryService{library: n.library, data: n.data, explain: n.explain},
		instanceService{desk: n.desk, worklists: n.worklists, filing: n.filing, explain: n.explain},
		userService{users: n.users, explain: n.explain},
		work,
		jobService{jobs: n.jobs, explain: n.explain},
	}
}

// speakers are the people of the mesh, for worklists.
type speakers struct {
	worklists.Persons
	partners *assignment.Partners
}

// Called is what people call a person.
func (s speakers) Called(u worklist.User) string { return s.partners.Called(u) }

// SomebodyHas reports whether somebody is known who has a role.
func (s speakers) SomebodyHas(r workflow.RoleName) bool { return s.partners.SomebodyHas(r) }

// newJobs are those that workers do at this node.
func (n *Node) newJobs(t *tools, s *stock) *jobs.Desk {
	return jobs.New(jobs.Surroundings{
		Self: t.member.ID(), Clock: t.clock, Log: t.log, Config: t.config.Applications, Profile: announced{n, s.own},
		Runs: s.parts.Runner.Has, Instances: leasing{n.instances}, Peers: peers{n.contacts},
		Members: members{n.people},
		Able: func(def *workflow.Definition) []partition.Partner {
			able, _ := s.partners.Candidates(def, partition.PlainRule, nil)
			return able
		},
		Random: t.random, Chance: t.chance, Watched: t.events.watched, Publish: t.events.publish,
		Stopped: n.stopped, Explain: func(err error) error { return Explain(err, n.people.label) },
	})
}
