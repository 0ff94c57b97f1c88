package node_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Who gives an item back may say why, and whoever looks at the instance reads it; what takes an item has no reason.
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
		wantCode(t, claims(api.ClaimSelect, "why not"), api.Invalid, "only to release is one taken")
		for _, reason := range []string{"  the car broke down ", ""} {
			if err := claims(api.ClaimSelect, ""); err != nil {
				t.Fatal(err)
			}
			wantCode(t, claims(api.ClaimRelease, strings.Repeat("a", 501)), api.Invalid, "the reason has 501 bytes, at most 500")
			if err := claims(api.ClaimRelease, reason); err != nil {
				t.Fatal(err)
			}
		}
		log, err := tm.p["base"].api.Log(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, e := range log {
			if strings.HasPrefix(e.Text, "given back") {
				said = append(said, e.Text)
			}
		}
		if len(said) != 2 || said[0] != "given back by bia: the car broke down" || said[1] != "given back by bia" {
			t.Errorf("the log says %q", said)
		}
	})
}
