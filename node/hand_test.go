package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// byHand are the instances of a user's list in the user's own order, by when they began.
func (tm *team) byHand(at, user string, began []string) (out []int) {
	tm.t.Helper()
	list, err := tm.p[at].api.Worklist(tm.t.Context(), api.WorklistQuery{User: user, Order: api.OrderHand})
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, x := range list {
		out = append(out, slices.Index(began, x.ID))
	}
	return out
}

// Each user of a node has an order of his or her own, which outlives a crash; what was never moved stands
// where it arrived, and a move that is not durable is none.
func TestAListIsOrderedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		if err := tm.signIn("tablet", tm.addUser("base", "lia", "nurse")); err != nil {
			t.Fatal(err)
		}
		var began []string
		for range 4 {
			st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "visits"})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			for _, x := range tm.items("tablet", "bia") {
				if x.Instance == st.ID {
					began = append(began, x.ID)
				}
			}
		}
		want := func(user string, order ...int) {
			t.Helper()
			if got := tm.byHand("tablet", user, began); !slices.Equal(got, order) {
				t.Errorf("%s has %v, want %v", user, got, order)
			}
		}
		move := func(user string, item int, r api.MoveRequest) error {
			r.User, r.Item = user, began[item]
			_, err := tm.p["tablet"].api.MoveItem(t.Context(), r)
			return err
		}
		want("bia", 0, 1, 2, 3)
		for _, err := range []error{
			move("bia", 3, api.MoveRequest{Top: true}), move("bia", 0, api.MoveRequest{Bottom: true}),
			move("bia", 2, api.MoveRequest{Before: began[1]}), move("bia", 2, api.MoveRequest{Before: began[1][:8]}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		want("bia", 3, 2, 1, 0)
		want("lia", 0, 1, 2, 3)
		wantCode(t, move("bia", 1, api.MoveRequest{}), api.Invalid, "where to")
		wantCode(t, move("bia", 1, api.MoveRequest{Top: true, Bottom: true}), api.Invalid, "where to")
		tm.p["tablet"].disk.failWith(kv.ErrFull)
		if move("bia", 0, api.MoveRequest{Top: true}) == nil {
			t.Error("it is moved, and a restart would not know")
		}
		want("bia", 3, 2, 1, 0)
		tm.p["tablet"].disk.failWith(nil)
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		tm.connect("base", "tablet")
		pass(time.Minute)
		want("bia", 3, 2, 1, 0)
		want("lia", 0, 1, 2, 3)
	})
}
