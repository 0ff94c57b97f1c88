package worklists

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// What a partner says that others' tasks are called is shown to people: only labels of what the item names are taken.
func TestLabelsOfPartnersAreChecked(t *testing.T) {
	for _, tt := range []struct {
		name   string
		labels map[workflow.TaskName]string
		ok     bool
	}{
		{"none", nil, true},
		{"of what it waits for", map[workflow.TaskName]string{"weigh": "Pesar", "lift": "Içar", "feed": "洪水"}, true},
		{"of another task", map[workflow.TaskName]string{"sing": "Cantar"}, false},
		{"turns the direction of writing", map[workflow.TaskName]string{"weigh": "a\u202eb"}, false},
		{"two lines", map[workflow.TaskName]string{"weigh": "a\nb"}, false},
		{"empty", map[workflow.TaskName]string{"weigh": ""}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Row{
				Workflow: "round", Task: "feed-by-hand", Item: worklist.Item{Slot: "feed"}, Since: time.UnixMilli(1),
				Awaits:     []workflow.TaskName{"weigh"},
				WaitsFor:   []worklist.Lack{{Resource: "crane", Capacity: 1, Used: 1, By: []workflow.TaskName{"lift"}}},
				TaskLabels: tt.labels,
			}
			if err := r.check(time.Now()); (err == nil) != tt.ok {
				t.Errorf("it is taken: %v", err)
			}
		})
	}
}
