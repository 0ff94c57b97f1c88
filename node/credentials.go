package node

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Rights are proved in the facts. A verdict that a coordinator writes names its
// office and carries the proof of its election, so that all nodes order such
// verdicts alike (choreo/state/converge.go, rule 1): the core believes what it is told of
// offices, here is where that is checked. A node that needs a role shows its
// certificates (choreo/state/rights.go): the core asks Roles whether they are true, and
// here facts are refused whose author shows what ran out or was evicted.
//
// That last refusal holds for what an author itself sends. What another partner
// has taken in it may have built upon, so it is taken in from there.

// credentials checks proofs of office, certificates and people's words, and remembers those that it has checked: all of
// it by nothing but the mesh, so that all nodes find the same. It may be used by several goroutines.
type credentials struct {
	mesh    trust.Mesh
	offices checked[election.Office]
	chains  checked[trust.Chain]
	// persons are by whom people's words are, by what was signed and the word.
	persons checked[users.Person]
	// keys are whose the keys are by which people sign, by what is shown of them with each word.
	keys checked[users.Person]
}

// maxChecked bounds what is remembered of each kind.
const maxChecked = 256

// checked is what was found to be true, by a hash of what proves it.
type checked[V any] struct {
	mu sync.Mutex
	is map[[sha256.Size]byte]V
}

// find is what the proof is proof of; if it is not known, check says so.
func (c *checked[V]) find(check func() (V, error), proof ...[]byte) (V, error) {
	h := sha256.New()
	for _, part := range proof {
		h.Write(part)
	}
	key := [sha256.Size]byte(h.Sum(nil))
	c.mu.Lock()
	v, known := c.is[key]
	c.mu.Unlock()
	if known {
		return v, nil
	}
	v, err := check()
	if err != nil {
		return v, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is == nil || len(c.is) >= maxChecked {
		c.is = map[[sha256.Size]byte]V{}
	}
	c.is[key] = v
	return v, nil
}

// check refuses facts that name an office to which their author was not elected.
// The error wraps fact.ErrForged.
func (c *credentials) check(facts []fact.Received) error {
	for _, f := range facts {
		v := f.Fact.Body.Verdict
		if v == nil || v.Office == nil {
			continue
		}
		author := f.Fact.Chain.Author
		o, err := c.office(author, v.Office.Proof)
		if err == nil && (o != v.Office.Office) {
			err = fmt.Errorf("the proof is of %s", o)
		}
		if err != nil {
			return said.Errorf("%w: verdict %s of %s in term %d: %w", fact.ErrForged, f.ID.Short(), author,
				v.Office.Term, err)
		}
	}
	return nil
}

// office is what a proof is proof of.
func (c *credentials) office(holder workflow.PartnerID, proof []byte) (election.Office, error) {
	return c.offices.find(func() (election.Office, error) {
		return election.VerifyCredentials(c.mesh, holder, proof)
	}, []byte(holder+"\x00"), proof)
}

// Roles are the roles that a partner's credentials prove (state.Trust).
func (c *credentials) Roles(p workflow.PartnerID, proof []byte) ([]workflow.RoleName, error) {
	ch, err := c.chain(p, proof)
	return ch.Leaf().Roles, err
}

// Evicted returns an error unless proof shows an eviction (state.Trust).
func (c *credentials) Evicted(p workflow.PartnerID, proof []byte) error {
	return trust.Rights{Mesh: c.mesh}.Evicted(p, proof)
}

// chain is the chain of certificates that a partner shows.
func (c *credentials) chain(p workflow.PartnerID, proof []byte) (trust.Chain, error) {
	return c.chains.find(func() (trust.Chain, error) {
		return trust.Rights{Mesh: c.mesh}.Chain(p, proof)
	}, []byte(p+"\x00"), proof)
}

// Speaker is the person whose word that is for what was signed (state.Trust).
func (c *credentials) Speaker(word []byte, signed [32]byte) (fact.Speaker, error) {
	p, err := c.person(word, signed)
	if err != nil {
		return fact.Speaker{}, err
	}
	return fact.Speaker{User: worklist.User(p.ID), Roles: p.Roles, At: p.At}, nil
}

// person is who said a word that was signed. It is checked once: a word is judged when it is brought, when it becomes a
// fact, and when it is answered.
func (c *credentials) person(word []byte, signed [sha256.Size]byte) (users.Person, error) {
	return c.persons.find(func() (users.Person, error) {
		said, err := users.DecodeSpoken(word)
		if err != nil {
			return users.Person{}, err
		}
		if err := said.Signature.Verify(signed); err != nil {
			return users.Person{}, err
		}
		shown := said
		shown.Signature.Signature = nil
		return c.keys.find(func() (users.Person, error) { return said.Shown(c.mesh) }, users.EncodeSpoken(shown))
	}, signed[:], word)
}
