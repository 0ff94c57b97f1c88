package choreo

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestConvergenceOfSplitHistories has partners act in random histories with
// splits and heals, as the model of the convergence rule does: they start,
// succeed, call off, judge whom they cannot reach (and sometimes whom they
// can), compensate what is superseded and settled. Then all meet. From there on
// no verdict changes, and nothing that was compensated stands in the end.
//
// The facts are written directly: what is tested is the meaning of facts
// (choreo/state/converge.go), not who decides when to write them.
func TestConvergenceOfSplitHistories(t *testing.T) {
	histories := sample.Of(5_000, 20_000)
	if testing.Short() {
		histories = 2_000
	}
	var defs []*splitDefinition
	for seed := range uint64(150) {
		defs = append(defs, newSplitDefinition(t, rand.New(rand.NewPCG(seed, 1))))
	}
	seen := map[string]int{}
	for seed := range uint64(histories) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := newSplit(t, defs[r.IntN(len(defs))], r)
		for _, wrong := range s.run(seen) {
			t.Errorf("history %d: %s\n%s", seed, wrong, s.def.src)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	for _, rare := range []string{"duplicated", "superseded", "held", "compensated", "two verdicts", "verdict lifted"} {
		if seen[rare] == 0 {
			t.Errorf("no history had %q: the test does not test it", rare)
		}
	}
	t.Logf("%d histories, of which had: %v", histories, seen)
}

// splitDefinition is a definition with a slot for each partition.
type splitDefinition struct {
	src  string
	def  *workflow.Definition
	plan *partition.Plan
}

func newSplitDefinition(t *testing.T, r *rand.Rand) *splitDefinition {
	var tasks, parts strings.Builder
	for i := range 2 + r.IntN(3) {
		keys, after := []string{"compensate: noop"}, []string(nil)
		for j := range i {
			if r.IntN(10) < 6 {
				after = append(after, fmt.Sprintf("s%d", j))
			}
		}
		if len(after) > 0 {
			keys = append(keys, "after: ["+strings.Join(after, ", ")+"]")
		}
		keys = append(keys, "reconcile: "+[]string{"keep-first", "keep-original", "keep-replacement"}[r.IntN(3)])
		switch r.IntN(4) {
		case 0:
			keys = append(keys, "on-failure: release")
		case 1:
		default:
			keys = append(keys, fmt.Sprintf("on-failure: {contingency: c%d}", i))
			fmt.Fprintf(&tasks, "  c%d: {on-failure: {contingency: d%d}, compensate: noop}\n  d%d: {compensate: noop}\n", i, i, i)
		}
		fmt.Fprintf(&tasks, "  s%d: {%s}\n", i, strings.Join(keys, ", "))
		fmt.Fprintf(&parts, "  p%d: [s%d]\n", i, i)
	}
	src := "workflow: split\ntasks:\n" + tasks.String() + "partitions:\n" + parts.String()
	def := parse(t, src)
	return &splitDefinition{src, def, partition.New(def)}
}

// split is one history.
type split struct {
	t      *testing.T
	r      *rand.Rand
	def    *splitDefinition
	nodes  []*Machine
	groups [][]int
	slow   int // percent of guardians' chances to judge somebody who is there
}

func newSplit(t *testing.T, d *splitDefinition, r *rand.Rand) *split {
	s := &split{t: t, r: r, def: d, slow: []int{3, 20}[r.IntN(2)]}
	n := 3 + r.IntN(3)
	g := &fact.Genesis{Definition: d.def.Hash(), Coordination: workflow.Choreography}
	for i := range n {
		g.Succession = append(g.Succession, workflow.PartnerID(fmt.Sprintf("n%d", i)))
		s.groups = append(s.groups, nil)
		s.groups[0] = append(s.groups[0], i)
	}
	s.groups = s.groups[:1]
	for _, p := range d.plan.Partitions() {
		g.Assign = append(g.Assign, fact.Placement{Partition: p.Name, Partner: g.Succession[r.IntN(n)]})
	}
	first, err := Create(Self{Partner: "n0", Incarnation: fact.Incarnation{1}, Trust: testTrust{}}, d.def, d.plan, g,
		nil,
		Moment{})
	if err != nil {
		t.Fatal(err)
	}
	s.nodes = []*Machine{first}
	for _, p := range g.Succession[1:] {
		m, err := Open(Self{Partner: p, Incarnation: fact.Incarnation{1}, Trust: testTrust{}}, d.def, d.plan,
			received(first)[0])
		if err != nil {
			t.Fatal(err)
		}
		s.nodes = append(s.nodes, m)
	}
	return s
}

// run lives the history and tells what went wrong.
func (s *split) run(seen map[string]int) (wrong []string) {
	for range 20 + s.r.IntN(40) {
		if s.r.IntN(100) < 12 {
			s.regroup()
		}
		if s.r.IntN(100) < 40 {
			s.sync()
		}
		s.act(s.r.IntN(len(s.nodes)), false)
	}
	s.heal()
	before := s.verdicts()
	starts := s.starts()
	picked := s.picked()
	for moved := true; moved; {
		moved = false
		for i := range s.nodes {
			moved = s.act(i, true) || moved
			s.heal()
		}
	}
	s.note(seen)
	return append(s.changed(before), append(s.startedAgain(starts, picked), s.amiss()...)...)
}

// regroup splits the nodes into one to three groups that hear each other.
func (s *split) regroup() {
	k := []int{1, 2, 2, 3}[s.r.IntN(4)]
	s.groups = make([][]int, k)
	for i, n := range s.r.Perm(len(s.nodes)) {
		s.groups[i%k] = append(s.groups[i%k], n)
	}
	s.groups = slices.DeleteFunc(s.groups, func(g []int) bool { return len(g) == 0 })
	for _, g := range s.groups {
		slices.Sort(g)
	}
}

func (s *split) group(n int) []int {
	return s.groups[slices.IndexFunc(s.groups, func(g []int) bool { return slices.Contains(g, n) })]
}

// sync has news spread in each group: sometimes only one way between two.
func (s *split) sync() {
	for _, g := range s.groups {
		if s.r.IntN(2) == 0 && len(g) > 1 {
			p := s.r.Perm(len(g))
			s.tell(g[p[0]], g[p[1]])
			continue
		}
		s.share(g)
	}
}

func (s *split) share(g []int) {
	for _, a := range g[1:] {
		s.tell(a, g[0])
	}
	for _, a := range g[1:] {
		s.tell(g[0], a)
	}
}

func (s *split) heal() {
	all := make([]int, len(s.nodes))
	for i := range all {
		all[i] = i
	}
	s.groups = [][]int{all}
	s.share(all)
}

// tell gives b what a has.
func (s *split) tell(a, b int) {
	var lacks []fact.Received
	for _, e := range s.nodes[a].log.Order() {
		if !s.nodes[b].log.Has(e.ID) {
			lacks = append(lacks, fact.Received{Fact: e.Fact, ID: e.ID, Raw: e.Raw, Att: e.Att})
		}
	}
	if len(lacks) == 0 {
		return
	}
	if _, err := s.nodes[b].Receive(s.nodes[a].self, lacks); err != nil {
		s.t.Fatal(err)
	}
}

// act has a node do one of the things that it may do now. Quiet: all is known
// and nobody fails any more.
func (s *split) act(n int, quiet bool) bool {
	m := s.nodes[n]
	var may []fact.Body
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			if a.Partner == m.self && a.Success() == nil && a.Off == nil {
				may = append(may, s.ofHolder(m, a, quiet)...)
			}
		}
		if !quiet && s.group(n)[0] == n {
			may = append(may, s.ofGuardian(m, sl, n)...)
		}
	}
	may = append(may, s.cleanUp(m)...)
	if len(may) == 0 {
		return false
	}
	m.mustAppend(Moment{}, may[s.r.IntN(len(may))])
	return true
}

// ofHolder is what the holder of an attempt may do.
func (s *split) ofHolder(m *Machine, a *state.Attempt, quiet bool) []fact.Body {
	wanted := m.state.Wanted(a)
	success := fact.Body{Success: &fact.Success{Attempt: a.ID, Try: 1}}
	off := fact.Body{CalledOff: &fact.CalledOff{Attempt: a.ID}}
	switch {
	case a.Start == nil && wanted && !a.Slot.Held && s.rule(m, a.Slot):
		return []fact.Body{{Start: &fact.Start{Attempt: a.ID, Try: 1, Consumed: m.state.Consumed(a)}}}
	case a.Start == nil:
		return nil
	case wanted:
		return []fact.Body{success}
	case quiet:
		return []fact.Body{off}
	}
	return []fact.Body{off, success} // it may have been done before the news came
}

// rule reports whether all that a slot waits for has succeeded or was released.
func (s *split) rule(m *Machine, sl *state.Slot) bool {
	return sl.Task.Rule.Eval(state.View{S: m.state, Of: sl}).Truth == workflow.True
}

// ofGuardian are the verdicts that a guardian may give about a slot.
func (s *split) ofGuardian(m *Machine, sl *state.Slot, n int) []fact.Body {
	a := sl.Current
	if a.Success() != nil || sl.Outcome != nil || sl.Pending != nil || sl.Pick != nil {
		return nil
	}
	g := s.group(n)
	away := !slices.ContainsFunc(g, func(i int) bool { return s.nodes[i].self == a.Partner })
	if !(away && s.r.IntN(2) == 0) && s.r.IntN(100) >= s.slow {
		return nil
	}
	act := fact.Action{Attempt: a.ID, Kind: cmp.Or(a.Task.OnFailure, workflow.FailBlock), Task: a.Task.Contingency}
	if act.Task != "" {
		act.Partner = s.nodes[g[s.r.IntN(len(g))]].self
	}
	return []fact.Body{{Verdict: &fact.Verdict{Cause: fact.CauseExpired, Actions: []fact.Action{act}}}}
}

// cleanUp compensates what is superseded and settled, and says what was seen.
func (s *split) cleanUp(m *Machine) (may []fact.Body) {
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			switch {
			case a.Undoing() && a.Partner == m.self:
				may = append(may, fact.Body{Success: &fact.Success{Attempt: a.Undo.ID, Try: 1}})
			case !a.Lost():
			case a.Partner == m.self && m.state.MayUndo(a):
				may = append(may, fact.Body{Start: &fact.Start{Attempt: a.Undo.ID, Try: 1}})
			case m.own == nil || !m.state.KnewSuccesses(m.own, sl):
				may = append(may, fact.Body{Seen: &fact.Seen{}})
			}
		}
	}
	return may
}

// wasCompensated reports whether the undoing of an attempt was begun.
func wasCompensated(a *state.Attempt) bool { return a.Undo != nil && a.Undo.Start != nil }

// verdicts are which successes stand, at the first node.
func (s *split) verdicts() map[fact.ID]state.Stands {
	out := map[fact.ID]state.Stands{}
	for _, a := range s.attempts() {
		if a.Success() != nil {
			out[a.Success().ID] = a.Stands
		}
	}
	return out
}

func (s *split) attempts() (out []*state.Attempt) {
	for _, sl := range s.nodes[0].state.Slots() {
		out = append(out, sl.Attempts...)
	}
	return out
}

func (s *split) starts() map[fact.AttemptID]bool {
	out := map[fact.AttemptID]bool{}
	for _, a := range s.attempts() {
		out[a.ID] = a.Start != nil
	}
	return out
}

func (s *split) picked() map[workflow.TaskName]bool {
	out := map[workflow.TaskName]bool{}
	for _, sl := range s.nodes[0].state.Slots() {
		out[sl.Task.Name] = sl.Pick != nil
	}
	return out
}

// changed tells which verdicts on successes changed since all was known.
func (s *split) changed(before map[fact.ID]state.Stands) (wrong []string) {
	now := s.verdicts()
	for _, a := range s.attempts() {
		if e := a.Success(); e != nil {
			was, known := before[e.ID]
			if known && was != state.HeldBack && was != now[e.ID] {
				wrong = append(wrong, fmt.Sprintf("after all was known, the verdict on the success of %s at %s changed from %d to %d", a.ID, a.Partner, was, now[e.ID]))
			}
		}
	}
	return wrong
}

// startedAgain tells what was started after the heal although its slot had a value.
func (s *split) startedAgain(before map[fact.AttemptID]bool, picked map[workflow.TaskName]bool) (wrong []string) {
	for _, a := range s.attempts() {
		if a.Start != nil && !before[a.ID] && picked[a.Slot.Task.Name] {
			wrong = append(wrong, fmt.Sprintf("%s was started although its slot had succeeded", a.ID))
		}
	}
	return wrong
}

// amiss is what must never be when everything is known and at rest.
func (s *split) amiss() (wrong []string) {
	m := s.nodes[0]
	for _, o := range s.nodes[1:] {
		if d := firstDifference(m.Fingerprint(), o.Fingerprint()); d != "" {
			wrong = append(wrong, fmt.Sprintf("%s and %s differ: %s", m.self, o.self, d))
		}
	}
	for _, sl := range m.state.Slots() {
		wrong = append(wrong, s.amissIn(m, sl)...)
	}
	return wrong
}

func (s *split) amissIn(m *Machine, sl *state.Slot) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	stand, successes, compensated := 0, 0, 0
	for _, a := range sl.Attempts {
		if a.Start != nil && a.Success() == nil && a.Off == nil {
			say("%s runs although all is at rest", a.ID)
		}
		if a.Success() == nil {
			continue
		}
		successes++
		if wasCompensated(a) {
			compensated++
		}
		if a.Stands == state.Standing {
			stand++
			if wasCompensated(a) {
				say("%s was compensated and stands", a.ID)
			}
			wrong = append(wrong, s.amissBelow(m, a)...)
		}
	}
	switch {
	case successes > 0 && sl.Pick == nil:
		say("slot %s has successes and no value", sl.Task.Name)
	case successes > 0 && stand == 0:
		say("slot %s has successes and none stands", sl.Task.Name)
	case stand > 1 && !sl.Duplicated:
		say("slot %s has %d standing successes and is not marked duplicated", sl.Task.Name, stand)
	case successes > 0 && compensated == successes:
		say("every success of slot %s was compensated", sl.Task.Name)
	case sl.Held:
		say("slot %s is held although all is at rest", sl.Task.Name)
	case successes == 0 && sl.Outcome == nil && s.rule(m, sl):
		say("slot %s waits for nothing and nobody does it", sl.Task.Name)
	}
	return wrong
}

// amissBelow looks at what a standing success was built upon.
func (s *split) amissBelow(m *Machine, a *state.Attempt) (wrong []string) {
	if a.Start == nil {
		return nil
	}
	for from := range m.state.BuiltOn(a, a.Start) {
		if from.Stands != state.Standing {
			wrong = append(wrong, fmt.Sprintf("%s stands and was built upon %s, which does not", a.ID, from.ID))
		}
		if wasCompensated(from) {
			wrong = append(wrong, fmt.Sprintf("%s stands and was built upon %s, which was compensated", a.ID, from.ID))
		}
	}
	return wrong
}

// note counts what the history had in it.
func (s *split) note(seen map[string]int) {
	has := map[string]bool{}
	for _, sl := range s.nodes[0].state.Slots() {
		has["duplicated"] = has["duplicated"] || sl.Duplicated
		has["verdict lifted"] = has["verdict lifted"] || (sl.Outcome != nil && sl.Pick != nil)
		for _, a := range sl.Attempts {
			has["superseded"] = has["superseded"] || (a.Success() != nil && a.Stands == state.Superseded)
			has["compensated"] = has["compensated"] || wasCompensated(a)
			has["two verdicts"] = has["two verdicts"] || len(a.Rulings) > 1
			has["held"] = has["held"] ||
				(sl.Task.Reconcile == workflow.KeepReplacement && a.Success() != nil && a.Depth < sl.Pick.Depth)
		}
	}
	for what, yes := range has {
		if yes {
			seen[what]++
		}
	}
}
