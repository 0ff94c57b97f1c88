package node

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about who is here for people's work, since when, and how much of it each has: by that the holder of an
// item chooses whom it offers it to (choreo/offering.go). It is what this node sees: since when a partner can be
// reached counts from when it could be here, and work is that of the instances in which this node takes part.

// presence is since when partners can be reached, and how much people have to do.
type presence struct {
	clock Clock
	began time.Duration // Boot, when this node was started

	mu    sync.Mutex // guards what follows
	since map[workflow.PartnerID]time.Duration
	of    map[workflow.InstanceID]loads
	sum   map[worklist.User]worklist.Load
}

// loads are what people have of one instance.
type loads struct {
	of      map[worklist.User]worklist.Load
	version int
}

func newPresence(clock Clock) *presence {
	return &presence{
		clock: clock, began: clock.Now().Boot, since: map[workflow.PartnerID]time.Duration{},
		of: map[workflow.InstanceID]loads{}, sum: map[worklist.User]worklist.Load{},
	}
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

// seen is since when a partner can be reached (Boot); false: it cannot.
func (p *presence) seen(id workflow.PartnerID) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, here := p.since[id]
	return at, here
}

// enter brings what people have to do up to date with an instance; nil: with one that is not in memory any more.
func (p *presence) enter(id workflow.InstanceID, of map[worklist.User]worklist.Load, version int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.of[id]
	if was.version == version && len(was.of) == len(of) {
		return
	}
	p.add(was.of, -1)
	p.add(of, 1)
	if p.of[id] = (loads{maps.Clone(of), version}); len(of) == 0 {
		delete(p.of, id)
	}
}

func (p *presence) add(of map[worklist.User]worklist.Load, by int) {
	for u, x := range of {
		sum := p.sum[u]
		if sum = (worklist.Load{Assigned: sum.Assigned + by*x.Assigned, Selected: sum.Selected + by*x.Selected}); sum == (worklist.Load{}) {
			delete(p.sum, u)
		} else {
			p.sum[u] = sum
		}
	}
}

func (p *presence) loadOf(u worklist.User) worklist.Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum[u]
}

// People are those to whom items for a role can be offered: users who are signed in somewhere, and partners that were
// not removed; with no role, those at this node (choreo.Partners).
func (p *partners) People(role workflow.RoleName) (out []worklist.Person) {
	for _, x := range p.All() {
		id := x.Record.Partner
		switch {
		case x.State == membership.Evicted || x.ForGood():
		case role == "" && id != p.self, role != "" && !p.HasRole(id, role):
		default:
			if who, known := p.Person(worklist.User(id)); known {
				out = append(out, who)
			}
		}
	}
	for _, u := range p.users.Users(p.clock.Now().Wall) {
		here := func(d users.Device) bool { return d.Leaf().Node == p.self }
		if len(u.Devices) == 0 || role == "" && !slices.ContainsFunc(u.Devices, here) || role != "" && !u.HasRole(role) {
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

// present adds to a person whether one of the nodes is here at which the person works, since when the last of them is,
// and how much the person has to do.
func (p *partners) present(who worklist.Person, nodes ...workflow.PartnerID) worklist.Person {
	for _, id := range nodes {
		since, here := p.presence.began, id == p.self
		if !here {
			since, here = p.presence.seen(id)
		}
		if here {
			who.Active, who.Connected = true, max(who.Connected, since)
		}
	}
	x := p.presence.loadOf(who.User)
	who.Assigned, who.Selected = x.Assigned, x.Selected
	return who
}
