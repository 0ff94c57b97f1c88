package sim

import (
	"container/heap"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/sim/meaning"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Variant breaks something on purpose, to show that the checks find it.
type Variant string

// The variants of the world; variants of the core are made by patching it.
const (
	Sound     Variant = ""
	NoSync    Variant = "no-sync"    // commits are reported before they are durable
	WallClock Variant = "wall-clock" // waits are clocked by the wall
)

// world is a run.
type world struct {
	added map[workflow.TaskName]*workflow.Task // to some instances (orders.go)
	// editions are the definitions with amendments, by what these say, comeBy the rounds that come with the last of
	// them; longer is how much later all may have ended by them.
	editions map[string]*workflow.Definition
	comeBy   map[string][]meaning.Round
	longer   time.Duration
	// blurred are announcements of absences of which some machine does not know any more how old they are (absent.go).
	blurred map[membership.Version]bool
	retried map[workflow.TaskName]bool                // by some edition a task may be tried again
	spares  []*workflow.Task                          // that users added to stand in for others
	stands  map[workflow.TaskName][]workflow.TaskName // who stands in for a task by what users amended, if that counts
	plan    Plan
	variant Variant
	r       *rand.Rand // delays and losses
	people  *rand.Rand // what persons and applications do
	now     time.Duration
	seq     int
	queue   queue
	mesh    trust.Mesh
	nodes   []*machine
	cut     map[[2]int]int // directed; how many faults cut it
	lossy   int
	rival   func(to *machine) // who acts in the middle of a joint lock, as somebody is about to be asked; nil: nobody
	links   map[[2]int]*session
	started []string // IDs of instances
	healed  time.Duration
	newest  time.Duration // when the newest fact was written
	wrong   int           // how many faults last
	// disturbed is when the last fault began or ended, or a node started.
	disturbed time.Duration
	events    int // see Vanish
	checks    checks
	read      *reader
	def       *workflow.Definition
	bounds    *partition.Plan
	home      map[workflow.TaskName]int // at which node a task's partition is
	out       *Outcome
	trace     hash.Hash // of all that was written and sent, and when
	users     []*user
	results   map[string][]string // by instance, results that somebody saw to be kept
	hushed    bool                // users do nothing any more
}

// machine is a device with its disk and, while it runs, its node.
type machine struct {
	w      *world
	i      int
	member node.Member
	id     workflow.PartnerID
	disk   *disk
	skew   time.Duration // of the wall clock
	asleep time.Duration // how long it was suspended in all
	dozed  time.Duration // since when it is suspended
	// suspended is how many faults have it suspended now.
	suspended int
	born      time.Duration // of this process
	bornWall  time.Time     // by its wall clock
	node      *node.Node
	jobs      map[string]int // running job → its number
	jobSeq    int
	paused    int
	late      []func() // what came while it was paused
	steps     int
	lies      int // how many faults have it lie now
	lied      bool
	does      []FaultKind // what it does as a hostile member
	loads     map[string]*load
	gone      bool
	forgot    bool // its disk was lost or put back
	boots     int  // how often it was rebooted
	// reboots are these, off what there is of the one under way, set when its wall clock was set, and by how much.
	reboots []reboot
	off     reboot
	set     map[time.Duration]time.Duration
	// muted is when it could acknowledge nothing, as its disk was full or it was paused, could
	// again, and so on.
	muted []time.Duration
	// bootedAt is when its present boot began, well since when it runs undisturbed, vanished when it was taken away.
	bootedAt, well, vanished time.Duration
	learned                  map[workflow.InstanceID]time.Duration
	// silent: the node is disconnected on purpose. announced is until when, by the version of its record that said
	// so; absent is what it was told of absences of others. stopped is when its process ended last.
	silent    bool
	announced map[membership.Version]time.Duration
	away      int // how many times it is away now, on purpose
	absent    map[int]absence
	stopped   time.Duration
	// ring are the keys of users here, answers who answers requests, overheard the words of people
	// that came by.
	ring      *ring
	answers   map[string]func(workflow.PartnerID, []byte) ([]byte, error)
	overheard []wire.Spoken
	// clocked is since when the waits of an instance run, cancelled are those of which it has
	// a cancellation.
	clocked   map[workflow.InstanceID]time.Duration
	cancelled map[workflow.InstanceID]*cancelled
	records   map[workflow.PartnerID]membership.Version // the newest that it was told
	arrived   map[factID]time.Duration                  // when its disk had a fact first
	several   map[slot]map[fact.AttemptID]bool
	contested map[workflow.InstanceID]bool
	looking   map[workflow.InstanceID]bool
	succeeded map[job]bool
	judged    map[job]bool  // by it
	ends      map[slot]bool // which have a success or a verdict, as far as its disk says
}

// reboot is a time in which a machine was off.
type reboot struct {
	at     time.Duration // when it was on again; of one under way, when it went off
	off    time.Duration // for how long it was, and passed how long by its wall clock
	passed time.Duration
	skew   time.Duration // as it went off
	// back is by how much its wall clock was set back since its leases were stored, at most.
	back time.Duration
	// again is by how much it was set back before the machine started once more, and read again what had passed.
	again time.Duration
}

// cancelled is whether a machine holds an instance to be cancelled, looking whether that is
// about to be seen.
type cancelled struct{ is, looking bool }

// session is a connection between two nodes.
type session struct {
	id   int
	a, b *node.Node // the processes at its ends
}

// Outcome is what a run came to.
type Outcome struct {
	Violations []string
	Virtual    time.Duration // summed over nodes
	Facts      int
	Commits    int
	Frames     int
	Lies       int // forged facts
	Superseded int // successes that do not count
	Undone     int // compensations begun
	Kept       int // people's tasks whose holder was chosen to perform them
	Passed     int // those that were given to another
	Settled    int // instances that may not change any more
	// Judges are the nodes that judged attempts of partners who are gone: of each verdict on one its author, in order.
	Judges []int
	Events int
	// Of users: requests, items that were taken, results that were recorded and counted, that were kept on
	// a device first, and that came too late.
	Requests, Taken, Ahead, PassedOn, Recorded, Away, TooLate, PutOff, Came, Joint, Lost, Anew, Beaten int
	// Ordered and Adopted are words of those who decide that were written down.
	Ordered, Adopted int
	Added            int // amendments that add a task
	AddedData        int // of these, that add data as well
	Resteered        int // those that change what becomes of a task
	StandIns         int // those that say who stands in for one
	Loops            int // tasks of loops that were started in a round after the first
	Placed           int // of these, that add a partition as well
	Recovered        int // steps of recovery that were ordered
	States           int // data states, at all nodes
	Aside            int // superseded transitions in histories, at all nodes
	Instances        map[workflow.InstanceState]int
	Faults           map[FaultKind]int
	Tasks            map[workflow.TaskName]workflow.State // of the last instance, as the survivors see it
	Notes            []string
	// Fingerprint is of all that the nodes wrote and sent, in its order, and when: two runs
	// of one plan have the same.
	Fingerprint [sha256.Size]byte
}

// base is when runs begin, on clocks that are right.
var base = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Crane is a capability that only one node has.
const Crane workflow.Capability = "crane"

// craneAt is that node.
const craneAt = 0

// Run carries a plan out.
func Run(p Plan, v Variant) *Outcome {
	w := &world{
		plan: p, variant: v, r: rand.New(rand.NewPCG(p.Seed, 1)), people: rand.New(rand.NewPCG(p.Seed, 2)),
		cut: map[[2]int]int{}, links: map[[2]int]*session{},
		out: &Outcome{
			Instances: map[workflow.InstanceState]int{}, Faults: map[FaultKind]int{},
			Tasks: map[workflow.TaskName]workflow.State{},
		},
		read: &reader{known: map[string]decoded{}}, healed: -1,
		trace: sha256.New(), results: map[string][]string{}, blurred: map[membership.Version]bool{},
	}
	if err := w.define(); err != nil {
		w.violate("the definition is refused: %v", err)
		return w.out
	}
	w.checks = newChecks(w)
	w.found()
	for _, m := range w.nodes {
		w.boot(m)
	}
	for _, s := range p.Starts {
		w.at(s.At, func() { w.start(s) })
	}
	for _, f := range p.Faults {
		w.at(f.At, func() { w.strike(f) })
	}
	for _, m := range w.nodes {
		w.persons(m)
	}
	w.welcome()
	w.at(p.Length, func() {
		w.heal()
		w.mend()
		w.at(w.now+w.bound(), w.checks.ended) // by now it is known who lied
	})
	w.run(p.Length)
	w.run(w.now + exchange)
	for limit := p.Length + max(w.patience(), w.bound()); w.now < limit && !w.calm() && len(w.out.Violations) == 0; {
		w.run(w.now + exchange)
	}
	w.checks.settle()
	w.hushed = true
	w.run(w.now + 2*p.ConnectionTime)
	w.checks.quiet(2 * p.ConnectionTime)
	w.checks.readable()
	w.checks.atEnd()
	w.out.Virtual, w.out.Events = w.now*time.Duration(p.Nodes), w.events
	w.trace.Sum(w.out.Fingerprint[:0])
	return w.out
}

// define reads the plan's definition.
func (w *world) define() error {
	def, err := workflow.Parse("random.yaml", []byte(w.plan.Workflow))
	if err != nil {
		return err
	}
	w.def, w.bounds, w.home = def, partition.New(def), map[workflow.TaskName]int{}
	for _, p := range w.bounds.Partitions() {
		for _, t := range p.Tasks {
			w.home[t] = w.plan.Pins[string(p.Name)]
		}
	}
	return nil
}

// event counts an event of the run, at which a node may vanish.
func (w *world) event() {
	w.events++
	if v := w.plan.Vanish; v != nil && v.Event == w.events {
		w.at(w.now, func() { w.vanish(w.nodes[v.Node]) })
	}
}

// Roles are those that a person's task may ask for. All nodes have the first but
// every third; only the one with the crane has the second.
var Roles = []workflow.RoleName{"crew", "chief"}

// RolesOf are those of a node.
func RolesOf(i int) (out []string) {
	if i%3 != 2 {
		out = append(out, string(Roles[0]))
	}
	if i == craneAt {
		out = append(out, string(Roles[1]))
	}
	return out
}

// found makes the mesh and its members, from the seed.
func (w *world) found() {
	founder := keyOf(0)
	w.mesh = trust.Mesh{Name: "sim", Founder: trust.IDOf(founder.Public().(ed25519.PublicKey))}
	issuer := trust.Issuer{Mesh: w.mesh, Key: founder}
	for i := range w.plan.Nodes {
		k := keyOf(i)
		var roles []workflow.RoleName
		for _, r := range RolesOf(i) {
			roles = append(roles, workflow.RoleName(r))
		}
		chain, err := issuer.Issue(trust.Certificate{
			Partner: trust.IDOf(k.Public().(ed25519.PublicKey)), Name: fmt.Sprintf("n%d", i), Roles: roles,
			Serial:    trust.Serial{byte(i + 1)},
			NotBefore: trust.WallOf(base.Add(-24 * time.Hour)), NotAfter: trust.WallOf(base.Add(1000 * time.Hour)),
		})
		if err != nil {
			panic(err) // the simulator's own mistake
		}
		m := &machine{
			w: w, i: i, member: node.Member{Key: k, Mesh: w.mesh, Chain: chain},
			id: trust.IDOf(k.Public().(ed25519.PublicKey)),
		}
		m.learned, m.succeeded = map[workflow.InstanceID]time.Duration{}, map[job]bool{}
		m.clocked, m.cancelled = map[workflow.InstanceID]time.Duration{}, map[workflow.InstanceID]*cancelled{}
		m.records = map[workflow.PartnerID]membership.Version{}
		m.set = map[time.Duration]time.Duration{}
		m.announced, m.absent = map[membership.Version]time.Duration{}, map[int]absence{}
		m.arrived, m.several = map[factID]time.Duration{}, map[slot]map[fact.AttemptID]bool{}
		m.contested, m.looking = map[workflow.InstanceID]bool{}, map[workflow.InstanceID]bool{}
		m.judged, m.ends = map[job]bool{}, map[slot]bool{}
		m.loads = map[string]*load{}
		m.ring, m.answers = newRing(i), map[string]func(workflow.PartnerID, []byte) ([]byte, error){}
		m.disk = &disk{
			data: map[string][]byte{}, facts: map[factID]bool{}, attic: map[string][]byte{}, read: w.read,
			lazy: w.variant == NoSync,
		}
		m.disk.wrote = func(id factID, f *fact.Fact) { w.checks.wrote(m, id, f) }
		m.disk.gaveUp = func(id workflow.InstanceID) { w.checks.gaveUp(m, id) }
		m.disk.traced = func(x kv.Write) { w.traced("n%d writes %x %x %t", m.i, x.Key, x.Value, x.Delete) }
		m.disk.again = func(id workflow.InstanceID) { w.checks.again(m, id) }
		w.nodes = append(w.nodes, m)
	}
}

// Now reads the machine's clocks.
func (m *machine) Now() moment.Now {
	boot := m.w.now - m.bootedAt + time.Hour
	wall := base.Add(m.w.now + m.skew)
	awake := boot - m.asleep
	if m.w.variant == WallClock {
		boot = wall.Sub(base) + 1000*time.Hour
	}
	return moment.Now{Awake: awake, Boot: boot, Wall: wall}
}

// BootID names the machine's present boot.
func (m *machine) BootID() string { return fmt.Sprintf("boot %d", m.boots) }

// After is not used by a node that is driven by Step.
func (m *machine) After(time.Duration) <-chan time.Time { return nil }

// boot starts a machine's node from its disk.
func (w *world) boot(m *machine) {
	cfg := configs.Default(configs.Local)
	cfg.ConnectionTime = w.plan.ConnectionTime
	cfg.Shards = 1
	if w.plan.Keep > 0 {
		cfg.Limits.Keep = w.plan.Keep
	}
	if w.plan.Room > 0 {
		cfg.Limits.Memory, cfg.Limits.Disk = w.plan.Room, w.plan.Room
	}
	if m.i == craneAt {
		cfg.Capabilities = []workflow.Capability{Crane}
	}
	m.well, w.disturbed = w.now, w.now
	m.jobs, m.born, m.bornWall = map[string]int{}, w.now, base.Add(w.now+m.skew)
	m.silent = false
	m.doubts()
	w.guard(m, func() {
		parts := node.Parts{
			Loud: true, Member: m.member, Config: cfg, Store: m.disk, Vouching: m.disk, Runner: m, Clock: m,
			Version: "sim", Chance: w.r.Float64, Instant: w.plan.prompt(), Random: w.random,
		}
		to := node.Network{Carrier: &carrier{m: m}}
		if w.claims() {
			parts.Keys, to.Requester = m.ring, asker{m}
		}
		n, err := node.New(parts)
		if err != nil {
			if m.disk.full {
				w.at(w.now+time.Minute, func() { w.revive(m) })
				return
			}
			w.violate("live: n%d does not start again: %v", m.i, err)
			return
		}
		if err := n.BeginStepped(to); err != nil {
			w.violate("live: n%d does not begin: %v", m.i, err)
			return
		}
		m.node = n
		w.checks.resumes(m, n)
	})
	w.relink()
	w.step(m)
}

func (w *world) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.r.Uint32())
	}
	return b
}

// guard runs what a node does, and takes a crash for what it is.
func (w *world) guard(m *machine, fn func()) {
	defer func() {
		if e := recover(); e != nil {
			c, ok := e.(crashed)
			if !ok {
				panic(e)
			}
			w.down(m)
			w.at(w.now+max(c.away, 5*time.Second), func() { w.revive(m) })
		}
	}()
	fn()
}

// down ends a machine's process.
func (w *world) down(m *machine) {
	m.node = nil
	m.late = nil
	m.stopped = w.now
	m.disk.lose()
	w.relink()
}

func (w *world) revive(m *machine) {
	if m.node == nil && !m.gone {
		m.readsAgain()
		w.boot(m)
	}
}

// readsAgain notes that a machine starts once more before it has stored how long it had waited (hourly): it reads again,
// by its wall clock as that stands now, what passed while it was off.
func (m *machine) readsAgain() {
	if len(m.reboots) == 0 {
		return
	}
	r := &m.reboots[len(m.reboots)-1]
	if m.w.now-r.at > 2*time.Hour {
		return
	}
	r.again = 0
	for at, by := range m.set {
		if at > r.at {
			r.again += max(0, -by)
		}
	}
}

// step has a node do what is due, and comes back when something is due again.
func (w *world) step(m *machine) {
	if m.node == nil {
		return
	}
	if m.paused > 0 {
		return
	}
	n := m.node
	m.steps++
	num := m.steps
	w.guard(m, func() {
		pause := n.Step()
		w.at(w.now+pause, func() {
			if m.node == n && m.steps == num {
				w.step(m)
			}
		})
	})
}

// act has something happen at a node, then lets it step.
func (w *world) act(m *machine, fn func(*node.Node)) {
	if m.node == nil {
		return
	}
	if m.paused > 0 {
		n := m.node
		m.late = append(m.late, func() {
			if m.node == n {
				w.act(m, fn)
			}
		})
		return
	}
	w.guard(m, func() { fn(m.node) })
	w.step(m)
}

// serve is act for what somebody asks of a node.
func (w *world) serve(m *machine, fn func(api.Service)) {
	w.act(m, func(n *node.Node) { fn(n.Service()) })
}

// start starts an instance; where the node is down it is not started.
func (w *world) start(s Start) {
	m := w.nodes[s.Node]
	w.serve(m, func(n api.Service) {
		ctx := context.Background()
		if _, err := n.AddWorkflow(ctx, "random.yaml", []byte(w.plan.Workflow)); err != nil {
			w.note("n%d does not take the definition: %v", m.i, err)
			return
		}
		pins := map[string]string{}
		for p, i := range w.plan.Pins {
			pins[p] = string(w.nodes[i].id)
		}
		r := api.StartRequest{Workflow: string(w.def.Name), Assign: pins}
		if w.claims() && w.people.IntN(2) == 0 {
			if u := w.users[w.people.IntN(len(w.users))]; u.id != "" {
				r.Responsible = u.name
			}
		}
		st, err := n.Start(ctx, r)
		if err != nil {
			w.note("n%d does not start an instance: %v", m.i, err)
			return
		}
		w.started = append(w.started, st.ID)
	})
}

// exchange is within what time nodes that can reach each other know the same.
const exchange = 5 * time.Minute

// calm reports whether all has ended and nothing was written for longer than any
// application runs and any person stays away: what was presumed to have failed
// may yet succeed.
func (w *world) calm() bool {
	return w.settled() && w.now-w.newest > 10*time.Minute*w.plan.Scale
}

// traced adds to the run's fingerprint.
func (w *world) traced(format string, args ...any) {
	fmt.Fprintf(w.trace, "%d "+format+"\n", append([]any{w.now}, args...)...)
}

// underWay are the instances that run, as far as a node knows. Its list has others, too: they wait for an order.
func underWay(n api.Service) ([]api.InstanceSummary, error) {
	list, err := n.Instances(context.Background(), false)
	return slices.DeleteFunc(list, func(in api.InstanceSummary) bool { return in.State != workflow.InstanceRunning }),
		err
}

// recovers reports whether a compensation is under way in an instance that is interrupted, as far as a node knows: when it
// ends, or its time is over, somebody writes that.
func recovers(n api.Service) bool {
	list, err := n.Instances(context.Background(), false)
	return err == nil && slices.ContainsFunc(list, func(x api.InstanceSummary) bool {
		if x.State != workflow.InstanceInterrupted {
			return false
		}
		in, err := n.Show(context.Background(), x.ID)
		return err == nil && in.Recovery != nil && in.Recovery.UnderWay
	})
}

// settled reports whether every instance has ended wherever it is known, also for
// a node that is only presumed to have failed.
func (w *world) settled() bool {
	for _, m := range w.nodes {
		if m.gone {
			continue
		}
		if m.node == nil {
			return false
		}
		ended := false
		w.guard(m, func() {
			running, err := underWay(m.node.Service())
			ended = m.lied || (err == nil && len(running) == 0 && !recovers(m.node.Service()))
			for _, id := range w.started {
				goesOn, err := m.node.GoesOn(context.Background(), id)
				ended = ended && (err != nil || !goesOn || w.waitsInVain(m, id)) // an error: it takes no part
			}
		})
		if !ended {
			return false
		}
	}
	return true
}

func (w *world) violate(format string, args ...any) {
	if len(w.out.Violations) < 20 {
		w.out.Violations = append(w.out.Violations,
			fmt.Sprintf("%s: ", w.now.Round(time.Millisecond))+fmt.Sprintf(format, args...))
	}
}

// at puts something on the queue.
func (w *world) at(t time.Duration, fn func()) {
	w.seq++
	heap.Push(&w.queue, todo{t, w.seq, fn})
}

// run lets time pass.
func (w *world) run(until time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		t := heap.Pop(&w.queue).(todo)
		w.now = t.at
		t.fn()
	}
	w.now = until
}

type todo struct {
	at  time.Duration
	seq int
	fn  func()
}

type queue []todo

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || (q[i].at == q[j].at && q[i].seq < q[j].seq)
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is for package heap.
func (q *queue) Push(x any) { *q = append(*q, x.(todo)) }

// Pop is for package heap.
func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	*q = old[:len(old)-1]
	return t
}
