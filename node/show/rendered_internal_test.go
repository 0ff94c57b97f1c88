package show

import (
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a result sets to nothing is called null in the log, as people write it.
func TestNothingIsCalledNull(t *testing.T) {
	if got := (&Held{}).outputs(map[workflow.DataName]workflow.Value{"car": nil, "n": int64(1)}); got != ": car = null, n = 1" {
		t.Errorf("the log says %q", got)
	}
}

// A file among what a result sets is shown by its name and size, and lists by what they hold, as it is written.
func TestAFileIsShownByItsName(t *testing.T) {
	file := "file:" + strings.Repeat("ab", 32) + ":2400000:house.pdf"
	out := map[workflow.DataName]workflow.Value{"photo": file, "parts": []any{"<b>", "a & b"}}
	if got := (&Held{}).outputs(out); got != `: parts = ["<b>","a & b"], photo = house.pdf (2.4 MB)` {
		t.Errorf("the log says %q", got)
	}
}
