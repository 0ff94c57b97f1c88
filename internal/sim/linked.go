package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/internal/sim/meaning"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about work ahead: people's tasks that wait for one another, with several holders, are locked together,
// by users with several devices, some of which are lost in the middle.

// Linked is the first seed with such tasks. They are claimed ones otherwise (Claimed).
const Linked = 40_000_000

// links reports whether a plan has such tasks.
func (p *Plan) links() bool { return p.Seed >= Linked }

// link adds to a definition one or two chains of people's tasks, each with a place of its own. All users may do them,
// at two nodes each. In most of these plans nobody is chosen to see an item, since such cannot be had ahead.
func link(r *rand.Rand, p *Plan) {
	tasks, parts, _ := strings.Cut(p.Workflow, "\npartitions:\n")
	if r.IntN(4) > 0 {
		tasks = withoutLine(tasks, "distribution:")
	}
	role := Roles[r.IntN(len(Roles))]
	for chain := range 1 + r.IntN(2) {
		for i := range 2 + r.IntN(3) {
			name, after := fmt.Sprintf("l%d%d", chain, i), ""
			if i > 0 {
				after = fmt.Sprintf(", after: l%d%d", chain, i-1)
			}
			tasks += fmt.Sprintf("\n  %s: {type: manual, role: %s, offline: true, timeout: %s%s}", name, role,
				workflow.FormatDuration(time.Duration(60+r.IntN(180))*time.Minute*p.Scale), after)
			parts = strings.TrimRight(parts, "\n") + fmt.Sprintf("\n  %s: [%s]\n", name, name)
			p.Pins[name] = r.IntN(p.Nodes)
		}
	}
	p.Workflow = tasks + "\npartitions:\n" + parts
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

// severalHolders reports whether items are with more partners than one.
func severalHolders(of []api.Item) bool {
	return slices.ContainsFunc(of, func(o api.Item) bool { return o.Partner != of[0].Partner })
}

// mayBeLost has the device of a user crash in the middle of a joint lock, now and then, for some minutes; meanwhile the
// user does the same at another device. over says that it is not lost any more.
func (w *world) mayBeLost(u *user, m *machine, r api.ClaimRequest, of []api.Item) (over func()) {
	if w.people.IntN(4) > 0 {
		return func() {}
	}
	c := &crashIn{
		after: w.people.IntN(2) == 0, skip: w.people.IntN(2 + 2*len(of)),
		away: time.Duration(1+w.people.IntN(6)) * time.Minute,
	}
	m.disk.crash = c
	w.at(w.now+time.Duration(2+w.people.IntN(60))*time.Second, func() {
		if m.node != nil || w.hushed {
			return
		}
		w.out.Lost++
		for i := range w.nodes {
			if _, here := u.keys[i]; here && i != m.i {
				w.act(w.nodes[i], func(n *node.Node) { w.lockAll(u, w.nodes[i], n, r, of) })
				return
			}
		}
	})
	return func() {
		if m.disk.crash == c {
			m.disk.crash = nil
		}
	}
}

// lockAll has a user lock items, and notes what came of it. It reports whether they are the user's.
func (w *world) lockAll(u *user, m *machine, n *node.Node, r api.ClaimRequest, of []api.Item) bool {
	for _, o := range of {
		for _, what := range []string{api.ClaimLock, byItself(m.id), string(worklist.Handed)} { // or all is given back
			w.checks.intends(u, o.ID, what)
		}
	}
	if _, err := n.ClaimItems(context.Background(), r); err != nil {
		return false
	}
	if severalHolders(of) {
		w.out.Joint++
	}
	for _, o := range of {
		w.out.Taken++
		w.out.Ahead++
		w.checks.toldTaken(u, m, o)
		w.checks.peoples.locked = append(w.checks.peoples.locked, locked{u.id, o.ID, m.i, w.now})
		if !slices.ContainsFunc(u.had[m.i], func(h api.Item) bool { return h.ID == o.ID }) {
			u.had[m.i] = append(u.had[m.i], o)
		}
	}
	return true
}

// byItself is that a machine gives something back by itself: what it was given in a joint lock that came to nothing.
func byItself(m workflow.PartnerID) string { return "given back by " + string(m) }

// lockedElsewhere checks that what a machine gave back by itself was not locked anew at another, as its user was told.
func (c *checks) lockedElsewhere(id workflow.InstanceID, who meaning.Voice, fact choreo.FactID, x worklist.Release) {
	if c.peoples.intents[intent{who.User, itemID(id, x.Item), api.ClaimRelease}] {
		return // perhaps its user gave it back
	}
	from, to := c.written(choreo.FactID(x.Grant)), c.written(fact)
	for _, l := range c.peoples.locked {
		if m := c.w.nodes[l.at]; m.id != who.At && l.user == who.User && l.item == itemID(id, x.Item) &&
			from < l.when && l.when < to {
			c.w.violate("claims: a user was told at n%d that it has %s of %s, and what it had begun at another device gave "+
				"that back", l.at, x.Item.Slot, id.String()[:8])
		}
	}
}

// written is when a fact was written: when a disk had it first.
func (c *checks) written(fact choreo.FactID) (first time.Duration) {
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
