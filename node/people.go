package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/roster"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// people are the partners as the rest of the node asks about them: who is here, what they
// may do, and what people call them.
type people struct {
	*roster.List
	self    workflow.PartnerID
	mesh    trust.Mesh
	evicted *evictions.Set
	wallet  *certificates.Wallet
	// userNamed is the name of a user that people could take for a name; empty: there is none.
	userNamed func(name string) string
}

// say is an error in words for people, who call partners by their names.
func (p *people) say(err error) string {
	return said.Render(err, p.label)
}

// Member reports whether somebody is on the partner list, or was evicted: who joined after that has never had the
// evicted one on its list, and yet meets what it wrote in instances.
func (p *people) Member(id workflow.PartnerID) bool { return p.Known(id) || p.evicted.KeyEvicted(id) }

// Gone reports whether a partner is out of the process (choreo.Partners).
func (p *people) Gone(id workflow.PartnerID) bool {
	partner, ok := p.Get(id)
	if !ok {
		return p.evicted.KeyEvicted(id)
	}
	return partner.State.Gone()
}

// Absent reports whether a partner is out of reach for as long as it announced (choreo.Partners).
func (p *people) Absent(id workflow.PartnerID) bool {
	partner, ok := p.Get(id)
	return ok && partner.Absent()
}

// heard is when a partner gave a sign of life for the last time; zero: it is not known.
func (p *people) heard(id workflow.PartnerID) (at time.Time) {
	if partner, ok := p.Get(id); ok {
		at = partner.Validated.Time()
	}
	return at
}

// GoneForGood reports whether a partner was evicted or has left for good.
func (p *people) GoneForGood(id workflow.PartnerID) bool {
	partner, ok := p.Get(id)
	return !ok && p.evicted.KeyEvicted(id) || ok && (partner.State == membership.Evicted || partner.ForGood())
}

// Reachable reports whether a partner can be reached now (choreo.Partners).
func (p *people) Reachable(id workflow.PartnerID) bool {
	partner, ok := p.Get(id)
	return ok && partner.State == membership.Active
}

// Evicted reports whether a partner was removed for good, or left so
// (choreo.Partners).
func (p *people) Evicted(id workflow.PartnerID) bool {
	partner, ok := p.Get(id)
	if !ok {
		return p.evicted.KeyEvicted(id)
	}
	return partner.State == membership.Evicted || partner.ForGood()
}

// Eviction proves that a partner was evicted (choreo.Partners).
func (p *people) Eviction(id workflow.PartnerID) []byte { return p.evicted.Proof(id) }

// remark is what was said when a partner was evicted; empty: nothing, or it was not.
func (p *people) remark(of membership.Partner) string {
	if of.State != membership.Evicted {
		return ""
	}
	return p.evicted.Remark(of.Record.Partner)
}

// Credentials prove this node's roles (choreo.Partners).
func (p *people) Credentials() []byte { return trust.EncodeChain(p.wallet.Chain()) }

// current returns an error where an authentic chain has run out, or was evicted as
// far as is known here. A renewed certificate with the same roles stands in for it.
func (p *people) current(ch trust.Chain) error {
	err := p.wallet.Current(ch)
	lost := func(r workflow.RoleName) bool { return !p.HasRole(ch.Leaf().Partner, r) }
	if errors.Is(err, trust.ErrExpired) && !slices.ContainsFunc(ch.Leaf().Roles, lost) {
		return nil
	}
	return err
}

// ConnectionTime is within what time a partner expires (choreo.Partners); of one
// that the list does not have, at once.
func (p *people) ConnectionTime(id workflow.PartnerID) time.Duration {
	partner, _ := p.Get(id)
	return partner.Record.ConnectionTime
}

// HasRole reports whether a partner's certificate gives it a role (choreo.Partners).
func (p *people) HasRole(id workflow.PartnerID, role workflow.RoleName) bool {
	if id == p.self {
		return p.wallet.HasRole(role)
	}
	partner, ok := p.Get(id)
	return ok && partner.Record.Chain.Leaf().HasRole(role)
}

// RolesOf are those of a partner's certificate.
func (p *people) RolesOf(id workflow.PartnerID) []workflow.RoleName {
	if id == p.self {
		return p.wallet.Chain().Leaf().Roles
	}
	partner, _ := p.Get(id)
	return partner.Record.Roles()
}

// administers reports whether a partner may change the electorate: the founder,
// or a delegate in good standing.
func (p *people) administers(id workflow.PartnerID) bool {
	if id == p.mesh.Founder {
		return true
	}
	x, ok := p.Get(id)
	return ok && x.State != membership.Evicted && x.Record.Chain.Leaf().Delegate
}

// resolveWhole is Find for what cannot be taken back: a beginning of an ID is too
// easily somebody else's.
func (p *people) resolveWhole(ref string) (workflow.PartnerID, error) {
	ref = workflow.UsualForm(ref)
	id, err := p.Find(ref)
	if err == nil && ref != string(id) && ref != p.Called(id) {
		return "", api.Errorf(api.Invalid, "%q has only the beginning of an ID: want a name or a whole ID", ref).
			WithHint("if you mean %s, type %s", p.label(id), id)
	}
	return id, err
}

// nameFree keeps two partners from having one name, or names that look the same, as
// far as is known here: people tell them apart by it.
func (p *people) nameFree(name string, id workflow.PartnerID) error {
	x, taken := p.Namesake(name, id)
	user := p.userNamed(name)
	switch {
	case !taken && user != "":
		return fmt.Errorf("the name %s is, or looks like, that of the user %s in mesh %s: join with another --name",
			name, user, p.mesh.Name)
	case !taken:
		return nil
	case x.Record.Name() == name:
		return fmt.Errorf("the name %s is taken in mesh %s: join with another --name", name, p.mesh.Name)
	}
	return fmt.Errorf("the name %s looks like %s, which is taken in mesh %s: join with another --name",
		name, x.Record.Name(), p.mesh.Name)
}

// called reports whether somebody who is known here has a name: a partner or a user.
func (p *people) called(name string) bool {
	partner := func(x membership.Partner) bool { return x.State != membership.Evicted && x.Record.Name() == name }
	return p.userNamed(name) == name || slices.ContainsFunc(p.All(), partner)
}

// name and label are what people call a partner, and that in a sentence.
func (p *people) name(id workflow.PartnerID) string  { return p.Name(id) }
func (p *people) label(id workflow.PartnerID) string { return p.Label(id) }

// names are what people call partners, one after the other.
func (p *people) names(ids []workflow.PartnerID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = p.name(id)
	}
	return out
}

// names are what people call partners.
type names interface {
	name(workflow.PartnerID) string
	label(workflow.PartnerID) string
}

// members are the people for topics in packages of their own.
type members struct{ *people }

func (m members) Resolve(ref string) (workflow.PartnerID, error) { return m.Find(ref) }

func (m members) ResolveWhole(ref string) (workflow.PartnerID, error) { return m.resolveWhole(ref) }

func (m members) Administers(p workflow.PartnerID) bool { return m.administers(p) }

func (m members) Names(ids []workflow.PartnerID) []string { return m.names(ids) }

func (m members) NameFree(name string, p workflow.PartnerID) error { return m.nameFree(name, p) }

func (m members) Say(err error) string { return m.say(err) }
