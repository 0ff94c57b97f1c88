package choreo

import (
	"cmp"
	"errors"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file writes verdicts, with what follows from them: who takes over what has failed.

// judge writes a verdict on attempts, with what their failure does: several, if it
// does not fit into one fact. It reports whether facts were added that count: from others
// nothing follows.
func (d *decision) judge(as []*state.Attempt, cause fact.Cause, reason string) (added bool) {
	failures := make([]contingency.Failure, len(as))
	byslot := map[workflow.TaskName]*state.Attempt{}
	for i, a := range as {
		// Its holder may know that it could begin although others presume that it failed.
		failures[i] = contingency.Failure{
			Slot: a.Slot.Task.Name, Task: a.Task.Name, Begun: a.Start != nil || a.MayStart(),
		}
		byslot[a.Slot.Task.Name] = a
	}
	responses := contingency.Respond(d.state.Definition(), failures, state.View{S: d.state})
	actions := make([]fact.Action, len(responses))
	for i, x := range responses {
		actions[i] = fact.Action{Attempt: byslot[x.Slot].ID, Kind: x.Kind, Task: x.Contingency}
	}
	before := len(d.given)
	chosen := d.appoint(actions, as[0].Partner)
	d.given = d.given[:before] // until it is recorded
	// The partner that takes a unit of contingencies was chosen for all of them:
	// how the actions are spread over facts has no part in what they do.
	office := d.officeNow()
	for part := range slices.Chunk(actions, fact.MaxActions) {
		v := &fact.Verdict{Cause: cause, Reason: fact.Clip(reason), Actions: part, Office: office}
		e, err := d.append(fact.Body{Verdict: v, Annex: reasoned(whysOf(part, chosen)...)})
		if err == nil && e.Counted {
			added = true
			d.giveAll(part)
		}
	}
	return added
}

// giveAll notes what a verdict's actions gave out.
func (d *decision) giveAll(actions []fact.Action) {
	for _, act := range actions {
		if act.Partner != "" {
			d.give(act.Task, act.Partner)
		}
	}
}

// appoint finds partners for the contingencies among a verdict's actions: those
// that the author placed in a partition go to its holder, the others go to one
// partner as a unit where one can take them all, else each to one that can, as if
// those before it were given out. It returns the choices by contingency, one for all
// of a unit.
func (d *decision) appoint(actions []fact.Action, not workflow.PartnerID) map[workflow.TaskName]*partition.Choice {
	chosen := map[workflow.TaskName]*partition.Choice{} // nil: nobody
	var unit []workflow.TaskName
	for _, act := range actions {
		if act.Kind == workflow.FailContingency && d.state.Plan().Home(act.Task) == "" {
			unit = append(unit, act.Task)
		}
	}
	if whole, err := d.whoTakes(unit, not); err == nil {
		for _, t := range unit {
			chosen[t] = &whole
		}
	}
	for i := range actions {
		act := &actions[i]
		if act.Kind != workflow.FailContingency {
			continue
		}
		c, asked := chosen[act.Task]
		if !asked {
			if one, err := d.whoTakes([]workflow.TaskName{act.Task}, not); err == nil {
				c = &one
			}
			chosen[act.Task] = c
		}
		if c != nil && !d.movedOften(d.state.BySlot()[act.Attempt.Slot]) {
			act.Partner = c.Partner
			d.give(act.Task, act.Partner)
		}
	}
	return chosen
}

// whoTakes finds a living partner for contingencies, who is not absent: the holder
// of the partition in which the author placed it, else one that the partner list
// offers, rather not the one that failed.
func (d *decision) whoTakes(tasks []workflow.TaskName, not workflow.PartnerID) (partition.Choice, error) {
	if len(tasks) == 0 {
		return partition.Choice{}, errNothing
	}
	if home := d.state.Plan().Home(tasks[0]); len(tasks) == 1 && home != "" {
		to, _ := d.state.MovedTo(home)
		if p := cmp.Or(to, d.state.Holders()[home]); d.present(p) {
			return partition.Choice{
				Partner: p, Why: "it holds partition " + string(home) + ", where its author placed it",
			}, nil
		}
	}
	return d.choose(d.work(tasks, not))
}

var errNothing = errors.New("there is nothing to assign")

// whysOf are the reasons of the choices that actions rest on, one for each choice.
func whysOf(actions []fact.Action, chosen map[workflow.TaskName]*partition.Choice) (whys []fact.Why) {
	at := map[*partition.Choice]int{}
	said := map[workflow.TaskName]bool{}
	for _, act := range actions {
		c := chosen[act.Task]
		if act.Kind != workflow.FailContingency || c == nil || said[act.Task] {
			continue
		}
		said[act.Task] = true
		i, known := at[c]
		if !known {
			i = len(whys)
			at[c] = i
			whys = append(whys, fact.WhyOf(*c))
		}
		whys[i].Tasks = append(whys[i].Tasks, act.Task)
	}
	return whys
}
