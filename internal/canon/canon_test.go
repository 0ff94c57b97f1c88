package canon_test

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/canon"
)

// What is read is what is written, and what no correct node writes is refused.
func TestOneForm(t *testing.T) {
	type said struct {
		What string         `cbor:"1,keyasint,omitempty"`
		Of   []any          `cbor:"2,keyasint,omitempty"`
		Much map[string]any `cbor:"3,keyasint,omitempty"`
	}
	read := canon.Decoder(canon.Limits{Elements: 16, Levels: 4})
	b, err := canon.Encoder().Marshal(said{What: "x", Of: []any{int64(1)}, Much: map[string]any{"b": "2", "a": "1"}})
	if want := "\xa3\x01ax\x02\x81\x01\x03\xa2aaa1aba2"; err != nil || string(b) != want {
		t.Fatalf("written as %x, %v; want %x", b, err, want)
	}
	var got said
	if err := read.Unmarshal(b, &got); err != nil || got.What != "x" || got.Of[0] != int64(1) || got.Much["b"] != "2" {
		t.Errorf("read as %+v, %v", got, err)
	}
	for name, bytes := range map[string]string{
		"a field that is not known": "\xa1\x04ax", "a key twice": "\xa2\x01ax\x01ay", "a tag": "\xa1\x02\x81\xc1\x01",
		"a length that is given at the end": "\xbf\x01ax\xff", "a text that is no UTF-8": "\xa1\x01a\xff",
		"too many in a list": "\xa1\x02\x91\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01",
		"too deep":           "\xa1\x02\x81\x81\x81\x81\x81\x01",
		"too large a number": "\xa1\x02\x81\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		if err := read.Unmarshal([]byte(bytes), new(said)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}
