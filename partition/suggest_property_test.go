package partition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A suggestion is a cut: every task that may become ready by itself is in one
// partition, no partition is empty, and there are as many as were asked for.
func TestSuggestIsACut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{contingencies: true, roles: true})
		k := rapid.IntRange(0, 12).Draw(t, "k")
		cut := partition.Suggest(def, k)
		placed := make(map[workflow.TaskName]int)
		names := make(map[workflow.PartitionName]bool)
		for _, p := range cut {
			if len(p.Tasks) == 0 || names[p.Name] || !workflow.ValidName(string(p.Name)) {
				t.Fatalf("partition %q %v: empty, named twice or badly", p.Name, p.Tasks)
			}
			names[p.Name] = true
			for _, task := range p.Tasks {
				placed[task]++
			}
		}
		slots := 0
		for _, task := range def.Tasks {
			want := 1
			if task.ContingencyOnly {
				want = 0
			}
			slots += want
			if placed[task.Name] != want {
				t.Fatalf("%s is in %d partitions, want %d", task.Name, placed[task.Name], want)
			}
		}
		if k > 0 && len(cut) != min(k, slots) {
			t.Fatalf("%d partitions for %d tasks, asked for %d", len(cut), slots, k)
		}
	})
}

// Left to itself, a suggestion never parts tasks that ask the same, and never
// joins tasks that ask different things.
func TestSuggestKeepsTogetherWhatAsksTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{roles: true})
		home := make(map[string]workflow.PartitionName)
		asked := make(map[workflow.PartitionName]string)
		for _, p := range partition.Suggest(def, 0) {
			for _, name := range p.Tasks {
				task := taskOf(def, name)
				ask := string(task.Role)
				for _, n := range task.Needs {
					ask += "+" + string(n)
				}
				if ask == "" {
					continue
				}
				if h, ok := home[ask]; ok && h != p.Name {
					t.Fatalf("tasks that ask %s are in %s and %s", ask, h, p.Name)
				}
				if a, ok := asked[p.Name]; ok && a != ask {
					t.Fatalf("%s has tasks that ask %s and %s", p.Name, a, ask)
				}
				home[ask], asked[p.Name] = p.Name, ask
			}
		}
	})
}

// The same definition gives the same suggestion.
func TestSuggestIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := randomDefinition(t, shape{contingencies: true, roles: true})
		k := rapid.IntRange(0, 6).Draw(t, "k")
		if diff := cmp.Diff(partition.Suggest(def, k), partition.Suggest(def, k)); diff != "" {
			t.Fatal(diff)
		}
	})
}
