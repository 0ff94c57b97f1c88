package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// mesh is a few nodes with one instance, in one goroutine: a driver for each
// machine that acts in the order of Effects, disks that keep what was persisted,
// and mail that is under way until somebody delivers it.
type mesh struct {
	t       testing.TB
	def     *workflow.Definition
	plan    *partition.Plan
	nodes   map[workflow.PartnerID]*node
	mail    []letter
	now     time.Duration
	annex   *fact.Annex                 // of the genesis
	limit   int                         // bytes of facts in a letter
	gone    map[workflow.PartnerID]bool // what the partner list says
	absent  map[workflow.PartnerID]bool // likewise
	office  *fact.Office
	evicted map[workflow.PartnerID]bool // likewise
	lacking map[workflow.PartnerID]bool // those that have no roles
	away    map[worklist.User]bool      // people who cannot be reached, and since when the others can
	came    map[worklist.User]time.Duration
	takers  map[workflow.TaskName]workflow.PartnerID // those that Choose finds; "" in it: nobody
	dice    dice                                     // has Choose find anybody living, or nobody
	// sent sees every letter with facts.
	sent   func(l letter, b *Bundle)
	paused map[workflow.PartnerID]bool    // dead: see die
	lies   bool                           // the test has nodes say what does not count
	people map[worklist.User]fact.Speaker // who may have people's work
	words  byte                           // that people said
	said   []*fact.Claim                  // likewise
	// room is what a node takes in of others (Machine.Limit); nil: all. noRoom counts
	// what was not taken in for that.
	room   func(n *node) Shares
	noRoom int
	// prompt are the nodes that do noop and set themselves (Self.Instant).
	prompt map[workflow.PartnerID]bool
}

// self is what a node's machines are made with.
func (w *mesh) self(n *node) Self {
	return Self{Partner: n.id, Incarnation: n.inc, Trust: testTrust{}, Instant: w.prompt[n.id]}
}

// node is one partner's device.
type node struct {
	id      workflow.PartnerID
	inc     fact.Incarnation
	m       *Machine
	disk    []Stored
	waits   waits.Stored
	jobs    map[fact.AttemptID]state.Job
	wake    time.Duration
	wrong   time.Duration // by so much its wall clock is ahead
	aheads  int           // how often a peer turned out to be ahead of us on our own chain
	stopped []fact.AttemptID
	made    []Made
	errs    []error // of Receive
}

// letter is a frame on its way.
type letter struct {
	from, to workflow.PartnerID
	facts    []Stored // their places are not sent
	heads    *headsLetter
	refused  workflow.PartnerID // there is no room for more of that author's facts
	takes    workflow.PartnerID // they are taken now
}

type headsLetter struct {
	inc   fact.Incarnation
	heads []fact.Head
	mode  byte
}

// The modes of heads, as in node/wire.
const (
	modeAck byte = iota
	modeAsk
	modeAnswer
)

func newMesh(t testing.TB, def *workflow.Definition) *mesh {
	return &mesh{
		t: t, def: def, plan: partition.New(def), nodes: map[workflow.PartnerID]*node{}, limit: fact.MaxFact,
		gone: map[workflow.PartnerID]bool{}, absent: map[workflow.PartnerID]bool{}, evicted: map[workflow.PartnerID]bool{},
		lacking: map[workflow.PartnerID]bool{}, takers: map[workflow.TaskName]workflow.PartnerID{},
		paused: map[workflow.PartnerID]bool{}, people: map[worklist.User]fact.Speaker{}, away: map[worklist.User]bool{},
		came: map[worklist.User]time.Duration{}, prompt: map[workflow.PartnerID]bool{},
	}
}

// parse reads a definition that the test wrote and that must be right.
func parse(t testing.TB, src string) *workflow.Definition {
	t.Helper()
	def, err := workflow.Parse("test.yaml", []byte(src))
	if err != nil {
		t.Fatalf("definition: %v\n%s", err, src)
	}
	return def
}

// node returns a partner's device, new on first mention.
func (w *mesh) node(id workflow.PartnerID) *node {
	n := w.nodes[id]
	if n == nil {
		n = &node{id: id, inc: fact.Incarnation{1}, jobs: map[fact.AttemptID]state.Job{}}
		w.nodes[id] = n
	}
	return n
}

// names are the partners, sorted.
func (w *mesh) names() []workflow.PartnerID { return slices.Sorted(maps.Keys(w.nodes)) }

func (w *mesh) moment() Moment {
	return Moment{Boot: w.now, Wall: w.momentAt(w.now)}
}

// momentOf is what the clocks of a node show.
func (w *mesh) momentOf(n *node) Moment {
	return Moment{Boot: w.now, Wall: w.momentAt(w.now).Add(n.wrong)}
}

// momentAt is what all clocks show once the story has gone on for that long.
func (w *mesh) momentAt(d time.Duration) time.Time {
	return time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).Add(d)
}

// Gone says what the partner list says (Partners).
func (w *mesh) Gone(p workflow.PartnerID) bool { return w.gone[p] }

// Absent says what the partner list says (Partners).
func (w *mesh) Absent(p workflow.PartnerID) bool { return w.absent[p] }

// Evicted says what the partner list says (Partners).
func (w *mesh) Evicted(p workflow.PartnerID) bool { return w.evicted[p] }

// ConnectionTime is that of all partners (Partners).
func (w *mesh) ConnectionTime(workflow.PartnerID) time.Duration { return 15 * time.Minute }

// HasRole says what the test said (Partners).
func (w *mesh) HasRole(p workflow.PartnerID, _ workflow.RoleName) bool { return !w.lacking[p] }

// Coordinator is nobody: these tests are about choreography.
func (w *mesh) Coordinator() workflow.PartnerID { return "" }

// Reachable implements Partners.
func (w *mesh) Reachable(workflow.PartnerID) bool { return true }

// Office is what the test gave to the node that decides (Partners).
func (w *mesh) Office() *fact.Office { return w.office }

// TellStart is a second later (Partners).
func (w *mesh) TellStart(since time.Duration) time.Duration { return since + time.Second }

// Choose finds a partner that takes tasks (Partners): the one that the test named,
// else of a person's task mostly its holder, else the first living partner other
// than not, else not.
func (w *mesh) Choose(x Work) (partition.Choice, error) {
	if x.Only != "" {
		if w.nodes[x.Only] == nil || w.gone[x.Only] {
			return partition.Choice{}, errors.New("it is not here")
		}
		return partition.Choice{Partner: x.Only}, nil
	}
	p, ok := w.choose(x.Tasks, x.Not)
	if _, named := w.takers[x.Tasks[0]]; x.Holder != "" && !named && (w.dice == nil || w.dice.chance(60)) {
		p, ok = x.Holder, true
	}
	if !ok || slices.Contains(x.Rejected, p) {
		return partition.Choice{}, errors.New("nobody can take it")
	}
	return partition.Choice{Partner: p}, nil
}

// Entitled weighs those whom the test let in, who are all as idle (Partners).
func (w *mesh) Entitled(x Work, waiting partition.Waiting) (
	here []worklist.User, sight partition.Sight, err error,
) {
	s := partition.Situation{
		Mechanism: x.Mechanism, Data: x.Data, Performers: map[workflow.TaskName]string{}, Rejected: x.Rejected,
	}
	for t, u := range x.Performers {
		s.Performers[t] = string(u)
	}
	for _, p := range w.People(w.def.Task(x.Tasks[0]).Role) {
		if p.Active {
			here = append(here, p.User)
			s.Partners = append(s.Partners, partition.Partner{
				ID: workflow.PartnerID(p.User), Name: string(p.User), Roles: p.Roles, Reachable: true, Rested: 1,
			})
		}
	}
	sight, err = partition.Entitled(x.Plan, s, x.Tasks[0], waiting)
	return here, sight, err
}

func (w *mesh) choose(tasks []workflow.TaskName, not workflow.PartnerID) (workflow.PartnerID, bool) {
	if p, ok := w.takers[tasks[0]]; ok {
		return p, p != ""
	}
	if w.dice != nil {
		living := slices.DeleteFunc(w.names(), func(p workflow.PartnerID) bool { return w.gone[p] })
		i := w.dice(len(living) + 1)
		if i == len(living) {
			return "", false
		}
		return living[i], true
	}
	for _, p := range append(slices.DeleteFunc(w.names(), func(p workflow.PartnerID) bool { return p == not }), not) {
		if w.nodes[p] != nil && !w.gone[p] && !w.absent[p] {
			return p, true
		}
	}
	return "", false
}

// genesis is an instance of the mesh's definition.
func (w *mesh) genesis(at map[workflow.PartitionName]workflow.PartnerID,
	succession ...workflow.PartnerID) *fact.Genesis {
	g := &fact.Genesis{Definition: w.def.Hash(), Succession: succession, Coordination: workflow.Choreography}
	for _, p := range w.plan.Partitions() {
		g.Assign = append(g.Assign, fact.Placement{Partition: p.Name, Partner: at[p.Name]})
	}
	return g
}

// start creates the instance at a partner.
func (w *mesh) start(at workflow.PartnerID, g *fact.Genesis) error {
	n := w.node(at)
	self := w.self(n)
	self.Credentials = w.Credentials()
	m, err := Create(self, w.def, w.plan, g, w.annex, w.moment())
	if err != nil {
		return err
	}
	n.m = m
	for _, p := range g.Succession {
		w.node(p)
	}
	w.step(n)
	return nil
}

// step is a driver's round: decide, persist, tell, stop, start.
func (w *mesh) step(n *node) {
	if n.m == nil || w.paused[n.id] {
		return
	}
	r := n.m.Decide(w.momentOf(n), w)
	for _, s := range r.Persist {
		e := n.m.log.Order()[s.Place]
		if e.Fact.Chain == n.m.chain && !e.Counted && n.m.log.Forked() == 0 && !w.lies {
			w.t.Errorf("%s wrote a %s that does not count: %v", n.id, e.Fact.Body.Kind(), n.m.state.Refused())
		}
	}
	n.persist(w.t, r)
	n.made = append(n.made, r.Made...)
	for _, p := range r.Tell {
		w.send(n, p)
	}
	for _, p := range r.Ask {
		w.tellHeads(n, p, modeAsk)
	}
	for _, id := range r.Stop {
		delete(n.jobs, id)
		n.stopped = append(n.stopped, id)
	}
	for _, j := range r.Start {
		if _, runs := n.jobs[j.Attempt]; runs {
			w.t.Errorf("%s starts %s while it runs already", n.id, j.Attempt)
		}
		n.jobs[j.Attempt] = j
	}
	n.wake = r.Wake
}

// persist appends to the disk: places must follow each other.
func (n *node) persist(t testing.TB, r Effects) {
	for _, s := range r.Persist {
		if s.Place != len(n.disk) {
			t.Errorf("%s persists place %d of %d", n.id, s.Place, len(n.disk))
		}
		n.disk = append(n.disk, s)
	}
	if r.Waits != nil {
		n.waits = *r.Waits
	}
}

// send sends a peer what it lacks.
func (w *mesh) send(n *node, p workflow.PartnerID) {
	for {
		b := n.m.Outgoing(p, w.limit, w.moment())
		if b == nil {
			return
		}
		l := letter{from: n.id, to: p}
		for _, o := range b.Facts {
			if o.Mine {
				o.Attest(&fact.Attestation{Sig: make([]byte, 64)})
			}
			l.facts = append(l.facts, Stored{Raw: o.Raw(), Att: o.Attestation()})
		}
		if w.sent != nil {
			w.sent(l, b)
		}
		w.mail = append(w.mail, l)
		if !b.More {
			return
		}
	}
}

func (w *mesh) tellHeads(n *node, to workflow.PartnerID, mode byte) {
	h := &headsLetter{inc: n.inc, mode: mode}
	if n.m != nil && n.m.Involved(to) {
		h.heads = n.m.Heads()
	}
	w.mail = append(w.mail, letter{from: n.id, to: to, heads: h})
}

// deliver hands a letter over; to the dead it is lost.
func (w *mesh) deliver(l letter) {
	n := w.node(l.to)
	if w.paused[l.to] {
		return
	}
	switch {
	case l.heads != nil:
		w.takeHeads(n, l.from, l.heads)
	case l.refused != "":
		n.m.Refused(l.from, l.refused, w.moment())
		w.step(n)
	case l.takes != "":
		if n.m.Taken(l.from, l.takes) {
			n.m.Forget(l.from)
			w.send(n, l.from)
		}
	default:
		w.takeFacts(n, l)
	}
}

func (w *mesh) takeHeads(n *node, from workflow.PartnerID, h *headsLetter) {
	if n.m == nil {
		if h.mode == modeAsk {
			w.tellHeads(n, from, modeAnswer)
		}
		return
	}
	if !n.m.Hears(from, h.heads) {
		if h.mode == modeAsk {
			w.tellHeads(n, from, modeAnswer)
		}
		return
	}
	if n.m.AheadOfUs(h.heads) {
		n.aheads++
	}
	if h.mode == modeAck {
		n.m.Acknowledge(from, h.inc, h.heads)
	} else {
		n.m.Restate(from, h.inc, h.heads)
	}
	n.m.Heard(w.moment())
	if h.mode == modeAsk {
		w.tellHeads(n, from, modeAnswer)
	}
	if h.mode != modeAck && n.m.Behind(from) {
		n.m.Forget(from)
		w.send(n, from)
	}
	w.step(n)
}

func (w *mesh) takeFacts(n *node, l letter) {
	facts := w.decode(l.facts)
	if n.m == nil && !w.adopt(n, facts) {
		if len(facts) == 0 || facts[0].Fact.Body.Genesis == nil {
			w.tellHeads(n, l.from, modeAsk)
		}
		return
	}
	if !n.m.Involved(l.from) && !n.m.BringsIn(l.from, facts) {
		n.errs = append(n.errs, fmt.Errorf("%s tells of it, who takes no part as far as this shows", l.from))
		return
	}
	w.limitRoom(n)
	_, err := n.m.Receive(l.from, facts)
	n.m.Heard(w.moment())
	if err != nil {
		n.errs = append(n.errs, err)
	}
	w.step(n)
	w.refuse(n, l.from)
	if errors.Is(err, log.ErrMissingPast) {
		w.tellHeads(n, l.from, modeAsk)
	}
	w.tellHeads(n, l.from, modeAck)
}

// limitRoom sets what a node takes in of others.
func (w *mesh) limitRoom(n *node) {
	if w.room != nil {
		n.m.Limit(w.room(n))
	}
}

// refuse tells the sender of facts of whom a node has no room for more, and of whom it has.
func (w *mesh) refuse(n *node, to workflow.PartnerID) {
	if w.room == nil {
		return // the test asks what was declined itself
	}
	for _, d := range n.m.Declined() {
		if d.NoRoom() {
			w.noRoom += d.Facts
			w.mail = append(w.mail, letter{from: n.id, to: to, refused: d.Author})
		}
	}
	w.takeAgain(n)
}

// takeAgain tells those whose facts a node refused of which it has room now.
func (w *mesh) takeAgain(n *node) {
	for _, t := range n.m.Takes() {
		w.mail = append(w.mail, letter{from: n.id, to: t.From, takes: t.Author})
	}
}

func (w *mesh) decode(stored []Stored) []fact.Received {
	facts := make([]fact.Received, len(stored))
	for i, s := range stored {
		f, id, err := fact.Decode(s.Raw)
		if err != nil {
			w.t.Fatalf("a node sent or stored a fact that does not decode: %v", err)
		}
		facts[i] = fact.Received{Fact: f, ID: id, Raw: s.Raw, Att: s.Att}
	}
	return facts
}

// adopt opens an instance that is new to a node, if it takes part.
func (w *mesh) adopt(n *node, facts []fact.Received) bool {
	if len(facts) == 0 || facts[0].Fact.Body.Genesis == nil {
		return false
	}
	m, err := Open(w.self(n), w.def, w.plan, facts[0])
	if err != nil {
		w.t.Fatalf("%s cannot open the instance: %v", n.id, err)
	}
	if !m.Participates(n.id) && !m.BringsIn(n.id, facts) {
		n.errs = append(n.errs, errors.New("it is sent an instance in which it sees no part of its own"))
		return false
	}
	m.Adopt()
	n.m = m
	return true
}

// crash loses what is not persisted, and what is under way from the node, and
// loads the node again.
func (w *mesh) crash(n *node) {
	w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.from == n.id })
	w.reload(n)
}

// die ends a node, and nobody is told: for the others it lives and says nothing.
func (w *mesh) die(n *node) {
	w.paused[n.id] = true
	w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.from == n.id || l.to == n.id })
	n.m, n.jobs, n.wake = nil, map[fact.AttemptID]state.Job{}, 0
}

// reload makes the machine again from the disk, as a node does when it starts.
func (w *mesh) reload(n *node) {
	n.m, n.jobs, n.wake = nil, map[fact.AttemptID]state.Job{}, 0
	if len(n.disk) == 0 {
		return
	}
	facts := w.decode(n.disk)
	m, err := Open(w.self(n), w.def, w.plan, facts[0])
	if err == nil {
		err = m.Resume(facts[1:], true, Break{Waits: n.waits, Now: w.momentOf(n)})
	}
	if err != nil {
		w.t.Fatalf("%s cannot load its own facts: %v", n.id, err)
	}
	n.m = m
	w.step(n)
}

// backup copies a disk; restore puts the copy back.
func (n *node) backup() []Stored { return slices.Clone(n.disk) }

// upTo are the first facts of a disk: so many, and those that were made durable together with
// them (Stored.Open). No crash and no old copy leaves less.
func (n *node) upTo(facts int) []Stored {
	for facts > 0 && facts < len(n.disk) && n.disk[facts-1].Open {
		facts++
	}
	return n.disk[:facts]
}

func (w *mesh) restore(n *node, disk []Stored, inc fact.Incarnation) {
	if len(disk) > 0 && disk[len(disk)-1].Open {
		w.t.Fatalf("the disk of %s ends after fact %d, for which nothing vouches: that cannot happen", n.id, len(disk))
	}
	n.disk, n.inc, n.waits = slices.Clone(disk), inc, waits.Stored{}
	w.crash(n)
}

// meet has two nodes greet each other, as on a new connection.
func (w *mesh) meet(a, b workflow.PartnerID) {
	for _, x := range [][2]workflow.PartnerID{{a, b}, {b, a}} {
		if n := w.node(x[0]); n.m != nil && n.m.Participates(x[1]) {
			n.m.Greet(x[1])
			w.tellHeads(n, x[1], modeAsk)
			if n.m.Owes(x[1]) {
				w.send(n, x[1])
			}
		}
	}
}

// meetAll has everybody greet everybody.
func (w *mesh) meetAll() {
	ids := w.names()
	for i, a := range ids {
		for _, b := range ids[i+1:] {
			w.meet(a, b)
		}
	}
}

// end ends a job with a result.
func (w *mesh) end(n *node, id fact.AttemptID, res Result) {
	j, ok := n.jobs[id]
	if !ok {
		w.t.Fatalf("%s does not run %s", n.id, id)
	}
	delete(n.jobs, id)
	n.m.TaskEnded(id, j.Try, res, w.moment(), w)
	w.step(n)
}

// jobOf finds the job that performs a task.
func (n *node) jobOf(t workflow.TaskName) (fact.AttemptID, bool) {
	for _, id := range n.running() {
		if n.jobs[id].Task.Name == t {
			return id, true
		}
	}
	return fact.AttemptID{}, false
}

// running are the node's jobs in a fixed order.
func (n *node) running() []fact.AttemptID {
	return slices.SortedFunc(maps.Keys(n.jobs), func(a, b fact.AttemptID) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), a.Fact.Compare(b.Fact))
	})
}

// stabilize delivers all mail until there is none; with work, jobs end well too.
func (w *mesh) stabilize(work bool) {
	for round := 0; ; round++ {
		if round > 10_000 {
			w.t.Fatalf("the mesh does not come to rest; mail: %.2000s", w.describeMail())
		}
		switch {
		case len(w.mail) > 0:
			l := w.mail[0]
			w.mail = w.mail[1:]
			w.deliver(l)
		case !work || !w.workOne():
			return
		}
	}
}

func (w *mesh) workOne() bool {
	for _, id := range w.names() {
		n := w.nodes[id]
		if jobs := n.running(); len(jobs) > 0 {
			w.end(n, jobs[0], Result{})
			return true
		}
	}
	return false
}

// advance moves the clock; nodes wake at the moments they asked for.
func (w *mesh) advance(d time.Duration) {
	for until := w.now + d; ; {
		next, who := until, (*node)(nil)
		for _, id := range w.names() {
			if n := w.nodes[id]; n.wake > 0 && n.wake <= next {
				next, who = n.wake, n
			}
		}
		if who == nil {
			w.now = until
			return
		}
		w.now, who.wake = max(w.now, next), 0
		w.step(who)
	}
}

func (w *mesh) describeMail() string {
	out := ""
	for _, l := range w.mail {
		out += fmt.Sprintf("%s→%s facts=%d heads=%t; ", l.from, l.to, len(l.facts), l.heads != nil)
	}
	return out
}

// mustAppend adds a fact of the machine's own that is within all limits.
func (m *Machine) mustAppend(now Moment, b fact.Body) *log.Entry {
	e, err := m.deciding(now, nil).append(b)
	if err != nil {
		panic(fmt.Sprintf("a fact that the test wrote is refused: %v", err))
	}
	return e
}

// sameEverywhere checks that all participants have one state.
func (w *mesh) sameEverywhere() error {
	var first *node
	for _, id := range w.names() {
		n := w.nodes[id]
		switch {
		case n.m == nil || !n.m.Participates(id): // it may have the beginning of what somebody forgot
		case first == nil:
			first = n
		default:
			if d := firstDifference(first.m.Fingerprint(), n.m.Fingerprint()); d != "" {
				return fmt.Errorf("%s and %s differ: %s", first.id, n.id, d)
			}
		}
	}
	return nil
}
