package worklist

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// people are so many who are here since a moment.
func people(prefix string, n int, since time.Duration) (out crowd) {
	for i := range n {
		out = append(out, Person{
			User: User(fmt.Sprintf("%s%04d", prefix, i)), Roles: []workflow.RoleName{"r"}, Active: true,
			Connected: since,
		})
	}
	return out
}

// Whoever comes is told, until the partner has said as much of that as it may: then all of the role see its items, and
// nothing more is written down.
func TestWhatIsSaidOfOffersIsBounded(t *testing.T) {
	f := newFlow(Terms{Policy: Policy{Name: workflow.NotifyLatestConnected, N: 1}, Open: true})
	i := Item{Slot: "a"}
	f.Set(Place{Item: i, Holder: "p", InCharge: true, Ready: true, Task: Task{Role: "r"}})
	here := people("first", 1, 0)
	f.decides(here)
	if f.Visible(i, "last0000") {
		t.Fatal("everybody sees it")
	}
	for wave := range 40 {
		here = append(here, people(fmt.Sprintf("wave%02d-", wave), 100, time.Duration(wave+1))...)
		f.Changed("")
		f.decides(here)
	}
	if x := f.offers["p"]; x.names != MaxOffered || x.offers > MaxOffers {
		t.Errorf("%d offers name %d people, want %d named by at most %d", x.offers, x.names, MaxOffered, MaxOffers)
	}
	to, all := f.Offered(i)
	if !f.Visible(i, "last0000") || !all || len(to) != 0 {
		t.Errorf("when all is said that may be, not all see it: %d do", len(to))
	}
	if out := f.Decide("p", here, Moment{}); len(out.Write) > 0 {
		t.Errorf("%v is said all the same", out.Write)
	}
}

// What people have to do is what it would be if all was counted anew, whatever came of items.
func TestLoads(t *testing.T) {
	f := newFlow(Terms{Policy: Policy{Name: workflow.NotifyFewestAssigned, N: 2}, Open: true, Responsible: "chief"})
	is := func(when, want string) {
		t.Helper()
		of, _ := f.Loads()
		var got []string
		for u, x := range of {
			if u.Holder != "p" {
				t.Errorf("%s: items of %s are counted", when, u.Holder)
			}
			got = append(got, fmt.Sprintf("%s %d %d", u.User, x.Assigned, x.Selected))
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", when, got, want)
		}
	}
	a, b := Item{Slot: "a"}, Item{Slot: "b"}
	for _, i := range []Item{a, b} {
		f.Set(Place{Item: i, Holder: "p", InCharge: true, Ready: true, Task: Task{Role: "r"}})
	}
	is("at first", "[]")
	f.decides(people("u", 3, 0))
	is("two of three are offered each", "[u0000 2 0 u0001 1 0 u0002 1 0]")
	grant := f.writes("u0000", Grant{Items: []Item{a}, Mode: Select})
	is("one is taken", "[u0000 1 1 u0002 1 0]")
	f.writes("u0000", Release{Item: a, Grant: grant})
	f.writes("chief", Notify{Policy: Policy{Name: workflow.NotifyAll}})
	is("all see them", "[]")
	f.writes("chief", Notify{Policy: Policy{Name: workflow.NotifyFewestSelected, N: 1}})
	f.decides(people("u", 3, 0))
	is("one each", "[u0000 2 0]")
	f.Set(Place{Item: a, Holder: "p", InCharge: true, Ready: true, Over: true, Task: Task{Role: "r"}})
	is("one is over", "[u0000 1 0]")
	f.Set(Place{Item: b, Holder: "p", Task: Task{Role: "r"}})
	is("the other is elsewhere", "[]")
}

// Whom an item is offered to is said once, and stays so, however much people have to do later: who reads the facts does
// not ask for that again.
func TestWhoIsOfferedStaysAsItWas(t *testing.T) {
	f := newFlow(Terms{Policy: Policy{Name: workflow.NotifyFewestAssigned, N: 1}, Open: true})
	i := Item{Slot: "a"}
	f.Set(Place{Item: i, Holder: "p", InCharge: true, Ready: true, Task: Task{Role: "r"}})
	here := people("u", 3, 0)
	here[0].Assigned, here[1].Assigned, here[2].Assigned = 2, 1, 7 // in other instances
	f.decides(here)
	if to, all := f.Offered(i); all || !slices.Equal(to, []User{"u0001"}) {
		t.Fatalf("it is offered to %v", to)
	}
	here[0].Assigned, here[1].Assigned = 0, 9
	f.Changed("")
	if out := f.Decide("p", here, Moment{}); len(out.Write) > 0 {
		t.Errorf("when others have less to do, %v is said", out.Write)
	}
	again := newFlow(f.terms)
	again.Set(Place{Item: i, Holder: "p", InCharge: true, Ready: true, Task: Task{Role: "r"}})
	for _, x := range f.facts {
		again.Add(x, 0)
	}
	if to, _ := again.Offered(i); !slices.Equal(to, []User{"u0001"}) {
		t.Errorf("whoever reads the same facts has it offered to %v", to)
	}
	if out := again.Decide("p", here, Moment{}); len(out.Write) > 0 {
		t.Errorf("whoever reads the same facts says %v", out.Write)
	}
}
