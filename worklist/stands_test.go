package worklist

import (
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Why a grant lost that was given side by side with two ends of its item says the facts alone, also if another end
// stood when the grant came than stands now: a result that the holder took, and one that was adopted, and nobody
// who wrote one of the three knew of the others.
func TestWhyAGrantLostIsTheSameEverywhere(t *testing.T) {
	i := Item{Slot: "weigh"}
	id := func(n byte) ID { return ID{n} }
	// 1 gives the item to ana, who brings 2. The holder's 3 takes it, 4 adopts it, 5 gives the item to bia.
	fact := func(n byte, u User, body Body) *Fact {
		return &Fact{
			ID: id(n), Time: uint64(min(n, 3)), Partner: "p", User: u, Roles: []workflow.RoleName{"nurse"}, Body: body,
		}
	}
	facts := []*Fact{
		fact(1, "ana", Grant{Items: []Item{i}, Mode: Select}), fact(2, "ana", Result{Item: i, Grant: id(1)}),
		fact(3, "", Close{Item: i, Result: id(2)}), fact(4, "mara", Adopt{Item: i, Result: id(2)}),
		fact(5, "bia", Grant{Items: []Item{i}, Mode: Select}),
	}
	knew := func(later, earlier ID) bool { return earlier[0] < min(later[0], 3) }
	lines := func(stands ...ID) []string { // the end that stands before the last grant comes, and after it
		b := New(Terms{Responsible: "mara"}, knew)
		place := Place{Item: i, Holder: "p", Task: Task{Role: "nurse"}, InCharge: true, Ready: true}
		b.Set(place)
		for _, f := range facts {
			if f.ID == id(5) {
				place.Stands = stands[0]
				b.Set(place)
			}
			b.Add(f, 0)
		}
		place.Stands = stands[1]
		b.Set(place)
		return b.Lines()
	}
	if a, b := lines(id(3), id(4)), lines(id(4), id(4)); !slices.Equal(a, b) {
		t.Errorf("the same facts are read in two ways:\n%q\n%q", a, b)
	}
}
