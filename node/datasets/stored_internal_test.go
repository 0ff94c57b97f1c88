package datasets

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
)

// A data set that is stored can be read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) { codectest.ReadBack(t, &stored{}) }
