package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about people as claims name them (choreo/state/claims.go): a user by its whole ID, a
// partner, who is a user of its own name, by the partner's.

// describeClaim says in words what a claim says, and of which task.
func (vw *View) describeClaim(
	h *Held, c *fact.Claim, f *state.FactView, name func(fact.AttemptID) workflow.TaskName,
) (workflow.TaskName, string) {
	var tasks []string
	for _, id := range c.About() {
		tasks = append(tasks, string(name(id)))
	}
	task, person := workflow.TaskName(""), "somebody"
	if f.Speaker != "" {
		person = vw.Partners.Called(f.Speaker)
	}
	if len(tasks) > 0 {
		task = workflow.TaskName(tasks[0])
	}
	switch x := c.Body().(type) {
	case worklist.Grant:
		text := "given to " + person + " (" + string(x.Mode) + ")"
		if x.Mode == worklist.Handed {
			text = "kept for " + person + ", who asks for others with it"
		}
		if len(x.With) > 0 {
			text += ", together with " + strings.Join(slotsOf(x.With), ", ")
		}
		if len(tasks) > 1 {
			return "", strings.Join(tasks, ", ") + " " + text
		}
		return task, text
	case worklist.Release:
		return task, strings.TrimSuffix("given back by "+person+": "+x.Reason, ": ")
	case worklist.Revoke:
		if had := h.M.GrantedTo(x.Grant); had != "" {
			return task, fmt.Sprintf("taken back from %s: %s", vw.Partners.Called(had), x.Cause)
		}
		return task, "taken back: " + string(x.Cause)
	case worklist.Result:
		if x.Failed {
			return task, strings.TrimSuffix("failed with "+person+": "+x.Reason, ": ")
		}
		text := "result of " + person + h.outputs(x.Outputs)
		for n, of := range x.Upon {
			text += map[bool]string{true: ", made from that of ", false: " and "}[n == 0] + string(of.Item.Slot)
		}
		return task, text
	case worklist.Order:
		if x.What == worklist.Recover {
			return "", h.tellStep(person, x.Reason)
		}
		what := x.What
		if x.To != "" {
			what += ", by " + vw.People.Label(x.To)
		}
		return task, strings.TrimSuffix(fmt.Sprintf("%s orders: %s: %s", person, what, x.Reason), ": ")
	case worklist.Offer:
		return task, "offered to " + strings.Join(vw.Partners.CalledAll(x.To), ", ")
	case worklist.Reserve:
		return x.Item.Slot, "has " + listed(x.Resources) + " until it ends"
	case worklist.Keep:
		return "", fmt.Sprintf("the resources of partition %s are given out by this partner from now on, as the one is "+
			"gone or away that did", x.Partition)
	case worklist.Notify:
		return "", "items are offered by the policy " + x.Policy.String() + " from now on, says " + person
	case worklist.Amend:
		return "", vw.amendedText(x, f) + ", says " + person
	case worklist.Extend:
		return task, fmt.Sprintf("%s extends its deadline %s", person, dueText(x.Due))
	case worklist.Adopt:
		return task, fmt.Sprintf("%s adopts the result %s", person, fact.ID(x.Result).Short())
	case worklist.Transfer:
		return task, vw.describeTransfer(x, person)
	case worklist.Close:
		if !x.Order.IsZero() {
			return task, "stopped by that order"
		}
		return task, "its item is closed with that result"
	}
	return task, "a claim that cannot be read"
}

// dueText is a deadline in words.
func dueText(d worklist.Due) string {
	if d.At.IsZero() {
		return "to " + workflow.FormatDuration(d.After) + " after it can be done"
	}
	return "to " + d.At.UTC().Format(time.RFC3339)
}

// describeTransfer says in words how an item passes on, mostly as a person asks.
func (vw *View) describeTransfer(x worklist.Transfer, person string) string {
	text := "put back by " + person
	switch {
	case x.Cause == worklist.ByDeadline:
		return fmt.Sprintf("passed to %s, who answers for the instance, as its deadline is near",
			vw.Partners.Called(x.To))
	case x.To != "":
		text = fmt.Sprintf("handed to %s by %s, and kept for an hour", vw.Partners.Called(x.To), person)
	case x.Role != "":
		text = fmt.Sprintf("passed to role %s by %s", x.Role, person)
	}
	return strings.TrimSuffix(text+": "+x.Reason, ": ")
}

// slotsOf are the tasks of items.
func slotsOf(of []worklist.Item) (out []string) {
	for _, i := range of {
		out = append(out, string(i.Slot))
	}
	return out
}
