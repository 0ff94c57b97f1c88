package membership

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Version orders what one partner says of itself: by its boot counter, which
// is persisted and counts every start, then by its count since that start. A
// node whose store was restored from a backup learns from [EventOutrun] that it
// has to raise its counter.
type Version struct {
	Boot uint64 `cbor:"1,keyasint"`
	Seq  uint64 `cbor:"2,keyasint"`
}

// Compare is negative if v is older than w, positive if newer.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Boot, w.Boot), cmp.Compare(v.Seq, w.Seq))
}

// String is boot.seq.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Boot, v.Seq) }

// PerMille is a share of one in thousandths, 0 to 1000.
type PerMille uint16

// Whole is all of it.
const Whole PerMille = 1000

// Share is p as a share of one.
func (p PerMille) Share() float64 { return float64(p) / float64(Whole) }

// valid reports whether p is a share of one.
func (p PerMille) valid() bool { return p <= Whole }

// DataSet is materialised data that a partner offers.
type DataSet struct {
	Name string            `cbor:"1,keyasint"`
	Hash [sha256.Size]byte `cbor:"2,keyasint"`
	Size uint64            `cbor:"3,keyasint"` // bytes
	// Made and Until are by the partner's clock, in ms since 1970: since when there is
	// this data, and when it ceases to be valid; 0: never.
	Made  int64 `cbor:"4,keyasint,omitempty"`
	Until int64 `cbor:"5,keyasint,omitempty"`
	// Readers are roles, and partners by name or ID, to whom the partner gives it; empty: to everybody.
	Readers []string `cbor:"6,keyasint,omitempty"`
	// From says what a task made it from, in short; empty: it serves anybody who needs it.
	From []byte `cbor:"7,keyasint,omitempty"`
	// Author lists the workflow of which a task made it; empty: a user registered it. A
	// partner may have a set of one name for each author.
	Author workflow.PartnerID `cbor:"8,keyasint,omitempty"`
}

// Equal reports whether both are the same offer.
func (d DataSet) Equal(o DataSet) bool {
	return d.Name == o.Name && d.Hash == o.Hash && d.Size == o.Size && d.Made == o.Made && d.Until == o.Until &&
		slices.Equal(d.Readers, o.Readers) && bytes.Equal(d.From, o.From) && d.Author == o.Author
}

// Suitability is how apt a partner holds itself for a task, role or capability.
type Suitability struct {
	For string   `cbor:"1,keyasint"`
	Of  PerMille `cbor:"2,keyasint"`
}

// Going is what a partner says about its going away, in the last record before it does.
type Going uint8

// What it may say. The numbers are signed: never reuse one.
const (
	Staying  Going = 0
	GoesDown Going = 1 // it stops for a while, and keeps what it holds
	Leaves   Going = 2 // it gave on what it had not begun, and holds nothing any more
	// LeavesForGood is the last word of a partner: no later record of it counts.
	LeavesForGood Going = 3
)

// Record is what a partner publishes about itself, signed by its own key.
// Its name and roles are those of its certificate: it cannot claim others.
type Record struct {
	Partner        workflow.PartnerID         `cbor:"1,keyasint"`
	Incarnation    trust.Incarnation          `cbor:"2,keyasint"`
	Version        Version                    `cbor:"3,keyasint"`
	Addresses      []string                   `cbor:"4,keyasint,omitempty"` // multiaddrs, best first
	Capabilities   []workflow.Capability      `cbor:"5,keyasint,omitempty"`
	Applications   []workflow.ApplicationName `cbor:"6,keyasint,omitempty"`
	DataSets       []DataSet                  `cbor:"7,keyasint,omitempty"`
	Suitability    []Suitability              `cbor:"8,keyasint,omitempty"`
	Load           PerMille                   `cbor:"9,keyasint"`
	ConnectionTime time.Duration              `cbor:"10,keyasint"` // it will be heard of within this, or is out
	Chain          trust.Chain                `cbor:"11,keyasint"`
	Going          Going                      `cbor:"12,keyasint,omitempty"`
	Signature      []byte                     `cbor:"13,keyasint,omitempty"`
	// Absence is how much it lacks of full availability; Whole: it takes nothing on.
	Absence PerMille `cbor:"14,keyasint,omitempty"`
	// Databases are those that it can ask.
	Databases []workflow.DatabaseName `cbor:"15,keyasint,omitempty"`
	// Away is for how long from this record on it means to be out of reach; it goes down, and says so
	// beforehand. 0: it does not say. It is a span, as clocks of two partners are never compared.
	Away time.Duration `cbor:"16,keyasint,omitempty"`
}

// Beat says that a partner's record Base still holds, at a tenth of the size:
// what a partner sends while nothing about it changes but its load and its work.
type Beat struct {
	Partner   workflow.PartnerID `cbor:"1,keyasint"`
	Version   Version            `cbor:"2,keyasint"`
	Base      uint64             `cbor:"3,keyasint"` // Seq of the record, of the same boot
	Load      PerMille           `cbor:"4,keyasint"`
	Signature []byte             `cbor:"5,keyasint,omitempty"`
	// Work is which part of the load mechanisms gave it: for others that give work
	// out ([DecodeWork]).
	Work []byte `cbor:"6,keyasint,omitempty"`
}

// Work is unfinished work that a partner says it holds, of one kind, given by one
// partner: each is told once. Giver and Kind are short names; 0: several.
type Work struct {
	Giver, Kind uint32
	Ready, All  uint16 // its expected time in s: of what can be done now, and of all; Ready ≤ All
}

// MaxWork bounds what a partner tells of the work that it holds.
const MaxWork = 8

const workSize = 12 // bytes

// EncodeWork writes work, at most MaxWork, for DecodeWork.
func EncodeWork(work []Work) []byte {
	var b []byte
	for _, w := range work {
		b = binary.BigEndian.AppendUint32(b, w.Giver)
		b = binary.BigEndian.AppendUint32(b, w.Kind)
		b = binary.BigEndian.AppendUint16(b, w.Ready)
		b = binary.BigEndian.AppendUint16(b, w.All)
	}
	return b
}

// DecodeWork reads what a beat says of work; a List has none that it cannot read.
func DecodeWork(b []byte) []Work {
	var work []Work
	for ; len(b) >= workSize; b = b[workSize:] {
		work = append(work, Work{
			binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint16(b[8:]),
			binary.BigEndian.Uint16(b[10:]),
		})
	}
	return work
}

const (
	recordDomain = "record"
	beatDomain   = "beat"
	maxBeat      = 384
)

// The bounds of connectionTime. Within the least a partner gives three signs of life,
// about a second apart; after two it is missed, and shown as unreachable for another
// second before it expires.
const (
	MinConnectionTime = 3 * time.Second
	MaxConnectionTime = 7 * 24 * time.Hour
)

// MaxAway is the longest absence that a partner may announce: as long as a device keeps what it asked others for, a
// day more than they keep a lock. So long at most others wait for one that lies.
const MaxAway = 8 * 24 * time.Hour

func (r Record) body() []byte {
	r.Signature = nil
	return codec.Encode(r)
}

func (b Beat) body() []byte {
	b.Signature = nil
	return codec.Encode(b)
}

// Sign returns r signed by its partner's key.
func (r Record) Sign(key ed25519.PrivateKey) Record {
	r.Signature = trust.Sign(key, recordDomain, r.body())
	return r
}

// Sign returns b signed by its partner's key.
func (b Beat) Sign(key ed25519.PrivateKey) Beat {
	b.Signature = trust.Sign(key, beatDomain, b.body())
	return b
}

// Name is the partner's name by its certificate.
func (r Record) Name() string { return r.Chain.Leaf().Name }

// Roles are the partner's roles by its certificate, sorted.
func (r Record) Roles() []workflow.RoleName { return r.Chain.Leaf().Roles }

// validate checks sizes and sense; not the chain.
func (r Record) validate() error {
	if n := len(codec.Encode(r)); n > MaxRecord {
		return said.Errorf("record of %s with %d bytes: at most %d", r.Partner, n, MaxRecord)
	}
	if err := trust.CheckAddresses(r.Addresses); err != nil {
		return said.Errorf("record of %s: %w", r.Partner, err)
	}
	for _, x := range []struct {
		what string
		n    int
	}{
		{"capabilities", len(r.Capabilities)}, {"applications", len(r.Applications)},
		{"databases", len(r.Databases)},
		{"data sets", len(r.DataSets)}, {"suitabilities", len(r.Suitability)},
	} {
		if x.n > MaxItems {
			return said.Errorf("record of %s with %d %s: at most %d", r.Partner, x.n, x.what, MaxItems)
		}
	}
	if r.ConnectionTime < MinConnectionTime || r.ConnectionTime > MaxConnectionTime {
		return said.Errorf("record of %s: connection time %s: want %s to %s", r.Partner, r.ConnectionTime,
			MinConnectionTime, MaxConnectionTime)
	}
	tooMuch := func(s Suitability) bool { return !s.Of.valid() }
	if !r.Load.valid() || !r.Absence.valid() || slices.ContainsFunc(r.Suitability, tooMuch) {
		return said.Errorf("record of %s: load %d, absence %d and suitabilities %v: want 0 to 1000 thousandths",
			r.Partner, r.Load, r.Absence, r.Suitability)
	}
	if r.Going > LeavesForGood {
		return said.Errorf("record of %s: it says %d of its going: want %d to %d", r.Partner, r.Going, Staying,
			LeavesForGood)
	}
	if r.Away < 0 || r.Away > MaxAway {
		return said.Errorf("record of %s: away for %s: want 0 to %s", r.Partner, r.Away, MaxAway)
	}
	if r.Away > 0 && r.Going != GoesDown {
		return said.Errorf("record of %s: away for %s, and it does not go down: want 0", r.Partner, r.Away)
	}
	if r.Chain.Leaf().Partner != r.Partner {
		return said.Errorf("record of %s with the certificate of %s: %w", r.Partner, r.Chain.Leaf().Partner,
			trust.ErrNotAllowed)
	}
	return nil
}

// Verify checks that r's partner signed it and that it keeps the limits; the
// chain is [trust.Chain.Verify]'s affair.
func (r Record) Verify() error {
	if err := r.validate(); err != nil {
		return err
	}
	return trust.Verify(r.Partner, recordDomain, r.body(), r.Signature)
}

// Verify checks that b's partner signed it and that it keeps the limits.
func (b Beat) Verify() error {
	if !b.Load.valid() {
		return said.Errorf("beat of %s: load %d: want 0 to 1000 thousandths", b.Partner, b.Load)
	}
	if n := len(b.Work); n%workSize != 0 || n > MaxWork*workSize {
		return said.Errorf("beat of %s: %d bytes about work: want at most %d times %d", b.Partner, n, MaxWork, workSize)
	}
	if err := checkWork(DecodeWork(b.Work)); err != nil {
		return said.Errorf("beat of %s: %w", b.Partner, err)
	}
	return trust.Verify(b.Partner, beatDomain, b.body(), b.Signature)
}

// checkWork returns an error where work of one kind and giver is told twice, or more of it
// can be done now than there is.
func checkWork(work []Work) error {
	for i, w := range work {
		switch {
		case w.Ready > w.All:
			return fmt.Errorf("work of kind %d given by %d: %d s of %d s can be done now", w.Kind, w.Giver, w.Ready,
				w.All)
		case slices.ContainsFunc(work[:i], func(o Work) bool { return o.Giver == w.Giver && o.Kind == w.Kind }):
			return fmt.Errorf("work of kind %d given by %d is told twice", w.Kind, w.Giver)
		}
	}
	return nil
}

// compare orders two records of one partner: one by which it left for good is the
// last. Else by certificate, so that nobody falls back on one that was replaced, then
// by version. Of two different
// records with one version, which only a faulty node writes, the greater
// bytes count, everywhere.
func (r Record) compare(o Record) int {
	switch last := r.Going == LeavesForGood; {
	case last == (o.Going == LeavesForGood):
	case last:
		return 1
	default:
		return -1
	}
	if c, d := r.Chain.Leaf(), o.Chain.Leaf(); c.Serial != d.Serial {
		if c.Supersedes(d) {
			return 1
		}
		return -1
	}
	if c := r.Version.Compare(o.Version); c != 0 {
		return c
	}
	return bytes.Compare(r.body(), o.body())
}

// sameProfile reports whether r and o differ in nothing that the catalogue shows.
func (r Record) sameProfile(o Record) bool {
	return slices.Equal(r.Capabilities, o.Capabilities) && slices.Equal(r.Applications, o.Applications) &&
		slices.Equal(r.Databases, o.Databases) &&
		slices.EqualFunc(r.DataSets, o.DataSets, DataSet.Equal) && slices.Equal(r.Suitability, o.Suitability) &&
		r.ConnectionTime == o.ConnectionTime && r.Absence == o.Absence && r.Chain.Equal(o.Chain)
}

// EncodeRecord writes r for DecodeRecord.
func EncodeRecord(r Record) []byte { return codec.Encode(r) }

// DecodeRecord reads a record; [List.Apply] judges it.
func DecodeRecord(b []byte) (Record, error) {
	var r Record
	if err := codec.Decode("partner record", b, MaxRecord, &r); err != nil {
		return Record{}, err
	}
	return r, nil
}

// EncodeBeat writes b for DecodeBeat.
func EncodeBeat(b Beat) []byte { return codec.Encode(b) }

// DecodeBeat reads a beat; [List.Beat] judges it.
func DecodeBeat(b []byte) (Beat, error) {
	var beat Beat
	if err := codec.Decode("beat", b, maxBeat, &beat); err != nil {
		return Beat{}, err
	}
	return beat, nil
}
