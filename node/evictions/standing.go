package evictions

import (
	"context"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Protocol is a request that is open to strangers: somebody whom nobody admits any more
// learns of the evictions that are about it.
const Protocol = "/mutirao/standing/1.0.0"

// Tell answers [Protocol] with a frame: the evictions of a partner, and those of the
// issuer of the certificate that it was listed with.
func (t *Topic) Tell(p workflow.PartnerID, _ []byte) ([]byte, error) {
	about := []workflow.PartnerID{p}
	if x, ok := t.in.Members.Get(p); ok {
		about = append(about, x.Record.Chain.Leaf().Issuer)
	}
	return wire.Encode(&wire.Message{Evictions: &wire.Records{List: t.about(about...)}})
}

const (
	askAfter    = 500 * time.Millisecond // of having lost the last connection
	askAgain    = 10 * time.Second       // well within the time that others bear a stranger
	askPatience = 2 * time.Second
	askMost     = 3 // partners
)

// Alone plans to ask why, when the last connection is gone.
func (t *Topic) Alone() {
	t.mu.Lock()
	if len(t.in.Peers.UpPeers()) == 0 {
		t.askAt = t.in.Clock.Now().Awake + askAfter
	}
	t.mu.Unlock()
	t.in.Nudge()
}

// askDue asks, beside what goes on, if it is time to; it returns after what
// time to call it again.
func (t *Topic) askDue() time.Duration {
	t.mu.Lock()
	now, at := t.in.Clock.Now().Awake, t.askAt
	alone := len(t.in.Peers.UpPeers()) == 0
	due := alone && at > 0 && now >= at
	if due {
		t.askAt = now + askAgain
	}
	t.mu.Unlock()
	if due {
		t.in.Aside(func() { t.Ask(context.Background()) })
	}
	if due || !alone || at == 0 {
		return askAgain
	}
	return at - now
}

// Ask asks some partners whether they hold evictions that are about this node, and takes
// these in. Those who seem to be gone are asked too: to one whom nobody admits all others
// expire. Their word is not taken: evictions are signed.
func (t *Topic) Ask(ctx context.Context) {
	if !t.in.Peers.Asks() {
		return
	}
	all := t.in.Members.All()
	first := min(int(t.in.Chance()*float64(len(all))), len(all)) // else it were always the same few
	asked := 0
	for _, p := range slices.Concat(all[first:], all[:first]) {
		id := p.Record.Partner
		if id == t.in.Self || p.State == membership.Evicted || asked == askMost {
			continue
		}
		asked++
		if t.ask(ctx, id, p.Record.Addresses) {
			return
		}
	}
}

// ask reports whether a partner answered.
func (t *Topic) ask(ctx context.Context, id workflow.PartnerID, addrs []string) bool {
	b, err := t.in.Peers.Request(ctx, id, addrs, Protocol, nil, askPatience)
	if err != nil {
		return false
	}
	m, err := wire.Decode(b)
	if err != nil || m.Evictions == nil {
		return false
	}
	t.takeList(id, m.Evictions.List)
	return true
}
