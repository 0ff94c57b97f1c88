package choreo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// driven is a machine whose driver says of whom it cannot send anything to that it is away.
type driven struct {
	*mesh
	m           *Machine
	reach       map[workflow.PartnerID]bool
	coordinator workflow.PartnerID
}

// Coordinator implements Partners.
func (d *driven) Coordinator() workflow.PartnerID { return d.coordinator }

// decide has it decide, and sends what follows to those that can be reached.
func (d *driven) decide() (told int) {
	d.now += time.Millisecond
	e := d.m.Decide(d.moment(), d)
	for _, p := range append(e.Tell, e.Ask...) {
		if told++; !d.reach[p] {
			d.m.Away(p)
			continue
		}
		d.m.Outgoing(p, fact.MaxFact, d.moment())
		d.m.Acknowledge(p, fact.Incarnation{1}, d.m.Heads())
	}
	return told
}

// bringsIn are n verdicts of one author that each give many tasks to partners of their own,
// who do not exist, and between which this node says something to all.
func bringsIn(t *testing.T, coordinator workflow.PartnerID, n int) (steps, facts int) {
	const each = 16
	var b strings.Builder
	b.WriteString("workflow: many\ntasks:\n  b: {}\n")
	for i := range n * each {
		fmt.Fprintf(&b, "  t%05d: {on-failure: {contingency: b}}\n", i)
	}
	w := newMesh(t, parse(t, b.String()))
	g := w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "three"}, "one", "two", "three")
	if coordinator != "" {
		g.Coordination = workflow.Orchestration
	}
	if err := w.start("one", g); err != nil {
		t.Fatal(err)
	}
	d := &driven{
		mesh: w, m: w.nodes["one"].m, coordinator: coordinator,
		reach: map[workflow.PartnerID]bool{"two": true, "three": true},
	}
	d.decide()
	before, liar, seen := d.m.log.Steps, penOf(t, d.m, "three", 7), []fact.Head{d.m.log.Genesis().Head()}
	for i := range n {
		v := &fact.Verdict{Cause: fact.CauseTimeout}
		for j := range each {
			a := fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("t%05d", i*each+j))}
			v.Actions = append(v.Actions,
				fact.Action{
					Attempt: a, Kind: workflow.FailContingency, Task: "b",
					Partner: workflow.PartnerID(fmt.Sprint("p", i*each+j)),
				})
		}
		d.m.mustTake(t, liar.write(fact.Body{Verdict: v}, seen...), liar.write(fact.Body{Seen: &fact.Seen{}}))
		d.decide()
		d.m.mustAppend(d.moment(), fact.Body{Seen: &fact.Seen{}})
		d.decide()
		seen = nil
	}
	if got := len(d.m.Participants()); got != 3+n*each {
		t.Fatalf("%d participants, want %d", got, 3+n*each)
	}
	return d.m.log.Steps - before, 3 * n
}

// Partners that somebody brings in, and that are away, cost what follows nothing, whoever
// tells all of it.
func TestStepsOfPartnersThatAreAway(t *testing.T) {
	for _, coordinator := range []workflow.PartnerID{"", "one", "two"} {
		t.Run("coordinator "+string(coordinator), func(t *testing.T) {
			growth(t, 5, func(n int) (int, int) { return bringsIn(t, coordinator, n) })
		})
	}
}

// TestWhoWasAwayIsOwedWhatItMissed: who is away is not named among those who are to be told,
// and is owed all of it when it is here again.
func TestWhoWasAwayIsOwedWhatItMissed(t *testing.T) {
	for name, returns := range map[string]func(m *Machine){
		"it can be reached":   func(m *Machine) { m.Here("two") },
		"it greets":           func(m *Machine) { m.Greet("two") },
		"it says what it has": func(m *Machine) { m.Restate("two", fact.Incarnation{1}, nil) },
		"it tells something":  func(m *Machine) { m.mustReceive("two", words(t, m, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := relayMesh(t)
			m := w.nodes["one"].m
			tells := func() []workflow.PartnerID { return m.Decide(w.moment(), w).Tell }
			tells()
			m.Away("two")
			m.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}})
			last := m.own
			if got := tells(); fmt.Sprint(got) != "[three mal]" && fmt.Sprint(got) != "[three]" {
				t.Errorf("%v are told while two is away", got)
			}
			if !m.Owes("two") {
				t.Error("two is owed nothing while it is away")
			}
			returns(m)
			m.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}})
			if got := tells(); fmt.Sprint(got)[:4] != "[two" {
				t.Errorf("%v are told when two is here again", got)
			}
			if m.peer("two").owed.At(last.Strand.Place) <= last.Fact.Seq {
				t.Error("two is not owed what was said after it returned")
			}
			b := m.Outgoing("two", fact.MaxFact, w.moment())
			if b == nil || b.Facts[len(b.Facts)-1].ID() != m.own.ID {
				t.Error("two is not sent what it missed")
			}
		})
	}
}

// mustReceive takes in facts that are valid.
func (m *Machine) mustReceive(from workflow.PartnerID, facts []fact.Received) {
	if _, err := m.Receive(from, facts); err != nil {
		panic(err)
	}
}
