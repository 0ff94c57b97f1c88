package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Two facts with one number of one chain prove a fork: a lying author, or a
// store that was restored without anybody noticing. The chain stops there; the
// facts from the fork on count only where a counted fact of another author has
// them in its past (design.md, idea 1), so that what others built upon stays.
// That author must have taken part from the start: a fork could appoint others.

// counting says which facts count; nil: all do.
func (l *Log) counting() map[*entry]bool {
	if !l.forked {
		return nil
	}
	counts := make(map[*entry]bool, len(l.order))
	vouchers := make(map[*entry]*voucher, len(l.order))
	original := map[workflow.PartnerID]bool{}
	for _, p := range l.genesis.fact.Body.Genesis.Succession {
		original[p] = true
	}
	for _, e := range slices.Backward(l.order) { // effects before causes
		v := vouchers[e]
		at := l.chains[e.chain].forkedAt
		author := e.fact.Chain.Author
		if at == 0 || e == l.genesis || e.fact.Seq < at || v.otherThan(author) {
			counts[e] = true
			if original[author] {
				v = v.with(author)
			}
		}
		for _, p := range e.parents {
			vouchers[p] = vouchers[p].and(v)
		}
	}
	return counts
}

// voucher is a set of authors of which two are enough: whether it holds
// another than a given one can be told.
type voucher [2]workflow.PartnerID

func (v *voucher) otherThan(p workflow.PartnerID) bool {
	return v != nil && ((v[0] != "" && v[0] != p) || (v[1] != "" && v[1] != p))
}

func (v *voucher) with(p workflow.PartnerID) *voucher {
	switch {
	case v == nil || v[0] == "":
		return &voucher{p}
	case v[0] == p || v[1] == p || v[1] != "":
		return v
	}
	return &voucher{v[0], p}
}

func (v *voucher) and(o *voucher) *voucher {
	if o == nil {
		return v
	}
	for _, p := range o {
		if p != "" {
			v = v.with(p)
		}
	}
	return v
}

// Forks are the chains that are proven to be forked, with the first number
// that two facts have.
func (l *Log) Forks() []Head {
	var out []Head
	for _, c := range l.chains {
		if c.forkedAt > 0 {
			out = append(out, Head{Chain: c.id, Seq: c.forkedAt})
		}
	}
	slices.SortFunc(out, Head.compare)
	return out
}
