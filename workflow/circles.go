package workflow

import (
	"slices"
	"strings"
)

// This file finds triggers that never come to rest: one whose transition makes a state that fires it once more, and
// several that fire one another. It says so only where that is certain.

// circles is about the triggers that may fire without a bound, by data alone.
type circles struct {
	*doubter
	o      *outcomes // of any data
	tasks  []*Task
	ways   map[*Task][][]atom
	clear  map[*Task]bool // all of its rule is understood
	final  [][]atom
	closes bool    // final is understood
	strict []*Expr // the constraints that interrupt
	next   map[*Task][]*Task
}

func (d *doubter) circles() *circles {
	c := &circles{
		doubter: d, o: d.outcomes(), ways: map[*Task][][]atom{}, clear: map[*Task]bool{}, next: map[*Task][]*Task{},
	}
	for _, x := range d.def.Constraints {
		if x.When != nil && x.Strict {
			c.strict = append(c.strict, x.When)
		}
	}
	if d.def.Final != nil {
		c.final, c.closes = c.understood(d.def.Final)
	}
	for _, t := range d.def.Tasks {
		_, alone := dataOf(t)
		never := d.idle[t] || d.rule(t) != nil && d.impossible(d.rule(t))
		if !t.Repeat || t.RepeatTimes > 0 || t.Disabled || !alone || never {
			continue
		}
		c.tasks = append(c.tasks, t)
		if rule := d.rule(t); rule != nil {
			c.ways[t], c.clear[t] = c.understood(rule)
		}
	}
	return c
}

// understood are the ways in which an expression may hold, and whether that is all of it: so that it has no part that
// could fail.
func (c *circles) understood(e *Expr) (ways [][]atom, all bool) {
	ways, known := c.expr(e, false, 0)
	return ways, known && !slices.ContainsFunc(ways, func(way []atom) bool {
		return slices.ContainsFunc(way, func(a atom) bool { return a.decl == nil })
	})
}

// again reports whether a trigger is sure to fire at each state that its own transition makes.
func (c *circles) again(t *Task) bool {
	names, _ := dataOf(t)
	if c.def.Final != nil {
		names = append(names, c.def.Final.names...)
	}
	for _, e := range c.strict {
		names = append(names, e.names...)
	}
	if aged(t) { // an age may end it, though nothing that it sets does
		return c.leads(t, t)
	}
	sets := func(n DataName) bool { return slices.Contains(names, n) }
	return !slices.ContainsFunc(t.Out, sets) || c.leads(t, t)
}

// leads reports whether the transition of t, where nothing else happens, is sure to make a state that is not final,
// breaks no strict constraint, and satisfies the rule of u.
func (c *circles) leads(t, u *Task) bool {
	if len(c.ways[t]) == 0 || !c.clear[u] {
		return false
	}
	for _, way := range c.ways[t] {
		if !c.o.can(way) {
			continue
		}
		after, sure := c.after(t, way)
		if !sure || c.o.tired() || !c.fires(u, after) || c.mayEnd(t, after) || c.mayBreak(t, after) {
			return false
		}
	}
	return true
}

// after are the values of data in the state that a transition makes which began as a way of its rule held. Not sure: it
// may fail.
func (c *circles) after(t *Task, way []atom) (of func(DataName) region, sure bool) {
	made := map[DataName]region{}
	for _, n := range t.Out {
		sets, all := c.o.sets(t, n, way)
		if !all {
			return nil, false
		}
		made[n] = region{decl: c.o.decls[n], of: sets}
	}
	return func(n DataName) region {
		if r, is := made[n]; is {
			return r
		}
		r := c.o.regionOf(n, way)
		if n == ageItem.Name { // it is older by then, nobody knows how much
			r.atoms = slices.DeleteFunc(r.atoms, func(a atom) bool { return a.op == "<" || a.op == "<=" })
		}
		return r
	}, true
}

// fires reports whether a state is sure to satisfy the rule of a trigger.
func (c *circles) fires(u *Task, after func(DataName) region) bool {
	return c.holds(c.ways[u], after)
}

// holds reports whether one of some ways is sure to hold.
func (c *circles) holds(ways [][]atom, after func(DataName) region) bool {
	return slices.ContainsFunc(ways, func(way []atom) bool {
		return !slices.ContainsFunc(way, func(a atom) bool { return a.decl == nil || !after(a.decl.Name).all(a) })
	})
}

// mayEnd reports whether the state that a transition makes may be final. The state that fired it was not.
func (c *circles) mayEnd(t *Task, after func(DataName) region) bool {
	final := c.def.Final
	sets := func(n DataName) bool { return slices.Contains(t.Out, n) }
	if final == nil || !slices.ContainsFunc(final.names, sets) {
		return false
	}
	if len(c.final) == 0 {
		return !c.closes // it never holds, or in too many ways
	}
	return slices.ContainsFunc(c.final, func(way []atom) bool {
		touched := !c.closes
		of := map[*DataDecl][]atom{}
		for _, a := range way {
			if a.decl != nil {
				of[a.decl] = append(of[a.decl], a)
				touched = touched || sets(a.decl.Name)
			}
		}
		for decl, atoms := range of {
			if !after(decl.Name).has(atoms...) {
				return false
			}
		}
		return touched
	})
}

// mayBreak reports whether the state that a transition makes may break a strict constraint. The one before it did not.
func (c *circles) mayBreak(t *Task, after func(DataName) region) bool {
	sets := func(n DataName) bool { return slices.Contains(t.Out, n) }
	return slices.ContainsFunc(c.strict, func(e *Expr) bool {
		ways, all := c.understood(e)
		return slices.ContainsFunc(e.names, sets) && (!all || !c.holds(ways, after))
	})
}

// closed are sets of triggers that fire one another: of each one's transition the state is sure to fire another of
// them, no state fires two, and no other task sets what they ask for, or what ends an instance.
func (c *circles) closed() (out [][]*Task) {
	asks := map[DataName][]*Task{}
	for _, t := range c.tasks {
		names, _ := dataOf(t)
		for _, n := range names {
			asks[n] = append(asks[n], t)
		}
	}
	pairs := 0
	for _, t := range c.tasks {
		for _, n := range t.Out {
			for _, u := range asks[n] {
				if pairs++; pairs > maxPairs {
					return nil
				}
				if u != t && !slices.Contains(c.next[t], u) && c.leads(t, u) {
					c.next[t] = append(c.next[t], u)
				}
			}
		}
	}
	done := map[*Task]bool{}
	for _, t := range c.tasks {
		if done[t] {
			continue
		}
		way := []*Task{t}
		for at := c.first(t); at != nil && !done[at]; at = c.first(at) {
			if i := slices.Index(way, at); i >= 0 {
				if circle := way[i:]; c.alone(circle) {
					slices.SortFunc(circle, func(a, b *Task) int { return strings.Compare(string(a.Name), string(b.Name)) })
					out = append(out, slices.Clone(circle))
				}
				break
			}
			way = append(way, at)
		}
		for _, x := range way {
			done[x] = true
		}
	}
	return out
}

// first is a trigger that the transition of another is sure to fire; nil: there is none.
func (c *circles) first(t *Task) *Task {
	if len(c.next[t]) == 0 {
		return nil
	}
	return c.next[t][0]
}

// alone reports whether nothing else can end a circle, and no state fires two of it.
func (c *circles) alone(circle []*Task) bool {
	var names []DataName
	if c.def.Final != nil {
		names = slices.Clone(c.def.Final.names)
	}
	for _, e := range c.strict {
		names = append(names, e.names...)
	}
	for i, t := range circle {
		of, _ := dataOf(t)
		names = append(names, of...)
		for _, u := range circle[:i] {
			if c.bothMay(t, u) {
				return false
			}
		}
	}
	for _, n := range names {
		if slices.ContainsFunc(c.writers[n], func(t *Task) bool { return !slices.Contains(circle, t) }) {
			return false
		}
	}
	return true
}

// bothMay reports whether there may be a state that fires both.
func (c *circles) bothMay(t, u *Task) bool {
	for _, x := range c.ways[t] {
		for _, y := range c.ways[u] {
			if can, _ := possible(slices.Concat(x, y)); can {
				return true
			}
		}
	}
	return false
}
