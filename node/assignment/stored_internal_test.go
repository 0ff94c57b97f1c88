package assignment

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
)

// What was learned can be read back, whatever the names in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) { codectest.ReadBack(t, &storedLesson{}) }
