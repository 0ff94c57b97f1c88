package roster

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Peers are the members that are connected, and the carrier's connections to them.
type Peers interface {
	Up(p workflow.PartnerID) bool
	UpPeers() []workflow.PartnerID
	// Met reports whether a member was ever connected since the start.
	Met(p workflow.PartnerID) bool
	Transmit(p workflow.PartnerID, m *wire.Message)
	Broadcast(m *wire.Message)
	// Refuse counts what was refused of a peer. Distrust cuts the connections of one that
	// sends garbage, ClosePeer of any.
	Refuse(why string, p workflow.PartnerID)
	Distrust(p workflow.PartnerID)
	ClosePeer(p workflow.PartnerID)
	// Begun reports whether there is a carrier yet; before, none of these may be called:
	// Addrs are the addresses of this node, SetAddrs says where a partner can be reached,
	// and Want keeps a connection to it.
	Begun() bool
	Addrs() []string
	SetAddrs(p workflow.PartnerID, addrs []string) error
	Want(p workflow.PartnerID, want bool) error
}

// Gossip spreads news among all partners, those without a connection to this
// node included. It may lose some. Its methods never block.
type Gossip interface {
	Publish(news []byte)
	// Follow says which partners may take part, Met that there is a new
	// connection.
	Follow(p workflow.PartnerID, follow bool)
	Met(p workflow.PartnerID)
}

// Own is this node as one that says who it is, and that it is alive.
type Own interface {
	Republish(addrs []string, fn func(*membership.Record)) (membership.Record, error)
	Heartbeat(load membership.PerMille, work []membership.Work) membership.Beat
	Pulse(load membership.PerMille) *wire.Pulse
	ConnectionTime() time.Duration
	LoadPause() time.Duration
}

// Work is what this node has to do.
type Work interface {
	// Turned reports whether that changed so much that partners should know at once.
	Turned() bool
	// Tell is what partners are told of it with a sign of life, and whether it is news to
	// them; Say is what one is told that was just met.
	Tell() (load membership.PerMille, work []membership.Work, news bool)
	Say() (load membership.PerMille, work []membership.Work)
}

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Self   workflow.PartnerID
	Clock  Clock
	Log    *slog.Logger
	Peers  Peers
	Gossip Gossip
	Own    Own
	Work   Work
	Mobile bool // its radio sleeps between two signs of life
	// Chance is a number in [0, 1).
	Chance func() float64
	// Publish tells people what happened.
	Publish func(api.Event)
	// Leaving reports whether this node takes nothing new on, Standing says why nobody
	// would admit it.
	// Away reports whether it talks to nobody on purpose: that others are silent says nothing
	// then.
	Leaving  func() bool
	Away     func() bool
	Standing func() error
	// Outrun is called when a partner knows a later record of this node's than it wrote,
	// Concerns when what is known of a partner changed. Nudge has Tick called soon.
	Outrun   func(membership.Version)
	Concerns func(workflow.PartnerID)
	Nudge    func()
	// Compare puts into a message what else is compared now and then.
	Compare func(workflow.PartnerID, *wire.Message)
}

// Topic is what partners say to one another of themselves: records on contact and when
// they change, signs of life in between, and of whom one does not hear what others hear.
type Topic struct {
	list *List
	in   Surroundings

	nextBeat, lastBeat, nextWatch, nextPull time.Duration // Awake
	every                                   time.Duration // by which nextBeat was chosen
	// expected: of some partner the next sign of life may be due sooner than nextWatch has it: it is new or
	// back, or has changed its connection time.
	expected atomic.Bool
	signed   bool // the last sign of life was
	signs    signs
	turn     int // whom catchUp asks

	mu    sync.Mutex // guards asked
	asked map[workflow.PartnerID]asked
}

// asked is the digest by which a partner was asked for records last, and when (Awake).
type asked struct {
	digest []byte
	at     time.Duration
}

// New is the topic of a list. turn says whom to ask first, so that not everybody asks the
// same.
func New(l *List, turn int, in Surroundings) *Topic {
	return &Topic{list: l, in: in, turn: turn, asked: map[workflow.PartnerID]asked{}}
}

// Spread has news go by gossip; before the node begins.
func (ro *Topic) Spread(g Gossip) { ro.in.Gossip = g }

// Greet says who this node is, and whom it knows.
func (ro *Topic) Greet(_ workflow.PartnerID, m *wire.Message) {
	m.Records, m.Digest = ro.records(), ro.list.digest()
}

// Tick says that this node is alive, within its connectionTime, and watches whether the
// others are.
func (ro *Topic) Tick(now moment.Now) time.Duration {
	if ro.in.Away() {
		return moment.Never
	}
	every := ro.beatEvery()
	if ro.nextBeat == 0 {
		ro.nextBeat = now.Awake + every
	}
	if every < ro.every { // partners were told just now, and expect it by that
		ro.nextBeat = min(ro.nextBeat, now.Awake+every)
	}
	ro.every = every
	if ro.in.Work.Turned() {
		ro.nextBeat = min(ro.nextBeat, max(ro.lastBeat+ro.in.Own.LoadPause(), now.Awake))
	}
	if now.Awake >= ro.nextBeat {
		ro.nextBeat, ro.lastBeat = now.Awake+every-time.Duration(ro.in.Chance()*float64(every/16)), now.Awake
		ro.in.Peers.Broadcast(ro.nextSign())
	}
	if ro.expected.Swap(false) || now.Awake >= ro.nextWatch {
		ro.nextWatch = now.Awake + min(ro.list.tick(), ro.catchUp(now.Awake), every)
	}
	ro.signs.plan(now, ro.lastBeat, ro.nextBeat)
	return min(ro.nextBeat, ro.nextWatch) - now.Awake
}

// Announce publishes this node's record with its present addresses.
func (ro *Topic) Announce() error { return ro.announceAt(ro.in.Peers.Addrs()) }

func (ro *Topic) announceAt(addrs []string) error {
	r, err := ro.in.Own.Republish(addrs, func(r *membership.Record) {
		if ro.in.Leaving() {
			r.Absence = membership.Whole
		}
	})
	if err != nil && ro.in.Standing() != nil {
		return nil // nobody would take it; the node goes on alone, and its status says why
	}
	if err != nil {
		return err
	}
	ro.tellAll(&wire.Message{Records: [][]byte{membership.EncodeRecord(r)}})
	return nil
}

// Moved publishes this node's record with other addresses.
func (ro *Topic) Moved(addrs []string) {
	if err := ro.announceAt(addrs); err != nil {
		ro.in.Log.Error("the new addresses could not be published", "error", err)
	}
}

// signs are when this node gave its last sign of life, and when it gives the next.
type signs struct {
	mu         sync.Mutex    // guards what follows
	last, next time.Duration // Boot
}

// plan notes moments that are given as Awake.
func (s *signs) plan(now moment.Now, last, next time.Duration) {
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

// TellStart is when partners are told of a start (choreo.Partners): at the same moment
// of all instances; where the radio sleeps in between, with a sign of life.
func (ro *Topic) TellStart(since time.Duration) time.Duration {
	at := since + lingers
	if ro.in.Mobile {
		return ro.signs.first(at, ro.beatEvery())
	}
	return (at + lingers - 1).Truncate(lingers)
}

// beatEvery is the time between two signs of life: three fit into a connectionTime,
// with some air.
func (ro *Topic) beatEvery() time.Duration { return ro.in.Own.ConnectionTime() * 5 / 16 }

// nextSign is a sign of life: a signed beat, which partners may pass on to those that
// do not hear us, and next time a pulse, which is a sixth of it, unless there is news
// of work that others that give work out should have.
func (ro *Topic) nextSign() *wire.Message {
	load, work, news := ro.in.Work.Tell()
	if ro.signed = !ro.signed || news; ro.signed {
		return &wire.Message{Beats: [][]byte{ro.beat(load, work)}}
	}
	return &wire.Message{Pulse: ro.in.Own.Pulse(load)}
}

// beat is a beat for connections: without this node's ID, which they prove.
func (ro *Topic) beat(load membership.PerMille, work []membership.Work) []byte {
	b := ro.in.Own.Heartbeat(load, work)
	b.Partner = ""
	return membership.EncodeBeat(b)
}

// records are this node's own record and those of the partners that it knows,
// for a new contact.
func (ro *Topic) records() [][]byte {
	if p, ok := ro.list.Get(ro.in.Self); ok {
		return [][]byte{membership.EncodeRecord(p.Record)}
	}
	return nil
}

// Take takes in what a message says about partners, and spreads news.
func (ro *Topic) Take(from workflow.PartnerID, m *wire.Message) {
	news, lacking := ro.takeRecords(from, m, true)
	if m.Pulse != nil {
		lacking = ro.takePulse(from, m.Pulse) || lacking
	}
	ro.list.want(from, m.Wanted)
	ro.passOn(news)
	if lacking {
		ro.pull(from)
	}
	ro.answerDigest(from, m)
}

// takeRecords takes in records and beats, and returns the records that were new.
// lacking tells that a beat was upon a record that is not known here. direct: the
// message came over a connection with from, so what it says of itself is from now.
func (ro *Topic) takeRecords(from workflow.PartnerID, m *wire.Message, direct bool) (news *wire.Message, lacking bool) {
	news = &wire.Message{}
	for i, b := range m.Records {
		r, err := membership.DecodeRecord(b)
		if err == nil {
			var fresh bool
			fresh, err = ro.list.apply(r, m.Age(i))
			if ro.list.misses(r.Partner) && (errors.Is(err, trust.ErrRevoked) || errors.Is(err, trust.ErrExpired)) {
				err = ro.list.recall(r)
			}
			if r.Partner == from && direct && !fresh && err == nil { // as with a beat, below
				err = ro.list.takePulse(from, &wire.Pulse{Record: r.Version, Load: r.Load})
				if errors.Is(err, membership.ErrLacking) { // a newer one is here
					err = nil
				}
			}
			ro.keepUnreachable(from, r.Partner, fresh)
			if fresh {
				news.Records = append(news.Records, b)
				news.Ages = append(news.Ages, ro.list.age(r.Partner))
			}
		}
		if err != nil {
			ro.in.Peers.Refuse("record", from)
			ro.in.Log.Warn("partner record refused", "from", from, "error", err)
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
			fresh, err = ro.list.takeBeat(beat, m.Age(len(m.Records)+i))
			if own && direct && !fresh && err == nil { // somebody passed it on, and may have said that it is old
				of := membership.Version{Boot: beat.Version.Boot, Seq: beat.Base}
				err = ro.list.takePulse(from, &wire.Pulse{Record: of, Load: beat.Load})
			}
			ro.keepUnreachable(from, beat.Partner, fresh)
			if fresh {
				ro.passBeat(from, beat)
			}
		}
		switch {
		case errors.Is(err, membership.ErrLacking):
			lacking = true
		case err != nil:
			ro.in.Peers.Refuse("beat", from)
		}
	}
	return news, lacking
}

// Miss notes that facts of somebody were put off, since this node does not list the author.
func (ro *Topic) Miss(author workflow.PartnerID) { ro.list.miss(author) }

// Introduce shows a partner, which does not list somebody, the record of that one. It may be a
// member no more: whoever joined later than that was never told of it.
func (ro *Topic) Introduce(to, who workflow.PartnerID) {
	if x, listed := ro.list.Get(who); listed {
		ro.in.Peers.Transmit(to, &wire.Message{
			Records: [][]byte{membership.EncodeRecord(x.Record)}, Ages: []uint64{ro.list.age(who)},
		})
	}
}

// takePulse reports whether the record that a pulse is about is not known here.
func (ro *Topic) takePulse(from workflow.PartnerID, p *wire.Pulse) (lacking bool) {
	err := ro.list.takePulse(from, p)
	if err != nil && !errors.Is(err, membership.ErrLacking) {
		ro.in.Peers.Refuse("pulse", from)
	}
	return errors.Is(err, membership.ErrLacking)
}

// answerDigest sends what the sender of a digest lacks.
func (ro *Topic) answerDigest(from workflow.PartnerID, m *wire.Message) {
	if len(m.Digest) == 0 {
		return
	}
	held, err := membership.DecodeDigest(m.Digest)
	if err != nil {
		ro.in.Peers.Refuse("digest", from)
		return
	}
	records, beats := ro.list.newer(held)
	for len(records)+len(beats) > 0 {
		var out wire.Message
		k := min(len(records), wire.MaxRecords/8)
		for _, r := range records[:k] {
			out.Records = append(out.Records, membership.EncodeRecord(r))
			out.Ages = append(out.Ages, ro.list.age(r.Partner))
		}
		records = records[k:]
		if len(records) == 0 {
			k = min(len(beats), wire.MaxRecords/2)
			for _, b := range beats[:k] {
				out.Beats = append(out.Beats, membership.EncodeBeat(b))
				out.Ages = append(out.Ages, ro.list.age(b.Partner))
			}
			beats = beats[k:]
		}
		ro.in.Peers.Transmit(from, &out)
	}
}

// Changed reacts to an event of the partner list.
func (ro *Topic) Changed(e membership.Event, p membership.Partner) {
	ro.in.Log.Info("partner "+string(e.Kind), "partner", e.Partner, "name", p.Record.Name())
	at, name := ro.in.Clock.Now().Wall, ro.list.Name(e.Partner)
	ro.in.Publish(api.Event{At: at, Kind: "partner", Partner: name, Text: string(e.Kind)})
	if e.Kind == membership.EventOutrun {
		ro.in.Outrun(e.Version)
		return
	}
	switch e.Kind {
	case membership.EventJoined, membership.EventBack, membership.EventChanged:
		ro.expected.Store(true)
		ro.in.Nudge()
	}
	ro.Follow(p)
	ro.in.Concerns(e.Partner)
}

// Follow keeps a connection to a partner, wherever it is now.
func (ro *Topic) Follow(p membership.Partner) {
	id := p.Record.Partner
	if !ro.in.Peers.Begun() || id == ro.in.Self || id == "" {
		return
	}
	ro.in.Gossip.Follow(id, p.State != membership.Evicted && p.State != membership.Left)
	var err error
	switch p.State {
	case membership.Evicted:
		err = ro.in.Peers.Want(id, false)
		ro.in.Peers.ClosePeer(id)
	case membership.Left:
		err = ro.in.Peers.Want(id, false)
	default:
		if err = ro.in.Peers.SetAddrs(id, p.Record.Addresses); err == nil {
			err = ro.in.Peers.Want(id, true)
		}
	}
	if err != nil {
		ro.in.Log.Warn("a partner cannot be followed", "partner", id, "error", err)
	}
}
