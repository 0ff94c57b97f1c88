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
		ws, ok := cs.toSave(now, 1)
		if !ok || len(ws.All) != n {
			t.Fatalf("of %d waits %d are stored (%v)", n, len(ws.All), ok)
		}
		now += time.Millisecond
		cs.drop(answer(1))
		cs.begin(answer(1).handOver(), 0, now)
		ws, ok = cs.toSave(now, 1)
		if !ok || slices.ContainsFunc(ws.All, func(w Wait) bool { return w.Key == answer(1) }) {
			t.Errorf("of %d waits one was dropped, and stays stored (%v)", n, ok)
		}
		now += time.Millisecond
		cs.begin(answer(n), 0, now)
		if _, ok = cs.toSave(now, 1); ok != (n <= fewWaits-1) {
			t.Errorf("one more than %d waits began, and is stored at once: %v", n, ok)
		}
	}
}
