package partition_test

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The work of a task may be done beside a partner that could not hold it, as it has neither the application nor what
// undoes it; what the task needs, and what its partition lists, that one must have.
func TestMayWork(t *testing.T) {
	def, err := workflow.Parse("w.yaml", []byte(`
workflow: w
tasks:
  put: {application: put, compensate: {application: take-out}}
  lift: {application: put, needs: [crane]}
  spare: {application: put}
  store: {application: store, contingency: spare}
partitions:
  all: {tasks: [put, lift]}
  cold: {tasks: [store], roles: [storage], needs: [freezer]}
`))
	if err != nil {
		t.Fatal(err)
	}
	plan := partition.New(def)
	for _, c := range []struct {
		at   partition.Partner
		task workflow.TaskName
		want bool
	}{
		{partition.Partner{}, "put", true},
		{partition.Partner{}, "lift", false},
		{partition.Partner{Capabilities: []workflow.Capability{"crane"}}, "lift", true},
		{partition.Partner{Applications: []workflow.ApplicationName{"crane"}}, "lift", true},
		{partition.Partner{Capabilities: []workflow.Capability{"freezer"}}, "store", false},
		{partition.Partner{Roles: []workflow.RoleName{"storage"}}, "store", false},
		{partition.Partner{Roles: []workflow.RoleName{"storage"}, Capabilities: []workflow.Capability{"freezer"}}, "store",
			true},
		{partition.Partner{}, "spare", true},
		{partition.Partner{}, "nobody", false},
	} {
		if got := plan.MayWork(c.at, c.task); got != c.want {
			t.Errorf("%s at %+v: %t, want %t", c.task, c.at, got, c.want)
		}
	}
}
