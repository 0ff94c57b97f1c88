package fact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// sampleFacts are one fact of every kind, with fixed contents.
func sampleFacts() []*fact.Fact {
	id := func(b byte) (f fact.ID) {
		for i := range f {
			f[i] = b + byte(i)
		}
		return f
	}
	instance := fact.InstanceOf(id(1))
	a := fact.AttemptID{Slot: "procedure-1"}
	b := fact.AttemptID{Fact: id(7), Slot: "procedure-1"}
	chain := fact.Chain{Author: "12D3KooWexample", Incarnation: fact.Incarnation{1, 2, 3, 4, 5, 6, 7, 8}}
	part := fact.Parent{Instance: instance, Attempt: b, Try: 1, Line: []workflow.PartnerID{"12D3KooWother"}}
	bodies := []fact.Body{
		{Genesis: &fact.Genesis{
			Definition: workflow.Hash(id(2)), Nonce: [16]byte{9, 8, 7},
			Input: map[workflow.DataName]workflow.Value{
				"address": "Cais 5", "crew": int64(4), "level": 0.5, "night": true, "tags": []any{"a", nil},
				"unit": map[string]any{"b": int64(-2), "a": nil},
			},
			Succession:   []workflow.PartnerID{"12D3KooWexample", "12D3KooWother"},
			Assign:       []fact.Placement{{Partition: "engine", Partner: "12D3KooWother"}},
			Responsible:  "ana",
			Coordination: workflow.Choreography,
		}},
		{Ready: &fact.ReadyBody{Attempt: a, Trigger: true}},
		{Start: &fact.Start{Attempt: a, Try: 1, Consumed: []fact.Consumption{{Slot: "dispatch", Fact: id(3)}}}},
		{Success: &fact.Success{
			Attempt: a, Try: 1, Outputs: map[workflow.DataName]workflow.Value{
				"report": "out", "level": 2.0, "n": int64(1 << 40),
			},
		}},
		{TryFailed: &fact.TryFailed{Attempt: a, Try: 2, Reason: "no water"}},
		{Verdict: &fact.Verdict{Cause: fact.CauseExpired, Reason: "gone", Actions: []fact.Action{
			{Attempt: a, Kind: workflow.FailContingency, Task: "procedure-2", Partner: "12D3KooWother"},
			{Attempt: b, Kind: workflow.FailBlock}}, Office: &fact.Office{Office: election.Office{Term: 3, Number: 1,
			List: election.ListHash(id(4))}, Proof: []byte{1, 2, 3}}}},
		{Assign: &fact.Assign{After: a, Verdict: id(5), Task: "procedure-2", Partner: "12D3KooWother"}},
		{CalledOff: &fact.CalledOff{Attempt: b}},
		{Cancel: &fact.Cancel{Reason: "false alarm"}},
		{Seen: &fact.Seen{Aside: []fact.Head{{Chain: fact.Chain{Author: "12D3KooWother"}, Seq: 4, ID: id(9)}}}},
		{WriteOff: &fact.WriteOff{Partner: "12D3KooWother"}},
		{Genesis: &fact.Genesis{
			Definition: workflow.Hash(id(2)), Succession: []workflow.PartnerID{"12D3KooWexample"},
			Coordination: workflow.Choreography,
			Assign:       []fact.Placement{{Partition: "engine", Partner: "12D3KooWexample"}},
		}, Annex: &fact.Annex{Mechanism: aptitude.SelPush, Why: []fact.Why{{
			Partition: "engine", Mechanism: aptitude.SelPush, Reason: "chosen by Sel-push", Threshold: 600, Share: 250,
			Others: 2,
			Candidates: []fact.Weighed{{Partner: "12D3KooWexample", Suitability: 900, Urgency: 800, Conformance: 1000,
				Availability: 1000, Verdict: aptitude.Chosen}},
		}}, Dropped: []fact.Dropped{{Task: "survey", DataSet: "flood-map", Hash: id(9), Holder: "12D3KooWother"}}}},
		{Assign: &fact.Assign{After: a, Task: "procedure-1", Partner: "12D3KooWother"}, Annex: &fact.Annex{
			Rejected: "no water", Why: []fact.Why{{Tasks: []workflow.TaskName{"procedure-1"},
				Reason: "the only one able"}}}},
		{Child: &fact.Child{Attempt: b, Try: 1, Instance: fact.InstanceOf(id(10))}},
		{Genesis: &fact.Genesis{
			Definition: workflow.Hash(id(2)), Nonce: part.Nonce(), Succession: []workflow.PartnerID{"12D3KooWexample"},
			Coordination: workflow.Choreography, Assign: []fact.Placement{{Partition: "main",
				Partner: "12D3KooWexample"}},
		}, Annex: &fact.Annex{Parent: &part, Uses: []fact.Pin{{Workflow: "evacuation",
			Definition: workflow.Hash(id(11))}}}},
		{Lease: &fact.Lease{Attempt: b, Try: 1, Worker: "weigher-2", At: "12D3KooWother", Key: [16]byte{5, 6, 7}}},
		{Fire: &fact.Fire{
			Attempt: fact.AttemptID{Fact: id(6), Slot: workflow.FlowTask}, State: id(5),
			Tasks: []workflow.TaskName{"look", "tell"}, ForWorkers: []workflow.TaskName{"tell"},
		}},
		{
			Start:   &fact.Start{Attempt: b, Try: 1, Consumed: []fact.Consumption{{Slot: "call", Fact: id(7)}}},
			Success: &fact.Success{Attempt: b, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"level": 2.5}},
		},
	}
	facts := make([]*fact.Fact, len(bodies))
	for i, body := range bodies {
		f := &fact.Fact{
			Format: fact.Format, Instance: instance, Chain: chain, Seq: uint64(i + 1), Prev: id(byte(i)),
			At: 1772352000000 + int64(i), Body: body,
		}
		f.Seen = []fact.Head{{Chain: fact.Chain{Author: "12D3KooWother"}, Seq: 300, ID: id(8)}}
		if body.Genesis != nil {
			f.Seq, f.Instance, f.Prev, f.Seen = 1, workflow.InstanceID{}, fact.ID{}, nil
		}
		facts[i] = f
	}
	return facts
}

// TestVectors holds the encoding and the name of a fact of every kind against
// testdata/vectors.txt. Facts are stored and signed by their bytes: a change
// here means a new fact.Format.
func TestVectors(t *testing.T) {
	facts := sampleFacts()
	datadriven.RunTest(t, "testdata/vectors.txt", func(t *testing.T, d *datadriven.TestData) string {
		for _, f := range facts {
			kind := f.Body.Kind()
			if f.Body.Annex != nil {
				kind += "-with-annex"
			}
			if kind != d.Cmd {
				continue
			}
			raw, id, err := f.Encode()
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if _, again, err := fact.Decode(raw); err != nil || again != id {
				d.Fatalf(t, "it does not decode: %v", err)
			}
			return fmt.Sprintf("name %s\n%s", id, broken(fmt.Sprintf("%x", raw)))
		}
		d.Fatalf(t, "no fact of kind %s", d.Cmd)
		return ""
	})
}

// broken breaks a long text into lines.
func broken(s string) string {
	var out []string
	for ; len(s) > 96; s = s[96:] {
		out = append(out, s[:96])
	}
	return strings.Join(append(out, s), "\n")
}
