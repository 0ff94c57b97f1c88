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
	"sync/atomic"
	"syscall"
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
  text: {type: string, default: "hé \"quoted\" \\ back 🚲 <b> \\u0041"}
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
	x := &crew{t: t, n: n}
	x.run("double", "python3", "../../examples/workers/worker.py", "double", "--once")
	x.run("count", "sh", "../../examples/workers/worker.sh", "count", "--once")
	x.inGo("add", add)
	st, err := n.API.Start(t.Context(), api.StartRequest{Workflow: "three-languages"})
	if err != nil {
		t.Fatal(err)
	}
	var in *api.Instance
	testnode.Within(t, time.Minute, "the instance ends", func() bool {
		in, err = n.API.Show(t.Context(), st.ID)
		return err == nil && in.State != workflow.InstanceRunning
	})
	if in.State != workflow.InstanceSucceeded || in.Data["sum"] != json.Number("73") {
		t.Errorf("it is %s with %v", in.State, in.Data)
	}
	for _, task := range in.Tasks {
		if want := map[workflow.TaskName]string{"double": "python", "count": "shell", "add": "go"}[task.Name]; task.Worker == nil || task.Worker.Name != want {
			t.Errorf("%s was done by %+v, want %s", task.Name, task.Worker, want)
		}
	}
}

// crew are workers of a node, each with a token of its own.
type crew struct {
	t *testing.T
	n *testnode.Node
}

// way is the node's address and a token for an application.
func (x *crew) way(app string) (url, token string) {
	x.t.Helper()
	made, err := x.n.API.AddToken(x.t.Context(), httpapi.TokenRequest{Name: app, Scope: "worker:" + app})
	if err != nil {
		x.t.Fatal(err)
	}
	url, _, _ = x.n.API.Way()
	return url, made.Token
}

// run has a program do an application until the test ends, or with --once one job of it.
func (x *crew) run(app string, command ...string) {
	x.t.Helper()
	url, token := x.way(app)
	c := exec.Command(command[0], command[1:]...)
	c.Env = append(os.Environ(), "MUTIRAO_URL="+url, "MUTIRAO_TOKEN="+token, "TMPDIR="+x.t.TempDir())
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                 // what a shell began ends with it
	end := func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // it may have ended
	if err := c.Start(); err != nil {
		x.t.Fatal(err)
	}
	once := command[len(command)-1] == "--once"
	late := time.AfterFunc(90*time.Second, end)
	x.t.Cleanup(func() {
		if !once {
			end()
		}
		if err := c.Wait(); err != nil && once {
			x.t.Errorf("%v: %v", command, err)
		}
		late.Stop()
	})
}

// inGo has the Go client do an application until the test ends.
func (x *crew) inGo(app string, do worker.Handler) {
	x.t.Helper()
	url, token := x.way(app)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		c := &worker.Client{URL: url, Token: token}
		ended <- c.Run(ctx, worker.Options{Application: app, Name: "go"}, do)
	}()
	x.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			x.t.Error(err)
		}
	})
}

const rental = `
workflow: rental
data:
  customer: {type: string}
  papers: {type: boolean}
  car: {type: string}
  days: {type: integer}
  status: {type: string, default: requested}
  out: {type: boolean}
  plate: {type: string}
  fines: {type: number}
  total: {type: number}
tasks:
  open:
    when: status == "requested"
    repeat: true
    application: open
    out: [status]
    compensate: {application: set, with: {status: '"requested"'}}
  papers:
    when: status == "started" and papers == null
    repeat: true
    application: papers
    out: [papers]
    compensate: {application: set, with: {papers: 'null'}}
  choose:
    when: status == "started" and car == null
    repeat: true
    application: choose
    out: [car, days]
    compensate: {application: set, with: {car: 'null', days: 'null'}}
  decide:
    when: status == "started" and papers and car != null
    repeat: true
    application: decide
    in: [car]
    out: [status]
    compensate: {application: set, with: {status: '"started"'}}
  hand: {when: status == "confirmed" and out == null, repeat: true, application: hand, in: [car], out: [out, plate]}
  inspect: {when: out, repeat: true, application: inspect, in: [plate], out: [out, fines]}
  pay:
    when: out == false and fines != null and status == "confirmed"
    repeat: true
    application: set
    with: {status: '"paid"', total: 20 * days + fines}
    out: [status, total]
final: status == "paid" or status == "rejected"
`

// The runs of a rental that the specification of data-state flows tells of come out state by state, with workers in
// Python, in shell and in Go: one in which all goes well and one that is rejected; of those in which the car cannot be
// handed out one that is offered as it is, one that is compensated before, by which what was done beside that is undone
// too, and one that jumps forward; and one with an answer that nothing follows from, which jumps back and is offered.
func TestRentals(t *testing.T) {
	needsPrograms(t)
	n := testnode.New(t, "one")
	n.Configure("preset: local", "applications:", "  open: {worker: true}", "  papers: {worker: true}",
		"  choose: {worker: true}", "  decide: {worker: true}", "  hand: {worker: true}", "  inspect: {worker: true}")
	n.Found()
	if _, err := n.API.AddWorkflow(t.Context(), "rental.yaml", []byte(rental)); err != nil {
		t.Fatal(err)
	}
	x := &rentals{crew: crew{t: t, n: n}}
	for _, app := range []string{"open", "papers", "inspect"} {
		x.run(app, "python3", "../../examples/workers/worker.py", app)
	}
	x.run("hand", "sh", "../../examples/workers/worker.sh", "hand")
	x.inGo("choose", x.office)
	x.inGo("decide", x.office)
	begin := []string{
		"S0 initial customer=zoe status=requested",
		"S1 transition open from S0 status=started",
		"S2 transition papers from S1 papers=true",
	}
	well := append(slices.Clone(begin),
		"S3 transition choose from S1 car=k8 days=4",
		"S4 transition decide from S3 status=confirmed",
		"S5 transition hand from S4 out=true plate=k8-1",
		"S6 transition inspect from S5 fines=10 out=false",
		"S7 transition pay from S6 status=paid total=90, final")
	x.start("k8")
	x.comesTo(workflow.InstanceSucceeded, well)

	x.start("banger")
	x.comesTo(workflow.InstanceSucceeded, append(slices.Clone(begin),
		"S3 transition choose from S1 car=banger days=4",
		"S4 transition decide from S3 status=rejected, final"))

	x.start("flat")
	alone := append(slices.Clone(begin),
		"S3 transition choose from S1 car=flat days=4",
		"S4 transition decide from S3 status=confirmed",
		"transition hand from S4 aborted")
	x.comesTo(workflow.InstanceInterrupted, alone)
	x.recover(api.RecoveryStep{Method: "offer"})
	x.comesTo(workflow.InstanceSucceeded, append(alone,
		"offer",
		"S5 transition hand from S4 out=true plate=flat-1",
		"S6 transition inspect from S5 fines=10 out=false",
		"S7 transition pay from S6 status=paid total=90, final"))

	x.start("wreck", "k8")
	x.comesTo(workflow.InstanceInterrupted, append(slices.Clone(begin),
		"S3 transition choose from S1 car=wreck days=4",
		"S4 transition decide from S3 status=confirmed",
		"transition hand from S4 aborted"))
	x.recover(api.RecoveryStep{Method: "compensate", Steps: 2})
	undone := append(slices.Clone(begin),
		"S3 transition choose from S1 car=wreck days=4 compensated",
		"S4 transition decide from S3 status=confirmed compensated",
		"transition hand from S4 aborted",
		"S5 compensation decide status=started, like S3",
		"S6 compensation choose car=<nil> days=<nil>, like S2")
	x.comesTo(workflow.InstanceInterrupted, undone)
	x.recover(api.RecoveryStep{Method: "offer"})
	undone[2] += " compensated"
	x.comesTo(workflow.InstanceSucceeded, append(undone,
		"offer",
		"S7 compensation papers papers=<nil>, like S1",
		"S8 transition papers from S7 papers=true, like S2",
		"S9 transition choose from S7 car=k8 days=4, like S3",
		"S10 transition decide from S9 status=confirmed, like S4",
		"S11 transition hand from S10 out=true plate=k8-1",
		"S12 transition inspect from S11 fines=10 out=false",
		"S13 transition pay from S12 status=paid total=90, final"))

	x.start("wreck")
	x.comesTo(workflow.InstanceInterrupted, append(slices.Clone(begin),
		"S3 transition choose from S1 car=wreck days=4",
		"S4 transition decide from S3 status=confirmed",
		"transition hand from S4 aborted"))
	car := "k8"
	x.recover(api.RecoveryStep{Method: "jump-forward", Set: map[workflow.DataName]*string{"car": &car, "out": new("true")}})
	x.comesTo(workflow.InstanceSucceeded, append(slices.Clone(begin),
		"S3 transition choose from S1 car=wreck days=4",
		"S4 transition decide from S3 status=confirmed",
		"transition hand from S4 aborted",
		"S5 jump-forward car=k8 out=true",
		"S6 transition inspect from S5 fines=10 out=false",
		"S7 transition pay from S6 status=paid total=90, final"))

	x.start("odd")
	odd := append(slices.Clone(begin),
		"S3 transition choose from S1 car=odd days=4",
		"S4 transition decide from S3 status=maybe")
	x.comesTo(workflow.InstanceInterrupted, odd)
	x.sure.Store(true)
	x.recover(api.RecoveryStep{Method: "jump-back", Set: map[workflow.DataName]*string{"status": new("started")}})
	odd[4] += " jumped"
	odd = append(odd, "S5 jump-back status=started, like S3")
	x.comesTo(workflow.InstanceInterrupted, odd)
	x.recover(api.RecoveryStep{Method: "offer"})
	x.comesTo(workflow.InstanceSucceeded, append(odd,
		"offer",
		"S6 transition decide from S5 status=confirmed",
		"S7 transition hand from S6 out=true plate=odd-1",
		"S8 transition inspect from S7 fines=10 out=false",
		"S9 transition pay from S8 status=paid total=90, final"))
}

// rentals are instances of rental, one after the other.
type rentals struct {
	crew
	id   string
	cars chan string // that are chosen next
	sure atomic.Bool // of what is odd
}

// start begins a rental in which these cars are chosen.
func (x *rentals) start(cars ...string) {
	x.t.Helper()
	x.cars = make(chan string, len(cars))
	for _, car := range cars {
		x.cars <- car
	}
	st, err := x.n.API.Start(x.t.Context(), api.StartRequest{
		Workflow: "rental", Input: api.Texts{"customer": "zoe"},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.id = st.ID
}

// office chooses a car, once the papers are there, and decides: nobody gets a banger.
func (x *rentals) office(ctx context.Context, job *worker.Job, _ worker.Report) (map[string]any, error) {
	if job.Task == "decide" {
		switch {
		case job.Input["car"] == "banger":
			return map[string]any{"status": "rejected"}, nil
		case job.Input["car"] == "odd" && !x.sure.Load():
			return map[string]any{"status": "maybe"}, nil
		}
		return map[string]any{"status": "confirmed"}, nil
	}
	for {
		in, err := x.n.API.Show(ctx, job.Instance)
		if err != nil {
			return nil, err
		}
		if in.Data["papers"] == true {
			return map[string]any{"car": <-x.cars, "days": 4}, nil
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (x *rentals) recover(step api.RecoveryStep) {
	x.t.Helper()
	r := api.TaskOrder{User: "one", ID: x.id, Order: api.TaskRecover, Recover: &step}
	if _, err := x.n.API.OrderTask(x.t.Context(), r); err != nil {
		x.t.Fatal(err)
	}
}

// comesTo waits until the rental stands so, and has that history.
func (x *rentals) comesTo(state workflow.InstanceState, want []string) {
	x.t.Helper()
	var got []string
	until := time.Now().Add(time.Minute)
	for {
		in, err := x.n.API.Show(x.t.Context(), x.id)
		if err != nil {
			x.t.Fatal(err)
		}
		if got = x.history(); in.State == state && slices.Equal(got, want) {
			return
		}
		if time.Now().After(until) {
			x.t.Fatalf("it is %s, with\n%s\nwant %s, with\n%s", in.State, strings.Join(got, "\n"), state,
				strings.Join(want, "\n"))
		}
		<-time.After(20 * time.Millisecond)
	}
}

// history is what is shown of the states of the rental, a line for each.
func (x *rentals) history() (out []string) {
	states, err := x.n.API.History(x.t.Context(), x.id)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, s := range states {
		line := s.Kind
		if s.State != nil {
			line = fmt.Sprintf("S%d %s", *s.State, s.Kind)
		}
		if s.Transition != nil {
			line += " " + string(*s.Transition)
		}
		if s.FiredBy != nil {
			line += fmt.Sprintf(" from S%d", *s.FiredBy)
		}
		for _, n := range s.Changed {
			line += fmt.Sprintf(" %s=%v", n, s.Attributes[string(n)])
		}
		if s.Mark != "" {
			line += " " + s.Mark
		}
		if s.EquivalentTo != nil {
			line += fmt.Sprintf(", like S%d", *s.EquivalentTo)
		}
		if s.Status == "final" {
			line += ", final"
		}
		out = append(out, line)
	}
	return out
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
			if why := in.Tasks[0].Reason; !strings.Contains(why, "its result was refused: "+
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
