package fact_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
)

// seeds are encoded facts of every kind.
func seeds(t testing.TB) [][]byte {
	var out [][]byte
	for _, f := range sampleFacts() {
		raw, _, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw)
	}
	return out
}

// FuzzDecodeFact: whatever decodes is valid, is named by its bytes, and comes
// out of its own encoding as it went in.
func FuzzDecodeFact(f *testing.F) {
	for _, raw := range seeds(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		told, id, err := fact.Decode(raw)
		if err != nil {
			if !errors.Is(err, fact.ErrInvalid) {
				t.Fatalf("error %v does not wrap fact.ErrInvalid", err)
			}
			return
		}
		if id != fact.NameOf(raw) || told.Body.Kind() == "" {
			t.Fatalf("fact %s of kind %q", id, told.Body.Kind())
		}
		again, _, err := told.Encode()
		if err != nil {
			t.Fatalf("a fact that decoded cannot be encoded: %v", err)
		}
		twice, _, err := fact.Decode(again)
		if err != nil {
			t.Fatalf("a fact does not survive its encoding: %v", err)
		}
		third, _, err := twice.Encode()
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("the encoding is not stable: %x, %x (%v)", again, third, err)
		}
	})
}
