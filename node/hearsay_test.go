package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
)

// In a line of partners, of whom only neighbours can reach each other, everybody
// stays listed by what the others pass on. When the last one dies, nobody lists it
// for longer than its connectionTime, however it was heard of.
func TestNewsOfWhoIsOutOfReachCountsFromWhenItWasTold(t *testing.T) {
	const connectionTime = 15 * time.Second
	names := []string{"one", "two", "three", "four", "five"}
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = connectionTime }, names...)
		for i := range names {
			for j := range i - 1 {
				tm.disconnect(names[i], names[j])
			}
		}
		for range 20 * 60 {
			pass(time.Second)
			for _, at := range names {
				for _, of := range names {
					if s := tm.partnerState(at, of); s == "expired" {
						t.Fatalf("%s takes %s for expired, which is at work %s after the start", at, of, time.Duration(elapsed())*time.Millisecond)
					}
				}
			}
		}
		tm.p["five"].crash()
		pass(connectionTime)
		for _, at := range names[:4] {
			if s := tm.partnerState(at, "five"); s != "expired" {
				t.Errorf("%s takes five for %s, a connectionTime after it died", at, s)
			}
		}
	})
}
