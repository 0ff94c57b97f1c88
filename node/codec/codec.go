// Package codec encodes what a node keeps for itself in its store.
//
// Promises: what Encode made Decode reads back, whatever the texts in it are; the same
// value is always encoded alike.
//
// It imports no other package of ours; node, node/codec/codectest, node/datasets and
// node/profile import it.
package codec

import (
	"math"

	"github.com/fxamacker/cbor/v2"
)

// encMode encodes what this node keeps for itself, decMode reads it back: all of it,
// also texts that are no UTF-8 and lists of any length. An error's text may well be
// such a one, and what could not be read back would be taken for a damage of the disk.
var (
	encMode = must(cbor.CoreDetEncOptions().EncMode())
	decMode = must(cbor.DecOptions{
		UTF8: cbor.UTF8DecodeInvalid, MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32,
	}.DecMode())
)

// must is a value made of options that are constants of ours, or encoded of types of ours.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Encode encodes a value of one of our own types, which cannot fail.
func Encode(v any) []byte { return must(encMode.Marshal(v)) }

// Decode reads what Encode made.
func Decode(b []byte, v any) error { return decMode.Unmarshal(b, v) }
