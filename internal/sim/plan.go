package sim

import (
	"fmt"
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
}

// Start is an instance started at a node.
type Start struct {
	At   time.Duration
	Node int
}

// FaultKind says what goes wrong.
type FaultKind string

// The kinds of faults.
const (
	Crash   FaultKind = "crash"    // kill -9 between two steps, restarted after For
	CrashIn FaultKind = "crash-in" // kill -9 in a commit: before it is durable (Other 0) or after (Other 1)
	Cut     FaultKind = "cut"      // no frames between Node and Other
	OneWay  FaultKind = "one-way"  // no frames from Node to Other
	Split   FaultKind = "split"    // nodes up to Node on one side, the others on the other
	Full    FaultKind = "full"     // commits fail
	Pause   FaultKind = "pause"    // the process is stopped (SIGSTOP)
	Sleep   FaultKind = "sleep"    // the device is suspended
	Clock   FaultKind = "clock"    // the wall clock jumps by For × (Other-1)
	Lossy   FaultKind = "lossy"    // a third of all frames is lost or doubled
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
		return at + fmt.Sprintf("crash n%d in a commit, %s, for %s", f.Node, []string{"before it is durable", "after it is durable"}[f.Other%2], f.For)
	case Clock:
		return at + fmt.Sprintf("clock of n%d jumps by %s", f.Node, f.For*time.Duration(f.Other-1))
	case Lossy:
		return at + fmt.Sprintf("lossy links for %s", f.For)
	}
	return at + fmt.Sprintf("%s n%d for %s", f.Kind, f.Node, f.For)
}

// String tells the plan in words.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d nodes, faults for %s\n\n%s\n", p.Seed, p.Nodes, p.Length, strings.TrimSpace(p.Workflow))
	for part, n := range p.Pins {
		_ = part
		_ = n
	}
	for _, name := range sortedKeys(p.Pins) {
		fmt.Fprintf(&b, "# %s at n%d\n", name, p.Pins[name])
	}
	b.WriteString("\n")
	for _, s := range p.Starts {
		fmt.Fprintf(&b, "%8s  start at n%d\n", s.At.Round(time.Second), s.Node)
	}
	for _, f := range p.Faults {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	ks := make([]string, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

// NewPlan makes the plan of a seed.
func NewPlan(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0x6d757469))
	p := Plan{Seed: seed, Nodes: 2 + r.IntN(4), Length: time.Duration(30+r.IntN(90)) * time.Minute}
	p.Workflow, p.Pins = randomWorkflow(r, p.Nodes)
	for range 1 + r.IntN(3) {
		p.Starts = append(p.Starts, Start{At: 10*time.Second + time.Duration(r.Int64N(int64(p.Length/3))), Node: r.IntN(p.Nodes)})
	}
	kinds := []FaultKind{Crash, Crash, Crash, CrashIn, CrashIn, Cut, Cut, OneWay, Split, Split, Full, Pause, Sleep, Clock, Lossy}
	for range r.IntN(14) {
		f := Fault{
			At: time.Duration(r.Int64N(int64(p.Length))), Kind: kinds[r.IntN(len(kinds))], Node: r.IntN(p.Nodes), Other: r.IntN(3),
			For: time.Duration(1+r.IntN(60)) * time.Second,
		}
		if r.IntN(3) == 0 {
			f.For = time.Duration(1+r.IntN(30)) * time.Minute
		}
		if f.Kind == Cut || f.Kind == OneWay {
			f.Other = (f.Node + 1 + r.IntN(p.Nodes-1)) % p.Nodes
		}
		p.Faults = append(p.Faults, f)
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return p
}

// randomWorkflow makes a definition that Parse accepts, and places its partitions.
func randomWorkflow(r *rand.Rand, nodes int) (string, map[string]int) {
	n := 3 + r.IntN(7)
	var tasks, contingencies []string
	parts := map[int][]string{}
	minutes := func(lo, hi int) string { return fmt.Sprintf("%dm", lo+r.IntN(hi-lo)) }
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		var keys []string
		var preds []string
		for j := range i {
			if r.IntN(3) == 0 || (j == i-1 && r.IntN(2) == 0) {
				preds = append(preds, fmt.Sprintf("t%d", j))
			}
		}
		keys = append(keys, rule(r, preds)...)
		if len(preds) > 0 && r.IntN(6) == 0 {
			keys = append(keys, "time-to-wait: "+minutes(2, 30))
		}
		keys = append(keys, "timeout: "+minutes(5, 60))
		switch r.IntN(4) {
		case 0:
			keys = append(keys, "type: manual")
		case 1:
			keys = append(keys, "application: sleep", fmt.Sprintf("with: {for: %ds}", 1+r.IntN(300)))
		}
		switch r.IntN(6) {
		case 0:
			keys = append(keys, "on-failure: release")
		case 1, 2:
			c := fmt.Sprintf("x%d", i)
			keys = append(keys, "on-failure: {contingency: "+c+"}", "reconcile: "+[]string{"keep-first", "keep-original", "keep-replacement"}[r.IntN(3)])
			contingencies = append(contingencies, fmt.Sprintf("  %s: {application: sleep, with: {for: %ds}, timeout: %s}", c, 1+r.IntN(120), minutes(5, 30)))
		}
		tasks = append(tasks, fmt.Sprintf("  %s: {%s}", name, strings.Join(keys, ", ")))
		k := r.IntN(nodes)
		parts[k] = append(parts[k], name)
	}
	var b strings.Builder
	b.WriteString("workflow: random\ntasks:\n" + strings.Join(append(tasks, contingencies...), "\n") + "\npartitions:\n")
	pins := map[string]int{}
	for k := range nodes {
		if len(parts[k]) > 0 {
			fmt.Fprintf(&b, "  p%d: [%s]\n", k, strings.Join(parts[k], ", "))
			pins[fmt.Sprintf("p%d", k)] = k
		}
	}
	return b.String(), pins
}

// rule gives a task the keys that say when it runs.
func rule(r *rand.Rand, preds []string) []string {
	switch {
	case len(preds) == 0:
		return nil
	case r.IntN(5) == 0:
		terms := make([]string, len(preds))
		for i, p := range preds {
			terms[i] = fmt.Sprintf("%s(%q)", []string{"succeeded", "succeeded", "failed"}[r.IntN(3)], p)
		}
		return []string{"when: '" + strings.Join(terms, []string{" or ", " and "}[r.IntN(2)]) + "'"}
	}
	return []string{"after: [" + strings.Join(preds, ", ") + "]"}
}
