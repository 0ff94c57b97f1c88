package membership

import (
	"bytes"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// Everything that is signed, stored or sent is deterministic CBOR (RFC 8949,
// 4.2.1). Decoding accepts only the bytes that encoding would write, so what
// is signed is recomputed from the decoded value and nothing has two forms.
var (
	encoder = must(cbor.CoreDetEncOptions().EncMode())
	decoder = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxNestedLevels:   8,
		MaxArrayElements:  1 << 14,
		MaxMapPairs:       1 << 12,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("membership: CBOR options: %v", err))
	}
	return v
}

// encode writes v, one of this package's own types, which always can be written.
func encode(v any) []byte {
	b, err := encoder.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("membership: encode %T: %v", v, err))
	}
	return b
}

// decode reads b, at most limit bytes that encode wrote, into v. what names
// the thing in errors.
func decode(what string, b []byte, limit int, v any) error {
	if len(b) > limit {
		return fmt.Errorf("%s of %d bytes: at most %d are accepted", what, len(b), limit)
	}
	if err := decoder.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s cannot be read: %w", what, err)
	}
	if !bytes.Equal(encode(v), b) {
		return fmt.Errorf("%s is not in deterministic CBOR: its sender is faulty", what)
	}
	return nil
}

// Wall is a moment by some node's wall clock: seconds since 1970, UTC. It is
// used where people set limits (certificates, invitations), never to compare
// two nodes' events.
type Wall int64

// WallOf is t to the second, rounded down.
func WallOf(t time.Time) Wall { return Wall(t.Unix()) }

// Time is w in UTC.
func (w Wall) Time() time.Time { return time.Unix(int64(w), 0).UTC() }

// String is w as RFC 3339.
func (w Wall) String() string { return w.Time().Format(time.RFC3339) }
