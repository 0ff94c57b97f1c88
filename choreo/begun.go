package choreo

import "time"

// A task that runs for long is READY at everybody who was not told of its start,
// and starts are told with what follows them (route.go). So the start of a task that
// still runs after a while is told by itself, to the partners that wait for the task
// and to those that judge; a task that ends before costs nothing. Like every message
// it brings all that its receiver lacks, so results for which nobody elsewhere waits
// go along.

// begun is a start of which nobody may know yet.
type begun struct {
	start *entry
	since time.Duration // Boot
}

// tellBegun owes the starts of what has run for long enough. Partners says when that
// is: the same moment for many, so that they go in one message.
func (m *Machine) tellBegun(now Moment, partners Partners, r *Ready) {
	for ; len(m.begun) > 0; m.begun = m.begun[1:] { // in the order of their times
		m.log.steps++
		if at := partners.TellStart(m.begun[0].since); now.Boot < at {
			r.wake(at)
			return
		}
		a := m.state.attempts[m.begun[0].start.fact.Body.Start.Attempt]
		if a == nil || !a.runs() {
			continue
		}
		for p := range m.awaiting(a) {
			m.tell(p, a.start)
		}
		if judges := m.judges(partners); len(judges) > 0 {
			m.tell(judges[0], a.start)
		}
	}
}
