package choreo

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// givenBack is an instance of which two sees what one, three and others wrote. One and two
// took part from the start. Three came in by a verdict of two, which gave it d2.
type givenBack struct {
	w          *mesh
	m          *Machine // two's
	one, three *pen
	given      AttemptID // three's, of slot d
	came       Head      // by which three came in
}

func newGivenBack(t *testing.T) *givenBack {
	w := newMesh(t, parse(t, `
workflow: given-back
tasks:
  c:  {on-failure: {contingency: c2}}
  c2: {}
  d:  {after: c, on-failure: {contingency: d2}, reconcile: keep-original}
  d2: {}
partitions:
  p1: [c, d]
`))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one"}
	if err := w.start("two", w.genesis(at, "two", "one")); err != nil {
		t.Fatal(err)
	}
	m := w.node("two").m
	g := &givenBack{w: w, m: m, one: penOf(t, m, "one", 7), three: penOf(t, m, "three", 7)}
	v := g.judge("d", "d2", "three")
	g.given, g.came = AttemptID{Fact: v.id, Slot: "d"}, v.head()
	return g
}

// judge has two give a task to somebody else.
func (g *givenBack) judge(of, to workflow.TaskName, p workflow.PartnerID) *entry {
	return g.m.mustAppend(g.w.moment(), Body{Verdict: &Verdict{Cause: CauseExpired, Actions: []Action{
		{Attempt: AttemptID{Slot: of}, Kind: workflow.FailContingency, Task: to, Partner: p}}}})
}

// begins has one write its chain's first fact.
func (g *givenBack) begins() Received {
	return g.one.write(Body{Seen: &Seen{}}, g.m.log.genesis.head())
}

// forks is one's chain once more from its second fact on.
func (g *givenBack) forks(first Received) Received {
	other := *g.one
	other.seq, other.prev = first.Fact.Seq, first.ID
	return other.write(Body{Seen: &Seen{}}, g.m.log.genesis.head())
}

func startOf(a AttemptID) Body   { return Body{Start: &Start{Attempt: a, Try: 1}} }
func successOf(a AttemptID) Body { return Body{Success: &Success{Attempt: a, Try: 1}} }

// stays checks that a fact of three counts while a fork of one has taken away what three
// knew, and when two turns out to have built upon that.
func (g *givenBack) stays(t *testing.T, e, gone Received) {
	t.Helper()
	is := func(r Received) bool { return g.m.log.byID[r.ID].counted }
	if is(gone) || !is(e) {
		t.Fatalf("when the fork is known: what it took away counts: %t; what three wrote: %t (%s)",
			is(gone), is(e), g.m.log.byID[e.ID].why)
	}
	g.m.mustAppend(g.w.moment(), Body{Seen: &Seen{}})
	if !is(gone) || !is(e) {
		t.Errorf("when two has built upon it: what the fork took away counts: %t; what three wrote: %t (%s)",
			is(gone), is(e), g.m.log.byID[e.ID].why)
	}
	g.w.shuffledMatches(t, g.m)
}

func pickedOf(sl *Slot) string {
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
	c := []Received{g.one.write(startOf(AttemptID{Slot: "c"})), g.one.write(successOf(AttemptID{Slot: "c"}))}
	g.m.mustTake(t, first, c[0], c[1])
	g.m.mustAppend(g.w.moment(), Body{Seen: &Seen{}}) // that counts, whatever follows
	cancel := g.one.write(Body{Cancel: &Cancel{}})
	heard := g.three.write(Body{Seen: &Seen{}}, g.came, g.one.head())
	again := g.three.write(startOf(g.given))
	g.m.mustTake(t, cancel, heard, g.forks(first), again)
	g.stays(t, again, cancel)
}

// A call-off needs a reason that its author knew: knowing more takes none away.
func TestCallOffWhenACancellationComesBack(t *testing.T) {
	g := newGivenBack(t)
	first := g.begins()
	cancel := g.one.write(Body{Cancel: &Cancel{}})
	other := g.m.mustAppend(g.w.moment(), Body{Verdict: &Verdict{Cause: CauseExpired, Actions: []Action{
		{Attempt: g.given, Kind: workflow.FailBlock}}}})
	heard := g.three.write(Body{Seen: &Seen{}}, other.head(), g.one.head())
	off := g.three.write(Body{CalledOff: &CalledOff{Attempt: g.given}})
	g.m.mustTake(t, first, cancel, heard, g.forks(first), off)
	g.stays(t, off, cancel)
}

// A verdict on work whose success a fork had taken away counts, and is void where the
// success comes to count again.
func TestVerdictOnASuccessThatAForkTookAway(t *testing.T) {
	g := newGivenBack(t)
	first, start := g.begins(), g.one.write(startOf(AttemptID{Slot: "c"}))
	done := g.one.write(successOf(AttemptID{Slot: "c"}))
	heard := g.three.write(Body{Seen: &Seen{}}, g.came, g.one.head())
	verdict := g.three.write(Body{Verdict: &Verdict{Cause: CauseExpired, Actions: []Action{
		{Attempt: AttemptID{Slot: "c"}, Kind: workflow.FailContingency, Task: "c2", Partner: "three"}}}})
	g.m.mustTake(t, first, start, done, heard, g.forks(first), verdict)
	c := g.m.state.bySlot["c"]
	if c.Current.Partner != "three" {
		t.Fatalf("when the fork is known, c is at %s, want three", c.Current.Partner)
	}
	g.stays(t, verdict, done)
	if c = g.m.state.bySlot["c"]; c.Current.Partner != "one" || len(c.Attempts) != 2 || c.State != workflow.Succeeded {
		t.Errorf("c is %s at %s in %d attempts, want it done by one, and three's to remain",
			c.State, c.Current.Partner, len(c.Attempts))
	}
}

// An attempt that succeeded is done again, as a fork had taken away what it was begun upon.
// Both successes count; no more than that do.
func TestSuccessAgainAfterAFork(t *testing.T) {
	g := newGivenBack(t)
	first, start := g.begins(), g.one.write(startOf(AttemptID{Slot: "c"}))
	done := g.one.write(successOf(AttemptID{Slot: "c"}))
	begun := g.three.write(startOf(g.given), g.came, g.one.head())
	success := g.three.write(successOf(g.given))
	anew := penOf(t, g.m, "one", 8)
	facts := []Received{first, start, done, begun, success, g.forks(first),
		anew.write(startOf(AttemptID{Slot: "c"}), g.m.log.genesis.head()), anew.write(successOf(AttemptID{Slot: "c"}))}
	facts = append(facts, g.three.write(startOf(g.given), anew.head()))
	again := g.three.write(successOf(g.given))
	g.m.mustTake(t, append(facts, again)...)
	g.stays(t, again, success)
	third := g.three.write(successOf(g.given))
	g.m.mustTake(t, third)
	if g.m.log.byID[third.ID].counted {
		t.Error("a third success of one attempt counts, by an author that knew of two")
	}
}

// A liar that has forked its chain begins, in another one, what it knows to be done: it
// counts as if the liar had not heard of that, and undoes nothing.
func TestForksDoNotUndoWhatTheirAuthorKnew(t *testing.T) {
	g := newGivenBack(t)
	first, c := g.begins(), g.one.write(startOf(AttemptID{Slot: "c"}))
	done := g.one.write(successOf(AttemptID{Slot: "c"}))
	begun := g.three.write(startOf(g.given), g.came, g.one.head())
	success := g.three.write(successOf(g.given))
	g.m.mustTake(t, first, c, done, begun, success)
	g.m.mustAppend(g.w.moment(), Body{Seen: &Seen{}})
	liar := penOf(t, g.m, "one", 8)
	late := liar.write(startOf(AttemptID{Slot: "d"}), g.m.log.genesis.head(), g.m.own.head())
	lateDone := liar.write(successOf(AttemptID{Slot: "d"}))
	g.m.mustTake(t, late, lateDone)
	if g.m.log.byID[late.ID].counted {
		t.Fatal("one may begin what it knew to be done")
	}
	g.m.mustTake(t, g.forks(first))
	g.m.mustAppend(g.w.moment(), Body{Seen: &Seen{}})
	d := g.m.state.bySlot["d"]
	if !g.m.log.byID[lateDone.ID].counted || d.Pick == nil || d.Pick.Partner != "three" || d.Duplicated {
		t.Errorf("d's success is %s, want three's before one's, which counts", pickedOf(d))
	}
	g.w.shuffledMatches(t, g.m)
}

// An author that gave an attempt up in a chain which it then forks, and succeeds with it
// all the same, comes behind whoever did it in its place.
func TestForksDoNotTakeBackWhatTheirAuthorGaveUp(t *testing.T) {
	g := newGivenBack(t)
	first, c := g.begins(), g.one.write(startOf(AttemptID{Slot: "c"}))
	done := g.one.write(successOf(AttemptID{Slot: "c"}))
	up := g.one.write(Body{Verdict: &Verdict{Cause: CauseReported, Actions: []Action{
		{Attempt: AttemptID{Slot: "d"}, Kind: workflow.FailContingency, Task: "d2", Partner: "two"}}}})
	g.m.mustTake(t, first, c, done, up)
	g.m.mustAppend(g.w.moment(), Body{Seen: &Seen{}})
	liar := penOf(t, g.m, "one", 8)
	start := liar.write(startOf(AttemptID{Slot: "d"}), g.m.log.genesis.head(), g.m.own.head())
	success := liar.write(successOf(AttemptID{Slot: "d"}))
	mine := AttemptID{Fact: up.ID, Slot: "d"}
	g.m.mustAppend(g.w.moment(), startOf(mine))
	g.m.mustAppend(g.w.moment(), successOf(mine))
	g.m.mustTake(t, start, success)
	g.m.mustTake(t, g.forks(first))
	if d := g.m.state.bySlot["d"]; d.Pick == nil || d.Pick.Partner != "two" || d.Duplicated {
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
			first, c := g.begins(), g.one.write(startOf(AttemptID{Slot: "c"}))
			done := g.one.write(successOf(AttemptID{Slot: "c"}))
			begun := g.three.write(startOf(g.given), g.came, g.one.head())
			success := g.three.write(successOf(g.given))
			liar := penOf(t, g.m, "one", 8)
			facts, heads := []Received{first, c, done, begun, success}, []Head(nil)
			facts = append(facts, liar.write(Body{Seen: &Seen{}}, g.m.log.genesis.head()), g.three.write(Body{Seen: &Seen{}}))
			for i := range n {
				p := penOf(t, g.m, "one", 0)
				p.chain.Incarnation = Incarnation{9, byte(i >> 8), byte(i)}
				branch := *p
				facts = append(facts, p.write(Body{Seen: &Seen{}}, g.m.log.genesis.head()))
				facts = append(facts, branch.write(Body{Seen: &Seen{}}, g.three.head(), g.m.log.genesis.head()))
				heads = append(heads, p.head(), branch.head())
				if len(heads) == MaxHeadsSeen || i == n-1 { // what three names is taken in, however many chains it is
					g.m.mustTake(t, append(facts, g.three.write(Body{Seen: &Seen{}}, heads...))...)
					facts, heads = nil, nil
				}
			}
			g.m.mustAppend(g.w.moment(), Body{Seen: &Seen{}})
			if forked {
				g.m.mustTake(t, g.forks(first))
			}
			if len(g.m.log.strands) < 2*n {
				t.Fatalf("%d strands, want %d", len(g.m.log.strands), 2*n)
			}
			batch := []Received{liar.write(Body{Seen: &Seen{}}, g.three.head())}
			for range n {
				batch = append(batch, liar.write(startOf(AttemptID{Slot: "d"})), liar.write(successOf(AttemptID{Slot: "d"})))
			}
			before := g.m.log.steps
			g.m.mustTake(t, batch...)
			if e := g.m.log.byID[batch[1].ID]; e.counted != forked {
				t.Fatalf("what one began counts: %t (%s)", e.counted, e.why)
			}
			return g.m.log.steps - before, 2*n + 1
		})
	}
}

// A start that names nothing built upon the attempt that counted for its author, though a
// fork gives back another one of which its author had heard.
func TestWhatAStartBuiltUponWhenAForkGivesBack(t *testing.T) {
	g := newGivenBack(t)
	first := g.begins()
	gone := g.one.write(Body{Verdict: &Verdict{Cause: CauseReported, Actions: []Action{
		{Attempt: AttemptID{Slot: "c"}, Kind: workflow.FailContingency, Task: "c2", Partner: "four"}}}})
	heard := g.three.write(Body{Seen: &Seen{}}, g.came, g.one.head())
	anew := penOf(t, g.m, "one", 8)
	begun := anew.write(startOf(AttemptID{Slot: "c"}), g.m.log.genesis.head())
	done := anew.write(successOf(AttemptID{Slot: "c"}))
	start := g.three.write(startOf(g.given), anew.head())
	g.m.mustTake(t, first, gone, heard, g.forks(first), begun, done, start)
	g.stays(t, start, gone)
	if a := g.m.state.bySlot["c"].Attempts[0]; len(a.users) != 1 || a.stands != standing {
		t.Errorf("upon c's first attempt %d starts are built, and it stands: %t", len(a.users), a.stands == standing)
	}
}
