package runner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const setter = `
workflow: setter
data:
  count: {type: integer}
  label: {type: string}
  late: {type: boolean}
  share: {type: number}
tasks:
  good:
    application: set
    with: {count: count + 1, label: '"fire in " + label', late: instance.age > duration("1m")}
    out: [count, label, late]
  bad:
    application: set
    with: {share: share / count}
    out: [share]
`

func TestSet(t *testing.T) {
	def, err := workflow.Parse("setter.yaml", []byte(setter))
	if err != nil {
		t.Fatal(err)
	}
	r := runner.New(nil, runner.Options{})
	defer r.Close()
	j := runner.Job{
		Key: "k", Application: workflow.AppSet, With: def.Task("good").With, AgeOfInstance: 2 * time.Minute,
		Input: map[workflow.DataName]workflow.Value{"count": int64(41), "label": "Rua 1"},
	}
	want := runner.Result{Outputs: map[workflow.DataName]workflow.Value{
		"count": int64(42), "label": "fire in Rua 1", "late": true,
	}}
	if diff := cmp.Diff(want, run(r, j)); diff != "" {
		t.Error(diff)
	}
	j.With, j.Input = def.Task("bad").With, map[workflow.DataName]workflow.Value{"share": 1.0, "count": int64(0)}
	if got := run(r, j); !got.Failed || !strings.HasPrefix(got.Reason, "set share to share / count: ") {
		t.Errorf("division by zero: %+v", got)
	}
}
