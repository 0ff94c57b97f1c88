package node

import (
	"errors"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// roster is what partners say to one another of themselves: records on contact and when
// they change, signs of life in between, and of whom one does not hear what others hear.
type roster struct {
	*contacts
	people *people
	own    speaker
	ledger *ledger
	gossip Gossip
	others neighbours

	nextBeat, lastBeat, nextWatch, nextPull time.Duration // Awake
	signed                                  bool          // the last sign of life was
	signs                                   signs
	turn                                    int // whom catchUp asks

	mu    sync.Mutex // guards asked
	asked map[workflow.PartnerID]asked
}

// speaker is this node as one that says who it is, and that it is alive.
type speaker interface {
	Republish(addrs []string, fn func(*membership.Record)) (membership.Record, error)
	Heartbeat(load membership.PerMille, work []membership.Work) membership.Beat
	Pulse(load membership.PerMille) *wire.Pulse
	ConnectionTime() time.Duration
	LoadPause() time.Duration
}

// asked is the digest by which a partner was asked for records last, and when (Awake).
type asked struct {
	digest []byte
	at     time.Duration
}

// neighbours are what the roster needs of the rest of the node.
type neighbours struct {
	leaving  func() bool                             // this node takes nothing new on
	standing func() error                            // why nobody would admit this node
	outrun   func(membership.Version)                // a partner knows a later record of this node's
	concerns func(workflow.PartnerID)                // what is known of a partner changed
	compare  func(workflow.PartnerID, *wire.Message) // what else is compared now and then
}

// newRoster is given whom to ask first, so that not everybody asks the same.
func newRoster(c *contacts, p *people, own speaker, l *ledger, turn int, o neighbours) *roster {
	ro := &roster{contacts: c, people: p, own: own, ledger: l, others: o, turn: turn, asked: map[workflow.PartnerID]asked{}}
	ro.gossip = direct{c}
	return ro
}

// Greet says who this node is, and whom it knows.
func (ro *roster) Greet(_ workflow.PartnerID, m *wire.Message) {
	m.Records, m.Digest = ro.records(), ro.people.digest()
}

// Tick says that this node is alive, within its connectionTime, and watches whether the
// others are.
func (ro *roster) Tick(now membership.Now) time.Duration {
	every := ro.beatEvery()
	if ro.nextBeat == 0 {
		ro.nextBeat = now.Awake + every
	}
	if ro.ledger.turned() {
		ro.nextBeat = min(ro.nextBeat, max(ro.lastBeat+ro.own.LoadPause(), now.Awake))
	}
	if now.Awake >= ro.nextBeat {
		ro.nextBeat, ro.lastBeat = now.Awake+every-ro.spread(every/16), now.Awake
		ro.broadcast(ro.nextSign())
	}
	if now.Awake >= ro.nextWatch {
		ro.nextWatch = now.Awake + min(ro.people.tick(), ro.catchUp(now.Awake), every)
	}
	ro.signs.plan(now, ro.lastBeat, ro.nextBeat)
	return min(ro.nextBeat, ro.nextWatch) - now.Awake
}

// announce publishes this node's record with its present addresses.
func (ro *roster) announce() error { return ro.announceAt(ro.carrier.Addrs()) }

func (ro *roster) announceAt(addrs []string) error {
	r, err := ro.own.Republish(addrs, func(r *membership.Record) {
		if ro.others.leaving() {
			r.Absence = absent
		}
	})
	if err != nil && ro.others.standing() != nil {
		return nil // nobody would take it; the node goes on alone, and its status says why
	}
	if err != nil {
		return err
	}
	ro.tellAll(&wire.Message{Records: [][]byte{membership.EncodeRecord(r)}})
	return nil
}

// moved publishes this node's record with other addresses.
func (ro *roster) moved(addrs []string) {
	if err := ro.announceAt(addrs); err != nil {
		ro.log.Error("the new addresses could not be published", "error", err)
	}
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
func (ro *roster) tellStart(since time.Duration) time.Duration {
	at := since + lingers
	if ro.config.Preset == configs.Mobile {
		return ro.signs.first(at, ro.beatEvery())
	}
	return (at + lingers - 1).Truncate(lingers)
}

// beatEvery is the time between two signs of life: three fit into a connectionTime,
// with some air.
func (ro *roster) beatEvery() time.Duration { return ro.own.ConnectionTime() * 5 / 16 }

// nextSign is a sign of life: a signed beat, which partners may pass on to those that
// do not hear us, and next time a pulse, which is a sixth of it, unless there is news
// of work that others that give work out should have.
func (ro *roster) nextSign() *wire.Message {
	t, news := ro.ledger.tell()
	if ro.signed = !ro.signed || news; ro.signed {
		return &wire.Message{Beats: [][]byte{ro.beat(t)}}
	}
	return &wire.Message{Pulse: ro.own.Pulse(t.load)}
}

// beat is a beat for connections: without this node's ID, which they prove.
func (ro *roster) beat(t told) []byte {
	b := ro.own.Heartbeat(t.load, t.work)
	b.Partner = ""
	return membership.EncodeBeat(b)
}

// records are this node's own record and those of the partners that it knows,
// for a new contact.
func (ro *roster) records() [][]byte {
	if p, ok := ro.people.get(ro.member.ID()); ok {
		return [][]byte{membership.EncodeRecord(p.Record)}
	}
	return nil
}

// Take takes in what a message says about partners, and spreads news.
func (ro *roster) Take(from workflow.PartnerID, m *wire.Message) {
	news, lacking := ro.takeRecords(from, m, true)
	if m.Pulse != nil {
		lacking = ro.takePulse(from, m.Pulse) || lacking
	}
	ro.people.want(from, m.Wanted)
	ro.passOn(news)
	if lacking {
		ro.pull(from)
	}
	ro.answerDigest(from, m)
}

// takeRecords takes in records and beats, and returns the records that were new.
// lacking tells that a beat was upon a record that is not known here. direct: the
// message came over a connection with from, so what it says of itself is from now.
func (ro *roster) takeRecords(from workflow.PartnerID, m *wire.Message, direct bool) (news *wire.Message, lacking bool) {
	news = &wire.Message{}
	for i, b := range m.Records {
		r, err := membership.DecodeRecord(b)
		if err == nil {
			var fresh bool
			fresh, err = ro.people.apply(r, m.Age(i))
			if r.Partner == from && direct && !fresh && err == nil { // as with a beat, below
				err = ro.people.takePulse(from, &wire.Pulse{Record: r.Version, Load: r.Load})
				if errors.Is(err, membership.ErrLacking) { // a newer one is here
					err = nil
				}
			}
			ro.hearsay(from, r.Partner, fresh)
			if fresh {
				news.Records = append(news.Records, b)
				news.Ages = append(news.Ages, ro.people.age(r.Partner))
			}
		}
		if err != nil {
			ro.refuse("record", from)
			ro.log.Warn("partner record refused", "from", from, "error", err)
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
			fresh, err = ro.people.takeBeat(beat, m.Age(len(m.Records)+i))
			if own && direct && !fresh && err == nil { // somebody passed it on, and may have said that it is old
				err = ro.people.takePulse(from, &wire.Pulse{Record: membership.Version{Boot: beat.Version.Boot, Seq: beat.Base}, Load: beat.Load})
			}
			ro.hearsay(from, beat.Partner, fresh)
			if fresh {
				ro.passBeat(from, beat)
			}
		}
		switch {
		case errors.Is(err, membership.ErrLacking):
			lacking = true
		case err != nil:
			ro.refuse("beat", from)
		}
	}
	return news, lacking
}

// takePulse reports whether the record that a pulse is about is not known here.
func (ro *roster) takePulse(from workflow.PartnerID, p *wire.Pulse) (lacking bool) {
	err := ro.people.takePulse(from, p)
	if err != nil && !errors.Is(err, membership.ErrLacking) {
		ro.refuse("pulse", from)
	}
	return errors.Is(err, membership.ErrLacking)
}

// answerDigest sends what the sender of a digest lacks.
func (ro *roster) answerDigest(from workflow.PartnerID, m *wire.Message) {
	if len(m.Digest) == 0 {
		return
	}
	held, err := membership.DecodeDigest(m.Digest)
	if err != nil {
		ro.refuse("digest", from)
		return
	}
	records, beats := ro.people.newer(held)
	for len(records)+len(beats) > 0 {
		var out wire.Message
		k := min(len(records), wire.MaxRecords/8)
		for _, r := range records[:k] {
			out.Records = append(out.Records, membership.EncodeRecord(r))
			out.Ages = append(out.Ages, ro.people.age(r.Partner))
		}
		records = records[k:]
		if len(records) == 0 {
			k = min(len(beats), wire.MaxRecords/2)
			for _, b := range beats[:k] {
				out.Beats = append(out.Beats, membership.EncodeBeat(b))
				out.Ages = append(out.Ages, ro.people.age(b.Partner))
			}
			beats = beats[k:]
		}
		ro.transmit(from, &out)
	}
}

// maxAnswer is how many bytes of definitions answer one greeting, about.
const maxAnswer = 4 << 20

// changed reacts to an event of the partner list.
func (ro *roster) changed(e membership.Event, p membership.Partner) {
	ro.log.Info("partner "+string(e.Kind), "partner", e.Partner, "name", p.Record.Name())
	ro.events.publish(api.Event{At: ro.clock.Now().Wall, Kind: "partner", Partner: ro.people.name(e.Partner), Text: string(e.Kind)})
	if e.Kind == membership.EventOutrun {
		ro.others.outrun(e.Version)
		return
	}
	ro.follow(p)
	ro.others.concerns(e.Partner)
}

// follow keeps a connection to a partner, wherever it is now.
func (ro *roster) follow(p membership.Partner) {
	id := p.Record.Partner
	if ro.carrier == nil || id == ro.member.ID() || id == "" {
		return
	}
	ro.gossip.Follow(id, p.State != membership.Evicted && p.State != membership.Left)
	var err error
	switch p.State {
	case membership.Evicted:
		err = ro.carrier.Want(id, false)
		ro.carrier.ClosePeer(id)
	case membership.Left:
		err = ro.carrier.Want(id, false)
	default:
		if err = ro.carrier.SetAddrs(id, p.Record.Addresses); err == nil {
			err = ro.carrier.Want(id, true)
		}
	}
	if err != nil {
		ro.log.Warn("a partner cannot be followed", "partner", id, "error", err)
	}
}
