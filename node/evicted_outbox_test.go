package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// What was done out of reach at a device that is evicted meanwhile waits for nobody: the outbox says so as soon as the
// device knows.
func TestTheOutboxOfTheEvictedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, item := offline(t)
		if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		only := func() api.Undelivered {
			t.Helper()
			list, err := tm.p["tablet"].api.Outbox(t.Context(), "")
			if err != nil || len(list) != 1 {
				t.Fatalf("the outbox has %+v, %v", list, err)
			}
			return list[0]
		}
		if x := only(); x.NoMember != "" || len(x.WaitsFor) != 1 {
			t.Errorf("while it is a member: %+v", x)
		}
		tm.expel("base", "tablet")
		pass(time.Minute)
		if x := only(); !strings.HasPrefix(x.NoMember, "tablet is evicted by base at ") || !strings.HasSuffix(x.NoMember, ": split") {
			t.Errorf("evicted: %+v", x)
		}
	})
}
