package choreo

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
)

// asksAgain tells what a node wants right after it was told at the same moment what to
// do: it has nothing new to say, to store or to run, and no reason to be woken now.
func (w *mesh) asksAgain(n *node) string {
	w.step(n)
	switch r := n.m.Decide(w.moment(), w); {
	case len(r.Persist) > 0:
		return "to store facts"
	case r.Waits != nil:
		return "to store its waits"
	case len(r.Start)+len(r.Stop) > 0:
		return "to start or stop tasks"
	case len(r.Tell) > 0:
		return "to tell somebody something"
	case len(r.Beyond) > 0:
		return "to report " + r.Beyond[0].Error()
	case r.Wake != 0 && r.Wake <= w.now:
		return "to be woken now"
	}
	return ""
}

// TestDecidingTwiceAsksForNothingNew: in random histories, with stores that are put back
// without anybody noticing and what follows from that, a decision right after another
// at one moment asks for nothing.
func TestDecidingTwiceAsksForNothingNew(t *testing.T) {
	out := 0
	check := func(rt *rapid.T) {
		d := diceOf(rt)
		w := randomMesh(t, d)
		for range 20 + d(60) {
			if n := w.nodes[pickOf(d, w.names())]; d.chance(4) && len(n.disk) > 1 && n.id != "ann" {
				w.restore(n, n.upTo(1+d(len(n.disk)-1)), n.inc)
			} else {
				w.randomStep(d)
			}
			w.dice = nil // else who can take something changes between two decisions
			for _, id := range w.names() {
				n := w.nodes[id]
				if n.m == nil {
					continue
				}
				if err := (naive{n.m.log}).kept(n.m); err != nil {
					rt.Fatalf("%s: %v\n%s\n%s", id, err, n.m.Fingerprint(), w.def.Canonical())
				}
				if asks := w.asksAgain(n); asks != "" {
					rt.Fatalf("%s asks again %s\n%s\n%s", id, asks, n.m.Fingerprint(), w.def.Canonical())
				}
				if !n.m.heeded() {
					out++
				}
			}
			w.dice = d
		}
	}
	rapid.Check(t, check)
	for more := 0; out == 0 && more < 20 && !t.Failed(); more++ { // a few histories may be too few
		rapid.Check(t, check)
	}
	if out == 0 {
		t.Error("in no history did somebody take no part any more: the test does not test that")
	}
}

// TestWhoTakesNoPartAnyMoreIsIdle: a node that was brought in by a chain that proves to
// be forked takes no part any more. It has nothing to wait for, after a restart neither.
func TestWhoTakesNoPartAnyMoreIsIdle(t *testing.T) {
	w, one, old := newGivenToThree(t)
	three := w.node("three")
	for _, l := range w.take("one", "three") {
		w.deliver(l)
	}
	if _, runs := three.jobOf("a2"); !runs {
		t.Fatal("three does not run a2")
	}
	w.mail = nil
	w.restore(one, old[:1], one.inc) // unnoticed
	w.end(one, one.running()[0], Result{})
	var proof []fact.Received
	for _, f := range received(one.m) {
		f.Att = &fact.Attestation{}
		proof = append(proof, f)
	}
	if _, err := three.m.Receive("one", proof); err != nil {
		t.Fatal(err)
	}
	w.step(three)
	if three.m.Participates("three") {
		t.Fatal("three still takes part")
	}
	for _, restart := range []bool{false, true} {
		w.now += time.Minute
		if restart {
			w.reload(three)
		}
		if asks := w.asksAgain(three); asks != "" || len(three.waits.All) > 0 || three.wake != 0 {
			t.Errorf("after a restart %t: it asks again %q, waits for %v and wakes at %s", restart, asks, three.waits,
				three.wake)
		}
	}
}
