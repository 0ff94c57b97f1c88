package node

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// What is in memory is read in the order in which it came there, each once, whatever has left it meanwhile or comes
// again; and what has left takes no more room than what is there.
func TestWhatIsInMemoryIsReadInTheOrderInWhichItCame(t *testing.T) {
	s := faultyShard(t, true)
	chance := rand.New(rand.NewPCG(1, 2))
	var want []workflow.InstanceID
	most := 0
	for range 5000 {
		id := workflow.InstanceID{byte(chance.IntN(200))}
		want = slices.DeleteFunc(want, func(w workflow.InstanceID) bool { return w == id })
		if chance.IntN(5) < 3 {
			want = append(want, id)
			s.enlist(&held{id: id})
		} else {
			s.unlist(id)
		}
		var got []workflow.InstanceID
		s.all(func(id workflow.InstanceID, _ *held) { got = append(got, id) })
		if !slices.Equal(got, want) || len(s.held) != len(want) {
			t.Fatalf("read %v, %d in memory; want %v", got, len(s.held), want)
		}
		most = max(most, len(s.came)-2*len(want))
	}
	if most > 16 {
		t.Errorf("%d places more than twice what is in memory", most)
	}
}
