package choreo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// dice gives a number in [0, n). rapid throws them, so that a failing history
// is shrunk.
type dice func(n int) int

func diceOf(rt *rapid.T) dice {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "dice") }
}

func (d dice) chance(percent int) bool { return d(100) >= 100-percent }

func pickOf[T any](d dice, from []T) T { return from[d(len(from))] }

// randomDefinition is a definition of up to seven tasks with rules about
// earlier tasks and about data, cut into up to three partitions. In some, tasks
// wait for data that they would write for each other.
func randomDefinition(d dice) *workflow.Definition { return validDefinition(d, randomSource) }

// validDefinition is the first of random sources that is right.
func validDefinition(d dice, source func(dice) string) *workflow.Definition {
	for {
		def, err := workflow.Parse("random.yaml", []byte(source(d)))
		if err == nil {
			return def
		}
		var problems workflow.Errors
		if !errors.As(err, &problems) {
			panic(err)
		}
	}
}

func randomSource(d dice) string { return sourceOf(d, d.chance(30)) }

func sourceOf(d dice, timed bool) string {
	var b strings.Builder
	n, cyclic := 1+d(7), d.chance(40)
	b.WriteString("workflow: random\ndata:\n  x: {type: integer}\n  y: {type: integer}\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  t%d: {%s}\n", i, strings.Join(randomTask(d, i, timed, cyclic), ", "))
	}
	b.WriteString("  c0: {on-failure: {contingency: c1}, compensate: noop}\n  c1: {}\n")
	if strings.Contains(b.String(), "undo") {
		b.WriteString("  undo: {retries: 1}\n")
	}
	b.WriteString("partitions:\n")
	parts := 1 + d(min(3, n))
	for p := range parts {
		var in []string
		for i := p; i < n; i += parts {
			in = append(in, fmt.Sprintf("t%d", i))
		}
		fmt.Fprintf(&b, "  p%d: [%s]\n", p, strings.Join(in, ", "))
	}
	if !strings.Contains(b.String(), "contingency: c0") {
		return strings.Replace(b.String(), "c0: {on-failure: {contingency: c1}, ",
			"c0: {on-failure: {contingency: c1}, after: t0, ", 1) + ", c0]"
	}
	return b.String()
}

// randomTask is a task. The first three write data and the others' rules read
// it, or where cyclic any may do both.
func randomTask(d dice, i int, timed, cyclic bool) []string {
	var keys []string
	if rule := randomRule(d, i, cyclic || i >= 3); rule != "" {
		keys = append(keys, "when: "+rule)
		if timed && d.chance(20) {
			keys = append(keys, "time-to-wait: 30m")
		}
	}
	if timed {
		keys = append(keys, "timeout: 10m")
	}
	if d.chance(40) {
		keys = append(keys, "compensate: "+pickOf(d, []string{"noop", "undo"}))
	}
	switch d(6) {
	case 0, 1:
		keys = append(keys, "on-failure: {contingency: c0}",
			"reconcile: "+pickOf(d, []string{"keep-first", "keep-original", "keep-replacement"}))
	case 2:
		keys = append(keys, "on-failure: release")
	}
	switch d(5) {
	case 0:
		keys = append(keys, "type: manual", "role: crew")
	case 1:
		keys = append(keys, "retries: {times: 1, backoff: 1s}")
	}
	if i < 3 || (cyclic && d.chance(50)) {
		keys = append(keys, pickOf(d, []string{"out: [x]", "out: [x, y]"}))
	}
	return keys
}

func randomRule(d dice, i int, reads bool) string {
	var terms []string
	for range d(4) {
		if reads && d.chance(25) {
			terms = append(terms, pickOf(d, []string{"x > 1", "y <= 1", "x == y"}))
		} else if i > 0 {
			not := pickOf(d, []string{"", "", "", "not "})
			tr := pickOf(d, []string{"succeeded", "succeeded", "succeeded", "failed", "running", "ready"})
			terms = append(terms, fmt.Sprintf(`%s%s("t%d")`, not, tr, d(i)))
		}
	}
	return strings.Join(terms, pickOf(d, []string{" and ", " and ", " or "}))
}

// randomMesh starts an instance of a random definition at three partners; a
// fourth is there to take contingencies.
func randomMesh(t testing.TB, d dice) *mesh {
	w := newMesh(t, randomDefinition(d))
	w.dice = d
	w.node("dan")
	ids := []workflow.PartnerID{"ann", "bob", "cy"}
	at := map[workflow.PartitionName]workflow.PartnerID{}
	for _, p := range w.plan.Partitions() {
		at[p.Name] = pickOf(d, ids)
	}
	w.limit = pickOf(d, []int{fact.MaxFact, 600})
	if d.chance(30) {
		w.prompt[pickOf(d, ids)], w.prompt[pickOf(d, ids)] = true, true
	}
	if err := w.start("ann", w.genesis(at, ids...)); err != nil {
		t.Fatal(err)
	}
	return w
}

// randomStep has something happen.
func (w *mesh) randomStep(d dice) {
	n := w.nodes[pickOf(d, w.names())]
	switch k := d(20); {
	case k < 8 && len(w.mail) > 0:
		w.randomDelivery(d)
	case k < 12 && len(n.jobs) > 0:
		w.end(n, pickOf(d, n.running()), randomResult(d))
	case k < 14 && n.m != nil:
		w.randomWord(d, n)
	case k == 14:
		w.crash(n)
	case k == 15:
		w.gone[n.id] = !w.gone[n.id]
		w.step(w.nodes[pickOf(d, w.names())])
	case k == 16:
		w.advance(pickOf(d, []time.Duration{time.Second, time.Minute, 15 * time.Minute, 2 * time.Hour}))
	case k == 17:
		w.meet(n.id, pickOf(d, w.names()))
	case k == 18 && n.id != "ann" && d.chance(30):
		w.restore(n, nil, fact.Incarnation{n.inc[0] + 1})
	case k == 19 && n.m != nil && d.chance(5):
		_ = n.m.Cancel("", w.moment()) // refused where it has ended
		w.step(n)
	}
}

// randomDelivery delivers any letter, loses it, or delivers it and keeps it.
func (w *mesh) randomDelivery(d dice) {
	i := d(len(w.mail))
	l := w.mail[i]
	how := d(6)
	if how != 0 {
		w.mail = slices.Delete(w.mail, i, i+1)
	}
	if how != 1 {
		w.deliver(l)
	}
}

func randomResult(d dice) Result {
	if d.chance(25) {
		return Result{Failed: true, Reason: "dice"}
	}
	return Result{Outputs: map[workflow.DataName]workflow.Value{}}
}

// randomWord has a person end some manual task, if that is possible.
func (w *mesh) randomWord(d dice, n *node) {
	t := pickOf(d, w.def.Tasks)
	res := randomResult(d)
	if !res.Failed {
		for _, o := range t.Out {
			res.Outputs[o] = int64(d(4))
		}
	}
	switch {
	case d.chance(20):
		_, _ = n.m.Reject(t.Name, "", w.moment(), w) // refused unless it is here and not started
		w.step(n)
	case t.Type == workflow.Manual:
		_ = n.m.Finish(t.Name, res, w.moment(), w) // refused unless it is ready here
		w.step(n)
	}
}

// finishAll brings everybody back, delivers everything, and has every task
// that can run end, until nothing changes.
func (w *mesh) finishAll() {
	clear(w.gone)
	w.dice = nil
	for range 60 {
		w.meetAll()
		w.stabilize(true)
		for _, id := range w.names() {
			w.peopleFinish(w.nodes[id])
		}
		w.advance(30 * time.Minute)
		if len(w.mail) == 0 && w.quiet() {
			return
		}
	}
}

func (w *mesh) peopleFinish(n *node) {
	if n.m == nil {
		return
	}
	done := map[workflow.TaskName]bool{}
	for _, t := range n.m.Definition().Tasks { // with those that were added
		done[t.Name] = t.Type == workflow.Manual
	}
	for _, sl := range n.m.state.Slots() { // as whoever gave it out knew it
		t := sl.Current.Task
		done[t.Name] = done[t.Name] || t.Type == workflow.Manual
	}
	for _, t := range slices.Sorted(maps.Keys(done)) {
		if done[t] {
			_ = n.m.Finish(t, Result{}, w.moment(), w)
			w.step(n)
		}
	}
}

// quiet reports whether everybody knows everything and the instance has ended.
func (w *mesh) quiet() bool {
	for _, id := range w.names() {
		if n := w.nodes[id]; w.takesPart(id) &&
			(n.m == nil || n.m.Overall() == workflow.InstanceRunning || len(n.jobs) > 0) {
			return false
		}
	}
	return w.sameEverywhere() == nil
}

// TestRandomHistories: whatever happens on the way, folding facts as they come
// equals folding them all at once, in any order; and once everything reaches
// everybody the instance ends, at all with the same state.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := diceOf(rt)
		w := randomMesh(t, d)
		defer func() {
			if t.Failed() {
				rt.Fatalf("%s", w.def.Canonical())
			}
		}()
		for range 10 + d(60) {
			w.randomStep(d)
			w.incremental(rt)
		}
		w.finishAll()
		w.incremental(rt)
		w.mustEnd(rt)
		w.anyOrder(rt, d)
	})
}

// incremental checks that every machine's state is what its facts mean.
func (w *mesh) incremental(rt *rapid.T) {
	for _, id := range w.names() {
		if n := w.nodes[id]; n.m != nil {
			if err := errors.Join((naive{}).state(n.m.state), (naive{}).desk(n.m)); err != nil {
				rt.Fatalf("%s: %v\n%s", id, err, w.def.Canonical())
			}
			if diff := firstDifference(n.m.Fingerprint(), w.scratch(n.m).Fingerprint()); diff != "" {
				rt.Fatalf("%s: folded as they came, and all at once: %s\n%s", id, diff, w.def.Canonical())
			}
		}
	}
}

// takesPart reports whether the initiator knows that p takes part.
func (w *mesh) takesPart(p workflow.PartnerID) bool { return w.nodes["ann"].m.Participates(p) }

func (w *mesh) mustEnd(rt *rapid.T) {
	for _, id := range w.names() {
		if n := w.nodes[id]; w.takesPart(id) && (n.m == nil || n.m.Overall() == workflow.InstanceRunning) {
			rt.Fatalf("%s: the instance does not end:\n%s\n%s", id, n.m.Fingerprint(), w.def.Canonical())
		}
	}
	if err := w.sameEverywhere(); err != nil {
		rt.Fatalf("%v\n%s", err, w.def.Canonical())
	}
	for _, sl := range w.nodes["ann"].m.state.Slots() {
		for _, a := range sl.Attempts {
			switch {
			case a.Lost():
				rt.Fatalf("%s at %s lost, and is not undone although everybody is here:\n%s\n%s", a.ID, a.Partner,
					w.nodes["ann"].m.Fingerprint(), w.def.Canonical())
			case wasCompensated(a) && a.Stands == state.Standing:
				rt.Fatalf("%s at %s stands, and was undone:\n%s\n%s", a.ID, a.Partner, w.nodes["ann"].m.Fingerprint(),
					w.def.Canonical())
			}
		}
	}
}

// anyOrder gives all facts to new machines in random batches and orders, some
// twice: their state is the same.
func (w *mesh) anyOrder(rt *rapid.T, d dice) {
	want := w.nodes["ann"].m
	for range 3 {
		got := w.shuffled(want, d)
		if diff := firstDifference(want.Fingerprint(), got.Fingerprint()); diff != "" {
			rt.Fatalf("in another order: %s\n%s", diff, w.def.Canonical())
		}
	}
}

func (w *mesh) shuffled(m *Machine, d dice) *Machine {
	var facts []fact.Received
	for _, e := range m.log.Order() {
		facts = append(facts, fact.Received{Fact: e.Fact, ID: e.ID, Raw: e.Raw, Att: &fact.Attestation{}})
	}
	got, err := Open(Self{Partner: "observer", Incarnation: fact.Incarnation{9}, Trust: testTrust{}}, w.def, w.plan,
		facts[0])
	if err != nil {
		w.t.Fatal(err)
	}
	for got.Len() < len(facts) {
		var batch []fact.Received
		for range 1 + d(5) {
			batch = append(batch, pickOf(d, facts))
		}
		if d.chance(10) {
			batch = facts
		}
		if _, err := got.Receive("somebody", batch); err != nil && !errors.Is(err, log.ErrMissingPast) {
			w.t.Fatalf("a fact that a machine wrote is refused: %v", err)
		}
	}
	return got
}

// A person who completes a task twice, because the first word was on a disk
// that got lost and came back from somebody else later.
func TestEarlierSuccessOfTheSameAttemptArrivesLater(t *testing.T) {
	w := relayMesh(t)
	two := w.nodes["two"]
	w.say("two", "b", 1)
	first := received(two.m)[two.m.Len()-2:]
	w.mail = nil
	w.restore(two, two.disk[:3], fact.Incarnation{2})
	w.advance(1)
	if _, err := two.m.Receive("three", []fact.Received{
		encoded(t, w.as("three", two.m).mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}}).Fact),
	}); err != nil {
		t.Fatal(err)
	}
	w.say("two", "b", 3)
	if _, err := two.m.Receive("one", first); err != nil {
		t.Fatal(err)
	}
	if got := two.m.state.Data()["x"].Value; got != int64(1) {
		t.Errorf("x = %v, want 1: the earlier success counts", got)
	}
	mustMatch(t, "folded as they came, and all at once", two.m, w.scratch(two.m))
}
