package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
)

// This file is about nodes that are disconnected on purpose for longer than their connection time, as they announced:
// they are back sooner than that, or later. Nobody may judge one to be gone before the time is over that it announced,
// of whoever was told of it, in whatever way.

// Absences is the first seed of claimed plans with such nodes.
const Absences = 20_400_000

// absent reports whether a plan has such nodes.
func (p *Plan) absent() bool { return p.Seed >= Absences && p.Seed < Equipped }

// leaves adds them to a plan. Nobody vanishes for good there: it might do so while others wait for it.
func (p *Plan) leaves(r *rand.Rand) {
	p.Faults = slices.DeleteFunc(p.Faults, func(f Fault) bool { return f.Kind == Gone })
	for range 1 + r.IntN(4) {
		at := p.Starts[r.IntN(len(p.Starts))].At + between(r, time.Second, 15*time.Minute*p.Scale)
		p.Faults = append(p.Faults, Fault{
			At: min(at, p.Length-time.Minute), Kind: Away, Node: r.IntN(p.Nodes), Other: r.IntN(3),
			For: between(r, p.ConnectionTime/2, 8*p.ConnectionTime).Round(time.Second),
		})
	}
}

// announced is for how long a node says that it is away: longer than it is, about as long, or less.
func (f Fault) announced() time.Duration {
	return []time.Duration{2 * f.For, f.For + time.Minute, f.For / 2}[f.Other%3]
}

// absence is what a machine was told of another's.
type absence struct {
	at, until time.Duration
	skew      time.Duration // of the hearer's wall clock then
	version   membership.Version
	// doubtful: the hearer may not know it any more as it was, after a restart, or heard of it when others might not.
	doubtful bool
}

// goesAway has a machine disconnect. It stays if it is not there, or its disk does not take it.
func (w *world) goesAway(m *machine, f Fault) (gone bool) {
	if m.node == nil || m.paused > 0 {
		return false
	}
	w.serve(m, func(n api.Service) {
		r := api.DisconnectRequest{For: api.Span(f.announced()), Accept: api.Acceptable}
		c, err := n.Disconnect(context.Background(), r)
		if gone = err == nil && c.State == api.IsDisconnected; !gone {
			_, _ = n.Reconnect(context.Background())
		}
	})
	return gone
}

// comesBack has a machine reconnect, as soon as it can.
func (w *world) comesBack(m *machine) {
	back := m.gone
	if m.node != nil && m.paused == 0 {
		w.serve(m, func(n api.Service) {
			c, err := n.Reconnect(context.Background())
			back = err == nil && c.State == api.IsConnected
		})
	}
	if !back {
		w.at(w.now+10*time.Second, func() { w.comesBack(m) })
	}
}

// comesBackAgain has a machine reconnect whose disk was put back to what it was while it was away: it stays so until
// somebody says otherwise.
func (w *world) comesBackAgain(m *machine) {
	if w.plan.absent() && m.away == 0 {
		w.at(w.now+10*time.Second, func() { w.comesBack(m) })
	}
}

// announces notes until when a machine is away by what it says.
func (m *machine) announces(msg *wire.Message) {
	if !m.w.plan.absent() {
		return
	}
	for _, b := range msg.Records {
		r, err := membership.DecodeRecord(b)
		if _, known := m.announced[r.Version]; err == nil && r.Partner == m.id && r.Away > 0 && !known {
			m.announced[r.Version] = m.w.now + r.Away
		}
	}
}

// hearsOfAbsence notes what a machine was told of another by a record that is new to it.
func (w *world) hearsOfAbsence(m *machine, r membership.Record) {
	i, ok := w.who(r.Partner)
	if !ok || !w.plan.absent() || r.Verify() != nil {
		return
	}
	delete(m.absent, i)
	if until, said := w.nodes[i].announced[r.Version]; said && r.Away > 0 {
		m.absent[i] = absence{
			at: w.now, until: until, skew: m.skew, version: r.Version, doubtful: m.disk.full || w.blurred[r.Version],
		}
	}
}

// doubts notes, as a machine starts, of which absences it may not know any more, or counts them otherwise: what it was
// told just before it ended, or while its disk was full, or where somebody set its clock since.
func (m *machine) doubts() {
	const written = 5 * time.Second
	for i, a := range m.absent {
		a.doubtful = a.doubtful || a.skew != m.skew || a.at > m.stopped-written || m.disk.full
		m.absent[i] = a
		if a.doubtful { // how old it is, which it says with it to others, is then what its clock makes of it
			m.w.blurred[a.version] = true
		}
	}
}
