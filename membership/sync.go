package membership

import (
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Held says what a node knows of one partner: the version of its record, and
// the Seq of the newest beat upon it, 0 for none.
type Held struct {
	Partner workflow.PartnerID `cbor:"1,keyasint"`
	Serial  trust.Serial       `cbor:"2,keyasint"` // of the record's certificate
	Version Version            `cbor:"3,keyasint"`
	Beat    uint64             `cbor:"4,keyasint"`
}

// Digest lists what is held here, in the order of the IDs: partners compare
// theirs on contact and at intervals, and send each other what is missing.
func (l *List) Digest() []Held {
	held := make([]Held, 0, len(l.partners))
	for _, id := range l.ids() {
		it := l.partners[id]
		if it.State != Evicted {
			held = append(held, Held{id, it.Record.Chain.Leaf().Serial, it.Record.Version, it.beat.Version.Seq})
		}
	}
	return held
}

// Newer returns what the holder of a digest lacks: records, and beats upon
// records that it has. What was evicted is not passed on.
func (l *List) Newer(digest []Held) ([]Record, []Beat) {
	theirs := make(map[workflow.PartnerID]Held, len(digest))
	for _, h := range digest {
		theirs[h.Partner] = h
	}
	var records []Record
	var beats []Beat
	for _, id := range l.ids() {
		it := l.partners[id]
		h, known := theirs[id]
		if it.State == Evicted {
			continue
		}
		if !known || it.differs(h) {
			records = append(records, it.Record)
			h = Held{Version: it.Record.Version}
		}
		if it.Record.Version == h.Version && it.beat.Version.Seq > h.Beat {
			beats = append(beats, it.beat)
		}
	}
	return records, beats
}

// Age is how long ago a partner told the newest record or beat that is held here,
// as far as is known: the partner that passes them on says so.
func (l *List) Age(id workflow.PartnerID, now moment.Now) time.Duration {
	l.now = max(l.now, now.Awake)
	it := l.partners[id]
	if it == nil || id == l.self {
		return 0
	}
	return l.now - it.signed
}

// differs reports whether the record is to be offered to the holder of h: it is
// newer, or the partner's last word, or under another certificate, whose order only a
// look at both tells.
func (it *item) differs(h Held) bool {
	return it.ForGood() && it.Record.Version != h.Version || it.Record.Version.Compare(h.Version) > 0 ||
		it.Record.Chain.Leaf().Serial != h.Serial
}

// EncodeDigest writes a digest for DecodeDigest.
func EncodeDigest(digest []Held) []byte { return codec.Encode(digest) }

// DecodeDigest reads a digest.
func DecodeDigest(b []byte) ([]Held, error) {
	const perPartner = 128
	var digest []Held
	if err := codec.Decode("digest of the partner list", b, MaxPartners*perPartner, &digest); err != nil {
		return nil, err
	}
	if len(digest) > MaxPartners {
		return nil, fmt.Errorf("digest of %d partners: at most %d", len(digest), MaxPartners)
	}
	return digest, nil
}

// Stored is what is persisted of one partner, under its ID, whenever an event
// or a new record concerned it. Beats need not be persisted each.
type Stored struct {
	Record    Record     `cbor:"1,keyasint"`
	Beat      Beat       `cbor:"2,keyasint"`
	Expired   bool       `cbor:"3,keyasint,omitempty"`
	Validated trust.Wall `cbor:"4,keyasint"`
	Since     trust.Wall `cbor:"5,keyasint"` // of the state in which it was
	// Until is when an absence is over that it announced, by this node's wall clock.
	Until trust.Wall `cbor:"6,keyasint,omitempty"`
}

// Snapshot returns everybody as stored, in the order of their IDs.
func (l *List) Snapshot() []Stored {
	all := make([]Stored, 0, len(l.partners))
	for _, id := range l.ids() {
		all = append(all, l.partners[id].stored())
	}
	return all
}

// Stored returns what is to be persisted of one partner.
func (l *List) Stored(id workflow.PartnerID) (Stored, bool) {
	it := l.partners[id]
	if it == nil {
		return Stored{}, false
	}
	return it.stored(), true
}

func (it *item) stored() Stored {
	return Stored{
		Record: it.Record, Beat: it.beat, Expired: it.State == Expired, Validated: it.Validated, Since: it.Since,
		Until: it.Until,
	}
}

// Restore puts a persisted partner back after a restart. A partner that was
// here is unreachable until heard of; its silence counts again, after a grace. Of an absence
// that it announced is left what this node's wall clock says, and never more than was announced.
// The store is trusted: signatures are not verified again, evictions are.
func (l *List) Restore(s Stored, now moment.Now) {
	l.now, l.boot = max(l.now, now.Awake), max(l.boot, now.Boot)
	ct, since := s.Record.ConnectionTime, trust.WallOf(now.Wall)
	if s.Expired || s.Record.Going != Staying || trust.Evicted(l.evicted, s.Record.Chain) != nil {
		since = s.Since
	}
	it := &item{
		Partner: Partner{
			Record: s.Record, State: Unreachable, Since: since, Load: s.Record.Load, Validated: s.Validated,
		},
		beat:     s.Beat,
		signed:   l.now,
		deadline: l.now + moment.Grace(ct) + ct,
	}
	if away := s.Record.Away; away > 0 {
		left := min(max(s.Until.Time().Sub(now.Wall), 0), away)
		it.Back, it.Until, it.signed = l.boot+left, trust.WallOf(now.Wall.Add(left)), l.now-(away-left)
	}
	switch {
	case trust.Evicted(l.evicted, s.Record.Chain) != nil:
		it.State = Evicted
	case s.Record.Going == Leaves, s.Record.Going == LeavesForGood:
		it.State = Left
	case s.Expired:
		it.State = Expired
	case s.Record.Partner == l.self:
		it.State = Active
	}
	l.enter(it)
}

// EncodeStored writes s for DecodeStored.
func EncodeStored(s Stored) []byte { return codec.Encode(s) }

// DecodeStored reads what EncodeStored wrote.
func DecodeStored(b []byte) (Stored, error) {
	var s Stored
	if err := codec.Decode("stored partner", b, MaxRecord+maxBeat+64, &s); err != nil {
		return Stored{}, err
	}
	return s, nil
}
