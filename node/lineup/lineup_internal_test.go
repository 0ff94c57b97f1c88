package lineup

import (
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// begin puts an instance that begins now behind all others.
func (l *Lines) begin(id workflow.InstanceID, at int64, partners ...workflow.PartnerID) (began int64) {
	began = l.Begins(at)
	l.Put(id, began, partners)
	return began
}

// isNext is next at once.
func (l *Lines) isNext(p workflow.PartnerID, id workflow.InstanceID) bool {
	next, _ := l.Next(p, id, 0)
	return next
}

// An instance has its turn at a partner when that has all that began before; one that was
// refused there meanwhile is called, once.
func TestLineup(t *testing.T) {
	l, p, q := New(), workflow.PartnerID("p"), workflow.PartnerID("q")
	a, b, c, late := workflow.InstanceID{9}, workflow.InstanceID{8}, workflow.InstanceID{7}, workflow.InstanceID{1}
	l.begin(a, 100, p, q)
	l.begin(b, 50, p, q) // the clock was set back: it began later all the same
	l.begin(c, 100, q)
	turns := func(want ...bool) {
		t.Helper()
		got := []bool{l.isNext(p, a), l.isNext(p, b), l.isNext(q, a), l.isNext(q, b), l.isNext(q, c)}
		if !slices.Equal(got, want) {
			t.Errorf("the turns are %v, want %v", got, want)
		}
	}
	turns(true, false, true, false, false)
	if !l.Refuse(p, a) || l.Refuse(p, b) || l.Refuse(q, c) || l.Refuse("r", a) {
		t.Error("what is refused is a's turn at p, and nothing else is")
	}
	if called := l.Leave(p, a); !slices.Equal(called, []Call{{p, b}}) {
		t.Errorf("p has a: called is %v", called)
	}
	if called := slices.Concat(l.Leave(p, a), l.Leave("r", a)); len(called) != 0 {
		t.Errorf("nothing has changed: called is %v", called)
	}
	if called := l.Leave(q, b); len(called) != 0 {
		t.Errorf("it is still a's turn at q: called is %v", called)
	}
	if called := l.End(a); !slices.Equal(called, []Call{{q, c}}) {
		t.Errorf("a is settled, q has b: called is %v", called)
	}
	l.Put(late, 10, []workflow.PartnerID{q})
	l.Put(b, 10, []workflow.PartnerID{q}) // it is loaded again, and keeps its place
	if !l.isNext(q, late) || l.isNext(q, b) || l.isNext(q, c) || !l.isNext(p, b) || l.isNext(p, a) {
		t.Error("the oldest is to be next")
	}
	for _, id := range []workflow.InstanceID{b, c, late} {
		l.End(id)
	}
	if len(l.lines) != 0 || len(l.places) != 0 {
		t.Errorf("left are %v and %v", l.lines, l.places)
	}
}

// The order is the same after a restart, also where the clock was set back.
func TestLineupAfterRestart(t *testing.T) {
	before, after := New(), New()
	a, b, c := workflow.InstanceID{9}, workflow.InstanceID{8}, workflow.InstanceID{7}
	stored := map[workflow.InstanceID]int64{a: before.begin(a, 7_200_000, "p"), b: before.begin(b, 0, "p")}
	for id, began := range stored {
		after.Put(id, began, []workflow.PartnerID{"p"})
	}
	after.begin(c, 1000, "p")
	for i, id := range []workflow.InstanceID{a, b, c} {
		if !after.isNext("p", id) {
			t.Errorf("the one that began as number %d is not next", i+1)
		}
		after.Leave("p", id)
	}
}

// An instance of which a partner says nothing is passed over there: the line goes on, and its
// turn is back with the partner's first word of it, or when they are connected again.
func TestLineupPassesOverSilence(t *testing.T) {
	const p = workflow.PartnerID("p")
	a, b, c := workflow.InstanceID{1}, workflow.InstanceID{2}, workflow.InstanceID{3}
	silent := func() *Lines {
		l := New()
		for i, id := range []workflow.InstanceID{a, b, c} {
			l.begin(id, int64(i), p)
			l.Next(p, id, 0)
		}
		l.Refuse(p, b)
		l.Refuse(p, c)
		if next, called := l.Next(p, a, silentFor-1); !next || len(called) > 0 {
			t.Errorf("p may still answer: a is next is %v, called is %v", next, called)
		}
		if next, called := l.Next(p, a, silentFor); next || !slices.Equal(called, []Call{{p, b}}) {
			t.Errorf("p says nothing of a: a is next is %v, called is %v", next, called)
		}
		if next, _ := l.Next(p, b, silentFor); !next {
			t.Error("b is not next after a")
		}
		return l
	}
	l := silent()
	if next, called := l.Next(p, c, 2*silentFor); !next || len(called) > 0 {
		t.Errorf("p says nothing of b either: c is next is %v, called is %v", next, called)
	}
	if !l.Refuse(p, a) || l.isNext(p, c) {
		t.Error("p has said a word of a: it is a's turn")
	}
	l = silent()
	l.Meet(p, a)
	if next, _ := l.Next(p, b, 2*silentFor); next {
		t.Error("p is connected again: it is a's turn, and p may still answer")
	}
	for _, id := range []workflow.InstanceID{a, b, c} {
		l.Leave(p, id)
	}
	if len(l.lines) != 0 {
		t.Errorf("left are %v", l.lines)
	}
}

// An instance that is refused often, each time in words, keeps its turn.
func TestLineupKeepsTheTurnOfWhatIsRefused(t *testing.T) {
	l, a, b := New(), workflow.InstanceID{1}, workflow.InstanceID{2}
	l.begin(a, 1, "p")
	l.begin(b, 2, "p")
	for now := time.Duration(0); now < 10*silentFor; now += silentFor {
		if next, _ := l.Next("p", a, now); !next || !l.Refuse("p", a) {
			t.Fatalf("after %v it is not a's turn", now)
		}
		if next, _ := l.Next("p", b, now); next {
			t.Fatalf("after %v it is b's turn", now)
		}
	}
}

// What has left a line takes no room there for long, though its first stays.
func TestLineupForgets(t *testing.T) {
	l := New()
	l.begin(workflow.InstanceID{}, 1, "p")
	for i := range 1000 {
		id := workflow.InstanceID{1, byte(i), byte(i >> 8)}
		l.begin(id, 1, "p")
		l.Leave("p", id)
		l.isNext("p", id) // it says that it lacks it after all
		l.Leave("p", id)
		l.End(id)
	}
	if q := l.lines["p"]; len(q.order) > 2 || len(l.places) != 1 {
		t.Errorf("of 1001 instances that began, of which 1 is lacking, a line has %d and the places %d", len(q.order),
			len(l.places))
	}
}
