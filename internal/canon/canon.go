// Package canon writes and reads what partners say of instances: deterministic CBOR (RFC 8949, 4.2.1).
//
// Purpose: what is said is named by the hash of its bytes and signed, so it is written in one form only, and what a
// liar sends must not cost much to read. How that is written and read is said here, and how much there may be of it
// where it is read.
//
// It imports no other package of ours; choreo/fact and worklist import it.
package canon

import (
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// Encoder writes the one form.
func Encoder() cbor.EncMode { return must(cbor.CoreDetEncOptions().EncMode()) }

// Limits bound what is read.
type Limits struct {
	Elements int // in a list, and pairs in a map
	Levels   int // within one another; 0: 32
}

// Decoder reads what [Encoder] wrote, within limits: no field that is not known, no key twice, no tags, no length that
// is given at the end, and no text that is no UTF-8. It does not refuse every other form: a reader that needs that encodes
// what it has read, and compares.
func Decoder(l Limits) cbor.DecMode {
	return must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		IntDec:            cbor.IntDecConvertSignedOrFail,
		DefaultMapType:    reflect.TypeFor[map[string]any](),
		MaxArrayElements:  l.Elements,
		MaxMapPairs:       l.Elements,
		MaxNestedLevels:   l.Levels,
		UTF8:              cbor.UTF8RejectInvalid,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode())
}

// must is a mode made of options that are constants of ours.
func must[T any](mode T, err error) T {
	if err != nil {
		panic(err)
	}
	return mode
}
