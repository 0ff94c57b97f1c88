package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A certificate is renewed by its issuer, or by the founder, once a quarter of
// its time is left and the two are in contact. The founder renews its own.
const renewalPart = 4

// sweepEvery is how often certificates are looked at, here and of connected
// partners, and evictions are compared again.
const sweepEvery = time.Minute

// metaCertificate is the key of a renewed certificate; the member file keeps
// the first one.
const metaCertificate = "certificate"

// sweep does what time asks of memberships.
func (t *trust) sweep() {
	t.renewOwn()
	t.cutUnwelcome()
	up := t.upPeers()
	renewals := t.people.renewals(up, t.random)
	for _, id := range up {
		if chain, ok := renewals[id]; ok {
			t.count("renewals", 1)
			t.transmit(id, &wire.Message{Renewal: membership.EncodeChain(chain)})
		}
	}
	t.checkStanding()
	if len(t.people.evictionIDs()) > 0 {
		t.broadcast(&wire.Message{Evictions: t.evictionDigest()})
	}
}

// loadCertificate takes a stored renewal in the place of the member file's
// certificate.
func (p *people) loadCertificate() error {
	b, err := p.store.Get(metaKey(metaCertificate))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	chain, err := membership.DecodeChain(b)
	if err != nil {
		return fmt.Errorf("the stored certificate cannot be read: %w", err)
	}
	if err := chain.Authentic(p.member.Mesh); err != nil {
		return fmt.Errorf("the stored certificate is damaged: %w", err)
	}
	if chain.Leaf().Supersedes(p.member.Chain.Leaf()) {
		p.member.Chain = chain
	}
	return nil
}

// chain is this node's certificate chain.
func (p *people) chain() membership.Chain {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.member.Chain
}

// issuer is this node as one that certifies; the caller holds p.mu.
func (p *people) issuer() membership.Issuer {
	return membership.Issuer{Mesh: p.member.Mesh, Key: p.member.Key, Chain: p.member.Chain}
}

// signer is this node as one that signs what it says.
func (p *people) signer() membership.Issuer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.issuer()
}

// good reports whether a certificate chain was not evicted since.
func (p *people) good(ch membership.Chain) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.evicted.Check(ch) == nil
}

// nearEnd reports whether a certificate is to be renewed.
func nearEnd(c membership.Certificate, at time.Time) bool {
	return c.NotAfter-membership.WallOf(at) < (c.NotAfter-c.NotBefore)/renewalPart
}

// renewals issues new certificates to those of the peers whose present ones
// near their end, as far as this node may. A peer that did not take its
// renewal yet gets the same one again.
func (p *people) renewals(peers []workflow.PartnerID, random func(int) []byte) map[workflow.PartnerID]membership.Chain {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[workflow.PartnerID]membership.Chain{}
	if p.mayAdminister("renew") != nil {
		return out
	}
	for _, id := range peers {
		x, ok := p.list.Get(id)
		if !ok || x.State.Gone() {
			continue
		}
		if chain, err := p.renewal(x.Record.Chain, random); err == nil {
			out[id] = chain
		}
	}
	return out
}

var errNoRenewal = errors.New("nothing to renew")

func (p *people) renewal(old membership.Chain, random func(int) []byte) (membership.Chain, error) {
	leaf, at := old.Leaf(), p.clock.Now().Wall
	if !nearEnd(leaf, at) || leaf.Issuer != p.member.ID() && p.member.ID() != p.member.Mesh.Founder {
		return nil, errNoRenewal
	}
	if done, ok := p.renewed[leaf.Partner]; ok && done.Leaf().Supersedes(leaf) && !nearEnd(done.Leaf(), at) {
		return done, nil
	}
	span := time.Duration(leaf.NotAfter-leaf.NotBefore) * time.Second
	chain, err := p.issuer().Renew(old, at, span, membership.Serial(random(16)), p.evicted)
	if err == nil && chain.Leaf().NotAfter <= leaf.NotAfter {
		return nil, errNoRenewal // the issuer's own end is nearer
	}
	if err == nil {
		p.renewed[leaf.Partner] = chain
	}
	return chain, err
}

// takeRenewal takes in this node's own certificate, issued again.
func (t *trust) takeRenewal(from workflow.PartnerID, b []byte) {
	if len(b) == 0 {
		return
	}
	chain, err := membership.DecodeChain(b)
	if err == nil {
		err = t.people.adoptChain(chain)
	}
	if errors.Is(err, errNoRenewal) {
		return // sent again before it heard from us
	}
	if err != nil {
		t.refuse("renewal", from)
		t.log.Warn("renewal refused", "from", from, "error", err)
		return
	}
	t.renewed()
}

// renewOwn has the founder certify itself again.
func (t *trust) renewOwn() {
	if t.member.ID() != t.member.Mesh.Founder {
		return
	}
	chain, err := t.people.renewFounder(t.random)
	if err == nil {
		err = t.people.adoptChain(chain)
	}
	switch {
	case errors.Is(err, errNoRenewal):
	case err != nil:
		t.log.Error("the founder's certificate cannot be renewed", "error", err)
	default:
		t.renewed()
	}
}

func (p *people) renewFounder(random func(int) []byte) (membership.Chain, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.renewal(p.member.Chain, random)
}

// renewed announces a new certificate.
func (t *trust) renewed() {
	t.log.Info("certificate renewed", "until", t.people.chain().Leaf().NotAfter)
	t.checkStanding()
	if err := t.certified(); err != nil {
		t.log.Error("the new certificate could not be published", "error", err)
	}
}

// adoptChain makes a newer chain this node's, durably.
func (p *people) adoptChain(chain membership.Chain) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if chain.Equal(p.member.Chain) {
		return errNoRenewal
	}
	if leaf := chain.Leaf(); leaf.Partner != p.member.ID() {
		return said.Errorf("certificate of %s, not of this node: %w", leaf.Partner, membership.ErrNotAllowed)
	}
	if err := chain.Verify(p.member.Mesh, p.clock.Now().Wall, p.evicted); err != nil {
		return err
	}
	if !chain.Leaf().Supersedes(p.member.Chain.Leaf()) {
		return fmt.Errorf("certificate %s: %w", chain.Leaf().Serial, membership.ErrReplaced)
	}
	if err := p.store.CommitWait([]kv.Write{{Key: metaKey(metaCertificate), Value: membership.EncodeChain(chain)}}); err != nil {
		return err
	}
	p.member.Chain, p.own.Chain = chain, chain
	return p.openInvites()
}

// hasRole reports whether this node's certificate gives it a role.
func (p *people) hasRole(role workflow.RoleName) bool { return p.chain().Leaf().HasRole(role) }
