package node

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// people are the partners that are here: the partner list with its persistence.
type people struct {
	*tools
	evicted *evictions.Set
	wallet  *certificates.Wallet
	// changed is told of every event of the list, without the lock held.
	changed func(membership.Event, membership.Partner)
	// load is that of this node.
	load func() membership.PerMille

	mu      sync.Mutex // guards what follows
	list    *membership.List
	hearsay map[workflow.PartnerID]*hearsay
	// unkept are partners of whom the newest could not be stored, by ID: the disk was full.
	unkept sync.Map
}

// loadPeople reads what is stored. load is this node's own, changed is told of every event.
func loadPeople(
	t *tools, e *evictions.Set, w *certificates.Wallet, load func() membership.PerMille,
	changed func(membership.Event, membership.Partner),
) (*people, error) {
	self, s, c := t.member.ID(), t.store, t.clock
	p := &people{
		tools: t, evicted: e, wallet: w, load: load, changed: changed, hearsay: map[workflow.PartnerID]*hearsay{},
		list: membership.NewList(t.member.Mesh, self, e),
	}
	now := c.Now()
	err := s.Scan([]byte{prefixPartner}, func(_, value []byte) error {
		st, err := membership.DecodeStored(value)
		if err == nil && st.Record.Partner != self {
			p.list.Restore(st, now)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the stored partner list cannot be read: %w", err)
	}
	for _, r := range t.member.welcome.Records {
		// What the welcome brought may be outdated or gone by now; then it is passed
		// over. Its age is not known: like stored partners, they are not here until
		// heard.
		if _, known := p.list.Get(r.Partner); !known {
			if _, err := p.list.Apply(r, 0, now); err != nil {
				continue
			}
			p.list.Hint(r.Partner, false, now)
		}
	}
	p.list.Gap(now)
	return p, nil
}

// publish puts this node's own record on the list.
func (p *people) publish(own membership.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.list.Publish(own, p.clock.Now())
	return err
}

// takePulse takes in a pulse over a peer's own connection.
func (p *people) takePulse(who workflow.PartnerID, b *wire.Pulse) error {
	_, err := p.update(who, func(now membership.Now) ([]membership.Event, error) { return p.list.Pulse(who, b.Record, b.Load, now) })
	return err
}

// apply takes in a record of that age from a peer. fresh reports whether it was new
// here, so that it should be passed on.
func (p *people) apply(r membership.Record, age time.Duration) (fresh bool, err error) {
	return p.update(r.Partner, func(now membership.Now) ([]membership.Event, error) { return p.list.Apply(r, age, now) })
}

// takeBeat takes in a heartbeat of that age from a peer.
func (p *people) takeBeat(b membership.Beat, age time.Duration) (fresh bool, err error) {
	return p.update(b.Partner, func(now membership.Now) ([]membership.Event, error) { return p.list.Beat(b, age, now) })
}

func (p *people) update(who workflow.PartnerID, fn func(membership.Now) ([]membership.Event, error)) (fresh bool, err error) {
	p.mu.Lock()
	before, _ := p.list.Stored(who)
	events, err := fn(p.clock.Now())
	after, ok := p.list.Stored(who)
	p.mu.Unlock()
	if ok && (before.Record.Version != after.Record.Version || before.Expired != after.Expired) {
		key, val := partnerKey(who), membership.EncodeStored(after)
		if serr := p.store.CommitWait([]kv.Write{{Key: key, Value: val}}); serr != nil {
			p.unkept.Store(who, true)
			err = errors.Join(err, serr)
		}
	}
	p.announce(events)
	return err == nil && (before.Record.Version != after.Record.Version || before.Beat.Version != after.Beat.Version), err
}

func (p *people) announce(events []membership.Event) {
	for _, e := range events {
		partner, _ := p.get(e.Partner)
		p.changed(e, partner)
	}
}

// reach takes the carrier's word on whether a partner can be reached.
func (p *people) reach(who workflow.PartnerID, reachable bool) {
	p.mu.Lock()
	events := p.list.Hint(who, reachable, p.clock.Now())
	p.mu.Unlock()
	p.announce(events)
}

// tick expires silent partners, and says after what time to call again.
func (p *people) tick() time.Duration {
	p.mu.Lock()
	now := p.clock.Now()
	events, next, ok := p.list.Tick(now)
	p.keep(events)
	p.mu.Unlock()
	p.announce(events)
	if !ok {
		return time.Minute
	}
	return max(next-now.Awake, 10*time.Millisecond)
}

// keep stores the partners of whom something has changed, and again those who could not be
// stored: else a partner that is gone for good would be given work after each restart, and one
// that came back would be gone once more. The caller holds p.mu.
func (p *people) keep(events []membership.Event) {
	var who []workflow.PartnerID
	for _, e := range events {
		who = append(who, e.Partner)
	}
	p.unkept.Range(func(id, _ any) bool {
		who = append(who, id.(workflow.PartnerID))
		return true
	})
	slices.Sort(who)
	for _, id := range slices.Compact(who) {
		p.unkept.Delete(id)
		st, listed := p.list.Stored(id)
		if !listed {
			continue
		}
		p.store.Commit([]kv.Write{{Key: partnerKey(id), Value: membership.EncodeStored(st)}}, func(err error) {
			if err != nil {
				p.unkept.Store(id, true)
			}
		})
	}
}

func (p *people) get(id workflow.PartnerID) (membership.Partner, bool) {
	p.mu.Lock()
	x, ok := p.list.Get(id)
	p.mu.Unlock()
	p.weigh(&x)
	return x, ok
}

// known reports whether somebody is on the partner list.
func (p *people) known(id workflow.PartnerID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.list.Get(id)
	return ok
}

func (p *people) all() []membership.Partner {
	p.mu.Lock()
	list := p.list.Partners()
	p.mu.Unlock()
	for i := range list {
		p.weigh(&list[i])
	}
	return list
}

// weigh enters this node's own load, which it tells others and hears from nobody.
func (p *people) weigh(x *membership.Partner) {
	if x.Record.Partner == p.member.ID() {
		x.Load = p.load()
	}
}

// digest and newer compare lists with a peer's.
func (p *people) digest() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return membership.EncodeDigest(p.list.Digest())
}

func (p *people) newer(digest []membership.Held) ([]membership.Record, []membership.Beat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list.Newer(digest)
}

// age is how long ago a partner told what is passed on of it.
func (p *people) age(id workflow.PartnerID) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return wire.Millis(p.list.Age(id, p.clock.Now()))
}

// name is what a partner is called where programs read it too: its label, or its whole ID
// if it is not on the list.
func (p *people) name(id workflow.PartnerID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.list.Get(id); !ok {
		return string(id)
	}
	return p.list.Label(id)
}

// called is the name in a partner's certificate; empty if it is not on the list.
func (p *people) called(id workflow.PartnerID) string {
	partner, _ := p.get(id)
	return partner.Record.Name()
}

// say is an error in words for people, who call partners by their names.
func (p *people) say(err error) string {
	return said.Render(err, p.label)
}

// label is the name of a partner in a sentence: it tells partners of one name apart.
func (p *people) label(id workflow.PartnerID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list.Label(id)
}

// Gone reports whether a partner is out of the process (choreo.Partners).
func (p *people) Gone(id workflow.PartnerID) bool {
	partner, ok := p.get(id)
	return ok && partner.State.Gone()
}

// Reachable reports whether a partner can be reached now (choreo.Partners).
func (p *people) Reachable(id workflow.PartnerID) bool {
	partner, ok := p.get(id)
	return ok && partner.State == membership.Active
}

// Evicted reports whether a partner was removed for good, or left so
// (choreo.Partners).
func (p *people) Evicted(id workflow.PartnerID) bool {
	partner, ok := p.get(id)
	return ok && (partner.State == membership.Evicted || partner.ForGood())
}

// Eviction proves that a partner was evicted (choreo.Partners).
func (p *people) Eviction(id workflow.PartnerID) []byte { return p.evicted.Proof(id) }

// Credentials prove this node's roles (choreo.Partners).
func (p *people) Credentials() []byte { return membership.EncodeChain(p.wallet.Chain()) }

// current returns an error where an authentic chain has run out, or was evicted as
// far as is known here. A renewed certificate with the same roles stands in for it.
func (p *people) current(ch membership.Chain) error {
	err := p.wallet.Current(ch)
	lost := func(r workflow.RoleName) bool { return !p.HasRole(ch.Leaf().Partner, r) }
	if errors.Is(err, membership.ErrExpired) && !slices.ContainsFunc(ch.Leaf().Roles, lost) {
		return nil
	}
	return err
}

// ConnectionTime is within what time a partner expires (choreo.Partners); of one
// that the list does not have, at once.
func (p *people) ConnectionTime(id workflow.PartnerID) time.Duration {
	partner, _ := p.get(id)
	return partner.Record.ConnectionTime
}

// HasRole reports whether a partner's certificate gives it a role (choreo.Partners).
func (p *people) HasRole(id workflow.PartnerID, role workflow.RoleName) bool {
	if id == p.member.ID() {
		return p.wallet.HasRole(role)
	}
	partner, ok := p.get(id)
	return ok && partner.Record.Chain.Leaf().HasRole(role)
}

// administers reports whether a partner may change the electorate: the founder,
// or a delegate in good standing.
func (p *people) administers(id workflow.PartnerID) bool {
	if id == p.member.Mesh.Founder {
		return true
	}
	x, ok := p.get(id)
	return ok && x.State != membership.Evicted && x.Record.Chain.Leaf().Delegate
}

// resolve finds the partner that a user names.
func (p *people) resolve(ref string) (workflow.PartnerID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, err := p.list.Resolve(ref)
	switch {
	case errors.Is(err, membership.ErrAmbiguous):
		return "", api.Errorf(api.Invalid, "%v", err).WithHint("mutirao partners shows the IDs")
	case err != nil:
		return "", api.Errorf(api.NotFound, "%v", err).WithHint("mutirao partners lists them")
	}
	return id, nil
}

// resolveWhole is resolve for what cannot be taken back: a beginning of an ID is
// too easily somebody else's.
func (p *people) resolveWhole(ref string) (workflow.PartnerID, error) {
	id, err := p.resolve(ref)
	if err == nil && ref != string(id) && ref != p.called(id) {
		return "", api.Errorf(api.Invalid, "%q is only the beginning of an ID: want a name or a whole ID", ref).WithHint("if you mean %s, type %s", p.label(id), id)
	}
	return id, err
}

// review looks again at everybody's certificates, after evictions were added.
func (p *people) review() []membership.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list.Review(p.clock.Now())
}

// nameFree keeps two partners from having one name, or names that look the same, as
// far as is known here: people tell them apart by it.
func (p *people) nameFree(name string, id workflow.PartnerID) error {
	p.mu.Lock()
	x, taken := p.list.Namesake(name, id)
	p.mu.Unlock()
	switch {
	case !taken:
		return nil
	case x.Record.Name() == name:
		return fmt.Errorf("the name %s is taken in mesh %s: join with another --name", name, p.member.Mesh.Name)
	}
	return fmt.Errorf("the name %s looks like %s, which is taken in mesh %s: join with another --name", name, x.Record.Name(), p.member.Mesh.Name)
}

// names are what people call partners.
type names interface {
	name(workflow.PartnerID) string
	label(workflow.PartnerID) string
}

// members are the people for topics in packages of their own.
type members struct{ *people }

func (m members) All() []membership.Partner { return m.all() }

func (m members) Get(p workflow.PartnerID) (membership.Partner, bool) { return m.get(p) }

func (m members) Review() []membership.Event { return m.review() }

func (m members) Announce(events []membership.Event) { m.announce(events) }

func (m members) ResolveWhole(ref string) (workflow.PartnerID, error) { return m.resolveWhole(ref) }

func (m members) Name(p workflow.PartnerID) string { return m.name(p) }

func (m members) Label(p workflow.PartnerID) string { return m.label(p) }

func (m members) Resolve(ref string) (workflow.PartnerID, error) { return m.resolve(ref) }

func (m members) Administers(p workflow.PartnerID) bool { return m.administers(p) }

func (m members) Say(err error) string { return m.say(err) }

func (m members) Shown(err error) error { return m.shown(err) }
