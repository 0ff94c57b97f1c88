//go:build unix

package workers_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/worker"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func TestMain(m *testing.M) { testnode.Main(m) }

const plan = `
workflow: three-languages
data:
  number: {type: integer, default: 21}
  doubled: {type: integer}
  text: {type: string, default: hello there}
  length: {type: integer}
  sum: {type: integer}
tasks:
  double: {application: double, in: [number], out: [doubled], timeout: 2m}
  count: {application: count, in: [text], out: [length], timeout: 2m}
  add: {after: [double, count], application: add, in: [doubled, length], out: [sum], timeout: 2m}
`

// One instance is done by workers in Python, in shell and in Go, each with a token of its
// own, over plain HTTP.
func TestExamples(t *testing.T) {
	for _, program := range []string{"python3", "curl", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed here, and the examples need it", program)
		}
	}
	n := testnode.New(t, "one")
	n.Configure("preset: local", "applications: {double: {worker: true}, count: {worker: true}, add: {worker: true}}")
	n.Found()
	if _, err := n.API.AddWorkflow(t.Context(), "plan.yaml", []byte(plan)); err != nil {
		t.Fatal(err)
	}
	url, _, _ := n.API.Way()
	token := func(app string) string {
		made, err := n.API.AddToken(t.Context(), httpapi.TokenRequest{Name: app, Scope: "worker:" + app})
		if err != nil {
			t.Fatal(err)
		}
		return made.Token
	}
	run := func(app string, command ...string) {
		c := exec.Command(command[0], append(command[1:], app, "--once")...)
		c.Env, c.Stderr = append(os.Environ(), "MUTIRAO_URL="+url, "MUTIRAO_TOKEN="+token(app)), os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(90*time.Second, func() { _ = c.Process.Kill() }) // it may have ended
		t.Cleanup(func() {
			if err := c.Wait(); err != nil {
				t.Errorf("%v: %v", command, err)
			}
			late.Stop()
		})
	}
	run("double", "python3", "../../examples/workers/worker.py")
	run("count", "sh", "../../examples/workers/worker.sh")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		c := &worker.Client{URL: url, Token: token("add")}
		ended <- c.Run(ctx, worker.Options{Application: "add", Name: "go"}, add)
	}()
	st, err := n.API.Start(t.Context(), api.StartRequest{Workflow: "three-languages"})
	if err != nil {
		t.Fatal(err)
	}
	var in *api.Instance
	testnode.Within(t, time.Minute, "the instance ends", func() bool {
		in, err = n.API.Show(t.Context(), st.ID)
		return err == nil && in.State != workflow.InstanceRunning
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if in.State != workflow.InstanceSucceeded || in.Data["sum"] != json.Number("53") {
		t.Errorf("it is %s with %v", in.State, in.Data)
	}
	for _, task := range in.Tasks {
		if want := map[workflow.TaskName]string{"double": "python", "count": "shell", "add": "go"}[task.Name]; task.Worker == nil || task.Worker.Name != want {
			t.Errorf("%s was done by %+v, want %s", task.Name, task.Worker, want)
		}
	}
}

// add adds up what it is given.
func add(_ context.Context, job *worker.Job, _ worker.Report) (map[string]any, error) {
	var sum int64
	for _, name := range []string{"doubled", "length"} {
		n, err := job.Input[name].(interface{ Int64() (int64, error) }).Int64()
		if err != nil {
			return nil, err
		}
		sum += n
	}
	return map[string]any{"sum": sum}, nil
}
