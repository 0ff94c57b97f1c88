package worklists

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file hands in what a person made of an item: to its holder, or into the outbox while that cannot be asked.

// Finish hands in what a person made of an item.
func (d *Desk) Finish(ctx context.Context, in api.ItemResult) (*api.Item, error) {
	who, err := d.in.People.Who(in.User)
	if err != nil {
		return nil, err
	}
	of, err := d.locate(ctx, who, []string{in.Item}, true)
	if err != nil {
		return nil, err
	}
	r := of[0]
	// Of two at one moment the second would not know what the first gave.
	over, err := d.turn(ctx, who, r)
	if err != nil {
		return nil, err
	}
	defer over()
	if in.Outputs, err = d.mayFinish(ctx, who, r, in); err != nil {
		return nil, err
	}
	ends, err := d.begin(who.ID, false)
	if err != nil {
		return nil, err
	}
	defer ends()
	upon, err := d.upon(ctx, who, r)
	if err != nil {
		return nil, err
	}
	given, err := d.give(ctx, who, r, in.Outputs)
	if err != nil {
		d.ungive(given)
		return nil, err
	}
	body := worklist.Result{
		Item: r.Item, Grant: r.Grant, Failed: in.Failed, Reason: in.Reason, Upon: upon,
		Outputs: map[workflow.DataName]workflow.Value{},
	}
	for n, text := range in.Outputs {
		body.Outputs[workflow.DataName(n)] = text
	}
	c, err := d.say(who, r, body)
	if err != nil {
		return nil, err
	}
	soon, cancel := ctx, func() {}
	if r.Mine == worklist.Lock { // nobody waits long for what can be kept here, and is handed in by itself
		soon, cancel = context.WithTimeout(ctx, keptPatience)
	}
	done, err := d.bring(soon, r.At, c)
	cancel()
	if err == nil {
		return d.finished(who, r, c, body, in, done)
	}
	if r.Mine == worklist.Lock && (errors.Is(err, errAway) || errors.Is(err, errNoAnswer) || errors.Is(err, errPutOff)) {
		return d.keepForLater(who, r, c, body, in)
	}
	if errors.As(err, new(refusal)) {
		d.ungive(given)
	}
	if r.Mine == "" {
		if r.unrecorded {
			d.noteUnrecorded(who, *r)
		}
		d.dropUndone(who, r)
	}
	return nil, d.inWords(r, body, err)
}

// mayFinish says why a user cannot hand in a result of an item, as far as this device knows; nil: what it sets.
func (d *Desk) mayFinish(ctx context.Context, who users.Who, r *Row, in api.ItemResult) (map[string]string, error) {
	switch {
	case r.Grant.IsZero():
		return nil, d.notTheirs(ctx, who, r)
	case in.Failed && strings.TrimSpace(in.Reason) == "":
		return nil, api.Errorf(api.Invalid, "a failure needs a reason, for those who go on")
	}
	if made := d.madeFrom(who, r); len(made) > 0 {
		return nil, api.Errorf(api.Refused, "what was done here of %s was made from what was done of %s, and would not count any "+
			"more if that were changed", strings.Join(made, ", "), r.called()).
			WithHint("it is handed in as it is; whoever decides can have it done again after that")
	}
	in.Outputs = d.withGiven(who, r, in)
	if err := d.changesPutOff(ctx, who, r, in); err != nil {
		return nil, err
	}
	return in.Outputs, d.checkGiven(who, r, in.Outputs, !d.isUp(r.At))
}

// keepForLater keeps a result whose holder cannot be asked now, if it may count.
func (d *Desk) keepForLater(
	who users.Who, r *Row, c wire.Spoken, body worklist.Result, in api.ItemResult,
) (*api.Item, error) {
	if no := d.refusedOf(who.ID, r.ID()); no != nil && no.Grant == r.Grant && d.keptFor(who.ID, r.ID()) == nil {
		return nil, api.Errorf(api.Refused, "%s does not have %s any more: what was done of it before was refused: %s",
			who.Name, r.called(), no.Refused).
			WithHint("mutirao outbox shows it; when %s can be reached this can be brought as well", d.in.Name(r.At))
	}
	if err := d.checkGiven(who, r, in.Outputs, true); err != nil {
		return nil, err
	}
	return d.later(who, r, c, body)
}

// finished notes what became of a result where its holder has it.
func (d *Desk) finished(
	who users.Who, r *Row, c wire.Spoken, body worklist.Result, in api.ItemResult, done choreo.Claimed,
) (*api.Item, error) {
	k := keptOf(who, r, r.AsOf, nil)
	switch {
	case done.Still:
	case done.Kept != "":
		d.dropUndone(who, r) // what was done of it before, and waits, is handed in as well
	case done.Waits:
		d.keepPutOff(who, r, c, body)
	default:
		if done.Fails == "" && !in.Failed {
			d.noteDone(who, r, c, body)
		}
		d.delivered(k)
		if !in.Failed && k.hand(c, d.in.Clock.Now().Wall) == nil {
			d.noteCounted(k)
		}
	}
	if done.Kept == "" {
		d.mended(k)
		d.took(k, in.Outputs)
	}
	if err := d.has(who, []*Row{r}); err != nil {
		d.in.Log.Warn("what is to be given back of a joint lock cannot be changed", "error", err)
	}
	if done.Still {
		return nil, api.Errorf(api.Refused, "the result of %s does not count, %s; it is kept", r.called(),
			Because(done.Kept)).
			WithHint("complete it once more as it may be: you still have the item")
	}
	if done.Kept != "" {
		d.mu.Lock()
		d.unlist(who.ID, r.At, r.ID()) // that it was taken stays known: its holder is asked how it was lost
		d.mu.Unlock()
		d.awaitAdoption(who, r, c, done)
		return nil, api.Errorf(api.Refused, "the result of %s does not count, %s; it is kept", r.called(),
			Because(done.Kept)).
			WithHint("mutirao show %s shows it%s", r.Instance, d.whereShown(r))
	}
	if !done.Waits { // else it may still be lost
		d.forgetTaken(who, r)
	}
	if done.Fails != "" {
		return nil, MakesFail(r.called(), r.Instance.String(), done.Fails)
	}
	out := d.item(who, r)
	name := who.Name
	out.State, out.Holder, out.Delivered, out.Signed = api.ItemDone, &name, true, users.Signed(c.Word)
	return &out, nil
}

// turn waits until this device does nothing else that changes how a user has an item; over lets the next one in.
func (d *Desk) turn(ctx context.Context, who users.Who, r *Row) (over func(), err error) {
	return d.turns.Take(ctx, who.ID+" "+r.ID())
}

// madeFrom are the items, as people read them, that their user did here out of reach and made from what waits to be
// handed in of an item: another result of that would take from them what they count by.
func (d *Desk) madeFrom(who users.Who, r *Row) (out []string) {
	k := d.keptFor(who.ID, r.ID())
	if k == nil {
		return nil
	}
	of, did := k.done()
	if !did {
		return nil
	}
	for _, x := range d.allKept(who.ID) {
		if slices.Contains(x.upon(), of) {
			row := x.row()
			out = append(out, row.called())
		}
	}
	return out
}

// withGiven is what a result sets, with what its user gave before of the same item, if that waits to be handed in: the
// new result takes its place, and whoever mends one value does not give the others once more.
func (d *Desk) withGiven(who users.Who, r *Row, in api.ItemResult) map[string]string {
	k := d.keptFor(who.ID, r.ID())
	if in.Failed || k == nil || k.Grant != r.Grant {
		return in.Outputs
	}
	if _, did := k.done(); !did {
		return in.Outputs
	}
	out := k.outputs()
	if out == nil {
		return in.Outputs
	}
	maps.Copy(out, in.Outputs)
	return out
}

// isUp reports whether the holder of an item can be asked now.
func (d *Desk) isUp(at workflow.PartnerID) bool { return at == d.in.Self || d.in.Peers.Up(at) }

// checkGiven says what is wrong with values that a user gives (workflow.CheckGiven), as far as this device knows what a
// result of the item may set. Its holder refuses it as well, but that may be asked in a week only. Alone: it is not
// asked now, so all is checked that it would say. Else that is left to it: the definition may have changed meanwhile.
func (d *Desk) checkGiven(who users.Who, r *Row, outputs map[string]string, alone bool) error {
	k := d.keptFor(who.ID, r.ID())
	if k == nil {
		return nil
	}
	sheet := k.more().Sheet
	if sheet == nil {
		return nil
	}
	names := make([]string, 0, len(sheet.Fields))
	for _, f := range sheet.Fields {
		names = append(names, f.Name)
		decl := declared(&f)
		text, given := outputs[f.Name]
		if !given {
			continue
		}
		err := workflow.CheckGiven(&decl, text)
		if err == nil && alone {
			_, err = workflow.ParseValue(&decl, text)
		}
		if err != nil {
			return api.Errorf(api.Invalid, "%s: %v", r.called(), err)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(outputs)) {
		if alone && len(names) < maxFields && !slices.Contains(names, n) {
			err := api.Errorf(api.Invalid, "%s: its result may not set %q", r.called(), n)
			if len(names) == 0 {
				return err.WithHint("it sets no data: leave it out")
			}
			return err.WithHint("it may set: %s", strings.Join(names, ", "))
		}
	}
	return nil
}

// Because is why a result does not count, as part of a sentence.
func Because(why string) string {
	switch why {
	case "given back", "taken back", "handed on", "passed to another role", "put back":
		return "as the item was " + why
	case string(worklist.ByOrder):
		return why
	case string(worklist.ByDeadline):
		return "as it had passed to the responsible user, with its deadline near"
	}
	return "as " + why
}

// whereShown says at whose node an instance can be looked at that is not here.
func (d *Desk) whereShown(r *Row) string {
	if r.At == d.in.Self || d.in.Instances.Here(r.Instance) {
		return ""
	}
	return " at " + d.in.Name(r.At)
}

// MakesFail tells whoever handed in a result that its task has failed by it, for that reason.
func MakesFail(task, instance, why string) error {
	return api.Errorf(api.Refused, "%s has failed by this result: %s", task, why).
		WithHint("mutirao show %s shows the instance, mutirao recover %s what can be done about it", instance, instance)
}
