package codec

import (
	"bytes"
	"fmt"

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
		panic(fmt.Sprintf("codec: CBOR options: %v", err))
	}
	return v
}

// Encode writes v, of a type of the package that calls it, which always can be written.
func Encode(v any) []byte {
	b, err := encoder.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("codec: encode %T: %v", v, err))
	}
	return b
}

// Decode reads b, at most limit bytes that Encode wrote, into v. what names
// the thing in errors.
func Decode(what string, b []byte, limit int, v any) error {
	if len(b) > limit {
		return fmt.Errorf("%s of %d bytes: at most %d are accepted", what, len(b), limit)
	}
	if err := decoder.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s cannot be read: %w", what, err)
	}
	if !bytes.Equal(Encode(v), b) {
		return fmt.Errorf("%s is not in deterministic CBOR: its sender is faulty", what)
	}
	return nil
}
