package node

import (
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// announce publishes this node's record with its present addresses.
func (n *Node) announce(addrs []string) error {
	r, err := n.people.publish(func(r *membership.Record) {
		r.Addresses = addrs
		n.people.profile.fill(r, n.config)
		offerData(r, n.people.data, n.clock.Now().Wall.UnixMilli())
		if n.leaving.Load() {
			r.Absence = absent
		}
	})
	if err != nil && n.checkStanding() != nil {
		return nil // nobody would take it; the node goes on alone, and its status says why
	}
	if err != nil {
		return err
	}
	n.tellAll(&wire.Message{Records: [][]byte{membership.EncodeRecord(r)}})
	return nil
}

// OnAddrs is called by the carrier when this node's addresses changed.
func (n *Node) OnAddrs(addrs []string) {
	if !n.talks() {
		return
	}
	if err := n.announce(addrs); err != nil {
		n.log.Error("the new addresses could not be published", "error", err)
	}
}

// pulse validates this node at all partners well within its connectionTime,
// watches the others', and returns after what time to call it again.
func (n *Node) pulse() time.Duration {
	every := n.beatEvery()
	now := n.clock.Now().Awake
	if n.nextBeat == 0 {
		n.nextBeat = now + every
	}
	if n.ledger.turned() {
		n.nextBeat = min(n.nextBeat, max(n.lastBeat+n.loadPause(), now))
	}
	if now >= n.nextBeat {
		n.nextBeat, n.lastBeat = now+every-n.spread(every/16), now
		n.broadcast(n.nextSign())
	}
	if now >= n.nextWatch {
		n.nextWatch = now + min(n.people.tick(), n.catchUp(now), every)
	}
	if now >= n.nextSweep {
		n.nextSweep = now + sweepEvery
		n.sweep()
		n.askForDefinitions()
	}
	if now >= n.nextRetain {
		n.nextRetain = now + n.retain()
	}
	n.signs.plan(n.clock.Now(), n.lastBeat, n.nextBeat)
	next := min(n.nextRetain-now, n.nextBeat-now, n.nextWatch-now, n.nextSweep-now, n.office.tick(), n.askDue())
	n.officeChanged()
	if made := n.tellMade(now); made > 0 {
		next = min(next, made)
	}
	return max(next, 0)
}

// signs are when this node gave its last sign of life, and when it gives the next.
type signs struct {
	mu         sync.Mutex    // guards what follows
	last, next time.Duration // Boot
}

// plan notes moments that are given as Awake.
func (s *signs) plan(now membership.Now, last, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.next = now.Boot-now.Awake+last, now.Boot-now.Awake+next
}

// first is the first sign of life that is not before at.
func (s *signs) first(at, every time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.last >= at:
		return s.last
	case s.next >= at:
		return s.next
	}
	return s.next + every
}

// lingers is after what time a task runs for so long that its start is told.
const lingers = time.Second

// tellStart is when partners are told of a start (choreo.Partners): at the same moment
// of all instances; where the radio sleeps in between, with a sign of life.
func (n *Node) tellStart(since time.Duration) time.Duration {
	at := since + lingers
	if n.config.Preset == configs.Mobile {
		return n.signs.first(at, n.beatEvery())
	}
	return (at + lingers - 1).Truncate(lingers)
}

// beatEvery is the time between two signs of life: three fit into a connectionTime,
// with some air.
func (n *Node) beatEvery() time.Duration { return n.connectionTime() * 5 / 16 }

// nextSign is a sign of life: a signed beat, which partners may pass on to those that
// do not hear us, and next time a pulse, which is a sixth of it, unless there is news
// of work that others that give work out should have.
func (n *Node) nextSign() *wire.Message {
	t, news := n.ledger.tell()
	if n.signed = !n.signed || news; n.signed {
		return &wire.Message{Beats: [][]byte{n.beat(t)}}
	}
	return &wire.Message{Pulse: n.people.pulse(t.load)}
}

// beat is a beat for connections: without this node's ID, which they prove.
func (n *Node) beat(t told) []byte {
	b := n.people.heartbeat(t)
	b.Partner = ""
	return membership.EncodeBeat(b)
}

// depart gives the office up, if this node holds it, so that nobody waits for its
// lease to run out, and tells the others that this node goes.
func (n *Node) depart(how membership.Going) {
	if err := n.office.step((*membership.Election).Resign); err != nil && !errors.Is(err, membership.ErrNotCoordinator) {
		n.log.Warn("the office was not given up", "error", err)
	}
	r, err := n.people.publish(func(r *membership.Record) { r.Going = how })
	if err == nil {
		n.broadcast(&wire.Message{Records: [][]byte{membership.EncodeRecord(r)}})
	}
}

func (n *Node) broadcast(m *wire.Message) {
	for _, p := range n.upPeers() {
		n.transmit(p, m)
	}
}

// records are this node's own record and those of the partners that it knows,
// for a new contact.
func (n *Node) records() [][]byte {
	if p, ok := n.people.get(n.member.ID()); ok {
		return [][]byte{membership.EncodeRecord(p.Record)}
	}
	return nil
}

// takeMembership takes in what a message says about partners, and spreads news.
func (n *Node) takeMembership(from workflow.PartnerID, m *wire.Message) {
	news, lacking := n.takeRecords(from, m, true)
	if m.Pulse != nil {
		lacking = n.takePulse(from, m.Pulse) || lacking
	}
	n.people.want(from, m.Wanted)
	n.passOn(from, news)
	if lacking {
		n.pull(from)
	}
	n.answerDigest(from, m)
}

// takeRecords takes in records and beats, and returns the records that were new.
// lacking tells that a beat was upon a record that is not known here. direct: the
// message came over a connection with from, so what it says of itself is from now.
func (n *Node) takeRecords(from workflow.PartnerID, m *wire.Message, direct bool) (news *wire.Message, lacking bool) {
	news = &wire.Message{}
	for i, b := range m.Records {
		r, err := membership.DecodeRecord(b)
		if err == nil {
			var fresh bool
			fresh, err = n.people.apply(r, m.Age(i))
			if r.Partner == from && direct && !fresh && err == nil { // as with a beat, below
				err = n.people.takePulse(from, &wire.Pulse{Record: r.Version, Load: r.Load})
				if errors.Is(err, membership.ErrLacking) { // a newer one is here
					err = nil
				}
			}
			n.hearsay(from, r.Partner, fresh)
			if fresh {
				news.Records = append(news.Records, b)
				news.Ages = append(news.Ages, n.people.age(r.Partner))
			}
		}
		if err != nil {
			n.refuse("record", from)
			n.log.Warn("partner record refused", "from", from, "error", err)
		}
	}
	for i, b := range m.Beats {
		beat, err := membership.DecodeBeat(b)
		own := beat.Partner == ""
		if own {
			beat.Partner = from
		}
		if err == nil {
			var fresh bool
			fresh, err = n.people.takeBeat(beat, m.Age(len(m.Records)+i))
			if own && direct && !fresh && err == nil { // somebody passed it on, and may have said that it is old
				err = n.people.takePulse(from, &wire.Pulse{Record: membership.Version{Boot: beat.Version.Boot, Seq: beat.Base}, Load: beat.Load})
			}
			n.hearsay(from, beat.Partner, fresh)
			if fresh {
				n.passBeat(from, beat)
			}
		}
		switch {
		case errors.Is(err, membership.ErrLacking):
			lacking = true
		case err != nil:
			n.refuse("beat", from)
		}
	}
	return news, lacking
}

// takePulse reports whether the record that a pulse is about is not known here.
func (n *Node) takePulse(from workflow.PartnerID, p *wire.Pulse) (lacking bool) {
	err := n.people.takePulse(from, p)
	if err != nil && !errors.Is(err, membership.ErrLacking) {
		n.refuse("pulse", from)
	}
	return errors.Is(err, membership.ErrLacking)
}

// answerDigest sends what the sender of a digest lacks.
func (n *Node) answerDigest(from workflow.PartnerID, m *wire.Message) {
	if len(m.Digest) == 0 {
		return
	}
	held, err := membership.DecodeDigest(m.Digest)
	if err != nil {
		n.refuse("digest", from)
		return
	}
	records, beats := n.people.newer(held)
	for len(records)+len(beats) > 0 {
		var out wire.Message
		k := min(len(records), wire.MaxRecords/8)
		for _, r := range records[:k] {
			out.Records = append(out.Records, membership.EncodeRecord(r))
			out.Ages = append(out.Ages, n.people.age(r.Partner))
		}
		records = records[k:]
		if len(records) == 0 {
			k = min(len(beats), wire.MaxRecords/2)
			for _, b := range beats[:k] {
				out.Beats = append(out.Beats, membership.EncodeBeat(b))
				out.Ages = append(out.Ages, n.people.age(b.Partner))
			}
			beats = beats[k:]
		}
		n.transmit(from, &out)
	}
}

// takeDefinitions takes in definitions, and sends those that a greeting peer lacks.
func (n *Node) takeDefinitions(from workflow.PartnerID, m *wire.Message) {
	for _, d := range m.Definitions {
		n.takeDefinition(from, d)
	}
	if !m.Greeting {
		return
	}
	n.noteLacking(from, m.Have)
	if !n.greetings.spend(from, 1, n.clock.Now().Awake) {
		n.refuse("greetings-too-fast", from)
		return
	}
	size := 0
	for d, err := range n.definitions.newer(m.Have) {
		if err != nil {
			n.log.Error("a definition that a partner lacks cannot be read", "to", from, "error", err)
			continue
		}
		n.transmit(from, &wire.Message{Definitions: []wire.Definition{d}})
		if size += len(d.Canonical); size > maxAnswer {
			return // it asks for the rest
		}
	}
}

// maxAnswer is how many bytes of definitions answer one greeting, about.
const maxAnswer = 4 << 20

// takeDefinition takes in what a partner says of one definition, and passes it on if
// it is news.
func (n *Node) takeDefinition(from workflow.PartnerID, d wire.Definition) {
	now := n.clock.Now()
	news, author, err := n.definitions.merge(d, now.Wall, func(author workflow.PartnerID, bytes int) bool {
		if !n.people.known(author) { // the signer pays, and else the sender
			author = from
		}
		return n.reading.spend(author, bytes, now.Awake)
	})
	if errors.Is(err, errNoRoom) {
		n.events.publish(api.Event{At: now.Wall, Kind: "trouble", Text: n.people.say(err)})
	}
	if err != nil {
		reason, whose := "definition", from
		switch {
		case errors.Is(err, errNotTheir):
			reason, whose = "definition-of-anothers-name", author
		case errors.Is(err, errNoShare):
			reason, whose = "definitions-over-share", author
		case errors.Is(err, errTooFast):
			reason, whose = "definitions-too-fast", author
		}
		n.refuse(reason, whose)
		n.log.Warn("definition refused", "from", from, "author", author, "error", err)
		return
	}
	if news {
		n.events.publish(api.Event{At: now.Wall, Kind: "workflow", Text: "changed"})
		n.shareDefinitions([]wire.Definition{d}, from)
	}
}

// noteLacking notes whether a partner has definitions that this node lacks.
func (n *Node) noteLacking(p workflow.PartnerID, theirs []wire.DefinitionStamp) {
	lacking := n.definitions.lacking(theirs)
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.links[p]; l != nil {
		l.lacking = lacking
	}
}

// askForDefinitions asks the partners again that have definitions that this node
// still lacks: they came too fast, or they did not all fit into one answer.
func (n *Node) askForDefinitions() {
	var have []wire.DefinitionStamp
	for _, p := range n.upPeers() {
		n.mu.Lock()
		l := n.links[p]
		some := l != nil && len(l.lacking) > 0
		n.mu.Unlock()
		if !some {
			continue
		}
		if have == nil {
			have = n.definitions.stamps()
		}
		known := numbers(have)
		n.mu.Lock()
		maps.DeleteFunc(l.lacking, func(c wire.Claim, number uint64) bool { return known[c] >= number })
		some = len(l.lacking) > 0
		n.mu.Unlock()
		if some {
			n.transmit(p, &wire.Message{Have: have, Greeting: true})
		}
	}
}

// shareDefinitions sends entries to all connected partners but one.
func (n *Node) shareDefinitions(ds []wire.Definition, but workflow.PartnerID) {
	for _, p := range n.upPeers() {
		if p != but {
			for _, d := range ds {
				n.transmit(p, &wire.Message{Definitions: []wire.Definition{d}})
			}
		}
	}
}

// partnerChanged reacts to an event of the partner list.
func (n *Node) partnerChanged(e membership.Event, p membership.Partner) {
	n.log.Info("partner "+string(e.Kind), "partner", e.Partner, "name", p.Record.Name())
	n.events.publish(api.Event{At: n.clock.Now().Wall, Kind: "partner", Partner: p.Record.Name(), Text: string(e.Kind)})
	if e.Kind == membership.EventOutrun {
		n.rolledBack("")
		n.outrun(e.Version)
		return
	}
	n.follow(p)
	n.reconsider(e.Partner)
}

// reconsider has the instances that a change of p concerns decide again.
func (n *Node) reconsider(p workflow.PartnerID) {
	for _, s := range n.shards {
		n.side(func() { n.post(s, event{apply: func(s *shard) error { s.touchConcerned(p); return nil }}) })
	}
}

// follow keeps a connection to a partner, wherever it is now.
func (n *Node) follow(p membership.Partner) {
	id := p.Record.Partner
	if n.carrier == nil || id == n.member.ID() || id == "" {
		return
	}
	n.gossip.Follow(id, p.State != membership.Evicted && p.State != membership.Left)
	var err error
	switch p.State {
	case membership.Evicted:
		err = n.carrier.Want(id, false)
		n.carrier.ClosePeer(id)
	case membership.Left:
		err = n.carrier.Want(id, false)
	default:
		if err = n.carrier.SetAddrs(id, p.Record.Addresses); err == nil {
			err = n.carrier.Want(id, true)
		}
	}
	if err != nil {
		n.log.Warn("a partner cannot be followed", "partner", id, "error", err)
	}
}

// touchConcerned has the instances decide again in which p takes part, or which
// wait for somebody who can take a contingency.
func (s *shard) touchConcerned(p workflow.PartnerID) {
	s.each(func(_ workflow.InstanceID, h *held) {
		if h.m.Participates(p) || h.m.Waiting() {
			s.touch(h)
		}
	})
}
