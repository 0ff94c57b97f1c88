package node_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The content of a file that no task reads is an incident when nobody who is left has it, as its giver was evicted; and
// none while another has it, which is asked for it, nor where the instance was over for long.
func TestAFileThatNobodyReadsIsAnIncidentWhenItIsLost(t *testing.T) {
	const album = `
workflow: record
data: {pic: {type: file, readers: [base, boat]}}
tasks:
  look: {type: manual, out: [pic]}
  watch: {type: manual}
  rest: {type: manual}
partitions:
  there: {tasks: [look], partner: boat}
  third: {tasks: [watch], partner: tablet}
  home: {tasks: [rest], partner: base}
`
	for _, when := range []string{"lost", "fetched", "ended", "long ended"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := aWard(t, "boat")
				tm.add("base", album)
				id := tm.begin("base", "record", nil)
				f, err := tm.p["boat"].api.PutFile(t.Context(), "pic.txt", strings.NewReader("a picture"))
				if err != nil {
					t.Fatal(err)
				}
				tm.ends("boat", id, api.FinishRequest{Task: "look", Outputs: map[string]string{"pic": f.Value}})
				pass(time.Second)
				if when == "fetched" {
					_, content, err := tm.p["base"].api.File(t.Context(), id, "pic")
					if err != nil {
						t.Fatal(err)
					}
					_ = content.Close()
				}
				if strings.HasSuffix(when, "ended") {
					tm.ends("tablet", id, api.FinishRequest{Task: "watch"})
					tm.ends("base", id, api.FinishRequest{Task: "rest"})
					pass(time.Second)
					if s := tm.state("base", id); s != workflow.InstanceSucceeded {
						t.Fatalf("it is %s", s)
					}
				}
				if when == "long ended" {
					pass(36 * time.Hour)
				}
				if _, err := tm.p["base"].api.Evict(t.Context(), api.EvictRequest{Partner: "boat"}); err != nil {
					t.Fatal(err)
				}
				pass(3 * time.Minute)
				tm.show("base", id) // what has ended is asked for when somebody looks
				pass(3 * time.Minute)
				says := slices.ContainsFunc(tm.show("base", id).Incidents, func(i api.Incident) bool {
					return strings.HasPrefix(i.What, "base: pic: file pic.txt: its content is lost: ")
				})
				if want := when == "lost" || when == "ended"; says != want {
					t.Errorf("that it is lost is said: %t, want %t: %+v", says, want, tm.show("base", id).Incidents)
				}
				d, err := tm.p["base"].api.Doctor(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				named := slices.ContainsFunc(d.Findings, func(f api.Finding) bool {
					return f.Check == "lost" && strings.Contains(f.What, "pic.txt")
				})
				if want := when == "lost"; named != want { // it speaks of what goes on
					t.Errorf("the doctor says so: %t", named)
				}
			})
		})
	}
}
