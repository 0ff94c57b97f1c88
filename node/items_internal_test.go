package node

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/worklists"
)

// What the shards list is joined in their order, whether it is as much as last time, more, or less; where it is as much
// nothing is moved.
func TestRoomForLists(t *testing.T) {
	for _, x := range []struct {
		name      string
		last, now [3]int
	}{
		{name: "the same", last: [3]int{2, 0, 3}, now: [3]int{2, 0, 3}},
		{name: "more of one", last: [3]int{2, 0, 3}, now: [3]int{2, 1, 3}},
		{name: "less of one", last: [3]int{2, 0, 3}, now: [3]int{1, 0, 3}},
		{name: "as many, and others", last: [3]int{2, 0, 3}, now: [3]int{3, 0, 2}},
		{name: "the first time", now: [3]int{2, 0, 3}},
		{name: "nothing any more", last: [3]int{2, 0, 3}},
		{name: "nothing"},
	} {
		c := &crew{}
		for i, n := range x.last {
			s := &shard{number: i}
			s.listed[ready].Store(int64(n))
			c.shards = append(c.shards, s)
		}
		room := peoplesItems{desk: &desk{crew: c}}.roomFor(ready)
		var found [][]worklists.Row
		place := 0
		for i, n := range x.now {
			rows := room.of(c.shards[i])
			for range n {
				rows = append(rows, worklists.Row{Place: place})
				place++
			}
			found = append(found, rows)
		}
		joined := room.joined(found)
		for i := range joined {
			if joined[i].Place != i {
				t.Errorf("%s: at place %d is row %d", x.name, i, joined[i].Place)
			}
		}
		if joined == nil || len(joined) != place {
			t.Errorf("%s: %d rows are joined, want %d", x.name, len(joined), place)
		}
		if x.now == x.last && place > 0 && &joined[0] != &room.all[0] {
			t.Errorf("%s: as many as last time are moved", x.name)
		}
	}
}
