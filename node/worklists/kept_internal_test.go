package worklists

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
)

// What is kept of an item can be read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) { codectest.ReadBack(t, &kept{}) }
