package choreo

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const randomFlow = `
workflow: w
data: {n: {type: integer, default: 0}, a: {type: integer}, b: {type: integer}}
tasks:
  left: {when: n < 4 and (a == null or a < n), repeat: true, application: x, out: [a], compensate: {application: unx}}
  right: {when: n < 4 and (b == null or b < n), repeat: true, application: x, out: [b],
	retries: {times: 1, backoff: 1s}}
  step: {when: n < 4 and a == n and b == n, repeat: true, application: x, out: [n], compensate: {application: unx}}
  end: {when: n == 4, repeat: true, application: x, out: [n]}
final: n == 5
`

// flowRun is a random history of a flow: holders are lost and come back, letters are late or lost,
// nodes crash in any window, transitions end well or fail.
func flowRun(t *testing.T, seed uint64) *mesh { return flowHistory(t, seed, randomFlow, 60, nil) }

// flowHistory is flowRun for a definition, of that many steps, in which people act, too.
func flowHistory(t *testing.T, seed uint64, src string, steps int, people func(w *mesh, n *node, r *rand.Rand)) *mesh {
	r := rand.New(rand.NewPCG(seed, 14))
	w := newMesh(t, parse(t, src))
	names := []workflow.PartnerID{"ann", "ben", "cleo"}
	at := map[workflow.PartitionName]workflow.PartnerID{}
	for i, p := range w.plan.Partitions() {
		at[p.Name] = names[i%len(names)]
	}
	if err := w.start("ann", w.genesis(at, names...)); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	for range steps {
		n := w.nodes[names[r.IntN(3)]]
		switch r.IntN(10) {
		case 0:
			w.gone[n.id] = !w.gone[n.id]
		case 1:
			w.now += time.Duration(r.IntN(1200)) * time.Second
			for _, p := range names {
				w.step(w.nodes[p])
			}
		case 2:
			if n.m != nil {
				w.crash(n)
			}
		case 3:
			w.meet(names[r.IntN(3)], names[r.IntN(3)])
		case 4, 5:
			if len(w.mail) > 0 {
				i := r.IntN(len(w.mail))
				l := w.mail[i]
				w.mail = slices.Delete(w.mail, i, i+1)
				if r.IntN(4) > 0 {
					w.deliver(l)
				}
			}
		default:
			if people != nil && n.m != nil && r.IntN(3) > 0 {
				people(w, n, r)
				continue
			}
			if n.m == nil || len(n.running()) == 0 {
				continue
			}
			ids := n.running()
			id := ids[r.IntN(len(ids))]
			w.end(n, id, flowResult(n.m, id, r))
		}
	}
	return w
}

// flowResult is how a transition ends: mostly as it should.
func flowResult(m *Machine, id fact.AttemptID, r *rand.Rand) Result {
	a := m.state.Attempts()[id]
	if a == nil || a.Undoes != nil {
		return Result{}
	}
	if r.IntN(12) == 0 {
		return Result{Failed: true, Reason: "no luck"}
	}
	v, _ := m.state.Values()["n"].(int64)
	out := map[workflow.DataName]workflow.Value{}
	switch a.Task.Name {
	case "left":
		out["a"] = v
	case "right":
		out["b"] = v
	case "step", "end":
		out["n"] = v + 1
	case "age":
		out["old"] = true
	}
	return Result{Outputs: out}
}

// Whatever happens, all that have the same facts have the same history, whatever the order in
// which the facts came; and every history is one line from the first state.
func TestFlowsConverge(t *testing.T) {
	ended, replaced, superseded, interrupted := 0, 0, 0, 0
	for seed := range uint64(60) {
		w := flowRun(t, seed)
		comeTogether(w)
		want := agreed(t, w, seed)
		checkLine(t, seed, want)
		h := want.state.Flow()
		if want.Overall() == workflow.InstanceSucceeded {
			ended++
		}
		if len(h.Slot.Attempts) > 1 {
			replaced++
		}
		if want.Interrupted() != nil {
			interrupted++
		}
		for _, task := range []workflow.TaskName{"left", "right", "step", "end"} {
			superseded += len(want.state.SupersededJobs(task))
		}
	}
	if ended+interrupted == 0 || replaced == 0 || superseded == 0 || interrupted == 0 {
		t.Errorf("of 60 flows %d ended, %d were interrupted, %d were taken over, and %d transitions were superseded: want some of each", ended, interrupted, replaced, superseded)
	}
}

// comeTogether has all partners be there, and hear of each other's facts.
func comeTogether(w *mesh) {
	clear(w.gone)
	for range 3 {
		for _, p := range w.names() {
			for _, q := range w.names() {
				w.meet(p, q)
			}
		}
		w.stabilize(false)
	}
}

// agreed demands that all who have the same facts have the same state, in whatever order these came, and gives the
// machine of ann.
func agreed(t *testing.T, w *mesh, seed uint64) *Machine {
	t.Helper()
	want := w.nodes["ann"].m
	for _, p := range []workflow.PartnerID{"ben", "cleo"} {
		if got := w.nodes[p].m; got.Digest() == want.Digest() &&
			string(got.Fingerprint()) != string(want.Fingerprint()) {
			t.Fatalf("seed %d: ann and %s have the same facts, and not the same state:\n%s", seed, p,
				firstDifference(want.Fingerprint(), got.Fingerprint()))
		}
	}
	shuffled(t, w, seed)
	return want
}

// shuffled has a node hear of all facts in another order.
func shuffled(t *testing.T, w *mesh, seed uint64) {
	from := w.nodes["ann"].m
	r := rand.New(rand.NewPCG(seed, 15))
	m, err := Open(Self{Partner: "dora", Incarnation: fact.Incarnation{9}, Trust: testTrust{}}, w.def, w.plan,
		asReceived(from.log.Genesis()))
	if err != nil {
		t.Fatal(err)
	}
	left := slices.Clone(from.log.Order()[1:])
	for len(left) > 0 {
		i := r.IntN(len(left))
		if _, err := m.Receive("ann", []fact.Received{asReceived(left[i])}); err == nil &&
			m.log.ByID()[left[i].ID] != nil {
			left = slices.Delete(left, i, i+1)
		}
	}
	if string(m.Fingerprint()) != string(from.Fingerprint()) {
		t.Fatalf("seed %d: in another order the facts come to something else:\n%s", seed,
			firstDifference(from.Fingerprint(), m.Fingerprint()))
	}
}

func asReceived(e *log.Entry) fact.Received {
	return fact.Received{Fact: e.Fact, ID: e.ID, Raw: e.Raw, Att: &fact.Attestation{Sig: make([]byte, 64)}}
}

// checkLine checks that each state was made from the one before, by what that state or an
// earlier one fired, and that the data are those of the last.
func checkLine(t *testing.T, seed uint64, m *Machine) {
	states := 0
	last := map[workflow.DataName]workflow.Value{}
	for _, v := range m.History() {
		if v.Mark == "aborted" {
			continue
		}
		if v.Output != states || v.Input != states-1 || v.FiredBy >= states {
			t.Errorf("seed %d: state %d is number %d, was made from %d and fired by %d", seed, states, v.Output,
				v.Input, v.FiredBy)
		}
		states++
		last = v.Values
	}
	for n, v := range last {
		if m.state.Values()[n] != v {
			t.Errorf("seed %d: %s is %v, and %v in the last state", seed, n, m.state.Values()[n], v)
		}
	}
	checkPending(t, seed, m)
	checkOutlooks(t, seed, m)
}

// checkPending checks what is said to have been pending in each state.
func checkPending(t *testing.T, seed uint64, m *Machine) {
	history := m.History()
	for _, v := range history {
		if v.Mark == "aborted" {
			continue
		}
		want := map[workflow.TaskName]bool{}
		for _, r := range history {
			ended := r.Output
			if r.Mark == "aborted" {
				ended++
			}
			if r.FiredBy >= 0 && r.FiredBy <= v.Output && v.Output < ended {
				want[r.Task] = true
			}
		}
		for _, p := range m.state.Flow().Line.Board.Pending() {
			if p.State <= v.Output {
				want[p.Task.Name] = true
			}
		}
		if got := slices.Sorted(maps.Keys(want)); !slices.Equal(got, v.Pending) {
			t.Errorf("seed %d: in S%d %v was pending, want %v", seed, v.Output, v.Pending, got)
		}
	}
}

// checkOutlooks checks that what a step would lead to is said of those that are allowed, and that nothing changes by it.
func checkOutlooks(t *testing.T, seed uint64, m *Machine) {
	before := string(m.Fingerprint())
	allowed, _ := m.Recovery()
	for _, method := range []string{dataflow.MethodCompensate, dataflow.MethodOffer, dataflow.MethodRestart} {
		o, err := m.ForeseeRecovery(dataflow.Step{Method: method})
		if may := slices.Contains(allowed, method); may != (err == nil) {
			t.Errorf("seed %d: %s is allowed %t, and to foresee it: %v", seed, method, may, err)
		}
		if err == nil && (o.Cause == "") == (len(o.Fires) == 0 && !o.Final) {
			t.Errorf("seed %d: %s leads nowhere, or to two ends: %+v", seed, method, o)
		}
	}
	if string(m.Fingerprint()) != before {
		t.Errorf("seed %d: to foresee a recovery changed the state", seed)
	}
}

// However long the history, a data state takes no more steps than the first did twice.
func TestDataStatesCostTheSame(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: w
data: {n: {type: integer, default: 0}}
tasks:
  go: {when: n >= 0, repeat: true, application: x, out: [n]}
final: n < 0
`))
	if err := w.start("ann", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "ann"},
		"ann")); err != nil {
		t.Fatal(err)
	}
	n := w.nodes["ann"]
	steps := func() int { return n.m.log.Steps + n.m.state.Flow().Line.Board.Steps() }
	first, most := 0, 0
	for i := range int64(10_000) {
		before := steps()
		id, runs := n.jobOf("go")
		if !runs {
			t.Fatalf("state %d: nothing runs", i)
		}
		w.end(n, id, Result{Outputs: map[workflow.DataName]workflow.Value{"n": i + 1}})
		cost := steps() - before
		switch most = max(most, cost); {
		case i == 1:
			first = cost
		case i > 1 && cost > 2*first:
			t.Fatalf("state %d took %d steps, the first %d", i+1, cost, first)
		}
	}
	t.Logf("the first state took %d steps, none more than %d", first, most)
	if got := n.m.state.Flow().Line.Board.State(); got != 10_000 {
		t.Errorf("there are %d states", got)
	}
}
