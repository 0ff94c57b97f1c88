package node

import (
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// IsHere reports whether a node has an instance, as what asks for its files goes by.
func IsHere(n *Node, instance string) bool { return n.filing.Here(instance) }

// Doubt has what machines ask about proofs go through fn; where that panics, the node goes on.
func Doubt(p *Parts, fn func(state.Trust) state.Trust) { p.trust, p.Loud = fn, false }

// Tear leaves the machine of an instance in memory without its parts, so that it panics.
func Tear(n *Node, id workflow.InstanceID) {
	done := make(chan struct{})
	n.crew.post(n.crew.shardOf(id), event{look: func(s *shard) {
		s.held[id].m = new(choreo.Machine)
		close(done)
	}})
	<-done
}

// Hold keeps a node's shards from doing anything until release is called: what comes
// meanwhile is done in one round.
func Hold(n *Node) (release func()) {
	held := make(chan struct{})
	for _, s := range n.crew.shards {
		at := make(chan struct{})
		n.crew.post(s, event{look: func(*shard) { close(at); <-held }})
		<-at
	}
	return func() { close(held) }
}

// TouchAll has all instances of a node worked out again.
func TouchAll(n *Node) { n.instances.touchAll() }

// WaitingOf is how many bytes of a partner's facts wait for a node's shards.
func WaitingOf(n *Node, p workflow.PartnerID) int {
	l, _ := n.instances.link(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// Choices are the partners as the instances' machines ask about them.
func (n *Node) Choices() choreo.Partners { return n.desk.partners }

// GivenOut is what the ledger has of work that mechanisms gave out: each partner's, and
// what each was given last.
func (n *Node) GivenOut() string {
	out := n.instances.ledger.String()
	for _, p := range n.people.All() {
		out = strings.ReplaceAll(out, string(p.Record.Partner), n.people.name(p.Record.Partner))
	}
	return out
}
