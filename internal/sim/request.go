package sim

import (
	"context"
	"errors"
	"time"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file carries requests: a partner is asked at once and answers at once, unless the link loses
// the question or the answer. A question may come once more, late, or come to somebody else besides.

// asker is a node's way to ask others.
type asker struct{ m *machine }

// refusal is what the other side says in place of an answer (invitation.Answer).
type refusal struct{ error }

// Answer is what it says.
func (r refusal) Answer() string { return r.Error() }

var errNoAnswer = errors.New("simulated: no answer")

// Request asks a partner.
func (a asker) Request(
	_ context.Context, p workflow.PartnerID, _ []string, protocol string, req []byte,
) ([]byte, error) {
	w := a.m.w
	j, ok := w.who(p)
	if !ok || w.links[pair(a.m.i, j)] == nil || a.m.silent || w.nodes[j].silent {
		return nil, errNotConnected
	}
	w.traced("n%d asks n%d %s %x", a.m.i, j, protocol, req)
	w.out.Requests++
	if protocol == worklists.ProtocolClaim {
		if w.rival != nil {
			w.rival(w.nodes[j])
		}
		w.overhear(a.m, w.nodes[j], req)
		w.repeat(a.m, j, req)
	}
	if w.lost(a.m.i, j) {
		return nil, errNoAnswer
	}
	out, err := w.ask(a.m, w.nodes[j], protocol, req)
	if w.lost(j, a.m.i) {
		return nil, errNoAnswer
	}
	return out, err
}

// lost reports whether what one says to another does not arrive.
func (w *world) lost(i, j int) bool {
	return w.cut[[2]int{i, j}] > 0 || w.lossy > 0 && w.r.IntN(6) == 0
}

// ask has a machine answer another. One that is paused does so later, when nobody listens any more.
func (w *world) ask(from, to *machine, protocol string, req []byte) (out []byte, err error) {
	n, answer := to.node, to.answers[protocol]
	if n == nil || answer == nil {
		return nil, errNoAnswer
	}
	if to.paused > 0 {
		to.late = append(to.late, func() {
			if to.node == n {
				_, _ = w.ask(from, to, protocol, req)
			}
		})
		return nil, errNoAnswer
	}
	w.guard(to, func() { out, err = answer(from.id, req) })
	if to.node != n {
		return nil, errNoAnswer // it crashed
	}
	w.at(w.now, func() { w.step(to) })
	if err != nil {
		return nil, refusal{err}
	}
	return out, nil
}

// repeat has a person's word come once more, now and then: to the same partner, late, or to another.
func (w *world) repeat(from *machine, j int, req []byte) {
	to, after := j, time.Duration(w.people.Int64N(int64(10*time.Minute)))
	switch w.people.IntN(16) {
	case 0:
	case 1:
		to = w.people.IntN(len(w.nodes))
	default:
		return
	}
	w.at(w.now+after, func() {
		if !w.hushed && to != from.i && !from.silent && !w.nodes[to].silent && w.links[pair(from.i, to)] != nil && !w.lost(from.i, to) {
			_, _ = w.ask(from, w.nodes[to], worklists.ProtocolClaim, req)
		}
	})
}

// overhear keeps the words that people gave at a machine, or that came to it: what a member that lies can
// use.
func (w *world) overhear(from, to *machine, req []byte) {
	c, err := wire.DecodeSpoken(req)
	if err != nil {
		w.violate("n%d asks what cannot be read: %v", from.i, err)
		return
	}
	for _, m := range []*machine{from, to} {
		m.overheard = append(m.overheard, c)
	}
}
