package assignment

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about who is here for people's work, since when, and how much of it each has: by that the
// holder of an item chooses whom it offers it to (choreo/state/offers.go). It is what this node sees: since
// when a partner can be reached counts from when it could be here, and work is that of the instances in
// which this node takes part.

// presence is since when partners can be reached.
type presence struct {
	clock timepiece
	began time.Duration // Boot, when this node was started

	mu    sync.Mutex // guards what follows
	since map[workflow.PartnerID]time.Duration
}

func newPresence(clock timepiece) *presence {
	return &presence{clock: clock, began: clock.Now().Boot, since: map[workflow.PartnerID]time.Duration{}}
}

// see notes whether a partner can be reached.
func (p *presence) see(id workflow.PartnerID, reachable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, was := p.since[id]; !reachable {
		delete(p.since, id)
	} else if !was {
		p.since[id] = p.clock.Now().Boot
	}
}

// See notes whether a partner can be reached.
func (p *Partners) See(id workflow.PartnerID, reachable bool) { p.presence.see(id, reachable) }

// seen is since when a partner can be reached (Boot); false: it cannot.
func (p *presence) seen(id workflow.PartnerID) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, here := p.since[id]
	return at, here
}

// loads are how much of people's work each person has, over all instances in memory.
type loads struct {
	mu  sync.Mutex // guards what follows
	of  map[workflow.InstanceID]loadsOf
	sum map[worklist.User]worklist.Load
}

// loadsOf are those of one instance, as they were at a change of it.
type loadsOf struct {
	of      map[worklist.User]worklist.Load
	version int
}

func newLoads() *loads {
	return &loads{of: map[workflow.InstanceID]loadsOf{}, sum: map[worklist.User]worklist.Load{}}
}

// enter brings them up to date with an instance.
func (l *loads) enter(m *choreo.Machine) {
	of, version := m.PeoplesLoad()
	l.mu.Lock()
	defer l.mu.Unlock()
	id := m.Instance()
	if was, known := l.of[id]; known && was.version == version || !known && len(of) == 0 {
		return
	}
	l.forget(id)
	l.add(of, 1)
	l.of[id] = loadsOf{maps.Clone(of), version}
}

// drop forgets an instance.
func (l *loads) drop(id workflow.InstanceID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(id)
}

func (l *loads) forget(id workflow.InstanceID) {
	l.add(l.of[id].of, -1)
	delete(l.of, id)
}

func (l *loads) add(of map[worklist.User]worklist.Load, by int) {
	for u, x := range of {
		sum := l.sum[u]
		if sum = (worklist.Load{Assigned: sum.Assigned + by*x.Assigned,
			Selected: sum.Selected + by*x.Selected}); sum == (worklist.Load{}) {
			delete(l.sum, u)
		} else {
			l.sum[u] = sum
		}
	}
}

func (l *loads) has(u worklist.User) worklist.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum[u]
}

// People are those to whom items for a role can be offered: users who are signed in somewhere, and partners
// that were not removed; with no role, those at this node (choreo.Partners).
func (p *Partners) People(role workflow.RoleName) (out []worklist.Person) {
	for _, x := range p.All() {
		id := x.Record.Partner
		switch {
		case x.State == membership.Evicted || x.ForGood():
		case role == "" && id != p.Self, role != "" && !p.HasRole(id, role):
		default:
			if who, known := p.Person(worklist.User(id)); known {
				out = append(out, who)
			}
		}
	}
	for _, u := range p.Users.Users(p.Clock.Now().Wall) {
		here := func(d users.Device) bool { return d.Leaf().Node == p.Self }
		if len(u.Devices) == 0 || role == "" && !slices.ContainsFunc(u.Devices, here) ||
			role != "" && !u.HasRole(role) {
			continue
		}
		out = append(out, p.present(worklist.Person{User: worklist.User(u.ID.String()), Roles: u.Roles}, nodesOf(u)...))
	}
	return out
}

// nodesOf are the partners at whose nodes a user's keys are.
func nodesOf(u users.User) (out []workflow.PartnerID) {
	for _, d := range u.Devices {
		out = append(out, d.Leaf().Node)
	}
	return out
}

// present adds to a person whether one of the nodes is here at which the person works, since when the last
// of them is, and how much the person has to do.
func (p *Partners) present(who worklist.Person, nodes ...workflow.PartnerID) worklist.Person {
	for _, id := range nodes {
		since, here := p.presence.began, id == p.Self
		if !here {
			since, here = p.presence.seen(id)
		}
		if here {
			who.Active, who.Connected = true, max(who.Connected, since)
		}
	}
	x := p.Ledger.people.has(who.User)
	who.Assigned, who.Selected = x.Assigned, x.Selected
	return who
}

// Person is a person who may have people's work, as far as is known here (choreo.Partners).
func (p *Partners) Person(u worklist.User) (worklist.Person, bool) {
	if id, err := users.ParseID(string(u)); err == nil {
		who, err := p.Users.User(id, p.Clock.Now().Wall)
		return p.awaited(p.present(worklist.Person{User: u, Roles: who.Roles}, nodesOf(who)...), nodesOf(who)...),
			err == nil && len(who.Devices) > 0
	}
	id := workflow.PartnerID(u)
	if id == p.Self {
		return p.present(worklist.Person{User: u, Roles: p.RolesOf(id)}, id), true
	}
	if _, known := p.Get(id); !known || p.Evicted(id) {
		return worklist.Person{}, false
	}
	return p.awaited(p.present(worklist.Person{User: u, Roles: p.RolesOf(id)}, id), id), true
}

// awaited adds to a person when the nodes are back that are absent as they announced.
func (p *Partners) awaited(who worklist.Person, nodes ...workflow.PartnerID) worklist.Person {
	for _, id := range nodes {
		if x, listed := p.Get(id); listed && x.Absent() {
			who.Back = max(who.Back, x.Back)
		}
	}
	return who
}

// At reports whether a person's key is at a partner's node.
func (p *Partners) At(u worklist.User, node workflow.PartnerID) bool {
	id, err := users.ParseID(string(u))
	if err != nil {
		return workflow.PartnerID(u) == node
	}
	who, err := p.Users.User(id, p.Clock.Now().Wall)
	return err == nil && slices.ContainsFunc(who.Devices, func(d users.Device) bool { return d.Leaf().Node == node })
}

// Called is what people call a person.
func (p *Partners) Called(u worklist.User) string {
	if id, err := users.ParseID(string(u)); err == nil {
		return cmp.Or(p.Users.Called(id), id.Short())
	}
	return p.Name(workflow.PartnerID(u))
}

// CalledAll is what people call several of them.
func (p *Partners) CalledAll(of []worklist.User) (out []string) {
	for _, u := range of {
		out = append(out, p.Called(u))
	}
	slices.Sort(out)
	return out
}

// AnswersFor is who answers for an instance, for people.
func (p *Partners) AnswersFor(m *choreo.Machine) workflow.UserName {
	g := m.Genesis().Body
	if name := g.Genesis.Responsible; name != "" && (g.Annex == nil || g.Annex.Responsible == "") {
		return name
	}
	return workflow.UserName(p.Called(m.Responsible()))
}
