package choreo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A node's clock may be anywhere: what it writes is dated in the years that facts
// may say.
func TestClocksBeyondTheYearsOfFacts(t *testing.T) {
	for _, year := range []int{-40000, 1, 1969, 2026, 10000, 200000} {
		w := newMesh(t, parse(t, relay))
		at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
		now := Moment{Wall: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}
		m, err := Create(Self{Partner: "one", Trust: testTrust{}}, w.def, w.plan, w.genesis(at, "one", "two"), nil, now)
		if err != nil {
			t.Fatalf("in the year %d: %v", year, err)
		}
		for _, s := range m.Decide(now, w).Persist {
			if _, _, err := fact.Decode(s.Raw); err != nil {
				t.Errorf("in the year %d: %v", year, err)
			}
		}
	}
}

// TestTheLargestVerdictFits: with the longest names, all reasons and a proof of
// office a verdict still fits into one fact.
func TestTheLargestVerdictFits(t *testing.T) {
	name := func(i int) workflow.TaskName { return workflow.TaskName(fmt.Sprintf("%0128d", i)) }
	partner := workflow.PartnerID(strings.Repeat("p", 52))
	v := &fact.Verdict{
		Cause: fact.CauseReported, Reason: strings.Repeat("r", fact.MaxReason),
		Office: &fact.Office{Proof: make([]byte, election.MaxCredentials)},
	}
	chosen := map[workflow.TaskName]*partition.Choice{}
	for i := range fact.MaxActions {
		as := &aptitude.Assignment{Resource: aptitude.ResourceID(fmt.Sprintf("12D3KooW%044d", 18)), Threshold: 0.6}
		for k := range 20 {
			verdict := aptitude.LessApt
			if k == 18 {
				verdict = aptitude.Chosen
			}
			as.Candidates = append(as.Candidates, aptitude.Candidate{
				Resource: "12D3KooWRgtEBV1PLztE3R1ZVBCGphvBfuSZ8MJxxfoXX4iym2Hz", Verdict: verdict,
				Factors: aptitude.Factors{Suitability: float64(k+1) / 20, Urgency: 0.8, Conformance: 1, Availability: 1},
			})
		}
		c := partition.Choice{
			Partition: "p", Why: strings.Repeat("w", fact.MaxReason), Mechanism: aptitude.SelPush, Share: 0.25, Assignment: as,
		}
		chosen[name(i)] = &c
		v.Actions = append(v.Actions, fact.Action{
			Attempt: fact.AttemptID{Fact: fact.ID{1}, Slot: name(i)}, Kind: workflow.FailContingency, Task: name(i),
			Partner: partner,
		})
	}
	f := &fact.Fact{Format: fact.Format, Instance: workflow.InstanceID{1}, Chain: fact.Chain{Author: partner},
		Seq:  1 << 40,
		Prev: fact.ID{1},
		Body: fact.Body{Verdict: v, Annex: reasoned(whysOf(v.Actions, chosen)...)}}
	for i := range fact.MaxHeadsSeen {
		f.Seen = append(f.Seen, fact.Head{
			Chain: fact.Chain{Author: partner, Incarnation: fact.Incarnation{byte(i >> 8),
				byte(i)}}, Seq: 1 << 40, ID: fact.ID{1},
		})
	}
	if _, _, err := f.Encode(); err != nil {
		f.Seen = nil
		raw, _, err2 := f.Encode()
		t.Errorf("with all heads: %v; without any: %d bytes, %v", err, len(raw), err2)
	}
}

// Errors say partners by their short IDs, as all texts do that know no names.
func TestErrorsHaveShortIDs(t *testing.T) {
	id := workflow.PartnerID(workflow.CommonID + "GRUVh8nPZkZtSjKvEfGhqYVbCkF1q9sB6b4Xq3o4jLpC")
	for _, err := range []error{&Elsewhere{Task: "a", Partner: id}, &Unanswerable{By: id}} {
		if text := err.Error(); strings.Contains(text, string(id)) || !strings.Contains(text, id.Short()) {
			t.Errorf("%s: want %s in it", text, id.Short())
		}
	}
}
