package aptitude

import (
	"errors"
	"fmt"
	"slices"
)

// Check reports everything that is wrong with the work and the resources, in
// one error; nil when Allocate may be called with them.
func Check(q Queue, resources []Resource) error {
	var c checker
	known := make(map[ResourceID]bool, len(resources))
	for i := range resources {
		r := &resources[i]
		c.that(!known[r.ID], "resource %q appears twice: give each its own name", r.ID)
		known[r.ID] = true
		c.resource(r)
	}
	for i := range q.Waiting {
		c.item(&q.Waiting[i], known)
	}
	return errors.Join(c...)
}

// checker collects mistakes.
type checker []error

func (c *checker) that(ok bool, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Errorf(format, args...))
	}
}

func (c *checker) unit(x float64, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	c.that(x >= 0 && x <= 1, "%s is %v: it must lie in [0, 1]", what, x)
}

func (c *checker) resource(r *Resource) {
	for _, t := range sortedKeys(r.Suitability) {
		c.unit(r.Suitability[t], "suitability of %q for task %q", r.ID, t)
	}
	c.unit(r.Rested, "availability of %q when rested", r.ID)
	c.unit(r.Availability, "availability of %q", r.ID)
	c.that(!(r.Availability > r.Rested+epsilon), "availability of %q is %v, above the %v it has when rested", r.ID,
		r.Availability, r.Rested)
	c.that(r.LastFlow >= 0, "flow time of %q is %v: it must not be negative", r.ID, r.LastFlow)
}

func (c *checker) item(it *Item, known map[ResourceID]bool) {
	c.that(it.Time > 0, "expected time of %q is %v: it must be above 0", it.ID, it.Time)
	c.unit(it.Urgency.Initial, "urgency of %q", it.ID)
	c.that(it.Urgency.Growth >= 0, "urgency growth of %q is %v: it must not be negative", it.ID, it.Urgency.Growth)
	for _, id := range sortedKeys(it.Violations) {
		c.that(known[id], "%q has constraints for %q, which is not a resource: use the name of one, or add it", it.ID,
			id)
		for _, v := range it.Violations[id] {
			c.unit(v.Penalty, "penalty of constraint %q", v.Constraint)
		}
	}
	for _, id := range it.Rejected {
		c.that(known[id], "%q was rejected by %q, which is not a resource: use the name of one, or add it", it.ID, id)
	}
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
