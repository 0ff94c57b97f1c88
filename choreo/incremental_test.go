package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// These tests compare what is kept up to date fact by fact with what a naive
// reading of the whole log gives.

// naive finds by walking what the log finds by numbers.
type naive struct{ log *Log }

// past is a fact's past, itself included.
func (n naive) past(e *entry) map[*entry]bool {
	seen := map[*entry]bool{}
	for todo := []*entry{e}; len(todo) > 0; todo = todo[1:] {
		if !seen[todo[0]] {
			seen[todo[0]] = true
			todo = append(todo, todo[0].parents...)
		}
	}
	return seen
}

// counting says which facts count as far as forks go.
func (n naive) counting() map[*entry]bool {
	l := n.log
	counts, vouchers := map[*entry]bool{}, map[*entry]map[workflow.PartnerID]bool{}
	for _, e := range slices.Backward(l.order) { // effects before causes
		author, c := e.fact.Chain.Author, e.strand.chain
		others := len(vouchers[e])
		if vouchers[e][author] {
			others--
		}
		by := vouchers[e]
		if c.forkedAt == 0 || e == l.genesis || (e.fact.Seq < c.forkedAt && len(c.strands) <= maxBranches) ||
			others > 0 {
			counts[e] = true
			if l.original[author] {
				by = map[workflow.PartnerID]bool{author: true}
				for p := range vouchers[e] {
					by[p] = true
				}
			}
		}
		for _, p := range e.parents {
			if vouchers[p] == nil {
				vouchers[p] = map[workflow.PartnerID]bool{}
			}
			for who := range by {
				vouchers[p][who] = true
			}
		}
	}
	return counts
}

// naiveRules reads the rule of one slot as it is written (workflow.View).
type naiveRules struct {
	s  *State
	of *Slot
}

func (v naiveRules) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	emergency := v.of.Task.TimeToWait > 0
	if sl := v.s.bySlot[t]; sl != nil {
		return contingency.Spared(sl.term(tr), emergency)
	}
	out := workflow.Finding{Truth: workflow.Impossible}
	for _, sl := range v.s.slots {
		if !slices.Contains(v.s.plan.Chain(sl.Task.Name), t) {
			continue
		}
		f := v.s.termOf(sl, tr, t)
		if f.Truth > out.Truth {
			out = f
		}
		out.ByFailure = out.ByFailure || (f.Truth == out.Truth && f.ByFailure)
	}
	return contingency.Spared(out, emergency)
}

func (v naiveRules) DataTerm(e *workflow.Expr) workflow.Finding {
	values := map[workflow.DataName]workflow.Value{}
	for n, w := range v.s.data {
		values[n] = w.value
	}
	val, err := e.Eval(workflow.Env{Data: values, Instance: v.s.log.instance.String()})
	if yes, ok := val.(bool); ok && yes && err == nil {
		return workflow.Finding{Truth: workflow.True}
	}
	open := v.of.Task.TimeToWait > 0
	for _, sl := range v.s.slots {
		for _, t := range v.s.plan.Chain(sl.Task.Name) {
			for _, n := range e.Names() {
				open = open || (!v.s.idle && sl != v.of && !sl.State.Done() && slices.Contains(v.s.def.Task(t).Out, n))
			}
		}
	}
	if open {
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return workflow.Finding{Truth: workflow.Impossible}
}

// state compares what is kept of rules, data and claims.
func (naive) state(s *State) error {
	for _, sl := range s.slots {
		got, want := sl.ruleComes(), sl.Task.Rule.Eval(naiveRules{s, sl})
		if got.Truth != want.Truth || got.ByFailure != want.ByFailure {
			return fmt.Errorf("the rule of %s comes to %v, want %v", sl.Task.Name, got, want)
		}
		s.judged = sl
		for _, a := range sl.Attempts {
			best := superseded
			for _, u := range a.users {
				if !s.props(u, a) {
					best = max(best, s.claim(u))
				}
			}
			if got := s.builtUpon(a); got != best {
				return fmt.Errorf("upon %s is built %d, want %d", a.ID, got, best)
			}
		}
	}
	for _, d := range s.def.Data {
		var all []*entry
		for _, sl := range s.slots {
			for _, a := range sl.Attempts {
				if _, ok := a.output(d.Name); ok {
					all = append(all, a.wrote)
				}
			}
		}
		if len(all) == 0 {
			continue
		}
		cur := slices.MaxFunc(all, byTime)
		conflict := slices.ContainsFunc(all, func(e *entry) bool { return e != cur && !s.log.knew(cur, e) })
		if s.data[d.Name].by != cur || s.conflicts[d.Name] != conflict {
			return fmt.Errorf("%s is by %s (conflict %t), want by %s (%t)", d.Name, s.data[d.Name].by.id.Short(),
				s.conflicts[d.Name], cur.id.Short(), conflict)
		}
	}
	going := slices.ContainsFunc(s.slots,
		func(sl *Slot) bool { return !sl.State.Done() || (sl.Pending != nil && sl.Pick == nil) })
	if s.cancel == nil && going != (s.overall() == workflow.InstanceRunning) {
		return fmt.Errorf("the instance is %s, going on: %t", s.overall(), going)
	}
	return nil
}

// desk compares what a machine has at hand with what all its slots say.
func (naive) desk(m *Machine) error {
	d := m.look()
	atWork, inHand := 0, time.Duration(0)
	left, begun, unjudged := map[workflow.PartitionName]int{}, map[workflow.PartitionName]int{},
		map[workflow.PartnerID]int{}
	for _, sl := range m.state.slots {
		x := m.show(sl)
		if x.todo && !d.todo[sl] || x.clocked != d.clocked[sl] || x.others != d.others[sl] ||
			x.undoing != d.undoing[sl] || x.apart != d.apart[sl] {
			return fmt.Errorf("%s is not on the desk as it should be: %+v", sl.Task.Name, x)
		}
		atWork += one(x.atWork)
		left[m.state.plan.Home(sl.Task.Name)] += one(x.left)
		begun[m.state.plan.Home(sl.Task.Name)] += one(x.begun)
		if x.own {
			inHand += x.expected
		}
		if x.unjudged != "" {
			unjudged[x.unjudged]++
		}
	}
	for p, n := range left {
		if x := d.part(p); x.left != n || x.begun != begun[p] {
			return fmt.Errorf("of %s %d slots are left and %d begun, want %d and %d", p, x.left, x.begun, n, begun[p])
		}
	}
	for p, n := range unjudged {
		if d.unjudged[p] != n {
			return fmt.Errorf("%d slots of %s are not judged, want %d", d.unjudged[p], p, n)
		}
	}
	if atWork != d.atWork || inHand != d.inHand {
		return fmt.Errorf("at work at %d for %s, want %d for %s", d.atWork, d.inHand, atWork, inHand)
	}
	return nil
}

// answers compares what is kept of the partitions that owe an answer.
func (naive) answers(m *Machine) error {
	d := m.look()
	for _, g := range m.state.genesis.Assign {
		left := []*Attempt(nil)
		for _, sl := range m.state.slots {
			if sl.Dropped == nil && sl.unjudged() && m.state.countsIn(g.Partition, sl.Current) {
				left = append(left, sl.Current)
			}
		}
		part := d.part(g.Partition)
		if total := m.state.answerTime(g.Partition, left); total != m.state.plan.Timeout(g.Partition)+part.waits {
			return fmt.Errorf("%s waits for triggers for %s, want an answer within %s", g.Partition, part.waits, total)
		}
		if got := m.unfinishedIn(g.Partition); !slices.Equal(got, left) || part.answers != len(left) {
			return fmt.Errorf("%s answers for %d (%d), want %d", g.Partition, len(got), part.answers, len(left))
		}
		if m.keptForEver(g.Partition) && !m.endless {
			return fmt.Errorf("%s may be kept for ever, and all is said to end", g.Partition)
		}
		before, worst := map[name]bool{}, time.Duration(0)
		for _, t := range m.state.plan.Partition(g.Partition).Tasks {
			for n := range m.state.namesFor(t) {
				tasks := []workflow.TaskName{n.task}
				if n.data != "" {
					tasks = m.state.def.Writers(n.data)
				}
				for _, pred := range tasks {
					for _, sl := range m.state.slotsOf(pred) {
						if m.state.plan.Home(sl.Task.Name) == g.Partition {
							continue
						}
						if !sl.State.Done() {
							before[n] = true
						}
						if end, known := m.state.plan.WorstEnd(sl.Task.Name); known {
							worst = max(worst, end)
						} else {
							worst = forEver
						}
					}
				}
			}
		}
		if got := m.before(g.Partition).worst; got != worst {
			return fmt.Errorf("what is before %s ends at %s at worst, want %s", g.Partition, got, worst)
		}
		if got := m.before(g.Partition).before; got != len(before) {
			return fmt.Errorf("%s waits for %d names, want %d", g.Partition, got, len(before))
		}
	}
	return nil
}

// clocks compares the own clocks with what is held, after a decision.
func (naive) clocks(m *Machine) error {
	c, want := &m.clocks, map[waits.Key]bool{}
	if !m.heeded() || len(m.state.moved) > 0 || len(c.fresh) > 0 || c.made != m.state.made || c.outdated {
		return nil // nothing was decided since
	}
	for _, sl := range m.state.slots {
		for _, a := range sl.Attempts {
			if a.Partner == m.self && a.undoing() && a.undo.Task.Timeout > 0 {
				want[waits.Key{Kind: waits.Timeout, Name: a.undo.ID.String()}] = true
			}
		}
		a := sl.Current
		trigger := waits.Key{Kind: waits.Trigger, Name: string(sl.Task.Name)}
		switch {
		case !c.goesOn || a.Partner != m.self || !m.state.wanted(a):
		case m.state.armed(sl):
			want[trigger] = m.state.predecessorReady(sl) || c.Get(trigger) != nil
		case (a.start != nil || a.mayStart()) && a.Task.Timeout > 0:
			want[waits.Key{Kind: waits.Timeout, Name: a.ID.String()}] = true
		}
	}
	for k, wanted := range want {
		if wanted && c.Get(k) == nil {
			return fmt.Errorf("no clock runs for %v", k)
		}
	}
	for k := range c.Own() {
		if !want[k] {
			return fmt.Errorf("a clock runs for %v", k)
		}
	}
	return nil
}

// peers compares which partners take part, and which are owed something.
func (naive) peers(m *Machine) error {
	s := m.state
	all := slices.Clone(s.genesis.Succession)
	var later []workflow.PartnerID
	for p := range s.joined {
		if _, first := s.rank[p]; !first {
			later = append(later, p)
		}
	}
	slices.SortFunc(later, func(a, b workflow.PartnerID) int {
		return cmp.Or(byTime(s.joined[a][0], s.joined[b][0]), cmp.Compare(a, b))
	})
	if all = append(all, later...); !slices.Equal(all, s.Participants()) {
		return fmt.Errorf("participants are %v, want %v", s.Participants(), all)
	}
	due := slices.DeleteFunc(all, func(p workflow.PartnerID) bool { return !m.due(p) })
	if got := m.allDue(); !slices.Equal(got, due) {
		return fmt.Errorf("due are %v, want %v", got, due)
	}
	return nil
}

// kept compares what a machine keeps up to date beside the state.
func (n naive) kept(m *Machine) error {
	return errors.Join(n.clocks(m), n.desk(m), n.answers(m), n.peers(m))
}

// check compares a machine's log and state with a naive reading of the same facts.
func (n naive) check(m *Machine, r *rand.Rand) error {
	l := m.log
	for range 5 {
		f, g := l.order[r.IntN(len(l.order))], l.order[r.IntN(len(l.order))]
		if got, want := l.knew(f, g), n.past(f)[g]; got != want {
			return fmt.Errorf("%s knew of %s: %t, want %t", f.id.Short(), g.id.Short(), got, want)
		}
	}
	counts := n.counting()
	for _, e := range l.order {
		if got := l.forks == 0 || e.fact.Seq <= e.strand.good; got != counts[e] {
			return fmt.Errorf("fact %d of %s, %s, counts as far as forks go: %t, want %t", e.fact.Seq,
				e.fact.Chain.Author, e.id.Short(), got, counts[e])
		}
	}
	if err := errors.Join(n.state(m.state), n.kept(m)); err != nil {
		return err
	}
	kept := m.Fingerprint()
	m.state.reset()
	m.state.settle()
	if diff := firstDifference(kept, m.Fingerprint()); diff != "" {
		return fmt.Errorf("kept up to date, and applied again: %s", diff)
	}
	return nil
}

// anyFact is a fact of anybody: most go on where a chain ends, some fork it.
func anyFact(r *rand.Rand, m *Machine, forks bool) Received {
	l := m.log
	body := anyBody(r, m)
	author := []workflow.PartnerID{"ann", "bob", "cy", "dan", "stranger"}[r.IntN(5)]
	if a := m.state.attempts[aboutOf(&body)]; a != nil && r.IntN(5) > 0 {
		author = a.Partner
		if r.IntN(3) == 0 { // a result that counts
			out := map[workflow.DataName]workflow.Value{}
			for _, n := range a.Task.Out {
				out[n] = int64(r.IntN(4))
			}
			body = Body{Success: &Success{Attempt: a.ID, Try: 1, Outputs: out}}
		}
	}
	f := &Fact{
		Format: FormatFact, Instance: l.instance,
		Chain: Chain{Author: author, Incarnation: Incarnation{byte(r.IntN(2))}}, Seq: 1, Body: body,
	}
	if c := l.index[f.Chain]; c != nil && (!forks || r.IntN(40) > 0) {
		s := c.strands[r.IntN(len(c.strands))]
		prev := s.last()
		if forks && r.IntN(12) == 0 {
			prev = s.facts[r.IntN(len(s.facts))]
		}
		f.Seq, f.Prev = prev.fact.Seq+1, prev.id
	}
	for range r.IntN(3) {
		f.Seen = append(f.Seen, l.order[max(0, len(l.order)-1-r.IntN(8))].head())
	}
	if f.Seq == 1 {
		f.Seen = append(f.Seen, l.order[r.IntN(len(l.order))].head())
	}
	slices.SortFunc(f.Seen, Head.compare)
	f.Seen = slices.Compact(f.Seen)
	raw, _, err := f.Encode()
	if err != nil {
		return Received{Fact: l.genesis.fact, ID: l.genesis.id, Raw: l.genesis.raw}
	}
	g, id, err := DecodeFact(raw)
	if err != nil {
		return Received{Fact: l.genesis.fact, ID: l.genesis.id, Raw: l.genesis.raw}
	}
	return Received{Fact: g, ID: id, Raw: raw, Att: &Attestation{}}
}

// aboutOf is the attempt that a fact of its holder is about, if it is such a fact.
func aboutOf(b *Body) AttemptID {
	switch {
	case b.Start != nil:
		return b.Start.Attempt
	case b.Success != nil:
		return b.Success.Attempt
	case b.TryFailed != nil:
		return b.TryFailed.Attempt
	case b.Child != nil:
		return b.Child.Attempt
	case b.Lease != nil:
		return b.Lease.Attempt
	case b.CalledOff != nil:
		return b.CalledOff.Attempt
	case b.Ready != nil:
		return b.Ready.Attempt
	}
	return AttemptID{}
}

// TestKeptUpToDate: after every step of histories with forks, strangers and slots
// that several hold, the state is what the same facts give when they are applied
// from nothing.
func TestKeptUpToDate(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	forks, contested := 0, 0
	for i := range seeds + 1 {
		seed := i
		if i == seeds {
			seed = 2528 // a fork took away what had shown who knew what
		}
		r := rand.New(rand.NewPCG(seed, 10))
		w := randomMesh(t, r.IntN)
		w.lies = true
		m := w.nodes["ann"].m
		for step := range 30 {
			var batch []Received
			for range 1 + r.IntN(3) {
				batch = append(batch, anyFact(r, m, seed%3 > 0))
			}
			if _, err := m.Receive("somebody", batch); err != nil && !errors.Is(err, ErrMissingPast) &&
				!errors.Is(err, ErrFactInvalid) {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if r.IntN(4) == 0 {
				w.step(w.nodes["ann"])
			}
			if err := (naive{m.log}).check(m, r); err != nil {
				t.Fatalf("seed %d, step %d: %v\n%s", seed, step, err, w.def.Canonical())
			}
		}
		forks += min(m.log.forks, 1)
		if m.state.contested {
			contested++
		}
	}
	t.Logf("of %d histories %d had forks, %d contested slots", seeds, forks, contested)
	if forks < int(seeds)/4 || contested < int(seeds)/4 {
		t.Error("too few of them")
	}
}
