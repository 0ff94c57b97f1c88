package gossip

import (
	"fmt"

	"github.com/hashicorp/memberlist"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// delegate is called by memberlist with its lock held: it only notes.
type delegate struct{ g *Gossip }

// NotifyAlive refuses a member that is not followed, or that comes under an
// address that is not its own: any member could have made it up.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	p := workflow.PartnerID(n.Name)
	if p != d.g.cfg.Mesh.ID() && !d.g.follows(p) {
		return fmt.Errorf("%s is not followed", p)
	}
	if !isOwn(p, n.Addr) || n.Port != port {
		return fmt.Errorf("%s claims the address %s", p, n.Address())
	}
	return nil
}

// NotifyJoin, NotifyLeave and NotifyUpdate are memberlist's verdicts.
func (d delegate) NotifyJoin(n *memberlist.Node) { d.note(n, true) }

// NotifyLeave: see NotifyJoin.
func (d delegate) NotifyLeave(n *memberlist.Node) { d.note(n, false) }

// NotifyUpdate: nothing of ours travels in memberlist's records.
func (d delegate) NotifyUpdate(*memberlist.Node) {}

func (d delegate) note(n *memberlist.Node, alive bool) {
	p := workflow.PartnerID(n.Name)
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	if m := d.g.members[p]; m != nil {
		m.alive = alive
		d.g.noteLocked(verdict{p, alive})
	}
}
