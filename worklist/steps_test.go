package worklist

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// crowd is many people who are here.
type crowd []Person

func (c crowd) With(workflow.RoleName) []Person { return c }
func (c crowd) Visible(Item) Sight              { return Sight{} }

func (c crowd) Known(u User) (Person, bool) {
	for _, p := range c {
		if p.User == u {
			return p, true
		}
	}
	return Person{}, false
}

// flow is a board to which facts come one after the other, each after all before it.
type flow struct {
	*Board
	n    int
	note func(ID, int)
}

func newFlow(terms Terms) *flow {
	at := map[ID]int{}
	f := &flow{}
	f.Board = New(terms, func(later, earlier ID) bool {
		e, known := at[earlier]
		return known && e < at[later]
	})
	f.note = func(id ID, n int) { at[id] = n }
	return f
}

// writes adds a fact of the holder, or of somebody.
func (f *flow) writes(u User, body Body) ID {
	f.n++
	id := ID(sha256.Sum256([]byte(fmt.Sprint(f.n))))
	f.note(id, f.n)
	f.Add(&Fact{ID: id, Time: uint64(f.n), Partner: "p", User: u, Roles: []workflow.RoleName{"r"}, Body: body}, 0)
	return id
}

func (f *flow) decides(people People) {
	for {
		out := f.Decide("p", people, Moment{})
		if len(out.Write) == 0 {
			return
		}
		for _, body := range out.Write {
			f.writes("", body)
		}
	}
}

func slot(k int) Item { return Item{Slot: workflow.TaskName(fmt.Sprintf("t%06d", k))} }

// grows fails where the work for each of n things grows faster than the logarithm of n, for
// 100, 1,000 and 10,000 of them.
func grows(t *testing.T, what string, work func(n int) int) {
	t.Helper()
	var each []float64
	for _, n := range []int{100, 1000, 10_000} {
		each = append(each, float64(work(n))/float64(n)/float64(bits.Len(uint(n))))
	}
	t.Logf("%s: steps for each, by the logarithm: %.2f", what, each)
	if each[1] > 1.3*each[0]+0.1 || each[2] > 1.3*each[0]+0.1 {
		t.Errorf("%s: %.2f steps for each, by the logarithm", what, each)
	}
}

// fill has n items offered, taken, done and closed, and says how many steps that took.
func fill(n int, task Task) *flow {
	f := newFlow(Terms{Responsible: "ana"})
	people := crowd{{User: "bia", Active: true, Roles: []workflow.RoleName{"r"}}}
	for k := range n {
		f.Set(Place{Item: slot(k), Holder: "p", InCharge: true, Ready: true, Task: task})
	}
	f.decides(people)
	return f
}

func TestStepsOfWork(t *testing.T) {
	people := crowd{{User: "bia", Active: true, Roles: []workflow.RoleName{"r"}}}
	grows(t, "items offered, taken, done and closed, each by itself", func(n int) int {
		f := fill(n, Task{Role: "r"})
		for k := range n {
			g, err := f.Ask("p", Request{Items: []Item{slot(k)}, Mode: Select, Person: people[0]})
			if err != nil {
				t.Fatal(err)
			}
			id := f.writes("bia", g)
			f.decides(people)
			f.writes("bia", Result{Item: slot(k), Grant: id})
			f.decides(people)
		}
		if v, _ := f.View(slot(n - 1)); v.State != IsDone {
			t.Fatalf("%d items: %s", n, v.State)
		}
		return f.steps
	})
	grows(t, "one item taken and given back", func(n int) int {
		f := fill(1, Task{Role: "r"})
		for range n {
			id := f.writes("bia", Grant{Items: []Item{slot(0)}, Mode: Select})
			f.writes("bia", Release{Item: slot(0), Grant: id})
		}
		return f.steps
	})
	grows(t, "two cranes for all", func(n int) int {
		f := newFlow(Terms{Responsible: "ana"})
		f.SetStore(Store{Name: "crane", Capacity: n / 2, Keepers: []Keeping{{Partner: "p"}}})
		for k := range n {
			f.Set(Place{
				Item: slot(k), Holder: "p", InCharge: true, Ready: true,
				Task: Task{Role: "r", Holds: []Resource{"crane"}},
			})
		}
		f.decides(people)
		return f.steps
	})
}

func TestStepsOfLists(t *testing.T) {
	grows(t, "listed, ordered and moved by hand", func(n int) int {
		f, hand := fill(n, Task{Role: "r"}), NewHand()
		was := f.steps
		list := f.List("bia", []workflow.RoleName{"r"}, Moment{})
		if len(list) != n {
			t.Fatalf("%d of %d items are listed", len(list), n)
		}
		for _, by := range []Sorting{ByArrival, ByPriority, ByDue, BySize, ByHand} {
			Sort(list, by, hand)
		}
		longest := 0
		for k := range n { // each to the place before the last
			s := hand.Move(&list[k], &list[n-2], &list[n-1], "van")
			longest = max(longest, len(s.Part))
			list[n-2] = list[k]
		}
		if Sort(list, ByHand, hand); longest > n/3+20 {
			t.Errorf("%d items: a place has %d digits", n, longest)
		}
		return f.steps - was
	})
}

// BenchmarkList lists and orders 10,000 items.
func BenchmarkList(b *testing.B) {
	f, hand := fill(10_000, Task{Role: "r"}), NewHand()
	for b.Loop() {
		list := f.List("bia", []workflow.RoleName{"r"}, Moment{})
		Sort(list, ByHand, hand)
		hand.Move(&list[5000], nil, &list[0], "van")
	}
}
