package fact_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// manyCandidates is a choice among n partners of which the last but one was chosen.
func manyCandidates(n int) partition.Choice {
	as := &aptitude.Assignment{Resource: aptitude.ResourceID(fmt.Sprintf("12D3KooW%044d", n-2)), Threshold: 0.6}
	for i := range n {
		c := aptitude.Candidate{
			Resource: aptitude.ResourceID(fmt.Sprintf("12D3KooW%044d", i)), Verdict: aptitude.LessApt,
			Factors: aptitude.Factors{
				Suitability: float64(i+1) / float64(n), Urgency: 0.8, Conformance: 1, Availability: 1,
			},
		}
		if c.Resource == as.Resource {
			c.Verdict = aptitude.Chosen
		}
		as.Candidates = append(as.Candidates, c)
	}
	return partition.Choice{
		Partition: "p", Why: "chosen by Sel-push", Mechanism: aptitude.SelPush, Share: 0.25, Assignment: as,
	}
}

// The eight best candidates are recorded, the chosen one first.
func TestWhyNamesTheBest(t *testing.T) {
	w := fact.WhyOf(manyCandidates(20))
	if len(w.Candidates) != 8 || w.Others != 12 || w.Candidates[0].Verdict != aptitude.Chosen || w.Threshold != 600 ||
		w.Share != 250 {
		t.Fatalf("%+v", w)
	}
	if w.Candidates[1].Suitability != 1000 || w.Candidates[7].Suitability != 650 {
		t.Errorf("the others are not the best: %+v", w.Candidates)
	}
	if f := w.Candidates[1].Factors(); f.AbsAlloc() != 0.8 {
		t.Errorf("its abs_alloc is %v, want 0.8", f.AbsAlloc())
	}
}

// However many partitions there are, the reasons leave room for the rest of the fact.
func TestWhyOfManyPartitionsFitsAFact(t *testing.T) {
	for _, n := range []int{1, 64, 65, 512, 600, 5000} {
		why := make([]fact.Why, n)
		for i := range why {
			why[i] = fact.WhyOf(manyCandidates(20))
		}
		why = fact.Brief(why)
		raw, err := fact.EncMode.Marshal(fact.Annex{Why: why})
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) > fact.MaxFact/2 {
			t.Errorf("the reasons of %d partitions take %d bytes", n, len(raw))
		}
		if w := why[0]; w.Candidates[0].Verdict != aptitude.Chosen || len(w.Candidates)+w.Others != 20 {
			t.Errorf("of %d partitions the first says %d candidates and %d others", n, len(w.Candidates), w.Others)
		}
	}
}

// An annex that no correct node writes is refused.
func TestAnnexIsChecked(t *testing.T) {
	var genesis, success *fact.Fact
	for _, f := range sampleFacts() {
		switch f.Body.Kind() {
		case "genesis":
			genesis = f
		case "success":
			success = f
		}
	}
	why := fact.WhyOf(manyCandidates(20))
	tooMany := why
	tooMany.Candidates = append(tooMany.Candidates, tooMany.Candidates[0])
	for _, c := range []struct {
		fact  *fact.Fact
		annex fact.Annex
		want  string
	}{
		{genesis, fact.Annex{Mechanism: aptitude.Push, Why: []fact.Why{why}}, ""},
		{genesis, fact.Annex{Why: []fact.Why{tooMany}}, "9 candidates"},
		{genesis, fact.Annex{Why: []fact.Why{{Reason: strings.Repeat("x", fact.MaxReason+4)}}}, "at most 4096"},
		{genesis, fact.Annex{Rejected: strings.Repeat("x", fact.MaxReason+4)}, "at most 4096"},
		{success, fact.Annex{Why: []fact.Why{why}}, "a success fact has no annex"},
	} {
		f := *c.fact
		f.Body.Annex = &c.annex
		_, _, err := fact.Decode(unchecked(t, &f))
		if c.want == "" && err != nil ||
			c.want != "" && (!errors.Is(err, fact.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("decoding gives %v, want %q", err, c.want)
		}
	}
}
