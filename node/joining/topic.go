// Package joining is how strangers are let into the mesh, by this node's invitations: here,
// or by way of a member that this one passes their requests on to.
//
// Promises: an invitation is durable before anybody sees it, and a use of it before the
// certificate is given out; the same newcomer gets the same certificate again; who joined
// and was never seen is known until its certificate runs out, so that it can be evicted. While a
// [Topic] holds its lock it asks the partner list for names, and who is evicted.
//
// What it needs of the rest of a node it names in small interfaces; nothing but the node
// puts it together.
//
// It imports internal/said, membership, membership/invitation, membership/moment,
// membership/trust, node/api, node/store/kv, node/wire and workflow; node imports it.
package joining

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Prefix is the first byte of the keys under which open invitations are stored, by their
// IDs.
const Prefix = 'v'

// The requests by which strangers join (membership/invitation/join.go draws it). The last is a member's, to the issuer of an
// invitation.
const (
	ProtocolHello  = "/mutirao/join-hello/1.0.0"
	ProtocolProof  = "/mutirao/join-proof/1.0.0"
	ProtocolPass   = "/mutirao/join-pass/1.0.0"
	ProtocolPassed = "/mutirao/join-passed/1.0.0"
)

// Store keeps open invitations.
type Store interface {
	Commit(writes []kv.Write, done func(error))
	CommitWait(writes []kv.Write) error
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Peers are the members that are connected.
type Peers interface {
	Up(p workflow.PartnerID) bool
	UpPeers() []workflow.PartnerID
	Addrs() []string
	Refuse(why string, p workflow.PartnerID)
	Request(
		ctx context.Context, p workflow.PartnerID, addrs []string, protocol string, req []byte, wait time.Duration,
	) ([]byte, error)
}

// Members is the partner list.
type Members interface {
	Get(p workflow.PartnerID) (membership.Partner, bool)
	All() []membership.Partner
	// NameFree returns an error if somebody else has a name, or one that looks like it.
	NameFree(name string, p workflow.PartnerID) error
}

// Certificates is this node as one that certifies.
type Certificates interface {
	Issuer() trust.Issuer
	MayAdminister(what string) error
}

// Evictions is what is known of evictions.
type Evictions interface {
	trust.Evictions
	// Some are as many as fit into one frame.
	Some() []trust.Eviction
}

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Store        Store
	Clock        Clock
	Peers        Peers
	Members      Members
	Certificates Certificates
	Evictions    Evictions
	// Random gives so many random bytes.
	Random func(n int) []byte
	// Lifetime is how long the certificate of a newcomer is valid.
	Lifetime time.Duration
	// Best is the address that leads farthest; empty: none leads anywhere.
	Best func(addrs []string) string
}

// Topic is the invitations that this node issued, and the offers that it made.
type Topic struct {
	in Surroundings

	mu      sync.Mutex // guards what follows
	invites *invitation.InviteBook
	offers  map[workflow.PartnerID]invitation.Offer // made, not proved yet
	// newcomers have certificates of this node's, and were not seen yet when that was looked at last.
	newcomers map[workflow.PartnerID]trust.Chain
}

// maxOffers bounds the strangers who may be in the middle of joining.
const maxOffers = 256

// maxWelcome bounds the records in a welcome; the rest comes with the first
// contact.
const maxWelcome = 32

// New reads the open invitations.
func New(in Surroundings) (*Topic, error) {
	j := &Topic{
		in:      in,
		invites: invitation.NewInviteBook(in.Certificates.Issuer()),
		offers:  map[workflow.PartnerID]invitation.Offer{}, newcomers: map[workflow.PartnerID]trust.Chain{},
	}
	err := in.Store.Scan([]byte{Prefix}, func(_, value []byte) error {
		e, err := invitation.DecodeEntry(value)
		if err != nil {
			return err
		}
		return j.invites.Open(e)
	})
	if err != nil {
		return nil, fmt.Errorf("the stored invitations cannot be read: %w", err)
	}
	return j, j.loadNewcomers()
}

// Greet: members are in.
func (j *Topic) Greet(workflow.PartnerID, *wire.Message) {}

// Take: members are in.
func (j *Topic) Take(workflow.PartnerID, *wire.Message) {}

// Tick forgets invitations that ran out, and who joined and was seen since.
func (j *Topic) Tick(now moment.Now) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range j.invites.Expire(now.Wall) {
		j.in.Store.Commit([]kv.Write{{Key: key(id), Delete: true}}, func(error) {})
	}
	j.forgetNewcomers(now.Wall)
	return time.Minute
}

// Certified notes that this node has another certificate.
func (j *Topic) Certified() {
	chain := j.in.Certificates.Issuer().Chain
	j.mu.Lock()
	defer j.mu.Unlock()
	j.invites.Certified(chain)
}

func key(id invitation.InvitationID) []byte {
	return append([]byte{Prefix}, id[:]...)
}

// Invite opens an invitation.
func (j *Topic) Invite(r api.InviteRequest) (*api.Invitation, error) {
	if r.Expires <= 0 {
		r.Expires = api.Span(24 * time.Hour)
	}
	if r.Uses == 0 {
		r.Uses = 1
	}
	e := invitation.Entry{
		Secret: invitation.Secret(j.in.Random(len(invitation.Secret{}))), Uses: r.Uses,
		Expires: trust.WallOf(j.in.Clock.Now().Wall.Add(time.Duration(r.Expires))), Lifetime: j.in.Lifetime,
		Delegate: r.Delegate,
	}
	for _, role := range r.Roles {
		e.Roles = append(e.Roles, workflow.RoleName(role))
	}
	if err := j.in.Certificates.MayAdminister("invite"); err != nil {
		return nil, err
	}
	if r.Delegate && !j.in.Certificates.Issuer().IsFounder() {
		return nil, api.Errorf(api.NotAllowed,
			"%s may not make delegates: only the founder may", j.in.Certificates.Issuer().Chain.Leaf().Name)
	}
	addresses := j.inviteAt()
	j.mu.Lock()
	defer j.mu.Unlock()
	inv, err := j.invites.Invitation(e, addresses)
	if err != nil {
		return nil, api.Judge(api.Invalid, err)
	}
	switch err := j.invites.Open(e); {
	case errors.Is(err, invitation.ErrManyOpen):
		return nil, err
	case err != nil:
		return nil, api.Judge(api.Invalid, err)
	}
	if err := j.in.Store.CommitWait([]kv.Write{{Key: key(e.Secret.ID()), Value: invitation.EncodeEntry(e)}}); err != nil {
		j.invites.Withdraw(e.Secret.ID())
		return nil, err
	}
	return &api.Invitation{Token: inv.Token(), Expires: e.Expires.Time(), Uses: e.Uses}, nil
}

// Offer answers a stranger that asks to join.
func (j *Topic) Offer(stranger workflow.PartnerID, req []byte) ([]byte, error) {
	h, err := invitation.DecodeHello(req)
	if err != nil {
		return nil, err
	}
	if h.Joiner != stranger {
		return nil, said.Errorf("asks in the name of %s: %w", h.Joiner, trust.ErrForged)
	}
	o, err := invitation.NewOffer(j.in.Certificates.Issuer(), h, invitation.Nonce(j.in.Random(16)))
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.offers) >= maxOffers {
		clear(j.offers)
	}
	j.offers[stranger] = o
	return invitation.EncodeOffer(o), nil
}

// Redeem judges the proof of a stranger that was made an offer, counts the use
// and hands out the certificate, in this order.
func (j *Topic) Redeem(stranger workflow.PartnerID, req []byte) ([]byte, error) {
	chain, err := j.admit(stranger, req)
	if err != nil {
		j.in.Peers.Refuse("invitation", stranger)
		return nil, err
	}
	w := invitation.Welcome{Chain: chain, Evictions: j.in.Evictions.Some()} // the rest comes with the first contact
	for _, x := range j.in.Members.All() {
		if x.State != membership.Evicted && len(w.Records) < maxWelcome {
			w.Records = append(w.Records, x.Record)
		}
	}
	return invitation.EncodeWelcome(w), nil
}

// admit is redeem up to the certificate.
func (j *Topic) admit(stranger workflow.PartnerID, req []byte) (trust.Chain, error) {
	proof, err := invitation.DecodeProof(req)
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
	serial := trust.Serial(j.in.Random(16))
	chain, entry, err := j.invites.Redeem(o, proof, j.in.Clock.Now().Wall, serial, j.in.Evictions)
	if err != nil {
		return nil, err
	}
	if err := j.in.Members.NameFree(proof.Name, stranger); err != nil {
		return nil, err
	}
	used := kv.Write{Key: key(entry.Secret.ID()), Value: invitation.EncodeEntry(entry)}
	joined := kv.Write{Key: newcomerKey(stranger), Value: trust.EncodeChain(chain)}
	if err := j.in.Store.CommitWait([]kv.Write{used, joined}); err != nil {
		return nil, err
	}
	j.newcomers[stranger] = chain
	return chain, j.invites.Open(entry)
}
