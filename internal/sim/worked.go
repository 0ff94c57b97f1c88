package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/sim/meaning"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file checks what becomes of people's work: what somebody was told is durable, nobody's work is
// lost, no item is forgotten, nobody's word is put into facts that was not said, and all nodes agree with
// a second reading of the claims (package meaning).

// peoples is what people meant to say, and what they were told.
type peoples struct {
	intents  map[intent]bool
	recorded []recorded
	away     []recorded // what a device keeps until its holder has it
	putOff   []recorded // what its holder has, and a device keeps until it counts
	locked   []locked
}

// locked is when a user was told at a machine that it has an item.
type locked struct {
	user worklist.User
	item string
	at   int
	when time.Duration
}

// intent is something that a user meant to say of an item.
type intent struct {
	user worklist.User
	item string
	what string // a claim of the API, or what a result says (saidOf)
}

// recorded is a result that its user was told is recorded.
type recorded struct {
	user     *user
	item     api.Item
	said     string
	at, from int // the machines of the holder and of the user
}

func newPeoples() peoples { return peoples{intents: map[intent]bool{}} }

// excuse drops what a machine told before its disk was lost or put back.
func (p *peoples) excuse(m *machine) {
	p.recorded = slices.DeleteFunc(p.recorded, func(r recorded) bool { return r.at == m.i })
	of := func(r recorded) bool { return r.at == m.i || r.from == m.i }
	p.away, p.putOff = slices.DeleteFunc(p.away, of), slices.DeleteFunc(p.putOff, of)
}

// intends notes what a user is about to say.
func (c *checks) intends(u *user, item, what string) {
	c.peoples.intents[intent{u.id, item, what}] = true
}

// holderOf is the machine that gives an item out.
func (c *checks) holderOf(x api.Item) *machine {
	for _, m := range c.w.nodes {
		if c.w.name(m) == x.Partner {
			return m
		}
	}
	return nil
}

// onDisk is what the disk of an item's holder says of it; nil: the holder lied, or nothing.
func (c *checks) onDisk(x api.Item) *meaning.Item {
	m := c.holderOf(x)
	id, err := workflow.ParseInstanceID(x.Instance)
	if m == nil || m.lied || err != nil {
		return nil
	}
	all := c.onDiskOf(m, id)
	if all == nil {
		return nil // it is said elsewhere
	}
	for _, it := range all.Items() {
		if itemID(id, it.Item()) == x.ID {
			return it
		}
	}
	return nil
}

// toldTaken checks that an item is a user's on its holder's disk when the user is told so.
func (c *checks) toldTaken(u *user, m *machine, x api.Item) {
	c.peoples.locked = append(c.peoples.locked, locked{u.id, x.ID, m.i, c.w.now})
	h := c.holderOf(x)
	if h == nil || h.lied || h.forgot {
		return
	}
	if it := c.onDisk(x); it == nil || !slices.ContainsFunc(it.Holds,
		func(h *meaning.Hold) bool { return h.User == u.id }) {
		c.w.violate("claims: %s at n%d was told that it has %s of %s, and n%d's disk has no grant", u.name, m.i, x.Task,
			x.Instance[:8], h.i)
	} else if it.Open == nil || it.Open.User != u.id {
		c.w.violate("claims: %s at n%d was told that it has %s of %s, and by n%d's disk it has not", u.name, m.i,
			x.Task, x.Instance[:8], h.i)
	}
}

// toldGivenBack checks that a user who was told so does not have an item any more.
func (c *checks) toldGivenBack(u *user, m *machine, x api.Item) {
	if it := c.onDisk(x); it != nil && it.Open != nil && it.Open.User == u.id {
		c.w.violate("claims: %s at n%d was told that %s of %s is given back, and it has it", u.name, m.i, x.Task,
			x.Instance[:8])
	}
}

// toldPassed checks that an item is where its holder's disk has it, when a user is told that it passed on.
func (c *checks) toldPassed(u *user, m *machine, x api.Item, to worklist.User) {
	h := c.holderOf(x)
	it := c.onDisk(x)
	switch {
	case h == nil || h.lied || h.forgot:
	case it == nil:
		c.w.violate("claims: %s at n%d was told that %s of %s passed on, and n%d's disk does not have that", u.name,
			m.i, x.Task, x.Instance[:8], h.i)
	case to == "" && it.Open != nil:
		c.w.violate("claims: %s at n%d was told that %s of %s is free, and by n%d's disk %s has it", u.name, m.i,
			x.Task, x.Instance[:8], h.i, it.Open.User)
	case to != "" && (it.Open == nil || it.Open.User != to):
		c.w.violate("claims: %s at n%d was told that %s of %s is kept for %s, and by n%d's disk it is not", u.name, m.i,
			x.Task, x.Instance[:8], to, h.i)
	}
}

// toldRecorded checks that a result is on the holder's disk when its user is told so.
func (c *checks) toldRecorded(u *user, m *machine, x api.Item, in api.ItemResult, late bool) {
	h := c.holderOf(x)
	if h == nil || h.lied || h.forgot {
		return
	}
	it := c.onDisk(x)
	if it == nil || !slices.ContainsFunc(it.Results, func(r *meaning.Result) bool { return r.User == u.id }) {
		c.w.violate("claims: %s at n%d was told that its result of %s of %s is recorded, and n%d's disk does not have it", u.name, m.i, x.Task, x.Instance[:8], h.i)
		return
	}
	if !late && (it.End == nil || it.End.User != u.id) {
		c.w.violate("claims: %s at n%d was told that its result of %s of %s counts, and by n%d's disk it does not:\n%s",
			u.name, m.i, x.Task, x.Instance[:8], h.i, strings.Join(it.Lines(), "\n"))
	}
	c.peoples.recorded = append(c.peoples.recorded, recorded{u, x, saidOf(in.Failed, in.Outputs), h.i, m.i})
}

// keepsPutOff notes what was put off, which its user's device is to keep until it counts.
func (c *checks) keepsPutOff(u *user, m *machine, x api.Item, in api.ItemResult) {
	if h := c.holderOf(x); h != nil && !h.forgot && !m.forgot {
		c.peoples.putOff = append(c.peoples.putOff, recorded{u, x, saidOf(in.Failed, in.Outputs), h.i, m.i})
	}
}

// toldNever checks that whoever was given an item by its holder's disk is not told that it was not: then its
// work is kept, whatever became of the grant.
func (c *checks) toldNever(u *user, m *machine, x api.Item) {
	h := c.holderOf(x)
	if h == nil || h.lied || h.forgot || m.forgot {
		return
	}
	if it := c.onDisk(x); it != nil && slices.ContainsFunc(it.Holds,
		func(h *meaning.Hold) bool { return h.User == u.id }) {
		c.w.violate("claims: %s at n%d was told that %s of %s was not given to it, and n%d's disk has the grant: its work is lost", u.name, m.i, x.Task, x.Instance[:8], h.i)
	}
}

// toldKept notes that a device keeps what its user did, for when the holder can be reached.
func (c *checks) toldKept(u *user, m *machine, x api.Item, in api.ItemResult) {
	if h := c.holderOf(x); h != nil && !h.forgot && !m.forgot {
		c.peoples.away = append(c.peoples.away, recorded{u, x, saidOf(in.Failed, in.Outputs), h.i, m.i})
	}
}

// voices finds whose word is in a claim of an instance, by what the simulator knows of keys and roles.
func (c *checks) voices(id workflow.InstanceID) func(*fact.Claim) (meaning.Voice, bool) {
	return func(claim *fact.Claim) (v meaning.Voice, ok bool) {
		said, err := users.DecodeSpoken(claim.Word)
		if err != nil {
			return v, false
		}
		h := sha256.New()
		h.Write([]byte("mutirao/claim/1\x00"))
		h.Write(id[:])
		h.Write(claim.Nonce[:])
		h.Write(claim.Says)
		g := said.Signature
		if trust.Verify(g.Key, "user-fact", append(g.User[:], h.Sum(nil)...), g.Signature) != nil {
			return v, false
		}
		u, roles := c.w.userOf(worklist.User(g.User.String())), []workflow.RoleName(nil)
		if g.User == (users.ID{}) {
			u = c.w.userOf(worklist.User(g.Key))
			roles = said.Partner.Leaf().Roles
		} else if said.Device != nil {
			roles = slices.Clone(said.Device.Account.Roles)
			for _, x := range said.Roles {
				roles = slices.DeleteFunc(roles, func(r workflow.RoleName) bool { return r == x.Role })
				if x.Given {
					roles = append(roles, x.Role)
				}
			}
		}
		if u == nil {
			return v, false
		}
		at, has := c.w.keyAt(u, g.Key)
		if !has || slices.ContainsFunc(roles, func(r workflow.RoleName) bool { return !slices.Contains(u.roles, r) }) {
			return v, false
		}
		return meaning.Voice{User: u.id, Roles: roles, At: c.w.nodes[at].id}, true
	}
}

// readItems checks what a machine makes of the claims of an instance.
func (c *checks) readItems(m *machine, id workflow.InstanceID, all *meaning.Meaning, print []byte) {
	if !c.w.claims() {
		return
	}
	if want, got := all.ItemLines(), meaning.ShownItems(print); !slices.Equal(want, got) {
		c.w.violate("claims: n%d shows the items of %s otherwise than its facts say:\n%s", m.i, id.String()[:8],
			difference([]byte(strings.Join(want, "\n")), []byte(strings.Join(got, "\n"))))
	}
}

// peoplesWork checks, at the end, what became of people's work in an instance.
func (c *checks) peoplesWork(m *machine, id workflow.InstanceID, h *meaning.History, print []byte) {
	all := h.Of(h.All())
	in, err := m.node.Service().Show(context.Background(), id.String())
	if err != nil {
		return
	}
	c.wordsMeant(id, all)
	all.Closed(func(a *meaning.Attempt, t *workflow.Task, said fact.ID, byRole bool) {
		i, _ := c.w.who(a.Partner)
		if t.ByRole() && !byRole && !slices.Contains(RolesOf(i), string(t.Role)) {
			c.w.violate("authorised: %s of %s is done by n%d (fact %s), which has no role %s, nor had whoever brought its result",
				t.Name, id.String()[:8], i, said.Short(), t.Role)
		}
	})
	items := all.Items()
	words := c.saidIn(id, all)
	for _, it := range items {
		if it.CameToCount() {
			c.w.out.Came++
		}
		c.itemAtEnd(m, id, it, in)
		c.heldUntold(id, it, words)
	}
	for _, r := range c.peoples.recorded {
		if r.item.Instance == id.String() && !c.w.nodes[r.at].gone && !c.came(m, id, r, all, items, in) {
			c.w.violate("durable: %s was told that its result of %s of %s is recorded, and nobody has it", r.user.name,
				r.item.Task, id.String()[:8])
		}
	}
	for _, r := range c.peoples.away {
		if r.item.Instance == id.String() {
			c.handedIn(r, c.came(m, id, r, all, items, in))
		}
	}
	for _, r := range slices.Concat(c.peoples.away, c.peoples.putOff) {
		if r.item.Instance == id.String() && c.cameToNothing(id, r, items) {
			c.handedIn(r, false)
		}
	}
}

// cameToNothing reports whether a result that named others it was made from was put off once, and does not count, nor
// does another of its user for that item: so its user has to be shown it.
func (c *checks) cameToNothing(id workflow.InstanceID, r recorded, items []*meaning.Item) bool {
	return slices.ContainsFunc(items, func(it *meaning.Item) bool {
		return itemID(id, it.Item()) == r.item.ID && (it.End == nil || it.End.User != r.user.id) &&
			slices.ContainsFunc(it.Results, func(x *meaning.Result) bool {
				return x.User == r.user.id && len(x.Says.Upon) > 0 && saidBy(&x.Says) == r.said && !it.PutOff(x)
			})
	})
}

// came reports whether a machine has a recorded result: as one of its item, or shown not to count, as a fork took the
// item from its holder.
func (c *checks) came(m *machine, id workflow.InstanceID, r recorded, all *meaning.Meaning, items []*meaning.Item,
	in *api.Instance) bool {
	return slices.ContainsFunc(items, func(it *meaning.Item) bool {
		return itemID(id, it.Item()) == r.item.ID &&
			slices.ContainsFunc(it.Results, func(x *meaning.Result) bool { return x.User == r.user.id })
	}) || c.wentWithAFork(m, id, r, all, in)
}

// wentWithAFork reports whether a recorded result does not count any more because a fork took its item from its holder,
// which was brought in by what comes after the fork (docs/security.md, What a lying member can still do). The result
// must still be a fact, the log must say that it does not count, and an incident that some of the holder's facts do not.
func (c *checks) wentWithAFork(m *machine, id workflow.InstanceID, r recorded, all *meaning.Meaning,
	in *api.Instance) bool {
	holder := c.w.nodes[r.at]
	entries, err := m.node.Service().Log(context.Background(), id.String())
	told := slices.ContainsFunc(in.Incidents, func(x api.Incident) bool {
		return strings.HasPrefix(x.What, c.w.name(holder)+": ") && strings.Contains(x.What, " not count: ")
	})
	if err != nil || !told {
		return false
	}
	for fid, f := range m.disk.factsOf(id) {
		if f.Body.Claim == nil || f.Chain.Author != holder.id {
			continue
		}
		x, brings := f.Body.Claim.Body().(worklist.Result)
		if !brings || itemID(id, x.Item) != r.item.ID || !all.TakenAway(x.Item) {
			continue
		}
		who, known := c.voices(id)(f.Body.Claim)
		if known && who.User == r.user.id && slices.ContainsFunc(entries, func(e api.LogEntry) bool {
			return e.Fact == fid.String() && !e.Counted
		}) {
			return true
		}
	}
	return false
}

// itemAtEnd checks an item: each result ended it, or is shown with why it does not count; and what it
// ended with is what its task says.
func (c *checks) itemAtEnd(m *machine, id workflow.InstanceID, it *meaning.Item, in *api.Instance) {
	name := func(u worklist.User) string {
		if x := c.w.userOf(u); x != nil {
			return x.name
		}
		return string(u)
	}
	for _, r := range it.Results {
		said := "a result of " + name(r.User) + " is kept and does not count, "
		if r.Says.Failed {
			said = name(r.User) + " said that it failed, which does not count, "
		}
		shown := slices.ContainsFunc(in.Incidents, func(x api.Incident) bool { return strings.HasPrefix(x.What, said) })
		if r != it.End && !shown && !it.PutOff(r) {
			c.w.violate("claims: a result of %s for %s of %s is neither its end nor shown at n%d as kept", name(r.User),
				it.Attempt, id.String()[:8], m.i)
		}
	}
	if i, ok := c.w.who(it.Holder); ok && !c.w.nodes[i].lied {
		c.given(id, it)
	}
	for n, v := range c.endOutputs(it) {
		if fmt.Sprint(it.End.Says.Outputs[n]) != v {
			c.w.violate("claims: %s of %s says %s = %s, and %s had handed in %v", it.Attempt, id.String()[:8], n, v,
				name(it.End.User), it.End.Says.Outputs)
		}
	}
}

// endOutputs is what a task says that ended as its item did, as text.
func (c *checks) endOutputs(it *meaning.Item) map[workflow.DataName]string {
	out := map[workflow.DataName]string{}
	i, _ := c.w.who(it.Holder)
	if it.End == nil || it.End.Says.Failed || c.w.nodes[i].lied {
		return out
	}
	if values, any := it.Outputs(); any {
		for n := range it.End.Says.Outputs {
			out[n] = "nothing"
		}
		for n, v := range values {
			out[n] = fmt.Sprint(v)
		}
	}
	return out
}

// given checks what a holder that does not lie gave to whom: an item that it knew to be somebody's to nobody
// else, and to one person only so often.
func (c *checks) given(id workflow.InstanceID, it *meaning.Item) {
	for _, h := range it.Both() {
		c.w.violate("claims: %s of %s was given to %s, and its holder knew that somebody had it", it.Attempt,
			id.String()[:8], h.User)
	}
	for _, h := range it.Unoffered() {
		c.w.violate("claims: %s of %s was given to %s, to whom its holder had not offered it", it.Attempt,
			id.String()[:8], h.User)
	}
	times := map[worklist.User]int{}
	for _, h := range it.Holds {
		times[h.User] += h.Asked()
	}
	i, _ := c.w.who(it.Holder)
	for _, u := range slices.Sorted(maps.Keys(times)) {
		if times[u] > fact.MaxGrants && !c.w.nodes[i].forgot {
			c.w.violate("bounded: %s of %s was given to %s %d times, at most %d are expected", it.Attempt,
				id.String()[:8], u, times[u], fact.MaxGrants)
		}
	}
}

// handedIn checks that what a device kept came to its holder, or is shown there with why not.
func (c *checks) handedIn(r recorded, came bool) {
	holder, device := c.w.nodes[r.at], c.w.nodes[r.from]
	if holder.lied || holder.gone || device.gone || device.node == nil || device.lied {
		return
	}
	kept, err := device.node.Service().Outbox(context.Background(), "")
	shown := slices.ContainsFunc(kept, func(x api.Undelivered) bool {
		return x.Instance == r.item.Instance && x.Task == r.item.Task && x.User == r.user.name && x.Refused != ""
	})
	if err == nil && !came && !shown {
		c.w.violate("claims: what %s did of %s of %s did not come to n%d, or to nothing there, and n%d does not show why",
			r.user.name, r.item.Task, r.item.Instance[:8], r.at, r.from)
	}
}

// spoken is a word of a person, at whose node it was said, and its name.
type spoken struct {
	body worklist.Body
	at   workflow.PartnerID
	word worklist.ID
}

// saidIn are the words of people in the facts of an instance that count.
func (c *checks) saidIn(id workflow.InstanceID, all *meaning.Meaning) map[worklist.ID]spoken {
	out := map[worklist.ID]spoken{}
	all.Words(func(told fact.ID, who meaning.Voice, body worklist.Body) {
		x := spoken{body: body, at: who.At}
		if f := c.all[told]; f != nil && f.Body.Claim != nil {
			x.word = fact.WordOf(id, f.Body.Claim.Says, f.Body.Claim.Nonce)
		}
		out[worklist.ID(told)] = x
	})
	return out
}

// wordsMeant checks that whoever's word is in a claim that counts meant to say it, unless the member lies
// at whose node its key is.
func (c *checks) wordsMeant(id workflow.InstanceID, all *meaning.Meaning) {
	before := c.saidIn(id, all)
	all.Words(func(fact fact.ID, who meaning.Voice, body worklist.Body) {
		if at, ok := c.w.who(who.At); !ok || c.w.nodes[at].lied {
			return
		}
		what := ""
		switch x := body.(type) {
		case worklist.Grant:
			what = string(x.Mode)
		case worklist.Release:
			what = api.ClaimRelease
		case worklist.Transfer:
			what = passingOf(x.To, x.Role)
		case worklist.Result:
			what = saidBy(&x)
		}
		if len(worklist.About(body)) == 0 && !c.decisionMeant(id, who.User, body, &workflow.Task{}) {
			c.w.violate("authorised: in %s fact %s orders %v in the name of %s, who never meant that", id.String()[:8],
				fact.Short(), body, who.User)
		}
		for _, i := range worklist.About(body) {
			if c.decisionMeant(id, who.User, body, all.TaskOf(body)) {
				continue
			}
			if x, back := body.(worklist.Release); back && before[x.Grant].at == who.At &&
				c.peoples.intents[intent{who.User, itemID(id, i), byItself(who.At)}] {
				c.lockedElsewhere(id, who, fact, x)
				continue // only what was given by a word that was said there
			}
			if !c.peoples.intents[intent{who.User, itemID(id, i), what}] {
				c.w.violate("authorised: in %s fact %s says %q of %s in the name of %s, who never meant that",
					id.String()[:8], fact.Short(), what, i.Slot, who.User)
			}
		}
	})
}

// watchOffers checks now and then that no item is forgotten, nor what waits for a resource.
func (w *world) watchOffers() {
	if w.hushed {
		return
	}
	w.at(w.now+5*time.Minute, w.watchOffers)
	if w.wrong > 0 || w.now-max(w.disturbed, w.newestUser()) < 2*time.Minute {
		return
	}
	for _, m := range w.honest() {
		if m.paused == 0 && !m.disk.full && !m.shutOut() && m.node != nil && w.now-m.born > 2*time.Minute {
			w.guard(m, func() { w.checks.offers(m) })
		}
	}
}

// newestUser is when something changed last of the users.
func (w *world) newestUser() (last time.Duration) {
	for _, u := range w.users {
		last = max(last, u.changed)
	}
	return last
}

// offers checks the people's tasks that a machine holds and that can begin: each is held by somebody who may
// have it, or all who may take it see it.
func (c *checks) offers(m *machine) {
	ctx := context.Background()
	running, err := underWay(m.node.Service())
	if err != nil {
		return
	}
	for _, sum := range running {
		in, err := m.node.Service().Show(ctx, sum.ID)
		if err != nil || in.State != workflow.InstanceRunning {
			continue
		}
		c.served(m, in)
		for _, t := range in.Tasks {
			task := c.w.task(t.Name)
			if task == nil { // a round of a loop that was amended, of which only the instance's definition knows
				continue
			}
			if task.Type == workflow.Automatic || t.Partner != c.w.name(m) ||
				t.State != workflow.Ready && t.State != workflow.Running {
				continue
			}
			it, clear := c.itemNow(m, in, t.Name)
			if clear {
				c.offered(m, in, task, it, t.ClaimedBy+t.KeptFor)
			}
			if it != nil && it.Open != nil {
				c.leased(m, in, it)
				c.closes(m, in, it)
			}
		}
	}
}

// leased checks that nobody has a task of a machine beyond its lease: by a clock that nobody sets, but for the times in
// which the machine was off, of which it knows what its wall clock says. A lock may last as long as its user is away.
func (c *checks) leased(m *machine, in *api.Instance, it *meaning.Item) {
	id, err := workflow.ParseInstanceID(in.ID)
	if err != nil || m.forgot {
		return
	}
	grant := it.Open.Grants[len(it.Open.Grants)-1]
	since, arrived := time.UnixMilli(m.disk.factsOf(id)[grant].At), m.arrived[grant]
	had := c.w.now - arrived
	for _, r := range m.reboots {
		if r.at > arrived {
			had += r.passed - r.off - r.back - r.again
		}
	}
	if had > worklist.DefaultLease(it.Open.Mode)+time.Minute && !c.awayWith(m, it.Open.User) {
		c.w.violate("claims: %s has %s of %s at n%d since %s by its clock, for %s: its lease is over", it.Open.User,
			it.Attempt, in.ID[:8], m.i, since.UTC(), had)
	}
}

// awayWith reports whether a machine was told that a device of a user is away, and that is not over for long.
func (c *checks) awayWith(m *machine, id worklist.User) bool {
	u := c.w.userOf(id)
	for i, a := range m.absent {
		if u == nil {
			return false
		}
		_, signedIn := u.keys[i]
		if signedIn && c.w.now < a.until+2*time.Hour {
			return true
		}
	}
	return false
}

// closes checks that a machine has closed its item if whoever has it brought a result, and all counts that this was
// made from: nobody waits for ever for what is there.
func (c *checks) closes(m *machine, in *api.Instance, it *meaning.Item) {
	if r := it.Due(); r != nil && !m.lied && !m.forgot {
		c.w.violate("claims: a result of %s for %s of %s is put off at n%d, though the item is ready and all counts "+
			"that it was made from", r.User, it.Attempt, in.ID[:8], m.i)
	}
}

// itemNow is what a machine's disk says of the item of a task that it holds, and that is somebody's or was passed
// on; nil: nothing. It is not clear where there were several attempts, and none of them is somebody's,
// or where none is in charge.
func (c *checks) itemNow(m *machine, in *api.Instance, task workflow.TaskName) (found *meaning.Item, clear bool) {
	id, err := workflow.ParseInstanceID(in.ID)
	if err != nil {
		return nil, true
	}
	all := c.onDiskOf(m, id)
	if all == nil {
		return nil, true
	}
	for _, it := range all.Items() {
		if it.Holder == m.id && it.Task.Name == task && !it.Ended() && it.InCharge() &&
			(found == nil || it.Open != nil) {
			found = it
		}
	}
	n, inCharge := all.Tried(m.id, task)
	return found, inCharge && (found == nil || found.Open != nil || n == 1)
}

// suited reports whether a mechanism that pulls can let a user see a task, at last.
func (c *checks) suited(u *user, t *workflow.Task) bool {
	return partition.Suitability(t, partition.Partner{Name: u.name, ID: workflow.PartnerID(u.id), Roles: u.now}) > 0
}

// offered checks one item.
func (c *checks) offered(m *machine, in *api.Instance, t *workflow.Task, it *meaning.Item, by string) {
	role := t.Role
	if it != nil {
		role = it.Role
	}
	may := func(u *user) bool {
		if u.id == "" || u.dismissed || len(u.keys) == 0 {
			return false
		}
		return role == "" || slices.Contains(u.now, role)
	}
	id, err := workflow.ParseInstanceID(in.ID)
	all := c.onDiskOf(m, id)
	if err != nil || all == nil {
		return
	}
	waits := slices.ContainsFunc(in.Tasks, func(x api.Task) bool { return x.Name == t.Name && len(x.WaitsFor) > 0 })
	toAll := all.ToAll(m.id, t.Name, it)
	for _, u := range c.w.users {
		if u.unsure {
			continue
		}
		if u.name == by && !may(u) {
			c.w.violate("claims: %s holds %s of %s at n%d, and may not", u.name, t.Name, in.ID[:8], m.i)
		}
		if by != "" || !may(u) {
			continue
		}
		shown := toAll || it != nil && it.Sees(u.id)
		for _, i := range slices.Sorted(maps.Keys(u.keys)) {
			o := c.w.nodes[i]
			early := slices.ContainsFunc(slices.Collect(maps.Values(u.keys)),
				base.Add(c.w.now+min(o.skew, m.skew)).Before) // its key is not valid yet by somebody's clock
			if t.Role == "" && i != m.i || early || !c.here(o, m) {
				continue
			}
			if shown {
				c.w.guard(o, func() { c.sees(o, o.node.Service(), u, m, in, t) })
			} else if !waits && c.suited(u, t) && (it == nil || !slices.ContainsFunc(it.OfferedTo(),
				func(p worklist.User) bool { return c.takes(p, m) })) {
				c.w.violate("claims: %s of %s at n%d is free, and offered to nobody who is here, as %s is at n%d",
					t.Name, in.ID[:8], m.i, u.name, i)
			}
		}
	}
}

// here reports whether a machine can do with another what its users ask for, and could for a while.
func (c *checks) here(o, m *machine) bool {
	link := o.i == m.i || c.w.links[pair(o.i, m.i)] != nil
	return link && o.node != nil && o.paused == 0 && !o.lied && !o.shutOut() && c.w.now-o.born >= 2*time.Minute
}

// takes reports whether somebody may still be here to take an item of a machine: a user, or a partner.
func (c *checks) takes(p worklist.User, m *machine) bool {
	if i, partner := c.w.who(workflow.PartnerID(p)); partner {
		return i == m.i || c.w.links[pair(i, m.i)] != nil && c.w.nodes[i].node != nil
	}
	return slices.ContainsFunc(c.w.users, func(u *user) bool {
		return u.id == p && !u.dismissed && slices.ContainsFunc(slices.Collect(maps.Keys(u.keys)), func(i int) bool {
			return i == m.i || c.w.links[pair(i, m.i)] != nil && c.w.nodes[i].node != nil
		})
	})
}

// sees checks that a user at a machine sees an item of another that is free.
func (c *checks) sees(o *machine, n api.Service, u *user, m *machine, in *api.Instance, t *workflow.Task) {
	list, err := n.Worklist(context.Background(), api.WorklistQuery{User: u.name})
	if err != nil {
		c.w.violate("claims: %s sees no worklist at n%d: %v", u.name, o.i, err)
		return
	}
	if !slices.ContainsFunc(list, func(x api.Item) bool { return x.Instance == in.ID && x.Task == string(t.Name) }) {
		c.w.violate("claims: %s of %s at n%d is free, and %s at n%d does not see it", t.Name, in.ID[:8], m.i, u.name,
			o.i)
	}
}
