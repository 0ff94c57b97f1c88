package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
)

// Whoever waits for a holder that does not answer is told after two seconds for whom that is, and for how long at most;
// a program is not, nor whoever hears at once.
func TestWhoIsWaitedForIsSaid(t *testing.T) {
	for _, tt := range []struct {
		items  []string
		most   func(api.Item) time.Duration
		takes  time.Duration
		person bool
		want   string
	}{
		{[]string{"3f9a"}, toTake, 10 * time.Second, true, "waiting for boat, which holds weigh: 10s at most\n"},
		{[]string{"77c0"}, toFinish, 3 * time.Second, true, "waiting for base, which holds feed: 3s at most\n"},
		{[]string{"3f9a", "77c0"}, toTake, 9 * time.Second, true,
			"waiting for boat, base, which hold weigh, feed: 10s at most for each\n"},
		{[]string{"3f9a"}, toTake, time.Second, true, ""},
		{[]string{"3f9a"}, toTake, 10 * time.Second, false, ""},
		{[]string{"beef"}, toTake, 10 * time.Second, true, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			node := &apitest.Fake{}
			node.OnWorklist = func(api.WorklistQuery) ([]api.Item, error) {
				return []api.Item{
					{ID: "3f9a01", Task: "weigh", Partner: "boat", State: api.ItemReady},
					{ID: "77c001", Task: "feed", Partner: "base", State: api.ItemLocked},
				}, nil
			}
			var said bytes.Buffer
			u, began := &ui{err: &said, progress: tt.person}, time.Now()
			got, err := whileAsked(t.Context(), u, node, api.WorklistQuery{}, tt.items, tt.most, func() (int, error) {
				time.Sleep(tt.takes)
				return 7, nil
			})
			if got != 7 || err != nil || time.Since(began) != tt.takes {
				t.Errorf("it took %s, and came to %d, %v", time.Since(began), got, err)
			}
			if said.String() != tt.want {
				t.Errorf("it says %q, want %q", said.String(), tt.want)
			}
		})
	}
}
