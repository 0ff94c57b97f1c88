package node_test

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// An outlook names the interruption that it is of: a step that was looked at may have been taken by somebody else, and
// led to the very same interruption once more. Else all that is said of the two is the same.
func TestAnOutlookNamesItsInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		tm.add("one", "workflow: hire\ndata: {key: {type: boolean}}\ntasks:\n"+
			"  hand: {when: key == null, repeat: true, type: manual, out: [key]}\nfinal: key\n")
		id := tm.begin("one", "hire", map[string]string{})
		step := api.RecoveryStep{Method: "offer"}
		var seen []api.Outlook
		for range 2 {
			pass(time.Second)
			tm.ends("one", id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
			for range 2 {
				out, err := tm.p["one"].api.ForeseeRecovery(t.Context(), id, step)
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, *out)
			}
			_, err := tm.p["one"].api.OrderTask(t.Context(), api.TaskOrder{ID: id, Order: api.TaskRecover, Recover: &step})
			if err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(seen[0], seen[1]) || seen[0].Interruption == "" || !reflect.DeepEqual(seen[2], seen[3]) {
			t.Errorf("of one interruption it is said once %+v, once %+v", seen[:2], seen[2:])
		}
		if seen[0].Interruption == seen[2].Interruption {
			t.Error("two interruptions have one name")
		}
		seen[2].Interruption = seen[0].Interruption
		if !reflect.DeepEqual(seen[0], seen[2]) {
			t.Errorf("the two differ in more than that, so it would be seen anyway: %+v, %+v", seen[0], seen[2])
		}
	})
}
