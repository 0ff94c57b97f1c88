package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about times in which this node did not run. Its waits go on after one, and it judges nothing before it
// has heard from partners what happened meanwhile, or has waited for that for long enough.

// Break is what a node knows of a time in which it did not run.
type Break struct {
	Waits  waits.Stored  // as they were stored
	Passed time.Duration // since then
	Now    Moment
	Quiet  time.Duration // nothing is judged before (Boot), unless partners are heard (Heard)
}

// Resume is Load after a break. The waits go on from the facts that were looked at for them,
// and then come the others, as they would have come had the node run on.
func (m *Machine) Resume(facts []fact.Received, owe bool, b Break) error {
	known := min(max(b.Waits.Known-m.Len(), 0), len(facts)) // the genesis is here
	if err := m.Load(facts[:known], owe); err != nil {
		return err
	}
	m.RestoreWaits(b)
	return m.Load(facts[known:], owe)
}

// RestoreWaits puts back the waits of before a break. If those facts are not here that were
// looked at for them, it is not known for which tasks of others time was counted: then it
// begins again.
func (m *Machine) RestoreWaits(b Break) {
	m.clocks.quiet = b.Quiet
	m.clocks.Restore(b.Waits, b.Passed, b.Now.Boot, m.Len())
	m.clocks.outdated = true
	for k, c := range m.clocks.Others() {
		if k.Kind == waits.Answer {
			p := workflow.PartitionName(k.Name)
			left := m.unfinishedIn(p)
			if m.mayWait(p) {
				left = m.mayJudge(p)
			}
			part := m.look().part(p)
			c.Note = noted{of: working(left), joined: part.joined, over: part.over}
		}
	}
}

// Gap tells the machine that this node did not run for a while (suspended,
// stopped): nothing is judged before quiet (Boot), or soon after Heard.
func (m *Machine) Gap(quiet time.Duration) {
	m.clocks.quiet, m.clocks.heard = max(m.clocks.quiet, quiet), 0
}

// Heard tells the machine that it heard from a partner. That ends a gap a little
// later, if all that partners then say they have is here.
func (m *Machine) Heard(now Moment) {
	if m.clocks.heard == 0 {
		m.clocks.heard = now.Boot
	}
}

// settling is how long after its first words with a partner this node hears the
// others, too, before it concludes that a gap brought nothing more.
const settling = time.Second

// calm is the moment (Boot) from which this node may judge after a gap.
func (o outlook) calm() time.Duration {
	c := &o.clocks
	if o.now.Boot >= c.quiet || c.heard == 0 || o.lacks() {
		return c.quiet
	}
	return min(c.quiet, c.heard+settling)
}

// lacks reports whether a partner said that it has a fact that is not here.
func (m *Machine) lacks() bool {
	for _, p := range m.peers {
		if !m.HasAll(p.heads) {
			return true
		}
	}
	return false
}
