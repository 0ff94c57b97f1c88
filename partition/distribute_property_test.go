package partition_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// situated adds to random partners what the mechanisms look at.
func situated(t *rapid.T, partners []partition.Partner) []partition.Partner {
	for i := range partners {
		p := &partners[i]
		p.Load = min(p.Load/2, 1)
		p.Rested = rapid.SampledFrom([]float64{1, 1, 0.8, 0}).Draw(t, "rested")
		taken := rapid.SampledFrom([]time.Duration{0, 0, 30 * time.Second, time.Minute}).Draw(t, "taken")
		p.InHand = map[partition.Kind]partition.InHand{1: {Ready: taken, All: taken}}
		p.Suitability = map[string]float64{"t0": rapid.SampledFrom([]float64{0, 0.4, 1}).Draw(t, "suitability")}
	}
	return partners
}

// Whatever the mechanism: every partition goes to a partner that is able, suited
// and not absent, one that can be reached where there is one, and to no other
// when the partners come in another order; it is refused exactly when there is
// none. Nothing waits.
func TestDistributeGivesToTheSuited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{roles: true})
		plan := partition.New(def)
		partners := situated(t, randomPartners(t))
		s := partition.Situation{
			Partners:  partners,
			InHand:    map[partition.Kind]partition.InHand{1: {Ready: time.Minute, All: time.Minute}},
			Mechanism: rapid.SampledFrom(append(aptitude.Mechanisms(), aptitude.SelPushPull)).Draw(t, "mechanism"),
		}
		seed := rapid.Uint64().Draw(t, "seed")
		distribute := func() (map[workflow.PartitionName]workflow.PartnerID, []partition.Choice, error) {
			s.Rand = rand.New(rand.NewPCG(seed, 0))
			return partition.Distribute(plan, s, nil)
		}
		holders, choices, err := distribute()

		hopeless := false
		for _, part := range plan.Partitions() {
			fit := func(p partition.Partner) bool {
				zero := slices.Contains(part.Tasks, "t0") && p.Suitability["t0"] == 0
				return able(def, part, p) && !zero && p.Rested > 0 && p.Load < 1
			}
			if !slices.ContainsFunc(partners, fit) {
				hopeless = true
				continue
			}
			if err != nil {
				continue
			}
			i := slices.IndexFunc(partners, func(p partition.Partner) bool { return p.ID == holders[part.Name] })
			if i < 0 || !fit(partners[i]) {
				t.Fatalf("partition %s goes to %v", part.Name, holders[part.Name])
			}
			if !partners[i].Reachable &&
				slices.ContainsFunc(partners, func(p partition.Partner) bool { return p.Reachable && fit(p) }) {
				t.Fatalf("partition %s goes to %s, which cannot be reached", part.Name, partners[i].Name)
			}
		}
		if (err != nil) != hopeless {
			t.Fatalf("somebody is missing for a partition: %v; the outcome is %v", hopeless, err)
		}
		for _, c := range choices {
			if c.Mechanism != s.Mechanism || c.Assignment == nil || c.Share < 0 || c.Share > 1 {
				t.Fatalf("partition %s says %+v", c.Partition, c)
			}
		}

		s.Partners = rapid.Permutation(partners).Draw(t, "another order")
		again, _, err2 := distribute()
		if (err == nil) != (err2 == nil) || !cmp.Equal(holders, again) {
			t.Fatalf("in another order of partners: %v, then %v", holders, again)
		}
	})
}
