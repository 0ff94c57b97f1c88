package users

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Why a user's word does not count.
var (
	// ErrNoUser tells that no such user is known.
	ErrNoUser = errors.New("no such user")
	// ErrRemoved tells that a user, or a key of it, was removed.
	ErrRemoved = errors.New("removed")
)

// User is a user as a set says.
type User struct {
	ID      ID
	Name    string
	Roles   []workflow.RoleName // sorted
	Devices []Device            // whose keys are good, by the names of the keys
}

// HasRole reports whether the user has the role.
func (u User) HasRole(role workflow.RoleName) bool {
	_, found := slices.BinarySearch(u.Roles, role)
	return found
}

// Users are those that are not removed, by name and then by ID, with the keys that are good
// at that moment of this node's wall clock.
func (s *Set) Users(at time.Time) (out []User) {
	for id := range s.of {
		if u, err := s.User(id, at); err == nil {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b User) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return out
}

// User is one user. The error wraps [ErrNoUser] or [ErrRemoved].
func (s *Set) User(id ID, at time.Time) (User, error) {
	a, err := s.Account(id)
	if err != nil {
		return User{}, err
	}
	u, seen := User{ID: id, Name: a.Name, Roles: s.roles(a)}, map[workflow.PartnerID]bool{}
	for _, e := range s.of[id] {
		key := workflow.PartnerID(e.slot.about)
		if e.Device == nil || seen[key] {
			continue
		}
		seen[key] = true
		if d, err := s.current(id, key, at); err == nil {
			u.Devices = append(u.Devices, d)
		}
	}
	slices.SortFunc(u.Devices, func(a, b Device) int { return cmp.Compare(a.Leaf().Key, b.Leaf().Key) })
	return u, nil
}

// LacksByTime says of a user who has no key at a moment whether that is for the moment alone: a key of the user's is not
// valid yet, or has ended.
func (s *Set) LacksByTime(id ID, at time.Time) (notYet, ended bool) {
	for _, e := range s.of[id] {
		if e.Device == nil || len(s.removals(id, workflow.PartnerID(e.slot.about))) > 0 ||
			s.attached(*e.Device, map[workflow.PartnerID]bool{}) != nil {
			continue
		}
		err := e.Device.validAt(at)
		notYet, ended = notYet || errors.Is(err, trust.ErrNotYet), ended || errors.Is(err, trust.ErrExpired)
	}
	return notYet, ended
}

// Named is the name of a user, whether it was removed or not; empty: it is not known.
func (s *Set) Named(id ID) string {
	if a := s.first(id); a != nil {
		return a.Name
	}
	return ""
}

// named is the name of a user or, where that is not known, the beginning of its ID.
func (s *Set) named(id ID) string { return cmp.Or(s.Named(id), id.Short()) }

// first is the account of a user, removed or not; nil: it is not known.
func (s *Set) first(id ID) *Account {
	for _, e := range s.of[id] {
		switch {
		case e.Account != nil:
			return e.Account
		case e.Device != nil:
			return &e.Device.Account
		}
	}
	return nil
}

// Account is that of a user who may do something. The error wraps [ErrNoUser],
// [ErrRemoved] or [trust.ErrRevoked].
func (s *Set) Account(id ID) (Account, error) {
	a := s.first(id)
	if a == nil {
		return Account{}, fmt.Errorf("%w: %s", ErrNoUser, id.Short())
	}
	if err := s.void(a.By.Chain, a.By.Serial); err != nil {
		return Account{}, fmt.Errorf("user %s is no user any more: %w", a.Name, err)
	}
	for range s.removals(id, "") {
		return Account{}, fmt.Errorf("user %s is %w", a.Name, ErrRemoved)
	}
	return *a, nil
}

// void is the error of evictions that void what an administrator with that chain issued
// under a serial.
func (s *Set) void(by trust.Chain, serial trust.Serial) error {
	return trust.EvictedIssue(s.evicted, by, serial)
}

// removals are those in force of a user, or of one of its keys.
func (s *Set) removals(id ID, key workflow.PartnerID) (out []*Removal) {
	for _, e := range s.gone[gone{id, key}] {
		if r := e.Removal; r.Device != nil || s.void(r.By.Chain, r.By.Serial) == nil {
			out = append(out, r)
		}
	}
	return out
}

// roles are those of a user: the ones of its account, as far as no change in force says
// otherwise.
func (s *Set) roles(a Account) (out []workflow.RoleName) {
	last := map[workflow.RoleName]*RoleChange{}
	for _, e := range s.of[a.ID()] {
		c := e.Role
		if c == nil || s.void(c.By.Chain, c.By.Serial) != nil {
			continue
		}
		if was := last[c.Role]; was == nil || c.Number > was.Number || c.Number == was.Number && !c.Given {
			last[c.Role] = c
		}
	}
	for _, r := range a.Roles {
		if last[r] == nil {
			out = append(out, r)
		}
	}
	for r, c := range last {
		if c.Given {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return out
}

// lastNumber is the highest of the changes in force of a user's role.
func (s *Set) lastNumber(id ID, role workflow.RoleName) (last uint64) {
	for _, e := range s.of[id] {
		if c := e.Role; c != nil && c.Role == role && s.void(c.By.Chain, c.By.Serial) == nil {
			last = max(last, c.Number)
		}
	}
	return last
}

// Key is what makes a key good at that moment of this node's wall clock: the certificate
// that is valid for longest. Otherwise the error says why it is not.
func (s *Set) Key(id ID, key workflow.PartnerID, at time.Time) (Device, error) {
	if _, err := s.Account(id); err != nil {
		return Device{}, err
	}
	return s.current(id, key, at)
}

// current is [Set.Key] of a user that is not removed.
func (s *Set) current(id ID, key workflow.PartnerID, at time.Time) (Device, error) {
	return s.certified(id, key, func(d Device) error { return d.validAt(at) })
}

// certified is what makes a key good by those of its certificates that are valid: the one that lasts longest.
func (s *Set) certified(id ID, key workflow.PartnerID, valid func(Device) error) (_ Device, err error) {
	err = said.Errorf("%s is no key of user %s: %w", key, s.named(id), ErrNoUser)
	for range s.removals(id, key) {
		return Device{}, fmt.Errorf("this key of user %s is %w", s.named(id), ErrRemoved)
	}
	var good *entry
	for _, e := range s.keys[key] {
		if e.slot.user != id {
			continue
		}
		why := errors.Join(s.attached(*e.Device, map[workflow.PartnerID]bool{}), valid(*e.Device))
		switch {
		case why == nil && (good == nil || e.outlasts(good)):
			good = e
		case why != nil:
			err = why
		}
	}
	if good == nil {
		return Device{}, err
	}
	return *good.Device, nil
}

// outlasts reports whether the certificate in e is the one to show where that in other is
// good, too: it is valid for longer or, where they end together, comes later in one order.
func (e *entry) outlasts(other *entry) bool {
	a, b := e.Device.Leaf().NotAfter, other.Device.Leaf().NotAfter
	return a > b || a == b && e.after(other.Record)
}

// attached returns an error where a key hangs on something that is void: an account or a
// certificate by an evicted delegate, a key at an evicted partner's node, or a key that was
// removed and does not keep it. Each key that brought another in is followed once, followed has
// them: whoever certifies keys may write what leads in circles.
func (s *Set) attached(d Device, followed map[workflow.PartnerID]bool) error {
	if err := s.void(d.Account.By.Chain, d.Account.By.Serial); err != nil {
		return err
	}
	for _, c := range d.Chain {
		if err := trust.Evicted(s.evicted, trust.Chain{{Partner: c.Node, Name: "the partner of this key"}}); err != nil {
			return err
		}
		if err := s.kept(c); err != nil {
			return err
		}
	}
	root := d.Chain[len(d.Chain)-1]
	if err := s.void(root.Chain, root.Serial); err != nil || root.Linked == "" {
		return err
	}
	// An administrator renewed it: what it hung on before it still hangs on.
	if !followed[root.Linked] {
		followed[root.Linked] = true
		for _, e := range s.keys[root.Linked] {
			if e.Device.Leaf().User == root.User && s.attached(*e.Device, followed) == nil {
				return nil
			}
		}
	}
	return said.Errorf("the key of user %s was brought in by %s, which is no key of the user: %w",
		d.Account.Name, root.Linked, ErrNoUser)
}

// kept returns an error where the key that brought in another was removed without keeping it.
func (s *Set) kept(c Certificate) error {
	if c.Linked == "" {
		return nil
	}
	for _, r := range s.removals(c.User, c.Linked) {
		if !r.keeps(c.Key) {
			return said.Errorf("this key was brought in by %s, which is %w", c.Linked, ErrRemoved)
		}
	}
	return nil
}

// linkedBy are the keys that a key brought in, sorted.
func (s *Set) linkedBy(id ID, key workflow.PartnerID) (out []workflow.PartnerID) {
	for _, e := range s.of[id] {
		if e.Device != nil && e.Device.Leaf().Linked == key {
			out = append(out, e.Device.Leaf().Key)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Due are the keys whose certificates near their end, that are good, and that the
// administrator is to renew: the founder all, a delegate those of the users whom it made.
// left is for how long they are good still.
func (s *Set) Due(by workflow.PartnerID, left time.Duration, at time.Time) (out []Device) {
	for _, u := range s.Users(at) {
		for _, d := range u.Devices {
			near := d.Leaf().NotAfter < trust.WallOf(at.Add(left))
			if near && (by == s.mesh.Founder || by == d.Account.By.Issuer) {
				out = append(out, d)
			}
		}
	}
	return out
}

// Renew certifies a key again, for a lifetime from at. serial is random. The certificate goes
// on beginning when it did: a clock that is far ahead must not make the key good for nobody.
func (s *Set) Renew(
	by trust.Issuer, d Device, lifetime time.Duration, serial trust.Serial, at time.Time,
) (Device, error) {
	c := d.Leaf()
	c.Serial, c.Number = serial, s.NextNumber(c.User, c.Key, by.ID())
	c.NotAfter = trust.WallOf(at.Add(lifetime))
	return Certify(by, d.Account, c)
}

// NextNumber is that of the next certificate of a user's key by an issuer.
func (s *Set) NextNumber(id ID, key, issuer workflow.PartnerID) uint64 {
	e := s.slots[slot{'d', id, string(key), issuer}]
	if e == nil {
		return 0
	}
	return e.Device.Leaf().Number + 1
}
