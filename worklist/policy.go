package worklist

import (
	"cmp"
	"fmt"
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

// wrong says what is wrong with a policy; "": nothing.
func (p Policy) wrong() string {
	switch p.Name {
	case "", workflow.NotifyAll:
		return ""
	case workflow.NotifyFewestAssigned, workflow.NotifyFewestSelected, workflow.NotifyLatestConnected:
		if p.N >= 1 {
			return ""
		}
		return fmt.Sprintf("the policy notifies %d users, at least 1 is needed", p.N)
	}
	return fmt.Sprintf("there is no policy %q", p.Name)
}

func (p Policy) all() bool { return p.Name == "" || p.Name == workflow.NotifyAll }

// Person is what a node knows of somebody at a moment.
type Person struct {
	User   User
	Roles  []workflow.RoleName
	Active bool // connected, on whatever device
	// Connected is when (Boot) this node saw the person connect last.
	Connected          time.Duration
	Assigned, Selected int // items offered, and held, over all instances
}

// People is what a node knows of the mesh's people.
type People interface {
	// With lists who has a role, here or not; empty: everybody.
	With(workflow.RoleName) []Person
	// Known is one of them.
	Known(User) (Person, bool)
	// Visible is whom the instance's mechanism lets see an item that has been ready for so long.
	Visible(i Item, waited time.Duration) Sight
}

// Sight is what a mechanism says of an item: growing urgency and a relaxing threshold let
// more people see what was ready for longer.
type Sight struct {
	Limited bool          // else all may see it
	Users   []User        // who may
	Push    User          // it is handed to this one, as nobody took it in time; empty: to nobody
	Again   time.Duration // ask again after so long; 0: it stays so
}

// choose finds whom an item is offered to first: of those who are here, as many as the
// policy says.
func (p Policy) choose(here []Person) []User {
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
	return usersOf(by[:min(p.N, len(by))])
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
	if d.b.terms.Open {
		return nil
	}
	role := it.roleNow()
	sight := d.people.Visible(it.Item, d.waited(it))
	if sight.Again > 0 {
		d.wake(it, d.now.Boot+sight.Again)
	}
	if sight.Push != "" && !it.went {
		if p, known := d.people.Known(sight.Push); known {
			return Transfer{Item: it.Item, To: p.User, ToRoles: p.Roles, Cause: ByMechanism, Lease: DefaultLease(Handed)}
		}
	}
	var under ID
	if d.b.notify != nil {
		under = d.b.notify.ID
	}
	first := it.offer.IsZero() || it.under != under
	if d.b.Policy().all() && !sight.Limited {
		if !first && it.all {
			return nil
		}
		return Offer{Item: it.Item, All: true, Under: under}
	}
	to := d.notified(it, role, sight, first)
	if len(to) == 0 {
		return nil
	}
	slices.Sort(to)
	return Offer{Item: it.Item, To: to, Under: under}
}

// notified are those to whom an item is to be offered and is not yet: at first by the
// policy, then whoever connects. Where none of them is here and entitled any more, the
// policy chooses again, so that no item is forgotten.
func (d *deciding) notified(it *item, role workflow.RoleName, sight Sight, first bool) (to []User) {
	var here []Person
	lost := true
	for _, p := range d.people.With(role) {
		d.b.steps++
		if p.Active && (!sight.Limited || slices.Contains(sight.Users, p.User)) {
			here = append(here, p)
			lost = lost && !it.to[p.User]
		}
	}
	switch policy := d.b.Policy(); {
	case (first || lost) && policy.all():
		return usersOf(here)
	case first || lost:
		return policy.choose(here)
	}
	for _, p := range here {
		late := p.Connected > d.b.heard[it.offer] || d.b.Policy().all()
		if late && !it.to[p.User] {
			to = append(to, p.User)
		}
	}
	return to
}
