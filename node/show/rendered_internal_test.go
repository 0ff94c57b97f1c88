package show

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a result sets to nothing is called null in the log, as people write it.
func TestNothingIsCalledNull(t *testing.T) {
	if got := (&Held{}).outputs(map[workflow.DataName]workflow.Value{"car": nil, "n": int64(1)}); got != ": car = null, n = 1" {
		t.Errorf("the log says %q", got)
	}
}
