package worklists

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about orders of those who decide about instances: each is signed by the person, and
// goes to the partner that holds the task, which carries it out.

// MaxGoneToo is how many of those tasks are named.
const MaxGoneToo = 16

// Target is what an order is about, and who carries it out.
type Target struct {
	Instance workflow.InstanceID `json:"instance"`
	Workflow workflow.Name       `json:"workflow"`
	Task     workflow.TaskName   `json:"task"` // empty: the instance
	Item     worklist.Item       `json:"item"`
	At       workflow.PartnerID  `json:"at"`
	// InStead: whoever held the task is gone, and At takes part, as others do that could carry it out.
	InStead bool `json:"in_stead,omitzero"`
	// GoneToo are the tasks that wait for this one and whose holders are gone as well, the first of them.
	GoneToo []workflow.TaskName `json:"gone_too,omitempty"`
	// StandIn is what is done in place of the task, and so what the order is about; empty: the task itself. MayCount is
	// who holds an earlier attempt at the task that others only presume to have failed: it may still count.
	StandIn  workflow.TaskName  `json:"stand_in,omitzero"`
	MayCount workflow.PartnerID `json:"may_count,omitzero"`
	// Failed: the attempt has failed, and nothing deals with that.
	Failed bool `json:"failed,omitzero"`
	// Held is by which grant somebody has the item; zero: nobody has.
	Held worklist.ID `json:"held"`
	// Due is the deadline of the task; zero: it has none now. Here: this node says all that itself.
	Due  worklist.Due `json:"due,omitzero"`
	Here bool         `json:"-"`
	// Result is the one that is to be adopted; zero: it is not about that.
	Result worklist.ID `json:"result"`
	// Runs is the definition by which the instance runs; zero: it is about a task or a result.
	Runs workflow.Hash `json:"runs,omitzero"`
	// Knows is how many facts of the instance the partner has.
	Knows int `json:"knows,omitzero"`
	// Outlived is the task that the instance was begun for, which has ended without it; nil: there is none.
	Outlived *Parent `json:"outlived,omitempty"`
}

// Parent is a task that another instance does.
type Parent struct {
	Instance workflow.InstanceID `json:"instance"`
	Task     workflow.TaskName   `json:"task"`
}

// counts refuses an order by which something would be done in an instance of which nothing counts any more.
func (t *Target) counts() error { return t.Outlived.Counts(t.Instance) }

// NeedsParent reports whether what a person says would be done in vain in an instance of which nothing counts any more.
func NeedsParent(body worklist.Body) bool {
	switch x := body.(type) {
	case worklist.Adopt:
		return true
	case worklist.Order:
		return x.What == api.TaskAgain || x.What == api.TaskSkip || x.What == api.TaskContinue
	}
	return false
}

// Counts refuses what would be done in an instance that was begun for a task which has ended without it; nil: none has.
func (p *Parent) Counts(in workflow.InstanceID) error {
	if p == nil || !workflow.ValidName(string(p.Task)) {
		return nil
	}
	return api.Errorf(api.Refused, "instance %s does task %s of instance %s, which has ended: nothing that is done in it counts any more",
		in.Short(), p.Task, p.Instance).
		WithHint("order it there, if it failed: mutirao task again %s %s", p.Instance, p.Task)
}

// isStill refuses an order about an attempt that is not the one any more of which its task is ordered about; empty: it
// names none.
func (t *Target) isStill(item string) error {
	switch {
	case item == "" || t.Task == "" || ItemID(t.Instance, t.Item) == item:
		return nil
	case t.Failed:
		return api.Errorf(api.Refused, "task %s was done once more since, and has failed again: this order is about how it failed before",
			t.Task).
			WithHint("look at how it failed now, and decide about that")
	}
	return api.Errorf(api.Refused, "of task %s there is another attempt by now than the one that this order is about", t.Task).
		WithHint("look at how far it is now: an order about what failed before was given already")
}

// same reports whether two partners say the same of what an order is about. Any of them carries
// out what is about an instance, or a result.
func (t *Target) same(o *Target) bool {
	about := t.Workflow == o.Workflow && t.Task == o.Task && t.Item == o.Item && t.Result == o.Result
	return about && (t.At == o.At || t.Task == "" || !t.Result.IsZero() || t.InStead && o.InStead)
}

// Order has a person who decides about an instance say what becomes of a task.
func (d *Desk) Order(ctx context.Context, in api.TaskOrder) (*api.TaskOrdered, error) {
	switch in.Order {
	case api.TaskAgain, api.TaskSkip, api.TaskStop, api.TaskContinue, api.TaskUndo:
		if in.Task == "" {
			return nil, api.Errorf(api.Invalid, "an order to %s names a task", in.Order)
		}
		if in.Order == api.TaskSkip && strings.TrimSpace(in.Reason) == "" {
			return nil, api.Errorf(api.Invalid, "an order to skip a task says why").
				WithHint("give a reason, which its log keeps: --reason WHY")
		}
		if in.To != "" && in.Order != api.TaskAgain {
			return nil, api.Errorf(api.Invalid, "an order to %s names a partner: only what is done again goes to another",
				in.Order)
		}
	case api.TaskCancel:
	case api.TaskRecover:
		return d.recover(ctx, in)
	default:
		return nil, api.Errorf(api.Invalid, "the order %q: want %s, %s, %s, %s, %s, %s or %s", in.Order,
			api.TaskAgain, api.TaskSkip, api.TaskContinue, api.TaskStop, api.TaskUndo, api.TaskCancel, api.TaskRecover)
	}
	who, unnamed, err := d.decider(in)
	if err != nil {
		return nil, err
	}
	var to workflow.PartnerID
	if in.To != "" {
		if to, err = d.in.Partner(in.To); err != nil {
			return nil, err
		}
	}
	task := in.Task
	if in.Order == api.TaskCancel {
		task = ""
	}
	t, err := d.target(ctx, in.ID, task, who)
	if err != nil {
		return nil, d.unlessNamed(unnamed, err)
	}
	if err := t.isStill(in.Item); err != nil {
		return nil, err
	}
	order := worklist.Order{Item: t.Item, What: in.Order, Reason: in.Reason, To: to}
	if NeedsParent(order) {
		if err := t.counts(); err != nil {
			return nil, err
		}
	}
	if in.Order == api.TaskCancel && t.At == d.in.Self && who.ID == string(d.in.Self) {
		err = d.in.Instances.Cancel(ctx, t.Instance, in.Reason) // its fact is this partner's word
	} else {
		r := &Row{Instance: t.Instance, Workflow: t.Workflow, Task: t.Task, Item: t.Item, At: t.At}
		_, err = d.send(ctx, who, r, order)
	}
	if err != nil {
		return nil, d.unlessNamed(unnamed, err)
	}
	d.askAgain(who, t.At)
	out := &api.TaskOrdered{
		ID: t.Instance.String(), Task: in.Task, Order: in.Order, User: who.Name, At: d.in.Name(t.At), InStead: t.InStead,
		StandIn: t.StandIn,
	}
	if in.Order == api.TaskAgain || in.Order == api.TaskSkip {
		out.GoneToo = t.GoneToo
	}
	if t.MayCount != "" {
		out.MayCount = d.in.Name(t.MayCount)
	}
	if to != "" {
		out.To = d.in.Name(to)
	}
	return out, nil
}

// recover has a person who decides about an instance recover it by a step.
func (d *Desk) recover(ctx context.Context, in api.TaskOrder) (*api.TaskOrdered, error) {
	if in.Recover == nil || in.Task != "" || in.Reason != "" {
		return nil, api.Errorf(api.Invalid, "an order to recover has a step, and neither a task nor a reason")
	}
	step, err := json.Marshal(in.Recover)
	if err != nil {
		return nil, api.Judge(api.Invalid, err)
	}
	who, err := d.in.People.Who(in.User)
	if err != nil {
		return nil, err
	}
	t, err := d.target(ctx, in.ID, workflow.FlowTask, who)
	var no *api.Error
	if err != nil && errors.As(d.in.Explain(err), &no) && no.Code == api.Refused && no.Hint == "" { // its tasks follow a graph
		return nil, no.WithHint("mutirao recover %s says what can be ordered of its tasks", in.ID)
	}
	if err != nil {
		return nil, err
	}
	r := &Row{Instance: t.Instance, Workflow: t.Workflow, Task: t.Task, Item: t.Item, At: t.At}
	if _, err = d.send(ctx, who, r, worklist.Order{Item: t.Item, What: worklist.Recover,
		Reason: string(step)}); err != nil {
		return nil, err
	}
	d.askAgain(who, t.At)
	return &api.TaskOrdered{ID: t.Instance.String(), Order: in.Order, User: who.Name, At: d.in.Name(t.At)}, nil
}

// decider is the person who orders something. Where several are signed in here and none is named, an
// instance is cancelled by the partner, who began it or takes part in it; unnamed asks for a name.
func (d *Desk) decider(in api.TaskOrder) (who users.Who, unnamed, err error) {
	who, err = d.in.People.Who(in.User)
	if err != nil && in.User == "" && in.Order == api.TaskCancel {
		unnamed = err
		who, err = d.in.People.Who(string(d.in.Self))
	}
	return who, unnamed, err
}

// unlessNamed asks whoever named nobody for a name, where the partner does not decide; unnamed is nil: somebody was
// named.
func (d *Desk) unlessNamed(unnamed, err error) error {
	var no *api.Error
	if unnamed != nil && errors.As(d.in.Explain(err), &no) && no.Code == api.NotAllowed {
		return unnamed
	}
	return err
}

// sought is what a person wants to say something about: an order, or an adoption.
type sought struct {
	who users.Who
	// ref names the instance, result a result in it. here looks for it at this node, req asks another by that
	// protocol, and fits reports whether an answer is about it: the person signs for what it names.
	ref      string
	result   string
	here     func(ctx context.Context) (Target, error)
	protocol string
	req      []byte
	fits     func(p workflow.PartnerID, t *Target) bool
	amends   bool // it depends on by which definition the instance runs
	looks    bool // nothing is signed
}

// target finds what an order is about.
func (d *Desk) target(ctx context.Context, ref string, task workflow.TaskName, who users.Who) (Target, error) {
	return d.targetOf(ctx, ref, task, who, false)
}

// targetOf is target; amends: partners have to agree on the definition by which the instance runs.
func (d *Desk) targetOf(
	ctx context.Context, ref string, task workflow.TaskName, who users.Who, amends bool,
) (Target, error) {
	x, err := d.soughtIn(ref, task, who)
	if err != nil {
		return Target{}, err
	}
	x.amends = amends
	return d.seek(ctx, x)
}

// soughtIn is a task of an instance or, empty, the instance.
func (d *Desk) soughtIn(ref string, task workflow.TaskName, who users.Who) (x sought, err error) {
	req, err := wire.EncodeTarget(wire.Target{User: who.ID, Instance: ref, Task: task})
	if err != nil {
		return x, api.Judge(api.Invalid, err)
	}
	return sought{
		who: who, ref: ref, protocol: ProtocolTarget, req: req,
		here: func(ctx context.Context) (Target, error) {
			return d.in.Instances.Target(ctx, ref, task, worklist.User(who.ID))
		},
		fits: func(p workflow.PartnerID, t *Target) bool {
			return t.fits(ref) && t.Task == task && t.Result.IsZero() &&
				(t.StandIn == "" || workflow.ValidName(string(t.StandIn))) && len(t.GoneToo) <= MaxGoneToo &&
				!slices.ContainsFunc(t.GoneToo, func(n workflow.TaskName) bool { return !workflow.ValidName(string(n)) }) &&
				(task != "" && t.Item.Slot != "" || task == "" && t.Item == worklist.Item{} && t.At == p)
		},
	}, nil
}

// seek finds it in what is known here or, of an instance in which this node takes no part, by asking the
// partners that do.
func (d *Desk) seek(ctx context.Context, x sought) (Target, error) {
	t, err := x.here(ctx)
	var e *api.Error
	if err == nil || !errors.As(d.in.Explain(err), &e) || e.Code != api.NotFound || d.takesPart(ctx, x.ref, x.who) {
		return t, err
	}
	found, disputed, changing := map[workflow.InstanceID]Target{}, "", []string{}
	var several error // a partner says so of the prefix
	var mu sync.Mutex // guards found, disputed, changing, several and err
	silent := d.askEach(func(p workflow.PartnerID) error {
		b, asking := d.in.Peers.Request(ctx, p, nil, x.protocol, x.req, listPatience)
		if asking != nil {
			return asking
		}
		var a answeredTarget
		if json.Unmarshal(b, &a) != nil || a.Refusal == nil && !x.fits(p, &a.Target) {
			d.in.Peers.Refuse("items-malformed", p)
			return errors.New("it answers something else")
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case a.Refusal == nil:
			if was, said := found[a.Target.Instance]; said && !was.same(&a.Target) {
				if disputed = "partners do not agree on what that is"; was.At != a.Target.At {
					disputed += fmt.Sprintf(": by one %s holds it, by another %s", d.in.Name(was.At),
						d.in.Name(a.Target.At))
				}
			}
			was, said := found[a.Target.Instance]
			if x.amends && said && was.Runs != a.Target.Runs {
				changing = append(changing, d.in.Name(was.At), d.in.Name(p))
			}
			if !said || a.Target.Knows > was.Knows { // who knows most says how far it has got
				found[a.Target.Instance] = a.Target
			}
		case a.Here:
			err = api.Errorf(a.Refusal.Code, "%s", a.Refusal.Message).WithHint("%s", a.Refusal.Hint)
			if a.Refusal.Code == api.Invalid && isShort(x.ref) {
				several = err
			}
		}
		return nil
	})
	away := d.outOfReach(x.ref, silent)
	if several == nil {
		several = notOne(x.ref, t.Instance, found, away)
	}
	switch {
	case disputed != "":
		return t, api.Errorf(api.Refused, "%s", disputed).
			WithHint("order it at the node that holds it; one of the two lies, or has not heard of what happened")
	case len(changing) > 0 && len(found) == 1:
		return t, api.Errorf(api.Refused, "it is being amended: %s and %s do not say alike by which definition it runs",
			changing[0], changing[1]).
			WithHint("try again in a while, when both have heard of it; if it stays so one of the two lies")
	case several != nil:
		return t, several
	case len(found) == 0 && errors.As(err, &e) && e.Code == api.NotFound && len(away) > 0:
		for id, of := range away { // the one
			err = d.notReached(id, of)
		}
		return t, err
	case len(found) == 0 && errors.As(err, &e) && e.Code == api.NotFound && len(silent) > 0:
		return t, api.Errorf(api.Refused,
			"this node takes no part in instance %s, and these did not answer, who may: %s", x.ref,
			strings.Join(d.names(silent), ", ")).
			WithHint("try again in a while; mutirao partners shows how they fare")
	case len(found) == 0:
		return t, err
	}
	known := t.Instance
	for _, t = range found {
	}
	if x.looks {
		return t, nil
	}
	return t, d.signable(x, known, &t)
}

// signable refuses to have a person sign what only a partner says that the person means. What is given whole says
// by itself what it is; of an abbreviation that is known here. known is the instance, as far as it is.
func (d *Desk) signable(x sought, known workflow.InstanceID, t *Target) error {
	by, whole := d.in.Name(t.At), t.Instance.String()
	switch result := hex.EncodeToString(t.Result[:]); {
	case t.Instance != known && shortened(x.ref, whole):
		return api.Errorf(api.Refused, "%q begins the ID of an instance of which only %s says something: it is not signed for what another completes", x.ref, by).
			WithHint("give the whole ID; %s says %s", by, whole)
	case !t.Result.IsZero() && shortened(x.result, result):
		return api.Errorf(api.Refused, "%q begins the name of a result of which only %s says something: it is not signed for what another completes", x.result, by).
			WithHint("give the whole name, from mutirao show %s -o json where it takes part; %s says %s", whole, by,
				result)
	case t.Result.IsZero() && t.Task != t.Item.Slot:
		return api.Errorf(api.Refused, "%s says that %s is done in place of %s, and nothing is known of that here", by,
			t.Task, t.Item.Slot).
			WithHint("if it is meant, order it of %s", t.Item.Slot)
	}
	return nil
}

// shortened reports whether somebody gave less than the whole of a name.
func shortened(ref, whole string) bool { return lowered(ref) != whole }

// isShort reports whether somebody gave less than a whole ID of an instance.
func isShort(ref string) bool { return len(lowered(ref)) < len(everywhere.String()) }

// lowered is a name as it is compared.
func lowered(ref string) string { return strings.ToLower(strings.TrimSpace(ref)) }

// takesPart reports whether this node takes part in an instance about which a person decides.
func (d *Desk) takesPart(ctx context.Context, ref string, who users.Who) bool {
	_, err := d.in.Instances.Target(ctx, ref, "", worklist.User(who.ID))
	return err == nil
}

// fits reports whether an answer is about the instance that was asked for.
func (t *Target) fits(ref string) bool {
	return strings.HasPrefix(t.Instance.String(), lowered(ref)) && t.At != ""
}

// answeredTarget is what an order is about, as a partner says; or why it may not be given.
type answeredTarget struct {
	Target  Target     `json:"target"`
	Here    bool       `json:"here"` // the partner takes part in the instance
	Refusal *api.Error `json:"refusal,omitempty"`
}

// AnswerTarget answers a partner what an order of a person at its node would be about.
func (d *Desk) AnswerTarget(from workflow.PartnerID, req []byte) ([]byte, error) {
	r, err := wire.DecodeTarget(req)
	if err != nil {
		return nil, err
	}
	if err := d.admit(from, r.User); err != nil {
		return nil, err
	}
	return d.answerTarget(from, r.Instance, r.User, func(ctx context.Context) (Target, error) {
		return d.in.Instances.Target(ctx, r.Instance, r.Task, worklist.User(r.User))
	})
}

// answerTarget answers what look finds of an instance, or why it may not be said.
func (d *Desk) answerTarget(
	from workflow.PartnerID, instance, user string, look func(context.Context) (Target, error),
) (_ []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), listPatience)
	defer cancel()
	var out answeredTarget
	out.Target, err = look(ctx)
	if out.Here = err == nil; !out.Here { // it may take part, and refuse
		var no *api.Error
		_, whole := d.in.Instances.Target(ctx, instance, "", worklist.User(user))
		out.Here = whole == nil || errors.As(d.in.Explain(whole), &no) && no.Code != api.NotFound
	}
	if err = d.in.Explain(err); err != nil && !errors.As(err, &out.Refusal) {
		d.in.Log.Warn("what an order is about could not be said to a partner", "to", from, "error", err)
		return nil, errCannot
	}
	if out.Refusal != nil {
		out.Target = Target{} // nobody is told more of an instance than why
	}
	return json.Marshal(out)
}
