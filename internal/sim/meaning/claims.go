package meaning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo"
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
func (h *History) Hear(hear func(*choreo.Claim) (Voice, bool)) { h.hear = hear }

// mostSaid is how much is said of one item at most when it is given to somebody, by people, or by its
// holder itself; whoever has it may say as much again.
const mostSaid = 256

// enterClaim takes a claim in. It reports whether it counts.
func (m *Meaning) enterClaim(i int, c *choreo.Claim) bool {
	body := c.Body()
	switch {
	case m.h.hear == nil:
		return true
	case body == nil:
		return false
	}
	who, byPerson, said := Voice{}, len(c.Word) > 0, fmt.Sprintf("%x %x", c.Nonce, c.Says)
	if byPerson {
		var known bool
		if who, known = m.h.hear(c); !known || slices.ContainsFunc(m.spoken[said], func(j int) bool { return m.h.knew(i, j) }) {
			return false
		}
	}
	most := mostSaid
	x, passes := body.(worklist.Transfer)
	if _, gives := body.(worklist.Grant); byPerson && !gives && !passes {
		most *= 2
	}
	for _, id := range c.About() {
		a := m.own(id, i)
		decides := passes && who.User == m.responsible()
		if a == nil || a.task.Type == workflow.Automatic || byPerson && !decides && a.task.Role == "" && who.At != a.Partner {
			return false
		}
		if passes && !decides && !m.passes(i, a, x, who) {
			return false
		}
		before := slices.DeleteFunc(slices.Clone(m.claims), func(x claimed) bool { return x.byPerson != byPerson || !x.isAbout(id) })
		if knewMany(m, most, i, before, func(x claimed) int { return x.at }) {
			return false
		}
	}
	m.claims = append(m.claims, claimed{i, body, who, byPerson, c.About()})
	if byPerson {
		m.spoken[said] = append(m.spoken[said], i)
	}
	return true
}

// responsible is who decides about the instance; in the simulator nobody is its administrator.
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
	return g != nil && m.h.knew(i, g.at) && givenTo(g) == who.User && m.entitled(i, a.ID, a.task, who.Roles)
}

// entitled reports whether somebody with these roles may do an item, as the author of a fact knew: by the role of
// the task, or one to which the item was passed.
func (m *Meaning) entitled(i int, id choreo.AttemptID, t *workflow.Task, roles []workflow.RoleName) bool {
	if t.Role == "" || slices.Contains(roles, t.Role) {
		return true
	}
	return slices.ContainsFunc(m.claims, func(c claimed) bool {
		x, passes := c.body.(worklist.Transfer)
		return passes && x.Role != "" && c.isAbout(id) && m.h.knew(i, c.at) && slices.Contains(roles, x.Role)
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
	about    []choreo.AttemptID
}

func (x *claimed) isAbout(id choreo.AttemptID) bool { return slices.Contains(x.about, id) }

// Item is what people's claims of an attempt come to.
type Item struct {
	Attempt choreo.AttemptID
	Task    *workflow.Task
	Holder  workflow.PartnerID
	Holds   []*Hold
	Results []*Result
	// Open is the hold that counts, End the result that ended it; nil: none does.
	Open *Hold
	End  *Result
	// Role is for whom it is; empty: for people at its holder.
	Role workflow.RoleName

	m    *Meaning
	ends []ending
	both []*Hold
}

// Hold is what somebody was given.
type Hold struct {
	User   worklist.User
	Mode   worklist.Mode
	Grants []choreo.FactID
	Ended  string

	at    []int // its grants
	asked int   // how many of them its user asked for
	by    choreo.FactID
	lost  bool
	after []int // what ended it
}

// Result is what somebody made of it.
type Result struct {
	ID   choreo.FactID
	User worklist.User
	Says worklist.Result

	roles []workflow.RoleName
	at    int
	hold  *Hold
	early bool // the item was only kept for its user
}

type ending struct {
	at int
	of *Result
}

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

func itemOf(id choreo.AttemptID) worklist.Item {
	return worklist.Item{Assigned: worklist.ID(id.Fact), Slot: id.Slot}
}

// item reads all claims of an attempt, in the order of facts.
func (m *Meaning) item(id choreo.AttemptID) *Item {
	a := m.attempts[id]
	it := &Item{Attempt: id, Task: a.task, Holder: a.Partner, Role: a.task.Role, m: m}
	for i := range m.claims {
		if x := &m.claims[i]; x.isAbout(id) {
			it.enter(x)
		}
	}
	if len(it.ends) > 0 {
		it.End = it.ends[0].of
	}
	return it
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
		if g != nil && givenTo(g) == x.who.User {
			h := it.hold(b.Grant)
			it.Results = append(it.Results, &Result{it.m.h.facts[x.at].id, x.who.User, b, x.who.Roles, x.at, h, h != nil && h.Mode == worklist.Handed})
		}
	case worklist.Transfer:
		it.transfer(x, b)
	case worklist.Close:
		it.close(x, b)
	}
}

// endedFor reports whether the author of a fact knew that the item had ended.
func (it *Item) endedFor(i int) bool {
	return slices.ContainsFunc(it.ends, func(e ending) bool { return it.m.h.knew(i, e.at) })
}

// transfer passes the item on, if whoever says it still had it, or decides (rule 10).
func (it *Item) transfer(x *claimed, t worklist.Transfer) {
	has := it.Open != nil && it.Open.User == x.who.User
	switch {
	case it.endedFor(x.at), t.Role != "" && it.Task.Role == "", !has && x.who.User != it.m.responsible():
		return
	case t.Grant != worklist.ID{} && (it.Open == nil || !slices.Contains(it.Open.Grants, choreo.FactID(t.Grant))):
		return
	}
	if it.Open != nil {
		it.finish(it.Open, x.at, map[bool]string{true: "handed on", false: map[bool]string{true: "put back", false: "passed to another role"}[t.Role == ""]}[t.To != ""])
	}
	if t.To == "" {
		if it.Role = t.Role; t.Role == "" {
			it.Role = it.Task.Role
		}
		return
	}
	it.take(x, &Hold{User: t.To, Mode: worklist.Handed, Grants: []choreo.FactID{it.m.h.facts[x.at].id}, at: []int{x.at}})
}

// granted is the claim of that name that gave an attempt to somebody; nil: there is none.
func (m *Meaning) granted(id worklist.ID, of choreo.AttemptID) *claimed {
	for i := range m.claims {
		x := &m.claims[i]
		_, gives := x.body.(worklist.Grant)
		t, passes := x.body.(worklist.Transfer)
		if (gives || passes && t.To != "") && m.h.facts[x.at].id == choreo.FactID(id) && x.isAbout(of) {
			return x
		}
	}
	return nil
}

// hold is what a grant is part of; nil: it never counted.
func (it *Item) hold(grant worklist.ID) *Hold {
	for _, h := range it.Holds {
		if slices.Contains(h.Grants, choreo.FactID(grant)) {
			return h
		}
	}
	return nil
}

func (it *Item) grant(x *claimed, g worklist.Grant) {
	may := it.Role == "" || slices.Contains(x.who.Roles, it.Role)
	if !may || g.Mode == worklist.Lock && !it.Task.Offline || it.endedFor(x.at) {
		return
	}
	id := it.m.h.facts[x.at].id
	if h := it.Open; h != nil && h.User == x.who.User {
		h.Grants, h.at, h.Mode = append(h.Grants, id), append(h.at, x.at), g.Mode
		h.asked++
		return
	}
	it.take(x, &Hold{User: x.who.User, Mode: g.Mode, Grants: []choreo.FactID{id}, at: []int{x.at}, asked: 1})
}

// take has a hold count, unless another does, or the item had ended.
func (it *Item) take(x *claimed, h *Hold) {
	id := it.m.h.facts[x.at].id
	if was := it.Open; was != nil && it.m.h.knew(x.at, was.at[0]) {
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

func (h *Hold) lose(by choreo.FactID, why string) { h.Ended, h.by, h.lost = why, by, true }

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
				if is && it.m.h.facts[y.at].id == choreo.FactID(c.Result) && choreo.FactID(r.Grant) == g && it.m.h.knew(x.at, y.at) {
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
	at := slices.IndexFunc(it.Results, func(r *Result) bool { return r.ID == choreo.FactID(c.Result) && it.m.h.knew(x.at, r.at) })
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
	}
	id := it.m.h.facts[x.at].id
	if it.Open != nil && it.Open != h {
		it.Open.lose(id, "the item was done meanwhile")
	}
	h.Ended, h.by, h.lost, it.Open = "done", id, false, nil
	it.ends = append(it.ends, ending{x.at, r})
}

// ItemLines are what the claims come to, as a fingerprint has it (ShownItems).
func (m *Meaning) ItemLines() (out []string) {
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
	for _, h := range it.Holds {
		grants := make([]string, len(h.Grants))
		for i, g := range h.Grants {
			grants[i] = worklist.ID(g).String()
		}
		add("  hold %s %s %s begun=false open=%t ended=%q by=%s lost=%t", h.User, h.Mode, strings.Join(grants, ","), h == it.Open, h.Ended, worklist.ID(h.by), h.lost)
	}
	for _, r := range it.Results {
		add("  result %s of %s grant=%s failed=%t", worklist.ID(r.ID), r.User, r.Says.Grant, r.Says.Failed)
	}
	for _, e := range it.ends {
		add("  end %s failed=%t adopted=false order=%s", worklist.ID(it.m.h.facts[e.at].id), e.of.Says.Failed, worklist.ID{})
	}
	return out
}

// ShownItems are the lines of a fingerprint that ItemLines has too.
func ShownItems(print []byte) (out []string) {
	items := false
	for line := range strings.Lines(string(print)) {
		line = strings.TrimRight(line, "\n")
		switch {
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
func (it *Item) Entitled(r *Result) bool { return it.m.entitled(r.at, it.Attempt, it.Task, r.roles) }

// Asked is how many grants its user asked for.
func (h *Hold) Asked() int { return h.asked }

// Closed calls fn for each success of an attempt whose task asks for a role, with whether a result of
// somebody who shows the role had closed its item, as far as the author of the success knew.
func (m *Meaning) Closed(fn func(a *Attempt, t *workflow.Task, success choreo.FactID, byRole bool)) {
	items := m.Items()
	for _, sl := range m.slots {
		for _, a := range sl.Attempts {
			for _, s := range a.successes {
				by := slices.ContainsFunc(items, func(it *Item) bool {
					return it.Attempt == a.ID && slices.ContainsFunc(it.ends, func(e ending) bool { return m.h.knew(s, e.at) && it.Entitled(e.of) })
				})
				fn(a, a.task, m.h.facts[s].id, by)
			}
		}
	}
}

// Outputs are what a success of an attempt says, if its author knew that the item had ended so; false:
// there is none.
func (it *Item) Outputs() (map[workflow.DataName]workflow.Value, bool) {
	if len(it.ends) == 0 {
		return nil, false
	}
	for _, s := range it.m.attempts[it.Attempt].successes {
		if it.m.h.knew(s, it.ends[0].at) {
			return it.m.h.facts[s].Body.Success.Outputs, true
		}
	}
	return nil, false
}

// Item names the item as people's words do.
func (it *Item) Item() worklist.Item { return itemOf(it.Attempt) }

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
func (m *Meaning) Words(fn func(choreo.FactID, Voice, worklist.Body)) {
	for _, x := range m.claims {
		if x.byPerson {
			fn(m.h.facts[x.at].id, x.who, x.body)
		}
	}
}

// Both are the holds that were given although the holder knew that somebody else had the item.
func (it *Item) Both() []*Hold { return it.both }
