package choreo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about people's tasks that wait to be taken (docs/distribution.md, People's tasks). By a mechanism that
// pulls nobody is drawn: the task stays at its holder, which offers its item to those of the role who are entitled to
// see it now, and whoever of them selects it first has it. The longer it waits the more may see it, as urgency grows
// and the threshold relaxes. Sel-push-pull gives it to a partner once nobody has taken it for as long as it has
// patience, as the mechanisms do that push (perform.go).
//
// An offer is a fact and is never taken back, so who was entitled once sees the item until somebody has it.

// So long after it was weighed an item is weighed again that somebody here does not see: soon at first. What may have
// changed by then is how much people have in hand. That time alone lets one more see it is known in advance.
const (
	weighSoonest = time.Second
	weighLatest  = time.Minute
)

// batched is by which part of the time that it has waited an item is offered late at most, so that many who come to see it
// one shortly after the other do it by few offers, of which there is a bound.
const batched = 64

// Visible is whom the mechanism lets see an item (worklist.People).
func (c claimants) Visible(i worklist.Item) worklist.Sight {
	d, a := c.decision, c.state.Attempts()[fact.AttemptIDOf(i)]
	if a == nil || !d.state.Pulled(a) {
		return worklist.Sight{}
	}
	waiting := d.waiting(a)
	here, may, err := d.entitled(d.toTake(a), waiting)
	users := make([]worklist.User, len(may.May))
	for n, id := range may.May {
		users[n] = worklist.User(id)
	}
	switch {
	case err != nil:
		d.unseen[a.ID] = "it waits for somebody to take it: " + fact.Clip(err.Error())
	case len(here) == 0:
		d.unseen[a.ID] = "it waits for somebody to take it: nobody is here who has role " + string(a.Task.Role)
	case len(users) == 0:
		d.unseen[a.ID] = "it waits for somebody to take it: of those who are here nobody is suited"
	default:
		delete(d.unseen, a.ID)
	}
	d.sayUnseen(a)
	c.sights[i] = may
	sight := worklist.Sight{Limited: true, Users: users}
	if len(users) < len(here) {
		sight.Again = min(max(waiting.For/8, weighSoonest), weighLatest)
		if may.More > 0 { // by time alone, and whoever looks at a list is told then
			sight.Again = min(sight.Again, max(may.More, waiting.For/batched, weighSoonest))
		}
	}
	return sight
}

// toTake is an attempt of ours as work for whoever takes it from a worklist.
func (d *decision) toTake(a *state.Attempt) Work {
	w := d.work([]workflow.TaskName{a.Task.Name}, "")
	w.Rejected, w.Holder = d.state.Rejecters(a), d.self
	return w
}

// entitled are the people who are here and have the role of a task of ours, and who of them may see it.
func (d *decision) entitled(w Work, waiting partition.Waiting) ([]worklist.User, partition.Sight, error) {
	return d.partners.Entitled(w, waiting)
}

// mayPull says why somebody does not get an item of a mechanism that pulls, whoever else may see it by now; nil: this
// one does. Nobody gets what a hard constraint forbids, or what nobody holds this one suited for, but the responsible
// user, to whom it passed. What is asked for with it counts as in hand, in whatever order it is named.
func (d *decision) mayPull(i worklist.Item, u worklist.User, with []worklist.Item) error {
	a := d.state.Attempts()[fact.AttemptIDOf(i)]
	if !a.Task.ByRole() || a.Beside() || !d.Mechanism().Pulls() || d.state.ForOthers(a) || u == d.state.Responsible() {
		return nil
	}
	w := d.toTake(a)
	for _, x := range with {
		if x != i {
			w.Performers[d.state.Attempts()[fact.AttemptIDOf(x)].Task.Name] = u
		}
	}
	here, sight, err := d.entitled(w, d.waiting(a))
	if err != nil || !slices.Contains(here, u) {
		return err
	}
	for _, c := range sight.Weighed.Candidates {
		switch {
		case c.Resource != aptitude.ResourceID(u):
		case c.Verdict == aptitude.Forbidden:
			return fmt.Errorf("%w: %s", state.ErrNotNow, d.forbidden(a, u, c.Broken, w.Performers, with))
		default:
			return nil
		}
	}
	return fmt.Errorf("%w: by the workflow you are not suited for %s", state.ErrNotNow, i.Slot)
}

// forbidden says which constraints forbid that somebody does an attempt, beside which tasks that one asks for with it,
// has or did, and what to do.
func (d *decision) forbidden(
	a *state.Attempt, u worklist.User, broken []string, performers map[workflow.TaskName]worklist.User,
	with []worklist.Item,
) string {
	var asked, has []string
	for _, c := range d.state.Definition().Constraints {
		if !slices.Contains(broken, c.Name) {
			continue
		}
		for _, t := range slices.Sorted(maps.Keys(performers)) {
			if performers[t] != u || t == a.Task.Name || !asksWho(c, t) {
				continue
			}
			if slices.ContainsFunc(with, func(x worklist.Item) bool {
				return d.state.Attempts()[fact.AttemptIDOf(x)].Task.Name == t
			}) {
				asked = append(asked, string(t))
			} else {
				has = append(has, string(t))
			}
		}
	}
	name, task := strings.Join(broken, ", "), a.Task.Name
	switch {
	case len(asked) > 0:
		return fmt.Sprintf("constraint %s forbids that you do both %s and %s: take one of them, and leave the other to somebody else",
			name, task, strings.Join(slices.Compact(asked), ", "))
	case len(has) > 0:
		return fmt.Sprintf("constraint %s forbids that you do %s, as you have %s or did it: leave %s to somebody else",
			name,
			task, strings.Join(slices.Compact(has), ", "), task)
	}
	return fmt.Sprintf("constraint %s forbids that you do %s: leave it to somebody else", name, task)
}

// asksWho reports whether a constraint goes by who performed a task.
func asksWho(c workflow.Constraint, t workflow.TaskName) bool {
	asks := fmt.Sprintf("performer(%q)", t)
	return strings.Contains(c.Violated.String(), asks) || c.When != nil && strings.Contains(c.When.String(), asks)
}

// mayTakeHere says why this node's own person does not begin or end an attempt of ours without a worklist; nil: it
// does. It is as for whoever selects an item: what waits to be taken is for those who see it. What this one has, or
// has begun, it ends, and what nobody can be given any more as too much was said of it.
func (d *decision) mayTakeHere(a *state.Attempt) error {
	self, i := worklist.User(d.self), state.ItemOf(a.ID)
	if a.Start != nil || d.claimed(a) || !d.partners.HasRole(d.self, a.Task.Role) ||
		d.mayBeSaid(i, fact.MaxClaims) != nil {
		return nil
	}
	if d.state.Pulled(a) {
		if d.state.PlaceItem(a); !d.state.Work().Visible(i, self) {
			return fmt.Errorf("%w: %s waits to be taken, and is offered to others of its role: wait until it is offered "+
				"to you, or ask the responsible user", state.ErrNotNow, a.Task.Name)
		}
	}
	return d.mayPull(i, self, nil)
}

// reasons says, with the first offer of an item that waits to be taken, how all of its role were weighed; nil: nothing
// is to be said.
func (c claimants) reasons(body worklist.Body) *fact.Annex {
	x, offers := body.(worklist.Offer)
	if !offers {
		return nil
	}
	a, sight := c.state.Attempts()[fact.AttemptIDOf(x.Item)], c.sights[x.Item]
	if a == nil || a.Weighed != nil || len(sight.May) == 0 {
		return nil
	}
	m := c.Mechanism()
	return reasoned(fact.WhyOf(partition.Choice{Why: "offered by " + string(m), Mechanism: m,
		Assignment: &sight.Weighed},
		a.Task.Name))
}

// sayUnseen has show and lists say why nobody sees an attempt that waits to be taken, if nobody does.
func (d *decision) sayUnseen(a *state.Attempt) {
	if why := d.unseen[a.ID]; why != "" {
		d.nobody[a.ID] = why
	} else {
		delete(d.nobody, a.ID)
	}
}

// mindUntaken has this node look again at an attempt that waits to be taken, when its patience is over.
func (d *decision) mindUntaken(a *state.Attempt) {
	if waits, until := d.awaitsTaker(a); waits && a.MayStart() && !d.claimed(a) {
		d.sayUnseen(a)
		if until > 0 {
			d.out.wake(d.now.Boot + until)
		}
	}
}
