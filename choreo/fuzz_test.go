package choreo

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// FuzzReceive gives a machine facts that were valid until somebody bent them:
// errors and refusals, never a panic; and the state stays a function of the
// facts that were taken.
func FuzzReceive(f *testing.F) {
	for i := range uint64(30) {
		f.Add(i, []byte{byte(i), 0x17, byte(3 * i)})
	}
	w := guardedMesh(f)
	w.stabilize(true)
	facts := received(w.nodes["one"].m)
	f.Fuzz(func(t *testing.T, seed uint64, bend []byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newMesh(t, w.def)
		m, err := Open(Self{Partner: "three", Incarnation: fact.Incarnation{3}, Trust: testTrust{}}, w.def, w.plan,
			facts[0])
		if err != nil {
			t.Fatal(err)
		}
		m.Adopt()
		for range 12 {
			var batch []fact.Received
			for range 1 + r.IntN(4) {
				batch = append(batch, bentFact(r, m, facts, bend))
			}
			_, err := m.Receive("one", batch)
			if err != nil && !errors.Is(err, log.ErrMissingPast) && !errors.Is(err, fact.ErrInvalid) &&
				!errors.Is(err, log.ErrOtherInstance) {
				t.Fatalf("unexpected error %v", err)
			}
			n := w.node("three")
			n.m = m
			w.step(n)
			m.Snapshot()
		}
		mustMatch(t, "folded as they came, and all at once", m, w.scratch(m))
	})
}

// bentFact is one of the facts, or a new one with anything in it by one of the
// authors, with what the machine has as its past.
func bentFact(r *rand.Rand, m *Machine, facts []fact.Received, bend []byte) fact.Received {
	good := facts[r.IntN(len(facts))]
	if r.IntN(3) > 0 {
		return good
	}
	raw := bytes.Clone(good.Raw)
	for _, b := range bend {
		raw[r.IntN(len(raw))] ^= b
	}
	if f, id, err := fact.Decode(raw); err == nil {
		return fact.Received{Fact: f, ID: id, Raw: raw}
	}
	known := m.log.Order()[r.IntN(len(m.log.Order()))]
	f := &fact.Fact{
		Format: fact.Format, Instance: m.log.Instance(), Chain: known.Fact.Chain, Seq: known.Fact.Seq + 1, Prev: known.ID,
		Body: anyBody(r, m),
	}
	if r.IntN(3) == 0 {
		f.Chain = fact.Chain{
			Author:      []workflow.PartnerID{"one", "two", "three", "stranger"}[r.IntN(4)],
			Incarnation: fact.Incarnation{byte(r.IntN(3))},
		}
		f.Seq, f.Prev = 1, fact.ID{}
	}
	if r.IntN(2) == 0 || f.Seq == 1 {
		f.Seen = []fact.Head{m.log.Order()[r.IntN(len(m.log.Order()))].Head()}
	}
	raw, _, err := f.Encode()
	if err != nil {
		return good
	}
	g, id, err := fact.Decode(raw)
	if err != nil {
		return good
	}
	return fact.Received{Fact: g, ID: id, Raw: raw}
}

// anyBody says anything about any attempt that the machine knows, or none.
func anyBody(r *rand.Rand, m *Machine) fact.Body {
	partners := []workflow.PartnerID{"one", "two", "three", "four", ""}
	var attempts []fact.AttemptID
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			attempts = append(attempts, a.ID)
		}
	}
	a := attempts[r.IntN(len(attempts))]
	some := m.log.Order()[r.IntN(len(m.log.Order()))].ID
	p := partners[r.IntN(len(partners))]
	switch r.IntN(10) {
	case 0:
		return fact.Body{Start: &fact.Start{Attempt: a, Try: r.IntN(5) - 1,
			Consumed: []fact.Consumption{{Slot: a.Slot, Fact: some}}}}
	case 1:
		values := []workflow.Value{int64(3), "text", []any{int64(1), nil}, map[string]any{"k": 1.5}, []byte{1}, nil}
		success := &fact.Success{
			Attempt: a, Try: 1, Outputs: map[workflow.DataName]workflow.Value{
				"x": values[r.IntN(len(values))], "y": true,
			},
		}
		if r.IntN(2) == 0 {
			return fact.Body{Start: &fact.Start{Attempt: a, Try: 1 + r.IntN(2)}, Success: success}
		}
		return fact.Body{Success: success}
	case 2:
		if r.IntN(2) == 0 {
			return fact.Body{Lease: &fact.Lease{Attempt: a, Try: r.IntN(3), Worker: "w"}}
		}
		return fact.Body{TryFailed: &fact.TryFailed{Attempt: a, Try: r.IntN(3)}}
	case 3, 4:
		v := &fact.Verdict{Cause: fact.CauseTimeout}
		for range r.IntN(4) {
			b := attempts[r.IntN(len(attempts))]
			t := m.state.Attempts()[b].Task
			v.Actions = append(v.Actions,
				fact.Action{Attempt: b, Kind: t.OnFailure, Task: t.Contingency,
					Partner: partners[r.IntN(len(partners))]})
		}
		if r.IntN(3) == 0 {
			v.Office = &fact.Office{Office: election.Office{Term: uint64(r.IntN(3))}}
		}
		return fact.Body{Verdict: v}
	case 5:
		if r.IntN(2) == 0 { // passed on
			return fact.Body{
				Assign: &fact.Assign{After: a, Task: m.state.Attempts()[a].Task.Name, Partner: p},
				Annex:  &fact.Annex{Rejected: "no"},
			}
		}
		return fact.Body{Assign: &fact.Assign{After: a, Verdict: some, Task: m.state.Attempts()[a].Task.Contingency,
			Partner: p}}
	case 6:
		return fact.Body{CalledOff: &fact.CalledOff{Attempt: a}}
	case 7:
		return fact.Body{WriteOff: &fact.WriteOff{Partner: p}}
	case 8:
		return fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Fact: some, Slot: a.Slot}, Try: 1}}
	}
	return fact.Body{Ready: &fact.ReadyBody{Attempt: a, Trigger: true}}
}
