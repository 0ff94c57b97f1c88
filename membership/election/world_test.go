package election

import (
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A world is some nodes with their disks and clocks, and a network that
// loses, repeats and reorders. Tests drive it at random, exhaustively, or by
// script, and it watches for what must never happen.

const testLease = 10 * time.Second

// machine is a node: its election, what is on its disk, and its clocks.
type machine struct {
	name     string
	key      ed25519.PrivateKey
	auto     bool
	election *Election // nil while it is down
	ballot   Ballot
	lineage  Lineage
	rate     float64       // of its clocks
	slept    time.Duration // suspended in all: what Boot counts and Awake does not
	stopped  time.Duration // real time until which it is stopped (SIGSTOP) or suspended
	asleep   bool          // stopped by suspend
	wake     time.Duration // real time at which it wants a Tick; 0 for none
	lives    uint64
}

// packet is a message under way.
type packet struct {
	from, to int
	msg      Message
}

// flaws are ways to break the machine, to prove that the watch sees it.
type flaws struct {
	forgetVotes    bool // the disk loses votes
	forgetConsents bool // the disk loses consents
	ignoreLeases   bool // voters do not honour what they granted
	endlessOffice  bool // a holder does not stop at the end of its lease
	twoVotes       bool // voters forget their vote at once
	hideClaims     bool // what a node hears of coordinators it tells nobody
	// only is the node that has them; empty: all.
	only string
}

// of are the flaws that a node has.
func (f flaws) of(m *machine) flaws {
	if f.only != "" && f.only != m.name {
		return flaws{}
	}
	return f
}

type world struct {
	mesh     trust.Mesh
	nodes    []*machine
	net      []packet
	real     time.Duration
	holders  map[Office]int
	heirs    map[ListHash]ListHash // the countersigned successor of each list
	override bool
	atOnce   int // so many may lead, because a voter lies; 0: one
	flaws    flaws
	cut      func(from, to int) bool
	crash    func() int // 0 no crash; 1 before, 2 after what was to be made durable
	trace    []string
	bad      string // the first thing that must never happen
}

// newWorld has n nodes, of which the first few vote. The founder is no node.
func newWorld(tb testing.TB, n, voters int, f flaws) *world {
	tb.Helper()
	w := &world{
		mesh: trust.Mesh{Name: "serra", Founder: trusttest.IDOf("founder")}, holders: map[Office]int{},
		heirs: map[ListHash]ListHash{}, flaws: f,
	}
	var list []Voter
	for i := range n {
		m := &machine{name: fmt.Sprintf("n%d", i+1), rate: 1}
		m.key = trusttest.KeyOf(m.name)
		w.nodes = append(w.nodes, m)
		if i < voters {
			list = append(list, w.voter(i))
		}
	}
	lineage, err := FoundElectorate(w.mesh, trusttest.KeyOf("founder"), list, testLease, nil, 0)
	if err != nil {
		tb.Fatal(err)
	}
	for i, m := range w.nodes {
		m.lineage = lineage
		w.start(i)
	}
	return w
}

func (w *world) voter(i int) Voter { return Voter{w.id(i), trust.Incarnation{1}} }

func (w *world) id(i int) workflow.PartnerID { return trust.IDOf(trusttest.PublicOf(w.nodes[i].key)) }

// now reads the clocks of node i.
func (w *world) now(i int) moment.Now {
	m := w.nodes[i]
	boot := time.Duration(float64(w.real) * m.rate)
	return moment.Now{Awake: boot - time.Duration(float64(m.slept)*m.rate), Boot: boot}
}

func (w *world) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8s  ", w.real.Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// start starts node i from its disk.
func (w *world) start(i int) {
	m := w.nodes[i]
	m.lives++
	cfg := Config{
		Mesh: w.mesh, Key: m.key, Incarnation: trust.Incarnation{1}, Auto: m.auto, Seed: uint64(i) + 100*m.lives,
		MayPropose: func(workflow.PartnerID) bool { return true },
	}
	e, err := New(cfg, m.ballot, m.lineage, w.now(i))
	if err != nil {
		panic(err)
	}
	m.election, m.wake = e, w.real+1
	w.spoil(i)
}

// restart loses what node i has in memory.
func (w *world) restart(i int) {
	w.log("%s restarts", w.nodes[i].name)
	w.nodes[i].election = nil
	w.start(i)
}

// spoil applies the flaws to node i.
func (w *world) spoil(i int) {
	e, f := w.nodes[i].election, w.flaws.of(w.nodes[i])
	if f.ignoreLeases {
		e.voter = voter{}
	}
	if f.endlessOffice && e.candidacy.role == coordinator {
		e.candidacy.until = 1 << 60
	}
	if f.twoVotes {
		e.ballot.Voted, e.ballot.VotedFor = Office{}, ""
	}
}

// do carries out what node i's machine returned, in the order that it asks for.
func (w *world) do(i int, r Ready, err error) {
	m := w.nodes[i]
	if err != nil {
		w.log("%s refuses: %v", m.name, err)
	}
	point := 0
	if w.crash != nil {
		point = w.crash()
	}
	if point == 1 {
		w.restart(i)
		return
	}
	w.store(m, r)
	if point == 2 {
		w.restart(i)
		return
	}
	for _, env := range r.Send {
		w.post(i, env)
	}
	for _, ev := range r.Events {
		what := ""
		if ev.Reason != nil {
			what = ev.Reason.Error()
		}
		if ev.Office != (Office{}) {
			what = strings.TrimSuffix(ev.Office.String()+": "+what, ": ")
		}
		w.log("%s %s: %s", m.name, ev.Kind, what)
		if ev.Kind == BecameCoordinator {
			w.took(i, ev.Office)
		}
	}
	m.wake = 0
	if r.Wake > 0 {
		m.wake = w.real + time.Duration(float64(r.Wake)/m.rate) + 1
	}
	w.spoil(i)
	w.watch()
}

// store is node i's disk.
func (w *world) store(m *machine, r Ready) {
	if r.Ballot != nil {
		old, f := m.ballot, w.flaws.of(m)
		m.ballot = *r.Ballot
		if f.forgetVotes {
			m.ballot.Voted, m.ballot.VotedFor = old.Voted, old.VotedFor
		}
		if f.forgetConsents {
			m.ballot.Signed = nil
		}
	}
	if r.Lineage != nil {
		m.lineage = r.Lineage
		w.inherit(r.Lineage)
	}
}

// inherit records who countersigned lists succeed: one only.
func (w *world) inherit(ln Lineage) {
	for _, l := range ln[1:] {
		if heir, ok := w.heirs[l.Previous]; ok && heir != l.Hash() {
			w.fail("electorate %d has two successors", l.Number-1)
		}
		w.heirs[l.Previous] = l.Hash()
	}
}

// post puts a message on the network, through the codec.
func (w *world) post(from int, env Envelope) {
	if w.flaws.of(w.nodes[from]).hideClaims && env.Message.Claim != nil {
		return
	}
	for to := range w.nodes {
		if to != from && (env.To == "" || env.To == w.id(to)) {
			w.net = append(w.net, packet{from, to, env.Message})
		}
	}
}

// deliver hands packet k over; it stays under way if keep is set.
func (w *world) deliver(k int, keep bool) {
	p := w.net[k]
	if !keep {
		w.net = slices.Delete(w.net, k, k+1)
	}
	m := w.nodes[p.to]
	if w.cut != nil && w.cut(p.from, p.to) || m.stopped > w.real {
		return
	}
	w.log("%s -> %s: %s", w.nodes[p.from].name, m.name, describe(p.msg))
	r, err := m.election.Step(w.id(p.from), p.msg, w.now(p.to))
	w.do(p.to, r, err)
}

// advance lets real time pass and ticks the nodes that are due, in order.
func (w *world) advance(d time.Duration) {
	end := w.real + d
	for {
		i := w.nextDue()
		if i < 0 || w.due(i) > end {
			break
		}
		w.real = max(w.real, w.due(i))
		w.nodes[i].asleep = false
		r := w.nodes[i].election.Tick(w.now(i))
		w.do(i, r, nil)
	}
	w.real = end
	w.watch()
}

// due is when node i can be ticked.
func (w *world) due(i int) time.Duration { return max(w.nodes[i].wake, w.nodes[i].stopped) }

// nextDue is the node that is due first; -1 if nobody is.
func (w *world) nextDue() int {
	best := -1
	for i, m := range w.nodes {
		if m.wake > 0 && (best < 0 || w.due(i) < w.due(best)) {
			best = i
		}
	}
	return best
}

// stop stops node i for d; suspended, its awake clock stands still.
func (w *world) stop(i int, d time.Duration, suspend bool) {
	m := w.nodes[i]
	if m.stopped > w.real {
		return
	}
	w.log("%s stops for %s, suspended: %t", m.name, d, suspend)
	m.stopped = w.real + d
	if suspend {
		m.slept += d // it does not look at its clocks before it is over
	}
}

// took records that node i took office.
func (w *world) took(i int, o Office) {
	if other, ok := w.holders[o]; ok && other != i && w.atOnce == 0 {
		w.fail("%s and %s were both elected in %s", w.nodes[other].name, w.nodes[i].name, o)
	}
	w.holders[o] = i
}

// leaders are the nodes that would act in office now.
func (w *world) leaders() []int {
	var out []int
	for i, m := range w.nodes {
		if m.stopped > w.real {
			continue
		}
		if _, ok := m.election.Leads(w.now(i)); ok {
			out = append(out, i)
		}
	}
	return out
}

// watch fails the world when two lead at once, unless there was an override.
func (w *world) watch() {
	if lead := w.leaders(); len(lead) > max(w.atOnce, 1) && !w.override {
		w.fail("%s and %s lead at once", w.nodes[lead[0]].name, w.nodes[lead[1]].name)
	}
}

func (w *world) fail(format string, args ...any) {
	if w.bad == "" {
		w.log(format, args...)
		w.bad = fmt.Sprintf(format, args...)
	}
}

// settle delivers everything, and lets time pass, for d.
func (w *world) settle(d time.Duration) {
	for end := w.real + d; w.real < end; w.advance(testLease / 20) {
		for len(w.net) > 0 {
			w.deliver(0, false)
		}
	}
}

// foundOverride has the founder name other voters, at node i.
func (w *world) foundOverride(i int, voters []Voter) {
	e := w.nodes[i].election
	_, known := e.Electorate()
	ln, err := FoundElectorate(w.mesh, trusttest.KeyOf("founder"), voters, testLease, known, e.HighestTerm())
	if err != nil {
		panic(err)
	}
	w.override = true
	w.log("the founder overrides at %s: %d voters", w.nodes[i].name, len(voters))
	r, err := e.Adopt(ln, w.now(i))
	w.do(i, r, err)
}

// describe says in a few words what a message is.
func describe(m Message) string {
	switch {
	case m.Ask != nil:
		return "ask " + m.Ask.Office.String()
	case m.Grant != nil:
		return "grant " + m.Grant.Vote.Office.String()
	case m.Refusal != nil:
		return "refuse " + m.Refusal.Office.String() + ": " + m.Refusal.Reason
	case m.Release != nil:
		return "release " + m.Release.String()
	case m.Propose != nil:
		return fmt.Sprintf("propose electorate %d", m.Propose.List.Number)
	case m.Consented != nil:
		return fmt.Sprintf("consent to electorate %d, voted up to %d", m.Consented.List.Number,
			m.Consented.Consent.Highest)
	case m.Lists != nil:
		head, _ := m.Lists.Lineage.Head()
		return fmt.Sprintf("electorate %d", head.Number)
	case m.Claim != nil:
		return "claim " + m.Claim.Office.String()
	case m.Holding != nil:
		return "holding " + m.Holding.String()
	case m.WantClaim != nil:
		return "want claim"
	case m.Declined != nil:
		return "decline: " + m.Declined.Reason
	default:
		return "nominate"
	}
}

// story is the trace, for a failure message.
func (w *world) story() string {
	const most = 60
	lines := w.trace[max(0, len(w.trace)-most):]
	return strings.Join(lines, "\n")
}

// disturbance is something random that may happen to node i.
type disturbance struct {
	weight int
	do     func(i int)
}

// chaos drives the world at random for some steps. Each life has its own
// choice of things that go wrong, since some hide others.
func (w *world) chaos(rng *rand.Rand, steps int, overrides bool) {
	all := w.disturbances(rng)
	if !overrides {
		all = all[:len(all)-1]
	}
	total := 0
	for k := range all {
		if k > 2 { // messages and time always move, somebody always stands
			all[k].weight *= rng.IntN(2)
		}
		total += all[k].weight
	}
	risk := rng.IntN(3)
	w.crash = func() int {
		if rng.IntN(100) < risk {
			return 1 + rng.IntN(2)
		}
		return 0
	}
	for range steps {
		if w.bad != "" {
			return
		}
		pick := rng.IntN(total)
		for _, d := range all {
			if pick -= d.weight; pick < 0 {
				if i := rng.IntN(len(w.nodes)); w.nodes[i].stopped <= w.real {
					d.do(i)
				}
				break
			}
		}
	}
	w.crash = nil
}

// disturbances are the things that can happen, overrides last.
func (w *world) disturbances(rng *rand.Rand) []disturbance {
	call := func(f func(*Election, moment.Now) (Ready, error)) func(int) {
		return func(i int) {
			r, err := f(w.nodes[i].election, w.now(i))
			w.do(i, r, err)
		}
	}
	return []disturbance{
		{60 + 10*len(w.nodes), func(int) {
			if len(w.net) > 0 {
				w.deliver(rng.IntN(min(len(w.net), 12)), rng.IntN(10) == 0)
			}
		}},
		{25, func(int) { w.advance(time.Duration(rng.Int64N(int64(testLease / 4)))) }},
		{8, call((*Election).Elect)},
		{4, func(int) { w.net = slices.Delete(w.net, 0, rng.IntN(len(w.net)+1)) }},
		{3, func(i int) { w.stop(i, time.Duration(rng.Int64N(int64(2*testLease))), rng.IntN(2) == 0) }},
		{3, w.restart},
		{1, call((*Election).Resign)},
		{3, call(func(e *Election, now moment.Now) (Ready, error) {
			return e.Propose(w.someVoters(rng), testLease, now)
		})},
		{2, func(int) {
			side := rng.Uint64()
			w.cut = func(from, to int) bool { return side&1 == 0 && side>>(from+1)&1 != side>>(to+1)&1 }
		}},
		{1, func(i int) { w.foundOverride(i, w.someVoters(rng)) }},
	}
}

// someVoters is a random list, often small: it shrinks and grows.
func (w *world) someVoters(rng *rand.Rand) []Voter {
	var out []Voter
	for _, i := range rng.Perm(len(w.nodes))[:1+rng.IntN(len(w.nodes))] {
		out = append(out, w.voter(i))
	}
	return out
}
