package node

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// trust is who is let in: evictions, which partners keep equal among them, and the
// certificates that are renewed before they end, this node's own among them.
type trust struct {
	*contacts
	people *people
	aside  sideline
	// certified is called when this node has another certificate.
	certified func() error

	next time.Duration // Awake: when certificates are looked at again

	mu    sync.Mutex    // guards askAt
	askAt time.Duration // Awake at which to ask why nobody is connected; 0: never
}

// sideline does something beside what goes on.
type sideline interface{ side(fn func()) }

// greet says which evictions are known here.
func (t *trust) greet(_ workflow.PartnerID, m *wire.Message) { m.Evictions = t.evictionDigest() }

// take takes in evictions, and this node's own new certificate.
func (t *trust) take(p workflow.PartnerID, m *wire.Message) {
	t.takeEvictions(p, m.Evictions)
	t.takeRenewal(p, m.Renewal)
}

// tick renews what is near its end, compares evictions, and asks why nobody is connected.
func (t *trust) tick(now membership.Now) time.Duration {
	if now.Awake >= t.next {
		t.next = now.Awake + sweepEvery
		t.sweep()
	}
	return min(t.next-now.Awake, t.askDue())
}

// evict removes a member for good: the eviction is made durable, sent to every
// connected partner, and cuts the connections to those that it concerns.
func (t *trust) evict(r api.EvictRequest) (*api.Evicted, error) {
	id, err := t.people.resolveWhole(r.Partner)
	if err != nil {
		return nil, err
	}
	e, events, err := t.people.evict(id, r.Reason)
	if err != nil {
		return nil, err
	}
	t.shareEvictions([][]byte{membership.EncodeEviction(e)}, "")
	t.enforce(events)
	out := &api.Evicted{Name: t.people.name(id), ID: id, Voided: []string{}}
	for _, ev := range events {
		if ev.Kind == membership.EventEvicted && ev.Partner != id {
			out.Voided = append(out.Voided, t.people.name(ev.Partner))
		}
	}
	return out, nil
}

// mayAdminister tells an *api.Error unless this node is the founder or a
// delegate in good standing. The caller holds p.mu.
func (p *people) mayAdminister(what string) error {
	leaf := p.member.Chain.Leaf()
	if p.member.ID() == p.member.Mesh.Founder || leaf.Delegate && p.evicted.Check(p.member.Chain) == nil {
		return nil
	}
	return api.Errorf(api.NotAllowed, "%s may not %s: only the founder and delegates of mesh %s may", leaf.Name, what, p.member.Mesh.Name).
		WithHint("ask the founder or a delegate")
}

// mayChangeVoters tells an *api.Error unless this node may.
func (p *people) mayChangeVoters() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mayAdminister("change who may vote")
}

// evict signs, stores and lists an eviction.
func (p *people) evict(id workflow.PartnerID, reason string) (membership.Eviction, []membership.Event, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.mayAdminister("evict"); err != nil {
		return membership.Eviction{}, nil, err
	}
	if id == p.member.ID() {
		return membership.Eviction{}, nil, api.Errorf(api.Refused, "a node does not evict itself").WithHint("stop it, and have another member evict it")
	}
	if id == p.member.Mesh.Founder {
		return membership.Eviction{}, nil, api.Errorf(api.NotAllowed, "nobody evicts the founder").WithHint("to have another founder, found another mesh")
	}
	var listed []membership.Chain
	for _, x := range p.list.Partners() {
		listed = append(listed, x.Record.Chain)
	}
	e, err := p.issuer().Evict(membership.Eviction{Partner: id, Reason: reason, At: membership.WallOf(p.clock.Now().Wall)}, p.evicted, listed)
	switch {
	case errors.Is(err, membership.ErrNotAllowed):
		return e, nil, api.Errorf(api.NotAllowed, "%v", err)
	case err != nil:
		return e, nil, api.Errorf(api.Invalid, "%v", err)
	}
	if err := p.store.CommitWait([]kv.Write{evictionWrite(e)}); err != nil {
		return e, nil, err
	}
	_, err = p.evicted.Add(e)
	return e, p.list.Review(p.clock.Now()), err
}

func evictionWrite(e membership.Eviction) kv.Write {
	return kv.Write{Key: evictionKey(e.ID()), Value: membership.EncodeEviction(e)}
}

// loadEvictions reads what is stored.
func (p *people) loadEvictions() error {
	err := p.store.Scan([]byte{prefixEviction}, func(_, value []byte) error {
		e, err := membership.DecodeEviction(value)
		if err == nil {
			_, err = p.evicted.Add(e)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the stored evictions cannot be read: %w", err)
	}
	return nil
}

// takeEviction takes in an eviction from a peer. It counts at once, even if it cannot
// be stored: then it is fetched again after a restart.
func (p *people) takeEviction(e membership.Eviction) (fresh bool, events []membership.Event, err error) {
	p.mu.Lock()
	fresh, err = p.evicted.Add(e)
	if fresh {
		events = p.list.Review(p.clock.Now())
	}
	p.mu.Unlock()
	if fresh {
		err = p.store.CommitWait([]kv.Write{evictionWrite(e)})
	}
	return fresh, events, err
}

// unwelcome are the connected peers whose certificates are no longer good. Those were
// found authentic when they were shown or listed, so no signature is checked again.
func (p *people) unwelcome(peers []workflow.PartnerID) map[workflow.PartnerID]error {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[workflow.PartnerID]error{}
	for _, id := range peers {
		chain, ok := p.presented[id]
		if x, listed := p.list.Get(id); listed && (!ok || x.Record.Chain.Leaf().Supersedes(chain.Leaf())) {
			chain, ok = x.Record.Chain, true
		}
		if !ok {
			continue
		}
		if err := chain.Current(p.clock.Now().Wall, p.evicted); err != nil {
			out[id] = err
		}
	}
	return out
}

// enforce acts on evictions that were added: the list's events, and the live
// connections of those who are not listed.
func (t *trust) enforce(events []membership.Event) {
	t.people.announce(events)
	t.cutUnwelcome()
	t.checkStanding()
}

// cutUnwelcome ends the connections of those who would not be admitted now.
func (t *trust) cutUnwelcome() {
	up := t.upPeers()
	bad := t.people.unwelcome(up)
	for _, p := range up {
		if err := bad[p]; err != nil {
			t.refuse("connection-of-former-member", p)
			t.log.Info("connection cut", "partner", p, "reason", err)
			t.carrier.ClosePeer(p)
		}
	}
}

// maxEvictionBytes is how many bytes of evictions go into one frame.
const maxEvictionBytes = wire.MaxFrame / 4

// shareEvictions sends encoded evictions to all connected partners but one.
func (t *trust) shareEvictions(list [][]byte, but workflow.PartnerID) {
	for _, p := range t.upPeers() {
		if p != but {
			t.sendEvictions(p, list)
		}
	}
}

func (t *trust) sendEvictions(p workflow.PartnerID, list [][]byte) {
	for len(list) > 0 {
		k, size := 0, 0
		for k < len(list) && (k == 0 || size+len(list[k]) <= maxEvictionBytes) {
			size += len(list[k])
			k++
		}
		t.transmit(p, &wire.Message{Evictions: &wire.Evictions{List: list[:k]}})
		list = list[k:]
	}
}

// evictionDigest is what partners compare on contact and at intervals.
func (t *trust) evictionDigest() *wire.Evictions {
	d := t.people.evictionDigest()
	return &wire.Evictions{Digest: d[:]}
}

func (p *people) evictionDigest() [sha256.Size]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.evicted.Digest()
}

func (p *people) evictionIDs() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := [][]byte{}
	for _, id := range p.evicted.IDs() {
		ids = append(ids, id[:])
	}
	return ids
}

// evictionsLackedBy are the encoded evictions that a peer with these IDs lacks.
func (p *people) evictionsLackedBy(ids [][]byte) [][]byte {
	theirs := make([]membership.EvictionID, 0, len(ids))
	for _, b := range ids {
		if len(b) == len(membership.EvictionID{}) {
			theirs = append(theirs, membership.EvictionID(b))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out [][]byte
	for _, e := range p.evicted.LackedBy(theirs) {
		out = append(out, membership.EncodeEviction(e))
	}
	return out
}

// takeEvictions takes in what a peer says about evictions, passes news on, and
// answers with what one of the two lacks.
func (t *trust) takeEvictions(from workflow.PartnerID, m *wire.Evictions) {
	if m == nil {
		return
	}
	var news [][]byte
	var events []membership.Event
	for _, b := range m.List {
		e, err := membership.DecodeEviction(b)
		var fresh bool
		if err == nil {
			var more []membership.Event
			fresh, more, err = t.people.takeEviction(e)
			events = append(events, more...)
		}
		if fresh {
			news = append(news, b)
		}
		if err != nil {
			t.refuse("eviction", from)
			t.log.Warn("eviction refused", "from", from, "error", err)
		}
	}
	if len(news) > 0 {
		t.shareEvictions(news, from)
		t.enforce(events)
	}
	if m.Asks {
		t.sendEvictions(from, t.people.evictionsLackedBy(m.IDs))
	}
	if ours := t.people.evictionDigest(); len(m.Digest) > 0 && !bytes.Equal(m.Digest, ours[:]) {
		t.transmit(from, &wire.Message{Evictions: &wire.Evictions{Asks: true, IDs: t.people.evictionIDs()}})
	}
}
