package runner_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The test program is its own set of commands: RUNNER_TEST says which one.
func TestMain(m *testing.M) {
	if act, ok := acts[os.Getenv("RUNNER_TEST")]; ok {
		act()
		return
	}
	os.Exit(m.Run())
}

var acts = map[string]func(){
	"echo": func() { // answers with what it was told
		var job map[string]any
		if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
			panic(err)
		}
		wd, _ := os.Getwd()
		env := map[string]string{}
		for _, e := range os.Environ() {
			if k, v, _ := strings.Cut(e, "="); strings.HasPrefix(k, "MUTIRAO_") || strings.HasPrefix(k, "SECRET") ||
				k == "GIVEN" {
				env[k] = v
			}
		}
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"job": job, "env": env, "folder": filepath.Base(wd)})
	},
	"silent":  func() {},
	"numbers": func() { fmt.Print(`{"whole": 9007199254740993, "part": 0.5, "list": [1, {"deep": 2}]}`) },
	"twice":   func() { fmt.Print(`{"a": 1, "a": 2}`) },
	"chatty":  func() { fmt.Print(`{"a": 1} done!`) },
	"prose":   func() { fmt.Print("all went well") },
	"huge":    func() { fmt.Print(`{"a": 1e999}`) },
	"fail": func() {
		for i := range 2000 {
			fmt.Fprintf(os.Stderr, "line %d\n\n", i)
		}
		os.Exit(3)
	},
	"flood": func() {
		for {
			if _, err := fmt.Println(strings.Repeat("x", 1000)); err != nil {
				os.Exit(1)
			}
		}
	},
	"family": func() { // starts a child that would outlive it, and waits
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "RUNNER_TEST=stubborn")
		if err := child.Start(); err != nil {
			panic(err)
		}
		_ = child.Wait()
	},
	"stubborn": func() { // keeps a pipe open until it is killed
		pipe, err := os.OpenFile(os.Getenv("GIVEN"), os.O_WRONLY, 0)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(pipe, "ready")
		signal.Ignore(syscall.SIGTERM)
		<-time.After(time.Hour)
	},
}

func act(name string, more ...string) configs.Application {
	return configs.Application{
		Command: []string{os.Args[0]}, Env: append([]string{"RUNNER_TEST=" + name, "GORACE=atexit_sleep_ms=0"},
			more...),
	}
}

func job(app workflow.ApplicationName) runner.Job {
	return runner.Job{
		Key: "k", Instance: "i1", Origin: configs.Origin{Workflow: "fire-call"}, Task: "close", Attempt: "a7", Try: 2,
		Application:   app,
		With:          workflow.With{Args: map[string]workflow.Value{"copies": int64(2)}},
		Input:         map[workflow.DataName]workflow.Value{"address": "Rua 1"},
		AgeOfInstance: 90 * time.Second,
	}
}

// keyOfJob is the idempotency key of job. It stays what it is from release to
// release: a server may remember it for longer than a node runs.
const keyOfJob = "48d3d7825c2d0e83c375722eb0edafd9"

// Keys tell attempts and tries apart, and are the same when asked again.
func TestIdempotencyKeys(t *testing.T) {
	r := runner.New(map[workflow.ApplicationName]configs.Application{"echo": act("echo")},
		runner.Options{Dir: t.TempDir()})
	defer r.Close()
	keyOf := func(attempt string, try int) string {
		j := job("echo")
		j.Key, j.Try = attempt, try
		return run(r, j).Outputs["job"].(map[string]any)["idempotency_key"].(string)
	}
	seen := map[string]string{}
	for _, attempt := range []string{"i1/alarm/0", "i2/alarm/0", "i1/alarm/9"} {
		for _, try := range []int{1, 2, 11} {
			name := fmt.Sprint(attempt, " try ", try)
			key := keyOf(attempt, try)
			if other, taken := seen[key]; taken {
				t.Errorf("%s has the key of %s", name, other)
			}
			if seen[key] = name; key != keyOf(attempt, try) {
				t.Errorf("%s has another key when it runs again", name)
			}
		}
	}
}

// run runs one job and returns its answer.
func run(r *runner.Runner, j runner.Job) runner.Result {
	answer := make(chan runner.Result, 2)
	r.Start(j, func(res runner.Result) { answer <- res })
	return <-answer
}

func TestCommandGetsTheJobAndItsEnvironment(t *testing.T) {
	t.Setenv("SECRET", "not for applications")
	t.Setenv("GIVEN", "passed on")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "reports"), 0o700); err != nil {
		t.Fatal(err)
	}
	echo := act("echo", "GIVEN")
	echo.Folder = "reports"
	r := runner.New(map[workflow.ApplicationName]configs.Application{"echo": echo}, runner.Options{Dir: dir})
	defer r.Close()

	want := runner.Result{Outputs: map[workflow.DataName]workflow.Value{
		"job": map[string]any{
			"instance": "i1", "workflow": "fire-call", "task": "close", "application": "echo",
			"attempt": "a7", "try": int64(2), "idempotency_key": keyOfJob, "age": "1m30s",
			"args": map[string]any{"copies": int64(2)}, "input": map[string]any{"address": "Rua 1"},
		},
		"env": map[string]any{
			"GIVEN": "passed on", "MUTIRAO_INSTANCE": "i1", "MUTIRAO_WORKFLOW": "fire-call", "MUTIRAO_TASK": "close",
			"MUTIRAO_APPLICATION": "echo", "MUTIRAO_ATTEMPT": "a7", "MUTIRAO_TRY": "2",
			"MUTIRAO_IDEMPOTENCY_KEY": keyOfJob,
		},
		"folder": "reports",
	}}
	if diff := cmp.Diff(want, run(r, job("echo"))); diff != "" {
		t.Error(diff)
	}
}

func TestAnswersOfCommands(t *testing.T) {
	flood := act("flood")
	flood.MaxOutput = 5000
	slow := act("stubborn", "GIVEN="+os.DevNull)
	slow.Timeout = 300 * time.Millisecond
	private := act("silent")
	private.Allow = []configs.Permit{"other-workflow", "fire-call"} // fire-call by whom it may concern
	lost := act("silent")
	lost.Folder = "no-such-folder"
	r := runner.New(map[workflow.ApplicationName]configs.Application{
		"silent": act("silent"), "numbers": act("numbers"), "chatty": act("chatty"), "twice": act("twice"), "prose": act("prose"),
		"huge": act("huge"), "broken": act("fail"), "flood": flood, "slow": slow, "private": private, "lost": lost,
		"absent": {Command: []string{"no-such-program"}},
	}, runner.Options{Dir: t.TempDir()})
	defer r.Close()

	for app, want := range map[workflow.ApplicationName]runner.Result{
		"silent": {},
		"numbers": {Outputs: map[workflow.DataName]workflow.Value{
			"whole": int64(9007199254740993), "part": 0.5, "list": []any{int64(1), map[string]any{"deep": int64(2)}},
		}},
	} {
		if diff := cmp.Diff(want, run(r, job(app))); diff != "" {
			t.Errorf("%s: %s", app, diff)
		}
	}
	for app, want := range map[workflow.ApplicationName]string{
		"twice":   `its answer: the key "a" is there twice`,
		"chatty":  "its answer goes on after the JSON object of outputs",
		"prose":   `not a JSON object of outputs: it starts with "all went well"`,
		"huge":    "output a: 1e999 is too large a number",
		"broken":  "line 1998\nline 1999",
		"flood":   "wrote more than its output limit of 5000 bytes",
		"slow":    "not done within its time limit of 300ms",
		"private": `does not let workflow "fire-call", listed by nobody, use application "private"`,
		"lost":    "its working folder cannot be used",
		"absent":  "no-such-program",
		"unknown": `this node has no application "unknown"`,
	} {
		if got := run(r, job(app)); !got.Failed || got.Cancelled || !strings.Contains(got.Reason, want) {
			t.Errorf("%s:\n got: %+v\nwant: …%s…", app, got, want)
		}
	}
}

// Cancelling a job ends the children of its command too: the pipe that the
// grandchild holds open is closed.
func TestCancelEndsTheWholeFamily(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("named pipes differ on Windows")
		return
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	r := runner.New(map[workflow.ApplicationName]configs.Application{"family": act("family", "GIVEN="+pipe)},
		runner.Options{})
	defer r.Close()

	answer := make(chan runner.Result, 2)
	r.Start(job("family"), func(res runner.Result) { answer <- res })
	held, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(held)
	if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("grandchild: %q, %v", line, err)
	}
	r.Cancel("k")
	if got := <-answer; !got.Cancelled || got.Failed {
		t.Errorf("got %+v, want cancelled and not failed", got)
	}
	if _, err := lines.ReadByte(); err != io.EOF {
		t.Errorf("the grandchild still holds the pipe: %v", err)
	}
}

func TestBuiltInsAnswerAtOnce(t *testing.T) {
	r := runner.New(nil, runner.Options{})
	defer r.Close()
	for app, want := range map[workflow.ApplicationName]runner.Result{
		"":     {},
		"noop": {},
		"fail": {Failed: true, Reason: "no water"},
	} {
		j := job(app)
		j.With = workflow.With{Reason: "no water"}
		var got *runner.Result
		r.Start(j, func(res runner.Result) { got = &res })
		if got == nil {
			t.Errorf("%q was not answered before Start returned", app)
		} else if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("%q: %s", app, diff)
		}
	}
	if got := run(r, job("fail")); got.Reason != "told to fail" {
		t.Errorf("fail without a reason: %q", got.Reason)
	}
}

func TestHas(t *testing.T) {
	r := runner.New(map[workflow.ApplicationName]configs.Application{"echo": act("echo")}, runner.Options{})
	defer r.Close()
	for app, want := range map[workflow.ApplicationName]bool{
		"": true, "noop": true, "sleep": true, "set": true, "fail": true, "echo": true, "other": false,
	} {
		if got := r.Has(app); got != want {
			t.Errorf("Has(%q) = %v, want %v", app, got, want)
		}
	}
}

func TestSleepersNeedNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runner.New(nil, runner.Options{Parallel: 1})
		defer r.Close()
		begun := time.Now()
		var sleepers sync.WaitGroup
		for i := range 100 {
			j := job(workflow.AppSleep)
			j.Key, j.With = fmt.Sprint(i), workflow.With{For: time.Hour}
			sleepers.Add(1)
			r.Start(j, func(res runner.Result) {
				if res.Failed || res.Cancelled {
					t.Errorf("got %+v", res)
				}
				sleepers.Done()
			})
		}
		sleepers.Wait()
		if took := time.Since(begun); took != time.Hour {
			t.Errorf("100 sleepers of an hour took %v", took)
		}
	})
}

func TestCancelAndCloseWakeSleepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runner.New(nil, runner.Options{})
		answers := make(chan string, 10)
		for _, key := range []string{"cancelled", "closed"} {
			j := job(workflow.AppSleep)
			j.Key, j.With = key, workflow.With{For: time.Hour}
			r.Start(j, func(res runner.Result) { answers <- fmt.Sprint(key, " ", res.Cancelled, " ", res.Failed) })
			r.Start(j, func(runner.Result) { t.Errorf("%s: the second Start of a busy key was answered", key) })
		}
		r.Cancel("no such job")
		r.Cancel("cancelled")
		r.Cancel("cancelled")
		if got := <-answers; got != "cancelled true false" {
			t.Error(got)
		}
		r.Close()
		if got := <-answers; got != "closed true false" {
			t.Error(got)
		}
		if got := run(r, job(workflow.AppSleep)); !got.Cancelled || !strings.Contains(got.Reason, "stopping") {
			t.Errorf("after Close: %+v", got)
		}
		time.Sleep(2 * time.Hour) // virtual: nobody wakes a second time
		if n := len(answers); n != 0 {
			t.Errorf("%d answers too many", n)
		}
	})
}

// Whatever is cancelled at whatever moment, everybody is answered once and no
// slot is lost.
func TestEveryJobIsAnsweredOnce(t *testing.T) {
	r := runner.New(map[workflow.ApplicationName]configs.Application{"silent": act("silent")},
		runner.Options{Parallel: 2})
	var mu sync.Mutex
	answered := map[string]int{}
	for i := range 30 {
		j := job("silent")
		j.Key, j.Instance = fmt.Sprint(i), fmt.Sprint(i%3)
		r.Start(j, func(runner.Result) {
			mu.Lock()
			defer mu.Unlock()
			answered[j.Key]++
		})
		if i%2 == 0 {
			r.Cancel(j.Key)
		}
	}
	if got := run(r, job("silent")); got.Failed || got.Cancelled {
		t.Errorf("after cancelling half of the jobs, the last one got %+v", got)
	}
	r.Close()
	if n := len(answered); n != 30 {
		t.Errorf("%d of 30 answered", n)
	}
	if most := slices.Max(slices.Collect(maps.Values(answered))); most != 1 {
		t.Errorf("somebody was answered %d times", most)
	}
}
