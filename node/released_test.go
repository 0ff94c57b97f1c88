package node_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Whoever gives an item back may say why, and whoever looks at the instance reads it; what takes an item has no reason.
func TestWhyItWasGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := nurses(t)
		item := tm.items("tablet", "bia")[0].ID
		claims := func(claim, reason string) error {
			_, err := tm.p["tablet"].api.ClaimItems(t.Context(),
				api.ClaimRequest{User: "bia", Claim: claim, Items: []string{item}, Reason: reason})
			synctest.Wait()
			return err
		}
		said := func(want string) { // where the item stands: at the holder, and to who may take it at another node
			t.Helper()
			for what, x := range map[string]*api.Said{
				"the list": tm.items("tablet", "bia")[0].Said, "show": tm.show("base", id).Tasks[0].Said,
			} {
				if want == "" && x != nil || want != "" && (x == nil || x.By != "bia" || x.Why != want || x.Passed || x.At.IsZero()) {
					t.Errorf("%s says %+v, want bia: %q", what, x, want)
				}
			}
		}
		wantCode(t, claims(api.ClaimSelect, "why not"), api.Invalid, "only to release is one taken")
		for _, reason := range []string{"  the car broke down ", ""} {
			if err := claims(api.ClaimSelect, ""); err != nil {
				t.Fatal(err)
			}
			wantCode(t, claims(api.ClaimRelease, strings.Repeat("a", 501)), api.Invalid, "the reason has 501 bytes, at most 500")
			if err := claims(api.ClaimRelease, reason); err != nil {
				t.Fatal(err)
			}
			said(strings.TrimSpace(reason))
			if reason != "" { // whoever takes it next reads it, and who has it
				if err := claims(api.ClaimSelect, ""); err != nil {
					t.Fatal(err)
				}
				said(strings.TrimSpace(reason))
				if err := claims(api.ClaimRelease, reason); err != nil {
					t.Fatal(err)
				}
			}
		}
		log, err := tm.p["base"].api.Log(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var logged []string
		for _, e := range log {
			if strings.HasPrefix(e.Text, "given back") {
				logged = append(logged, e.Text)
			}
		}
		const why = "given back by bia: the car broke down"
		if !slices.Equal(logged, []string{why, why, "given back by bia"}) {
			t.Errorf("the log says %q", logged)
		}
	})
}

// A user who has given an item back at another device, and taken it once more there, gives it back at a device that
// could not hear of that: the user is told that it was taken meanwhile, and not that it is given back.
func TestWhatWasTakenElsewhereIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := nurses(t)
		link, err := tm.p["tablet"].api.LinkUser(t.Context(), "bia", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := tm.signIn("phone", link.Token); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		item := tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		tm.wantItems("tablet", "bia", "weigh SELECTED")
		lists := tm.p["base"].plug.handlers[worklists.ProtocolItems]
		tm.p["base"].plug.HandleRequest(worklists.ProtocolItems, false,
			func(from workflow.PartnerID, req []byte) ([]byte, error) {
				if from == tm.p["tablet"].id() {
					return nil, errors.New("its lists get lost")
				}
				return lists(from, req)
			})
		if err := errors.Join(tm.claim("phone", "bia", api.ClaimRelease, item),
			tm.claim("phone", "bia", api.ClaimSelect, item)); err != nil {
			t.Fatal(err)
		}
		wantCode(t, tm.claim("tablet", "bia", api.ClaimRelease, item), api.Refused,
			"weigh was given to you once more meanwhile: look at the worklist again")
		tm.p["base"].plug.HandleRequest(worklists.ProtocolItems, false, lists)
		if got := tm.show("base", id).Tasks[0].ClaimedBy; got != "bia" {
			t.Errorf("it is with %q", got)
		}
		pass(time.Minute)
		if err := tm.claim("tablet", "bia", api.ClaimRelease, item); err != nil {
			t.Error(err)
		}
		tm.wantItems("phone", "bia", "weigh READY")
	})
}

// What somebody said who had an item is with its task also where others presumed meanwhile that it had failed, and
// another stands in for it: why it was given back, why it failed as its holder took it, and why it failed as that came
// too late.
func TestWhatWasSaidOfWhatIsPresumedIsShown(t *testing.T) {
	for _, said := range []string{"given back", "failed", "failed too late"} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base:nurse", "station:nurse")
			tm.add("base", strings.NewReplacer("timeout: 10m, ", "offline: true, ", "role: doctor, ", "").Replace(errand))
			id := tm.begin("base", "errand", nil)
			pass(time.Second)
			item := tm.itemOf("station", "station", "go").ID
			if err := tm.claim("station", "station", api.ClaimLock, item); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			tm.disconnect("base", "station")
			pass(time.Hour)
			if x := tm.taskOf("base", id, "go"); x.State != workflow.Failed {
				t.Fatalf("at base it is %s", x.State)
			}
			if said == "failed too late" {
				tm.connect("base", "station")
				pass(time.Minute)
			}
			const why = "the car broke down"
			var err error
			if said == "given back" {
				_, err = tm.p["station"].api.ClaimItems(t.Context(), api.ClaimRequest{
					User: "station", Claim: api.ClaimRelease, Items: []string{item}, Reason: why,
				})
			} else {
				_, err = tm.p["station"].api.FinishItem(t.Context(), api.ItemResult{User: "station", Item: item, Failed: true, Reason: why})
			}
			if err != nil && said != "failed too late" {
				t.Fatal(err)
			}
			if said != "failed too late" {
				tm.connect("base", "station")
			}
			pass(time.Minute)
			for _, at := range []string{"base", "station"} {
				is, x := tm.show(at, id), tm.taskOf(at, id, "go")
				if x.State != workflow.Failed || x.ReplacedBy == nil {
					t.Errorf("at %s it is %s", at, x.State)
				}
				var shown string
				switch said {
				case "given back":
					if x.Said != nil && x.Said.By == "station" {
						shown = x.Said.Why
					}
				case "failed":
					shown = x.Reason
				default:
					for _, i := range is.Incidents {
						if strings.HasPrefix(i.What, "station said that it failed, which does not count, as ") {
							shown = i.What
						}
					}
				}
				if !strings.HasSuffix(shown, why) {
					t.Errorf("%s: %s shows %q of %+v, %+v", said, at, shown, x, is.Incidents)
				}
			}
		})
	}
}
