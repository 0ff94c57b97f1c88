package worklists

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// However many instances somebody begins, the messages about those of others stay: each has as much room as any
// other that needs it, and of each the newest are left.
func TestMessagesShareTheRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.IntRange(1, 60).Draw(t, "room")
		count := rapid.SliceOfN(rapid.IntRange(0, 200), 1, 6).Draw(t, "messages of each")
		var all []Told
		total := 0
		for i, n := range count {
			for k := range n {
				m := Told{From: workflow.PartnerID(fmt.Sprint("p", i))}
				m.At = time.Unix(int64(k), 0)
				all = append(all, m)
			}
			total += n
		}
		left, oldest := map[workflow.PartnerID]int{}, map[workflow.PartnerID]time.Time{}
		for _, m := range share(all, room) {
			if left[m.From]++; left[m.From] == 1 || m.At.Before(oldest[m.From]) {
				oldest[m.From] = m.At
			}
		}
		sum := 0
		for i, n := range count {
			p := workflow.PartnerID(fmt.Sprint("p", i))
			sum += left[p]
			if left[p] < min(n, room/len(count)) {
				t.Fatalf("%s has %d of %d messages, of %d that there is room for among %v", p, left[p], n, room, count)
			}
			if left[p] > 0 && oldest[p] != time.Unix(int64(n-left[p]), 0) {
				t.Fatalf("the oldest of %s is %v, not the newest %d of %d", p, oldest[p].Unix(), left[p], n)
			}
		}
		if sum != min(room, total) {
			t.Fatalf("%d are left of %v, there is room for %d", sum, count, room)
		}
	})
}

// A deadline that a partner tells is checked: what there cannot be is refused, and the rest is by this node's clock.
func TestDeadlinesOfOthers(t *testing.T) {
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		row  Row
		want time.Time
		bad  bool
	}{
		{"none", Row{DueLeft: time.Hour}, time.Time{}, false},
		{"a span", Row{
			Due: worklist.Due{After: 3 * time.Hour}, DueLeft: time.Hour, Warnings: []time.Duration{time.Hour},
		}, now.Add(time.Hour), false},
		{"over", Row{Due: worklist.Due{After: 3 * time.Hour}, DueLeft: -time.Hour}, now.Add(-time.Hour), false},
		{"a point in time is by the own clock", Row{Due: worklist.Due{At: now}, DueLeft: time.Hour}, now, false},
		{"both", Row{Due: worklist.Due{At: now, After: time.Hour}}, now, true},
		{"below zero", Row{Due: worklist.Due{After: -time.Hour}}, now, true},
		{"far away", Row{Due: worklist.Due{After: 1, At: time.Time{}}, DueLeft: 1 << 62},
			now.Add(100 * 365 * 24 * time.Hour), false},
		{"no year", Row{Due: worklist.Due{At: time.Date(40000, 1, 1, 0, 0, 0, 0, time.UTC)}}, now, true},
		{"too many", Row{Due: worklist.Due{After: 1}, Warnings: make([]time.Duration, maxWarnings+1)}, now, true},
		{"a warning after it", Row{Due: worklist.Due{After: 1}, Warnings: []time.Duration{-1}}, now, true},
	} {
		if err := tt.row.checkDue(now); (err != nil) != tt.bad {
			t.Errorf("%s: %v", tt.name, err)
		} else if !tt.bad && !tt.row.DueAt.Equal(tt.want) {
			t.Errorf("%s: due at %s, want %s", tt.name, tt.row.DueAt, tt.want)
		}
	}
}
