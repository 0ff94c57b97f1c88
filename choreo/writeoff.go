package choreo

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about partners for whom nobody waits before what lost is undone
// (compensate.go): the fact that says so, what is known of it, and who says it.

// WriteOff says that nobody is to wait any more for what a partner may have done
// unheard, before superseded work is compensated: it was evicted, or the partner
// that answers for the instance gave it up.
type WriteOff struct {
	_       struct{} `cbor:",toarray"`
	Partner workflow.PartnerID
	// Eviction proves that the partner was evicted (trust.EncodeEviction);
	// empty: by order of the instance's initiator.
	Eviction []byte
}

func (b *WriteOff) kind() string { return "write-off" }

func (b *WriteOff) validate(workflow.PartnerID) error {
	if n := len(b.Eviction); n > trust.MaxEviction {
		return fmt.Errorf("an eviction of %d bytes, at most %d", n, trust.MaxEviction)
	}
	return names(b.Partner)
}

func (s *State) enterWriteOff(b *WriteOff, e *entry) (why string) {
	if why = s.mayWriteOff(b, e); why == "" {
		s.writtenOff[b.Partner] = earlier(s.writtenOff[b.Partner], e)
	}
	return why
}

// mayWriteOff says why a partner may not be written off by a fact; "": it may, by the
// instance's initiator, who answers for it, or because it was evicted.
func (s *State) mayWriteOff(b *WriteOff, e *entry) (why string) {
	switch {
	case !s.tookPart(b.Partner, e):
		return "it writes off somebody who takes no part"
	case e.fact.Chain.Author == s.log.genesis.fact.Chain.Author:
		return ""
	case len(b.Eviction) == 0:
		return "its author does not answer for the instance"
	}
	if !e.checked {
		e.checked = true
		if e.untrue = errNoTrust; s.trust != nil {
			e.untrue = s.trust.Evicted(b.Partner, b.Eviction)
		}
	}
	if e.untrue != nil {
		return "it does not prove the eviction"
	}
	return ""
}

// writeOffEvicted says that nobody is to wait for a participant that was
// evicted.
func (d *decision) writeOffEvicted() (added bool) {
	for _, p := range d.state.Participants() {
		if p == d.self || d.state.writtenOff[p] != nil || !d.partners.Evicted(p) {
			continue
		}
		proof := d.partners.Eviction(p)
		if d.answers() || (proof != nil && d.state.trust != nil && d.state.trust.Evicted(p, proof) == nil) {
			_, err := d.append(Body{WriteOff: &WriteOff{Partner: p, Eviction: proof}})
			added = err == nil || added
		}
	}
	return added
}

// answers reports whether this node answers for the instance: it began it.
func (m *Machine) answers() bool { return m.self == m.log.genesis.fact.Chain.Author }

// Unanswerable is the error of an order that only the instance's initiator may
// give. It is an ErrNotNow.
type Unanswerable struct{ By workflow.PartnerID }

func (e *Unanswerable) Error() string {
	return fmt.Sprintf("%v: only %s, who began the instance, may write somebody off", ErrNotNow, e.By.Short())
}

func (e *Unanswerable) Unwrap() error { return ErrNotNow }

// MayWriteOff says why WriteOff would be refused; nil: it would not.
func (m *Machine) MayWriteOff(p workflow.PartnerID) error {
	switch {
	case !m.Participates(p):
		return fmt.Errorf("%w: it takes no part in the instance", ErrNotNow)
	case p == m.self:
		return fmt.Errorf("%w: this node cannot write itself off", ErrNotNow)
	case m.state.writtenOff[p] != nil:
		return fmt.Errorf("%w: it is written off already", ErrNotNow)
	case !m.answers():
		return &Unanswerable{By: m.log.genesis.fact.Chain.Author}
	case !m.heeded():
		return errUnheeded
	}
	return nil
}

// WriteOff records that nobody is to wait any more for what a partner may have
// done unheard: the node that answers for the instance gives its part up.
func (m *Machine) WriteOff(p workflow.PartnerID, now Moment) error {
	if err := m.MayWriteOff(p); err != nil {
		return err
	}
	_, err := m.deciding(now, nil).append(Body{WriteOff: &WriteOff{Partner: p}})
	return err
}
