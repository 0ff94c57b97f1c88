package worklist

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about passing an item on, as a person asks: to somebody, to another role, or back (rule 10).

// NewTransfer is how a person asks for it: to a user, to a role or, naming neither, back to those for whom
// the task is. Grant is what it ends; zero: nobody has the item.
func NewTransfer(i Item, grant ID, to User, role workflow.RoleName, reason string) Transfer {
	x := Transfer{Item: i, Grant: grant, To: to, Role: role, Cause: ByReturn, Reason: reason}
	switch {
	case to != "":
		x.Cause, x.Lease = ByDelegation, DefaultLease(Handed)
	case role != "":
		x.Cause = ByEscalation
	}
	return x
}

// NewDueTransfer is how an item passes to the responsible user as its deadline is near: nobody asks for it, its
// holder says so, and it ends whatever grant there is.
func NewDueTransfer(i Item, to User) Transfer { return Transfer{Item: i, To: to, Cause: ByDeadline} }

// validate checks what a person may ask for: what follows from it is not written down.
func (x Transfer) validate() error {
	if x.Cause == ByDeadline {
		if x.Role != "" || x.Lease != 0 || !x.Grant.IsZero() || x.Reason != "" {
			return errors.New("by a deadline an item passes to a user, and that is all that is said")
		}
		return name("the user", string(x.To))
	}
	if x.To != "" && x.Role != "" {
		return errors.New("it is passed both to a user and to a role: want one of them")
	}
	if x.To != "" {
		if err := name("the user", string(x.To)); err != nil {
			return err
		}
	}
	if x.Role != "" {
		if err := name("the role", string(x.Role)); err != nil {
			return err
		}
	}
	if want := NewTransfer(x.Item, x.Grant, x.To, x.Role, x.Reason); x.Cause != want.Cause || x.Lease != want.Lease {
		return fmt.Errorf("an item that passes on since %s: nobody asks for that", x.Cause)
	}
	return reason(x.Reason)
}

// Pass says whether the holder may pass an item on as by asks; the error says why not. What was brought
// before that ends the item: it counts. Already: it is so.
func (b *Board) Pass(self workflow.PartnerID, x Transfer, by, to Person) (already bool, err error) {
	it := b.items[x.Item]
	if it == nil || !it.placed {
		return false, &Refusal{
			Item: x.Item, Why: Unknown, Text: "there is no such item here: look at the worklist again",
		}
	}
	no := b.unavailable(self, it)
	if no == nil {
		no = b.mayPass(it, x, by)
	}
	if no == nil && it.sameAs(x) {
		return true, nil
	}
	if no == nil {
		no = b.mayGet(it, x, to)
	}
	if no != nil {
		no.Item = x.Item
		return false, no
	}
	return false, nil
}

// mayPass says why somebody may not pass an item on now; nil: may.
func (b *Board) mayPass(it *item, x Transfer, by Person) *Refusal {
	h := it.open
	switch has := h != nil && h.User == by.User; {
	case !has && b.MayOrder(by.User, by.Roles) != "":
		return &Refusal{
			Why: NotPassing, By: b.terms.Responsible, Text: "you do not have it, and do not answer for its instance",
		}
	case has && b.MayOrder(by.User, by.Roles) != "" && !it.maydo(b, by.User, by.Roles):
		return &Refusal{
			Why: NotEntitled, Text: fmt.Sprintf("it is for the role %s, which you do not have", it.roleNow()),
		}
	case h != nil && slices.ContainsFunc(it.works,
		func(w *work) bool { return w.hold == h && w.void() == "" && b.Takes(w.Result) }):
		return &Refusal{Why: Done, By: h.User, Text: fmt.Sprintf("%s has done it", h.User)}
	case h == nil && !x.Grant.IsZero():
		return &Refusal{Why: Changed, Text: "who had it does not have it any more: look at it again"}
	case h != nil && !h.has(x.Grant):
		return &Refusal{Why: Taken, By: h.User, Text: fmt.Sprintf("%s has it by now: look at it again", h.User)}
	case !it.Ready:
		return &Refusal{Why: NotReady, Text: "nobody can do it now, so it is not passed on"}
	}
	return nil
}

// sameAs reports whether an item is where a transfer would have it.
func (it *item) sameAs(x Transfer) bool {
	if x.To != "" {
		return it.open != nil && it.open.User == x.To
	}
	role := x.Role
	if role == "" {
		role = it.Task.Role
	}
	return it.open == nil && it.roleNow() == role
}

// mayGet says why an item cannot go where a transfer would have it; nil: it can.
func (b *Board) mayGet(it *item, x Transfer, to Person) *Refusal {
	switch {
	case x.Role != "" && it.Task.Role == "":
		return &Refusal{
			Why: NotForThem, Text: "its task names no role: it is for people at its holder, and cannot be passed to a role",
		}
	case x.To != "" && !it.maydo(b, x.To, to.Roles):
		return &Refusal{
			Why: NotForThem, By: x.To, Text: fmt.Sprintf("it is for the role %s, which %s does not have", it.roleNow(),
				x.To),
		}
	}
	return nil
}
