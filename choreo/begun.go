package choreo

// A task that runs for long is READY at everybody who was not told of its start,
// and starts are told with what follows them (route.go). So the start of a task that
// still runs after a while is told by itself, to the partners that wait for the task
// and to those that judge; a task that ends before costs nothing. Like every message
// it brings all that its receiver lacks, so results for which nobody elsewhere waits
// go along.

// Begun reports whether something has begun here of which partners may have to be told later.
func (m *Machine) Begun() bool { return len(m.begun) > 0 }

// tellBegun owes the starts of what has run for long enough. Partners says when that
// is: the same moment for many, so that they go in one message.
func (d *decision) tellBegun() {
	for ; len(d.begun) > 0; d.begun = d.begun[1:] { // in the order of their times
		d.log.Steps++
		if at := d.partners.TellStart(d.begun[0].since); d.now.Boot < at {
			d.out.wake(at)
			return
		}
		a := d.state.Attempts()[d.begun[0].start.Fact.Body.Start.Attempt]
		if a == nil || !a.Runs() {
			continue
		}
		for p := range d.state.Awaiting(a) {
			d.tell(p, a.Start)
		}
		if judges := d.judges(); len(judges) > 0 {
			d.tell(judges[0], a.Start)
		}
	}
}
