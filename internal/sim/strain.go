package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file makes what plans have from Strained on, beside the random rest: situations
// that chance alone brings about once in thousands of runs.

// Strained is the first seed whose plans have one situation each that is made on
// purpose, and some of them little room, a short memory for what has ended, liars that
// claim rights, and disks with entries that cannot be read. One in fifty is large.
const Strained = 2_000_000

// situation is a part of a definition, at certain nodes, and what goes wrong for it.
type situation struct {
	data   string
	tasks  []string         // lines
	places map[int][]string // at which node which tasks are
	// faults are those for an instance that starts at that moment.
	faults func(at time.Duration) []Fault
	calm   bool // nothing else goes wrong
	// connectionTime is that of the plan.
	connectionTime time.Duration
}

// What large results are called, the tasks that have them, and how many bytes they have.
const (
	big       = "big"
	survey    = "survey"
	bigResult = 24 << 10
)

// strain gives a plan its situation, before its workflow is made.
func strain(r *rand.Rand, p *Plan) *situation {
	p.ConnectionTime = []time.Duration{3, 3, 5, 10}[r.IntN(4)] * time.Minute
	bring := []func(*rand.Rand, *Plan) *situation{torn, torn, lifted, craneless, meeting, plain, plain}[r.IntN(7)]
	if r.IntN(50) == 0 {
		bring = crowd
	}
	s := bring(r, p)
	s.connectionTime = p.ConnectionTime
	return s
}

// need has a plan have so many nodes.
func (p *Plan) need(n int) { p.Nodes = max(p.Nodes, n) }

func plain(*rand.Rand, *Plan) *situation { return &situation{} }

// cutOff cuts a node off from all others.
func (p *Plan) cutOff(node int, at, long time.Duration) (out []Fault) {
	for i := range p.Nodes {
		if i != node {
			out = append(out, Fault{At: at, Kind: Cut, Node: node, Other: i, For: long})
		}
	}
	return out
}

// between is a random time of these bounds.
func between(r *rand.Rand, lo, hi time.Duration) time.Duration {
	return (lo + time.Duration(r.Int64N(int64(hi-lo)))).Round(time.Second)
}

func sleeps(name, more string, long, timeout time.Duration) string {
	return fmt.Sprintf("  %s: {application: sleep, with: {for: %s}, timeout: %s%s}", name,
		workflow.FormatDuration(long), workflow.FormatDuration(timeout), more)
}

// torn: a node is cut off while it works, is presumed gone, and another takes its task;
// both succeed. Then the node is back while it still works upon its own success. Now and then
// the other has work that is built upon one of the two once both are known.
func torn(r *rand.Rand, p *Plan) *situation {
	p.need(2)
	k := r.IntN(p.Nodes)
	o := (k + 1 + r.IntN(p.Nodes-1)) % p.Nodes
	reconcile := []string{
		"keep-first", "keep-original", "keep-replacement", "keep-replacement", "keep-replacement",
	}[r.IntN(5)]
	long := p.ConnectionTime + between(r, 2*time.Minute, 6*time.Minute)
	s := &situation{places: map[int][]string{k: {"s0", "s1"}}, tasks: []string{
		sleeps("s0", ", on-failure: {contingency: sx}, reconcile: "+reconcile, between(r, time.Minute, 2*time.Minute),
			time.Hour),
		sleeps("s1", ", after: s0", long+between(r, 5*time.Minute, 20*time.Minute), 2*time.Hour),
		sleeps("sx", "", between(r, time.Second, time.Minute), time.Hour),
	}}
	if r.IntN(3) == 0 {
		s.tasks = append(s.tasks, sleeps("s2", ", after: s0", between(r, time.Second, 10*time.Minute), time.Hour))
		// s4 begins when both successes are known, so it has to say upon which it builds
		s.tasks = append(s.tasks, sleeps("s3", "", long+10*time.Minute, 2*time.Hour),
			sleeps("s4", ", after: [s0, s3]", time.Minute, time.Hour))
		s.places[o] = []string{"s2", "s3", "s4"}
	}
	s.faults = func(at time.Duration) []Fault { return p.cutOff(k, at+30*time.Second, long) }
	return s
}

// lifted: what a task waits for was only presumed to have failed; it becomes ready when
// the time of another in its partition is half over.
func lifted(r *rand.Rand, p *Plan) *situation {
	p.need(3)
	const whole = 40 * time.Minute
	a := 1 + r.IntN(2)
	s := &situation{places: map[int][]string{a: {"s0"}, 3 - a: {"s1", "s2"}}, tasks: []string{
		sleeps("s0", "", between(r, time.Minute, 2*time.Minute), whole),
		sleeps("s1", ", after: s0", between(r, whole-4*time.Minute, whole-time.Minute), whole),
		sleeps("s2", "", between(r, whole-4*time.Minute, whole-time.Minute), whole),
	}}
	s.faults = func(at time.Duration) []Fault { // suspended, and not cut off, it judges nobody
		return []Fault{{At: at + 30*time.Second, Kind: Sleep, Node: a, For: p.ConnectionTime + 10*time.Minute}}
	}
	return s
}

// craneless: a contingency waits for the only node that can take it, for longer than
// the tasks behind it may take.
func craneless(r *rand.Rand, p *Plan) *situation {
	p.need(3)
	a := 1 + r.IntN(2)
	late := p.ConnectionTime + between(r, 3*time.Minute, 5*time.Minute)
	s := &situation{places: map[int][]string{a: {"s0", "s1"}, 3 - a: {"s2", "s3"}}, tasks: []string{
		sleeps("s0", "", late, time.Hour),
		"  s1: {after: s0, application: fail, timeout: 10m, on-failure: {contingency: sx}}",
		sleeps("sx", ", needs: ["+string(Crane)+"]", time.Minute, 10*time.Minute),
		sleeps("s2", ", after: s1", time.Minute, 10*time.Minute),
		sleeps("s3", "", time.Minute, 10*time.Minute),
	}}
	s.faults = func(at time.Duration) []Fault {
		return p.cutOff(craneAt, at+30*time.Second, late+between(r, 90*time.Minute, 2*time.Hour))
	}
	return s
}

// meeting: two nodes work cut off from all others, with large results; they meet a
// third and are gone for good, and the third has to hand it all on.
func meeting(r *rand.Rand, p *Plan) *situation {
	p.need(4)
	p.ConnectionTime = 10 * time.Minute // nobody judges meanwhile
	s := &situation{data: big + ": {type: string}", places: map[int][]string{}, calm: true}
	for i := range 20 {
		after := ""
		switch {
		case i >= 2 && r.IntN(3) == 0:
			after = fmt.Sprintf(", after: [%s%d, %s%d]", survey, i-2, survey, i-1)
		case i >= 2:
			after = fmt.Sprintf(", after: %s%d", survey, i-2)
		}
		name := fmt.Sprintf("%s%d", survey, i)
		s.tasks = append(s.tasks, sleeps(name, ", out: ["+big+"]"+after, between(r, 5*time.Second, 20*time.Second),
			time.Hour))
		s.places[1+i%2] = append(s.places[1+i%2], name)
	}
	for i := range 2 + r.IntN(3) { // the third's own, so that what it hands on is cut elsewhere
		name := fmt.Sprintf("%sx%d", survey, i)
		s.tasks = append(s.tasks, sleeps(name, ", out: ["+big+"]", between(r, 5*time.Second, time.Minute), time.Hour))
		s.places[3] = append(s.places[3], name)
	}
	s.faults = func(at time.Duration) (out []Fault) {
		from, apart, met := at+4*time.Second, 6*time.Minute, 40*time.Second
		cut := func(i, j int, long time.Duration) {
			out = append(out, Fault{At: from, Kind: Cut, Node: i, Other: j, For: long})
		}
		cut(0, 1, apart+time.Hour)
		cut(0, 2, apart+time.Hour)
		cut(0, 3, apart+2*met)
		cut(3, 1, apart)
		cut(3, 2, apart)
		return append(out, Fault{At: from + apart + met, Kind: Gone, Node: 1},
			Fault{At: from + apart + met, Kind: Gone, Node: 2})
	}
	return s
}

// crowd: a node holds more tasks than one verdict judges, and more facts than one frame
// takes; it is gone for good while it works on all of them. One task waits for all.
func crowd(r *rand.Rand, p *Plan) *situation {
	p.need(3)
	s := &situation{places: map[int][]string{0: {"s0"}, 2: {"sz"}}, calm: true}
	s.tasks = append(s.tasks, sleeps("s0", "", time.Second, time.Hour), sleeps("sx", "", time.Second, time.Hour))
	last := "  sz: {timeout: 1h, after: ["
	for i := range 140 + r.IntN(60) {
		name := fmt.Sprintf("r%d", i)
		last += name + ", "
		does := []string{", on-failure: release", ", on-failure: {contingency: sx}"}[r.IntN(2)]
		s.tasks = append(s.tasks, sleeps(name, ", after: s0"+does, between(r, time.Second, 30*time.Minute),
			2*time.Hour))
		s.places[1] = append(s.places[1], name)
	}
	s.tasks = append(s.tasks, last+"s0]}")
	s.faults = func(at time.Duration) (out []Fault) {
		if r.IntN(3) == 0 {
			return p.cutOff(1, at+30*time.Second, p.ConnectionTime+10*time.Minute)
		}
		return []Fault{{At: at + between(r, time.Minute, 20*time.Minute), Kind: Gone, Node: 1}}
	}
	return s
}

// befall adds what goes wrong in a situation, once instances have their starts, and what
// else strained plans have.
func befall(r *rand.Rand, p *Plan, s *situation) {
	p.ConnectionTime = s.connectionTime
	if s.calm || r.IntN(2) == 0 {
		p.Faults, p.Starts, p.Calm = nil, p.Starts[:1], true
	}
	if s.faults != nil { // all are well and know each other when it begins
		p.Starts[0] = Start{At: time.Minute, Node: r.IntN(p.Nodes)}
	}
	if s.faults != nil {
		p.Faults = append(p.Faults, s.faults(p.Starts[0].At)...)
	}
	if s.calm {
		return
	}
	if r.IntN(3) == 0 {
		p.Keep = between(r, 10*time.Minute, 40*time.Minute)
	}
	if r.IntN(3) == 0 {
		p.Room = 4 << 20
	}
	for _, kind := range []FaultKind{Usurp, Usurp, Heavy, Replay, Unread} {
		if r.IntN(3) == 0 {
			start := p.Starts[r.IntN(len(p.Starts))].At
			f := Fault{
				At: start + between(r, 0, 15*time.Minute*p.Scale), Kind: kind, Node: r.IntN(p.Nodes),
				For: between(r, time.Minute, 10*time.Minute*p.Scale),
			}
			if kind == Replay { // what is over by then
				f.At = between(r, p.Length/2, p.Length-time.Minute)
			}
			p.Faults = append(p.Faults, f)
		}
	}
}
