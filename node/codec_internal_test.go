package node

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
)

// What this node stores it can read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) {
	codectest.ReadBack(t,
		&storedFact{}, &storedWaits{}, &storedLosses{}, &memberDoc{},
	)
}
