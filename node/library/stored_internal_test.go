package library

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
)

// A listing that is stored can be read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) { codectest.ReadBack(t, &storedListing{}) }
