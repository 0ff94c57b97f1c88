package node

import "github.com/fxamacker/cbor/v2"

// encMode encodes what this node keeps for itself.
var encMode = func() cbor.EncMode {
	m, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err) // the options are constants of ours
	}
	return m
}()

// encode encodes a value of ours, which cannot fail.
func encode(v any) []byte {
	b, err := encMode.Marshal(v)
	if err != nil {
		panic(err) // our own types encode
	}
	return b
}
