package election

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ErrLowerOffice tells that a coordinator's office was outranked.
var ErrLowerOffice = errors.New("a higher office is known")

// Office is what a coordinator is elected to. Offices are compared by term,
// then number of the electorate, then its hash.
type Office struct {
	Term   uint64   `cbor:"1,keyasint"`
	Number uint64   `cbor:"2,keyasint"`
	List   ListHash `cbor:"3,keyasint"`
}

// Compare is negative if o is lower than p, positive if higher.
func (o Office) Compare(p Office) int {
	return cmp.Or(cmp.Compare(o.Term, p.Term), cmp.Compare(o.Number, p.Number), bytes.Compare(o.List[:], p.List[:]))
}

// String names o to people.
func (o Office) String() string { return fmt.Sprintf("term %d of electorate %d", o.Term, o.Number) }

// of reports whether o belongs to list l.
func (o Office) of(l Electorate) bool { return o.Number == l.Number && o.List == l.Hash() }

// Vote is a voter's signed word for a candidate, which anybody can check.
type Vote struct {
	Office    Office             `cbor:"1,keyasint"`
	Candidate workflow.PartnerID `cbor:"2,keyasint"`
	Voter     Voter              `cbor:"3,keyasint"`
	Signature []byte             `cbor:"4,keyasint,omitempty"`
}

const voteDomain = "vote"

func (v Vote) body() []byte {
	v.Signature = nil
	return codec.Encode(v)
}

func (v Vote) sign(key ed25519.PrivateKey) Vote {
	v.Signature = trust.Sign(key, voteDomain, v.body())
	return v
}

// verify checks that v was given by a voter of l, in l.
func (v Vote) verify(l Electorate) error {
	if !v.Office.of(l) || v.Office.Term < l.First() {
		return said.Errorf("vote of %s is for %s, not in electorate %d from term %d", v.Voter.Partner, v.Office,
			l.Number, l.First())
	}
	if !l.Has(v.Voter) {
		return said.Errorf("vote of %s, who has none in electorate %d: %w", v.Voter.Partner, l.Number,
			trust.ErrNotAllowed)
	}
	return trust.Verify(v.Voter.Partner, voteDomain, v.body(), v.Signature)
}

// Mandate proves that Holder was elected to Office. It does not prove that it
// still holds it.
type Mandate struct {
	Office Office             `cbor:"1,keyasint"`
	Holder workflow.PartnerID `cbor:"2,keyasint"`
	Votes  []Vote             `cbor:"3,keyasint"` // of a majority, sorted by voter
}

// compare is negative if n outranks m: by its office, and by its holder where voters
// that voted for two had two elected in one office, so that all come to follow the same.
func (m Mandate) compare(n Mandate) int {
	return cmp.Or(m.Office.Compare(n.Office), cmp.Compare(m.Holder, n.Holder))
}

// outranks says of m, which is proven, why nobody acts in the office of lower any more:
// also who voted for both.
func (m Mandate) outranks(lower Mandate) error {
	format, args := "%w: %s, held by %s", []any{ErrLowerOffice, m.Office, m.Holder}
	for _, v := range m.Votes {
		if slices.ContainsFunc(lower.Votes, func(u Vote) bool { return u.Office == v.Office && u.Voter == v.Voter }) {
			format, args = format+"; %s voted for both", append(args, v.Voter.Partner)
		}
	}
	return said.Errorf(format, args...)
}

// Verify checks the votes against electorate l, which is proven by its lineage.
func (m Mandate) Verify(l Electorate) error {
	if len(m.Votes) < l.Majority() || len(m.Votes) > len(l.Voters) {
		return said.Errorf("%s claims %s with %d votes: want %d", m.Holder, m.Office, len(m.Votes), l.Majority())
	}
	for i, v := range m.Votes {
		if v.Office != m.Office || v.Candidate != m.Holder {
			return said.Errorf("%s claims %s with a vote for %s and %s: %w", m.Holder, m.Office, v.Candidate, v.Office,
				trust.ErrForged)
		}
		if i > 0 && m.Votes[i-1].Voter.Partner >= v.Voter.Partner {
			return said.Errorf("%s claims %s with a vote of %s out of order or counted twice", m.Holder, m.Office,
				v.Voter.Partner)
		}
		if err := v.verify(l); err != nil {
			return err
		}
	}
	return nil
}

// mandate collects votes into the proof of an election.
func mandate(o Office, holder workflow.PartnerID, votes map[workflow.PartnerID]Vote) Mandate {
	m := Mandate{Office: o, Holder: holder}
	for _, v := range votes {
		m.Votes = append(m.Votes, v)
	}
	slices.SortFunc(m.Votes, func(a, b Vote) int { return comparePartner(a.Voter, b.Voter.Partner) })
	return m
}
