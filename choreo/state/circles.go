package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says which slots tasks may fill that stand in for others, and from which of them rules hear: not from those
// that would wait for what stands in them (standins.go).

// heardIn are the slots that a task may fill of which rules hear.
func (s *State) heardIn(t workflow.TaskName) []*Slot {
	out := s.SlotsOf(t)
	if len(s.filled) == 0 || s.bySlot[t] != nil {
		return out
	}
	return slices.DeleteFunc(slices.Clone(out), func(sl *Slot) bool {
		return !slices.Contains(s.plan.Chain(sl.Task.Name), t) && s.comesRound(s.def, sl, t)
	})
}

// comesRound reports whether a slot in which a task stands that cannot by a definition may come to wait for that task by
// it, so that no rule may hear of it from there: it would wait for itself. As several such tasks may do so together, it
// is one as well where the slot waits for a later one by name: then of those in any circle one is not heard, and which
// one does not depend on the order in which facts arrive.
func (s *State) comesRound(def *workflow.Definition, sl *Slot, t workflow.TaskName) bool {
	key := asksRound{def, sl, t}
	if round, known := s.rounds[key]; known {
		return round
	}
	fills := s.fillsBy(def)
	seen, round := map[*Slot]bool{sl: true}, false
	for queue := []*Slot{sl}; len(queue) > 0 && !round; queue = queue[1:] {
		for _, p := range def.Predecessors(queue[0].Task.Name) {
			s.log.Steps++
			of := fills[p]
			if own := s.bySlot[p]; own != nil {
				of = []*Slot{own}
			} else if p >= t {
				round = true
			}
			for _, next := range of {
				if !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
		}
	}
	keep(&s.rounds, s.manyEditions(), key, round)
	return round
}

// fillsBy says which slots tasks may fill that are contingencies, by a definition.
func (s *State) fillsBy(def *workflow.Definition) map[workflow.TaskName][]*Slot {
	if out := s.fillings[def]; out != nil {
		return out
	}
	out := map[workflow.TaskName][]*Slot{}
	for _, sl := range s.slots {
		s.log.Steps++
		seen := map[*workflow.Task]bool{}
		for t := def.Task(sl.Task.Name); t != nil && !seen[t]; t = def.Task(t.Contingency) {
			if seen[t] = true; t.Name != sl.Task.Name {
				out[t.Name] = append(out[t.Name], sl)
			}
		}
	}
	keep(&s.fillings, s.manyEditions(), def, out)
	return out
}
