//go:build unix

package workers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
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

// The examples, and the data that each of them sets.
var examples = []struct{ program, file, sets string }{
	{"python3", "../../examples/workers/worker.py", "doubled"}, {"sh", "../../examples/workers/worker.sh", "length"},
}

func needsPrograms(t *testing.T) {
	t.Helper()
	for _, program := range []string{"python3", "curl", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed here, and the examples need it", program)
		}
	}
}

// One instance is done by workers in Python, in shell and in Go, each with a token of its
// own, over plain HTTP.
func TestExamples(t *testing.T) {
	needsPrograms(t)
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

// A result that the task may not have fails it with the reason, long before its time is over, and the worker goes on.
func TestExamplesWhoseResultIsRefused(t *testing.T) {
	needsPrograms(t)
	n := testnode.New(t, "one")
	n.Configure("preset: local", "applications: {work: {worker: true}}")
	n.Found()
	const plan = `
workflow: refused
data:
  number: {type: integer, default: 21}
  text: {type: string, default: hello there}
  doubled: {type: string}
  length: {type: string}
tasks:
  work: {application: work, in: [number, text], out: [doubled, length], timeout: 5m}
`
	if _, err := n.API.AddWorkflow(t.Context(), "plan.yaml", []byte(plan)); err != nil {
		t.Fatal(err)
	}
	made, err := n.API.AddToken(t.Context(), httpapi.TokenRequest{Name: "work", Scope: "worker:work"})
	if err != nil {
		t.Fatal(err)
	}
	url, _, _ := n.API.Way()
	for _, e := range examples {
		c := exec.Command(e.program, e.file, "work")
		c.Env = append(os.Environ(), "MUTIRAO_URL="+url, "MUTIRAO_TOKEN="+made.Token)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			st, err := n.API.Start(t.Context(), api.StartRequest{Workflow: "refused"})
			if err != nil {
				t.Fatal(err)
			}
			var in *api.Instance
			testnode.Within(t, time.Minute, "the instance ends", func() bool {
				in, err = n.API.Show(t.Context(), st.ID)
				return err == nil && in.State != workflow.InstanceRunning
			})
			if why := in.Tasks[0].Reason; !strings.Contains(why, "its result was refused: the result was not taken: "+
				"task work returned a wrong "+e.sets) {
				t.Errorf("%s: the task is %s: %s", e.file, in.Tasks[0].State, why)
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Errorf("%s ended by itself: %v", e.file, err)
		}
		_ = c.Wait() // it was killed
	}
}

// A worker brings a result again while nobody hears it, and goes on to the next job whatever is answered.
func TestExamplesWhereTheNodeDoesNotAnswer(t *testing.T) {
	needsPrograms(t)
	for _, e := range examples {
		var mu sync.Mutex
		var heard []string
		replies := []struct {
			path   string
			status int // 0: the connection breaks
			body   string
		}{
			{"/v1/jobs/take", 503, ""},
			{"/v1/jobs/take", 200, ""},
			{"/v1/leases/L1/complete", 503, `{"code":"no-node","message":"it is out of reach","hint":"ask again"}`},
			{"/v1/leases/L1/complete", 0, ""},
			{"/v1/leases/L1/complete", 204, ""},
			{"/v1/jobs/take", 200, ""},
			{"/v1/leases/L2/complete", 404, `{"code":"not-found","message":"this node knows no such lease"}`},
			{"/v1/jobs/take", 200, ""},
			{"/v1/leases/L3/complete", 409, `{"code":"refused","message":"it \"lapsed\": no sign of life","hint":"take another job"}`},
			{"/v1/leases/L3/fail", 409, `{"code":"refused","message":"it \"lapsed\": no sign of life","hint":"take another job"}`},
			{"/v1/jobs/take", 403, `{"code":"not-allowed","message":"no jobs for you"}`},
		}
		jobs := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			body, err := io.ReadAll(r.Body)
			if err != nil || strings.HasSuffix(r.URL.Path, "/heartbeat") || len(heard) == len(replies) {
				return
			}
			reply := replies[len(heard)]
			heard = append(heard, r.URL.Path)
			if strings.HasSuffix(r.URL.Path, "/fail") &&
				!bytes.Contains(body, []byte(`its result was refused: it \"lapsed\": no sign of life`)) {
				t.Errorf("%s: the task failed with %s", e.file, body)
			}
			switch reply.status {
			case 0:
				panic(http.ErrAbortHandler)
			case 200:
				jobs++
				lease := fmt.Sprintf("L%d", jobs)
				w.Header().Set("Mutirao-Lease", lease)
				reply.body = `{"lease":"` + lease + `","task":"w","instance":"i","input":{"number":1,"text":"a"}}`
			}
			w.WriteHeader(reply.status)
			_, _ = io.WriteString(w, reply.body) // the worker tells
		}))
		said := &bytes.Buffer{}
		c := exec.Command(e.program, e.file, "work")
		c.Env, c.Stderr = append(os.Environ(), "MUTIRAO_URL="+s.URL, "MUTIRAO_TOKEN=x"), said
		c.WaitDelay = time.Second                                                                        // what a shell began may outlive it
		late := time.AfterFunc(time.Minute, func() { s.CloseClientConnections(); _ = c.Process.Kill() }) // it may have ended
		err := c.Run()
		late.Stop()
		s.Close()
		var want []string
		for _, r := range replies {
			want = append(want, r.path)
		}
		if !slices.Equal(heard, want) {
			t.Errorf("%s asked %q, want %q; it said:\n%s", e.file, heard, want, said)
		}
		if err == nil || c.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "no jobs for you") {
			t.Errorf("%s ended with %v, saying:\n%s", e.file, err, said)
		}
		t.Logf("%s", said)
	}
}
