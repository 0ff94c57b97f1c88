package meaning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is the second reading of resources (rule 12 of docs/worklists.md).

// reserved is the word of a keeper that an attempt, and those to which it is passed on, have units.
type reserved struct {
	at int
	of *Attempt
	worklist.Reserve
}

// first is the attempt that was passed on to this one, if one was.
func (a *Attempt) first() *Attempt {
	for a.after != nil && a.by == nil {
		a = a.after
	}
	return a
}

// holds are the resources of which an attempt is to have a unit.
func (a *Attempt) holds() []workflow.ResourceName {
	if a.undoes != nil {
		return nil
	}
	return a.task.Holds
}

func aboutUnits(body worklist.Body) bool {
	switch body.(type) {
	case worklist.Reserve, worklist.Keep:
		return true
	}
	return false
}

// enterUnits takes a claim about resources in. It reports whether it counts; about: whether it is one.
func (m *Meaning) enterUnits(i int, body worklist.Body) (counts, about bool) {
	switch x := body.(type) {
	case worklist.Reserve:
		return m.enterReserve(i, x), true
	case worklist.Keep:
		return m.enterKeep(i, x), true
	}
	return false, false
}

func (m *Meaning) enterReserve(i int, x worklist.Reserve) bool {
	a := m.known(fact.AttemptID{Fact: fact.ID(x.Item.Assigned), Slot: x.Item.Slot}, i)
	if a == nil || a.undoes != nil || a.first() != a {
		return false
	}
	f := m.h.facts[i]
	for _, r := range x.Resources {
		decl := m.resource(r)
		if decl == nil || !slices.Contains(a.holds(), r) || !m.keepsAt(i, decl.Partition) {
			return false
		}
		for _, o := range m.reserves {
			if o.of == a && m.h.facts[o.at].Chain == f.Chain && m.h.knew(i, o.at) && slices.Contains(o.Resources, r) {
				return false
			}
		}
	}
	m.reserves = append(m.reserves, reserved{i, a, x})
	return true
}

func (m *Meaning) resource(n workflow.ResourceName) *workflow.ResourceDecl {
	for i := range m.def.Resources {
		if m.def.Resources[i].Name == n {
			return &m.def.Resources[i]
		}
	}
	return nil
}

// keeperAtFirst is who holds a partition from the start.
func (m *Meaning) keeperAtFirst(part workflow.PartitionName) workflow.PartnerID {
	for _, g := range m.genesis.Assign {
		if g.Partition == part {
			return g.Partner
		}
	}
	return ""
}

// keepsAt reports whether the author of a fact keeps the resources of a partition, as it knew: it did from the start, or
// took them over, and does not know for certain of anybody who did later.
func (m *Meaning) keepsAt(i int, part workflow.PartitionName) bool {
	author, since := m.h.facts[i].Chain.Author, none
	for _, k := range m.kept[part] { // in the order of facts
		if m.h.facts[k].Chain.Author == author && m.h.knew(i, k) {
			since = k
		}
	}
	return (since != none || m.keeperAtFirst(part) == author) && !m.keptAfter(i, part, since)
}

func (m *Meaning) keptAfter(i int, part workflow.PartitionName, since int) bool {
	return slices.ContainsFunc(m.kept[part], func(k int) bool { return k > since && m.certain(i, k) })
}

func (m *Meaning) enterKeep(i int, x worklist.Keep) bool {
	kept := slices.ContainsFunc(m.def.Resources,
		func(r workflow.ResourceDecl) bool { return r.Partition == x.Partition })
	since, before := none, m.keeperAtFirst(x.Partition)
	if x.After != (worklist.ID{}) {
		at, known := m.h.index[fact.ID(x.After)]
		if !known || !slices.Contains(m.kept[x.Partition], at) || !m.h.knew(i, at) {
			return false
		}
		since, before = at, m.h.facts[at].Chain.Author
	}
	if !kept || before == m.h.facts[i].Chain.Author || m.keptAfter(i, x.Partition, since) ||
		knewMany(m, fact.MaxAttempts, i, m.kept[x.Partition], func(k int) int { return k }) {
		return false
	}
	m.kept[x.Partition] = append(m.kept[x.Partition], i)
	return true
}

// keeperOf is who keeps the resources of a partition.
func (m *Meaning) keeperOf(part workflow.PartitionName) workflow.PartnerID {
	if ks := m.kept[part]; len(ks) > 0 {
		return m.h.facts[ks[len(ks)-1]].Chain.Author
	}
	return m.keeperAtFirst(part)
}

// given is the first fact by which an attempt has a unit; none: it was given none.
func (m *Meaning) given(a *Attempt, r workflow.ResourceName) int {
	for _, x := range m.reserves { // in the order of facts
		if x.of == a.first() && slices.Contains(x.Resources, r) {
			return x.at
		}
	}
	return none
}

// unitless reports whether the author of a fact knew of no unit for something that an attempt holds.
func (m *Meaning) unitless(i int, a *Attempt) bool {
	return slices.ContainsFunc(a.holds(), func(r workflow.ResourceName) bool {
		return !slices.ContainsFunc(m.reserves, func(x reserved) bool {
			return x.of == a.first() && slices.Contains(x.Resources, r) && m.h.knew(i, x.at)
		})
	})
}

// needs reports whether an attempt is to have its units: it can be done, and has not ended.
func (m *Meaning) needs(a *Attempt) bool {
	return a.slot.Current == a && m.live(a) && a.success() == none && (a.start != none || m.mayStart(a)) &&
		m.item(a.ID).stands() == nil
}

// place is before whom an attempt has a unit: what is under way, what waits, what others presume to have failed.
func (m *Meaning) place(a *Attempt) int {
	open := m.item(a.ID).Open
	switch {
	case a.slot.State == workflow.Failed || a.slot.Pending:
		return 2
	case a.start != none || open != nil && open.Mode != worklist.Handed:
		return 0
	}
	return 1
}

// units are those who have each resource now.
func (m *Meaning) units() map[workflow.ResourceName][]*Attempt {
	have := map[workflow.ResourceName][]*Attempt{}
	for _, r := range m.inOrder() {
		var want []*Attempt
		for _, sl := range m.slots {
			if a := sl.Current; slices.Contains(a.holds(), r.Name) && m.given(a, r.Name) != none && m.needs(a) {
				want = append(want, a)
			}
		}
		slices.SortFunc(want, func(a, b *Attempt) int {
			return cmp.Or(m.place(a)-m.place(b), m.given(a, r.Name)-m.given(b, r.Name))
		})
		for _, a := range want {
			lacks := slices.ContainsFunc(m.inOrder(), func(o workflow.ResourceDecl) bool {
				return o.Partition < r.Partition && slices.Contains(a.holds(), o.Name) &&
					!slices.Contains(have[o.Name], a)
			})
			if len(have[r.Name]) < r.Capacity && (m.place(a) == 0 || !lacks) {
				have[r.Name] = append(have[r.Name], a)
			}
		}
	}
	return have
}

// inOrder are the resources by partition and name.
func (m *Meaning) inOrder() []workflow.ResourceDecl {
	return slices.SortedFunc(slices.Values(m.def.Resources), func(a, b workflow.ResourceDecl) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Name, b.Name))
	})
}

// reserve checks what a keeper gives away: to what can be done, has none and lacks nothing of an earlier partition, and
// no more than there is for all that it knew.
func (c *check) reserve(x worklist.Reserve) {
	m := c.m
	root := m.attempts[fact.AttemptID{Fact: fact.ID(x.Item.Assigned), Slot: x.Item.Slot}]
	if root == nil {
		c.wants(false, "units for what is not known")
		return
	}
	a := root.slot.Current
	c.wants(a.first() == root, "units for what is not in charge")
	c.wants(m.needs(a), "units for what is %s", a.slot.State)
	have := m.units()
	for _, r := range x.Resources {
		decl := m.resource(r)
		c.wants(decl != nil && m.keeperOf(decl.Partition) == c.author,
			"%s is given away by somebody who does not keep it", r)
		if decl == nil {
			continue
		}
		used := slices.DeleteFunc(slices.Clone(have[r]),
			func(o *Attempt) bool { return m.place(o) > max(m.place(a), 1) })
		c.wants(len(used) < decl.Capacity, "%s is given away, of which there are %d: they have %s", r, decl.Capacity,
			names(used))
		c.wants(m.given(a, r) == none, "%s is given to what was given one before", r)
		for _, o := range a.holds() {
			if d := m.resource(o); d.Partition < decl.Partition {
				c.wants(slices.Contains(have[o], a), "%s is given to what lacks %s", r, o)
			}
		}
	}
}

func names(as []*Attempt) string {
	var out []string
	for _, a := range as {
		out = append(out, a.ID.String())
	}
	return strings.Join(out, ", ")
}

// Want is an attempt that waits for resources: those of the first partition of which it lacks some, which have one keeper.
type Want struct {
	Task   workflow.TaskName
	Of     []workflow.ResourceName
	Keeper workflow.PartnerID
	// Free says that there is a unit of each of them, and nothing that waits longer can be why it has none.
	Free bool
}

// Wants are what waits for resources of which it was given none, in an instance that goes on.
func (m *Meaning) Wants() (out []Want) {
	if m.cancelled {
		return nil
	}
	have := m.units()
	for _, sl := range m.slots {
		a := sl.Current
		if !m.needs(a) || a.start != none {
			continue
		}
		next := slices.DeleteFunc(m.nextOf(a, have),
			func(r workflow.ResourceName) bool { return m.given(a, r) != none })
		if len(next) > 0 {
			free := !slices.ContainsFunc(next,
				func(r workflow.ResourceName) bool { return len(have[r]) >= m.resource(r).Capacity })
			out = append(out, Want{a.task.Name, next, m.keeperOf(m.resource(next[0]).Partition), free})
		}
	}
	for again := true; again; { // what shares a resource with one that waits may be behind it
		again = false
		for i := range out {
			if out[i].Free && slices.ContainsFunc(out, out[i].behind) {
				out[i].Free, again = false, true
			}
		}
	}
	return out
}

// nextOf are the resources of the first partition of which an attempt lacks some.
func (m *Meaning) nextOf(a *Attempt, have map[workflow.ResourceName][]*Attempt) (next []workflow.ResourceName) {
	for _, r := range m.inOrder() {
		if slices.Contains(a.holds(), r.Name) && !slices.Contains(have[r.Name], a) &&
			(len(next) == 0 || m.resource(next[0]).Partition == r.Partition) {
			next = append(next, r.Name)
		}
	}
	return next
}

func (w Want) behind(o Want) bool {
	return !o.Free && slices.ContainsFunc(w.Of, func(r workflow.ResourceName) bool { return slices.Contains(o.Of, r) })
}

// hasUnits reports whether an attempt has all that its task holds.
func (m *Meaning) hasUnits(a *Attempt) bool {
	if len(a.holds()) == 0 {
		return true
	}
	have := m.units()
	return !slices.ContainsFunc(a.holds(),
		func(r workflow.ResourceName) bool { return !slices.Contains(have[r], a) })
}

// UnitLines are what the claims about resources come to, as a fingerprint has it (ShownUnits).
func (m *Meaning) UnitLines() (out []string) {
	for _, r := range m.def.Resources {
		out = append(out, fmt.Sprintf("resource %s kept by %s", r.Name, m.keeperOf(r.Partition)))
		seen := map[*Attempt]bool{}
		for _, x := range m.reserves {
			if slices.Contains(x.Resources, r.Name) && !seen[x.of] {
				seen[x.of] = true
				out = append(out, fmt.Sprintf("unit of %s for %s %s by=%s", r.Name, x.of.ID.Slot,
					worklist.ID(x.of.ID.Fact),
					worklist.ID(m.h.facts[x.at].id)))
			}
		}
	}
	slices.Sort(out)
	return out
}

// ShownUnits are the lines of a fingerprint that UnitLines has too.
func ShownUnits(print []byte) (out []string) {
	for line := range strings.Lines(string(print)) {
		if strings.HasPrefix(line, "resource ") || strings.HasPrefix(line, "unit of ") {
			out = append(out, strings.TrimRight(line, "\n"))
		}
	}
	slices.Sort(out)
	return out
}
