package state

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file lays out what a state begins with: slots with their first attempts, and who writes and asks for which data,
// as the definition and the genesis say.

// layOut makes the slots with their first attempts.
func (s *State) layOut() {
	s.holder = map[workflow.PartitionName]workflow.PartnerID{}
	s.placements = s.placements[:0]
	for _, a := range s.genesis.Assign {
		s.holder[a.Partition] = a.Partner
		s.placements = append(s.placements, Placement{Placement: a, By: s.log.Genesis()})
	}
	for _, x := range s.edition.placed { // of several that say it unlike the first counts
		if !x.Moves && s.holder[x.Partition] == "" && s.plan.Partition(x.Partition) != nil {
			s.holder[x.Partition] = x.Partner
			s.placements = append(s.placements, x)
		}
	}
	order := s.def.TopoOrder()
	s.bySlot, s.attempts = make(map[workflow.TaskName]*Slot, len(order)), make(map[fact.AttemptID]*Attempt, len(order))
	slots, firsts, lists := make([]Slot, len(order)), make([]Attempt, len(order)), make([]*Attempt, len(order))
	s.slots = make([]*Slot, 0, len(order))
	for _, name := range order {
		t := s.def.Task(name)
		if t.ContingencyOnly {
			continue
		}
		at := len(s.slots)
		sl := &slots[at]
		*sl = Slot{Task: t, State: workflow.NotReady, Place: at, open: true, weighs: weight{going: true}}
		sl.Attempts = s.firsts(sl, &firsts[at], lists[at:at:at+1])
		sl.Current = sl.Attempts[0]
		for _, a := range sl.Attempts {
			s.attempts[a.ID] = a
		}
		s.contested = s.contested || len(sl.Attempts) > 1
		s.slots = append(s.slots, sl)
		s.bySlot[name] = sl
		if t.TimeToWait > 0 {
			s.patient = append(s.patient, sl)
		}
		for _, c := range s.plan.Chain(name)[1:] {
			s.fills[c] = append(s.fills[c], sl)
		}
	}
	s.drop()
	for _, sl := range s.slots {
		sl.Mentions = s.mentioned(s.def, sl.Task.Name)
		for _, from := range sl.Mentions {
			from.Dependents = append(from.Dependents, sl)
		}
		s.touch(sl)
	}
	s.going = len(s.slots)
	s.layFlow()
	s.layData()
	s.layConstraints()
	for _, sl := range s.slots {
		sl.rule = s.compile(sl)
	}
	s.Cyclic = s.hasCycle()
}

// firsts are the first attempts of a slot: one that the genesis gave to the holder of its partition, or of a task that
// was added one for each of those who added it unlike, the earliest first. room and out have place for one.
func (s *State) firsts(sl *Slot, room *Attempt, out []*Attempt) []*Attempt {
	t := sl.Task.Name
	*room = Attempt{Slot: sl, Task: sl.Task, Depth: 1, turns: noTurns}
	added := s.edition.added[t]
	if len(added) == 0 {
		room.ID, room.Partner, room.Assigned = fact.AttemptID{Slot: t}, s.holder[s.plan.Home(t)], s.log.Genesis()
		return append(out, room)
	}
	for i, x := range added {
		a := room
		if i > 0 { // it is what its own amendment says, whatever the slot's task is
			says := s.editionOf(s.heavyIn(s.edition.heavy, x.by[0])).Task(t)
			a = &Attempt{Slot: sl, Task: s.amended(cmp.Or(says, sl.Task)), Depth: 1, turns: noTurns}
		}
		a.ID, a.Partner, a.Assigned = x.id, x.at, x.by[0]
		out = append(out, a)
	}
	return out
}

// drop marks the slots of tasks that the genesis says are not needed, unless the definition needs them for more than their
// data set: the one with which the instance was started. By an amendment none is needed again, whatever waits for it
// then: its data are there, others may have begun without it, which counts, and nobody was asked to be able to do it.
func (s *State) drop() {
	annex := s.log.Genesis().Fact.Body.Annex
	if annex == nil {
		return
	}
	for i := range annex.Dropped {
		d := &annex.Dropped[i]
		t, sl := s.original.Task(d.Task), s.bySlot[d.Task]
		if t == nil || sl == nil || t.Produces.Name != d.DataSet {
			continue
		}
		if ok, _ := partition.Droppable(s.original, t); ok {
			sl.Dropped = d
		}
	}
}

// layData finds the data, and who may write and who asks for which.
func (s *State) layData() {
	s.decls = map[workflow.DataName]*workflow.DataDecl{}
	for i := range s.def.Data {
		s.decls[s.def.Data[i].Name] = &s.def.Data[i]
	}
	for n := range s.genesis.Input {
		s.unwritten(n, nil)
	}
	for n, d := range s.decls {
		s.unwritten(n, d)
	}
	for _, sl := range s.slots {
		for _, t := range s.plan.Chain(sl.Task.Name) {
			for _, n := range s.def.Task(t).Out {
				if it := s.item(n); !it.writers[sl] {
					it.writers[sl] = true
					it.open++
					sl.Writes = append(sl.Writes, it)
				}
			}
		}
		sl.Task.Rule.Terms(func(r *workflow.Rule) {
			if r.Op != workflow.OpData {
				return
			}
			for _, n := range r.Data.Names() {
				if it := s.item(n); len(it.Askers) == 0 || it.Askers[len(it.Askers)-1] != sl {
					it.Askers = append(it.Askers, sl)
					sl.asks = append(sl.asks, it)
					it.holders[sl.Current.Partner]++
				}
			}
		})
	}
}

// hasCycle reports whether slots wait for each other in a circle, which only data
// terms can make: whether any are left when, again and again, those that wait
// for nothing that is left are taken away. A slot does not wait for what only it
// may write.
func (s *State) hasCycle() bool {
	waits, left := make([]int, len(s.slots)), map[*DataItem]int{} // waits and gone are by the slots' places
	for _, it := range s.items {
		left[it] = len(it.writers)
	}
	for _, sl := range s.slots {
		waits[sl.Place] += len(sl.asks)
		for _, d := range sl.Dependents {
			waits[d.Place]++
		}
	}
	free, gone := make([]*Slot, 0, len(s.slots)), make([]bool, len(s.slots))
	met := func(sl *Slot, n int) {
		if waits[sl.Place] -= n; waits[sl.Place] == 0 && !gone[sl.Place] {
			gone[sl.Place] = true
			free = append(free, sl)
		}
	}
	// done tells those who ask for an item that nobody else is left to write it.
	done := func(it *DataItem) {
		switch left[it] {
		case 0:
			for _, d := range it.Askers {
				if !it.writers[d] {
					met(d, 1)
				}
			}
		case 1:
			for w := range it.writers {
				if !gone[w.Place] && slices.Contains(w.asks, it) {
					met(w, 1)
				}
			}
		}
	}
	for _, sl := range s.slots {
		met(sl, 0)
	}
	for _, it := range s.items {
		done(it)
	}
	for i := 0; i < len(free); i++ {
		for _, d := range free[i].Dependents {
			met(d, 1)
		}
		for _, it := range free[i].Writes {
			left[it]--
			done(it)
		}
	}
	return len(free) < len(s.slots)
}
