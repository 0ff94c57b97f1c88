package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/sim/meaning"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about work ahead: people's tasks that wait for one another, with several holders, are locked together,
// by users with several devices, some of which are lost in the middle.

// Linked is the first seed with such tasks. They are claimed ones otherwise (Claimed).
const Linked = 40_000_000

// setting is the first seed in which these tasks set data as well.
const setting = 40_620_000

// links reports whether a plan has such tasks.
func (p *Plan) links() bool { return p.Seed >= Linked && !p.drives() }

// link adds to a definition one or two chains of people's tasks, each with a place of its own. All users may do them,
// at two nodes each. In most of these plans nobody is chosen to see an item, since such cannot be had ahead.
func link(r *rand.Rand, p *Plan) {
	tasks, parts, _ := strings.Cut(p.Workflow, "\npartitions:\n")
	if r.IntN(4) > 0 {
		tasks = withoutLine(tasks, "distribution:")
	}
	role := Roles[r.IntN(len(Roles))]
	var data []string
	for chain := range 1 + r.IntN(2) {
		for i := range 2 + r.IntN(3) {
			name, after := fmt.Sprintf("l%d%d", chain, i), ""
			if i > 0 {
				after = fmt.Sprintf(", after: l%d%d", chain, i-1)
			}
			if p.Seed >= setting {
				data, after = append(data, name+": {type: integer}"), after+", out: ["+name+"]"
			}
			tasks += fmt.Sprintf("\n  %s: {type: manual, role: %s, offline: true, timeout: %s%s}", name, role,
				workflow.FormatDuration(time.Duration(60+r.IntN(180))*time.Minute*p.Scale), after)
			parts = strings.TrimRight(parts, "\n") + fmt.Sprintf("\n  %s: [%s]\n", name, name)
			p.Pins[name] = r.IntN(p.Nodes)
		}
	}
	p.Workflow = withData(tasks, data) + "\npartitions:\n" + parts
	for i := range p.Users {
		u := &p.Users[i]
		if !slices.Contains(u.Roles, role) {
			u.Roles = append(u.Roles, role)
		}
		if other := (u.At[0] + 1 + r.IntN(p.Nodes-1)) % p.Nodes; len(u.At) == 1 {
			u.At = append(u.At, other)
		}
	}
}

// withData is a definition with more data.
func withData(text string, more []string) string {
	if len(more) == 0 {
		return text
	}
	list := strings.Join(more, ", ")
	if strings.Contains(text, "\ndata: {") {
		return strings.Replace(text, "\ndata: {", "\ndata: {"+list+", ", 1)
	}
	return strings.Replace(text, "\n", "\ndata: {"+list+"}\n", 1)
}

// withoutLine is a text without the lines that begin so.
func withoutLine(text, begin string) string {
	var out []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, begin) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// looksAhead is the item of a list of which a user thinks first, in a plan with linked tasks: mostly one that waits.
func (w *world) looksAhead(list []api.Item, x api.Item) api.Item {
	var waiting []api.Item
	for _, o := range list {
		if o.State == api.ItemNotReady {
			waiting = append(waiting, o)
		}
	}
	if len(waiting) == 0 || w.people.IntN(3) == 0 {
		return x
	}
	return waiting[w.people.IntN(len(waiting))]
}

// asksAhead reports whether a user looks at what is not ready as well: more often where tasks are linked.
func (w *world) asksAhead() bool {
	if w.plan.links() {
		return w.people.IntN(4) > 0
	}
	return w.people.IntN(2) == 0
}

// seldom is of how many items that are not waited for one is locked together with others.
func (w *world) seldom() int {
	if w.plan.links() {
		return 3
	}
	return 6
}

// withAwaited are items with all of the list that they wait for, one after the other, in the order in which they can be
// done.
func withAwaited(list, of []api.Item) []api.Item {
	for i := 0; i < len(of); i++ {
		for _, o := range list {
			if o.Instance == of[i].Instance && slices.Contains(of[i].Awaits, o.Task) &&
				!slices.ContainsFunc(of, func(x api.Item) bool { return x.ID == o.ID }) {
				of = append(of, o)
			}
		}
	}
	slices.SortFunc(of, func(a, b api.Item) int { return strings.Compare(a.Task, b.Task) })
	return of
}

// holders is with how many partners items are.
func holders(of []api.Item) int {
	var at []string
	for _, o := range of {
		at = append(at, o.Partner)
	}
	slices.Sort(at)
	return len(slices.Compact(at))
}

// mayBeLost has the device of a user crash in the middle of a joint lock, now and then, for some minutes; meanwhile the
// user does the same at another device. over says that it is not lost any more.
func (w *world) mayBeLost(u *user, m *machine, of []api.Item) (over func()) {
	if n := holders(of); n > 1 && w.people.IntN(2) == 0 {
		c := &crashIn{ // one commit before anybody is asked, two for each holder, one when all is locked
			after: w.people.IntN(2) == 0, skip: w.people.IntN(2*n + 2), away: time.Duration(2+w.people.IntN(6)) * time.Minute,
		}
		m.disk.crash = c
		w.at(w.now+10*time.Second, func() { w.locksElsewhere(u, m, of, true) })
		return func() {
			if m.disk.crash == c {
				m.disk.crash = nil
			}
		}
	}
	return func() {}
}

// mayBeBeaten has somebody else, at another machine, take one of the items while a user locks them with several
// holders, now and then: just before its holder is asked, when others may keep theirs already. over says that it is too
// late for that.
func (w *world) mayBeBeaten(u *user, m *machine, of []api.Item) (over func()) {
	over = func() { w.rival = nil }
	if holders(of) < 2 || w.people.IntN(2) > 0 {
		return over
	}
	var ready []api.Item // of all but the first, which nobody keeps before
	for _, o := range of[1:] {
		if h := w.checks.holderOf(o); o.State == api.ItemReady && h != nil && h != m {
			ready = append(ready, o)
		}
	}
	var others []*user
	for _, o := range w.users {
		if o != u && o.id != "" && !o.dismissed {
			others = append(others, o)
		}
	}
	if len(ready) == 0 || len(others) == 0 {
		return over
	}
	x, o := ready[w.people.IntN(len(ready))], others[w.people.IntN(len(others))]
	w.rival = func(to *machine) {
		if to != w.checks.holderOf(x) {
			return
		}
		w.rival = nil
		for _, i := range slices.Sorted(maps.Keys(o.keys)) {
			if at := w.nodes[i]; at != m && at.node != nil && at.paused == 0 {
				w.guard(at, func() {
					r := api.ClaimRequest{User: o.name, Claim: api.ClaimSelect, Items: []string{x.ID}}
					w.checks.intends(o, x.ID, r.Claim)
					if _, err := at.node.Service().ClaimItems(context.Background(), r); err == nil {
						w.out.Beaten++
						w.checks.toldTaken(o, at, x)
					}
				})
				w.at(w.now, func() { w.step(at) })
				return
			}
		}
	}
	return over
}

// hasNow are the grants by which a user has items of an instance, as their holders' disks say.
func (c *checks) hasNow(u *user, of []api.Item) map[string]fact.ID {
	out := map[string]fact.ID{}
	id, err := workflow.ParseInstanceID(of[0].Instance)
	if err != nil || !c.w.plan.links() {
		return out
	}
	for _, m := range c.w.nodes {
		if m.lied || !slices.ContainsFunc(of, func(x api.Item) bool { return x.Partner == c.w.name(m) }) {
			continue
		}
		all := c.onDiskOf(m, id)
		if all == nil {
			continue // it is said elsewhere
		}
		for _, it := range all.Items() {
			if it.Holder == m.id && it.Open != nil && it.Open.User == u.id {
				out[itemID(id, it.Item())] = it.Open.Grants[len(it.Open.Grants)-1]
			}
		}
	}
	return out
}

// toldNone checks, when a user is told why items are not locked, that it has none of them that it had not before,
// unless its device still has to give that back: all or none. Where one holder alone has something to give, nothing is
// given back: there the user may have what it is told that it may have, and must have what it is told that it has, as
// when what the device was to keep of it got lost.
func (c *checks) toldNone(u *user, m *machine, of []api.Item, before map[string]fact.ID, why string) {
	if !c.w.plan.links() || m.lied || m.forgot || m.owes(u) {
		return
	}
	now := c.hasNow(u, of)
	asked := slices.DeleteFunc(slices.Clone(of), func(x api.Item) bool { return before[x.ID] != (fact.ID{}) })
	says := untold
	if holders(asked) == 1 {
		says = toldOf(why, asked)
	}
	for _, x := range asked {
		has := now[x.ID] != (fact.ID{})
		switch h := c.holderOf(x); {
		case has && says == untold:
			c.w.violate("claims: %s was told at n%d that items are not locked, and has %s of %s, which was asked for "+
				"with them, and the device does not know that it is to be given back", u.name, m.i, x.Task, x.Instance[:8])
		case !has && says == toldLocked && h != nil && !h.lied && !h.forgot:
			c.w.violate("claims: %s was told at n%d that %s of %s is locked, if not kept there, and has it not", u.name,
				m.i, x.Task, x.Instance[:8])
		}
	}
}

// lockTold is what a user is told of items that it could not lock.
type lockTold int

// What a user is told.
const (
	untold      lockTold = iota // nothing by which it has them
	toldPerhaps                 // that they may be locked all the same: their holder did not answer
	toldLocked                  // that they are: only the device does not keep them
)

// toldOf is what a user is told of items of one holder, which it has all or none: of one of them says it of all.
func toldOf(why string, of []api.Item) lockTold {
	names, _, locked := strings.Cut(why, " locked, but this device cannot keep ")
	names = strings.TrimSuffix(strings.TrimSuffix(names, " is"), " are")
	for _, x := range of {
		switch {
		case locked && slices.Contains(strings.Split(names, ", "), x.Task):
			return toldLocked
		case strings.Contains(why, ", who holds "+x.Task+", did not answer; it may have written it down all the same"):
			return toldPerhaps
		}
	}
	return untold
}

// owes reports whether a machine has to give something back that a user of it asked for in a joint lock.
func (m *machine) owes(u *user) bool {
	for key := range m.disk.data {
		if strings.HasPrefix(key, string(worklists.PrefixJoint)+string(u.id)+" ") {
			return true
		}
	}
	return false
}

// locksElsewhere has a user lock items one after the other at another device while one is lost, as far as they are not
// with that one, and as soon as that goes.
func (w *world) locksElsewhere(u *user, lost *machine, of []api.Item, first bool) {
	if lost.node != nil || w.hushed {
		return
	}
	if first {
		w.out.Lost++
		of = slices.DeleteFunc(slices.Clone(of), func(o api.Item) bool { return o.Partner == w.name(lost) })
	}
	locked := false
	for i, m := range w.nodes {
		for _, o := range of {
			if _, here := u.keys[i]; here && m != lost {
				r := api.ClaimRequest{User: u.name, Claim: api.ClaimLock, Items: []string{o.ID}}
				w.serve(m, func(n api.Service) { locked = w.lockAll(u, m, n, r, []api.Item{o}) == nil || locked })
			}
		}
	}
	if !locked {
		w.at(w.now+15*time.Second, func() { w.locksElsewhere(u, lost, of, false) })
		return
	}
	w.out.Anew++
}

// leavesBehind has the first of what a user locked be out of reach for some minutes, so that what is made of the later
// items comes first, and half of the time be put back meanwhile at another device: then the later do not count.
func (w *world) leavesBehind(u *user, m *machine, x api.Item) {
	h := w.checks.holderOf(x)
	if h == nil || h == m {
		return
	}
	w.strike(Fault{At: w.now, Kind: Cut, Node: m.i, Other: h.i, For: time.Duration(3+w.people.IntN(6)) * time.Minute})
	if w.people.IntN(2) == 0 {
		return
	}
	w.at(w.now+30*time.Second, func() {
		for i, o := range w.nodes {
			if _, here := u.keys[i]; here && o != m {
				w.serve(o, func(n api.Service) {
					w.checks.intends(u, x.ID, passingOf("", ""))
					if _, err := n.TransferItem(context.Background(),
						api.TransferRequest{User: u.name, Item: x.ID, Back: true}); err == nil {
						w.out.PassedOn++
					}
				})
			}
		}
	})
}

// lockAll has a user lock items, and notes what came of it. It returns why they are not the user's; nil: they are.
func (w *world) lockAll(u *user, m *machine, n api.Service, r api.ClaimRequest, of []api.Item) error {
	for _, o := range of {
		for _, what := range []string{api.ClaimLock, byItself(m.id), string(worklist.Handed)} { // or all is given back
			w.checks.intends(u, o.ID, what)
		}
	}
	if _, err := n.ClaimItems(context.Background(), r); err != nil {
		return err
	}
	if holders(of) > 1 {
		w.out.Joint++
	}
	for _, o := range of {
		w.out.Taken++
		w.out.Ahead++
		w.checks.toldTaken(u, m, o)
		if !slices.ContainsFunc(u.had[m.i], func(h api.Item) bool { return h.ID == o.ID }) {
			u.had[m.i] = append(u.had[m.i], o)
		}
	}
	return nil
}

// byItself is that a machine gives something back by itself: what it was given in a joint lock that came to nothing.
func byItself(m workflow.PartnerID) string { return "given back by " + string(m) }

// lockedElsewhere checks that what a machine gave back by itself was not locked again at another, as its user was told.
func (c *checks) lockedElsewhere(id workflow.InstanceID, who meaning.Voice, f fact.ID, x worklist.Release) {
	if c.peoples.intents[intent{who.User, itemID(id, x.Item), api.ClaimRelease}] {
		return // perhaps its user gave it back
	}
	from, to := c.written(fact.ID(x.Grant)), c.written(f)
	for _, l := range c.peoples.locked {
		if m := c.w.nodes[l.at]; m.id != who.At && l.user == who.User && l.item == itemID(id, x.Item) &&
			from < l.when && l.when < to {
			c.w.violate("claims: a user was told at n%d that it has %s of %s, and what it had begun at another device gave "+
				"that back", l.at, x.Item.Slot, id.String()[:8])
		}
	}
}

// heldUntold checks, at the end, that nobody has an item by a joint lock that came to nothing: what was given in one is
// given back, or its user was told of it.
func (c *checks) heldUntold(id workflow.InstanceID, it *meaning.Item, bodies map[worklist.ID]spoken) {
	if it.Open == nil || it.Ended() || slices.ContainsFunc(c.w.nodes,
		func(o *machine) bool { return o.gone || o.lied || o.forgot || o.shutOut() }) {
		return
	}
	last := bodies[worklist.ID(it.Open.Grants[len(it.Open.Grants)-1])]
	g, is := last.body.(worklist.Grant)
	u, item := c.w.userOf(it.Open.User), itemID(id, it.Item())
	if !is || len(g.With) == 0 || u == nil || u.dismissed || u.unsure || !c.jointly(g, last.at, bodies) ||
		slices.ContainsFunc(c.peoples.locked, func(l locked) bool { return l.user == u.id && l.item == item }) {
		return
	}
	c.w.violate("claims: %s has %s of %s by a joint lock that came to nothing, and it was not given back", u.name,
		it.Attempt,
		id.String()[:8])
}

// jointly reports whether a grant is a step of a joint lock: an item is kept, or locked that was kept by a word said at
// the same machine.
func (c *checks) jointly(g worklist.Grant, at workflow.PartnerID, bodies map[worklist.ID]spoken) bool {
	if g.Mode == worklist.Handed {
		return true
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(bodies)), func(x spoken) bool {
		was, is := x.body.(worklist.Grant)
		return is && was.Mode == worklist.Handed && x.at == at && slices.Contains(g.Anew, x.word)
	})
}

// written is when a fact was written: when a disk had it first.
func (c *checks) written(fact fact.ID) (first time.Duration) {
	first = -1
	for _, m := range c.w.nodes {
		if at, has := m.arrived[fact]; has && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// givenBack checks, at the end, that no machine has still to give back what it asked for in a joint lock, where all who
// may have given it are here.
func (c *checks) givenBack(m *machine) {
	if slices.ContainsFunc(c.w.nodes, func(o *machine) bool { return o.gone || o.lied || o.shutOut() }) {
		return
	}
	for key := range m.disk.data {
		if key[0] == worklists.PrefixJoint {
			c.w.violate("claims: n%d has not given back what it asked for together with other items", m.i)
		}
	}
}
