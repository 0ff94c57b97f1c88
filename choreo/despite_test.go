package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// givenBack is an instance of which two sees what one, three and others wrote. One and two
// took part from the start. Three came in by a verdict of two, which gave it d2.
type givenBack struct {
	w          *mesh
	m          *Machine // two's
	one, three *pen
	given      fact.AttemptID // three's, of slot d
	came       fact.Head      // by which three came in
}

func newGivenBack(t *testing.T) *givenBack {
	w := newMesh(t, parse(t, `
workflow: given-back
tasks:
  c:  {on-failure: {contingency: c2}}
  c2: {}
  d:  {after: c, on-failure: {contingency: d2}, reconcile: keep-original}
  d2: {on-failure: {contingency: d3}}
  d3: {}
  e:  {after: d, on-failure: {contingency: e2}}
  e2: {}
partitions:
  p1: [c, d, e]
`))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one"}
	if err := w.start("two", w.genesis(at, "two", "one")); err != nil {
		t.Fatal(err)
	}
	m := w.node("two").m
	g := &givenBack{w: w, m: m, one: penOf(t, m, "one", 7), three: penOf(t, m, "three", 7)}
	v := g.judge("d", "d2", "three")
	g.given, g.came = fact.AttemptID{Fact: v.ID, Slot: "d"}, v.Head()
	return g
}

// judge has two give a task to somebody else.
func (g *givenBack) judge(of, to workflow.TaskName, p workflow.PartnerID) *log.Entry {
	return g.m.mustAppend(g.w.moment(), fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseExpired,
		Actions: []fact.Action{
			{Attempt: fact.AttemptID{Slot: of}, Kind: workflow.FailContingency, Task: to, Partner: p}}}})
}

// begins has one write its chain's first fact.
func (g *givenBack) begins() fact.Received {
	return g.one.write(fact.Body{Seen: &fact.Seen{}}, g.m.log.Genesis().Head())
}

// forks is one's chain once more from its second fact on.
func (g *givenBack) forks(first fact.Received) fact.Received {
	other := *g.one
	other.seq, other.prev = first.Fact.Seq, first.ID
	return other.write(fact.Body{Seen: &fact.Seen{}}, g.m.log.Genesis().Head())
}

func startOf(a fact.AttemptID) fact.Body { return fact.Body{Start: &fact.Start{Attempt: a, Try: 1}} }
func successOf(a fact.AttemptID) fact.Body {
	return fact.Body{Success: &fact.Success{Attempt: a, Try: 1}}
}

// stays checks that a fact of three counts while a fork of one has taken away what three
// knew, and when two turns out to have built upon that.
func (g *givenBack) stays(t *testing.T, e, gone fact.Received) {
	t.Helper()
	is := func(r fact.Received) bool { return g.m.log.ByID()[r.ID].Counted }
	if is(gone) || !is(e) {
		t.Fatalf("when the fork is known: what it took away counts: %t; what three wrote: %t (%s)",
			is(gone), is(e), g.m.log.ByID()[e.ID].Why)
	}
	g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
	if !is(gone) || !is(e) {
		t.Errorf("when two has built upon it: what the fork took away counts: %t; what three wrote: %t (%s)",
			is(gone), is(e), g.m.log.ByID()[e.ID].Why)
	}
	g.w.shuffledMatches(t, g.m)
}

func pickedOf(sl *state.Slot) string {
	if sl.Pick == nil {
		return "nobody's"
	}
	return string(sl.Pick.Partner) + "'s"
}

// A start is not held against its author because of a cancellation that a fork had taken
// away when it was written.
func TestStartAfterACancellationThatAForkTookAway(t *testing.T) {
	g := newGivenBack(t)
	first := g.begins()
	c := []fact.Received{g.one.write(startOf(fact.AttemptID{Slot: "c"})),
		g.one.write(successOf(fact.AttemptID{Slot: "c"}))}
	g.m.mustTake(t, first, c[0], c[1])
	g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}}) // that counts, whatever follows
	cancel := g.one.write(fact.Body{Cancel: &fact.Cancel{}})
	heard := g.three.write(fact.Body{Seen: &fact.Seen{}}, g.came, g.one.head())
	again := g.three.write(startOf(g.given))
	g.m.mustTake(t, cancel, heard, g.forks(first), again)
	g.stays(t, again, cancel)
}

// What somebody began that was brought in later does not count if a fork takes away what it
// waits for: who took no part from the start holds nothing up. It counts with that again if
// one that did turns out to have built upon it.
func TestStartUponWhatAForkTookAway(t *testing.T) {
	for _, twoKnew := range []bool{false, true} {
		g := newGivenBack(t)
		first, begun := g.begins(), g.one.write(startOf(fact.AttemptID{Slot: "c"}))
		done := g.one.write(successOf(fact.AttemptID{Slot: "c"}))
		heard := g.three.write(fact.Body{Seen: &fact.Seen{}}, g.came, g.one.head())
		start := g.three.write(startOf(g.given))
		g.m.mustTake(t, first, begun, done, heard, start)
		if e := g.m.log.ByID()[start.ID]; !e.Counted {
			t.Fatalf("before the fork is known three's start does not count: %s", e.Why)
		}
		if twoKnew {
			g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
		}
		g.m.mustTake(t, g.forks(first))
		if e := g.m.log.ByID()[start.ID]; e.Counted != twoKnew {
			t.Errorf("two had built upon c %t: three's start of what comes after c counts %t (%s)", twoKnew, e.Counted,
				e.Why)
		}
		g.w.shuffledMatches(t, g.m)
	}
}

// A call-off needs a reason that its author knew: knowing more takes none away.
func TestCallOffWhenACancellationComesBack(t *testing.T) {
	g := newGivenBack(t)
	first := g.begins()
	cancel := g.one.write(fact.Body{Cancel: &fact.Cancel{}})
	other := g.m.mustAppend(g.w.moment(), fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseExpired,
		Actions: []fact.Action{
			{Attempt: g.given, Kind: workflow.FailContingency, Task: "d3"}}}})
	heard := g.three.write(fact.Body{Seen: &fact.Seen{}}, other.Head(), g.one.head())
	off := g.three.write(fact.Body{CalledOff: &fact.CalledOff{Attempt: g.given}})
	g.m.mustTake(t, first, cancel, heard, g.forks(first), off)
	g.stays(t, off, cancel)
}

// A verdict on work whose success a fork had taken away counts, and is void where the
// success comes to count again.
func TestVerdictOnASuccessThatAForkTookAway(t *testing.T) {
	g := newGivenBack(t)
	first, start := g.begins(), g.one.write(startOf(fact.AttemptID{Slot: "c"}))
	done := g.one.write(successOf(fact.AttemptID{Slot: "c"}))
	heard := g.three.write(fact.Body{Seen: &fact.Seen{}}, g.came, g.one.head())
	verdict := g.three.write(fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseExpired, Actions: []fact.Action{
		{Attempt: fact.AttemptID{Slot: "c"}, Kind: workflow.FailContingency, Task: "c2", Partner: "three"}}}})
	g.m.mustTake(t, first, start, done, heard, g.forks(first), verdict)
	c := g.m.state.BySlot()["c"]
	if c.Current.Partner != "three" {
		t.Fatalf("when the fork is known, c is at %s, want three", c.Current.Partner)
	}
	g.stays(t, verdict, done)
	if c = g.m.state.BySlot()["c"]; c.Current.Partner != "one" || len(c.Attempts) != 2 ||
		c.State != workflow.Succeeded {
		t.Errorf("c is %s at %s in %d attempts, want it done by one, and three's to remain",
			c.State, c.Current.Partner, len(c.Attempts))
	}
}

// An attempt that succeeded is done again, as a fork had taken away what it was begun upon.
// Both successes count; no more than that do.
func TestSuccessAgainAfterAFork(t *testing.T) {
	g := newGivenBack(t)
	first, start := g.begins(), g.one.write(startOf(fact.AttemptID{Slot: "c"}))
	done := g.one.write(successOf(fact.AttemptID{Slot: "c"}))
	begun := g.three.write(startOf(g.given), g.came, g.one.head())
	success := g.three.write(successOf(g.given))
	anew := penOf(t, g.m, "one", 8)
	facts := []fact.Received{first, start, done, begun, success, g.forks(first),
		anew.write(startOf(fact.AttemptID{Slot: "c"}),
			g.m.log.Genesis().Head()), anew.write(successOf(fact.AttemptID{Slot: "c"}))}
	facts = append(facts, g.three.write(startOf(g.given), anew.head()))
	again := g.three.write(successOf(g.given))
	g.m.mustTake(t, append(facts, again)...)
	g.stays(t, again, success)
	third := g.three.write(successOf(g.given))
	g.m.mustTake(t, third)
	if g.m.log.ByID()[third.ID].Counted {
		t.Error("a third success of one attempt counts, by an author that knew of two")
	}
}

// A liar that has forked its chain begins, in another one, what it knows to be done: it
// counts as if the liar had not heard of that, and undoes nothing.
func TestForksDoNotUndoWhatTheirAuthorKnew(t *testing.T) {
	g := newGivenBack(t)
	first, c := g.begins(), g.one.write(startOf(fact.AttemptID{Slot: "c"}))
	done := g.one.write(successOf(fact.AttemptID{Slot: "c"}))
	begun := g.three.write(startOf(g.given), g.came, g.one.head())
	success := g.three.write(successOf(g.given))
	g.m.mustTake(t, first, c, done, begun, success)
	g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
	liar := penOf(t, g.m, "one", 8)
	late := liar.write(startOf(fact.AttemptID{Slot: "d"}), g.m.log.Genesis().Head(), g.m.own.Head())
	lateDone := liar.write(successOf(fact.AttemptID{Slot: "d"}))
	g.m.mustTake(t, late, lateDone)
	if g.m.log.ByID()[late.ID].Counted {
		t.Fatal("one may begin what it knew to be done")
	}
	g.m.mustTake(t, g.forks(first))
	g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
	d := g.m.state.BySlot()["d"]
	if !g.m.log.ByID()[lateDone.ID].Counted || d.Pick == nil || d.Pick.Partner != "three" || d.Duplicated {
		t.Errorf("d's success is %s, want three's before one's, which counts", pickedOf(d))
	}
	g.w.shuffledMatches(t, g.m)
}

// What a liar that has forked a chain did although it was done does not stand because the
// liar itself builds upon it: it does the task late, or has another attempt at it made.
func TestForksDoNotUndoByWhatTheirAuthorBuildsUponIt(t *testing.T) {
	for _, c := range []struct {
		name  string
		again func(g *givenBack, liar *pen) (fact.Received, fact.AttemptID)
	}{
		{"done late", func(g *givenBack, liar *pen) (fact.Received, fact.AttemptID) {
			return liar.write(fact.Body{Seen: &fact.Seen{}}), fact.AttemptID{Slot: "d"}
		}},
		{"judged late", func(g *givenBack, liar *pen) (fact.Received, fact.AttemptID) {
			v := liar.write(fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseExpired, Actions: []fact.Action{
				{Attempt: g.given, Kind: workflow.FailContingency, Task: "d3", Partner: "one"}}}})
			return v, fact.AttemptID{Fact: v.ID, Slot: "d"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGivenBack(t)
			first, begun := g.begins(), g.one.write(startOf(fact.AttemptID{Slot: "c"}))
			done := g.one.write(successOf(fact.AttemptID{Slot: "c"}))
			heard := g.three.write(startOf(g.given), g.came, g.one.head())
			g.m.mustTake(t, first, begun, done, heard, g.three.write(successOf(g.given)))
			g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
			liar := penOf(t, g.m, "one", 8)
			facts := []fact.Received{liar.write(fact.Body{Seen: &fact.Seen{}}, g.m.log.Genesis().Head(),
				g.m.own.Head())}
			again, mine := c.again(g, liar)
			facts = append(facts, again, liar.write(startOf(mine)))
			late := liar.write(successOf(mine))
			upon := liar.write(fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "e"}, Try: 1,
				Consumed: []fact.Consumption{{Slot: "d", Fact: late.ID}}}})
			g.m.mustTake(t, append(facts, late, upon)...)
			g.m.mustTake(t, g.forks(first))
			g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
			if !g.m.log.ByID()[late.ID].Counted || !g.m.log.ByID()[upon.ID].Counted {
				t.Fatalf("what one did late counts: %t; what it began upon that: %t (%s)",
					g.m.log.ByID()[late.ID].Counted, g.m.log.ByID()[upon.ID].Counted, g.m.log.ByID()[upon.ID].Why)
			}
			if d := g.m.state.BySlot()["d"]; d.Pick == nil || d.Pick.Partner != "three" || d.Duplicated {
				t.Errorf("d's success is %s, want three's, and nothing else", pickedOf(d))
			}
			g.w.shuffledMatches(t, g.m)
		})
	}
}

// A fork had taken away that a task was done, and it was done again. That stands where its
// author has built upon it, until the author turns out to have forked a chain itself.
func TestWhatIsDoneAgainAfterAForkStandsByWhatItsAuthorBuiltUponIt(t *testing.T) {
	g := newGivenBack(t)
	e2 := g.judge("e", "e2", "three")
	first, begun := g.begins(), g.one.write(startOf(fact.AttemptID{Slot: "c"}))
	c := g.one.write(successOf(fact.AttemptID{Slot: "c"}))
	d := []fact.Received{g.one.write(startOf(fact.AttemptID{Slot: "d"})),
		g.one.write(successOf(fact.AttemptID{Slot: "d"}))}
	heard := g.three.write(fact.Body{Seen: &fact.Seen{}}, e2.Head(), g.one.head())
	again := g.three.write(startOf(g.given))
	done := g.three.write(successOf(g.given))
	upon := g.three.write(fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Fact: e2.ID, Slot: "e"}, Try: 1,
		Consumed: []fact.Consumption{{Slot: "d", Fact: done.ID}}}})
	g.m.mustTake(t, first, begun, c, d[0], d[1], heard, g.forks(c), again, done, upon)
	g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
	if sl := g.m.state.BySlot()["d"]; !g.m.log.ByID()[d[1].ID].Counted || pickedOf(sl) != "three's" || sl.Duplicated {
		t.Errorf("that one did d counts: %t; d's success is %s, want three's", g.m.log.ByID()[d[1].ID].Counted,
			pickedOf(sl))
	}
	g.w.shuffledMatches(t, g.m)
	branch := *g.three
	g.m.mustTake(t, g.three.write(fact.Body{Seen: &fact.Seen{}}),
		branch.write(fact.Body{Seen: &fact.Seen{}}, g.m.own.Head()))
	if sl := g.m.state.BySlot()["d"]; pickedOf(sl) != "one's" || sl.Duplicated {
		t.Errorf("three has forked its chain, and d's success is %s, want one's", pickedOf(sl))
	}
	g.w.shuffledMatches(t, g.m)
}

// givesUp has one do c, and give d up for a contingency at two. It returns the first fact of
// that chain and the verdict.
func (g *givenBack) givesUp(t *testing.T) (first, verdict fact.Received) {
	t.Helper()
	first, c := g.begins(), g.one.write(startOf(fact.AttemptID{Slot: "c"}))
	done := g.one.write(successOf(fact.AttemptID{Slot: "c"}))
	verdict = g.one.write(fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseReported, Actions: []fact.Action{
		{Attempt: fact.AttemptID{Slot: "d"}, Kind: workflow.FailContingency, Task: "d2", Partner: "two"}}}})
	g.m.mustTake(t, first, c, done, verdict)
	return first, verdict
}

// An author that gave an attempt up, forks that chain and does it all the same, does not
// have it stand by what it builds upon it itself: what ended does not go on.
func TestForksDoNotReviveWhatTheirAuthorGaveUp(t *testing.T) {
	g := newGivenBack(t)
	first, up := g.givesUp(t)
	mine := fact.AttemptID{Fact: up.ID, Slot: "d"}
	g.m.mustAppend(g.w.moment(), startOf(mine))
	g.m.mustAppend(g.w.moment(), fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseReported, Actions: []fact.Action{
		{Attempt: mine, Kind: workflow.FailContingency, Task: "d3"}}}})
	liar := penOf(t, g.m, "one", 8)
	facts := []fact.Received{liar.write(startOf(fact.AttemptID{Slot: "d"}), g.m.log.Genesis().Head(), g.m.own.Head())}
	success := liar.write(successOf(fact.AttemptID{Slot: "d"}))
	upon := liar.write(fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "e"}, Try: 1,
		Consumed: []fact.Consumption{{Slot: "d", Fact: success.ID}}}})
	g.m.mustTake(t, append(facts, success, upon)...)
	g.m.mustTake(t, g.forks(first))
	if d := g.m.state.BySlot()["d"]; !g.m.log.ByID()[upon.ID].Counted || d.Pick != nil {
		t.Errorf("that one built upon it counts: %t; d's success is %s, want nobody's", g.m.log.ByID()[upon.ID].Counted,
			pickedOf(d))
	}
	g.w.shuffledMatches(t, g.m)
}

// An author that gave an attempt up in a chain which it then forks, and succeeds with it
// all the same, comes behind whoever did it in its place.
func TestForksDoNotTakeBackWhatTheirAuthorGaveUp(t *testing.T) {
	g := newGivenBack(t)
	first, up := g.givesUp(t)
	g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
	liar := penOf(t, g.m, "one", 8)
	start := liar.write(startOf(fact.AttemptID{Slot: "d"}), g.m.log.Genesis().Head(), g.m.own.Head())
	success := liar.write(successOf(fact.AttemptID{Slot: "d"}))
	mine := fact.AttemptID{Fact: up.ID, Slot: "d"}
	g.m.mustAppend(g.w.moment(), startOf(mine))
	g.m.mustAppend(g.w.moment(), successOf(mine))
	g.m.mustTake(t, start, success)
	g.m.mustTake(t, g.forks(first))
	if d := g.m.state.BySlot()["d"]; d.Pick == nil || d.Pick.Partner != "two" || d.Duplicated {
		t.Errorf("d's success is %s, want two's before that of one, which had given it up", pickedOf(d))
	}
	g.w.shuffledMatches(t, g.m)
}

// Whether something is held against an author costs the same however many chains are
// forked, and however often the author says it.
func TestStepsOfWhatIsHeldAgainstAnAuthor(t *testing.T) {
	for _, forked := range []bool{false, true} {
		growth(t, 20, func(n int) (int, int) {
			g := newGivenBack(t)
			first, c := g.begins(), g.one.write(startOf(fact.AttemptID{Slot: "c"}))
			done := g.one.write(successOf(fact.AttemptID{Slot: "c"}))
			begun := g.three.write(startOf(g.given), g.came, g.one.head())
			success := g.three.write(successOf(g.given))
			liar := penOf(t, g.m, "one", 8)
			facts, heads := []fact.Received{first, c, done, begun, success}, []fact.Head(nil)
			facts = append(facts, liar.write(fact.Body{Seen: &fact.Seen{}}, g.m.log.Genesis().Head()),
				g.three.write(fact.Body{Seen: &fact.Seen{}}))
			for i := range n {
				p := penOf(t, g.m, "one", 0)
				p.chain.Incarnation = fact.Incarnation{9, byte(i >> 8), byte(i)}
				branch := *p
				facts = append(facts, p.write(fact.Body{Seen: &fact.Seen{}}, g.m.log.Genesis().Head()))
				facts = append(facts, branch.write(fact.Body{Seen: &fact.Seen{}}, g.three.head(),
					g.m.log.Genesis().Head()))
				heads = append(heads, p.head(), branch.head())
				// what three names is taken in, however many chains it is
				if len(heads) == fact.MaxHeadsSeen || i == n-1 {
					g.m.mustTake(t, append(facts, g.three.write(fact.Body{Seen: &fact.Seen{}}, heads...))...)
					facts, heads = nil, nil
				}
			}
			g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
			if forked {
				g.m.mustTake(t, g.forks(first))
			}
			if len(g.m.log.Strands()) < 2*n {
				t.Fatalf("%d strands, want %d", len(g.m.log.Strands()), 2*n)
			}
			batch := []fact.Received{liar.write(fact.Body{Seen: &fact.Seen{}}, g.three.head())}
			for range n {
				batch = append(batch, liar.write(startOf(fact.AttemptID{Slot: "d"})),
					liar.write(successOf(fact.AttemptID{Slot: "d"})))
			}
			before := g.m.log.Steps
			g.m.mustTake(t, batch...)
			if e := g.m.log.ByID()[batch[1].ID]; e.Counted != forked {
				t.Fatalf("what one began counts: %t (%s)", e.Counted, e.Why)
			}
			return g.m.log.Steps - before, 2*n + 1
		})
	}
}

// What is built upon what its author had known to be done costs the same each time, whether
// the forker itself builds upon it or somebody honest, who ends it, or is replaced and ends it
// all the same.
func TestStepsOfWhatForkersBuildUpon(t *testing.T) {
	for _, c := range []struct {
		name, by       string
		ends, replaced bool
	}{
		{"the forker", "one", false, false},
		{"somebody honest", "four", false, false},
		{"somebody honest, who ends it", "four", true, false},
		{"somebody honest, who is replaced", "four", true, true},
		{"the forker, who is replaced", "one", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			growth(t, 10, func(n int) (int, int) {
				g, liar, late := fanUponDenied(t, n, workflow.PartnerID(c.by))
				builder, said := liar, 0
				if c.by != "one" {
					builder = penOf(t, g.m, workflow.PartnerID(c.by), 9)
					g.m.mustTake(t, builder.write(fact.Body{Seen: &fact.Seen{}}, liar.head()))
				}
				judge := penOf(t, g.m, "three", 11)
				g.m.mustTake(t, judge.write(fact.Body{Seen: &fact.Seen{}}, g.m.log.Genesis().Head()))
				before := g.m.log.Steps
				say := func(p *pen, b fact.Body) {
					said++
					f := p.write(b)
					if g.m.mustTake(t, f); !g.m.log.ByID()[f.ID].Counted {
						t.Fatal(g.m.log.ByID()[f.ID].Why)
					}
				}
				for i := range n {
					e := fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("e%d", i))}
					say(builder, fact.Body{Start: &fact.Start{
						Attempt: e, Try: 1, Consumed: []fact.Consumption{{Slot: "d", Fact: late.ID}},
					}})
				}
				if d := g.m.state.BySlot()["d"].Attempts[0]; len(d.Users) != n || !d.Doubted() {
					t.Fatalf("upon what is denied (%t) %d build, want %d", d.Doubted(), len(d.Users), n)
				}
				for i := range n {
					e := fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("e%d", i))}
					if c.replaced {
						say(judge, fact.Body{Verdict: &fact.Verdict{
							Cause: fact.CauseTimeout, Actions: []fact.Action{{Attempt: e, Kind: workflow.FailBlock}},
						}})
					}
					if c.ends {
						say(builder, successOf(e))
					}
				}
				return g.m.log.Steps - before, said
			})
		})
	}
}

// fanUponDenied is an instance in which one succeeds with d though it had known that three did,
// in a chain that it forked; so many tasks of another wait for d.
func fanUponDenied(t *testing.T, n int, holder workflow.PartnerID) (g *givenBack, liar *pen, late fact.Received) {
	var def strings.Builder
	var names []string
	for i := range n {
		fmt.Fprintf(&def, "  e%d: {after: d}\n", i)
		names = append(names, fmt.Sprintf("e%d", i))
	}
	w := newMesh(t, parse(t, `
workflow: fan
tasks:
  c:  {}
  d:  {after: c, on-failure: {contingency: d2}, reconcile: keep-original}
  d2: {}
`+def.String()+"partitions:\n  p1: [c, d]\n  p2: ["+strings.Join(names, ", ")+"]\n"))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": holder}
	if err := w.start("two", w.genesis(at, "two", "one", "three", "four")); err != nil {
		t.Fatal(err)
	}
	m := w.node("two").m
	g = &givenBack{w: w, m: m, one: penOf(t, m, "one", 7), three: penOf(t, m, "three", 7)}
	v := g.judge("d", "d2", "three")
	g.given, g.came = fact.AttemptID{Fact: v.ID, Slot: "d"}, v.Head()
	first, begun := g.begins(), g.one.write(startOf(fact.AttemptID{Slot: "c"}))
	done := g.one.write(successOf(fact.AttemptID{Slot: "c"}))
	again := g.three.write(startOf(g.given), g.came, g.one.head())
	g.m.mustTake(t, first, begun, done, again, g.three.write(successOf(g.given)))
	g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
	liar = penOf(t, g.m, "one", 8)
	facts := []fact.Received{liar.write(fact.Body{Seen: &fact.Seen{}}, g.m.log.Genesis().Head(), g.m.own.Head())}
	facts = append(facts, liar.write(startOf(fact.AttemptID{Slot: "d"})))
	late = liar.write(successOf(fact.AttemptID{Slot: "d"}))
	g.m.mustTake(t, append(facts, late, g.forks(first))...)
	g.m.mustAppend(g.w.moment(), fact.Body{Seen: &fact.Seen{}})
	return g, liar, late
}

// A start that names nothing built upon the attempt that counted for its author, though a
// fork gives back another one of which its author had heard.
func TestWhatAStartBuiltUponWhenAForkGivesBack(t *testing.T) {
	g := newGivenBack(t)
	first := g.begins()
	gone := g.one.write(fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseReported, Actions: []fact.Action{
		{Attempt: fact.AttemptID{Slot: "c"}, Kind: workflow.FailContingency, Task: "c2", Partner: "four"}}}})
	heard := g.three.write(fact.Body{Seen: &fact.Seen{}}, g.came, g.one.head())
	anew := penOf(t, g.m, "one", 8)
	begun := anew.write(startOf(fact.AttemptID{Slot: "c"}), g.m.log.Genesis().Head())
	done := anew.write(successOf(fact.AttemptID{Slot: "c"}))
	start := g.three.write(startOf(g.given), anew.head())
	g.m.mustTake(t, first, gone, heard, g.forks(first), begun, done, start)
	g.stays(t, start, gone)
	if a := g.m.state.BySlot()["c"].Attempts[0]; len(a.Users) != 1 || a.Stands != state.Standing {
		t.Errorf("upon c's first attempt %d starts are built, and it stands: %t", len(a.Users),
			a.Stands == state.Standing)
	}
}

// TestForkedHistoriesInAnyOrder: of histories with forks, in which authors go on from what
// a fork takes away and others give back, what is kept up to date is after every receipt
// what the same facts give when they are applied from nothing, whatever comes first.
func TestForkedHistoriesInAnyOrder(t *testing.T) {
	seeds := uint64(sample.Of(50, 120))
	if testing.Short() {
		seeds = 40
	}
	var reached held
	receipts := 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 8))
		w := randomMesh(t, r.IntN)
		m := w.nodes["ann"].m
		for range 50 {
			if _, err := m.Receive("somebody", []fact.Received{forking(r, m)}); err != nil &&
				!errors.Is(err, log.ErrMissingPast) && !errors.Is(err, fact.ErrInvalid) {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		reached.count(m)
		for range 2 {
			got := w.inPieces(m, r, func(part *Machine) {
				receipts++
				if err := fromNothing(part); err != nil {
					t.Fatalf("seed %d, %d facts: %v\n%s", seed, part.Len(), err, w.def.Canonical())
				}
			})
			mustMatch(t, fmt.Sprintf("seed %d: in another order", seed), m, got)
		}
	}
	t.Logf("%d histories, %d receipts: %+v", seeds, receipts, reached)
	n := int(seeds)
	if reached.forked < n/2 || reached.verdicts < n/5 || reached.starts < n/5 || reached.successes < n/5 ||
		reached.refused < n/4 {
		t.Error("too few of them")
	}
}

// inPieces gives a machine's facts to a new one in batches and in any order that past
// allows, and shows it after each.
func (w *mesh) inPieces(m *Machine, r *rand.Rand, show func(*Machine)) *Machine {
	todo := received(m)
	got, err := Open(Self{Partner: "observer", Incarnation: fact.Incarnation{9}, Trust: testTrust{}}, w.def, w.plan,
		todo[0])
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range todo {
		todo[i].Att = &fact.Attestation{}
	}
	for got.Len() < m.Len() {
		todo = slices.DeleteFunc(todo, func(f fact.Received) bool { return got.log.Has(f.ID) })
		r.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
		before := got.Len()
		if _, err := got.Receive("somebody", todo[:1+r.IntN(min(6, len(todo)))]); err != nil &&
			!errors.Is(err, log.ErrMissingPast) {
			w.t.Fatal(err)
		}
		if got.Len() > before {
			show(got)
		}
	}
	return got
}

// fromNothing compares a machine with one that applies the same facts from nothing, and
// what it noted of forks with what walking through the past finds. It leaves the machine
// as it was.
func fromNothing(m *Machine) error {
	for _, e := range m.log.Order() {
		want := false
		for p := range (naive{m.log}).past(e) {
			c := p.Strand.Chain
			want = want || c.ForkedAt > 0 && p.Fact.Seq >= c.Cut() && p != m.log.Genesis()
		}
		if e.Beyond != want {
			return fmt.Errorf("fact %d of %s comes after a fork: %t, want %t", e.Fact.Seq, e.Fact.Chain.Author,
				e.Beyond, want)
		}
	}
	l := m.log
	var facts []fact.Received
	for _, e := range l.Order() {
		facts = append(facts, fact.Received{Fact: e.Fact, ID: e.ID, Raw: e.Raw, Att: e.Att})
	}
	again, err := Open(Self{Partner: "observer", Incarnation: fact.Incarnation{9}, Trust: testTrust{}},
		m.state.Definition(),
		m.state.Plan(), facts[0])
	if err == nil {
		err = again.Load(facts[1:], false)
	}
	if err != nil {
		return err
	}
	again.state.Reset()
	again.state.Settle()
	if diff := firstDifference(m.Fingerprint(), again.Fingerprint()); diff != "" {
		return fmt.Errorf("kept up to date, and applied from nothing: %s", diff)
	}
	return nil
}

// held is how often rule 8 decides: histories with forks; what counts although its author
// knew of what is held against others; histories in which something is held against somebody.
type held struct{ forked, verdicts, starts, successes, refused int }

func (h *held) count(m *Machine) {
	s := m.state
	h.forked += min(m.log.Forked(), 1)
	h.refused += state.AsInt(s.Bound && m.log.Forked() > 0)
	for _, sl := range s.Slots() {
		var won, ended []*log.Entry // successes of the slot, and its holders' own verdicts
		for _, a := range sl.Attempts {
			won = append(won, a.Successes...)
			for _, r := range a.Rulings {
				if r.Final {
					ended = append(ended, r.At)
				}
			}
		}
		despite := func(e *log.Entry, of []*log.Entry) int {
			return state.AsInt(slices.ContainsFunc(of, func(o *log.Entry) bool { return o != e && s.Despite(e, o) }))
		}
		for _, a := range sl.Attempts {
			for _, r := range a.Rulings {
				h.verdicts += despite(r.At, a.Successes)
			}
			for _, e := range a.Starts {
				h.starts += despite(e, slices.Concat(won, ended, s.Cancels))
			}
			for _, e := range a.Successes {
				h.successes += despite(e, slices.Concat(a.Successes, ended))
			}
		}
	}
}

// forking is a fact of a participant that follows the last of its chain, or one time in
// ten any of it, which forks the chain. It knows of some of the latest facts: so others
// build upon a branch.
func forking(r *rand.Rand, m *Machine) fact.Received {
	l := m.log
	var live []*state.Attempt
	for _, sl := range m.state.Slots() {
		live = append(live, sl.Attempts...)
	}
	a := live[r.IntN(min(4, len(live)))] // a few, so that much is said of each
	f := &fact.Fact{
		Format: fact.Format, Instance: l.Instance(),
		Chain: fact.Chain{Author: a.Partner, Incarnation: fact.Incarnation{byte(r.IntN(2))}}, Seq: 1,
	}
	switch r.IntN(10) {
	case 0, 1:
		if r.IntN(2) == 0 {
			f.Chain.Author = []workflow.PartnerID{"ann", "bob", "cy"}[r.IntN(3)]
		}
		act := fact.Action{Attempt: a.ID, Kind: cmp.Or(a.Task.OnFailure, workflow.FailBlock)}
		if act.Kind == workflow.FailContingency {
			act.Task, act.Partner = a.Task.Contingency, []workflow.PartnerID{"ann", "bob", "cy", "dan"}[r.IntN(4)]
		}
		f.Body.Verdict = &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{act}}
	case 2, 3, 4:
		f.Body.Success = &fact.Success{Attempt: a.ID, Try: 1}
		if r.IntN(4) == 0 {
			f.Body.Start = &fact.Start{Attempt: a.ID, Try: 1}
		}
	case 5, 6:
		f.Body.Start = &fact.Start{Attempt: a.ID, Try: 1}
	case 7:
		if r.IntN(4) == 0 {
			f.Body.Cancel = &fact.Cancel{}
			break
		}
		fallthrough
	default:
		f.Chain.Author = []workflow.PartnerID{"ann", "bob", "cy"}[r.IntN(3)]
		f.Body.Seen = &fact.Seen{}
	}
	if c := l.Index()[f.Chain]; c != nil {
		s := c.Strands[r.IntN(len(c.Strands))]
		prev := s.Last()
		if r.IntN(10) == 0 {
			prev = s.Facts[r.IntN(len(s.Facts))]
		}
		f.Seq, f.Prev = prev.Fact.Seq+1, prev.ID
	}
	for range 1 + r.IntN(2) {
		f.Seen = append(f.Seen, l.Order()[max(0, len(l.Order())-1-r.IntN(6))].Head())
	}
	if f.Seq == 1 || a.Assigned != l.Genesis() {
		f.Seen = append(f.Seen, a.Assigned.Head())
	}
	slices.SortFunc(f.Seen, fact.Head.Compare)
	f.Seen = slices.Compact(f.Seen)
	raw, _, err := f.Encode()
	if err == nil {
		if g, id, err := fact.Decode(raw); err == nil {
			return fact.Received{Fact: g, ID: id, Raw: raw, Att: &fact.Attestation{}}
		}
	}
	return fact.Received{Fact: l.Genesis().Fact, ID: l.Genesis().ID, Raw: l.Genesis().Raw}
}
