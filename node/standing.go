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
func (t *trust) checkStanding() error {
	err := t.people.standing()
	why := ""
	if err != nil {
		why = "no member: " + t.people.say(err)
	}
	t.troubles.note("membership", why)
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
func (t *trust) tellStanding(p workflow.PartnerID, _ []byte) ([]byte, error) {
	return wire.Encode(&wire.Message{Evictions: &wire.Evictions{List: t.people.evictionsAbout(p)}})
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
func (t *trust) alone() {
	t.mu.Lock()
	if len(t.upPeers()) == 0 {
		t.askAt = t.clock.Now().Awake + askAfter
	}
	t.mu.Unlock()
	t.nudge()
}

// askDue asks, beside what goes on, if it is time to; it returns after what
// time to call it again.
func (t *trust) askDue() time.Duration {
	t.mu.Lock()
	now, at := t.clock.Now().Awake, t.askAt
	alone := len(t.upPeers()) == 0
	due := alone && at > 0 && now >= at
	if due {
		t.askAt = now + askAgain
	}
	t.mu.Unlock()
	if due {
		t.aside.side(func() { t.askStanding(context.Background()) })
	}
	if due || !alone || at == 0 {
		return askAgain
	}
	return at - now
}

// askStanding asks some partners whether they hold evictions that are about
// this node, and takes these in. Those who seem to be gone are asked too: to one
// whom nobody admits all others expire. Their word is not taken: evictions are signed.
func (t *trust) askStanding(ctx context.Context) {
	if !t.asks() {
		return
	}
	all := t.people.all()
	first := min(int(t.chance()*float64(len(all))), len(all)) // else it were always the same few
	asked := 0
	for _, p := range slices.Concat(all[first:], all[:first]) {
		id := p.Record.Partner
		if id == t.member.ID() || p.State == membership.Evicted || asked == askMost {
			continue
		}
		asked++
		if t.ask(ctx, id, p.Record.Addresses) {
			return
		}
	}
}

// ask reports whether a partner answered.
func (t *trust) ask(ctx context.Context, id workflow.PartnerID, addrs []string) bool {
	b, err := t.request(ctx, id, addrs, protocolStanding, nil, askPatience)
	if err != nil {
		return false
	}
	m, err := wire.Decode(b)
	if err != nil || m.Evictions == nil {
		return false
	}
	t.takeEvictions(id, &wire.Evictions{List: m.Evictions.List})
	return true
}

// admit judges what a peer showed.
func (t *trust) admit(p workflow.PartnerID, hello []byte) error {
	if len(hello) == 0 {
		return errNoMember // somebody who wants to join
	}
	err := t.people.admit(p, hello)
	if err != nil {
		t.refuse("stranger."+whyNot(err), p)
	}
	return err
}
