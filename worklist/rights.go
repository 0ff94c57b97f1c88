package worklist

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says who may say what of an item, and what it changes, by the rules of
// docs/worklists.md. A fact is read when all of its past was read, in the one order of all
// facts; what it says counts by what its author knew.

const (
	notHolder    = "its author does not hold the attempt"
	noGrant      = "it names no grant that counts"
	notTheirs    = "the grant is another's"
	noRole       = "its user does not show the role"
	isDone       = "the item was done, as its author knew"
	neverCounted = "its grant never counted"
	notTaken     = "it was kept for its user, who had not taken it"
	unfit        = "the definition was amended meanwhile, and the task may not have such a result any more: "
)

func (x Offer) enter(b *Board, it *item, f *Fact) (why string) {
	switch {
	case f.Partner != it.Holder:
		return notHolder
	case !x.Under.IsZero() && !b.changes(x.Under, f):
		return "it names no change of policy that it knew"
	}
	if x.Under != it.under || len(it.to) == 0 && !it.all { // the policy changed: they are offered to others
		it.all, it.to, it.under, it.offer = false, map[User]bool{}, x.Under, f.ID
	}
	it.all, it.offered = it.all || x.All, true
	for _, u := range x.To {
		it.to[u] = true
	}
	return ""
}

// changes reports whether a fact changes the policy, as the author of another knew.
func (b *Board) changes(id ID, by *Fact) bool {
	f := b.facts[id]
	if f == nil || b.refused[id] != "" || !b.knew(by.ID, id) {
		return false
	}
	_, is := f.Body.(Notify)
	return is
}

func (x Grant) enter(b *Board, it *item, f *Fact) (why string) {
	switch {
	case f.Partner != it.Holder:
		return notHolder
	case f.User == "":
		return "nobody signed the request for it"
	case !it.maydo(b, f.User, f.Roles):
		return noRole
	case x.Mode == Lock && !it.Task.Offline:
		return "the task may not be done offline"
	case it.closedAsKnown(b, f):
		return isDone
	case x.Mode == Handed && it.open != nil && it.open.User == f.User:
		return "its user has it already"
	}
	h := &Hold{User: f.User, Grants: []ID{f.ID}, Mode: x.Mode, lease: x, leased: f.ID}
	it.take(b, f, h)
	return ""
}

// maydo reports whether somebody with these roles may have the item: whoever has its role,
// and the responsible user, once it has passed on as its deadline was near.
func (it *item) maydo(b *Board, u User, roles []workflow.RoleName) bool {
	r := it.roleNow()
	return r == "" || slices.Contains(roles, r) || u == b.terms.Responsible && it.dueTo
}

// closedAsKnown reports whether the author of a fact knew that the item had ended in this round.
func (it *item) closedAsKnown(b *Board, f *Fact) bool {
	return slices.ContainsFunc(it.ends, func(e *End) bool { return b.knew(f.ID, e.By) })
}

// take has a hold count, unless another does: then the same user goes on with what it has,
// and of two users one loses (rules 3 and 7).
func (it *item) take(b *Board, f *Fact, h *Hold) {
	was := it.open
	if was != nil && was.User == h.User {
		was.Grants, was.Mode, was.lease, was.leased = append(was.Grants, f.ID), h.Mode, h.lease, f.ID
		return
	}
	it.holds = append(it.holds, h)
	switch {
	case len(it.ends) > 0: // side by side with its end; which of several stands may change
		h.lose(it.ends[0].By, "the item was done meanwhile")
	case was == nil:
		it.open = h
	case it.prevails(b, h, was):
		was.lose(f.ID, "another grant prevails")
		it.open = h
	default:
		h.lose(was.leased, "another grant prevails")
	}
}

// prevails reports whether a hold that comes later in the order of facts prevails over one
// that counts: its result was taken by somebody who did not know of the other, and the
// other's was not, or later (rule 7).
func (it *item) prevails(b *Board, h, over *Hold) bool {
	mine, other := it.closer(h), it.closer(over)
	if mine == nil || b.knew(mine.ID, over.Grants[0]) {
		return false
	}
	return other == nil || b.knew(other.ID, h.Grants[0]) || mine.compare(other) < 0
}

// closer is the first that took a result of a hold.
func (it *item) closer(h *Hold) *Fact {
	for _, g := range h.Grants {
		if f := it.prior[g]; f != nil {
			return f
		}
	}
	return nil
}

func (h *Hold) lose(by ID, why string) { h.Ended, h.By, h.Lost = why, by, true }

// finish ends a hold by a fact.
func (it *item) finish(h *Hold, by *Fact, why string) {
	h.after = append(h.after, by.ID)
	if h.Ended == "" {
		h.Ended, h.By, h.self = why, by.ID, by.User == h.User
	}
	if it.open == h {
		it.open = nil
	}
}

func (x Release) enter(_ *Board, it *item, f *Fact) (why string) {
	switch h := it.holdOf(x.Grant); {
	case h == nil:
		return noGrant
	case h.User != f.User:
		return notTheirs
	case h.Ended != "":
		return "the grant had ended"
	default:
		it.finish(h, f, "given back")
	}
	return ""
}

func (x Revoke) enter(b *Board, it *item, f *Fact) (why string) {
	if f.Partner != it.Holder {
		return notHolder
	}
	h := it.holdOf(x.Grant)
	if h == nil {
		return noGrant
	}
	if it.closedAsKnown(b, f) {
		return isDone
	}
	it.finish(h, f, string(x.Cause))
	if !x.Order.IsZero() {
		it.used[x.Order] = true
	}
	return ""
}

func (x Transfer) enter(b *Board, it *item, f *Fact) (why string) {
	if why := x.may(b, it, f); why != "" {
		return why
	}
	if it.open != nil {
		it.finish(it.open, f, string(x.Cause))
	}
	if x.To == "" {
		it.role, it.all, it.to = x.Role, false, map[User]bool{}
		return ""
	}
	h := &Hold{User: x.To, Grants: []ID{f.ID}, Mode: Handed, lease: Grant{Mode: Handed, Lease: x.Lease}, leased: f.ID}
	if x.Cause == ByDeadline {
		h.Mode, h.lease = Select, Grant{Mode: Select} // it stays there until something is decided
	}
	if x.Cause == ByDeadline { // by one that there is no more it may pass on once more
		it.passed, it.dueTo = it.passed || it.knownDeadline(b, f), true
	}
	it.take(b, f, h)
	return ""
}

// may says why an item may not go to somebody else; "": it may (rule 10).
func (x Transfer) may(b *Board, it *item, f *Fact) (why string) {
	switch {
	case f.Partner != it.Holder:
		return notHolder
	case it.closedAsKnown(b, f):
		return isDone
	case x.To != "" && x.Role != "":
		return "it names both a user and a role"
	case x.Role != "" && it.Task.Role == "":
		return "its task names no role: it is for people at its holder"
	case !x.Grant.IsZero() && (it.open == nil || !it.open.has(x.Grant)):
		return "who had the item, as it says, had it no more"
	}
	switch x.Cause {
	case ByDeadline:
		if x.To != b.terms.Responsible {
			return "by a deadline an item passes to the responsible user alone"
		}
	case ByDelegation, ByEscalation, ByReturn:
		if it.open == nil || it.open.User != f.User {
			return b.mayOrder(f)
		}
	case ByOrder:
		return b.mayOrder(f)
	default:
		return "it has no cause"
	}
	return ""
}

func (x Begin) enter(_ *Board, it *item, f *Fact) (why string) {
	switch h := it.holdOf(x.Grant); {
	case h == nil:
		return noGrant
	case h.User != f.User:
		return notTheirs
	default:
		h.Begun = true
	}
	return ""
}

// enter keeps a result whatever became of its grant: it is somebody's work (rule 8).
func (x Result) enter(b *Board, it *item, f *Fact) (why string) {
	g := b.facts[x.Grant]
	switch {
	case g == nil || !b.knew(f.ID, g.ID) || g.grantee() == "" || !slices.Contains(g.Body.about(), it.Item):
		return noGrant
	case g.grantee() != f.User:
		return notTheirs
	}
	h := it.holdOf(x.Grant)
	it.works = append(it.works, &work{fact: f, Result: x, hold: h, early: h != nil && h.Mode == Handed})
	return ""
}

func (x Close) enter(b *Board, it *item, f *Fact) (why string) {
	switch {
	case f.Partner != it.Holder:
		return notHolder
	case it.closedAsKnown(b, f):
		return isDone
	case x.Result.IsZero():
		return x.stop(b, it, f)
	}
	w := it.work(x.Result)
	if w == nil || !b.knew(f.ID, w.fact.ID) {
		return "it names no result that it knew"
	}
	if why := b.mayCount(w, f); why != "" {
		return why
	}
	if it.open != nil && it.open != w.hold {
		it.open.lose(f.ID, "the item was done meanwhile")
	}
	w.hold.Ended, w.hold.By, w.hold.Lost = "done", f.ID, false
	it.finishWith(&End{By: f.ID, Failed: w.Failed, work: w})
	return ""
}

// mayCount says why a result does not count for whoever closes the item; "": it does
// (rules 7 and 9). That its grant was revoked, or lost, counts if the author knew.
func (b *Board) mayCount(w *work, f *Fact) (why string) {
	switch {
	case w.hold == nil:
		return neverCounted
	case w.void() != "":
		return w.void()
	case slices.ContainsFunc(w.hold.after, func(id ID) bool { return b.knew(f.ID, id) }):
		return "the grant had ended, as its author knew"
	case w.hold.Lost && b.knew(f.ID, w.hold.By):
		return "another grant prevails, as its author knew"
	}
	for _, of := range w.Upon {
		if !b.tookAsKnown(of, f) {
			return "it was made from a result that was not taken, as its author knew"
		}
	}
	return ""
}

// stop ends an item as an order says.
func (x Close) stop(b *Board, it *item, f *Fact) (why string) {
	if !it.ordered(b, x.Order, f, Stop) {
		return "no order asked for it"
	}
	if it.open != nil {
		it.finish(it.open, f, string(ByOrder))
	}
	it.used[x.Order] = true
	it.finishWith(&End{By: f.ID, Failed: true, Order: x.Order})
	return ""
}

// ordered reports whether an order of that kind asks for what a fact does, and was not
// carried out yet.
func (it *item) ordered(b *Board, order ID, f *Fact, what ...string) bool {
	return !it.used[order] && slices.ContainsFunc(it.orders, func(o *Fact) bool {
		return o.ID == order && slices.Contains(what, o.Body.(Order).What) && b.knew(f.ID, order)
	})
}

func (it *item) finishWith(e *End) { it.ends, it.open = append(it.ends, e), nil }

// enter adopts: what did not count by itself is the item's end from now on, unless the
// item had ended well, as the author knew (rule 9).
func (x Adopt) enter(b *Board, it *item, f *Fact) (why string) {
	if why := b.mayOrder(f); why != "" {
		return why
	}
	w := it.work(x.Result)
	if w == nil || !b.knew(f.ID, w.fact.ID) {
		return "it names no result that it knew"
	}
	if w.Failed {
		return "there is nothing to adopt of a failure"
	}
	for _, e := range it.ends {
		if !e.Failed && b.knew(f.ID, e.By) {
			return isDone
		}
	}
	it.ends = slices.DeleteFunc(it.ends, func(e *End) bool { return e.Failed && b.knew(f.ID, e.By) })
	if it.open != nil && it.open == w.hold {
		it.finish(it.open, f, "done")
	} else if it.open != nil {
		it.finish(it.open, f, "a result was adopted")
	}
	it.finishWith(&End{By: f.ID, work: w, Adopted: true})
	return ""
}

func (x Order) enter(b *Board, it *item, f *Fact) (why string) {
	if why := b.mayOrder(f); why != "" {
		return why
	}
	switch x.What {
	case Continue, Stop, Cancel, Again, Skip, Undo:
		it.orders, it.goes = append(it.orders, f), it.goes || x.What == Continue && it.knownDeadline(b, f)
		return ""
	}
	return "it orders nothing that there is"
}

func (x Reopen) enter(b *Board, it *item, f *Fact) (why string) {
	e := it.end()
	switch {
	case f.Partner != it.Holder:
		return notHolder
	case !it.ordered(b, x.Order, f, Again, Skip):
		return "no order asked for it"
	case e == nil || !e.Failed:
		return "the item has not failed"
	}
	it.used[x.Order] = true
	it.ends, it.rounds, it.all, it.to, it.passed = nil, it.rounds+1, false, map[User]bool{}, false
	it.dueTo = false
	return ""
}

func (x Extend) enter(b *Board, it *item, f *Fact) (why string) {
	if why := b.mayOrder(f); why != "" {
		return why
	}
	if why := x.Due.wrong(); why != "" {
		return why
	}
	if f.isBefore(it.Task.Renewed) {
		return "" // the definition gives it another since
	}
	it.due, it.goes, it.passed = &x.Due, false, false // whether it goes on is asked once more when that one is over
	return ""
}

// knownDeadline reports whether the author of a fact knew which deadline the definition gives the item now.
func (it *item) knownDeadline(b *Board, f *Fact) bool {
	r := it.Task.Renewed.ID
	return r.IsZero() || b.knew(f.ID, r)
}
