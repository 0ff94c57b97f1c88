package trust

import (
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Rights checks what partners show in facts to prove what they may do, by the
// mesh's name and its founder's key alone: what it says once it says always. That
// a certificate ran out, or was voided since, is for those who take a fact in.
type Rights struct{ Mesh Mesh }

// Chain is the chain that credentials are, for the partner's key and authentic.
func (r Rights) Chain(p workflow.PartnerID, credentials []byte) (Chain, error) {
	ch, err := DecodeChain(credentials)
	if err != nil {
		return nil, err
	}
	if ch.Leaf().Partner != p {
		return nil, said.Errorf("%s shows the certificate of %s: %w", p, ch.Leaf().Partner, ErrForged)
	}
	if err := ch.Authentic(r.Mesh); err != nil {
		return nil, err
	}
	return ch, nil
}

// Evicted returns an error unless proof, an encoded [Eviction], shows that somebody
// who may has put the partner's key out of the mesh.
func (r Rights) Evicted(p workflow.PartnerID, proof []byte) error {
	e, err := DecodeEviction(proof)
	if err != nil {
		return err
	}
	if e.Partner != p || !e.OfKey() {
		return said.Errorf("it is an eviction of %s, not of the key of %s: %w", e.Partner, p, ErrForged)
	}
	return e.vet(r.Mesh)
}

// Against are the evictions that name a partner's key, the founder's first.
func (r *Revocations) Against(p workflow.PartnerID) (out []Eviction) {
	for _, id := range r.against[p] {
		e := r.known[id]
		switch {
		case !e.OfKey():
		case e.Issuer == r.mesh.Founder:
			out = append([]Eviction{e}, out...)
		default:
			out = append(out, e)
		}
	}
	return out
}
