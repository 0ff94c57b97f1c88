package aptitude

import "cmp"

// SeenIn is in how long one more resource sees an item by time alone, as it stands in an assignment that was made of the
// queue's one item now: its urgency grows and, if the policy says so, its threshold falls. 0: nobody does. Whatever
// else changes may change that.
func SeenIn(q Queue, p Policy, as *Assignment) (in float64) {
	a, it := allocator{now: q.Now, policy: p}, &q.Waiting[0]
	tier, found := 0.0, false
	for _, t := range tiers {
		if left := a.relaxed(t, it); left <= as.Threshold+epsilon && left >= as.Threshold-epsilon && t > 0 {
			tier, found = t, true
		}
	}
	if !found {
		return 0 // there is no threshold, or nothing is left of it
	}
	for i := range as.Candidates {
		c := &as.Candidates[i]
		if c.Verdict != BelowThreshold || c.Urgency <= 0 {
			continue
		}
		if t := a.exceeds(it, c.AbsAlloc()/c.Urgency, tier); t > q.Now && (in == 0 || t-q.Now < in) {
			in = t - q.Now
		}
	}
	return in
}

// exceeds is the moment from which a resource that has so much without the urgency is above a tier; 0: it never is. The
// difference of the two is made of straight pieces that do not fall, between the moments when the urgency is at its
// highest and when the item is due.
func (a *allocator) exceeds(it *Item, weight, tier float64) float64 {
	above := func(at float64) float64 {
		b := *a
		b.now = at
		return weight*it.Urgency.After(at-it.Ready) - b.relaxed(tier, it) - epsilon
	}
	var ends []float64
	if it.Urgency.Growth > 0 {
		ends = append(ends, it.Ready+(1-cmp.Or(it.Urgency.Initial, DefaultUrgency))/it.Urgency.Growth)
	}
	if a.policy.Relax && it.Instance.Due > 0 {
		ends = append(ends, it.Instance.Due)
	}
	if len(ends) == 2 && ends[1] < ends[0] {
		ends[0], ends[1] = ends[1], ends[0]
	}
	from := a.now
	for _, to := range ends {
		if to <= from {
			continue
		}
		low, high := above(from), above(to)
		if high > 0 {
			return from + (to-from)*max(0, -low)/(high-low)
		}
		from = to
	}
	return 0
}
