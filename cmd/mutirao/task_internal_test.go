package main

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// An order about a task in whose place another is done says which it was about, and whether the task itself may count.
func TestWhatWasOrderedIsNamed(t *testing.T) {
	for want, o := range map[string]api.TaskOrdered{
		"task weigh of 3f9a is stopped": {ID: "3f9a", Task: "weigh", Order: api.TaskStop},
		"task guess, which stands in for weigh, of 3f9a is stopped; what boat still brings of weigh may count": {
			ID: "3f9a", Task: "weigh", Order: api.TaskStop, StandIn: "guess", MayCount: "boat"},
		"task guess, which stands in for weigh, of 3f9a is done once more, by base": {
			ID: "3f9a", Task: "weigh", Order: api.TaskAgain, At: "base", StandIn: "guess"},
		"task weigh of 3f9a is done once more, by base; what waits for it is with a partner that is gone as well, " +
			"and wants an order of its own: feed, tell": {
			ID: "3f9a", Task: "weigh", Order: api.TaskAgain, At: "base", GoneToo: []workflow.TaskName{"feed", "tell"}},
	} {
		if got := orderedText(&o); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
