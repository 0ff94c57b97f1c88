package partition

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says how apt a partner is for a piece of work, and what the work is
// expected to take: what the mechanisms of package aptitude are fed with.

// The expected time of a task whose author wrote no duration.
const (
	automaticTime = time.Second
	personsTime   = time.Minute
)

// Expected is how long a task is expected to take: its duration; else, of the
// built-in sleep, what it sleeps; else a second, and a minute for a person.
func Expected(t *workflow.Task) time.Duration {
	switch {
	case t.Duration > 0:
		return t.Duration
	case t.Application == workflow.AppSleep && t.With.For > 0:
		return t.With.For
	case t.Type == workflow.Manual || t.Type == workflow.SemiAutomatic:
		return personsTime
	}
	return automaticTime
}

// Suitability is how apt a partner is for a task, in [0, 1]; 0: it must never
// get it. The most specific statement counts:
//
//  1. the definition's about this partner, by name or ID;
//  2. the partner's own about the task;
//  3. the definition's about its roles and capabilities, the greatest;
//  4. the partner's own about the task's role, application and needs, the least;
//  5. none: 1 if the definition states nothing about anybody, else 0.
//
// A statement of 0 that applies is never outdone by another. What was learned
// of the partner is a factor on the rest ([aptitude.Learned]).
func Suitability(t *workflow.Task, p Partner) float64 {
	stated, ok := statements(t, p)
	switch {
	case slices.Contains(stated, 0):
		return 0
	case !ok && len(t.Suitability) > 0:
		return 0
	case !ok:
		stated = []float64{1}
	}
	learned, ok := p.Learned[t.Name]
	if !ok {
		learned = 1
	}
	return min(1, stated[0]*learned)
}

// statements are what is said of a partner's suitability for a task, the one
// that counts first; ok is false if nothing is.
func statements(t *workflow.Task, p Partner) (said []float64, ok bool) {
	add := func(s float64, stated bool) {
		if stated {
			said = append(said, s)
		}
	}
	for _, key := range []string{p.Name, string(p.ID)} {
		s, stated := t.Suitability[key]
		add(s, stated)
	}
	s, stated := p.Suitability[string(t.Name)]
	add(s, stated)
	add(extreme(math.Max, t.Suitability, slices.Concat(words(p.Roles), words(p.Capabilities))))
	add(extreme(math.Min, p.Suitability,
		slices.Concat(words(t.Needs), []string{string(t.Role), string(t.Application)})))
	for _, key := range slices.Concat(words(p.Roles), words(p.Capabilities)) {
		if s, stated := t.Suitability[key]; stated && s == 0 {
			said = append(said, 0) // another role's statement does not outdo it
		}
	}
	return said, len(said) > 0
}

// extreme is the greatest or least of the values that a map has for keys.
func extreme(pick func(a, b float64) float64, of map[string]float64, keys []string) (v float64, ok bool) {
	for _, k := range keys {
		if s, stated := of[k]; stated && k != "" {
			if !ok {
				v = s
			}
			v, ok = pick(v, s), true
		}
	}
	return v, ok
}

func words[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

// suitability is how apt a partner is for a unit: the mean over its tasks, as
// each contributes the same to the quality metric; 0 where one of them is 0.
// The role of a person's task that the partner lacks contributes nothing but
// forbids nothing, since the role's users may be elsewhere; only a unit of
// which it could perform no task at all is not for it. What waits for a role that
// nobody has is held by anybody as well.
func (u *unit) suitability(p Partner) float64 {
	switch {
	case len(u.lacks(p)) > 0:
		return 0
	case len(u.tasks) == 0:
		return 1 // all of it was dropped
	}
	sum := 0.0
	for _, t := range u.tasks {
		if t.Role != "" && slices.Contains(u.awaited, t.Role) {
			sum++
			continue
		}
		s := Suitability(t, p)
		if s == 0 {
			return 0
		}
		if t.Role == "" || t.Type == workflow.Automatic || slices.Contains(p.Roles, t.Role) {
			sum += s
		}
	}
	return sum / float64(len(u.tasks))
}

// expected is the expected time of all tasks of the unit.
func (u *unit) expected() time.Duration {
	d := time.Duration(0)
	for _, t := range u.tasks {
		d += Expected(t)
	}
	return max(d, time.Millisecond) // it is never nothing
}

// urgency is that of the unit's most urgent task.
func (u *unit) urgency() float64 {
	most := 0.0
	for _, t := range u.tasks {
		most = max(most, t.Urgency)
	}
	return most
}

// violations are the definition's constraints of allocation that a partner
// would break by taking the unit, each once. What is not known breaks nothing.
func (u *unit) violations(def *workflow.Definition, p Partner, env workflow.Env) ([]aptitude.Violation, error) {
	var out []aptitude.Violation
	env.Partner = &workflow.Candidate{
		Name: p.Name, ID: p.ID, Roles: p.Roles, Capabilities: p.Capabilities, Availability: available(p),
	}
	for i := range def.Constraints {
		c := &def.Constraints[i]
		if c.Violated == nil {
			continue
		}
		for _, t := range u.tasks {
			env.Task = t
			v, err := c.Violated.Eval(env)
			if err != nil {
				return nil, fmt.Errorf("constraint %s: %w", c.Name, err)
			}
			if v == true {
				out = append(out, aptitude.Violation{Constraint: c.Name, Penalty: c.Penalty})
				break
			}
		}
	}
	return out, nil
}

// rested is what a partner has of its availability beside its load, available
// what is left of that.
func rested(p Partner) float64    { return p.Rested * (1 - tenths(p.Load)) }
func available(p Partner) float64 { return rested(p) * (1 - p.faced.taken) }

// tenths are the whole tenths of a load. Availability is stated in tenths (1.0 high,
// 0.9 medium, 0.8 low): a trace of other work sets nobody back.
func tenths(load float64) float64 { return math.Floor(unit01(load)*10+1e-9) / 10 }

func unit01(x float64) float64 { return min(max(x, 0), 1) }
