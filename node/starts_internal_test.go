package node

import (
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What becomes ready in one round begins by priority, also among instances; what has the same one begins as it was
// decided.
func TestARoundStartsTheHigherPriorityFirst(t *testing.T) {
	job := func(name workflow.TaskName, priority int) state.Job {
		return state.Job{Task: &workflow.Task{Name: name, Priority: priority}}
	}
	b := batch{ready: []readied{
		{r: choreo.Effects{Start: []state.Job{job("a", -5), job("b", 0), job("c", 9)}}},
		{},
		{r: choreo.Effects{Start: []state.Job{job("d", 0), job("e", 9), job("f", 10)}}},
	}}
	var names []workflow.TaskName
	for _, x := range b.starts() {
		names = append(names, x.j.Task.Name)
	}
	if want := []workflow.TaskName{"f", "c", "e", "b", "d", "a"}; !slices.Equal(names, want) {
		t.Errorf("started are %v, want %v", names, want)
	}
}
