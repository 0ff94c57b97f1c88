package node_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// unanswered are those that did not answer when a user's list was asked for last.
func (tm *team) unanswered(at, user string) []string {
	tm.t.Helper()
	silent, err := tm.p[at].api.WorklistUnanswered(tm.t.Context(), user)
	if err != nil {
		tm.t.Fatal(err)
	}
	return silent
}

// A partner that refuses to show its items is named; what it said before stays on the list, with its age, and
// what is not known is not said to be nowhere.
func TestWhoDoesNotAnswerIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		item := tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		if got := tm.unanswered("tablet", "bia"); len(got) > 0 {
			t.Errorf("all answered, and %q are named", got)
		}
		tm.p["base"].plug.HandleRequest("/mutirao/items/1.0.0", false,
			func(workflow.PartnerID, []byte) ([]byte, error) {
				return nil, errors.New("not now")
			})
		pass(10 * time.Minute)
		tm.wantItems("tablet", "bia", "weigh SELECTED")
		if x := tm.items("tablet", "bia")[0]; !strings.Contains(x.Known, "min ago") {
			t.Errorf("it is not said how old that is: %+v", x)
		}
		if got := tm.unanswered("tablet", "bia"); !slices.Equal(got, []string{"base"}) {
			t.Errorf("%q did not answer, want base", got)
		}
		wantCode(t, tm.claim("tablet", "bia", api.ClaimSelect, "0000"), api.Refused,
			"did not answer, who may hold it: base")
		if err := tm.hand("tablet", "bia", item, nil); err != nil { // it takes what is brought
			t.Error(err)
		}
	})
}

// An ordinary script may ask for a list a few times each second.
func TestAScriptMayAskOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		for range 200 {
			tm.wantItems("tablet", "bia", "weigh READY")
			pass(150 * time.Millisecond)
		}
		if got := tm.refused("base", "tablet"); len(got) > 0 {
			t.Errorf("refused: %+v", got)
		}
	})
}

// To take an item its holder alone is asked.
func TestOnlyTheHolderIsAskedForAnItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		pass(2 * time.Minute) // by then all have been asked once for locks of before a start
		item, asked := tm.items("tablet", "bia")[0].ID, 0
		tm.p["phone"].plug.HandleRequest("/mutirao/items/1.0.0", false,
			func(workflow.PartnerID, []byte) ([]byte, error) {
				asked++
				return []byte("[]"), nil
			})
		for _, claim := range []string{api.ClaimSelect, api.ClaimRelease, api.ClaimSelect} {
			if err := tm.claim("tablet", "bia", claim, item[:4]); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
		}
		if err := tm.hand("tablet", "bia", item, nil); err != nil || asked > 0 {
			t.Errorf("phone was asked %d times, %v", asked, err)
		}
	})
}

// A user who was slower is told who was faster, also when it is done already.
func TestWhoWasFasterIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		item := tm.items("tablet", "bia")[0].ID
		if err := errors.Join(tm.claim("base", "ana", api.ClaimSelect, item), tm.hand("base", "ana", item, nil)); err != nil {
			t.Fatal(err)
		}
		wantCode(t, tm.claim("tablet", "bia", api.ClaimSelect, item), api.Refused, "ana has done it")
		pass(time.Minute)
		tm.wantItems("tablet", "bia", "feed READY")
		wantCode(t, tm.claim("tablet", "bia", api.ClaimSelect, item), api.Refused, "ana has done it")
		wantCode(t, tm.claim("base", "base", api.ClaimSelect, item), api.NotFound, "no item") // base never saw it
	})
}

// A result for an instance that has ended is kept there and shown: of what was selected, and of what
// was locked.
func TestAResultAfterTheEndIsKept(t *testing.T) {
	for _, at := range []string{"base", "tablet"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, id := nurses(t)
				user := map[string]string{"base": "ana", "tablet": "bia"}[at]
				item := tm.items(at, user)[0].ID
				if err := tm.claim(at, user, api.ClaimSelect, item); err != nil {
					t.Fatal(err)
				}
				if err := tm.p["base"].api.Cancel(t.Context(), id, "no need"); err != nil {
					t.Fatal(err)
				}
				pass(time.Hour)
				tm.wantItems(at, user)
				wantCode(t, tm.hand(at, user, item, map[string]string{"weight": "3"}), api.Refused, "it is kept")
				in := tm.show("base", id)
				if !slices.ContainsFunc(in.Incidents,
					func(i api.Incident) bool { return strings.Contains(i.What, "weight = 3") }) {
					t.Errorf("what %s made is not shown: %+v", user, in.Incidents)
				}
			})
		})
	}
}

// A user who is signed in nowhere any more has no items, nor has one who was signed in at a node
// that is evicted.
func TestWhoIsNowhereHasNoItems(t *testing.T) {
	for name, end := range map[string]func(tm *team) error{
		"signed out": func(tm *team) error {
			_, err := tm.p["tablet"].api.SignOutUser(tm.t.Context(), api.SignOutRequest{User: "bia"})
			return err
		},
		"evicted": func(tm *team) error {
			_, err := tm.p["base"].api.Evict(tm.t.Context(), api.EvictRequest{Partner: "tablet"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, id := nurses(t)
				item := tm.items("tablet", "bia")[0].ID
				if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
					t.Fatal(err)
				}
				if err := end(tm); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				if by := tm.show("base", id).Tasks[0].ClaimedBy; by != "" {
					t.Errorf("%s still has it", by)
				}
				tm.wantItems("base", "ana", "weigh READY")
				if name == "evicted" {
					_, err := tm.p["tablet"].api.Worklist(t.Context(), api.WorklistQuery{User: "bia"})
					var e *api.Error
					if errors.As(err, &e) && e.Code == api.Internal {
						t.Errorf("at an evicted node: %v", err)
					}
				}
			})
		})
	}
}

// An item that is named twice is given back once; where one of several is not the user's, none is.
func TestAnItemThatIsNamedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		item := tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		list, err := tm.p["tablet"].api.ClaimItems(t.Context(),
			api.ClaimRequest{User: "bia", Claim: api.ClaimRelease, Items: []string{item, item[:6]}})
		if err != nil || len(list) != 1 {
			t.Errorf("given back: %+v, %v", list, err)
		}
	})
}
