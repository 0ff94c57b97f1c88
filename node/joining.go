package node

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// joining is how strangers are let into the mesh, here or by a member that this one asks
// (joinpass.go): the invitations that this node issued, and the offers that it made.
type joining struct {
	*contacts
	members   newcomers
	certifier certifier
	evicted   evicted

	mu      sync.Mutex // guards what follows
	invites *membership.InviteBook
	offers  map[workflow.PartnerID]membership.Offer // made, not proved yet
}

// newcomers is what joining asks of the partner list.
type newcomers interface {
	Get(workflow.PartnerID) (membership.Partner, bool)
	All() []membership.Partner
	// nameFree returns an error if somebody else has a name, or one that looks like it.
	nameFree(name string, id workflow.PartnerID) error
}

// certifier is this node as one that certifies.
type certifier interface {
	Issuer() membership.Issuer
	MayAdminister(what string) error
}

// evicted is what joining asks about evictions.
type evicted interface {
	membership.Evictions
	// Some are as many as fit into one frame.
	Some() []membership.Eviction
}

// maxOffers bounds the strangers who may be in the middle of joining.
const maxOffers = 256

// maxWelcome bounds the records in a welcome; the rest comes with the first
// contact.
const maxWelcome = 32

// newJoining reads the open invitations.
func newJoining(c *contacts, m newcomers, by certifier, e evicted) (*joining, error) {
	j := &joining{
		contacts: c, members: m, certifier: by, evicted: e,
		invites: membership.NewInviteBook(by.Issuer()), offers: map[workflow.PartnerID]membership.Offer{},
	}
	err := c.store.Scan([]byte{prefixInvitation}, func(_, value []byte) error {
		e, err := membership.DecodeEntry(value)
		if err != nil {
			return err
		}
		return j.invites.Open(e)
	})
	if err != nil {
		return nil, fmt.Errorf("the stored invitations cannot be read: %w", err)
	}
	return j, nil
}

// Greet: members are in.
func (j *joining) Greet(workflow.PartnerID, *wire.Message) {}

// Take: members are in.
func (j *joining) Take(workflow.PartnerID, *wire.Message) {}

// Tick forgets invitations that ran out.
func (j *joining) Tick(now membership.Now) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range j.invites.Expire(now.Wall) {
		j.store.Commit([]kv.Write{{Key: invitationKey(id), Delete: true}}, func(error) {})
	}
	return time.Minute
}

// certified notes that this node has another certificate.
func (j *joining) certified() {
	chain := j.certifier.Issuer().Chain
	j.mu.Lock()
	defer j.mu.Unlock()
	j.invites.Certified(chain)
}

func invitationKey(id membership.InvitationID) []byte {
	return append([]byte{prefixInvitation}, id[:]...)
}

// invite opens an invitation.
func (j *joining) invite(r api.InviteRequest) (*api.Invitation, error) {
	if r.Expires <= 0 {
		r.Expires = 24 * time.Hour
	}
	if r.Uses == 0 {
		r.Uses = 1
	}
	e := membership.Entry{
		Secret: membership.Secret(random(len(membership.Secret{}))), Uses: r.Uses,
		Expires: membership.WallOf(j.clock.Now().Wall.Add(r.Expires)), Lifetime: Lifetime,
		Delegate: r.Delegate,
	}
	for _, role := range r.Roles {
		e.Roles = append(e.Roles, workflow.RoleName(role))
	}
	if err := j.certifier.MayAdminister("invite"); err != nil {
		return nil, err
	}
	if r.Delegate && j.member.ID() != j.member.Mesh.Founder {
		return nil, api.Errorf(api.NotAllowed, "%s may not make delegates: only the founder may", j.member.Chain.Leaf().Name)
	}
	addresses := j.inviteAt()
	j.mu.Lock()
	defer j.mu.Unlock()
	inv, err := j.invites.Invitation(e, addresses)
	if err != nil {
		return nil, api.Errorf(api.Invalid, "%v", err)
	}
	if err := j.invites.Open(e); err != nil {
		return nil, api.Errorf(api.Invalid, "%v", err)
	}
	if err := j.store.CommitWait([]kv.Write{{Key: invitationKey(e.Secret.ID()), Value: membership.EncodeEntry(e)}}); err != nil {
		j.invites.Withdraw(e.Secret.ID())
		return nil, err
	}
	return &api.Invitation{Token: inv.Token(), Expires: e.Expires.Time(), Uses: e.Uses}, nil
}

// offer answers a stranger that asks to join.
func (j *joining) offer(stranger workflow.PartnerID, req []byte) ([]byte, error) {
	h, err := membership.DecodeHello(req)
	if err != nil {
		return nil, err
	}
	if h.Joiner != stranger {
		return nil, said.Errorf("asks in the name of %s: %w", h.Joiner, membership.ErrForged)
	}
	o, err := j.certifier.Issuer().Offer(h, membership.Nonce(random(16)))
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.offers) >= maxOffers {
		clear(j.offers)
	}
	j.offers[stranger] = o
	return membership.EncodeOffer(o), nil
}

// redeem judges the proof of a stranger that was made an offer, counts the use
// and hands out the certificate, in this order.
func (j *joining) redeem(stranger workflow.PartnerID, req []byte) ([]byte, error) {
	chain, err := j.admit(stranger, req)
	if err != nil {
		j.refuse("invitation", stranger)
		return nil, err
	}
	w := membership.Welcome{Chain: chain, Evictions: j.evicted.Some()} // the rest comes with the first contact
	for _, x := range j.members.All() {
		if x.State != membership.Evicted && len(w.Records) < maxWelcome {
			w.Records = append(w.Records, x.Record)
		}
	}
	return membership.EncodeWelcome(w), nil
}

// admit is redeem up to the certificate.
func (j *joining) admit(stranger workflow.PartnerID, req []byte) (membership.Chain, error) {
	proof, err := membership.DecodeProof(req)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	o, ok := j.offers[stranger]
	if !ok {
		return nil, errors.New("no offer was made: start again")
	}
	delete(j.offers, stranger)
	chain, entry, err := j.invites.Redeem(o, proof, j.clock.Now().Wall, membership.Serial(random(16)), j.evicted)
	if err != nil {
		return nil, err
	}
	if err := j.members.nameFree(proof.Name, stranger); err != nil {
		return nil, err
	}
	if err := j.store.CommitWait([]kv.Write{{Key: invitationKey(entry.Secret.ID()), Value: membership.EncodeEntry(entry)}}); err != nil {
		return nil, err
	}
	return chain, j.invites.Open(entry)
}
