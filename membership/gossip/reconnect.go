package gossip

import (
	"math/rand/v2"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// courtesy is how long a join may be delayed: when a whole team meets, others'
// joins make most of them needless.
const courtesy = 200 * time.Millisecond

func (g *Gossip) queueLocked(p workflow.PartnerID) {
	m := g.members[p]
	if m.queued || len(g.queue) > len(g.members) {
		return
	}
	m.queued = true
	g.queue = append(g.queue, p)
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// reconnect joins members that memberlist does not know or thinks dead: those
// who were met or heard at once, and now and then somebody by chance.
// memberlist itself forgets the dead, and two sides that think each other dead
// are silent.
func (g *Gossip) reconnect() {
	again := time.NewTimer(g.cfg.Timing.Rejoin)
	defer again.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-again.C:
			g.queueLost()
			again.Reset(g.cfg.Timing.Rejoin/2 + rand.N(g.cfg.Timing.Rejoin))
		case <-g.wake:
			if !g.pause(rand.N(courtesy)) {
				return
			}
			g.joinQueued()
		}
	}
}

// queueLost picks one connected partner that memberlist does not list.
func (g *Gossip) queueLost() {
	g.mu.Lock()
	defer g.mu.Unlock()
	var lost []workflow.PartnerID
	for p, m := range g.members {
		if !m.alive && g.cfg.Mesh.Connected(p) {
			lost = append(lost, p)
		}
	}
	if len(lost) > 0 {
		g.queueLocked(lost[rand.IntN(len(lost))])
	}
}

func (g *Gossip) joinQueued() {
	for g.ctx.Err() == nil {
		p, join, ok := g.next()
		if !ok {
			return
		}
		if !join {
			continue
		}
		if _, err := g.list.Join([]string{joinName(p)}); err != nil {
			g.cfg.Logger.Debug("cannot join", "partner", p, "error", err)
			g.cfg.Mesh.Doubt(p) // nobody probes a node that nobody has joined
		}
	}
}

// next takes the next partner from the queue; it may have been joined meanwhile.
func (g *Gossip) next() (p workflow.PartnerID, join, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		return "", false, false
	}
	p, g.queue = g.queue[0], g.queue[1:]
	m := g.members[p]
	if m != nil {
		m.queued = false
	}
	return p, m != nil && !m.alive, true
}

// watchSuspects has the mesh look after partners whom others cannot reach, well
// before memberlist's verdict: one that is there shows it, of one that is not
// the connection is cut.
func (g *Gossip) watchSuspects() {
	tick := time.NewTicker(g.cfg.Timing.Probe / 2)
	defer tick.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		for _, n := range g.list.Members() {
			if n.State == memberlist.StateSuspect {
				g.suspect(workflow.PartnerID(n.Name))
			}
		}
		g.reportMissing()
	}
}

// suspect acts on the suspicion that p is silent: where there is a connection,
// it will tell; where there is none, there is nothing to wait for.
func (g *Gossip) suspect(p workflow.PartnerID) {
	connected := g.cfg.Mesh.Connected(p)
	g.cfg.Mesh.Doubt(p)
	if !connected {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.noteLocked(verdict{p, false})
	}
}

// patience is for how many half probes somebody may be known by name only.
const patience = 4

// reportMissing finds members that we have only heard of: no connection came
// about, and memberlist has not seen them either, so that no verdict would ever
// come.
func (g *Gossip) reportMissing() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for p, m := range g.members {
		if m.alive || g.cfg.Mesh.Connected(p) {
			m.missing = 0
			continue
		}
		if m.missing++; m.missing%patience == 0 {
			g.noteLocked(verdict{p, false})
		}
	}
}

// noteLocked leaves a verdict for judge; one too many is lost, being a hint.
func (g *Gossip) noteLocked(v verdict) {
	select {
	case g.verdicts <- v:
	default:
	}
}

// judge hands verdicts over. A member that is silent for all others but answers
// us is not silent; one that answers others but has no connection with us is
// dialled.
func (g *Gossip) judge() {
	for {
		select {
		case <-g.ctx.Done():
			return
		case v := <-g.verdicts:
			connected := g.cfg.Mesh.Connected(v.partner)
			if connected != v.alive {
				g.cfg.Mesh.Doubt(v.partner)
			}
			if v.alive == connected {
				g.cfg.Handler.OnVerdict(v.partner, v.alive)
			}
		}
	}
}

func (g *Gossip) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-g.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
