package partition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A join that could not start if all that it waits for was contested is warned of; what always
// fits is not. The limit is that of one fact.
func TestLargeJoinsAreWarnedOf(t *testing.T) {
	if partition.MaxNamed != choreo.MaxFact {
		t.Errorf("the check goes by %d bytes, a fact has at most %d", partition.MaxNamed, choreo.MaxFact)
	}
	for _, c := range []struct {
		tasks int
		warns bool
	}{{5_000, false}, {7_000, true}} {
		var b strings.Builder
		b.WriteString("workflow: wide\ntasks:\n")
		for i := range c.tasks {
			fmt.Fprintf(&b, "  t%04d: {}\n", i)
		}
		b.WriteString("  end: {after: [")
		for i := range c.tasks {
			fmt.Fprintf(&b, "t%04d, ", i)
		}
		b.WriteString("]}\n")
		def, err := workflow.Parse("wide.yaml", []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		warned := ""
		for _, w := range partition.Check(partition.New(def)) {
			if w.Task == "end" {
				warned = w.String()
			}
		}
		if c.warns != strings.Contains(warned, "waits for 7000 tasks: where more than about 5825") {
			t.Errorf("%d tasks: %q", c.tasks, warned)
		}
	}
}
