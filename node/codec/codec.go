// Package codec encodes what a node keeps for itself in its store.
//
// Promises: what Encode made Decode reads back, whatever the texts in it are; the same
// value is always encoded alike.
//
// It imports node/store/kv; many packages import it.
package codec

import (
	"errors"
	"fmt"
	"math"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
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

// Raw is a value as Encode made it, to be put into another, or read later.
type Raw = cbor.RawMessage

// Store is where a value is read from.
type Store interface {
	Get(key []byte) ([]byte, error)
}

// Read reads a single value, which is named by its key without the first byte; the zero
// value if there is none.
func Read[T any](s Store, key []byte, decode func([]byte) (T, error)) (T, error) {
	var zero T
	b, err := s.Get(key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return zero, nil
	case err != nil:
		return zero, err
	}
	v, err := decode(b)
	if err != nil {
		return zero, fmt.Errorf("the store's %s cannot be read: %w", key[1:], err)
	}
	return v, nil
}
