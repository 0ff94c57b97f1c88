package choreo

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about partners for whom nobody waits before what lost is undone
// (compensate.go): the fact that says so, what is known of it, and who says it.

// writeOffEvicted says that nobody is to wait for a participant that was
// evicted.
func (d *decision) writeOffEvicted() (added bool) {
	for _, p := range d.state.Participants() {
		if p == d.self || d.state.WrittenOff()[p] != nil || !d.partners.Evicted(p) {
			continue
		}
		proof := d.partners.Eviction(p)
		if d.answers() || (proof != nil && d.state.Trust() != nil && d.state.Trust().Evicted(p, proof) == nil) {
			_, err := d.append(fact.Body{WriteOff: &fact.WriteOff{Partner: p, Eviction: proof}})
			added = err == nil || added
		}
	}
	return added
}

// answers reports whether this node answers for the instance: it began it.
func (m *Machine) answers() bool { return m.self == m.log.Genesis().Fact.Chain.Author }

// Unanswerable is the error of an order that only the instance's initiator may
// give. It is an ErrNotNow.
type Unanswerable struct{ By workflow.PartnerID }

func (e *Unanswerable) Error() string {
	return fmt.Sprintf("%v: only %s, who began the instance, may write somebody off", state.ErrNotNow, e.By.Short())
}

func (e *Unanswerable) Unwrap() error { return state.ErrNotNow }

// MayWriteOff says why WriteOff would be refused; nil: it would not.
func (m *Machine) MayWriteOff(p workflow.PartnerID) error {
	switch {
	case !m.Participates(p):
		return fmt.Errorf("%w: it takes no part in the instance", state.ErrNotNow)
	case p == m.self:
		return fmt.Errorf("%w: this node cannot write itself off", state.ErrNotNow)
	case m.state.WrittenOff()[p] != nil:
		return fmt.Errorf("%w: it is written off already", state.ErrNotNow)
	case !m.answers():
		return &Unanswerable{By: m.log.Genesis().Fact.Chain.Author}
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
	_, err := m.deciding(now, nil).append(fact.Body{WriteOff: &fact.WriteOff{Partner: p}})
	return err
}
