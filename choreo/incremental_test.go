package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// These tests compare what is kept up to date fact by fact with what a naive
// reading of the whole log gives.

// naive finds by walking what the log finds by numbers.
type naive struct{ log *log.Log }

// past is a fact's past, itself included.
func (n naive) past(e *log.Entry) map[*log.Entry]bool {
	seen := map[*log.Entry]bool{}
	for todo := []*log.Entry{e}; len(todo) > 0; todo = todo[1:] {
		if !seen[todo[0]] {
			seen[todo[0]] = true
			todo = append(todo, todo[0].Parents...)
		}
	}
	return seen
}

// counting says which facts count as far as forks go.
func (n naive) counting() map[*log.Entry]bool {
	l := n.log
	counts, vouchers := map[*log.Entry]bool{}, map[*log.Entry]map[workflow.PartnerID]bool{}
	for _, e := range slices.Backward(l.Order()) { // effects before causes
		author, c := e.Fact.Chain.Author, e.Strand.Chain
		others := len(vouchers[e])
		if vouchers[e][author] {
			others--
		}
		by := vouchers[e]
		if c.ForkedAt == 0 || e == l.Genesis() || (e.Fact.Seq < c.ForkedAt && len(c.Strands) <= log.MaxBranches) ||
			others > 0 {
			counts[e] = true
			if l.Original()[author] {
				by = map[workflow.PartnerID]bool{author: true}
				for p := range vouchers[e] {
					by[p] = true
				}
			}
		}
		for _, p := range e.Parents {
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

// fill are the tasks that may fill a slot: by the definition of now, and those that somebody gave out or asked for by
// another.
func fill(s *state.State, sl *state.Slot) (out []*workflow.Task) {
	for _, t := range s.Plan().Chain(sl.Task.Name) {
		out = append(out, s.Definition().Task(t))
	}
	for _, a := range sl.Attempts {
		out = append(out, a.Task)
		for _, r := range a.Rulings {
			if t := s.Definition().Task(r.Action.Task); t != nil {
				out = append(out, t)
			}
		}
	}
	return out
}

// naiveRules reads the rule of one slot as it is written (workflow.View).
type naiveRules struct {
	s  *state.State
	of *state.Slot
}

func (v naiveRules) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	emergency := v.of.Task.TimeToWait > 0
	if sl := v.s.BySlot()[t]; sl != nil {
		return contingency.Spared(sl.Term(tr), emergency)
	}
	out := workflow.Finding{Truth: workflow.Impossible}
	for _, sl := range v.s.Slots() {
		if !slices.ContainsFunc(fill(v.s, sl), func(x *workflow.Task) bool { return x.Name == t }) ||
			!slices.Contains(v.s.Plan().Chain(sl.Task.Name), t) && v.asksFor(sl.Task.Name, t) {
			continue
		}
		f := v.s.TermOf(sl, tr, t)
		if f.Truth > out.Truth {
			out = f
		}
		out.ByFailure = out.ByFailure || (f.Truth == out.Truth && f.ByFailure)
	}
	return contingency.Spared(out, emergency)
}

// asksFor reports whether a task waits, by way of others or not, for one that only stands in for others, or for another
// such one that comes later by name.
func (v naiveRules) asksFor(from, t workflow.TaskName) bool {
	return slices.ContainsFunc(v.s.Definition().Predecessors(from), func(p workflow.TaskName) bool {
		if v.s.BySlot()[p] != nil {
			return v.asksFor(p, t)
		}
		return p >= t || slices.ContainsFunc(v.s.Slots(), func(sl *state.Slot) bool {
			return slices.Contains(v.s.Plan().Chain(sl.Task.Name), p) && v.asksFor(sl.Task.Name, t)
		})
	})
}

func (v naiveRules) DataTerm(e *workflow.Expr) workflow.Finding {
	values := map[workflow.DataName]workflow.Value{}
	for n, w := range v.s.Data() {
		values[n] = w.Value
	}
	val, err := e.Eval(workflow.Env{Data: values, Instance: v.s.Log().Instance().String()})
	if yes, ok := val.(bool); ok && yes && err == nil {
		return workflow.Finding{Truth: workflow.True}
	}
	open := v.of.Task.TimeToWait > 0
	for _, sl := range v.s.Slots() {
		for _, t := range fill(v.s, sl) {
			for _, n := range e.Names() {
				open = open || (!v.s.Idle() && sl != v.of && !sl.State.Done() && slices.Contains(t.Out, n))
			}
		}
	}
	if open {
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return workflow.Finding{Truth: workflow.Impossible}
}

// state compares what is kept of rules, data and claims.
func (naive) state(s *state.State) error {
	for _, sl := range s.Slots() {
		got, want := sl.RuleComes(), sl.Task.Rule.Eval(naiveRules{s, sl})
		if got.Truth != want.Truth || got.ByFailure != want.ByFailure {
			return fmt.Errorf("the rule of %s comes to %v, want %v", sl.Task.Name, got, want)
		}
		s.Judged = sl
		for _, a := range sl.Attempts {
			best := state.Superseded
			for _, u := range a.Users {
				if !s.Props(u, a) {
					best = max(best, s.Claim(u))
				}
			}
			if got := s.BuiltUpon(a); got != best {
				return fmt.Errorf("upon %s is built %d, want %d", a.ID, got, best)
			}
		}
	}
	for _, d := range s.Definition().Data {
		var all []*log.Entry
		for _, sl := range s.Slots() {
			for _, a := range sl.Attempts {
				if _, ok := a.Output(d.Name); ok {
					all = append(all, a.Wrote)
				}
			}
		}
		if len(all) == 0 {
			continue
		}
		cur := slices.MaxFunc(all, log.ByTime)
		conflict := slices.ContainsFunc(all, func(e *log.Entry) bool { return e != cur && !s.Log().Knew(cur, e) })
		if s.Data()[d.Name].By != cur || s.Conflicts()[d.Name] != conflict {
			return fmt.Errorf("%s is by %s (conflict %t), want by %s (%t)", d.Name, s.Data()[d.Name].By.ID.Short(),
				s.Conflicts()[d.Name], cur.ID.Short(), conflict)
		}
	}
	going := slices.ContainsFunc(s.Slots(),
		func(sl *state.Slot) bool { return !sl.State.Done() || (sl.Pending != nil && sl.Pick == nil) })
	if s.Cancelled() == nil && going != (s.Overall() == workflow.InstanceRunning) {
		return fmt.Errorf("the instance is %s, going on: %t", s.Overall(), going)
	}
	return nil
}

// desk compares what a machine has at hand with what all its slots say.
func (naive) desk(m *Machine) error {
	d := m.look()
	atWork, inHand := 0, time.Duration(0)
	left, begun, unjudged := map[workflow.PartitionName]int{}, map[workflow.PartitionName]int{},
		map[workflow.PartnerID]int{}
	for _, sl := range m.state.Slots() {
		x := m.show(sl)
		if x.Todo && !d.todo[sl] || x.Clocked != d.clocked[sl] || x.Others != d.others[sl] ||
			x.Undoing != d.undoing[sl] || x.Apart != d.apart[sl] {
			return fmt.Errorf("%s is not on the desk as it should be: %+v", sl.Task.Name, x)
		}
		atWork += state.AsInt(x.AtWork)
		left[m.state.Plan().Home(sl.Task.Name)] += state.AsInt(x.Left)
		begun[m.state.Plan().Home(sl.Task.Name)] += state.AsInt(x.Begun)
		if x.Own {
			inHand += x.Expected
		}
		if x.Unjudged != "" {
			unjudged[x.Unjudged]++
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
	for _, g := range m.state.Genesis().Assign {
		left := []*state.Attempt(nil)
		for _, sl := range m.state.Slots() {
			if sl.Dropped == nil && sl.Unjudged() && m.state.CountsIn(g.Partition, sl.Current) {
				left = append(left, sl.Current)
			}
		}
		part := d.part(g.Partition)
		if total := m.state.AnswerTime(g.Partition, left); total != m.state.Plan().Timeout(g.Partition)+part.waits {
			return fmt.Errorf("%s waits for triggers for %s, want an answer within %s", g.Partition, part.waits, total)
		}
		if got := m.unfinishedIn(g.Partition); !slices.Equal(got, left) || part.answers != len(left) {
			return fmt.Errorf("%s answers for %d (%d), want %d", g.Partition, len(got), part.answers, len(left))
		}
		if m.keptForEver(g.Partition) && !m.endless {
			return fmt.Errorf("%s may be kept for ever, and all is said to end", g.Partition)
		}
		before, worst := map[state.Name]bool{}, time.Duration(0)
		for _, t := range m.state.Plan().Partition(g.Partition).Tasks {
			for n := range m.state.NamesFor(t) {
				tasks := []workflow.TaskName{n.Task}
				if n.Data != "" {
					tasks = m.state.Definition().Writers(n.Data)
				}
				for _, pred := range tasks {
					for _, sl := range m.state.SlotsOf(pred) {
						if m.state.Plan().Home(sl.Task.Name) == g.Partition {
							continue
						}
						if !sl.State.Done() {
							before[n] = true
						}
						if end, known := m.state.Plan().WorstEnd(sl.Task.Name); known {
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
	if !m.heeded() || m.state.HasMoved() || len(c.fresh) > 0 || c.made != m.state.Made() || c.outdated {
		return nil // nothing was decided since
	}
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			if a.Partner == m.self && a.Undoing() && a.Undo.Task.Timeout > 0 {
				want[waits.Key{Kind: waits.Timeout, Name: a.Undo.ID.String()}] = true
			}
		}
		a := sl.Current
		trigger := waits.Key{Kind: waits.Trigger, Name: string(sl.Task.Name)}
		switch {
		case !c.goesOn || a.Partner != m.self || !m.state.Wanted(a):
		case m.state.Armed(sl):
			want[trigger] = m.state.PredecessorReady(sl) || c.Get(trigger) != nil
		case (a.Start != nil || a.MayStart()) && a.Task.Timeout > 0:
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
	all := slices.Clone(s.Genesis().Succession)
	var later []workflow.PartnerID
	for p := range s.Joined() {
		if !slices.Contains(s.Genesis().Succession, p) {
			later = append(later, p)
		}
	}
	slices.SortFunc(later, func(a, b workflow.PartnerID) int {
		return cmp.Or(log.ByTime(s.Joined()[a][0], s.Joined()[b][0]), cmp.Compare(a, b))
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
		f, g := l.Order()[r.IntN(len(l.Order()))], l.Order()[r.IntN(len(l.Order()))]
		if got, want := l.Knew(f, g), n.past(f)[g]; got != want {
			return fmt.Errorf("%s knew of %s: %t, want %t", f.ID.Short(), g.ID.Short(), got, want)
		}
	}
	counts := n.counting()
	for _, e := range l.Order() {
		if got := l.Forked() == 0 || e.Fact.Seq <= e.Strand.Good; got != counts[e] {
			return fmt.Errorf("fact %d of %s, %s, counts as far as forks go: %t, want %t", e.Fact.Seq,
				e.Fact.Chain.Author, e.ID.Short(), got, counts[e])
		}
	}
	if err := errors.Join(n.state(m.state), n.kept(m)); err != nil {
		return err
	}
	kept := m.Fingerprint()
	m.state.Reset()
	m.state.Settle()
	if diff := firstDifference(kept, m.Fingerprint()); diff != "" {
		return fmt.Errorf("kept up to date, and applied again: %s", diff)
	}
	return nil
}

// anyFact is a fact of anybody: most go on where a chain ends, some fork it.
func anyFact(r *rand.Rand, m *Machine, forks bool) fact.Received {
	l := m.log
	body := anyBody(r, m)
	author := []workflow.PartnerID{"ann", "bob", "cy", "dan", "stranger"}[r.IntN(5)]
	if a := m.state.Attempts()[aboutOf(&body)]; a != nil && r.IntN(5) > 0 {
		author = a.Partner
		if r.IntN(3) == 0 { // a result that counts
			out := map[workflow.DataName]workflow.Value{}
			for _, n := range a.Task.Out {
				out[n] = int64(r.IntN(4))
			}
			body = fact.Body{Success: &fact.Success{Attempt: a.ID, Try: 1, Outputs: out}}
		}
	}
	f := &fact.Fact{
		Format: fact.Format, Instance: l.Instance(),
		Chain: fact.Chain{Author: author, Incarnation: fact.Incarnation{byte(r.IntN(2))}}, Seq: 1, Body: body,
	}
	if c := l.Index()[f.Chain]; c != nil && (!forks || r.IntN(40) > 0) {
		s := c.Strands[r.IntN(len(c.Strands))]
		prev := s.Last()
		if forks && r.IntN(12) == 0 {
			prev = s.Facts[r.IntN(len(s.Facts))]
		}
		f.Seq, f.Prev = prev.Fact.Seq+1, prev.ID
	}
	for range r.IntN(3) {
		f.Seen = append(f.Seen, l.Order()[max(0, len(l.Order())-1-r.IntN(8))].Head())
	}
	if f.Seq == 1 {
		f.Seen = append(f.Seen, l.Order()[r.IntN(len(l.Order()))].Head())
	}
	slices.SortFunc(f.Seen, fact.Head.Compare)
	f.Seen = slices.Compact(f.Seen)
	raw, _, err := f.Encode()
	if err != nil {
		return fact.Received{Fact: l.Genesis().Fact, ID: l.Genesis().ID, Raw: l.Genesis().Raw}
	}
	g, id, err := fact.Decode(raw)
	if err != nil {
		return fact.Received{Fact: l.Genesis().Fact, ID: l.Genesis().ID, Raw: l.Genesis().Raw}
	}
	return fact.Received{Fact: g, ID: id, Raw: raw, Att: &fact.Attestation{}}
}

// aboutOf is the attempt that a fact of its holder is about, if it is such a fact.
func aboutOf(b *fact.Body) fact.AttemptID {
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
	return fact.AttemptID{}
}

// TestKeptUpToDate: after every step of histories with forks, strangers and slots
// that several hold, the state is what the same facts give when they are applied
// from nothing.
func TestKeptUpToDate(t *testing.T) {
	seeds := uint64(sample.Of(100, 300))
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
			var batch []fact.Received
			for range 1 + r.IntN(3) {
				batch = append(batch, anyFact(r, m, seed%3 > 0))
			}
			if _, err := m.Receive("somebody", batch); err != nil && !errors.Is(err, log.ErrMissingPast) &&
				!errors.Is(err, fact.ErrInvalid) {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if r.IntN(4) == 0 {
				w.step(w.nodes["ann"])
			}
			if err := (naive{m.log}).check(m, r); err != nil {
				t.Fatalf("seed %d, step %d: %v\n%s", seed, step, err, w.def.Canonical())
			}
		}
		forks += min(m.log.Forked(), 1)
		if m.state.Contested() {
			contested++
		}
	}
	t.Logf("of %d histories %d had forks, %d contested slots", seeds, forks, contested)
	if forks < int(seeds)/4 || contested < int(seeds)/4 {
		t.Error("too few of them")
	}
}
