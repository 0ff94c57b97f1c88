package index

import (
	"bytes"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
)

// What is stored can be read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) {
	codectest.ReadBack(t, &Summary{}, &SetAside{}, &News{})
}

// That a machine panicked is not stored: the next start tries it once more.
func TestAFaultIsNotStored(t *testing.T) {
	with, without := SetAside{Since: 1, Why: "it failed", Fault: true}, SetAside{Since: 1, Why: "it failed"}
	if a, b := codec.Encode(with), codec.Encode(without); !bytes.Equal(a, b) {
		t.Errorf("with a fault %x is stored, without one %x", a, b)
	}
}
