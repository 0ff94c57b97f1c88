package invitation

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Why an invitation is not honoured, besides [trust.ErrExpired].
var (
	// ErrUnknownInvitation tells that no open invitation fits.
	ErrUnknownInvitation = errors.New("no such invitation here")
	// ErrUsedUp tells that an invitation has no uses left.
	ErrUsedUp = errors.New("invitation is used up")
	// ErrManyOpen tells that as many invitations are open as may be.
	ErrManyOpen = errors.New("too many invitations are open")
)

// Entry is one open invitation in its issuer's book.
type Entry struct {
	Secret   Secret              `cbor:"1,keyasint"`
	Roles    []workflow.RoleName `cbor:"2,keyasint,omitempty"`
	Delegate bool                `cbor:"3,keyasint,omitempty"`
	Uses     int                 `cbor:"4,keyasint"` // in all, not only those left
	Expires  trust.Wall          `cbor:"5,keyasint"`
	Lifetime time.Duration       `cbor:"6,keyasint"` // of the certificates it gives
	Redeemed []trust.Chain       `cbor:"7,keyasint,omitempty"`
}

// Left is how many more partners may join by e.
func (e Entry) Left() int { return e.Uses - len(e.Redeemed) }

// chainOf returns what a partner got for e before, if it did.
func (e Entry) chainOf(id workflow.PartnerID) (trust.Chain, bool) {
	i := slices.IndexFunc(e.Redeemed, func(ch trust.Chain) bool { return ch.Leaf().Partner == id })
	if i < 0 {
		return nil, false
	}
	return e.Redeemed[i], true
}

// validate checks the bounds.
func (e Entry) validate() error {
	switch {
	case e.Secret == Secret{}:
		return fmt.Errorf("invitation without a secret")
	case e.Uses < 1 || e.Uses > MaxUses:
		return fmt.Errorf("invitation for %d uses: want 1 to %d", e.Uses, MaxUses)
	case len(e.Redeemed) > e.Uses:
		return fmt.Errorf("invitation for %d uses was used %d times", e.Uses, len(e.Redeemed))
	case e.Lifetime < time.Hour:
		return fmt.Errorf("invitation to a membership of %s: want an hour at least", e.Lifetime)
	case len(e.Roles) > trust.MaxRoles:
		return fmt.Errorf("invitation with %d roles: at most %d", len(e.Roles), trust.MaxRoles)
	}
	for _, r := range e.Roles {
		if !workflow.ValidName(string(r)) {
			return trust.BadName("role", string(r))
		}
	}
	return nil
}

// InviteBook holds the open invitations of one issuer. An invitation is
// redeemed only here, so that its uses can be counted. It is not safe for
// concurrent use.
type InviteBook struct {
	issuer  trust.Issuer
	entries map[InvitationID]Entry
}

// NewInviteBook is the empty book of an issuer.
func NewInviteBook(issuer trust.Issuer) *InviteBook {
	return &InviteBook{issuer: issuer, entries: map[InvitationID]Entry{}}
}

// Certified notes that the issuer has another certificate, which what it issues from
// now on hangs on.
func (b *InviteBook) Certified(chain trust.Chain) { b.issuer.Chain = chain }

// Open adds an invitation, or restores a persisted one. The caller persists e
// under e.Secret.ID() before it shows the invitation to anybody.
func (b *InviteBook) Open(e Entry) error {
	if err := e.validate(); err != nil {
		return err
	}
	if e.Delegate && !b.issuer.IsFounder() {
		return fmt.Errorf("invitation of a delegate: only the founder makes delegates: %w", trust.ErrNotAllowed)
	}
	if _, known := b.entries[e.Secret.ID()]; !known && len(b.entries) >= MaxInvitations {
		return fmt.Errorf("%w: %d, at most %d: withdraw one, or wait until one expires", ErrManyOpen, len(b.entries),
			MaxInvitations)
	}
	b.entries[e.Secret.ID()] = e
	return nil
}

// Invitation is what to give to those who may use e, with the addresses at
// which the issuer, or members who relay to it, can be found.
func (b *InviteBook) Invitation(e Entry, addresses []string) (Invitation, error) {
	inv := Invitation{
		Mesh: b.issuer.Mesh.ID(), MeshName: b.issuer.Mesh.Name, Issuer: b.issuer.ID(),
		Addresses: addresses, Secret: e.Secret, Expires: e.Expires,
	}
	return inv, inv.validate()
}

// Entries returns the open invitations in the order of their IDs.
func (b *InviteBook) Entries() []Entry {
	var all []Entry
	for _, id := range b.ids() {
		all = append(all, b.entries[id])
	}
	return all
}

func (b *InviteBook) ids() []InvitationID {
	return slices.SortedFunc(maps.Keys(b.entries), func(x, y InvitationID) int { return bytes.Compare(x[:], y[:]) })
}

// Withdraw closes an invitation and reports whether it was open. The caller
// forgets it durably. Who joined by it stays.
func (b *InviteBook) Withdraw(id InvitationID) bool {
	_, open := b.entries[id]
	delete(b.entries, id)
	return open
}

// Expire closes what expired more than [trust.ClockSkew] ago and returns the IDs,
// for the caller to forget. Until then a partner whose welcome was lost can
// still fetch it again.
func (b *InviteBook) Expire(at time.Time) []InvitationID {
	var gone []InvitationID
	for _, id := range b.ids() {
		if b.entries[id].Expires < trust.WallOf(at.Add(-trust.ClockSkew)) {
			delete(b.entries, id)
			gone = append(gone, id)
		}
	}
	return gone
}

// Redeem judges proof p, given in answer to offer o, at the issuer's wall
// clock. serial is random. It changes nothing: the caller persists the entry
// that it returns, then gives it to [InviteBook.Open], and only then sends
// the chain. So a crash at any point counts one use and hands out one
// certificate: the same partner gets the same chain again.
//
// Nobody learns whether an invitation is expired or used up without having
// proved its secret.
func (b *InviteBook) Redeem(
	o Offer, p Proof, at time.Time, serial trust.Serial, r trust.Evictions,
) (trust.Chain, Entry, error) {
	e, open := b.entries[o.Hello.Invitation]
	if !open {
		return nil, Entry{}, fmt.Errorf("invitation %s: %w: it was withdrawn, expired, or is another's",
			o.Hello.Invitation, ErrUnknownInvitation)
	}
	if err := p.verify(b.issuer.ID(), o, e.Secret); err != nil {
		return nil, Entry{}, err
	}
	if ch, again := e.chainOf(o.Hello.Joiner); again {
		return ch, e, trust.Evicted(r, ch)
	}
	if err := e.usable(at); err != nil {
		return nil, Entry{}, err
	}
	ch, err := b.issuer.Issue(trust.Certificate{
		Partner: o.Hello.Joiner, Name: p.Name, Roles: e.Roles, Delegate: e.Delegate,
		Serial: serial, NotBefore: trust.WallOf(at), NotAfter: trust.WallOf(at.Add(e.Lifetime)),
	})
	if err != nil {
		return nil, Entry{}, err
	}
	if err := trust.Evicted(r, ch); err != nil {
		return nil, Entry{}, err
	}
	e.Redeemed = append(slices.Clip(e.Redeemed), ch)
	return ch, e, nil
}

// usable reports whether another partner may use e.
func (e Entry) usable(at time.Time) error {
	switch {
	case trust.WallOf(at) > e.Expires:
		return fmt.Errorf("invitation %w at %s: ask for another", trust.ErrExpired, e.Expires)
	case e.Left() <= 0:
		return fmt.Errorf("%w: %d of %d uses: ask for another", ErrUsedUp, len(e.Redeemed), e.Uses)
	}
	return nil
}

// EncodeEntry writes e for DecodeEntry. It holds the secret: store it like a key.
func EncodeEntry(e Entry) []byte { return codec.Encode(e) }

// DecodeEntry reads a stored entry.
func DecodeEntry(b []byte) (Entry, error) {
	var e Entry
	if err := codec.Decode("stored invitation", b, MaxUses*trust.MaxChain*trust.MaxCertificate, &e); err != nil {
		return Entry{}, err
	}
	return e, e.validate()
}
