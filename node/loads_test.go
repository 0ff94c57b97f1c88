package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// rounds is a plan for a nurse, whose only task one partner holds.
func rounds(at string) string {
	return strings.NewReplacer("rota", "rounds-"+at, "partner: base", "partner: "+at).Replace(rota)
}

// Whom an item is offered to goes by what people have to do in the whole mesh: also of the items of another partner, in
// instances in which whoever chooses takes no part. That one knows it also once it was started again, and forgets it of
// a partner that is gone.
func TestWhoIsBusyElsewhereIsNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "tablet")
		for _, user := range []string{"lia", "rui"} {
			if err := tm.signIn("tablet", tm.addUser("one", user, "nurse")); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		for _, at := range []string{"one", "two"} {
			tm.add(at, rounds(at))
		}
		// begins is to whom the item of a new instance is offered.
		begins := func(at, policy string) (id, user string) {
			t.Helper()
			st, err := tm.p[at].api.Start(t.Context(), api.StartRequest{Workflow: "rounds-" + at, Notify: policy})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			to := tm.show(at, st.ID).Tasks[0].OfferedTo
			if len(to) != 1 {
				t.Fatalf("it is offered to %v", to)
			}
			pass(15 * time.Minute) // partners are told
			return st.ID, to[0]
		}
		other := map[string]string{"lia": "rui", "rui": "lia"}
		want := func(at, policy, want string) {
			t.Helper()
			if _, got := begins(at, policy); got != want {
				t.Errorf("by %s, %s offers it to %s, want %s", policy, at, got, want)
			}
		}
		_, first := begins("one", "fewest-assigned 1") // whose ID is the lower
		second := other[first]
		want("two", "fewest-assigned 1", second)
		want("one", "fewest-assigned 1", first)
		want("two", "fewest-assigned 1", second)

		// What is taken is assigned no more, but selected.
		if err := tm.claim("tablet", first, api.ClaimSelect, tm.items("tablet", first)[0].ID); err != nil {
			t.Fatal(err)
		}
		pass(15 * time.Minute)
		want("two", "fewest-assigned 1", first)
		want("two", "fewest-selected 1", second)

		tm.p["two"].crash()
		tm.p["two"].start()
		tm.connect("two", "one")
		tm.connect("two", "tablet")
		pass(time.Minute)
		want("two", "fewest-selected 1", second)

		tm.p["one"].crash()
		pass(3 * time.Hour)
		want("two", "fewest-selected 1", first)
	})
}
