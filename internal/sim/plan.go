package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Plan is all that a run does. Leaving faults out of it gives another plan that
// can be run.
type Plan struct {
	Seed     uint64
	Nodes    int
	Workflow string // YAML
	// Pins place the partitions at nodes.
	Pins   map[string]int
	Starts []Start
	Faults []Fault
	// Length is how long faults may last; then everything heals.
	Length time.Duration
	// Scale stretches the time that persons take.
	Scale time.Duration
	// ConnectionTime is that of all partners.
	ConnectionTime time.Duration
	// Calm has applications and persons never fail.
	Calm bool
	// Keep is how long nodes keep what has ended; 0: for longer than any run lasts. Room
	// is how many bytes of facts they take, in memory and on disk; 0: more than any run has.
	Keep time.Duration
	Room int64
	// Users claim people's tasks; none: persons do what their own node holds.
	Users []User
	// Vanish, if set, takes a node away for good at an event of the run.
	Vanish *Vanish
}

// Start is an instance started at a node.
type Start struct {
	At   time.Duration
	Node int
}

// Vanish takes a node away for good when the run comes to its Event-th event:
// a commit of facts, or the sending of a frame that has facts or heads.
type Vanish struct {
	Node, Event int
}

// FaultKind says what goes wrong.
type FaultKind string

// The kinds of faults.
const (
	Crash    FaultKind = "crash"     // kill -9 between two steps, restarted after For
	CrashIn  FaultKind = "crash-in"  // kill -9 in a commit: before it is durable (Other 0) or after (Other 1)
	Stop     FaultKind = "stop"      // SIGTERM: it goes down in good order, and is started again after For
	Reboot   FaultKind = "reboot"    // power loss: as crash, but the boot clock begins again
	LostDisk FaultKind = "lost-disk" // the store is empty after the crash; the key is the same
	OldDisk  FaultKind = "old-disk"  // after For, the store is put back to what it is now
	Gone     FaultKind = "gone"      // never comes back
	Cut      FaultKind = "cut"       // no frames between Node and Other
	OneWay   FaultKind = "one-way"   // no frames from Node to Other
	Split    FaultKind = "split"     // nodes up to Node on one side, the others on the other
	Full     FaultKind = "full"      // commits fail
	Pause    FaultKind = "pause"     // the process is stopped (SIGSTOP)
	Sleep    FaultKind = "sleep"     // the device is suspended
	Clock    FaultKind = "clock"     // the wall clock jumps by For × (Other-1)
	Lossy    FaultKind = "lossy"     // a third of all frames is lost or doubled
	Lie      FaultKind = "lie"       // the node's frames are garbled, altered and forged
	Cancel   FaultKind = "cancel"    // not a fault: somebody cancels an instance
	// Of hostile plans.
	Flood     FaultKind = "flood"      // the node's frames bring chains and facts without end
	Forks     FaultKind = "forks"      // they bring fork after fork of its own chain
	Betray    FaultKind = "betray"     // they say of its own work what is not so
	LostEntry FaultKind = "lost-entry" // its store lacks one entry after the crash
	// Of strained plans.
	Usurp  FaultKind = "usurp"       // the node's frames claim rights that it does not have
	Heavy  FaultKind = "heavy"       // they bring facts of many bytes
	Replay FaultKind = "replay"      // they bring instances that are over
	Unread FaultKind = "bad-entries" // some facts in its store cannot be read after the crash
	// Of claimed plans.
	Impostor FaultKind = "impostor" // it says in the name of people what they did not say
	Dismiss  FaultKind = "dismiss"  // not a fault: the user Other is removed
	Role     FaultKind = "role"     // not a fault: the user Other loses a role, or gets it
	Away     FaultKind = "away"     // not a fault: the node is disconnected on purpose for For (announced)
)

// Fault is something that goes wrong at a moment, for a while.
type Fault struct {
	At    time.Duration
	Kind  FaultKind
	Node  int
	Other int
	For   time.Duration
}

func (f Fault) String() string {
	at := fmt.Sprintf("%8s  ", f.At.Round(time.Second))
	switch f.Kind {
	case Cut, OneWay:
		return at + fmt.Sprintf("%s n%d n%d for %s", f.Kind, f.Node, f.Other, f.For)
	case Split:
		return at + fmt.Sprintf("split n0..n%d from the others for %s", f.Node, f.For)
	case CrashIn:
		return at + fmt.Sprintf("crash n%d in a commit, %s, for %s", f.Node,
			[]string{"before it is durable", "after it is durable"}[f.Other%2], f.For)
	case Clock:
		return at + fmt.Sprintf("clock of n%d jumps by %s", f.Node, f.For*time.Duration(f.Other-1))
	case Lossy:
		return at + fmt.Sprintf("lossy links for %s", f.For)
	case OldDisk:
		return at + fmt.Sprintf("backup of n%d, restored after %s", f.Node, f.For)
	case Gone, Cancel:
		return at + fmt.Sprintf("%s n%d", f.Kind, f.Node)
	case Away:
		return at + fmt.Sprintf("away n%d for %s, announced for %s", f.Node, f.For, f.announced())
	case Dismiss, Role:
		return at + fmt.Sprintf("%s u%d", f.Kind, f.Other)
	}
	return at + fmt.Sprintf("%s n%d for %s", f.Kind, f.Node, f.For)
}

// String tells the plan in words.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d nodes, connection time %s, faults for %s\n", p.Seed, p.Nodes, p.ConnectionTime,
		p.Length)
	if p.Keep > 0 || p.Room > 0 {
		fmt.Fprintf(&b, "what has ended is kept for %s, %d bytes of facts are taken (0: any)\n", p.Keep, p.Room)
	}
	fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(p.Workflow))
	for _, name := range slices.Sorted(maps.Keys(p.Pins)) {
		fmt.Fprintf(&b, "# %s at n%d\n", name, p.Pins[name])
	}
	for i, u := range p.Users {
		fmt.Fprintf(&b, "# user u%d with roles %v at nodes %v\n", i, u.Roles, u.At)
	}
	b.WriteString("\n")
	for _, s := range p.Starts {
		fmt.Fprintf(&b, "%8s  start at n%d\n", s.At.Round(time.Second), s.Node)
	}
	for _, f := range p.Faults {
		b.WriteString(f.String() + "\n")
	}
	if v := p.Vanish; v != nil {
		fmt.Fprintf(&b, "n%d vanishes for good at event %d\n", v.Node, v.Event)
	}
	return b.String()
}

// often and seldom weigh the kinds of faults.
var (
	often = []FaultKind{
		Crash, Crash, CrashIn, CrashIn, Reboot, Cut, Cut, OneWay, Split, Split, Full, Pause, Sleep, Clock, Lossy,
	}
	seldom = []FaultKind{LostDisk, OldDisk, Gone, Lie, Lie, Cancel}
)

// Rough is the first seed whose tasks have compensations and whose faults come
// while instances run, and so long that partners expire and come back with what
// they did meanwhile. Seeds below it give the plans that they always gave.
const Rough = 10_000

// Peopled is the first seed whose people's tasks have roles, and whose work is
// distributed by mechanisms.
const Peopled = 700_000

// Stopped is the first seed with nodes that are stopped in good order and started
// again, most of them within their connectionTime. Those of hostile plans are not.
const Stopped = 900_000

// stops adds them.
func stops(r *rand.Rand, p *Plan) {
	for range 1 + r.IntN(4) {
		p.Faults = append(p.Faults, Fault{
			At: min(p.Starts[r.IntN(len(p.Starts))].At+time.Duration(r.Int64N(int64(20*time.Minute*p.Scale))),
				p.Length-1),
			Kind: Stop, Node: r.IntN(p.Nodes), For: time.Second + time.Duration(r.Int64N(int64(p.ConnectionTime*3/2))),
		})
	}
}

// roughen has more instances started, faults come soon after that, and half of
// those that keep partners apart last for about as long as these take to expire.
func roughen(r *rand.Rand, p *Plan) {
	p.ConnectionTime = []time.Duration{3, 3, 5, 10}[r.IntN(4)] * time.Minute
	for range 2 + r.IntN(3) {
		p.Starts = append(p.Starts, Start{
			At: 10*time.Second + time.Duration(r.Int64N(int64(p.Length/2))), Node: r.IntN(p.Nodes),
		})
	}
	for range 4 + r.IntN(8) {
		p.Faults = append(p.Faults, randomFault(r, *p))
	}
	for i := range p.Faults {
		f := &p.Faults[i]
		f.At = min(p.Starts[r.IntN(len(p.Starts))].At+time.Duration(r.Int64N(int64(20*time.Minute*p.Scale))),
			p.Length-1)
		switch f.Kind {
		case Cut, OneWay, Split, Crash, Pause:
			if r.IntN(2) == 0 {
				f.For = p.ConnectionTime/2 + time.Duration(r.Int64N(int64(3*p.ConnectionTime)))
			}
		}
	}
}

// prompt reports whether the nodes do noop and set themselves, in the step in which they begin
// (node.Parts.Instant): in every second of the later seeds of each kind.
func (p Plan) prompt() bool {
	from := uint64(990_000)
	for _, kind := range []struct{ first, from uint64 }{
		{Hostile, 1_160_000}, {Strained, 2_160_000}, {Claimed, 20_050_000}, {Equipped, 30_050_000}, {Linked, 40_050_000},
		{Driven, Driven},
	} {
		if p.Seed >= kind.first {
			from = kind.from
		}
	}
	return p.Seed >= from && p.Seed%4 < 2
}

// NewPlan makes the plan of a seed.
func NewPlan(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0x6d757469))
	p := Plan{Seed: seed, Nodes: 2 + r.IntN(4), Scale: time.Duration(1 + r.IntN(4))}
	strains := rand.New(rand.NewPCG(seed, 7))
	claims := rand.New(rand.NewPCG(seed, 8))
	equipped := seed >= Equipped && seed < Linked
	strained, claimed := seed >= Strained && seed < Claimed, seed >= Claimed && (!equipped || seed%2 == 1)
	p.Length = time.Duration(30+r.IntN(90)) * time.Minute * p.Scale
	p.ConnectionTime = []time.Duration{3, 10, 15, 30}[r.IntN(4)] * time.Minute
	pace := Pace{Minute: p.Scale * time.Minute, Second: time.Second}
	if seed >= Rough {
		pace.Undo = rand.New(rand.NewPCG(seed, 3))
	}
	if seed >= Peopled {
		pace.People = rand.New(rand.NewPCG(seed, 5))
	}
	if strained {
		pace.situation = strain(strains, &p)
	}
	if claimed {
		pace.Claims = claims
		p.enlist(claims)
	}
	if p.drives() {
		p.Workflow, p.Pins = randomFlow(r, p.Nodes, pace)
	} else {
		p.Workflow, p.Pins = RandomWorkflow(r, p.Nodes, pace)
	}
	if p.loops() {
		p.Workflow = looped(rand.New(rand.NewPCG(seed, 14)), p.Workflow)
	}
	for range 1 + r.IntN(3) {
		p.Starts = append(p.Starts, Start{
			At: 10*time.Second + time.Duration(r.Int64N(int64(p.Length/3))), Node: r.IntN(p.Nodes),
		})
	}
	for range r.IntN(14) {
		p.Faults = append(p.Faults, randomFault(r, p))
	}
	if seed >= Rough {
		roughen(rand.New(rand.NewPCG(seed, 4)), &p)
	}
	if seed >= Hostile && (!claimed && !equipped || claims.IntN(5) == 0) {
		harden(rand.New(rand.NewPCG(seed, 6)), &p)
	}
	if seed >= Stopped && seed < Hostile {
		stops(rand.New(rand.NewPCG(seed, 7)), &p)
	}
	if strained {
		befall(strains, &p, pace.situation)
	}
	if claimed {
		p.Workflow = administer(rand.New(rand.NewPCG(seed, 9)), p.Workflow)
		if p.links() {
			link(rand.New(rand.NewPCG(seed, 12)), &p)
		} else {
			p.Workflow = offered(rand.New(rand.NewPCG(seed, 10)), p.Workflow)
		}
		dispute(claims, &p)
	}
	if p.absent() {
		p.leaves(rand.New(rand.NewPCG(seed, 15)))
	}
	if p.drives() {
		p.part(rand.New(rand.NewPCG(seed, 13)))
	}
	if equipped {
		equip(rand.New(rand.NewPCG(seed, 11)), &p)
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return p
}

func randomFault(r *rand.Rand, p Plan) Fault {
	f := Fault{
		At: time.Duration(r.Int64N(int64(p.Length))), Kind: often[r.IntN(len(often))], Node: r.IntN(p.Nodes),
		Other: r.IntN(3),
		For:   time.Duration(1+r.IntN(60)) * time.Second,
	}
	if r.IntN(9) == 0 {
		f.Kind = seldom[r.IntN(len(seldom))]
	}
	if r.IntN(3) == 0 || f.Kind == OldDisk || f.Kind == Lie {
		f.For = time.Duration(1+r.IntN(30)) * time.Minute * p.Scale
	}
	if f.Kind == Clock { // by minutes at least, and not by nothing
		f.For, f.Other = f.For*30, (f.Other+1)/2*2
	}
	if f.Kind == Cut || f.Kind == OneWay {
		f.Other = (f.Node + 1 + r.IntN(p.Nodes-1)) % p.Nodes
	}
	return f
}
