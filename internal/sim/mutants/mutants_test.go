package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/test/sample"
)

// Every patch still fits the code, with what is remembered besides, and what it makes compiles. Mutants that do
// not touch the same lines are compiled together: most are in the first groups.
func TestMutantsApplyAndCompile(t *testing.T) {
	root, err := output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if _, err := overlay(root, t.TempDir(), slices.Concat(m.patches, remember)); err != nil {
			t.Errorf("mutant %s does not apply any more: write it again for the changed code: %v", m.name, err)
		}
	}
	if t.Failed() || testing.Short() {
		return
	}
	groups := together(t, root)
	for _, g := range groups[:sample.Of(1, len(groups))] {
		over, err := overlay(root, t.TempDir(), g.patches)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "build", "-overlay", over, "./internal/sim")
		cmd.Dir = root
		if _, err := output(cmd); err != nil {
			t.Errorf("these mutants do not compile, one or all: %s: %v", strings.Join(g.names, ", "), err)
		}
	}
}

// group are mutants whose patches fit at once.
type group struct {
	names   []string
	patches []patch
}

// together groups the mutants.
func together(t *testing.T, root string) []*group {
	groups := []*group{{names: []string{"none"}, patches: slices.Clone(remember)}}
	for _, m := range mutants {
		i := slices.IndexFunc(groups, func(g *group) bool {
			_, err := overlay(root, t.TempDir(), slices.Concat(g.patches, m.patches))
			return err == nil
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{})
		}
		groups[i].names = append(groups[i].names, m.name)
		groups[i].patches = append(groups[i].patches, m.patches...)
	}
	return groups
}

// The simulator's variants that mutants name exist, and names are unique.
func TestMutantsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants {
		if m.name == "" || m.what == "" || seen[m.name] {
			t.Errorf("a mutant wants a name of its own and a word on what is broken: %q, %q", m.name, m.what)
		}
		seen[m.name] = true
		if (m.variant == "") == (len(m.patches) == 0) {
			t.Errorf("mutant %s is a patch, or a variant of the simulated world: one of both", m.name)
		}
	}
}
