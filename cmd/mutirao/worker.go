package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/internal/once"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/worker"
)

func newWorkerCommand() *cobra.Command {
	return newGroup("worker", "Do automatic tasks with a program of your own", newWorkerRunCommand())
}

// tokenVariable names the token of a worker that has no node's folder.
const tokenVariable = "MUTIRAO_TOKEN"

func newWorkerRunCommand() *cobra.Command {
	var o worker.Options
	var url string
	cmd := &cobra.Command{
		Use:   "run APPLICATION [--jobs N] [--name NAME] [--lease D] [--url URL] -- COMMAND...",
		Short: "Serve the tasks of an application: a command for each job",
		Long: `Takes the jobs of an application (a transition) from the node, one after the other,
and runs the command for each: the job comes as one JSON object on its standard input, and
it answers with its outputs as a JSON object on standard output ({}: done, with none).
Another exit status than 0 fails the try, with the last line of standard error as the
reason. Exit status 0 with nothing on standard output gives the job back, for another
worker.

The command runs for a job that nobody else has: signs of life keep it. When the job is
over before it is done (its time limit, a cancelled instance), the command is ended. A
node that stops is waited for. SIGTERM and Ctrl-C end the command and give its job back;
then it is said how many jobs were done, have failed, or were given back, and of how many
the node did not take what came of them, as they were over or another worker's by then.
A second one does not wait for the command, and for the node a few seconds only; a third
ends the worker at once.

Where workers do not do the application yet, the node announces from now on that it is
able to (mutirao profile set --application takes that back); an application that
config.yaml gives a program needs worker: true there instead.

With --url, and ` + tokenVariable + ` in the environment, it needs no node's folder: any
device that reaches the API can work with a token of the scope worker:APPLICATION.`,
		Example: `  mutirao worker run weigh -- ./weigh.sh
  mutirao worker run weigh --jobs 4 --name scales -- python3 weigh.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.ArgsLenAtDash()
			switch {
			case len(args) == 0 || at == 0:
				return usagef("worker run needs APPLICATION")
			case at < 0 || at == len(args):
				return usagef("worker run needs -- and a command")
			case at > 1:
				return usagef("worker run takes one APPLICATION before --: what is %q?", args[1])
			}
			if _, err := exec.LookPath(args[1]); err != nil {
				return api.Errorf(api.NotFound, "there is no program %s that could be run", args[1])
			}
			c, err := workerClient(cmd, url)
			if err != nil {
				return err
			}
			o.Application, o.Name = args[0], cmp.Or(o.Name, workerName())
			o.Log = func(text string) { uiOf(cmd).note("%s", text) }
			var counts tally
			o.Ended = counts.add
			hurry, over := again()
			defer over()
			o.Hurry = hurry
			err = c.Run(cmd.Context(), o, runCommand(args[1:], hurry, uiOf(cmd).err))
			if err == nil {
				return counts.tell(uiOf(cmd))
			}
			var no *worker.Error
			if errors.As(err, &no) {
				shown := api.Errorf(api.Code(no.Code), "%s", no.Message)
				if no.Hint != "" {
					return shown.WithHint("%s", no.Hint)
				}
				return shown
			}
			return err
		},
	}
	f := cmd.Flags()
	o.Jobs = 1
	f.Var(&whole{&o.Jobs, 1, 256}, "jobs", "how many jobs at `once`, 1 to 256")
	f.StringVar(&o.Name, "name", "", "what the worker is called in logs; by default host and process")
	f.DurationVar(&o.Lease, "lease", 30*time.Second, "how long a job is kept without a sign of life, 2s to 10m")
	f.StringVar(&url, "url", "", "the node's `API`, in place of the node in --dir; the token is in "+tokenVariable)
	return cmd
}

// again is closed when the program is told a second time to end; once it is told a third time, it ends at once. over ends
// the waiting for that.
func again() (second <-chan struct{}, over func()) {
	told, hurry, done := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(told)
		for range 2 {
			select {
			case <-told:
			case <-done:
				return
			}
		}
		close(hurry)
	}()
	return hurry, sync.OnceFunc(func() { close(done) })
}

// tally counts how jobs ended.
type tally struct {
	mu sync.Mutex // guards of
	of map[worker.Ending]int
}

func (t *tally) add(_ *worker.Job, end worker.Ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[worker.Ending]int{}
	}
	t.of[end]++
}

// tell says the counts: to people those that are not 0, to programs all.
func (t *tally) tell(u *ui) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	all := map[string]int{}
	for _, end := range worker.Endings() {
		n := t.of[end]
		all[strings.ReplaceAll(string(end), " ", "_")] = n
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, end))
		}
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	return u.done(all, "jobs: %s", strings.Join(parts, ", "))
}

// workerName is what a worker is called that was not named.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return host + "-" + strconv.Itoa(os.Getpid())
}

// workerClient asks the node in --dir, or the one at an address.
func workerClient(cmd *cobra.Command, address string) (*worker.Client, error) {
	if address != "" {
		if at, err := url.Parse(address); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
			return nil, usagef("--url %q is no address of a node's API: want http://HOST:PORT or https://HOST:PORT, "+
				"which mutirao up says there", plain.Cut(address, 80))
		}
		token := os.Getenv(tokenVariable)
		if token == "" {
			return nil, usagef("--url needs a token in %s: mutirao token add NAME --scope worker:APPLICATION",
				tokenVariable)
		}
		return &worker.Client{URL: address, Token: token}, nil
	}
	node, err := connect(cmd)
	if err != nil {
		return nil, err
	}
	base, token, client := node.Way()
	return &worker.Client{URL: base, Token: token, HTTP: client, Again: func() (string, string, *http.Client, error) {
		node, err := connect(cmd)
		if err != nil {
			return "", "", nil, err
		}
		base, token, client := node.Way()
		return base, token, client, nil
	}}, nil
}

// maxAnswer is the longest answer of a worker's command, in bytes.
const maxAnswer = 1 << 20

// endGrace is between asking a command to end and ending it.
const endGrace = 2 * time.Second

// runCommand does jobs with a command, whose errors are shown as they come.
func runCommand(args []string, hurry <-chan struct{}, errors io.Writer) worker.Handler {
	return func(ctx context.Context, job *worker.Job, _ worker.Report) (map[string]any, error) {
		var stdout bytes.Buffer
		stderr := &lastLine{}
		c := exec.CommandContext(ctx, args[0], args[1:]...)
		c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(job.Raw), &stdout, io.MultiWriter(errors, stderr)
		c.Env = append(os.Environ(),
			"MUTIRAO_INSTANCE="+job.Instance, "MUTIRAO_WORKFLOW="+job.Workflow, "MUTIRAO_TASK="+job.Task,
			"MUTIRAO_APPLICATION="+job.Application,
			"MUTIRAO_ATTEMPT="+job.Attempt, "MUTIRAO_TRY="+strconv.Itoa(job.Try),
			"MUTIRAO_IDEMPOTENCY_KEY="+job.IdempotencyKey, "MUTIRAO_FILES="+job.Files)
		c.WaitDelay = endGrace
		ownGroup(c)
		err := runUntil(c, hurry)
		switch {
		case ctx.Err() != nil:
			return nil, worker.ErrGiveBack
		case err != nil && stderr.text() != "":
			return nil, fmt.Errorf("%s", stderr.text())
		case err != nil:
			return nil, fmt.Errorf("%s: %w", args[0], err)
		}
		return answerOf(stdout.Bytes())
	}
}

// runUntil runs a command, and kills it when hurry is closed.
func runUntil(c *exec.Cmd, hurry <-chan struct{}) error {
	runtime.LockOSThread() // endWithUs goes by the end of the thread that begins the command
	defer runtime.UnlockOSThread()
	if err := c.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-hurry:
			kill(c)
		case <-done:
		}
	}()
	return c.Wait()
}

// answerOf reads what a command answered.
func answerOf(b []byte) (map[string]any, error) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0:
		return nil, worker.ErrGiveBack
	case len(b) > maxAnswer:
		return nil, fmt.Errorf("the command answered %d bytes, at most %d", len(b), maxAnswer)
	}
	var out map[string]any
	var twice *once.Twice
	switch err := once.Decode(b, &out); {
	case errors.Is(err, once.ErrMore):
		return nil, errors.New(
			"the command's answer goes on after the JSON object of outputs: write nothing else to stdout")
	case errors.As(err, &twice):
		return nil, fmt.Errorf("the command's answer: %w", err)
	case err != nil || out == nil:
		return nil, fmt.Errorf("the command's answer is not a JSON object of outputs: it starts with %.60q", b)
	}
	return out, nil
}

// lastLine keeps the end of what is written, of which text is the last line.
type lastLine struct{ b []byte }

func (l *lastLine) Write(p []byte) (int, error) {
	const most = 4 << 10
	if l.b = append(l.b, p...); len(l.b) > most {
		l.b = append(l.b[:0], l.b[len(l.b)-most:]...)
	}
	return len(p), nil
}

func (l *lastLine) text() string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(l.b), "\ufffd")), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
