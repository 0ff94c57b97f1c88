package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// What one user of a device has locked, or selected, is not shown as free to another who uses the same device while its
// holder cannot be asked, whether or not the device takes part in the instance; once its holder says that it is free, it is.
func TestWhatAnotherHasAtTheSameDeviceIsNotFree(t *testing.T) {
	for _, c := range []struct {
		what, claim string
		part        bool
	}{{"locked", api.ClaimLock, false}, {"selected", api.ClaimSelect, false}, {"locked, taking part", api.ClaimLock, true}} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "base", "boat", "tablet")
				for _, u := range []string{"bia", "ivo"} {
					if err := tm.signIn("tablet", tm.addUser("base", u, "nurse")); err != nil {
						t.Fatal(err)
					}
				}
				pass(time.Second)
				at := "base"
				if c.part {
					at = "tablet"
				}
				tm.add("base", "workflow: crewed\ntasks: {look: {type: manual, role: nurse, offline: true}, tell: {type: manual, after: look}}\n"+
					"partitions: {boat: {tasks: [look], partner: boat}, desk: {tasks: [tell], partner: "+at+"}}\n")
				tm.begin("base", "crewed", nil)
				pass(time.Second)
				tm.wantItems("tablet", "ivo", "look READY")
				item := tm.itemOf("tablet", "bia", "look").ID
				pass(time.Second)
				if err := tm.claim("tablet", "bia", c.claim, item); err != nil {
					t.Fatal(err)
				}
				for _, other := range []string{"base", "tablet"} {
					tm.disconnect(other, "boat")
				}
				pass(time.Hour)
				has := "look LOCKED"
				if c.claim == api.ClaimSelect {
					has = "look SELECTED"
				}
				tm.wantItems("tablet", "bia", has)
				tm.wantItems("tablet", "ivo")
				sheet, err := tm.p["tablet"].api.ItemSheet(t.Context(), api.ItemQuery{User: "ivo", Item: item})
				if err != nil || sheet.Item.TakenBy != "bia" {
					t.Errorf("to ivo it is %+v, %v: want that bia has it", sheet, err)
				}
				for _, other := range []string{"base", "tablet"} {
					tm.connect(other, "boat")
				}
				pass(time.Minute)
				if err := tm.claim("tablet", "bia", api.ClaimRelease, item); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				tm.wantItems("tablet", "ivo", "look READY")
				if c.part {
					return // it presumed meanwhile that the boat had failed it, so it offers it only as long as that answers
				}
				tm.disconnect("boat", "tablet")
				pass(time.Minute)
				tm.wantItems("tablet", "ivo", "look READY")
			})
		})
	}
}
