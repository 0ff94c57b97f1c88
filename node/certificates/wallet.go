// Package certificates keeps this node's own certificate and those that connected
// partners showed, and renews them before they end.
//
// Promises: a new certificate of this node's is durable before anybody sees it, and
// never replaced by an older one; nobody is admitted by a certificate that ran out or
// was evicted, and a connection by one does not outlive the next look, a minute later.
// A [Wallet] is asked by many goroutines at once; while it holds its lock it asks
// nobody but the store, and who is evicted.
//
// What it needs of the rest of a node it names in small interfaces; nothing but the node
// puts it together.
//
// It imports internal/said, membership, membership/moment, membership/trust, node/api,
// node/store/kv, node/wire and workflow; node and node/doctor import it.
package certificates

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Key is the key under which a renewed certificate is stored, as the node's keys for
// single values are; the member file keeps the first one.
const Key = "mcertificate"

// renewalPart: a certificate is renewed by its issuer, or by the founder, once a quarter
// of its time is left and the two are in contact. The founder renews its own.
const renewalPart = 4

// NearEnd reports whether a certificate is to be renewed.
func NearEnd(c trust.Certificate, at time.Time) bool {
	return c.NotAfter-trust.WallOf(at) < (c.NotAfter-c.NotBefore)/renewalPart
}

// Store keeps this node's certificate.
type Store interface {
	CommitWait(writes []kv.Write) error
	Get(key []byte) ([]byte, error)
}

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Wallet is this node's own certificate, those that connected partners showed, and those
// that were issued here since the start. It may be used by several goroutines.
type Wallet struct {
	mesh    trust.Mesh
	self    workflow.PartnerID
	key     ed25519.PrivateKey
	store   Store
	clock   Clock
	evicted trust.Evictions

	mu        sync.Mutex // guards what follows
	chain     trust.Chain
	presented map[workflow.PartnerID]trust.Chain // at the hello, by those who were admitted
	renewed   map[workflow.PartnerID]trust.Chain // issued here since the start
}

// Load takes a stored renewal in the place of the member file's certificate, which is
// that of own. evicted knows which chains are evicted.
func Load(own trust.Issuer, store Store, clock Clock, evicted trust.Evictions) (*Wallet, error) {
	w := &Wallet{
		mesh: own.Mesh, self: own.ID(), key: own.Key, store: store, clock: clock, evicted: evicted, chain: own.Chain,
		presented: map[workflow.PartnerID]trust.Chain{}, renewed: map[workflow.PartnerID]trust.Chain{},
	}
	b, err := store.Get([]byte(Key))
	if errors.Is(err, kv.ErrNotFound) {
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	chain, err := trust.DecodeChain(b)
	if err != nil {
		return nil, fmt.Errorf("the stored certificate cannot be read: %w", err)
	}
	if err := chain.Authentic(w.mesh); err != nil {
		return nil, fmt.Errorf("the stored certificate is damaged: %w", err)
	}
	if chain.Leaf().Supersedes(w.chain.Leaf()) {
		w.chain = chain
	}
	return w, nil
}

// Chain is this node's certificate chain.
func (w *Wallet) Chain() trust.Chain {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chain
}

// Issuer is this node as one that certifies, and that signs what it says.
func (w *Wallet) Issuer() trust.Issuer {
	return trust.Issuer{Mesh: w.mesh, Key: w.key, Chain: w.Chain()}
}

// HasRole reports whether this node's certificate gives it a role.
func (w *Wallet) HasRole(role workflow.RoleName) bool { return w.Chain().Leaf().HasRole(role) }

// Standing says why this node would not be admitted, if so.
func (w *Wallet) Standing() error { return w.Current(w.Chain()) }

// Current returns an error where an authentic chain has run out, or was evicted as far as
// is known here.
func (w *Wallet) Current(ch trust.Chain) error { return ch.Current(w.clock.Now().Wall, w.evicted) }

// Good reports whether a certificate chain was not evicted since.
func (w *Wallet) Good(ch trust.Chain) bool { return w.evicted.Check(ch) == nil }

// MayAdminister returns an *api.Error unless this node is the founder or a delegate in
// good standing.
func (w *Wallet) MayAdminister(what string) error {
	chain := w.Chain()
	leaf := chain.Leaf()
	if w.self == w.mesh.Founder || leaf.Delegate && w.Good(chain) {
		return nil
	}
	return api.Errorf(api.NotAllowed,
		"%s may not %s: only the founder and delegates of mesh %s may", leaf.Name, what, w.mesh.Name).
		WithHint("ask the founder or a delegate")
}

// admit judges the credentials that a peer showed, and keeps them.
func (w *Wallet) admit(peer workflow.PartnerID, hello []byte) error {
	chain, err := trust.DecodeChain(hello)
	if err != nil {
		return err
	}
	if got := chain.Leaf().Partner; got != peer {
		return said.Errorf("shows the certificate of %s: %w", got, trust.ErrForged)
	}
	if err := chain.Verify(w.mesh, w.clock.Now().Wall, w.evicted); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.presented[peer] = chain
	return nil
}

// Forget drops what a peer showed that is no longer connected.
func (w *Wallet) Forget(peer workflow.PartnerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.presented, peer)
}

// shown is what a connected peer showed at its hello; nil: nothing.
func (w *Wallet) shown(peer workflow.PartnerID) trust.Chain {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.presented[peer]
}

var errNoRenewal = errors.New("nothing to renew")

// renew issues a certificate again that nears its end, as far as this node may. One that
// was issued here already, and did not take effect yet, is given once more.
func (w *Wallet) renew(old trust.Chain, random func(int) []byte) (trust.Chain, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	leaf, at := old.Leaf(), w.clock.Now().Wall
	if !NearEnd(leaf, at) || leaf.Issuer != w.self && w.self != w.mesh.Founder {
		return nil, errNoRenewal
	}
	if done, ok := w.renewed[leaf.Partner]; ok && done.Leaf().Supersedes(leaf) && !NearEnd(done.Leaf(), at) {
		return done, nil
	}
	span := time.Duration(leaf.NotAfter-leaf.NotBefore) * time.Second
	issuer := trust.Issuer{Mesh: w.mesh, Key: w.key, Chain: w.chain}
	chain, err := issuer.Renew(old, at, span, trust.Serial(random(16)), w.evicted)
	if err == nil && chain.Leaf().NotAfter <= leaf.NotAfter {
		return nil, errNoRenewal // the issuer's own end is nearer
	}
	if err == nil {
		w.renewed[leaf.Partner] = chain
	}
	return chain, err
}

// adopt makes a newer chain this node's, durably.
func (w *Wallet) adopt(chain trust.Chain) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if chain.Equal(w.chain) {
		return errNoRenewal
	}
	if leaf := chain.Leaf(); leaf.Partner != w.self {
		return said.Errorf("certificate of %s, not of this node: %w", leaf.Partner, trust.ErrNotAllowed)
	}
	if err := chain.Verify(w.mesh, w.clock.Now().Wall, w.evicted); err != nil {
		return err
	}
	if !chain.Leaf().Supersedes(w.chain.Leaf()) {
		return fmt.Errorf("certificate %s: %w", chain.Leaf().Serial, membership.ErrReplaced)
	}
	if err := w.store.CommitWait([]kv.Write{{Key: []byte(Key), Value: trust.EncodeChain(chain)}}); err != nil {
		return err
	}
	w.chain = chain
	return nil
}
