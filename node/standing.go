package node

import (
	"context"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// checkStanding notes as trouble what keeps others from admitting this node,
// and returns it.
func (n *Node) checkStanding() error {
	err := n.people.standing()
	why := ""
	if err != nil {
		why = "no member: " + n.people.say(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		delete(n.trouble, "membership")
		return nil
	}
	n.trouble["membership"] = why
	return err
}

// standing says why this node would not be admitted, if so.
func (p *people) standing() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.member.Chain.Current(p.clock.Now().Wall, p.evicted)
}

// protocolStanding is a request that is open to strangers: somebody whom
// nobody admits any more learns of the evictions that are about it.
const protocolStanding = "/mutirao/standing/1.0.0"

// tellStanding answers protocolStanding with a frame.
func (n *Node) tellStanding(p workflow.PartnerID, _ []byte) ([]byte, error) {
	return wire.Encode(&wire.Message{Evictions: &wire.Evictions{List: n.people.evictionsAbout(p)}})
}

// evictionsAbout are the encoded evictions of a partner, and those of the
// issuer of the certificate that it was listed with.
func (p *people) evictionsAbout(id workflow.PartnerID) [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	about := []workflow.PartnerID{id}
	if x, ok := p.list.Get(id); ok {
		about = append(about, x.Record.Chain.Leaf().Issuer)
	}
	var out [][]byte
	size := 0
	for _, e := range p.evicted.All() {
		if e.Partner != about[0] && e.Partner != about[len(about)-1] {
			continue
		}
		b := membership.EncodeEviction(e)
		if size += len(b); size > maxEvictionBytes {
			break
		}
		out = append(out, b)
	}
	return out
}

const (
	askAfter    = 500 * time.Millisecond // of having lost the last connection
	askAgain    = 10 * time.Second       // well within the time that others bear a stranger
	askPatience = 2 * time.Second
	askMost     = 3 // partners
)

// alone plans to ask why, when the last connection is gone.
func (n *Node) alone() {
	n.mu.Lock()
	if len(n.isUp) == 0 {
		n.askAt = n.clock.Now().Awake + askAfter
	}
	n.mu.Unlock()
	n.nudge()
}

// askDue asks, beside what goes on, if it is time to; it returns after what
// time to call it again.
func (n *Node) askDue() time.Duration {
	n.mu.Lock()
	now, at := n.clock.Now().Awake, n.askAt
	alone := len(n.isUp) == 0
	due := alone && at > 0 && now >= at
	if due {
		n.askAt = now + askAgain
	}
	n.mu.Unlock()
	if due {
		n.side(func() { n.askStanding(context.Background()) })
	}
	if due || !alone || at == 0 {
		return askAgain
	}
	return at - now
}

// askStanding asks some partners whether they hold evictions that are about
// this node, and takes these in. Those who seem to be gone are asked too: to one
// whom nobody admits all others expire. Their word is not taken: evictions are signed.
func (n *Node) askStanding(ctx context.Context) {
	r, can := n.carrier.(Requester)
	if !can {
		return
	}
	all := n.people.all()
	first := min(int(n.chance()*float64(len(all))), len(all)) // else it were always the same few
	asked := 0
	for _, p := range slices.Concat(all[first:], all[:first]) {
		id := p.Record.Partner
		if id == n.member.ID() || p.State == membership.Evicted || asked == askMost {
			continue
		}
		asked++
		if n.ask(ctx, r, id, p.Record.Addresses) {
			return
		}
	}
}

// ask reports whether a partner answered.
func (n *Node) ask(ctx context.Context, r Requester, id workflow.PartnerID, addrs []string) bool {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	b, err := r.Request(ctx, id, addrs, protocolStanding, nil)
	if err != nil {
		return false
	}
	m, err := wire.Decode(b)
	if err != nil || m.Evictions == nil {
		return false
	}
	n.takeEvictions(id, &wire.Evictions{List: m.Evictions.List})
	return true
}
