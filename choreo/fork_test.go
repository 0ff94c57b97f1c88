package choreo

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const relay = `
workflow: relay
data: {x: {type: integer}}
tasks:
  a: {}
  b: {after: a, type: manual, role: crew, out: [x]}
  c: {after: b}
  d: {after: b, type: manual, role: crew}
  e: {after: c}
partitions:
  p1: [a, c, e]
  p2: [b, d]
`

// relayMesh has a done, and b ready at two.
func relayMesh(t *testing.T) *mesh {
	w := newMesh(t, parse(t, relay))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	if err := w.start("one", w.genesis(at, "one", "two", "three")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(true)
	return w
}

// say has a person at a node complete a task.
func (w *mesh) say(p workflow.PartnerID, task workflow.TaskName, out ...int64) {
	w.t.Helper()
	res := Result{Outputs: map[workflow.DataName]workflow.Value{}}
	for _, v := range out {
		res.Outputs["x"] = v
	}
	n := w.nodes[p]
	if err := n.m.Finish(task, res, w.moment(), w); err != nil {
		w.t.Fatalf("%s completes %s: %v", p, task, err)
	}
	w.step(n)
}

// take removes the letters under way that are chosen.
func (w *mesh) take(from, to workflow.PartnerID) []letter {
	var out, rest []letter
	for _, l := range w.mail {
		if l.from == from && l.to == to {
			out = append(out, l)
		} else {
			rest = append(rest, l)
		}
	}
	w.mail = rest
	return out
}

// forked is a relay in which two told one of b with x = 1, was restored from a
// backup without anybody noticing, and told three of b with x = 2.
func forked(t *testing.T) *mesh {
	w := relayMesh(t)
	two := w.nodes["two"]
	old := two.backup()
	w.say("two", "b", 1)
	first := w.take("two", "one")
	w.mail = nil
	w.restore(two, old, two.inc)
	w.say("two", "b", 2)
	w.mail = nil
	for _, l := range first {
		w.deliver(l) // one builds upon it: it starts c
	}
	w.meet("two", "three")
	w.mail = append(w.take("two", "three"), w.take("three", "two")...)
	for len(w.mail) > 0 {
		l := w.mail[0]
		w.mail = w.mail[1:]
		if l.to != "one" {
			w.deliver(l)
		}
	}
	return w
}

// counted is how many counted facts of a kind there are.
func counted(m *Machine, kind string) int {
	n := 0
	for _, e := range m.log.Order() {
		if e.Counted && e.Fact.Body.Kind() == kind {
			n++
		}
	}
	return n
}

func TestForkCountsOnlyWhereOthersBuiltUponIt(t *testing.T) {
	w := forked(t)
	if got := w.nodes["one"].m.state.Data()["x"].Value; got != int64(1) {
		t.Fatalf("before the fork is known, one has x = %v", got)
	}
	w.meetAll()
	w.stabilize(true)
	w.meetAll()
	w.stabilize(true)
	if err := w.sameEverywhere(); err != nil {
		t.Fatal(err)
	}
	one := w.nodes["one"].m
	if got := one.state.Data()["x"].Value; got != int64(1) {
		t.Errorf("x = %v although one built upon x = 1 alone", got)
	}
	if forks := one.log.Forks(); len(forks) != 1 || forks[0].Chain.Author != "two" {
		t.Errorf("forks %v, want one, of two", forks)
	}
	if len(one.Snapshot().Incidents) != 2 {
		t.Errorf("incidents %v, want the fork, and the result that went with it", one.Snapshot().Incidents)
	}
	w.shuffledMatches(t, one)
}

// Facts that are written when the fork is known do not make the branch count
// that nobody had built upon: that author stops.
func TestForkIsNotVouchedForByThoseWhoKnow(t *testing.T) {
	w := forked(t)
	w.meet("one", "three")
	w.stabilize(false)
	before := counted(w.nodes["one"].m, "success")
	w.stabilize(true) // one goes on: e follows c
	w.meetAll()
	w.stabilize(true)
	one := w.nodes["one"].m
	if got := one.state.Data()["x"].Value; got != int64(1) {
		t.Errorf("x = %v: the branch that nobody built upon came to count", got)
	}
	if after := counted(one, "success"); after != before+2 {
		t.Errorf("%d successes count, want those of c and e besides %d", after, before)
	}
	if err := w.sameEverywhere(); err != nil {
		t.Fatal(err)
	}
	w.shuffledMatches(t, one)
}

// A stranger, or another key of the liar's own, cannot vouch for a branch.
func TestForkIsNotVouchedForByStrangers(t *testing.T) {
	w := forked(t)
	w.meet("one", "three")
	w.stabilize(false)
	one := w.nodes["one"].m
	var losing *log.Entry
	for _, e := range one.log.Order() {
		if e.Fact.Body.Success != nil && !e.Counted {
			losing = e
		}
	}
	if losing == nil {
		t.Fatal("both branches count")
	}
	f := &fact.Fact{
		Format: fact.Format, Instance: one.log.Instance(), Chain: fact.Chain{Author: "stranger"}, Seq: 1,
		Seen: []fact.Head{losing.Head()}, Body: fact.Body{Seen: &fact.Seen{}},
	}
	if _, err := one.Receive("two", []fact.Received{encoded(t, f)}); err != nil {
		t.Fatal(err)
	}
	if losing.Counted {
		t.Error("a stranger's fact made a branch of a fork count")
	}
}

// A result that went with a fork is named: somebody worked for it.
func TestResultsOfAForkAreNamed(t *testing.T) {
	w := forked(t)
	w.meet("one", "three")
	w.stabilize(true)
	for p, n := range w.nodes {
		var named []state.IncidentView
		for _, x := range n.m.Snapshot().Incidents {
			if strings.Contains(x.What, "a result of b does not count") && x.Task == "b" && x.Who == "two" && x.At != 0 {
				named = append(named, x)
			}
		}
		if len(named) != 1 {
			t.Errorf("%s is shown of the results of b that went with the fork: %+v", p, named)
		}
	}
}

// encoded gives a fact as it comes from elsewhere.
func encoded(t testing.TB, f *fact.Fact) fact.Received {
	t.Helper()
	raw, id, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	g, gid, err := fact.Decode(raw)
	if err != nil || gid != id {
		t.Fatalf("a fact does not survive its encoding: %v", err)
	}
	return fact.Received{Fact: g, ID: id, Raw: raw}
}

// shuffledMatches checks a machine against others that got its facts in other orders.
func (w *mesh) shuffledMatches(t *testing.T, m *Machine) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		mustMatch(t, "in another order", m, w.shuffled(m, r.IntN))
	}
}

// A node whose chain is forked says nothing more until it has a new incarnation.
func TestForkedNodeStops(t *testing.T) {
	w := forked(t)
	two := w.nodes["two"]
	w.meet("one", "two")
	w.stabilize(true)
	if two.aheads == 0 {
		t.Error("two did not notice that one has facts of its chain that it lacks")
	}
	before := two.m.Len()
	if err := two.m.Finish("d", Result{}, w.moment(), w); err == nil {
		t.Error("a node whose facts do not count lets people complete tasks")
	}
	if err := two.m.Cancel("", w.moment()); err == nil {
		t.Error("a node whose facts do not count lets people cancel")
	}
	w.step(two)
	if two.m.Len() != before {
		t.Error("a node whose chain is forked writes facts")
	}
	w.restore(two, two.disk, fact.Incarnation{2})
	w.meetAll()
	w.stabilize(true)
	w.say("two", "d")
	w.meetAll()
	w.stabilize(true)
	if got := w.nodes["one"].m.Overall(); got != workflow.InstanceSucceeded {
		t.Errorf("the instance is %s, want succeeded", got)
	}
	if err := w.sameEverywhere(); err != nil {
		t.Fatal(err)
	}
}

// TestWhomAForkBroughtInSeesThat: a node that took part until a chain proved to be forked,
// and has lost its disk, sees in the first bundle that the instance is to come back to it.
func TestWhomAForkBroughtInSeesThat(t *testing.T) {
	w := relayMesh(t)
	two := w.nodes["two"]
	old := two.backup()
	w.takers = map[workflow.TaskName]workflow.PartnerID{"b": "four"}
	if _, err := two.m.Reject("b", "no time", w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(two)
	first := w.take("two", "four")
	w.mail, w.takers = nil, nil
	w.restore(two, old, two.inc)
	w.say("two", "b", 2)
	w.stabilize(false)
	for _, l := range first {
		w.deliver(l)
	}
	w.say("four", "b", 4)
	w.mail = nil
	one, four := w.nodes["one"].m, w.nodes["four"]
	four.m.Forget("one")
	w.send(four, "one")
	for _, l := range w.take("four", "one") {
		w.deliver(l)
	}
	if one.Participates("four") || !one.Involved("four") {
		t.Fatalf("four takes part: %t, is involved: %t", one.Participates("four"), one.Involved("four"))
	}
	one.Restate("four", fact.Incarnation{2}, nil)
	one.Forget("four")
	var facts []fact.Received
	for _, o := range one.Outgoing("four", 600, w.moment()).Facts {
		facts = append(facts, fact.Received{Fact: o.e.Fact, ID: o.e.ID, Raw: o.e.Raw})
	}
	m, err := Open(Self{Partner: "four", Incarnation: fact.Incarnation{2}, Trust: testTrust{}}, w.def, w.plan, facts[0])
	if err != nil {
		t.Fatal(err)
	}
	if !m.BringsIn("four", facts) {
		t.Errorf("of %d facts, four does not see in the %d that come first that it took part", one.Len(), len(facts))
	}
}

// TestWhomAForkBroughtInHearsWhatFollows: a node to which a chain gave work that proved to
// be forked, and that has not written anything, hears of the fork and what came of the
// instance.
func TestWhomAForkBroughtInHearsWhatFollows(t *testing.T) {
	for _, c := range []struct {
		name  string
		forks int
		sees  bool // the fork, with what gives it work
	}{
		{"it saw the fork", 1, true},
		{"it saw no fork", 1, false},
		{"others have as many branches as they take", log.MaxBranches + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := relayMesh(t)
			one, two := w.nodes["one"].m, w.nodes["two"]
			old := two.backup()
			w.takers = map[workflow.TaskName]workflow.PartnerID{"b": "four"}
			if _, err := two.m.Reject("b", "no time", w.moment(), w); err != nil {
				t.Fatal(err)
			}
			w.step(two)
			first := w.take("two", "four")
			var forks []letter
			w.takers = nil
			for x := range c.forks {
				w.mail = nil
				w.restore(two, old, two.inc)
				w.say("two", "b", int64(x))
				forks = append(forks, w.take("two", "one")...)
			}
			for _, l := range forks {
				w.deliver(l)
			}
			for _, l := range first {
				w.deliver(l)
			}
			four := w.nodes["four"].m
			for _, l := range forks {
				if l.to = "four"; c.sees && l.heads == nil {
					w.deliver(l)
				}
			}
			w.mail = nil
			if len(four.log.ByAuthor()["four"]) > 0 || four.Participates("four") == c.sees {
				t.Fatalf("four wrote %d chains, takes part: %t", len(four.log.ByAuthor()["four"]),
					four.Participates("four"))
			}
			for range 2 { // at first one may only hear what brought four in
				w.meet("one", "four")
				w.stabilize(false)
			}
			if one.Participates("four") || four.Participates("four") {
				t.Errorf("four takes part: %t for one, %t for itself", one.Participates("four"),
					four.Participates("four"))
			}
			for _, e := range one.log.Order() {
				if !four.log.Has(e.ID) {
					t.Errorf("four lacks the %s %s", e.Fact.Body.Kind(), e.ID)
				}
			}
			if one, four := one.Overall(), four.Overall(); one != four {
				t.Errorf("the instance is %s at one, %s at four", one, four)
			}
			if running := four.Overall() == workflow.InstanceRunning; four.Compares("one") != running {
				t.Errorf("of an instance that runs: %t, four, which is out of it, asks what follows: %t", running, !running)
			}
		})
	}
}

// newGivenToThree is a mesh in which one's a failed, and its verdict, which is still on the
// way, gives a2 to three; old is what one had stored before.
func newGivenToThree(t *testing.T) (w *mesh, one *node, old []Stored) {
	w = newMesh(t, parse(t, `
workflow: given-to-three
tasks:
  a:  {timeout: 10m, on-failure: {contingency: a2}}
  a2: {timeout: 10m}
  b:  {after: a, timeout: 10m}
partitions:
  p1: [a]
  p2: [b]
`))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	w.takers["a2"] = "three"
	if err := w.start("two", w.genesis(at, "two", "one")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	one = w.node("one")
	old = one.backup()
	id, _ := one.jobOf("a")
	w.end(one, id, Result{Failed: true})
	return w, one, old
}

// A result that is recorded between a proof of a fork and the next decision.
func TestForkBetweenResultAndDecision(t *testing.T) {
	w, one, old := newGivenToThree(t)
	three := w.node("three")
	w.stabilize(false)
	job, ok := three.jobOf("a2")
	if !ok {
		t.Fatal("three does not run a2")
	}
	w.restore(one, old[:1], one.inc)
	w.end(one, one.running()[0], Result{})
	var proof []fact.Received
	for _, e := range one.m.log.Order() {
		proof = append(proof, fact.Received{Fact: e.Fact, ID: e.ID, Raw: e.Raw})
	}
	three.m.TaskEnded(job, 1, Result{}, w.moment(), w)
	if _, err := three.m.Receive("one", proof); err != nil {
		t.Fatal(err)
	}
	w.step(three) // three took part through the verdict alone: its own success does not count any more
	w.shuffledMatches(t, three.m)
}

// An attempt was done, a fork then took away that it had been given out, and the same work
// came again from another. That counts, although others turn out to have built upon the
// first.
func TestWorkAfterAForkCounts(t *testing.T) {
	w, one, old := newGivenToThree(t)
	two := w.node("two").m
	for _, l := range w.take("one", "three") {
		w.deliver(l)
	}
	w.mail = nil
	job, _ := w.node("three").jobOf("a2")
	three := w.node("three").m
	w.must(three.deciding(w.moment(), nil).append(fact.Body{Success: &fact.Success{Attempt: job, Try: 1}}))
	w.restore(one, old[:1], one.inc)
	w.end(one, one.running()[0], Result{})
	proof := received(one.m)
	judged := w.must(two.deciding(w.moment(),
		nil).append(fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseExpired, Actions: []fact.Action{
		{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "three"}}}}))
	for _, facts := range [][]fact.Received{proof, received(two)} {
		if _, err := three.Receive("two", facts); err != nil {
			t.Fatal(err)
		}
	}
	again := w.must(three.deciding(w.moment(), nil).
		append(fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Fact: judged.ID, Slot: "a"}, Try: 1}}))
	if again == nil || !again.Counted {
		t.Fatal("three may not begin what it was given again")
	}
	if _, err := two.Receive("three", received(three)); err != nil {
		t.Fatal(err)
	}
	w.must(two.deciding(w.moment(), nil).append(fact.Body{Seen: &fact.Seen{}}))
	if e := two.log.ByID()[again.ID]; !e.Counted {
		t.Errorf("what three began does not count: %s", e.Why)
	}
	if a := two.state.Attempts()[job]; a == nil || a.Success() == nil {
		t.Error("the first attempt does not count, although two built upon it")
	}
	w.shuffledMatches(t, two)
}

// A forked log reaches a peer completely, in as many rounds as it takes, and
// what is written later reaches it, too.
func TestForkedLogArrivesInRounds(t *testing.T) {
	w := forked(t)
	w.limit = 1
	w.meet("one", "three")
	w.stabilize(true)
	one, three := w.nodes["one"].m, w.nodes["three"].m
	if one.log.Forks() == nil {
		t.Fatal("one does not know of the fork")
	}
	if one.Len() != three.Len() {
		t.Errorf("three has %d facts, one has %d", three.Len(), one.Len())
	}
	mustMatch(t, "one and three", one, three)
}

// Restored under a new incarnation, a node goes on from its backup and learns
// the rest of what it had said.
func TestRestoreUnderNewIncarnation(t *testing.T) {
	w := relayMesh(t)
	two := w.nodes["two"]
	old := two.backup()
	w.say("two", "b", 1)
	w.stabilize(true)
	w.restore(two, old, fact.Incarnation{2})
	w.meetAll()
	w.stabilize(true)
	if got := two.m.state.BySlot()["b"].State; got != workflow.Succeeded {
		t.Fatalf("b is %s after two came back", got)
	}
	w.say("two", "d")
	w.meetAll()
	w.stabilize(true)
	for _, id := range w.names() {
		if got := w.nodes[id].m.Overall(); got != workflow.InstanceSucceeded {
			t.Errorf("at %s the instance is %s", id, got)
		}
	}
	if two.m.log.Forks() != nil {
		t.Error("a restore under a new incarnation counts as a fork")
	}
	if err := w.sameEverywhere(); err != nil {
		t.Fatal(err)
	}
}

// Restored without noticing, a node sees at the first contact that the others
// are ahead of it on its own chain.
func TestRolledBackNodeIsToldAtFirstContact(t *testing.T) {
	w := relayMesh(t)
	two := w.nodes["two"]
	old := two.backup()
	w.say("two", "b", 1)
	w.stabilize(true)
	w.restore(two, old, two.inc)
	if two.m.AheadOfUs(two.m.Heads()) {
		t.Error("a node is ahead of itself")
	}
	if !two.m.AheadOfUs(w.nodes["one"].m.Heads()) {
		t.Error("two does not see that one knows more of its chain than it does")
	}
	// It may be given its own facts before it hears of heads. It must not go on
	// from where its store ended, nor forget that it was rolled back.
	if _, err := two.m.Receive("one", received(w.nodes["one"].m)); err != nil {
		t.Fatal(err)
	}
	before := two.m.Len()
	w.step(two)
	if two.m.Len() != before || two.m.Finish("d", Result{}, w.moment(), w) == nil {
		t.Error("a rolled-back node goes on writing under its old incarnation")
	}
	if !two.m.AheadOfUs(nil) {
		t.Error("two has forgotten that it was rolled back")
	}
}

// What was acknowledged under another incarnation is owed again. What is under way is sent
// again when that is forgotten: any member may claim a new incarnation in each message.
func TestNewIncarnationVoidsAcknowledgements(t *testing.T) {
	w := relayMesh(t)
	one := w.nodes["one"].m
	if one.Behind("two") || one.Owes("two") {
		t.Fatal("two has not acknowledged what it was told")
	}
	one.Acknowledge("two", fact.Incarnation{2}, nil)
	if !one.Behind("two") || !one.Owes("two") {
		t.Error("a lost disk is taken to have what the former one acknowledged")
	}
	if b := one.Outgoing("two", fact.MaxFact, w.moment()); b != nil {
		t.Errorf("a word of a new incarnation has %d facts sent that are under way", len(b.Facts))
	}
	one.Forget("two")
	if b := one.Outgoing("two", fact.MaxFact, w.moment()); b == nil || !b.First || len(b.Facts) != one.Len() {
		t.Errorf("a lost disk is sent %+v, want all facts with the definition", b)
	}
}

func TestLostDiskIsFilledByOthersAndRunningTasksResume(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: lost
tasks: {a: {}, b: {after: a}, c: {after: b}}
partitions: {p1: [a, c], p2: [b]}
`))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	if err := w.start("one", w.genesis(at, "one", "two", "three")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	id, _ := w.nodes["one"].jobOf("a")
	w.end(w.nodes["one"], id, Result{})
	w.stabilize(false)
	w.meetAll() // the others learn that two has started b
	w.stabilize(false)
	two := w.nodes["two"]
	w.restore(two, nil, fact.Incarnation{2})
	w.meet("two", "three") // not from one, which has it first hand
	w.stabilize(false)
	if j, ok := two.jobOf("b"); !ok || two.jobs[j].Try != 1 {
		t.Fatalf("two runs %v, want b, try 1 again", two.jobs)
	}
	w.meetAll()
	w.stabilize(true)
	if got := w.nodes["one"].m.Overall(); got != workflow.InstanceSucceeded {
		t.Errorf("the instance is %s", got)
	}
	if err := w.sameEverywhere(); err != nil {
		t.Fatal(err)
	}
}

// givenOnTwice is a mesh in which partner two has a task, whose contingency somebody gives to another, and so the
// contingency of that one.
func givenOnTwice(t *testing.T) *mesh {
	t.Helper()
	w := newMesh(t, parse(t, `
workflow: relay
tasks:
  a: {}
  b: {after: a, type: manual, contingency: x}
  x: {type: manual, contingency: y}
  y: {type: manual}
partitions:
  p1: [a]
  p2: [b]
`))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	if err := w.start("one", w.genesis(at, "one", "two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(true)
	return w
}

// TestWhomAForkBroughtInThroughWhomItBroughtIn: a chain that proved to be forked gave work to a partner, which gave it
// on to another in a chain that is not forked. Neither takes part any more, and both hear of that.
func TestWhomAForkBroughtInThroughWhomItBroughtIn(t *testing.T) {
	w := givenOnTwice(t)
	one, two := w.nodes["one"].m, w.nodes["two"]
	old, inc := two.backup(), two.inc
	fails := func(by string, task workflow.TaskName, to workflow.PartnerID) {
		n := w.nodes[workflow.PartnerID(by)]
		w.takers = map[workflow.TaskName]workflow.PartnerID{"x": to, "y": to}
		if err := n.m.Finish(task, Result{Failed: true, Reason: "rain"}, w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(n)
		first := w.take(workflow.PartnerID(by), to)
		w.mail, w.takers = nil, nil
		for _, l := range first {
			w.deliver(l)
		}
	}
	fails("two", "b", "three")
	fails("three", "x", "four")
	w.say("four", "y")
	w.mail = nil
	w.restore(two, old, inc)
	w.say("two", "b")
	for range 2 {
		w.meetAll()
		w.stabilize(true)
	}
	for _, p := range []workflow.PartnerID{"three", "four"} {
		m := w.nodes[p].m
		if one.Participates(p) || !one.Involved(p) || m.Participates(p) {
			t.Errorf("%s takes part: %t for one, %t for itself; is involved for one: %t", p, one.Participates(p),
				m.Participates(p), one.Involved(p))
		}
		for _, e := range one.log.Order() {
			if !m.log.Has(e.ID) {
				t.Errorf("%s lacks the %s %s", p, e.Fact.Body.Kind(), e.ID)
			}
		}
		if one, m := one.Overall(), m.Overall(); one != m {
			t.Errorf("the instance is %s at one, %s at %s", one, m, p)
		}
	}
}

// TestWhomAForkBroughtInThroughAnother: a chain that proved to be forked gave work to its own author, which gave it on
// after a restart, in a chain that is not forked. Whoever has it then takes no part any more, and hears of that all the
// same.
func TestWhomAForkBroughtInThroughAnother(t *testing.T) {
	w := givenOnTwice(t)
	one, two := w.nodes["one"].m, w.nodes["two"]
	old, inc := two.backup(), two.inc
	fails := func(task workflow.TaskName, to workflow.PartnerID) {
		w.takers = map[workflow.TaskName]workflow.PartnerID{"x": to, "y": to}
		if err := two.m.Finish(task, Result{Failed: true, Reason: "rain"}, w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(two)
	}
	fails("b", "two")
	w.restore(two, two.backup(), fact.Incarnation{9})
	fails("x", "four")
	first := w.take("two", "four")
	w.mail, w.takers = nil, nil
	for _, l := range first {
		w.deliver(l)
	}
	w.say("four", "y")
	w.mail = nil
	w.restore(two, old, inc)
	w.say("two", "b")
	for range 2 {
		w.meetAll()
		w.stabilize(true)
	}
	four := w.nodes["four"].m
	if one.Participates("four") || !one.Involved("four") || four.Participates("four") {
		t.Errorf("four takes part: %t for one, %t for itself; is involved for one: %t", one.Participates("four"),
			four.Participates("four"), one.Involved("four"))
	}
	for _, e := range one.log.Order() {
		if !four.log.Has(e.ID) {
			t.Errorf("four lacks the %s %s", e.Fact.Body.Kind(), e.ID)
		}
	}
	if one, four := one.Overall(), four.Overall(); one != four {
		t.Errorf("the instance is %s at one, %s at four", one, four)
	}
}
