package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about those who decide about instances: who answers for one, and what such a
// person orders.

// responsible says who answers for a new instance: whom the start names, who must be known here, else the
// definition, else who starts it. The name is empty where nobody is named, the key where it is this partner.
func (k *desk) responsible(
	def *workflow.Definition, r api.StartRequest, starter users.Who,
) (name workflow.UserName, key worklist.User, notes []string, err error) {
	named := cmp.Or(r.Responsible, string(def.Responsible))
	if named == "" {
		if r.User != "" || starter.ID != string(k.member.ID()) {
			name = workflow.UserName(starter.Name)
		}
		return name, k.keyOf(starter), nil, nil
	}
	who, err := k.persons.Anybody(named)
	if err == nil {
		return workflow.UserName(who.Name), k.keyOf(who), nil, nil
	}
	if r.Responsible != "" {
		return "", "", nil, fmt.Errorf("responsible: %w", err)
	}
	why := fmt.Sprintf("no user or partner that is known here is called %s, who is responsible", named)
	if k.people.called(named) {
		why = err.Error() // there are several of that name
	}
	instead := fmt.Sprintf("%s decides about the instance in place of %s", starter.Name, named)
	return workflow.UserName(starter.Name), k.keyOf(starter), []string{why, instead}, nil
}

// keyOf is a person as a genesis names it; empty: this partner.
func (k *desk) keyOf(who users.Who) worklist.User {
	if who.ID == string(k.member.ID()) {
		return ""
	}
	return worklist.User(who.ID)
}

// deciding says who decides about an instance, and whether a person at this node does. Of one in which this node takes no
// part it is said to whoever does.
func (k *desk) deciding(ctx context.Context, q api.DecidingQuery, w seeing) (out *api.Deciding, err error) {
	who, err := k.persons.Who(q.User)
	if err != nil {
		return nil, err
	}
	ask := func(by string) error {
		return k.lookAnywhere(ctx, q.ID, w, worklists.Look{What: wire.LookDeciding, User: by},
			func(h *held) { out = k.decidingOf(h, worklist.User(who.ID)) },
			func(seen *worklists.Seen) (err error) {
				if out, err = show.ReadOne[api.Deciding](seen.Parts); err == nil && by == "" { // said of another
					out.May, out.MayCancel = false, false
				}
				return err
			})
	}
	err = ask(who.ID)
	var e *api.Error
	if errors.As(err, &e) && e.Code == api.NotAllowed {
		err = ask("") // whoever else is signed in here may have it shown, which this one reads as well
	}
	if err == nil {
		out.User = who.Name
	}
	return out, err
}

// decidingOf says who decides about an instance, and whether a person does.
func (k *desk) decidingOf(h *held, u worklist.User) *api.Deciding {
	person, known := k.partners.Person(u)
	may := known && h.m.MayOrder(person.User, person.Roles)
	return &api.Deciding{
		May: may, MayCancel: may || known && k.unanswerable(h, person),
		Responsible: k.partners.AnswersFor(h.m), Administrators: h.def.Def.Administrators,
	}
}

// mayDecide refuses a person who does not decide about an instance.
func (k *desk) mayDecide(h *held, who worklist.Person) error {
	if h.m.MayOrder(who.User, who.Roles) {
		return nil
	}
	return k.notDeciding(h.m.Responsible(), h.m.Definition(), h.m.Cancellable())
}

// maySee refuses a person who neither decides about an instance nor has, or had, an item of it.
func (k *desk) maySee(h *held, who worklist.Person) error {
	if h.m.TookPart(who.User) {
		return nil
	}
	return k.mayDecide(h, who)
}

// dataOf are the data that tasks read or set of which a person has, or had, an item.
func (h *held) dataOf(u worklist.User) map[workflow.DataName]bool {
	out := map[workflow.DataName]bool{}
	for _, name := range h.m.TasksTaken(u) {
		if t := h.m.Definition().Task(name); t != nil {
			for _, d := range slices.Concat(t.In, t.Fields()) {
				out[d] = true
			}
		}
	}
	return out
}

// Target is what an order about a task is about, or, without one, the instance.
func (k peoplesItems) Target(
	ctx context.Context, ref string, task workflow.TaskName, by worklist.User,
) (worklists.Target, error) {
	t, err := k.seek(ctx, ref, by, func(h *held, who worklist.Person) (worklists.Target,
		error) {
		return k.targetIn(h, task, who)
	})
	if err == nil && task != "" {
		t.Outlived = k.outlived(ctx, t.Instance)
	}
	return t, err
}

// InVain refuses what a person says of an instance where it counts for nothing any more. What was written down before is
// not refused: the answer was lost. Nor is the word of anybody who does not decide about the instance: why it is not
// taken is said otherwise, and for which task the instance was begun is for those who do.
func (k peoplesItems) InVain(ctx context.Context, id workflow.InstanceID, c *fact.Claim) error {
	if !worklists.NeedsParent(c.Body()) {
		return nil
	}
	no := k.outlived(ctx, id).Counts(id)
	if no == nil {
		return nil
	}
	var fresh bool
	if err := k.peek(ctx, id, func(h *held) { fresh = h.m.SaidByDecider(c) && !h.m.WrittenDown(c) }); err != nil || !fresh {
		return nil // which is said with what is written down
	}
	return no
}

// Basis is with what an amendment of an instance here is compared, for a person at another node who may amend it.
func (k peoplesItems) Basis(ctx context.Context, ref string, by worklist.User) (out []byte, err error) {
	_, err = k.seek(ctx, ref, by, func(h *held, who worklist.Person) (t worklists.Target, err error) {
		if err := k.mayDecide(h, who); err != nil {
			return t, err
		}
		out, err = k.view.Basis(h.shown()).Say()
		return t, err
	})
	return out, err
}

// Look is what is to be shown of an instance here, to a person who decides about it, or who has, or had, an item of it.
// To the latter the values are shown of what those tasks read or set: others, data states, and what a recovery would lead
// to, are for whoever decides.
func (k peoplesItems) Look(
	ctx context.Context, id workflow.InstanceID, by worklist.User, x worklists.Look,
) (out any, err error) {
	_, err = k.seek(ctx, id.String(), by, func(h *held, who worklist.Person) (t worklists.Target, err error) {
		may := k.maySee
		if x.What == wire.LookOutlook || x.What == wire.LookStates {
			may = k.mayDecide
		}
		if err := may(h, who); err != nil {
			return t, err
		}
		shown := h.shown()
		if k.mayDecide(h, who) != nil {
			shown.Only = h.dataOf(who.User)
		}
		switch x.What {
		case wire.LookInstance:
			out = k.view.Instance(shown)
		case wire.LookLog:
			out = k.view.Log(shown)
		case wire.LookStates:
			out, err = k.statesOf(h)
		case wire.LookOutlook:
			if x.Step == nil {
				return t, api.Errorf(api.Invalid, "no step is named")
			}
			out, err = k.outlookOf(h, *x.Step)
		case wire.LookDeciding:
			out = k.decidingOf(h, by)
		}
		return t, err
	})
	if in, is := out.(*api.Instance); is {
		k.withoutOutlived(ctx, id, in)
	}
	return out, err
}

// Kept is a result that is kept, for a person who may adopt it.
func (k peoplesItems) Kept(ctx context.Context, ref, result string, by worklist.User) (worklists.Target, error) {
	t, err := k.seek(ctx, ref, by, func(h *held, who worklist.Person) (t worklists.Target, err error) {
		if err := k.mayDecide(h, who); err != nil {
			return t, err
		}
		i, id, err := h.m.Result(result)
		task, _ := h.m.AttemptTask(fact.AttemptID{Fact: fact.ID(i.Assigned), Slot: i.Slot})
		return worklists.Target{
			Instance: h.m.Instance(), Workflow: h.def.Def.Name, Task: task, At: k.member.ID(), Item: i,
			Result: worklist.ID(id),
		}, err
	})
	if err == nil {
		t.Outlived = k.outlived(ctx, t.Instance)
	}
	return t, err
}

// seek looks for something in an instance here, for a person who decides about it.
func (k peoplesItems) seek(
	ctx context.Context, ref string, by worklist.User, look func(*held, worklist.Person) (worklists.Target, error),
) (out worklists.Target, err error) {
	who, known := k.partners.Person(by)
	if !known {
		return out, k.noPerson(by)
	}
	id, there, err := k.locate(ref)
	switch {
	case err != nil:
		return out, err
	case there != nil: // of which this node only hears
		out.Instance = id
		return out, api.Errorf(api.NotFound, "this node takes no part in instance %s", there[0].Instance).
			WithHint("do it on a node that takes part, such as %s", k.people.label(there[0].By))
	}
	var found worklists.Target
	var no error
	err = k.peek(ctx, id, func(h *held) { found, no = look(h, who) })
	return found, errors.Join(err, no)
}

func (k peoplesItems) targetIn(h *held, task workflow.TaskName, who worklist.Person) (t worklists.Target, err error) {
	t = worklists.Target{Instance: h.m.Instance(), Workflow: h.def.Def.Name, Task: task, At: k.member.ID(), Here: true}
	if task == "" {
		t.Runs, t.Knows = h.m.Definition().Hash(), h.m.Len()
	}
	if err := k.mayDecide(h, who); err != nil && !(task == "" && k.unanswerable(h, who)) {
		return t, err
	}
	if task != "" {
		t.Item, t.At, err = h.m.Ordered(task)
		switch gone := err == nil && k.people.Gone(t.At); {
		case gone && h.m.Unhandled(t.Item):
			t.At, t.InStead = k.member.ID(), true
			for _, w := range h.m.WaitFor(t.Item) {
				if k.people.Gone(w.Partner) && len(t.GoneToo) < worklists.MaxGoneToo {
					t.GoneToo = append(t.GoneToo, w.Slot)
				}
			}
		case gone:
			if err := k.waitsAtOneGone(h, &t); err != nil {
				return t, err
			}
		}
		t.Failed = h.m.Unhandled(t.Item)
		t.Held, t.Due = h.m.HeldBy(t.Item), h.m.DueOf(t.Item)
		if t.StandIn, t.MayCount = h.m.Meant(t.Item); t.StandIn == task {
			t.StandIn = ""
		}
	}
	return t, err
}

// waitsAtOneGone refuses an order about a task whose holder is gone, and that waits for others that failed: it says
// what can be ordered first. nil: it does not wait for such.
func (k peoplesItems) waitsAtOneGone(h *held, t *worklists.Target) error {
	x, known := k.people.Get(t.At)
	failed := h.m.FailedBefore(t.Item)
	if !known || len(failed) == 0 {
		return nil
	}
	def, names := h.m.Definition(), []string{}
	for _, name := range failed {
		names = append(names, def.WithLabel(name))
	}
	return api.Errorf(api.Refused, "task %s is held by %s, and only its holder can carry that out: %s",
		def.WithLabel(t.Task), k.people.label(t.At), assignment.WhyGone(x)).
		WithHint("it waits for what failed: %s; once that is done once more, or left out, another can do this task in its turn, or it can be left out",
			strings.Join(names, ", "))
}

// unanswerable reports whether nobody is left who answers for an instance, so that a partner that takes
// part may cancel it.
func (k *desk) unanswerable(h *held, who worklist.Person) bool {
	if who.User != worklist.User(k.member.ID()) {
		return false
	}
	of := h.m.Responsible()
	return k.nobodyAnswers(of) || k.people.Gone(workflow.PartnerID(of))
}

// Cancel has this node, as the partner that it is, cancel an instance.
func (k peoplesItems) Cancel(ctx context.Context, id workflow.InstanceID, reason string) error {
	return k.do(ctx, id, func(s *shard) error {
		h, err := s.find(id)
		if err != nil {
			return err
		}
		err = h.m.Cancel(reason, s.moment())
		s.touch(h)
		return err
	})
}
