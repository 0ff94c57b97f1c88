package choreo

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Unshared is what was done of a person's task at this node, of which no other participant is known to have the fact.
type Unshared struct {
	Task   *workflow.Task
	User   worklist.User // who did it; empty: the partner
	Failed bool
	Reason string
	At     int64 // ms, by this node's clock
}

// Unshares reports whether there is a fact of ours that nobody else is known to have.
func (m *Machine) Unshares() bool {
	for _, c := range m.log.ByAuthor()[m.self] {
		for _, s := range c.Strands {
			if s.End() > m.shared(s) {
				return true
			}
		}
	}
	return false
}

// shared is up to which fact of a strand somebody else is known to have it: by what peers said that they have or, as that
// does not outlive a restart, by what they wrote that names it as their past.
func (m *Machine) shared(s *log.Strand) (upTo uint64) {
	upTo = s.Base()
	for _, p := range m.peers {
		m.log.Steps++
		upTo = max(upTo, p.acked.At(s.Place))
	}
	for _, o := range m.log.Strands() {
		if o.Chain.ID.Author != m.self && len(o.Facts) > 0 {
			m.log.Steps++
			upTo = max(upTo, o.Facts[len(o.Facts)-1].Others.At(s.Place))
		}
	}
	return upTo
}

// Unshared are they, as they were done. What somebody did at another node, who was told that it is durable here, is
// none.
func (m *Machine) Unshared() (out []Unshared) {
	for _, c := range m.log.ByAuthor()[m.self] {
		for _, s := range c.Strands {
			from := m.shared(s)
			for _, e := range s.Facts {
				if e.Fact.Seq <= from || !e.Counted {
					continue
				}
				m.log.Steps++
				if x, is := m.doneBy(e); is {
					out = append(out, x)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(x, y Unshared) int { return cmp.Compare(x.At, y.At) })
	return out
}

// doneBy is what a fact of ours says that somebody did of a person's task.
func (m *Machine) doneBy(e *log.Entry) (x Unshared, is bool) {
	x.At = e.Fact.At
	of := func(id fact.AttemptID) bool {
		a := m.state.Attempts()[id]
		if a != nil {
			x.Task = a.Task
		}
		return a != nil && !a.Task.ByNode() && a.Partner == m.self
	}
	// claimed: its end follows from what somebody brought or ordered.
	claimed := func(id fact.AttemptID) bool {
		_, _, brought := m.state.Work().Taken(state.ItemOf(id))
		_, stopped := m.state.Work().Stopped(state.ItemOf(id))
		return brought || stopped
	}
	switch b := e.Fact.Body; {
	case b.Claim != nil:
		r, brings := b.Claim.Body().(worklist.Result)
		if !brings || e.Speaker().At != m.self {
			return x, false
		}
		x.User, x.Failed, x.Reason = e.Speaker().User, r.Failed, r.Reason
		return x, of(fact.AttemptIDOf(r.Item)) && !m.keptOnly(r.Item, e)
	case b.Success != nil && b.Start == nil: // else it was done in the step in which it began
		return x, of(b.Success.Attempt) && !claimed(b.Success.Attempt)
	case b.Verdict != nil && b.Verdict.Cause == fact.CauseReported:
		x.Failed, x.Reason = true, b.Verdict.Reason
		for _, act := range b.Verdict.Actions {
			if of(act.Attempt) && !claimed(act.Attempt) {
				return x, true
			}
		}
	}
	return x, false
}

// keptOnly reports whether a result does not count, or not yet: nobody waits for it.
func (m *Machine) keptOnly(i worklist.Item, e *log.Entry) bool {
	v, _ := m.state.Work().View(i)
	return slices.ContainsFunc(v.Works, func(w worklist.Work) bool {
		return fact.ID(w.ID) == e.ID && !w.Counts
	})
}
