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

// credentials checks proofs of office, and remembers those that it has checked.
// It may be used by several goroutines.
type credentials struct {
	mesh    trust.Mesh
	mu      sync.Mutex
	checked map[[sha256.Size]byte]election.Office
	chains  map[[sha256.Size]byte]trust.Chain
	// persons are by whom people's words are, by what was signed and the word.
	persons map[[sha256.Size]byte]users.Person
}

// maxChecked bounds the proofs, and the chains, that are remembered.
const maxChecked = 256

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
	key := sha256.Sum256(append([]byte(holder+"\x00"), proof...))
	c.mu.Lock()
	o, known := c.checked[key]
	c.mu.Unlock()
	if known {
		return o, nil
	}
	o, err := election.VerifyCredentials(c.mesh, holder, proof)
	if err != nil {
		return election.Office{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.checked == nil || len(c.checked) >= maxChecked {
		c.checked = map[[sha256.Size]byte]election.Office{}
	}
	c.checked[key] = o
	return o, nil
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
	key := sha256.Sum256(append([]byte(p+"\x00"), proof...))
	c.mu.Lock()
	ch, known := c.chains[key]
	c.mu.Unlock()
	if known {
		return ch, nil
	}
	ch, err := trust.Rights{Mesh: c.mesh}.Chain(p, proof)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chains == nil || len(c.chains) >= maxChecked {
		c.chains = map[[sha256.Size]byte]trust.Chain{}
	}
	c.chains[key] = ch
	return ch, nil
}

// Speaker is the person whose word that is for what was signed (state.Trust).
func (c *credentials) Speaker(word []byte, signed [32]byte) (fact.Speaker, error) {
	p, err := c.person(word, signed)
	if err != nil {
		return fact.Speaker{}, err
	}
	return fact.Speaker{User: worklist.User(p.ID), Roles: p.Roles, At: p.At}, nil
}

// person is who said a word that was signed. It is checked with nothing but the mesh, so that all nodes find the same,
// and once: a word is judged when it is brought, when it becomes a fact, and when it is answered.
func (c *credentials) person(word []byte, signed [sha256.Size]byte) (users.Person, error) {
	h := sha256.New()
	h.Write(signed[:])
	h.Write(word)
	key := [sha256.Size]byte(h.Sum(nil))
	c.mu.Lock()
	who, known := c.persons[key]
	c.mu.Unlock()
	if known {
		return who, nil
	}
	said, err := users.DecodeSpoken(word)
	if err != nil {
		return users.Person{}, err
	}
	if who, err = said.Person(c.mesh, signed); err != nil {
		return users.Person{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.persons == nil || len(c.persons) >= maxChecked {
		c.persons = map[[sha256.Size]byte]users.Person{}
	}
	c.persons[key] = who
	return who, nil
}
