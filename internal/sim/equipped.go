package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Equipped is the first seed whose definitions have resources, which tasks hold. Odd ones are claimed ones otherwise
// (Claimed), even ones rough ones (Rough) in which no users claim anything.
const Equipped = 30_000_000

// written is a task of a random definition that is no compensation.
var written = regexp.MustCompile(`(?m)^  [tx][0-9]+x*: \{`)

// equip gives a definition two resources, at partitions by chance, and most of its tasks one of them or both.
func equip(r *rand.Rand, p *Plan) {
	parts := slices.Sorted(maps.Keys(p.Pins))
	part := func() string { return parts[r.IntN(len(parts))] }
	tasks, rest, _ := strings.Cut(p.Workflow, "\npartitions:\n")
	tasks = written.ReplaceAllStringFunc(tasks, func(head string) string {
		switch r.IntN(5) {
		case 0:
			return head
		case 1:
			return head + "holds: [crane, truck], "
		case 2:
			return head + "holds: [truck], "
		}
		return head + "holds: [crane], "
	})
	p.Workflow = fmt.Sprintf("%s\nresources:\n  crane: {capacity: %d, partition: %s}\n"+
		"  truck: {capacity: 1, partition: %s}\npartitions:\n%s", tasks, 1+r.IntN(2), part(), part(), rest)
}

// served checks that nothing waits for a resource in vain: of those that a machine keeps none is free for what waits, and
// it took those over whose keeper is gone for good, or another did.
func (c *checks) served(m *machine, in *api.Instance) {
	id, err := workflow.ParseInstanceID(in.ID)
	if err != nil || len(c.w.def.Resources) == 0 {
		return
	}
	all := c.onDiskOf(m, id)
	if all == nil {
		return
	}
	for _, x := range all.Wants() {
		keeper, _ := c.w.who(x.Keeper)
		switch {
		case keeper == m.i && x.Free:
			c.w.violate("units: %s of %s waits for %v, of which there are free ones at n%d", x.Task, in.ID[:8], x.Of, m.i)
		case c.w.nodes[keeper].gone && c.w.now-c.w.disturbed > c.w.plan.ConnectionTime+c.w.judging():
			c.w.violate("units: %s of %s waits for %v, and their keeper n%d is gone for good, as n%d could know", x.Task,
				in.ID[:8], x.Of, keeper, m.i)
		}
	}
}
