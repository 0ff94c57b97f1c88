package worklist

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Policy is whom items are offered to: to all, or to N by one of the other policies
// (workflow.ParseNotify). The zero value: to all.
type Policy struct {
	Name string
	N    int
}

// ParsePolicy reads a policy as people write it.
func ParsePolicy(s string) (p Policy, err error) {
	p.Name, p.N, err = workflow.ParseNotify(s)
	return p, err
}

// String is the policy as people write it.
func (p Policy) String() string {
	if p.All() {
		return workflow.NotifyAll
	}
	return fmt.Sprintf("%s %d", p.Name, p.N)
}

// wrong says what is wrong with a policy; "": nothing.
func (p Policy) wrong() string {
	switch p.Name {
	case "", workflow.NotifyAll:
		if p.N != 0 {
			return fmt.Sprintf("the policy notifies all, and names %d users", p.N)
		}
		return ""
	case workflow.NotifyFewestAssigned, workflow.NotifyFewestSelected, workflow.NotifyLatestConnected:
		if p.N >= 1 && p.N <= workflow.MaxNotified {
			return ""
		}
		return fmt.Sprintf("the policy notifies %d users: want 1 to %d", p.N, workflow.MaxNotified)
	}
	return fmt.Sprintf("there is no policy %q", p.Name)
}

// All reports whether items are for all who have their role.
func (p Policy) All() bool { return p.Name == "" || p.Name == workflow.NotifyAll }

// Person is what a node knows of somebody at a moment.
type Person struct {
	User   User
	Roles  []workflow.RoleName
	Active bool // can be reached now, on whatever device
	// Connected is when (Boot) this node saw the person connect last.
	Connected          time.Duration
	Assigned, Selected int // as Load, in the whole mesh, as far as the node knows it
	// Back is when (Boot) a device of the person is back that is out of reach as announced; 0: none is. It is asked
	// of whoever has an item (Known).
	Back time.Duration
	// Unsure: that the person is not known may be for this node's own wall clock alone. Nothing that the person has is
	// taken away for that. It is asked of whoever has an item (Known).
	Unsure bool
}

// People is what a node knows of the mesh's people.
type People interface {
	// With lists who has a role, here or not; empty: everybody.
	With(workflow.RoleName) []Person
	// Known is one of them.
	Known(User) (Person, bool)
	// Visible is whom the instance's mechanism lets see an item now.
	Visible(i Item) Sight
}

// Sight is what a mechanism says of an item: growing urgency and a relaxing threshold let
// more people see what was ready for longer.
type Sight struct {
	Limited bool          // else all may see it
	Users   []User        // who may
	Again   time.Duration // ask again after so long; 0: it stays so
}

// choose finds whom an item is offered to first: of those who are here, as many as the
// policy says.
func (p Policy) choose(here []Person) []User { return usersOf(p.Order(here)[:min(p.N, len(here))]) }

// Order are people in the order in which the policy chooses them.
func (p Policy) Order(here []Person) []Person {
	by := slices.Clone(here)
	slices.SortFunc(by, func(a, b Person) int {
		n := 0
		switch p.Name {
		case workflow.NotifyFewestAssigned:
			n = cmp.Compare(a.Assigned, b.Assigned)
		case workflow.NotifyFewestSelected:
			n = cmp.Compare(a.Selected, b.Selected)
		case workflow.NotifyLatestConnected:
			n = cmp.Compare(b.Connected, a.Connected)
		}
		return cmp.Or(n, cmp.Compare(a.User, b.User))
	})
	return by
}

func usersOf(ps []Person) []User {
	out := make([]User, len(ps))
	for i, p := range ps {
		out[i] = p.User
	}
	return out
}

// offer is what is to be said of an item that waits for somebody to take it; nil: nothing
// (rule 4).
func (d *deciding) offer(it *item) Body {
	left := d.b.names(d.self) - d.said.names
	if it.Task.ByNode || d.b.opens(it) || d.b.offers[d.self].offers+d.said.offers >= MaxOffers || left <= 0 {
		return nil
	}
	role := it.roleNow()
	sight := d.people.Visible(it.Item)
	if sight.Again > 0 {
		d.wake(it, d.now.Boot+sight.Again)
	}
	under := d.b.policyFact()
	first := it.offer.IsZero() || it.under != under
	if d.b.Policy().All() && !sight.Limited {
		if !first && it.all {
			return nil
		}
		return Offer{Item: it.Item, All: true, Under: under}
	}
	to := d.notified(it, role, sight, first)
	to = to[:min(len(to), workflow.MaxNotified, left)]
	if len(to) == 0 {
		return nil
	}
	slices.Sort(to)
	for _, u := range to {
		d.given[u]++
	}
	d.said.offers, d.said.names = d.said.offers+1, d.said.names+len(to)
	return Offer{Item: it.Item, To: to, Under: under}
}

// What a partner may say of whom it offers items to, in one instance: so many offers, which name so many people in
// all. A mesh in which people come and go all the time would else have an honest holder exceed its share. Then its
// items are for all who have their role.
const (
	MaxOffers  = 256
	MaxOffered = 1024
)

// offering is what a partner has said of that.
type offering struct{ offers, names int }

// Spent reports whether a partner has made all offers in the instance that it may, so that its items are for all of
// their role.
func (b *Board) Spent(p workflow.PartnerID) bool {
	return b.offers[p].offers >= MaxOffers || b.names(p) == 0
}

// names is how many more people a partner's offers may name.
func (b *Board) names(p workflow.PartnerID) int { return max(0, MaxOffered-b.offers[p].names) }

// policyFact is the change by which the policy is what it is; zero: the terms.
func (b *Board) policyFact() ID {
	if b.notify == nil {
		return ID{}
	}
	return b.notify.ID
}

// Load is how much of people's work somebody has in an instance.
type Load struct {
	Assigned int // items that are offered to this one by name, or kept for this one
	Selected int // items that this one has
}

// Plus is both together.
func (l Load) Plus(o Load) Load { return Load{l.Assigned + o.Assigned, l.Selected + o.Selected} }

// LoadOf is what a load counts: items of one partner, which somebody has to do.
type LoadOf struct {
	Holder workflow.PartnerID
	User   User
}

// Loads are those of all who have any. The number tells whether they have changed.
func (b *Board) Loads() (of map[LoadOf]Load, version int) { return b.loads, b.loadsAt }

// counted is what an item adds to loads.
type counted struct {
	at  workflow.PartnerID // who holds it
	has User               // who has it
	to  []User             // to whom it is offered, or for whom it is kept, sorted
}

func (c counted) equal(o counted) bool {
	return c.at == o.at && c.has == o.has && slices.Equal(c.to, o.to)
}

// count brings loads up to date with an item.
func (b *Board) count(it *item) {
	is := b.countsOf(it)
	if is.equal(it.counts) {
		return
	}
	b.loadsAt++
	b.load(it.counts, -1)
	b.load(is, 1)
	it.counts = is
}

func (b *Board) countsOf(it *item) (is counted) {
	is.at = it.Holder
	switch h := it.open; {
	case !it.placed || !it.InCharge || !it.Ready || it.Over || it.end() != nil:
	case h != nil && h.Mode == Handed:
		is.to = []User{h.User}
	case h != nil:
		is.has = h.User
	case b.named(it):
		is.to = slices.Sorted(maps.Keys(it.to))
	}
	return is
}

// opens reports whether everybody of its role sees an item, and nobody has to be told so by an offer.
func (b *Board) opens(it *item) bool { return b.terms.Open && b.Policy().All() && !it.Task.Limited }

// named reports whether an item is for those alone whom its offers name.
func (b *Board) named(it *item) bool {
	return !it.Task.ByNode && !b.opens(it) && !b.Spent(it.Holder) &&
		it.under == b.policyFact() && !it.all
}

func (b *Board) load(c counted, by int) {
	add := func(u User, x Load) {
		of := LoadOf{c.at, u}
		if x = b.loads[of].Plus(x); x == (Load{}) {
			delete(b.loads, of)
		} else {
			b.loads[of] = x
		}
	}
	if c.has != "" {
		add(c.has, Load{Selected: by})
	}
	for _, u := range c.to {
		add(u, Load{Assigned: by})
	}
}

// notified are those to whom an item is to be offered and is not yet: at first by the
// policy, then whoever connects. Where none of them is here and entitled any more, the
// policy chooses again, so that no item is forgotten.
func (d *deciding) notified(it *item, role workflow.RoleName, sight Sight, first bool) (to []User) {
	var here []Person
	may := map[User]bool{}
	for _, u := range sight.Users {
		may[u] = true
	}
	lost := true
	for _, p := range d.people.With(role) {
		d.b.steps++
		if p.Active && (!sight.Limited || may[p.User]) {
			p.Assigned += d.given[p.User]
			here = append(here, p)
			lost = lost && !it.to[p.User]
		}
	}
	switch policy := d.b.Policy(); {
	case (first || lost) && policy.All():
		return usersOf(here)
	case first || lost:
		return policy.choose(here)
	}
	policy := d.b.Policy()
	for _, p := range here {
		late := p.Connected > d.b.heard[it.offer] || policy.All() ||
			sight.Limited && len(it.to)+len(to) < policy.N // entitled only now
		if late && !it.to[p.User] {
			to = append(to, p.User)
		}
	}
	return to
}
