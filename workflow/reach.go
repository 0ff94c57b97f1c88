package workflow

// maxClauses bounds the search for a way in which a rule can hold. A rule with
// more ways is taken to be reachable.
const maxClauses = 64

// checkReach reports rules that can never hold. It reports only what is certain.
func (r *reader) checkReach(g *graph) {
	released := g.released()
	for _, t := range g.tasks {
		if t.TimeToWait > 0 {
			continue // it starts when the wait ends
		}
		if !mayHold(t.Rule, func(name TaskName) bool { return released[g.index[name]] }) {
			r.on(r.where(t, "when"), "what one part asks, another excludes", "the rule of %s can never hold", t.Name)
		}
	}
}

// released says of each task whether its failure, or that of a contingency in its
// place, releases.
func (g *graph) released() []bool {
	covered := make([][]int, len(g.tasks)) // the tasks that name it as their contingency
	var queue []int
	for i, t := range g.tasks {
		if c, ok := g.index[t.Contingency]; ok {
			covered[c] = append(covered[c], i)
		}
		if t.OnFailure == FailRelease {
			queue = append(queue, i)
		}
	}
	out := make([]bool, len(g.tasks))
	for ; len(queue) > 0; queue = queue[1:] {
		if i := queue[0]; !out[i] {
			out[i] = true
			queue = append(queue, covered[i]...)
		}
	}
	return out
}

// clause is one way in which a rule can hold: what it asks of each task that the
// rule mentions more than once, a bit for each kind of term. Other terms exclude
// nothing. Nil asks nothing.
type clause []uint8

// search finds the ways in which one rule can hold.
type search struct {
	places map[TaskName]int // of the tasks that count
}

// mayHold is false if it is certain that a rule cannot hold. A term on a task whose
// failure releases may be dropped from the rule, so it excludes nothing.
func mayHold(rule *Rule, releases func(TaskName) bool) bool {
	times := map[TaskName]int{}
	rule.Terms(func(leaf *Rule) {
		if leaf.Op == OpTask {
			times[leaf.Task]++
		}
	})
	s := search{places: map[TaskName]int{}}
	for name, n := range times {
		if n > 1 && !releases(name) {
			s.places[name] = len(s.places)
		}
	}
	ways, known := s.ways(rule)
	return !known || len(ways) > 0
}

// ways lists how a rule can hold; known is false if there are more than maxClauses.
func (s search) ways(r *Rule) (list []clause, known bool) {
	if r == nil {
		return []clause{nil}, true
	}
	switch r.Op {
	case OpOr:
		return s.either(r.Args)
	case OpAnd:
		return s.all(r.Args)
	case OpTask:
		if place, counts := s.places[r.Task]; counts {
			c := make(clause, len(s.places))
			c[place] = bit(r.Transition, r.Negated)
			return []clause{c}, true
		}
	case OpData:
		if neverHolds(r) {
			return nil, true
		}
	}
	return []clause{nil}, true
}

// either lists the ways of a rule of which one part must hold.
func (s search) either(parts []*Rule) (list []clause, known bool) {
	free := false // a way that asks nothing is there
	for _, p := range parts {
		some, known := s.ways(p)
		if !known {
			return nil, false
		}
		for _, c := range some {
			if c != nil || !free {
				list = append(list, c)
			}
			free = free || c == nil
		}
		if len(list) > maxClauses {
			return nil, false
		}
	}
	return list, true
}

// all lists the ways of a rule of which all parts must hold: the terms first, which
// together are one way, then what leaves a choice.
func (s search) all(parts []*Rule) (list []clause, known bool) {
	terms := make(clause, len(s.places))
	for _, p := range parts {
		place, counts := s.places[p.Task]
		switch {
		case p.Op == OpTask && counts:
			terms[place] |= bit(p.Transition, p.Negated)
		case p.Op == OpData && neverHolds(p):
			return nil, true
		}
	}
	if contradictory(terms) {
		return nil, true
	}
	list = []clause{terms}
	for _, p := range parts {
		if p.Op == OpTask || p.Op == OpData {
			continue
		}
		some, known := s.ways(p)
		if !known || len(some)*len(list) > maxClauses {
			return nil, false
		}
		list = together(list, some)
	}
	return list, true
}

func neverHolds(leaf *Rule) bool {
	if !leaf.Data.constant {
		return false
	}
	v, err := leaf.Data.Eval(Env{})
	return err != nil || v != true
}

// together joins every way of one rule with every way of another and drops the
// contradictions.
func together(a, b []clause) []clause {
	var out []clause
	for _, x := range a {
		for _, y := range b {
			joined := append(clause(nil), x...)
			if x == nil {
				joined = y
			}
			for place := range min(len(joined), len(y)) {
				joined[place] |= y[place]
			}
			if !contradictory(joined) {
				out = append(out, joined)
			}
		}
	}
	return out
}

// bit is the kind of a term: four transitions, each negated or not.
func bit(tr Transition, negated bool) uint8 {
	place := map[Transition]int{BecameReady: 0, BecameRunning: 1, BecameSucceeded: 2, BecameFailed: 3}[tr]
	if negated {
		place += 4
	}
	return 1 << place
}

// contradictory reports whether a way asks of a task what excludes each other: a
// transition and its negation, or success and failure.
func contradictory(c clause) bool {
	both := bit(BecameSucceeded, false) | bit(BecameFailed, false)
	for _, asked := range c {
		if asked&(asked>>4)&0xf != 0 || asked&both == both {
			return true
		}
	}
	return false
}
