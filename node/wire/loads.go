package wire

import "fmt"

// Limits of what a partner says of how much people have to do.
const (
	// MaxLoads bounds the people of whom it says so in all. One word may be about twice as many: those of whom it says
	// nothing any more, and others in their place.
	MaxLoads = 256
	// MaxLoad bounds the items that one of them has.
	MaxLoad = 1 << 20
	// maxUserID is longer than any ID of a user or partner.
	maxUserID = 100
)

// Loads say how much people have to do of the items that the sender holds.
type Loads struct {
	_ struct{} `cbor:",toarray"`
	// All: of whom nothing is said, that one has nothing. Else it is what has changed.
	All bool
	Of  []LoadOf
}

// LoadOf is how many items are assigned to a person, and how many the person has selected.
type LoadOf struct {
	_                  struct{} `cbor:",toarray"`
	User               string   // ID
	Assigned, Selected uint32
}

func (l *Loads) check() error {
	if len(l.Of) > 2*MaxLoads {
		return fmt.Errorf("%d people, at most %d", len(l.Of), 2*MaxLoads)
	}
	for _, x := range l.Of {
		switch {
		case x.User == "" || len(x.User) > maxUserID:
			return fmt.Errorf("a user's ID of %d bytes, want 1 to %d", len(x.User), maxUserID)
		case x.Assigned > MaxLoad || x.Selected > MaxLoad:
			return fmt.Errorf("%d items assigned and %d selected, at most %d", x.Assigned, x.Selected, MaxLoad)
		}
	}
	return nil
}

// EncodeLoads writes a request for DecodeLoads. Its error is a *TooLong where it is too long.
func EncodeLoads(l Loads) ([]byte, error) { return loads.encode(l) }

// DecodeLoads reads a request. Its error wraps ErrVersion or ErrMalformed.
func DecodeLoads(b []byte) (Loads, error) { return loads.decode(b) }
