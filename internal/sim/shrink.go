package sim

import "slices"

// Shrink leaves out of a failing plan what it takes no part in: faults and
// starts, one after the other, as long as the run still fails.
func Shrink(p Plan, v Variant) Plan {
	fails := func(p Plan) bool { return len(Run(p, v).Violations) > 0 }
	for again := true; again; {
		again = false
		for i := len(p.Faults) - 1; i >= 0; i-- {
			q := p
			q.Faults = slices.Delete(slices.Clone(p.Faults), i, i+1)
			if fails(q) {
				p, again = q, true
			}
		}
		for i := len(p.Starts) - 1; i >= 0 && len(p.Starts) > 1; i-- {
			q := p
			q.Starts = slices.Delete(slices.Clone(p.Starts), i, i+1)
			if fails(q) {
				p, again = q, true
			}
		}
	}
	return p
}
