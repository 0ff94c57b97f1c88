package aptitude

// choose finds who gets the item and marks the others with what stood against
// them; nil when it must wait.
func (a *allocator) choose(it *Item, as *Assignment) *Candidate {
	switch a.policy.Mechanism {
	case Push:
		return push(as.Candidates)
	case Pull, Typical, Receptive, Selective:
		as.Threshold = a.visibility(it, as.Candidates, a.policy.Mechanism.threshold())
		return a.pull(as)
	case SelPushPull:
		return a.selPushPull(it, as)
	}
	return a.selPush(it, as)
}

// push takes the most suitable; of equals the first.
func push(cs []Candidate) *Candidate {
	return best(cs, LessApt, func(c, than *Candidate) bool { return c.Suitability > than.Suitability+epsilon })
}

// best finds the candidate, among those without a verdict, that no other
// surpasses, and gives the rest the verdict; of equals it is the first.
func best(cs []Candidate, rest Verdict, surpasses func(c, than *Candidate) bool) *Candidate {
	var top *Candidate
	for i := range cs {
		c := &cs[i]
		if c.Verdict != "" {
			continue
		}
		c.Verdict = rest
		if top == nil || surpasses(c, top) {
			top = c
		}
	}
	return top
}

// visibility is the threshold at which an item can be seen. One that nobody
// could exceed even when rested gives way to the next lower one (ours), so
// that no work waits for ever.
func (a *allocator) visibility(it *Item, cs []Candidate, threshold float64) float64 {
	for _, t := range tiers {
		if t > threshold {
			continue
		}
		t = a.relaxed(t, it)
		for i := range cs {
			rested := cs[i].Factors
			rested.Availability = a.resources[cs[i].index].Rested
			if !cs[i].Verdict.out() && rested.AbsAlloc() > t+epsilon {
				return t
			}
		}
	}
	return 0
}

// pull lets one of the idle resources that see the item take it, by chance.
func (a *allocator) pull(as *Assignment) *Candidate {
	var idle []*Candidate
	for i := range as.Candidates {
		c := &as.Candidates[i]
		switch {
		case c.Verdict != "":
		case c.AbsAlloc() <= as.Threshold+epsilon:
			c.Verdict = BelowThreshold
		case a.resources[c.index].Busy:
			c.Verdict = Offered
		default:
			c.Verdict = NotDrawn
			idle = append(idle, c)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	return idle[a.rnd.IntN(len(idle))]
}

// selPush looks for capacity among the selective resources first, then the
// typical, the receptive, and all that are suited.
func (a *allocator) selPush(it *Item, as *Assignment) *Candidate {
	for i := range as.Candidates {
		c := &as.Candidates[i]
		r := &a.resources[c.index]
		if c.Verdict == "" && r.Availability+epsilon < a.cost(it, r) {
			c.Verdict = NoCapacity
		}
	}
	for _, t := range tiers {
		as.Threshold = a.relaxed(t, it)
		if c := a.pick(as.Candidates, as.Threshold); c != nil {
			return c
		}
	}
	return nil
}

// pick takes one of the candidates with capacity that reach the threshold, in
// the mechanism's way; nil when none does.
func (a *allocator) pick(cs []Candidate, threshold float64) *Candidate {
	top, reached := 0.0, false
	for i := range cs {
		if c := &cs[i]; c.Verdict == "" && c.AbsAlloc()+epsilon >= threshold {
			top, reached = max(top, c.AbsAlloc()), true
		}
	}
	if !reached {
		return nil
	}
	for i := range cs {
		switch c := &cs[i]; {
		case c.Verdict != "":
		case c.AbsAlloc()+epsilon < threshold:
			c.Verdict = BelowThreshold
		case a.policy.Mechanism == SelPush10 && c.AbsAlloc()+epsilon < 0.9*top:
			c.Verdict = LessApt
		}
	}
	return best(cs, LessApt, a.preference())
}

// preference is what the mechanism looks at among apt resources with capacity.
func (a *allocator) preference() func(c, than *Candidate) bool {
	apter := func(c, than *Candidate) bool { return c.AbsAlloc() > than.AbsAlloc()+epsilon }
	var first func(*Candidate) float64 // greater is better
	switch a.policy.Mechanism {
	case SelPush10:
		first = func(c *Candidate) float64 { return c.Availability }
	case SelPushFlowtime:
		first = func(c *Candidate) float64 { return -a.resources[c.index].LastFlow }
	default:
		return apter
	}
	return func(c, than *Candidate) bool {
		if d := first(c) - first(than); d > epsilon || d < -epsilon {
			return d > 0
		}
		return apter(c, than)
	}
}

// selPushPull offers the item to the apt while there is patience, and then
// pushes it like Sel-push.
func (a *allocator) selPushPull(it *Item, as *Assignment) *Candidate {
	if until := it.Ready + a.policy.Patience; a.now+epsilon < until {
		as.Threshold = a.visibility(it, as.Candidates, tiers[0])
		c := a.pull(as)
		if c == nil {
			as.Again = until
		}
		return c
	}
	return a.selPush(it, as)
}
