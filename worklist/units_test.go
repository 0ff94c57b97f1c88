package worklist

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Where two keepers gave away more units than there are (rule 12), whoever has begun has one before others, then those in
// the order of the keepers' words, and last what is presumed to have failed. An item that lacks a resource of an earlier
// partition has none of a later one, unless it has begun; and what an attempt had, that has to which it was passed on.
func TestUnitsAfterASplit(t *testing.T) {
	const crane, truck = "crane", "truck"
	type job struct {
		name  string
		holds []Resource
		given []Resource // by a word of their keeper each, in the order of the jobs
		begun bool
		gone  bool // presumed to have failed
		of    string
	}
	for _, c := range []struct {
		what string
		jobs []job
		have []string // those that have all that they hold
	}{
		{"who was given it first has it", []job{
			{name: "a", holds: []Resource{crane}, given: []Resource{crane}},
			{name: "b", holds: []Resource{crane}, given: []Resource{crane}},
		}, []string{"a"}},
		{"who has begun has it before", []job{
			{name: "a", holds: []Resource{crane}, given: []Resource{crane}},
			{name: "b", holds: []Resource{crane}, given: []Resource{crane}, begun: true},
		}, []string{"b"}},
		{"what is presumed to have failed has it last, also if it has begun", []job{
			{name: "a", holds: []Resource{crane}, given: []Resource{crane}, begun: true, gone: true},
			{name: "b", holds: []Resource{crane}, given: []Resource{crane}},
		}, []string{"b"}},
		{"who lacks the crane has no truck", []job{
			{name: "a", holds: []Resource{crane}, given: []Resource{crane}},
			{name: "b", holds: []Resource{crane, truck}, given: []Resource{crane, truck}},
			{name: "c", holds: []Resource{truck}, given: []Resource{truck}},
		}, []string{"a", "c"}},
		{"but who has begun keeps the truck", []job{
			{name: "a", holds: []Resource{crane}, given: []Resource{crane}, begun: true},
			{name: "b", holds: []Resource{crane, truck}, given: []Resource{crane, truck}, begun: true},
			{name: "c", holds: []Resource{truck}, given: []Resource{truck}},
		}, []string{"a"}},
		{"what was passed on has what it had", []job{
			{name: "a", holds: []Resource{crane}, given: []Resource{crane}},
			{name: "b", holds: []Resource{crane}, of: "a"},
		}, []string{"b"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := New(Terms{}, func(ID, ID) bool { return true })
			b.SetStore(Store{Name: crane, Capacity: 1, Partition: "depot", Keepers: []Keeping{{Partner: "d"}}})
			b.SetStore(Store{Name: truck, Capacity: 1, Partition: "garage", Keepers: []Keeping{{Partner: "d"}}})
			n := byte(0)
			for _, j := range c.jobs {
				p := Place{
					Item: Item{Slot: workflow.TaskName(j.name)}, Holder: "p", InCharge: true, Ready: true, Begun: j.begun,
					Presumed: j.gone, Task: Task{Holds: j.holds},
				}
				if j.of != "" {
					p.Root = Item{Slot: workflow.TaskName(j.of)}
					b.Set(Place{Item: p.Root, Holder: "o", Ready: true, Over: true, Task: p.Task})
				}
				b.Set(p)
				for _, r := range j.given {
					n++
					b.Add(&Fact{ID: ID{n}, Time: uint64(n), Partner: "d", Body: Reserve{Item: p.Item, Resources: []Resource{r}}}, 0)
				}
			}
			var have []string
			for _, j := range c.jobs {
				if b.HasUnits(Item{Slot: workflow.TaskName(j.name)}) {
					have = append(have, j.name)
				}
			}
			if !slices.Equal(have, c.have) {
				t.Errorf("%v have what they hold, want %v", have, c.have)
			}
		})
	}
}

// Whoever is under way without a unit goes on with it and does not wait. Each of those that use the resource is told of the
// others, also before it is begun; what is used is more than there is only once more are under way than there are units.
func TestUnitsThatAreNotThere(t *testing.T) {
	const crane = "crane"
	type job struct{ begun, gone bool }
	for _, c := range []struct {
		what   string
		jobs   []job
		waits  []string // and for what
		shared []string
		over   string
	}{
		{"presumed to have failed, and goes on", []job{{begun: true, gone: true}, {begun: true}, {}},
			[]string{"", "", "crane: 1 of 1 in use by b"},
			[]string{"crane is in use by b as well", "crane is in use by a as well", ""}, "[b] and [a], begun [a b]"},
		{"nobody has begun with the unit", []job{{begun: true, gone: true}, {}, {}},
			[]string{"", "", "crane: 1 of 1 in use by b"},
			[]string{"crane is in use by b as well", "crane is in use by a as well", ""}, ""},
		{"two keepers, three at work", []job{{begun: true}, {begun: true}, {begun: true}}, []string{"", "", ""},
			[]string{"crane is in use by b, c as well", "crane is in use by a, c as well", "crane is in use by a, b as well"},
			"[a] and [b c], begun [a b c]"},
		{"two keepers, one at work", []job{{begun: true}, {}, {}},
			[]string{"", "crane: 1 of 1 in use by a", "crane: 1 of 1 in use by a"}, []string{"", "", ""}, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := New(Terms{}, func(ID, ID) bool { return true })
			b.SetStore(Store{Name: crane, Capacity: 1, Partition: "depot", Keepers: []Keeping{{Partner: "d"}}})
			item := func(n int) Item { return Item{Slot: workflow.TaskName("abc"[n : n+1])} }
			for n, j := range c.jobs {
				b.Set(Place{
					Item: item(n), Holder: "p", InCharge: true, Ready: true, Begun: j.begun, Presumed: j.gone,
					Task: Task{Holds: []Resource{crane}},
				})
				b.Add(&Fact{ID: ID{byte(n + 1)}, Time: uint64(n + 1), Partner: "d",
					Body: Reserve{Item: item(n), Resources: []Resource{crane}}}, 0)
			}
			for n := range c.jobs {
				if got := Lacking(b.Lacks(item(n))); got != c.waits[n] {
					t.Errorf("%s waits for %q, want %q", item(n).Slot, got, c.waits[n])
				}
				got := ""
				for _, l := range b.Shared(item(n)) {
					got += l.SharedText()
				}
				if got != c.shared[n] {
					t.Errorf("of %s it is said that %q, want %q", item(n).Slot, got, c.shared[n])
				}
			}
			slots := func(items []Item) (out []workflow.TaskName) {
				for _, i := range items {
					out = append(out, i.Slot)
				}
				return out
			}
			over := ""
			for _, x := range b.Overused() {
				over += fmt.Sprintf("%v and %v, begun %v", slots(x.Given), slots(x.Beyond), slots(x.Begun))
			}
			if over != c.over {
				t.Errorf("more is used than there is: %q, want %q", over, c.over)
			}
		})
	}
}
