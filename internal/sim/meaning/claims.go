package meaning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is the second reading of what people claim of their work (docs/worklists.md,
// the rules 3 and 6 to 10).

// Voice is whose word a claim has in it.
type Voice struct {
	User  worklist.User
	Roles []workflow.RoleName // those that the word shows
	At    workflow.PartnerID  // at whose node it was said
}

// Hear has claims count, as far as hear knows whose word is in them; false: it is nobody's. Without
// it all claims count, and nothing follows from them.
func (h *History) Hear(hear func(*fact.Claim) (Voice, bool)) { h.hear = hear }

// mostSaid is how much is said of one item at most when it is given to somebody, by people, or by its
// holder itself; whoever has it may say as much again.
const mostSaid = 256

// enterClaim takes a claim in. It reports whether it counts.
func (m *Meaning) enterClaim(i int, c *fact.Claim) bool {
	body := c.Body()
	if counts, about := m.enterUnits(i, body); about {
		return counts && len(c.Word) == 0
	}
	switch {
	case m.h.hear == nil:
		return true
	case body == nil:
		return false
	}
	who, byPerson, said := Voice{}, len(c.Word) > 0, fmt.Sprintf("%x %x", c.Nonce, c.Says)
	if byPerson {
		var known bool
		if who, known = m.h.hear(c); !known ||
			slices.ContainsFunc(m.spoken[said], func(j int) bool { return m.h.knew(i, j) }) {
			return false
		}
	}
	most := mostSaid
	x, passes := body.(worklist.Transfer)
	if _, gives := body.(worklist.Grant); byPerson && !gives && !passes {
		most *= 2
	}
	decides := byPerson && m.decides(who)
	adoption, adopts := body.(worklist.Adopt)
	orders := isOrder(body)
	if (orders || adopts) && !decides || isDue(body) && (x.To != m.responsible() || byPerson) {
		return false
	}
	about := c.About()
	for _, id := range about {
		a := m.own(id, i)
		if adopts || a == nil && m.inStead(i, m.known(id, i), body) {
			a = m.known(id, i)
		}
		switch {
		case a == nil || a.undoes != nil || !forPeople(a, body):
			return false
		case orders || adopts: // at any node, of any task
		case isDue(body):
			if m.transferOf(a) == 0 {
				return false
			}
		case byPerson && !(passes && decides) && a.task.Role == "" && who.At != a.Partner && !m.due(i, id, who.User):
			return false
		case passes && !decides && !m.passes(i, a, x, who):
			return false
		}
		if adopts && !m.enterAdoption(i, a, adoption) {
			return false
		}
	}
	if m.saidOften(i, most, byPerson, about, body) {
		return false
	}
	if adopts {
		m.succeed(m.attempts[about[0]], i)
	}
	if x, is := body.(worklist.Order); is && x.What == worklist.Undo {
		m.attempts[about[0]].undone = true
	}
	if x, is := body.(worklist.Amend); is {
		m.amend(i, x)
	}
	if recovers(body) && m.flow != nil {
		m.record(m.attempts[about[0]], i)
	}
	if gives(body) {
		m.taken(i, about...)
	}
	m.claims = append(m.claims, claimed{i, body, who, byPerson, about})
	if byPerson {
		m.spoken[said] = append(m.spoken[said], i)
	}
	return true
}

// gives reports whether a claim gives items to somebody.
func gives(body worklist.Body) bool {
	if x, passes := body.(worklist.Transfer); passes {
		return x.To != ""
	}
	_, is := body.(worklist.Grant)
	return is
}

// saidOften reports whether so many things had been said about an item, as the author of the next one knew: by
// people, or by its holder. Orders about the instance are about an item of their own. Changes of policy are counted by
// themselves, amendments as well, and so is what one partner offers, whatever items it is about.
func (m *Meaning) saidOften(i, most int, byPerson bool, about []fact.AttemptID, body worklist.Body) bool {
	if isAmend(body) {
		most = maxAmendments
	}
	if isOffer(body) || isNotify(body) || isAmend(body) {
		before := slices.DeleteFunc(slices.Clone(m.claims), func(x claimed) bool {
			return isOffer(x.body) != isOffer(body) || isNotify(x.body) != isNotify(body) || isAmend(x.body) != isAmend(body) ||
				isOffer(body) && m.h.facts[x.at].Chain.Author != m.h.facts[i].Chain.Author
		})
		return knewMany(m, most, i, before, func(x claimed) int { return x.at })
	}
	if len(about) == 0 {
		about = []fact.AttemptID{{}}
	}
	return slices.ContainsFunc(about, func(id fact.AttemptID) bool {
		before := slices.DeleteFunc(slices.Clone(m.claims), func(x claimed) bool {
			return isOffer(x.body) || isNotify(x.body) || isAmend(x.body) || x.byPerson != byPerson ||
				!x.isAbout(id) && !(len(x.about) == 0 && id == fact.AttemptID{})
		})
		return knewMany(m, most, i, before, func(x claimed) int { return x.at })
	})
}

// isOrder reports whether only those who decide say that, and it is no adoption.
func isOrder(b worklist.Body) bool {
	switch b.(type) {
	case worklist.Order, worklist.Extend, worklist.Notify, worklist.Amend:
		return true
	}
	return false
}

// isDue reports whether that passes an item on since its deadline is near.
func isDue(b worklist.Body) bool {
	x, passes := b.(worklist.Transfer)
	return passes && x.Cause == worklist.ByDeadline
}

// transferOf is with how much time left an attempt passes to the responsible user (rule 10); 0: never.
func (m *Meaning) transferOf(a *Attempt) time.Duration {
	x := m.h.facts[0].Body.Annex
	switch {
	case a.task.Deadline == nil || a.task.ByNode():
		return 0
	case x != nil && x.Transfer > 0:
		return x.Transfer
	case a.task.Transfer > 0:
		return a.task.Transfer
	}
	return m.def.Transfer
}

// due reports whether an item had passed to a user since its deadline was near, as the author of a fact knew.
func (m *Meaning) due(i int, id fact.AttemptID, u worklist.User) bool {
	return u == m.responsible() && slices.ContainsFunc(m.claims, func(c claimed) bool {
		return isDue(c.body) && c.isAbout(id) && m.h.knew(i, c.at)
	})
}

func isAdoption(b worklist.Body) bool {
	_, is := b.(worklist.Adopt)
	return is
}

// forPeople reports whether that is said of such a task: what a person does is for people, and an order is about any.
func forPeople(a *Attempt, body worklist.Body) bool {
	x, closes := body.(worklist.Close)
	return !a.task.ByNode() || isOrder(body) || isAdoption(body) || closes && x.Order != worklist.ID{}
}

// decides reports whether somebody decides about the instance: whoever answers for it, or shows the role of its
// administrators (rule 2).
func (m *Meaning) decides(who Voice) bool {
	return who.User == m.responsible() ||
		m.def.Administrators != "" && slices.Contains(who.Roles, m.def.Administrators)
}

// Decides reports whether a user who ever had these roles may have decided about the instance.
func (m *Meaning) Decides(u worklist.User, roles []workflow.RoleName) bool {
	return m.decides(Voice{User: u, Roles: roles})
}

// claimOf is the claim that a fact is; nil: it is none that counts.
func (m *Meaning) claimOf(id worklist.ID) *claimed {
	for i := range m.claims {
		if x := &m.claims[i]; m.h.facts[x.at].id == fact.ID(id) {
			return x
		}
	}
	return nil
}

// enterAdoption reports whether the author of a fact may have a result adopted, by what it knew (rule 9): one that
// says that it is done, of somebody who showed the role with it or when it was taken, of a task that was not
// done yet, in an instance that goes on.
func (m *Meaning) enterAdoption(i int, a *Attempt, x worklist.Adopt) bool {
	r := m.claimOf(x.Result)
	if r == nil || !m.h.knew(i, r.at) || !r.isAbout(a.ID) {
		return false
	}
	res, is := r.body.(worklist.Result)
	if !is || res.Failed || !m.showed(r, a, res) {
		return false
	}
	done := func(o *Attempt) bool {
		return slices.ContainsFunc(o.successes, func(s int) bool { return m.certain(i, s) })
	}
	cancelled := slices.ContainsFunc(m.cancels, func(c int) bool { return m.certain(i, c) })
	if cancelled || slices.ContainsFunc(a.slot.Attempts, done) || m.tookOne(i, a) ||
		knewMany(m, fact.MaxSuccesses, i, a.successes, func(s int) int { return s }) {
		return false
	}
	out := map[workflow.DataName]workflow.Value{}
	for n, v := range res.Outputs {
		at := slices.IndexFunc(m.def.Data, func(d workflow.DataDecl) bool { return d.Name == n })
		text, _ := v.(string)
		if at < 0 || !slices.Contains(a.task.Out, n) {
			return false
		}
		value, err := workflow.ParseValue(&m.def.Data[at], text)
		if err == nil {
			value, err = workflow.CheckValue(&m.def.Data[at], value)
		}
		if err != nil {
			return false
		}
		out[n] = value
	}
	m.adopted[i] = out
	return true
}

// showed reports whether whoever brought a result had been given the item, and showed the role with the result or
// when taking the item.
func (m *Meaning) showed(r *claimed, a *Attempt, x worklist.Result) bool {
	g := m.granted(x.Grant, a.ID)
	if g == nil || !m.h.knew(r.at, g.at) || givenTo(g) != r.who.User {
		return false
	}
	return m.entitled(r.at, a.ID, a.task, r.who) || g.who.User == r.who.User && m.entitled(g.at, a.ID, a.task, g.who)
}

// tookOne reports whether a fact's author knew that the holder of an attempt had taken a result that it is done.
func (m *Meaning) tookOne(i int, a *Attempt) bool {
	return slices.ContainsFunc(m.claims, func(x claimed) bool {
		c, closes := x.body.(worklist.Close)
		if !closes || !x.isAbout(a.ID) || !m.certain(i, x.at) {
			return false
		}
		for _, y := range m.claims {
			if res, is := y.body.(worklist.Result); is && m.h.facts[y.at].id == fact.ID(c.Result) {
				return !res.Failed
			}
		}
		return false
	})
}

// enterAgain: the holder of what failed does it once more, because an order that counts asked for it (rule 11); of
// one attempt only once, as it knows.
func (m *Meaning) enterAgain(i int, a *Attempt, b *fact.Assign, order fact.ID) bool {
	o := m.claimOf(worklist.ID(order))
	if o == nil || !m.h.knew(i, o.at) || !o.isAbout(a.ID) {
		return false
	}
	x, is := o.body.(worklist.Order)
	author := m.h.facts[i].Chain.Author
	inStead := a.Partner != author && m.h.facts[o.at].Chain.Author == author && m.inStead(i, a, x)
	anybody := inStead && x.To == "" // whom it finds
	if inStead && x.What == worklist.Skip && b.Partner != author {
		return false
	}
	if !is || x.What != worklist.Again && x.What != worklist.Skip || a.undoes != nil || a.Partner != author && !inStead ||
		!anybody && b.Partner != cmp.Or(x.To, a.Partner) ||
		b.Task != a.task.Name {
		return false
	}
	followed := func(n *Attempt) bool { return m.h.knew(i, n.assigned) }
	if slices.ContainsFunc(a.again, followed) || slices.ContainsFunc(a.found, followed) || m.movedOften(i, a.slot) {
		return false
	}
	for _, r := range a.rulings {
		if m.h.facts[r.at].id == b.Verdict && r.action.Kind == workflow.FailBlock && m.h.knew(i, r.at) {
			n := m.follows(a, i, r, b.Task, b.Partner)
			n.skips = x.What == worklist.Skip
			a.again = append(a.again, n)
			return true
		}
	}
	return false
}

// inStead reports whether a claim is an order about what failed that another than its holder may write down, as the
// author of the fact knew.
func (m *Meaning) inStead(i int, a *Attempt, body worklist.Body) bool {
	x, orders := body.(worklist.Order)
	if a == nil || !orders || x.What != worklist.Again && x.What != worklist.Skip || a.beside() || a.task.Whole {
		return false
	}
	return slices.ContainsFunc(a.rulings, func(r *ruling) bool {
		return r.action.Kind == workflow.FailBlock && m.h.knew(i, r.at)
	})
}

// stopped reports whether an attempt was closed by an order.
func (m *Meaning) stopped(a *Attempt) bool {
	return slices.ContainsFunc(m.claims, func(x claimed) bool {
		c, closes := x.body.(worklist.Close)
		return closes && c.Order != worklist.ID{} && x.isAbout(a.ID)
	})
}

// responsible is who answers for the instance.
func (m *Meaning) responsible() worklist.User {
	g := m.h.facts[0]
	if a := g.Body.Annex; a != nil && a.Responsible != "" {
		return a.Responsible
	}
	return worklist.User(g.Chain.Author)
}

// passes reports whether somebody who does not decide may pass an item on, as the author of the fact knew: it was
// given to that one, who shows the role.
func (m *Meaning) passes(i int, a *Attempt, x worklist.Transfer, who Voice) bool {
	g := m.granted(x.Grant, a.ID)
	return g != nil && m.h.knew(i, g.at) && givenTo(g) == who.User && m.entitled(i, a.ID, a.task, who)
}

// entitled reports whether somebody may do an item, as the author of a fact knew: by the role of the task, or one to
// which the item was passed, or because it had passed to that user since its deadline was near.
func (m *Meaning) entitled(i int, id fact.AttemptID, t *workflow.Task, who Voice) bool {
	if t.Role == "" || slices.Contains(who.Roles, t.Role) || m.due(i, id, who.User) {
		return true
	}
	return slices.ContainsFunc(m.claims, func(c claimed) bool {
		x, passes := c.body.(worklist.Transfer)
		return passes && x.Role != "" && c.isAbout(id) && m.h.knew(i, c.at) && slices.Contains(who.Roles, x.Role)
	})
}

// givenTo is to whom a claim gives an item.
func givenTo(x *claimed) worklist.User {
	if t, passes := x.body.(worklist.Transfer); passes {
		return t.To
	}
	return x.who.User
}

// claimed is a claim that counts.
type claimed struct {
	at       int
	body     worklist.Body
	who      Voice
	byPerson bool
	about    []fact.AttemptID
}

func (x *claimed) isAbout(id fact.AttemptID) bool { return slices.Contains(x.about, id) }

// Item is what people's claims of an attempt come to.
type Item struct {
	Attempt fact.AttemptID
	Task    *workflow.Task
	Holder  workflow.PartnerID
	Holds   []*Hold
	Results []*Result
	// Open is the hold that counts, End the result that ended it; nil: none does.
	Open *Hold
	End  *Result
	// Role is for whom it is; empty: for people at its holder.
	Role workflow.RoleName

	m      *Meaning
	due    *worklist.Due // that somebody gave it in place of its task's
	passed bool          // it passed to the responsible user since its deadline was near
	ends   []ending
	undone []ending // failures that an adoption took back: what followed them was right
	both   []*Hold
	orders []*claimed
	used   []worklist.ID // orders that were carried out
	offers offers
	// unoffered are holds that were given although the holder knew that it had not offered the item to that user.
	unoffered []*Hold
}

// Hold is what somebody was given.
type Hold struct {
	User   worklist.User
	Mode   worklist.Mode
	Grants []fact.ID
	Ended  string

	at    []int // its grants
	asked int   // how many of them its user asked for
	by    fact.ID
	lost  bool
	after []int // what ended it
}

// Result is what somebody made of it.
type Result struct {
	ID   fact.ID
	User worklist.User
	Says worklist.Result

	roles []workflow.RoleName
	at    int
	hold  *Hold
	early bool // the item was only kept for its user
}

type ending struct {
	at      int
	of      *Result // nil: it was stopped
	adopted bool
	order   worklist.ID
}

func (e *ending) failed() bool { return e.of == nil || e.of.Says.Failed }

// Items are the items of which something was claimed, in the order of their names.
func (m *Meaning) Items() (out []*Item) {
	for _, x := range m.claims {
		for _, id := range x.about {
			if !slices.ContainsFunc(out, func(it *Item) bool { return it.Attempt == id }) {
				out = append(out, m.item(id))
			}
		}
	}
	slices.SortFunc(out, func(a, b *Item) int { return itemOf(a.Attempt).Compare(itemOf(b.Attempt)) })
	return out
}

func itemOf(id fact.AttemptID) worklist.Item {
	return worklist.Item{Assigned: worklist.ID(id.Fact), Slot: id.Slot}
}

// item reads all claims of an attempt, in the order of facts.
func (m *Meaning) item(id fact.AttemptID) *Item {
	a := m.attempts[id]
	it := &Item{Attempt: id, Task: a.task, Holder: a.Partner, Role: a.task.Role, m: m}
	for i := range m.claims {
		if x := &m.claims[i]; x.isAbout(id) {
			it.enter(x)
		}
	}
	if e := it.stands(); e != nil {
		it.End = e.of
	}
	return it
}

// stands is the end that counts: the one that the success of its attempt follows, or the first; nil: there is none.
func (it *Item) stands() *ending {
	if len(it.ends) == 0 {
		return nil
	}
	a := it.m.attempts[it.Attempt]
	if s := a.success(); s != none && (len(a.successes) > 1 || it.m.h.facts[s].Body.Success == nil) {
		for i := range slices.Backward(it.ends) {
			e := &it.ends[i]
			_, adopted := it.m.adopted[s]
			if e.at == s || !adopted && !e.adopted && it.m.h.knew(s, e.at) {
				return e
			}
		}
	}
	return &it.ends[0]
}

func (it *Item) enter(x *claimed) {
	switch b := x.body.(type) {
	case worklist.Grant:
		it.grant(x, b)
	case worklist.Release:
		if h := it.hold(b.Grant); h != nil && h.User == x.who.User && h.Ended == "" {
			it.finish(h, x.at, "given back")
		}
	case worklist.Revoke:
		if h := it.hold(b.Grant); h != nil && !it.endedFor(x.at) {
			it.finish(h, x.at, string(b.Cause))
		}
	case worklist.Result:
		g := it.m.granted(b.Grant, it.Attempt)
		if g != nil && it.m.h.knew(x.at, g.at) && givenTo(g) == x.who.User {
			h := it.hold(b.Grant)
			it.Results = append(it.Results,
				&Result{
					it.m.h.facts[x.at].id, x.who.User, b, x.who.Roles, x.at, h, h != nil && h.Mode == worklist.Handed,
				})
		}
	case worklist.Transfer:
		if isDue(b) {
			it.passDue(x, b)
		} else {
			it.transfer(x, b)
		}
	case worklist.Close:
		it.close(x, b)
	case worklist.Offer:
		it.offer(x, b)
	case worklist.Adopt:
		it.adopt(x, b)
	case worklist.Extend:
		it.due = &b.Due
	case worklist.Order:
		it.orders = append(it.orders, x)
	}
}

// adopt ends the item with a result that is kept. A failure that its author knew is no end any more.
func (it *Item) adopt(x *claimed, b worklist.Adopt) {
	at := slices.IndexFunc(it.Results, func(r *Result) bool {
		return r.ID == fact.ID(b.Result) && it.m.h.knew(x.at, r.at)
	})
	known := func(e ending) bool { return it.m.h.knew(x.at, e.at) }
	if at < 0 || it.Results[at].Says.Failed ||
		slices.ContainsFunc(it.ends, func(e ending) bool { return known(e) && !e.failed() }) {
		return
	}
	r := it.Results[at]
	for _, e := range it.ends {
		if known(e) {
			it.undone = append(it.undone, e)
		}
	}
	it.ends = slices.DeleteFunc(it.ends, known)
	if h := it.Open; h != nil && h == r.hold {
		it.finish(h, x.at, "done")
	} else if h != nil {
		it.finish(h, x.at, "a result was adopted")
	}
	it.ends = append(it.ends, ending{at: x.at, of: r, adopted: true})
}

// stop ends the item as an order asked, once.
func (it *Item) stop(x *claimed, order worklist.ID) {
	asked := slices.ContainsFunc(it.orders, func(o *claimed) bool {
		says, _ := o.body.(worklist.Order)
		return it.m.h.facts[o.at].id == fact.ID(order) && says.What == worklist.Stop && it.m.h.knew(x.at, o.at)
	})
	if !asked || it.endedFor(x.at) || slices.Contains(it.used, order) {
		return
	}
	if it.Open != nil {
		it.finish(it.Open, x.at, string(worklist.ByOrder))
	}
	it.used = append(it.used, order)
	it.ends = append(it.ends, ending{at: x.at, order: order})
}

// endedFor reports whether the author of a fact knew that the item had ended.
func (it *Item) endedFor(i int) bool {
	return slices.ContainsFunc(it.ends, func(e ending) bool { return it.m.h.knew(i, e.at) })
}

// passDue passes the item to the responsible user, whoever has it, since its deadline is near (rule 10).
func (it *Item) passDue(x *claimed, t worklist.Transfer) {
	if it.endedFor(x.at) {
		return
	}
	if it.Open != nil {
		it.finish(it.Open, x.at, string(worklist.ByDeadline))
	}
	it.passed = true
	it.take(x, &Hold{
		User: t.To, Mode: worklist.Select, Grants: []fact.ID{it.m.h.facts[x.at].id}, at: []int{x.at},
	})
}

// PassedTo reports whether the item passed to a user since its deadline was near.
func (it *Item) PassedTo(u worklist.User) bool { return it.passed && u == it.m.responsible() }

// Responsible is who answers for the instance.
func (it *Item) Responsible() worklist.User { return it.m.responsible() }

// transfer passes the item on, if whoever says it still had it, or decides (rule 10).
func (it *Item) transfer(x *claimed, t worklist.Transfer) {
	has := it.Open != nil && it.Open.User == x.who.User
	switch {
	case it.endedFor(x.at), t.Role != "" && it.Task.Role == "", !has && !it.m.decides(x.who):
		return
	case t.Grant != worklist.ID{} && (it.Open == nil || !slices.Contains(it.Open.Grants, fact.ID(t.Grant))):
		return
	}
	if it.Open != nil {
		it.finish(it.Open, x.at, map[bool]string{
			true: "handed on", false: map[bool]string{true: "put back", false: "passed to another role"}[t.Role == ""],
		}[t.To != ""])
	}
	if t.To == "" {
		it.offers.to = nil
		if it.Role = t.Role; t.Role == "" {
			it.Role = it.Task.Role
		}
		return
	}
	it.take(x, &Hold{
		User: t.To, Mode: worklist.Handed, Grants: []fact.ID{it.m.h.facts[x.at].id}, at: []int{x.at},
	})
}

// granted is the claim of that name that gave an attempt to somebody; nil: there is none.
func (m *Meaning) granted(id worklist.ID, of fact.AttemptID) *claimed {
	for i := range m.claims {
		x := &m.claims[i]
		_, gives := x.body.(worklist.Grant)
		t, passes := x.body.(worklist.Transfer)
		if (gives || passes && t.To != "") && m.h.facts[x.at].id == fact.ID(id) && x.isAbout(of) {
			return x
		}
	}
	return nil
}

// hold is what a grant is part of; nil: it never counted.
func (it *Item) hold(grant worklist.ID) *Hold {
	for _, h := range it.Holds {
		if slices.Contains(h.Grants, fact.ID(grant)) {
			return h
		}
	}
	return nil
}

func (it *Item) grant(x *claimed, g worklist.Grant) {
	may := it.Role == "" || slices.Contains(x.who.Roles, it.Role) || it.PassedTo(x.who.User)
	if !may || g.Mode == worklist.Lock && !it.Task.Offline || it.endedFor(x.at) {
		return
	}
	id := it.m.h.facts[x.at].id
	if h := it.Open; h != nil && h.User == x.who.User {
		if g.Mode == worklist.Handed {
			return // it has the item already
		}
		h.Grants, h.at, h.Mode = append(h.Grants, id), append(h.at, x.at), g.Mode
		h.asked++
		return
	}
	h := &Hold{User: x.who.User, Mode: g.Mode, Grants: []fact.ID{id}, at: []int{x.at}, asked: 1}
	if it.Open == nil && !it.m.sees(it, x.at, h.User) {
		it.unoffered = append(it.unoffered, h)
	}
	it.take(x, h)
}

// take has a hold count, unless another does, or the item had ended.
func (it *Item) take(x *claimed, h *Hold) {
	id := it.m.h.facts[x.at].id
	if was := it.Open; was != nil && it.m.h.knew(x.at, was.at[0]) && !it.m.h.doubtful(was.at[0]) {
		it.both = append(it.both, h)
	}
	it.Holds = append(it.Holds, h)
	switch was := it.Open; {
	case len(it.ends) > 0:
		h.lose(it.m.h.facts[it.ends[0].at].id, "the item was done meanwhile")
	case was == nil:
		it.Open = h
	case it.prevails(h, was):
		was.lose(id, "another grant prevails")
		it.Open = h
	default:
		h.lose(was.Grants[len(was.Grants)-1], "another grant prevails")
	}
}

func (h *Hold) lose(by fact.ID, why string) { h.Ended, h.by, h.lost = why, by, true }

// prevails reports whether a hold that comes later prevails over the one that counts (rule 7).
func (it *Item) prevails(h, over *Hold) bool {
	mine, other := it.firstClose(h), it.firstClose(over)
	switch {
	case mine == none || it.m.h.knew(mine, over.at[0]):
		return false
	case other == none || it.m.h.knew(other, h.at[0]):
		return true
	}
	return earlier(mine, other)
}

// firstClose is the first close by the holder of a result under the first of a hold's grants that has one.
func (it *Item) firstClose(h *Hold) int {
	for _, g := range h.Grants {
		for _, x := range it.m.claims {
			c, closes := x.body.(worklist.Close)
			if !closes || !x.isAbout(it.Attempt) {
				continue
			}
			for _, y := range it.m.claims {
				r, is := y.body.(worklist.Result)
				if is && it.m.h.facts[y.at].id == fact.ID(c.Result) && fact.ID(r.Grant) == g &&
					it.m.h.knew(x.at, y.at) {
					return x.at
				}
			}
		}
	}
	return none
}

func (it *Item) finish(h *Hold, i int, why string) {
	h.after = append(h.after, i)
	if h.Ended == "" {
		h.Ended, h.by = why, it.m.h.facts[i].id
	}
	if it.Open == h {
		it.Open = nil
	}
}

// close ends the item with a result, unless the holder knew that it may not (rules 7 and 9).
func (it *Item) close(x *claimed, c worklist.Close) {
	if c.Result == (worklist.ID{}) {
		it.stop(x, c.Order)
		return
	}
	at := slices.IndexFunc(it.Results, func(r *Result) bool {
		return r.ID == fact.ID(c.Result) && it.m.h.knew(x.at, r.at)
	})
	if at < 0 || it.endedFor(x.at) {
		return
	}
	r := it.Results[at]
	h := r.hold
	switch {
	case h == nil || r.early || slices.ContainsFunc(h.after, func(i int) bool { return it.m.h.knew(x.at, i) }):
		return
	case h.lost && it.m.h.knew(x.at, it.m.h.index[h.by]):
		return
	case slices.ContainsFunc(r.Says.Upon, func(of worklist.Basis) bool { return !it.m.tookKnown(x.at, of) }):
		return
	}
	id := it.m.h.facts[x.at].id
	if it.Open != nil && it.Open != h {
		it.Open.lose(id, "the item was done meanwhile")
	}
	h.Ended, h.by, h.lost, it.Open = "done", id, false, nil
	it.ends = append(it.ends, ending{at: x.at, of: r})
}

// tookKnown reports whether a fact's author knew of a word that closes an item with the result of another word, or
// adopts that: of one from which a later result was made (rule 9).
func (m *Meaning) tookKnown(by int, of worklist.Basis) bool {
	for _, y := range m.claims {
		r, is := y.body.(worklist.Result)
		if !is || r.Item != of.Item || m.wordAt(y.at) != of.Word {
			continue
		}
		if slices.ContainsFunc(m.claims, func(z claimed) bool {
			took := worklist.ID{}
			switch b := z.body.(type) {
			case worklist.Close:
				took = b.Result
			case worklist.Adopt:
				took = b.Result
			}
			return took == worklist.ID(m.h.facts[y.at].id) && m.h.knew(by, z.at)
		}) {
			return true
		}
	}
	return false
}

// ItemLines are what the claims come to, as a fingerprint has it (ShownItems).
func (m *Meaning) ItemLines() (out []string) {
	if by := m.changedBy(none); by != nil {
		out = append(out, fmt.Sprintf("items are offered by %s by=%s", by.body.(worklist.Notify).Policy,
			worklist.ID(m.h.facts[by.at].id)))
	}
	for _, it := range m.Items() {
		out = append(out, it.Lines()...)
	}
	return out
}

// Lines are those of one item.
func (it *Item) Lines() (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	add("item %s %s of %s", it.Attempt.Slot, worklist.ID(it.Attempt.Fact), it.Holder)
	if it.Role != it.Task.Role {
		add("  passed to role %s", it.Role)
	}
	if d := it.due; d != nil && d.After > 0 {
		add("  due after=%s at=%d", d.After, int64(d.After))
	} else if d != nil {
		add("  due after=0s at=%d", d.At.UnixNano())
	}
	if it.offers.first != (fact.ID{}) {
		add("  offered under=%s first=%s all=false to=%s", it.offers.under, worklist.ID(it.offers.first),
			slices.Sorted(slices.Values(it.offers.to)))
	}
	for _, h := range it.Holds {
		grants := make([]string, len(h.Grants))
		for i, g := range h.Grants {
			grants[i] = worklist.ID(g).String()
		}
		add("  hold %s %s %s begun=false open=%t ended=%q by=%s lost=%t", h.User, h.Mode, strings.Join(grants, ","),
			h == it.Open, h.Ended, worklist.ID(h.by), h.lost)
	}
	for _, r := range it.Results {
		add("  result %s of %s grant=%s failed=%t", worklist.ID(r.ID), r.User, r.Says.Grant, r.Says.Failed)
	}
	for _, e := range it.ends {
		add("  end %s failed=%t adopted=%t order=%s", worklist.ID(it.m.h.facts[e.at].id), e.failed(), e.adopted,
			e.order)
	}
	return out
}

// ShownItems are the lines of a fingerprint that ItemLines has too.
func ShownItems(print []byte) (out []string) {
	items := false
	for line := range strings.Lines(string(print)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "items are offered by "):
			items = false
			out = append(out, line)
		case strings.HasPrefix(line, "item "):
			items = true
			out = append(out, line)
		case !strings.HasPrefix(line, "  "):
			items = false
		case items && !strings.HasPrefix(line, "  refused "):
			out = append(out, line)
		}
	}
	return out
}

// Entitled reports whether a result shows the role of the item's task, or one to which it was passed before.
func (it *Item) Entitled(r *Result) bool {
	return it.m.entitled(r.at, it.Attempt, it.Task, Voice{User: r.User, Roles: r.roles})
}

// Asked is how many grants its user asked for.
func (h *Hold) Asked() int { return h.asked }

// Closed calls fn for each start and each success that counts of an attempt, with whether its holder had said that a
// result of somebody who shows the role of its task closes its item, as far as its author knew. That the item had
// ended before takes nothing from that: the person has said so.
func (m *Meaning) Closed(fn func(a *Attempt, t *workflow.Task, said fact.ID, byRole bool)) {
	items := m.Items()
	for _, sl := range m.slots {
		for _, a := range sl.Attempts {
			for _, s := range slices.Concat(a.starts, a.successes) {
				_, by := m.adopted[s] // then it was shown, or the adoption does not count
				by = by || slices.ContainsFunc(items, func(it *Item) bool {
					return it.Attempt == a.ID && it.closedByRole(s)
				})
				fn(a, a.task, m.h.facts[s].id, by)
			}
		}
	}
}

// closedByRole reports whether the author of a fact knew of a word of the item's holder that it is closed with the
// result of somebody who shows the role of its task.
func (it *Item) closedByRole(by int) bool {
	return slices.ContainsFunc(it.m.claims, func(x claimed) bool {
		c, closes := x.body.(worklist.Close)
		if !closes || !x.isAbout(it.Attempt) || !it.m.h.knew(by, x.at) {
			return false
		}
		r := it.m.claimOf(c.Result) // by whatever grant
		return r != nil && r.isAbout(it.Attempt) && it.m.h.knew(x.at, r.at) &&
			it.m.entitled(r.at, it.Attempt, it.Task, r.who)
	})
}

// Outputs are what a success of an attempt says, if its author knew that the item had ended so; false:
// there is none.
func (it *Item) Outputs() (map[workflow.DataName]workflow.Value, bool) {
	e := it.stands()
	if e == nil {
		return nil, false
	}
	for _, s := range it.m.attempts[it.Attempt].successes {
		if it.m.h.knew(s, e.at) {
			return it.m.gave(s), true
		}
	}
	return nil, false
}

// Item names the item as people's words do.
func (it *Item) Item() worklist.Item { return itemOf(it.Attempt) }

// TakenAway reports whether a fork took an item from its holder: what made the item that one's does not count any more,
// because it comes after the fork, or because its author was brought in by what does. It is asked of the whole history.
func (m *Meaning) TakenAway(i worklist.Item) bool {
	at, here := m.h.index[fact.ID(i.Assigned)]
	return here && !m.counts.has(at) && (!m.h.left().has(at) || m.h.Bereft(fact.ID(i.Assigned)))
}

// Tried is how many attempts at a task there are at a partner, and whether one of them is in charge.
func (m *Meaning) Tried(p workflow.PartnerID, t workflow.TaskName) (n int, inCharge bool) {
	for _, sl := range m.slots {
		for _, a := range sl.Attempts {
			if a.Partner == p && a.task.Name == t {
				n++
				inCharge = inCharge || sl.Current == a
			}
		}
	}
	return n, inCharge
}

// Words calls fn for each claim that counts and has a person's word in it.
func (m *Meaning) Words(fn func(fact.ID, Voice, worklist.Body)) {
	for _, x := range m.claims {
		if x.byPerson {
			fn(m.h.facts[x.at].id, x.who, x.body)
		}
	}
}

// Ended reports whether the item has ended: with a result, or by an order.
func (it *Item) Ended() bool { return len(it.ends) > 0 }

// InCharge reports whether the item is that of the attempt in charge, or, where its task is done, of one that counts.
func (it *Item) InCharge() bool {
	a := it.m.attempts[it.Attempt]
	if pick := a.slot.Pick; pick != nil {
		return pick == a || a.Stands
	}
	return a.slot.Current == a
}

// TaskOf is the task of the attempt that a claim is about; an empty one: it is about none.
func (m *Meaning) TaskOf(b worklist.Body) *workflow.Task {
	for _, i := range worklist.About(b) {
		if a := m.attempts[fact.AttemptID{Fact: fact.ID(i.Assigned), Slot: i.Slot}]; a != nil {
			return a.task
		}
	}
	return &workflow.Task{}
}

// Both are the holds that were given although the holder knew that somebody else had the item.
func (it *Item) Both() []*Hold { return it.both }
