package worklist

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestHandAnyOrder: the moves of a user's devices give the same order on all, in whatever
// order, and however often, each hears of them; and a move puts an item where it was told.
func TestHandAnyOrder(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		list := make([]Entry, 8)
		for k := range list {
			list[k] = Entry{Item: slot(k), Arrived: start.Add(0)}
		}
		hands := []*Hand{NewHand(), NewHand()}
		var moves []Spot
		for range 20 {
			d := rnd.IntN(2)
			moves = append(moves, moveOne(t, rnd, hands[d], list, workflow.PartnerID([]string{"phone", "laptop"}[d])))
			if rnd.IntN(3) == 0 {
				hands[1-d].Merge(moves[len(moves)-1])
			}
		}
		for _, h := range hands {
			rnd.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
			for _, s := range append(slices.Clone(moves), moves...) {
				h.Merge(s)
			}
		}
		if a, b := hands[0].Spots(), hands[1].Spots(); !slices.Equal(a, b) {
			t.Fatalf("seed %d: %v and %v", seed, a, b)
		}
	}
}

// moveOne moves an item somewhere, and looks whether it is there.
func moveOne(t *testing.T, rnd *rand.Rand, h *Hand, list []Entry, device workflow.PartnerID) Spot {
	t.Helper()
	rest := slices.Clone(list)
	Sort(rest, ByHand, h)
	at := rnd.IntN(len(rest))
	e := rest[at]
	rest = slices.Delete(rest, at, at+1)
	to := rnd.IntN(len(rest) + 1)
	var after, before *Entry
	if to > 0 {
		after = &rest[to-1]
	}
	if to < len(rest) {
		before = &rest[to]
	}
	beside := false // two others that stand at the very same place
	if after != nil && before != nil {
		lo, hi := h.spot(after), h.spot(before)
		beside = lo.Row == hi.Row && lo.Part == hi.Part
	}
	s := h.Move(&e, after, before, device)
	now := slices.Clone(list)
	Sort(now, ByHand, h)
	if got := slices.IndexFunc(now, func(x Entry) bool { return x.Item == e.Item }); got != to && !beside {
		t.Fatalf("moved to %d, and is at %d", to, got)
	}
	return s
}
