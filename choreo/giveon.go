package choreo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about a partner that leaves: it gives on what it holds and has not
// begun, and says what stays. One that is only away for a while gives on what it was
// given to perform (GiveUntaken).

// GivenOn is a task that was passed on.
type GivenOn struct {
	Task workflow.TaskName
	To   partition.Choice
	// Item is what people's worklists have of it by now.
	Item worklist.Item
}

// Stay is work that stays with this node.
type Stay struct {
	Task  workflow.TaskName // empty: it is about the instance
	State workflow.State
	Why   error
}

// GiveOn passes all that this node holds and has not begun on to partners that can be
// reached: what it holds of a partition to one where one can take it, else each task by
// itself. What it was only given to perform goes to one with the role, else back to whoever has its partition, else to
// one from which a user with the role can take it. What nobody takes stays, and so does what has begun.
func (m *Machine) GiveOn(reason string, now Moment, partners Partners) (given []GivenOn, stays []Stay) {
	d := m.deciding(now, partners)
	if d.cleansUp() {
		stays = append(stays, Stay{Why: errors.New("something that lost is still to be compensated here")})
	}
	if !d.heeded() || d.state.Overall() != workflow.InstanceRunning {
		return nil, stays
	}
	units, begun := d.leaving()
	stays = append(stays, begun...)
	defer d.tellAll()
	for _, u := range units {
		if err := d.pinned(u[0].task); err != nil { // they are of one partition
			for _, h := range u {
				stays = append(stays, Stay{h.task, d.state.BySlot()[h.slot].State, err})
			}
			continue
		}
		pass := func(u []inHand) (rest []inHand, err error) {
			c, err := d.takerOf(u)
			if err != nil && d.givenToPerform(u[0]) {
				c, err = d.keeperOf(d.state.BySlot()[u[0].slot].Current, true)
			}
			if err == nil {
				rest, err = d.passAll(u, c, reason)
				for _, h := range u[:len(u)-len(rest)] {
					given = append(given, GivenOn{h.task, c, state.ItemOf(d.state.BySlot()[h.slot].Current.ID)})
				}
				return rest, err
			}
			return u, err
		}
		rest := slices.DeleteFunc(slices.Clone(u), func(h inHand) bool { return !d.givenToPerform(h) })
		if u = slices.DeleteFunc(u, d.givenToPerform); len(u) > 0 {
			left, _ := pass(u) // why not is asked of each by itself
			rest = append(rest, left...)
		}
		for i, h := range rest {
			if _, err := pass(rest[i : i+1]); err != nil {
				stays = append(stays, Stay{h.task, d.state.BySlot()[h.slot].State, err})
			}
		}
	}
	return given, stays
}

// GiveUntaken passes on what this node was only given to perform, and nobody has taken, to partners that can be reached:
// to one with the role, else to one from which a user with the role can take it. What it holds with a partition stays;
// so does what nobody else can do, which it lists.
func (m *Machine) GiveUntaken(reason string, now Moment, partners Partners) (given []GivenOn, stays []Stay) {
	d := m.deciding(now, partners)
	if !d.heeded() || d.state.Overall() != workflow.InstanceRunning {
		return nil, nil
	}
	units, _ := d.leaving()
	for _, h := range slices.Concat(units...) {
		if !d.givenToPerform(h) {
			continue
		}
		c, err := d.takerOf([]inHand{h})
		if err != nil {
			c, err = d.keeperOf(d.state.BySlot()[h.slot].Current, false)
		}
		if err == nil {
			_, err = d.passAll([]inHand{h}, c, reason)
		}
		if err != nil {
			stays = append(stays, Stay{h.task, d.state.BySlot()[h.slot].State, err})
			continue
		}
		given = append(given, GivenOn{h.task, c, state.ItemOf(d.state.BySlot()[h.slot].Current.ID)})
	}
	if len(given) > 0 {
		d.tellAll()
	}
	return given, stays
}

// givenToPerform reports whether this node was only given a task to perform.
func (d *decision) givenToPerform(h inHand) bool {
	return d.state.GivenToPerform(d.state.BySlot()[h.slot].Current)
}

// moveParts gives on what this node holds, and nobody has begun, of partitions that an amendment gives another place.
// What came here by somebody who knew of that stays.
func (d *decision) moveParts() (added bool) {
	if !d.state.Moves() || !d.heeded() || d.state.Overall() != workflow.InstanceRunning {
		return false
	}
	for made, moving := d.state.Made(), inOrder(d.look().moving); len(moving) > 0; moving = moving[1:] {
		if d.log.Steps++; d.state.Made() != made { // a fact of ours had all slots made again
			return true
		}
		sl := moving[0]
		a := sl.Current
		to, _ := d.state.MovedTo(d.state.Plan().Home(a.Task.Name))
		if !d.moves(sl) || !d.state.Wanted(a) || sl.Pending != nil || d.claimed(a) || !d.present(to) {
			continue
		}
		c := partition.Choice{Partner: to, Why: "an amendment gives its partition to it"}
		rest, _ := d.passAll([]inHand{{sl.Task.Name, a.ID, a.Task.Name}}, c, "its partition has another place")
		added = added || len(rest) == 0
	}
	return added
}

// moves reports whether the attempt in charge of a slot is one of this node that goes to whom its partition moves, once
// nobody has taken it.
func (m *Machine) moves(sl *state.Slot) bool {
	a := sl.Current
	if !m.state.Moves() || a.Partner != m.self || a.Start != nil || a.Success() != nil || sl.State.Done() {
		return false
	}
	to, by := m.state.MovedTo(m.state.Plan().Home(a.Task.Name))
	return to != "" && to != m.self && !m.log.Knew(a.Assigned, by)
}

// tellAll owes what happened here to every participant: whoever is left to the coordinator to
// tell may judge this node first when it is gone, if the coordinator does not.
func (d *decision) tellAll() {
	for _, p := range d.state.Participants() {
		d.owe(p)
	}
}

// inHand is an attempt that this node holds and has not begun.
type inHand struct {
	slot    workflow.TaskName // of the task that it stands in for
	attempt fact.AttemptID
	task    workflow.TaskName
}

// leaving is what this node holds and has not begun, by partitions, and what it has.
func (m *Machine) leaving() (units [][]inHand, begun []Stay) {
	at := map[workflow.PartitionName]int{}
	for _, sl := range m.state.Slots() {
		a := sl.Current
		switch {
		case a.Partner != m.self || sl.State.Done() || a.Success() != nil || !m.state.Wanted(a) || sl.Pending != nil:
			continue
		case a.Start != nil:
			begun = append(begun, Stay{a.Task.Name, sl.State, errors.New("it has begun")})
			continue
		case m.claimed(a):
			begun = append(begun, Stay{a.Task.Name, sl.State, ErrTaken})
			continue
		}
		home := m.state.Plan().Home(a.Task.Name)
		i, known := at[home]
		if !known || home == "" {
			i = len(units)
			at[home] = i
			units = append(units, nil)
		}
		units[i] = append(units[i], inHand{sl.Task.Name, a.ID, a.Task.Name})
	}
	return units, begun
}

// takerOf finds a partner that can be reached and takes tasks as a unit in this node's place.
func (d *decision) takerOf(u []inHand) (partition.Choice, error) {
	tasks := make([]workflow.TaskName, len(u))
	for i, h := range u {
		tasks[i] = h.task
	}
	w := d.work(tasks, "")
	w.Rejected = []workflow.PartnerID{d.self}
	for _, h := range u {
		a := d.state.BySlot()[h.slot].Current
		w.Rejected = append(w.Rejected, d.state.Rejecters(a)...)
		if len(u) == 1 && a.ToPerform() {
			w.Holder = d.self
		}
	}
	c, err := d.choose(w)
	if err == nil && !d.partners.Reachable(c.Partner) {
		err = fmt.Errorf("%w: nobody who can be reached now can take it", state.ErrNotNow)
	}
	return c, err
}

// passAll passes attempts on to the chosen partner, up to one that cannot be passed on:
// from there on they are the rest.
func (d *decision) passAll(u []inHand, c partition.Choice, reason string) (rest []inHand, err error) {
	for i, h := range u {
		if d.movedOften(d.state.BySlot()[h.slot]) {
			return u[i:], errMovedOften
		}
		annex := fact.Annex{
			Why: []fact.Why{fact.WhyOf(c, h.task)}, Rejected: fact.Clip(reason),
			Waited: d.waited(d.state.BySlot()[h.slot].Current),
		}
		if err := d.assign(fact.Assign{After: h.attempt, Task: h.task, Partner: c.Partner}, &annex); err != nil {
			return u[i:], err
		}
	}
	return nil, nil
}

// Untold reports whether somebody is to hear what happened here before this node goes: as
// long as it is patient, each participant that can be reached and is owed something; in any
// case one of them. Somebody out of reach may come back, and hears it from that one; an
// evicted one does not come back.
func (m *Machine) Untold(partners Partners, patient bool) bool {
	others, has := 0, false
	for _, p := range m.state.Participants() {
		if p == m.self || partners.Evicted(p) {
			continue
		}
		if patient && m.Owes(p) && partners.Reachable(p) {
			return true
		}
		others++
		has = has || !m.Behind(p)
	}
	return others > 0 && !has
}
