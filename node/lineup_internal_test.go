package node

import (
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// An instance has its turn at a partner when that has all that began before; one that was
// refused there meanwhile is called, once.
func TestLineup(t *testing.T) {
	l, p, q := newLineup(), workflow.PartnerID("p"), workflow.PartnerID("q")
	a, b, c, late := workflow.InstanceID{9}, workflow.InstanceID{8}, workflow.InstanceID{7}, workflow.InstanceID{1}
	l.begin(a, 100, []workflow.PartnerID{p, q})
	l.begin(b, 50, []workflow.PartnerID{p, q}) // the clock was set back: it began later all the same
	l.begin(c, 100, []workflow.PartnerID{q})
	turns := func(want ...bool) {
		t.Helper()
		got := []bool{l.next(p, a), l.next(p, b), l.next(q, a), l.next(q, b), l.next(q, c)}
		if !slices.Equal(got, want) {
			t.Errorf("the turns are %v, want %v", got, want)
		}
	}
	turns(true, false, true, false, false)
	if !l.refuse(p, a) || l.refuse(p, b) || l.refuse(q, c) || l.refuse("r", a) {
		t.Error("what is refused is a's turn at p, and nothing else is")
	}
	if called := l.leave(p, a); !slices.Equal(called, []call{{p, b}}) {
		t.Errorf("p has a: called is %v", called)
	}
	if called := slices.Concat(l.leave(p, a), l.leave("r", a)); len(called) != 0 {
		t.Errorf("nothing has changed: called is %v", called)
	}
	if called := l.leave(q, b); len(called) != 0 {
		t.Errorf("it is still a's turn at q: called is %v", called)
	}
	if called := l.end(a); !slices.Equal(called, []call{{q, c}}) {
		t.Errorf("a is settled, q has b: called is %v", called)
	}
	l.resume(late, 10, []workflow.PartnerID{q})
	l.resume(b, 10, []workflow.PartnerID{q}) // it is loaded again, and keeps its place
	if !l.next(q, late) || l.next(q, b) || l.next(q, c) || !l.next(p, b) || l.next(p, a) {
		t.Error("the oldest is to be next")
	}
	for _, id := range []workflow.InstanceID{b, c, late} {
		l.end(id)
	}
	if len(l.lines) != 0 || len(l.places) != 0 {
		t.Errorf("left are %v and %v", l.lines, l.places)
	}
}

// What has left a line takes no room there for long, though its first stays.
func TestLineupForgets(t *testing.T) {
	l := newLineup()
	l.begin(workflow.InstanceID{}, 1, []workflow.PartnerID{"p"})
	for i := range 1000 {
		id := workflow.InstanceID{1, byte(i), byte(i >> 8)}
		l.begin(id, 1, []workflow.PartnerID{"p"})
		l.leave("p", id)
		l.next("p", id) // it says that it lacks it after all
		l.leave("p", id)
		l.end(id)
	}
	if q := l.lines["p"]; len(q.order) > 2 || len(l.places) != 1 {
		t.Errorf("of 1001 instances that began, of which 1 is lacking, a line has %d and the places %d", len(q.order), len(l.places))
	}
}
