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
// which this node takes part, and what partners say of the others (node/worklists/loads.go).

// presence is since when partners can be reached, and since when users have what they come with.
type presence struct {
	clock timepiece
	began time.Duration // Boot, when this node was started

	mu    sync.Mutex // guards what follows
	since map[workflow.PartnerID]time.Duration
	came  map[coming]time.Duration
}

// coming is by what a user comes: a key at a node, or else a role. Whoever signs in at a node that is connected
// already, or is granted a role there, comes later than those to whom something of the role was offered before.
type coming struct {
	user worklist.User
	node workflow.PartnerID
	role workflow.RoleName
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

// seeUsers notes what users have by now; what they had when the node was started they have since then.
func (p *presence) seeUsers(all []users.User) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, now := p.came, p.clock.Now().Boot
	if was == nil {
		now = p.began
	}
	p.came = make(map[coming]time.Duration, len(was))
	note := func(c coming) {
		p.came[c] = now
		if at, had := was[c]; had {
			p.came[c] = at
		}
	}
	for _, u := range all {
		for _, node := range nodesOf(u) {
			note(coming{user: worklist.User(u.ID.String()), node: node})
		}
		for _, r := range u.Roles {
			note(coming{user: worklist.User(u.ID.String()), role: r})
		}
	}
}

// cameBy is since when a user has something.
func (p *presence) cameBy(c coming) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.came[c]
}

// SeeUsers notes where the users of the mesh are signed in, and which roles they have.
func (p *Partners) SeeUsers() { p.presence.seeUsers(p.Users.Users(p.Clock.Now().Wall)) }

// See notes whether a partner can be reached.
func (p *Partners) See(id workflow.PartnerID, reachable bool) { p.presence.see(id, reachable) }

// seen is since when a partner can be reached (Boot); false: it cannot.
func (p *presence) seen(id workflow.PartnerID) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, here := p.since[id]
	return at, here
}

// Loads are how much of people's work each person has, by who holds it: of the instances in memory by their facts,
// and of all others that partners hold as these say. Of what one holds in both ways the greater number counts: its
// own word is about all of that, and may be late.
type Loads struct {
	self workflow.PartnerID

	mu    sync.Mutex // guards what follows
	of    map[workflow.InstanceID]loadsOf
	known loadsBy // by facts
	told  loadsBy // by their holders' word
	sum   map[worklist.User]worklist.Load
	own   int // how often what this node holds has changed
}

// loadsOf are those of one instance, as they were at a change of it.
type loadsOf struct {
	of      map[worklist.LoadOf]worklist.Load
	version int
}

// loadsBy are loads by who holds the items.
type loadsBy map[workflow.PartnerID]map[worklist.User]worklist.Load

func (l loadsBy) set(of worklist.LoadOf, to worklist.Load) {
	switch {
	case to != worklist.Load{}:
		if l[of.Holder] == nil {
			l[of.Holder] = map[worklist.User]worklist.Load{}
		}
		l[of.Holder][of.User] = to
	case len(l[of.Holder]) == 1:
		if _, last := l[of.Holder][of.User]; last {
			delete(l, of.Holder)
		}
	default:
		delete(l[of.Holder], of.User)
	}
}

func newLoads(self workflow.PartnerID) *Loads {
	return &Loads{
		self: self, of: map[workflow.InstanceID]loadsOf{}, known: loadsBy{}, told: loadsBy{},
		sum: map[worklist.User]worklist.Load{},
	}
}

// enter brings them up to date with an instance.
func (l *Loads) enter(m *choreo.Machine) {
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
func (l *Loads) drop(id workflow.InstanceID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(id)
}

func (l *Loads) forget(id workflow.InstanceID) {
	l.add(l.of[id].of, -1)
	delete(l.of, id)
}

func (l *Loads) add(all map[worklist.LoadOf]worklist.Load, by int) {
	for of, x := range all {
		x = worklist.Load{Assigned: by * x.Assigned, Selected: by * x.Selected}
		l.change(l.known, of, l.known[of.Holder][of.User].Plus(x))
		if of.Holder == l.self {
			l.own++
		}
	}
}

// change sets a load that is known in one of the two ways, and what all of them come to.
func (l *Loads) change(in loadsBy, of worklist.LoadOf, to worklist.Load) {
	was := l.weighs(of)
	in.set(of, to)
	is := l.weighs(of)
	sum := l.sum[of.User].Plus(worklist.Load{Assigned: is.Assigned - was.Assigned, Selected: is.Selected - was.Selected})
	if sum == (worklist.Load{}) {
		delete(l.sum, of.User)
	} else {
		l.sum[of.User] = sum
	}
}

// weighs is what counts of what is known of a load.
func (l *Loads) weighs(of worklist.LoadOf) worklist.Load {
	known, told := l.known[of.Holder][of.User], l.told[of.Holder][of.User]
	return worklist.Load{
		Assigned: max(known.Assigned, told.Assigned), Selected: max(known.Selected, told.Selected),
	}
}

func (l *Loads) has(u worklist.User) worklist.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum[u]
}

// OwnAt is another number whenever what people have of the items that this node holds may have changed.
func (l *Loads) OwnAt() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own
}

// Own is what people have of the items that this node holds: at most so many people, those who have most.
func (l *Loads) Own(most int) map[worklist.User]worklist.Load {
	l.mu.Lock()
	out := maps.Clone(l.known[l.self])
	l.mu.Unlock()
	if len(out) <= most {
		return out
	}
	all := slices.SortedFunc(maps.Keys(out), func(a, b worklist.User) int {
		x, y := out[a], out[b]
		return cmp.Or(cmp.Compare(y.Assigned+y.Selected, x.Assigned+x.Selected), cmp.Compare(a, b))
	})
	for _, u := range all[most:] {
		delete(out, u)
	}
	return out
}

// Hear takes in what a partner says that people have of the items that it holds: of all, or of those of whom that has
// changed since it said so. It reports whether that can be: what was said before is known here, and it is about at most
// so many people in all. Else nothing counts any more of what that partner has said.
func (l *Loads) Hear(p workflow.PartnerID, all bool, says map[worklist.User]worklist.Load, most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all {
		l.unsay(p)
	} else if l.told[p] == nil {
		return false
	}
	for u, x := range says {
		l.change(l.told, worklist.LoadOf{Holder: p, User: u}, x)
	}
	if len(l.told[p]) > most {
		l.unsay(p)
		return false
	}
	return true
}

// Forget forgets what a partner has said.
func (l *Loads) Forget(p workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsay(p)
}

func (l *Loads) unsay(p workflow.PartnerID) {
	for u := range l.told[p] {
		l.change(l.told, worklist.LoadOf{Holder: p, User: u}, worklist.Load{})
	}
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
		who := p.present(worklist.Person{User: worklist.User(u.ID.String()), Roles: u.Roles}, nodesOf(u)...)
		if who.Active {
			who.Connected = max(who.Connected, p.presence.cameBy(coming{user: who.User, role: role}))
		}
		out = append(out, who)
	}
	return out
}

// WorksAt are the other partners at whose nodes a person can take work now (choreo.Partners).
func (p *Partners) WorksAt(who worklist.User) (out []workflow.PartnerID) {
	at := []workflow.PartnerID{workflow.PartnerID(who)}
	if id, err := users.ParseID(string(who)); err == nil {
		u, err := p.Users.User(id, p.Clock.Now().Wall)
		if err != nil {
			return nil
		}
		at = nodesOf(u)
	}
	for _, id := range at {
		if id != p.Self && p.Reachable(id) && !p.takesNothing(id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
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
// of them is, or the person is signed in there, and how much the person has to do. A partner that takes nothing new on,
// as one does that leaves, is not here: nothing is offered to it by name.
func (p *Partners) present(who worklist.Person, nodes ...workflow.PartnerID) worklist.Person {
	for _, id := range nodes {
		since, here := p.presence.began, id == p.Self
		if !here {
			since, here = p.presence.seen(id)
		}
		if here && !(worklist.User(id) == who.User && p.takesNothing(id)) {
			since = max(since, p.presence.cameBy(coming{user: who.User, node: id}))
			who.Active, who.Connected = true, max(who.Connected, since)
		}
	}
	x := p.Ledger.people.has(who.User)
	who.Assigned, who.Selected = x.Assigned, x.Selected
	return who
}

// takesNothing reports whether a partner takes no new work on.
func (p *Partners) takesNothing(id workflow.PartnerID) bool {
	x, known := p.Get(id)
	return known && x.Record.Absence == membership.Whole
}

// Person is a person who may have people's work, as far as is known here (choreo.Partners).
func (p *Partners) Person(u worklist.User) (worklist.Person, bool) {
	if id, err := users.ParseID(string(u)); err == nil {
		now := p.Clock.Now().Wall
		who, err := p.Users.User(id, now)
		known := err == nil && len(who.Devices) > 0
		person := worklist.Person{User: u, Roles: who.Roles, Unsure: err == nil && !known && p.unsure(id, now)}
		return p.awaited(p.present(person, nodesOf(who)...), nodesOf(who)...), known
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

// unsure reports whether a user may have no key only as this node's clock is wrong: it is before the user's certificate
// was made, or after its end where other things say as well that it is wrong.
func (p *Partners) unsure(id users.ID, now time.Time) bool {
	notYet, ended := p.Users.LacksByTime(id, now)
	return notYet || ended && p.ClockWrong()
}

// NowhereSignedIn reports whether a user is known, and not removed, and is signed in at no node, as far as is known.
func (p *Partners) NowhereSignedIn(u worklist.User) bool {
	id, err := users.ParseID(string(u))
	if err != nil {
		return false
	}
	who, err := p.Users.User(id, p.Clock.Now().Wall)
	return err == nil && len(who.Devices) == 0
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
