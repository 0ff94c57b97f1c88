package assignment

import (
	"fmt"
	"maps"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// An item counts once, whoever tells of it: of what a partner holds the greater of what facts and that partner say.
// What it said is forgotten with it, and counts no more than what can be.
func TestLoadsOfAllHolders(t *testing.T) {
	l := newLoads("me")
	facts := map[worklist.LoadOf]worklist.Load{
		{Holder: "me", User: "lia"}: {Assigned: 2}, {Holder: "other", User: "lia"}: {Assigned: 1, Selected: 1},
		{Holder: "other", User: "rui"}: {Selected: 3},
	}
	l.add(facts, 1)
	is := func(when, lia, rui string) {
		t.Helper()
		for u, want := range map[worklist.User]string{"lia": lia, "rui": rui} {
			if got := fmt.Sprint(l.has(u)); got != want {
				t.Errorf("%s: %s has %s, want %s", when, u, got, want)
			}
		}
	}
	hears := func(p workflow.PartnerID, all, want bool, says map[worklist.User]worklist.Load) {
		t.Helper()
		if got := l.Hear(p, all, says, 2); got != want {
			t.Errorf("%v of %s (all: %t) is taken in: %t", says, p, all, got)
		}
	}
	is("by facts", "{3 1}", "{0 3}")
	hears("other", false, false, map[worklist.User]worklist.Load{"lia": {Assigned: 9}})
	is("of what changed something else must be known", "{3 1}", "{0 3}")
	hears("other", true, true, map[worklist.User]worklist.Load{"lia": {Assigned: 5}, "rui": {Selected: 1}})
	is("it holds items in other instances", "{7 1}", "{0 3}")
	hears("third", true, true, map[worklist.User]worklist.Load{"rui": {Assigned: 4}})
	is("so does a third", "{7 1}", "{4 3}")
	hears("other", false, true, map[worklist.User]worklist.Load{"lia": {}})
	is("they are done", "{3 1}", "{4 3}")
	hears("third", false, false, map[worklist.User]worklist.Load{"a": {Assigned: 1}, "b": {Assigned: 1}})
	is("it says more than may be", "{3 1}", "{0 3}")
	hears("third", true, true, map[worklist.User]worklist.Load{"rui": {Assigned: 4}})
	l.Forget("third")
	is("it is gone", "{3 1}", "{0 3}")
	l.Forget("other")
	l.add(facts, -1)
	if len(l.sum)+len(l.known)+len(l.told) > 0 {
		t.Errorf("what is over is remembered: %v, %v, %v", l.sum, l.known, l.told)
	}
}

// Of those who have to do something here partners are told of a number that is bounded: who has most.
func TestOwnLoadsAreThoseOfTheBusiest(t *testing.T) {
	l := newLoads("me")
	was := l.OwnAt()
	l.add(map[worklist.LoadOf]worklist.Load{{Holder: "other", User: "a"}: {Assigned: 9}}, 1)
	if l.OwnAt() != was || len(l.Own(9)) > 0 {
		t.Error("what others hold is told by this node")
	}
	for i, u := range []worklist.User{"a", "b", "c", "d"} {
		l.add(map[worklist.LoadOf]worklist.Load{{Holder: "me", User: u}: {Assigned: i % 3, Selected: 1}}, 1)
	}
	want := map[worklist.User]worklist.Load{"b": {Assigned: 1, Selected: 1}, "c": {Assigned: 2, Selected: 1}}
	if got := l.Own(2); !maps.Equal(got, want) || l.OwnAt() == was {
		t.Errorf("told are %v, want %v", got, want)
	}
	if got := l.Own(4); len(got) != 4 {
		t.Errorf("told are %v, want all", got)
	}
}
