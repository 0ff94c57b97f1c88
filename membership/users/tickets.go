package users

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

// Why a sign-in token is not honoured, besides [trust.ErrExpired] and [ErrRemoved].
var (
	// ErrNoTicket tells that no open token fits.
	ErrNoTicket = errors.New("no such sign-in token here")
	// ErrUsed tells that another device has used a token.
	ErrUsed = errors.New("this sign-in token was used already")
)

// Ticket is one sign-in token, as the node keeps it that made it.
type Ticket struct {
	Secret Secret `cbor:"1,keyasint"`
	User   ID     `cbor:"2,keyasint"`
	// Linked is the user's key that certifies; none: this node does, as an administrator.
	Linked   workflow.PartnerID `cbor:"3,keyasint,omitempty"`
	Expires  trust.Wall         `cbor:"4,keyasint"`
	Lifetime time.Duration      `cbor:"5,keyasint"` // of the certificate that it gives
	// Redeemed is the key that was certified; nil: it was not used yet.
	Redeemed *Device `cbor:"6,keyasint,omitempty"`
}

// Tickets are the sign-in tokens of one node. It is not safe for concurrent use.
type Tickets struct {
	self workflow.PartnerID
	open map[TicketID]Ticket
}

// NewTickets are those of a node that has made none.
func NewTickets(self workflow.PartnerID) *Tickets {
	return &Tickets{self: self, open: map[TicketID]Ticket{}}
}

// Keep adds a ticket, or takes in what became of it. The caller makes t durable, by
// [EncodeTicket], before anybody sees it or what came of it.
func (ts *Tickets) Keep(t Ticket) error {
	id := t.Secret.ID()
	if _, known := ts.open[id]; !known {
		if err := ts.Room(); err != nil {
			return err
		}
	}
	ts.open[id] = t
	return nil
}

// Room returns an error where there is no room for another ticket. It is asked before a ticket
// is made durable.
func (ts *Tickets) Room() error {
	if len(ts.open) >= MaxTickets {
		return fmt.Errorf("%d sign-in tokens are kept, which is the most: wait until one expires", len(ts.open))
	}
	return nil
}

// Forget closes a ticket.
func (ts *Tickets) Forget(id TicketID) { delete(ts.open, id) }

// Expired are the tickets that expired more than [trust.ClockSkew] ago, for the caller to
// forget. Until then a device to which the answer was lost can still fetch it again.
func (ts *Tickets) Expired(at time.Time) []TicketID {
	gone := slices.SortedFunc(maps.Keys(ts.open), func(a, b TicketID) int { return bytes.Compare(a[:], b[:]) })
	return slices.DeleteFunc(gone, func(id TicketID) bool {
		return ts.open[id].Expires >= trust.WallOf(at.Add(-trust.ClockSkew))
	})
}

// Redeem judges a request at this node's wall clock and finds its ticket. If the ticket was
// used by the same key already, that is in Redeemed, and is to be given out again. It
// changes nothing: the caller certifies the key, makes that durable with the ticket, and
// only then answers. So a crash at any point certifies one key.
//
// Nobody learns whether a token is expired or used without having proved its secret.
func (ts *Tickets) Redeem(r Request, at time.Time) (Ticket, error) {
	t, open := ts.open[r.Ticket]
	if !open {
		return Ticket{}, fmt.Errorf("%w: it expired, or another node made it: ask for another", ErrNoTicket)
	}
	if err := r.verify(ts.self, t.Secret); err != nil {
		return Ticket{}, err
	}
	switch {
	case r.User != t.User:
		return Ticket{}, fmt.Errorf("the token is of user %s, not of %s: %w", t.User.Short(), r.User.Short(),
			trust.ErrForged)
	case t.Redeemed != nil && t.Redeemed.Leaf().Key == r.Key:
		return t, nil
	case t.Redeemed != nil:
		return Ticket{}, fmt.Errorf("%w: ask for another", ErrUsed)
	case trust.WallOf(at) > t.Expires:
		return Ticket{}, fmt.Errorf("sign-in token %w at %s: ask for another", trust.ErrExpired, t.Expires)
	}
	return t, nil
}

// Certificate is what the ticket gives a key that asks, to be certified.
func (t Ticket) Certificate(r Request, serial trust.Serial, at time.Time) Certificate {
	return Certificate{
		Key: r.Key, Node: r.Node, Consent: r.Consent, Serial: serial,
		NotBefore: trust.WallOf(at), NotAfter: trust.WallOf(at.Add(t.Lifetime)),
	}
}

// EncodeTicket writes t for DecodeTicket. It holds the secret: store it like a key.
func EncodeTicket(t Ticket) []byte { return codec.Encode(t) }

// DecodeTicket reads a stored ticket.
func DecodeTicket(b []byte) (Ticket, error) {
	var t Ticket
	if err := codec.Decode("stored sign-in token", b, 2*MaxRecord, &t); err != nil {
		return Ticket{}, err
	}
	if t.Secret == (Secret{}) || t.Lifetime <= 0 {
		return Ticket{}, errors.New("stored sign-in token without a secret, or of no use")
	}
	return t, nil
}
