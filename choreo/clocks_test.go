package choreo

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A wait that is dropped, since something joined what it is for, is not on the disk any
// more when the next fact is, among however many: restored after a crash it would be
// over too early. One of few that begins is stored at once, one of many with the next.
func TestWhatIsStoredOfWaits(t *testing.T) {
	now := time.Minute
	answer := func(i int) WaitKey { return WaitKey{Kind: WaitAnswer, Name: fmt.Sprintf("p%d", i)} }
	for _, n := range []int{3, 100} {
		cs := newClocks(new(int))
		for i := range n {
			cs.begin(answer(i), 0, now)
		}
		ws := cs.toSave(now, 1)
		if ws == nil || len(ws.All) != n {
			t.Fatalf("of %d waits are stored: %v", n, ws)
		}
		now += time.Millisecond
		cs.drop(answer(1))
		cs.begin(answer(1).handOver(), 0, now)
		ws = cs.toSave(now, 1)
		if ws == nil || slices.ContainsFunc(ws.All, func(w Wait) bool { return w.Key == answer(1) }) {
			t.Errorf("of %d waits one was dropped, and stays stored: %v", n, ws)
		}
		now += time.Millisecond
		cs.begin(answer(n), 0, now)
		if ws = cs.toSave(now, 1); (ws != nil) != (n <= fewWaits-1) {
			t.Errorf("one more than %d waits began, and these are stored at once: %v", n, ws)
		}
	}
}
