package partition_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func randomPartners(t *rapid.T) []partition.Partner {
	partners := make([]partition.Partner, rapid.IntRange(0, 5).Draw(t, "partners"))
	for i := range partners {
		partners[i] = partition.Partner{
			ID:   workflow.PartnerID(fmt.Sprintf("id%d", i)),
			Name: fmt.Sprintf("partner-%d", i),
			Roles: rapid.SampledFrom([][]workflow.RoleName{nil, {"crew"}, {"chief"}, {"chief", "crew"}}).
				Draw(t, "roles"),
			Capabilities: rapid.SampledFrom([][]workflow.Capability{nil, {"radio"}, {"radio", "ladder"}}).
				Draw(t, "capabilities"),
			Load:      float64(rapid.IntRange(0, 2).Draw(t, "load")),
			Reachable: rapid.Bool().Draw(t, "reachable"),
		}
	}
	return partners
}

// able tells, by the definition alone, whether a partner has all the needs of a
// partition's tasks.
func able(def *workflow.Definition, part *partition.Partition, p partition.Partner) bool {
	for _, name := range part.Tasks {
		for _, n := range taskOf(def, name).Needs {
			if !slices.Contains(p.Capabilities, n) {
				return false
			}
		}
	}
	return true
}

// Assignment succeeds exactly when every partition has an able partner, and
// then every holder is able, and reachable where an able one is. The order in
// which the partners are given changes nothing.
func TestAssignGivesEveryPartitionToAnAblePartner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{roles: true})
		plan := partition.New(def)
		partners := randomPartners(t)
		holders, choices, err := partition.Assign(plan, partners, nil, "")

		hopeless := 0
		for _, part := range plan.Partitions() {
			candidates := slices.DeleteFunc(slices.Clone(partners),
				func(p partition.Partner) bool { return !able(def, part, p) })
			if len(candidates) == 0 {
				hopeless++
				continue
			}
			if err != nil {
				continue
			}
			at := slices.IndexFunc(candidates, func(p partition.Partner) bool { return p.ID == holders[part.Name] })
			if at < 0 {
				t.Fatalf("%s went to %s, able are %v", part.Name, holders[part.Name], candidates)
			}
			if !candidates[at].Reachable &&
				slices.ContainsFunc(candidates, func(p partition.Partner) bool { return p.Reachable }) {
				t.Fatalf("%s went to %s, which cannot be reached", part.Name, candidates[at])
			}
		}
		var refused partition.AssignError
		if errors.As(err, &refused); len(refused) != hopeless {
			t.Fatalf("%d partitions have nobody, refused: %v", hopeless, err)
		}

		again, choicesAgain, _ := partition.Assign(plan, rapid.Permutation(partners).Draw(t, "order"), nil, "")
		if diff := cmp.Diff(holders, again); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(choices, choicesAgain); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Candidates says able of exactly the partners that Assign accepts as a pin.
func TestCandidatesAgreeWithPins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{roles: true})
		def.Partitions = partition.Suggest(def, 1)
		plan := partition.New(def)
		partners := randomPartners(t)
		for _, c := range partition.Candidates(plan, "main", partners) {
			pins := map[workflow.PartitionName]workflow.PartnerID{"main": c.Partner.ID}
			holders, _, err := partition.Assign(plan, partners, pins, "")
			if (err == nil) != c.Able || c.Able && holders["main"] != c.Partner.ID {
				t.Fatalf("%s: able %v (%s), pinned: %v %v", c.Partner, c.Able, c.Why, holders, err)
			}
		}
	})
}
