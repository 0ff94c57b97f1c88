package sim

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// What a user is told of items that it could not lock counts as the user can take it: only who says that one of them is
// locked, or may be, says so, and only of an item that was asked for.
func TestWhatIsToldOfALock(t *testing.T) {
	for _, x := range []struct {
		why  string
		want lockTold
	}{
		{"l02 is locked, but this device cannot keep it for when it is out of reach: n1 did not say so again", toldLocked},
		{"l03 is locked, but this device cannot keep it for when it is out of reach: disk full", toldLocked},
		{"l01, l03 are locked, but this device cannot keep them for when it is out of reach: disk full", toldLocked},
		{"n1, who holds l02, did not answer; it may have written it down all the same", toldPerhaps},
		{"l01 is locked, but this device cannot keep it for when it is out of reach: n1 did not say so again", untold},
		{"n1, who holds l01, did not answer; it may have written it down all the same", untold},
		{"n1, who holds l02, did not answer within 3s: nothing is locked, and what it may have given is given back once " +
			"it answers", untold},
		{"n1, who holds l02, could not write it down now: disk full", untold},
		{"n1 did not say that l02 is locked; all is given back", untold},
		{"n1, who holds l02, cannot be asked now", untold},
	} {
		if got := toldOf(x.why, []api.Item{{Task: "l02"}, {Task: "l03"}}); got != x.want {
			t.Errorf("%q says %d, want %d", x.why, got, x.want)
		}
	}
}
