package node

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
)

// A node has two front doors. Begin and Run drive it with goroutines of its
// own; BeginStepped and Step drive the same code in the caller's goroutine, for
// simulation and tests: the caller decides what happens next. The store must
// then call done before Commit returns.

// BeginStepped is Begin for a node that is driven by Step.
func (n *Node) BeginStepped(to Network) error {
	n.executor = steps{}
	n.talkBy(to)
	if err := n.begin(); err != nil {
		return err
	}
	n.followAll()
	return nil
}

// Step does all that is due now, and returns after what time (awake) something
// will be due even if nothing happens before.
func (n *Node) Step() time.Duration {
	next := n.pulse()
	for again := true; again; {
		again = false
		for _, s := range n.shards {
			s.turn()
			again = again || len(s.local) > 0
		}
	}
	for _, s := range n.shards {
		next = min(next, s.pause())
	}
	return max(next, time.Millisecond)
}

// GoDown says what a node says that goes down in good order; Step must not follow.
func (n *Node) GoDown() { n.departure.depart(membership.GoesDown, 0) }

// GoesOn reports whether this node may still do something about an instance of its
// own accord, even if it has ended as far as is known (choreo.Machine.GoesOn).
func (n *Node) GoesOn(ctx context.Context, ref string) (yes bool, err error) {
	err = n.desk.look(ctx, ref, func(h *held) { yes = h.m.GoesOn() }, n.desk.onlyThere)
	return yes, err
}

// Fingerprint is all that this node derives from its facts of an instance, the
// same on every node with the same facts (choreo.Machine.Fingerprint).
func (n *Node) Fingerprint(ctx context.Context, ref string) (b []byte, err error) {
	err = n.desk.look(ctx, ref, func(h *held) { b = h.m.Fingerprint() }, n.desk.onlyThere)
	return b, err
}
