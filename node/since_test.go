package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A task that a person took from a worklist shows since when it is worked on, and it is the same moment at all
// nodes, also after its end and a crash: when its holder gave it to whoever has it. What nobody took has none.
func TestSinceWhenAPersonWorksOnATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse", "tablet")
		tm.signInNurses()
		tm.add("base", `
workflow: rota
tasks:
  weigh: {type: manual, role: nurse}
  watch: {type: manual, role: nurse}
partitions:
  ward:  {tasks: [weigh], partner: base}
  night: {tasks: [watch], partner: tablet}
`)
		id := tm.begin("base", "rota", nil)
		since := func(want *time.Time) {
			t.Helper()
			for _, at := range []string{"base", "tablet"} {
				for _, x := range tm.show(at, id).Tasks {
					if x.Name == "watch" && x.Started != nil {
						t.Errorf("nobody took watch, and at %s it is worked on since %s", at, x.Started)
					}
					if x.Name != "weigh" || want == nil && x.Started == nil {
						continue
					}
					if want == nil || x.Started == nil || !x.Started.Equal(*want) {
						t.Errorf("at %s weigh is worked on since %v, want %v", at, x.Started, want)
					}
				}
			}
		}
		took := func(at, user, item string) *time.Time {
			t.Helper()
			now := time.Now().UTC()
			if err := tm.claim(at, user, api.ClaimSelect, item); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			return &now
		}
		pass(time.Minute)
		since(nil)
		item := ""
		for _, x := range tm.items("tablet", "bia") {
			if x.Task == "weigh" {
				item = x.ID
			}
		}
		first := took("tablet", "bia", item)
		since(first)
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil { // it is so already
			t.Fatal(err)
		}
		since(first)
		if err := tm.claim("tablet", "bia", api.ClaimRelease, item); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		since(nil)
		second := took("base", "ana", item)
		since(second)
		if err := tm.hand("base", "ana", item, nil); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		since(second)
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(time.Second)
		since(second)
		if st := tm.task("tablet", id, "weigh"); st != workflow.Succeeded {
			t.Errorf("weigh is %s", st)
		}
	})
}
