package users

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"

	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Record is one of the things that spread about users: exactly one of its fields is set.
// It proves itself, with nothing but the mesh.
type Record struct {
	Account *Account    `cbor:"1,keyasint,omitempty"`
	Device  *Device     `cbor:"2,keyasint,omitempty"`
	Role    *RoleChange `cbor:"3,keyasint,omitempty"`
	Removal *Removal    `cbor:"4,keyasint,omitempty"`
}

// RecordID names a record: a hash of all of it.
type RecordID [16]byte

const recordDomain = "user-record"

// ID names r.
func (r Record) ID() RecordID { return idOf(EncodeRecord(r)) }

func idOf(encoded []byte) RecordID {
	sum := sha256.Sum256(trust.InDomain(recordDomain, encoded))
	return RecordID(sum[:len(RecordID{})])
}

// EncodeRecord writes r for DecodeRecord.
func EncodeRecord(r Record) []byte { return codec.Encode(r) }

// DecodeRecord reads a record; [Set.Add] judges it.
func DecodeRecord(b []byte) (Record, error) {
	var r Record
	if err := codec.Decode("record about a user", b, MaxRecord, &r); err != nil {
		return Record{}, err
	}
	set := 0
	for _, is := range []bool{r.Account != nil, r.Device != nil, r.Role != nil, r.Removal != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return Record{}, errors.New("record about a user says more than one thing, or nothing")
	}
	return r, nil
}

// verify checks the signatures of r, and that its authors may say it.
func (r Record) verify(m trust.Mesh) error {
	switch {
	case r.Account != nil:
		return r.Account.verify(m)
	case r.Device != nil:
		return r.Device.Authentic(m)
	case r.Role != nil:
		return r.Role.verify(m)
	}
	return r.Removal.verify(m)
}

// User is whom r is about.
func (r Record) User() ID {
	switch {
	case r.Account != nil:
		return r.Account.ID()
	case r.Device != nil:
		return r.Device.Leaf().User
	case r.Role != nil:
		return r.Role.User
	}
	return r.Removal.User
}

// signer is the administrator that signed r; none: a key of the user did, which own proves.
func (r Record) signer() (by workflow.PartnerID, own *Device) {
	switch {
	case r.Account != nil:
		return r.Account.By.Issuer, nil
	case r.Role != nil:
		return r.Role.By.Issuer, nil
	case r.Device != nil && len(r.Device.Chain) == 1:
		return r.Device.Leaf().Issuer, nil
	case r.Device != nil:
		return "", r.Device
	case r.Removal.Device != nil:
		return "", r.Removal.Device
	}
	return r.Removal.By.Issuer, nil
}

// answerable is the administrator in whose share r is counted: the one that signed it or,
// where a key of the user did, the one that certified the first key of its chain. That need
// not be the one that made the user, who cannot help what others certify.
func (r Record) answerable() workflow.PartnerID {
	by, own := r.signer()
	if own != nil {
		return own.Chain[len(own.Chain)-1].Issuer
	}
	return by
}

// part is the part of a share that a record takes. Each is bounded by itself, so that where
// all the rest is full users can sign out still, and administrators can take away.
type part byte

const (
	partRest part = iota
	partSignOut
	partTaken
	parts
)

var partNames = [parts]string{"records about users", "removals of keys by themselves", "removals by administrators"}

func (r Record) part() part {
	switch _, own := r.signer(); {
	case r.Removal != nil && own != nil:
		return partSignOut
	case r.Removal != nil || r.Role != nil && !r.Role.Given:
		return partTaken
	}
	return partRest
}

// of is how much of a bound on the rest each part is given.
func (p part) of(most load) load {
	switch p {
	case partSignOut:
		return load{most.n / 4, most.bytes / 4}
	case partTaken:
		return load{most.n / 2, most.bytes / 4}
	}
	return most
}

// Author is the partner from whom r comes: the administrator that signed it or, where the
// user did, the partner whose node has the key.
func (r Record) Author() workflow.PartnerID {
	by, own := r.signer()
	if own != nil {
		return own.Leaf().Node
	}
	return by
}

// slot is what r is about. Of all records of one slot a set holds one, whichever comes last
// in the order of [Record.after].
type slot struct {
	kind   byte
	user   ID
	about  string // a key or a role
	issuer workflow.PartnerID
}

// slot finds that of r. Records of several issuers are kept side by side: one of them may
// be evicted, and what it said is void then.
func (r Record) slot() slot {
	switch {
	case r.Account != nil:
		return slot{kind: 'a', user: r.User()}
	case r.Device != nil:
		return slot{'d', r.User(), string(r.Device.Leaf().Key), r.Device.Leaf().Issuer}
	case r.Role != nil:
		return slot{'r', r.User(), string(r.Role.Role), r.Role.By.Issuer}
	}
	return slot{'x', r.User(), string(r.Removal.Key), r.Removal.By.Issuer}
}

// order is that of r among the records of its slot, besides its ID.
func (r Record) order() int64 {
	switch {
	case r.Device != nil:
		return int64(r.Device.Leaf().Number)
	case r.Role != nil:
		return int64(r.Role.Number)
	case r.Removal != nil: // of two by one key the one that keeps fewer: a thief has the key, too
		return -int64(len(r.Removal.Keep))
	}
	return 0
}

// after reports whether r takes the place of other in their slot.
func (r Record) after(other Record) bool {
	a, b := r.ID(), other.ID()
	return cmp.Or(cmp.Compare(r.order(), other.order()), bytes.Compare(a[:], b[:])) > 0
}
