// Package runner runs the applications of automatic tasks: the built-in ones
// (noop, sleep, set, fail) and those of the node's own configuration (a
// command or an HTTP call). Jobs that workers do wait in a Pool.
//
// Promises: every started job is answered exactly once; no more than
// Options.Parallel configured applications run at once, with the instances
// taking turns; whatever an application does, its time, its output and its
// processes are bounded; nothing outlives Close. A job may run more than once
// after a crash of the node: its idempotency key is then the same, and no other
// try of any instance has it.
//
// It imports configs, internal/once, internal/plain and workflow; internal/sim, node,
// node/assemble, node/filing and node/jobs import it.
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Job is one try of one attempt of an automatic task.
type Job struct {
	// Key names the attempt: no other attempt of any instance has it, and the same
	// attempt has it after a restart too. The idempotency key is made of it.
	Key string
	// Idempotency is what the idempotency key is made of instead; empty: of Key.
	Idempotency   string
	Instance      string
	Origin        configs.Origin // of the definition; built-in applications do not need it
	Task          workflow.TaskName
	Attempt       string
	Try           int
	Application   workflow.ApplicationName
	With          workflow.With
	Input         map[workflow.DataName]workflow.Value
	AgeOfInstance time.Duration
	// Files are the inputs that are files: they stand in Input as references
	// (workflow.File), and as paths once the files are here. Makes are the outputs that
	// the application gives as names of files in Folder.
	Files, Makes []workflow.DataName
	Folder       string
	// Replaceable: if it fails, the instance goes on without it. So it does not wait for the files of
	// partners that are away.
	Replaceable bool
	// Asks are the task's queries, whose answers are among its outputs: they are put before the
	// application begins (Runner.Ask).
	Asks []workflow.Question
	// Dispatching names the rule by which the instance stands among those with
	// the same rule, Rank where: the smaller first. Empty: it takes turns.
	Dispatching string
	Rank        []float64
	// Priority is the task's: where jobs wait for a slot, the higher goes first.
	Priority int
	// Ref is what whoever starts it knows it by.
	Ref any
}

// Result is how a job ended: with outputs, with a reason for failure, or cut
// short by Cancel or Close.
type Result struct {
	Outputs map[workflow.DataName]workflow.Value
	Failed  bool
	Reason  string // why it failed, for people
	// Lost: it could not run, as nobody has the content of a file any more that it reads.
	Lost bool
	// Cancelled: the job was cut short and says nothing about its task. After a
	// restart the node runs it again.
	Cancelled bool
	// Answer is called once with what became of a worker's result: nil, it is recorded,
	// durably; else why it was not, and the job may be answered again. nil: nobody asks.
	Answer func(error)
}

// Options adjust a Runner. The zero value works.
type Options struct {
	// Parallel is how many configured applications run at once; 0: 8.
	Parallel int
	// Databases answer queries; nil: there are none.
	Databases Databases
	// Dir is the node's folder: where commands work unless they say otherwise.
	Dir string
	// Logger receives what concerns the operator; nil: nothing is logged.
	Logger *slog.Logger
}

// Runner runs jobs. Its methods may be called from any goroutine.
type Runner struct {
	apps      map[workflow.ApplicationName]application
	databases Databases
	log       *slog.Logger
	all       sync.WaitGroup // answers still owed

	mu     sync.Mutex // guards the fields below
	jobs   map[string]*work
	queue  turns
	free   int // slots
	closed bool
}

// work is a job at work: waiting, sleeping or running.
type work struct {
	Job
	app    application
	done   func(Result)
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // of a sleep
}

// application runs one kind of configured application. It returns when ctx
// ends, and everything that it started has ended by then.
type application interface {
	run(ctx context.Context, j Job) (map[workflow.DataName]workflow.Value, error)
	allows(configs.Origin) bool
}

// served is an application that workers do: its jobs are for a [Pool].
type served struct{ configs.Application }

func (served) run(context.Context, Job) (map[workflow.DataName]workflow.Value, error) {
	return nil, errors.New("workers do this application: it runs nothing here")
}

func (s served) allows(o configs.Origin) bool { return s.Allows(o) }

var errCancelled = errors.New("cancelled")

// New returns a Runner for these applications, which configs.Config.Validate
// has accepted.
func New(apps map[workflow.ApplicationName]configs.Application, o Options) *Runner {
	if o.Parallel == 0 {
		o.Parallel = 8
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runner{
		apps: make(map[workflow.ApplicationName]application, len(apps)), databases: o.Databases,
		log:  o.Logger,
		jobs: make(map[string]*work),
		free: o.Parallel,
	}
	for name, c := range apps {
		if c.Worker {
			r.apps[name] = served{c}
		} else if c.URL != "" {
			r.apps[name] = newCall(c)
		} else {
			r.apps[name] = newCommand(c, o.Dir)
		}
	}
	return r
}

// Has reports whether this node can run that application.
func (r *Runner) Has(app workflow.ApplicationName) bool {
	_, configured := r.apps[app]
	return configured || BuiltIn(app)
}

// Start starts a job and returns at once. done is called exactly once: before
// Start returns for noop, set, fail and whatever cannot be run at all, and
// from another goroutine for everything else. It may call Start, but must not
// block for long. Starting a Key that is already at work does nothing: the
// first Start's done is the answer.
func (r *Runner) Start(j Job, done func(Result)) {
	if result, instant := r.instant(j); instant {
		done(result)
	} else if !r.admit(j, r.apps[j.Application], done) {
		done(Result{Cancelled: true, Reason: "the node is stopping"})
	}
}

// admit takes a job in, to be run by app, unless the runner is closed.
func (r *Runner) admit(j Job, app application, done func(Result)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.jobs[j.Key] != nil {
		return true
	}
	w := &work{Job: j, app: app, done: done}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	r.jobs[j.Key] = w
	r.all.Add(1)
	if app == nil { // the built-in sleep
		w.timer = time.AfterFunc(j.With.For, func() { r.end(w, Result{}) })
	} else {
		r.queue.push(w)
		r.fill()
	}
	return true
}

// instant answers what needs neither time nor a slot.
func (r *Runner) instant(j Job) (Result, bool) {
	if result, ok := runBuiltIn(j); ok {
		return result, true
	}
	if j.Application == workflow.AppSleep {
		return Result{}, false
	}
	app, ok := r.apps[j.Application]
	switch {
	case !ok:
		return absent(j.Application), true
	case !app.allows(j.Origin):
		return failure("this node does not let workflow %q, listed by %s, use application %q: %s",
			j.Origin.Workflow, orNobody(j.Origin.Authors), j.Application, j.Origin.Remedy(app.allows)), true
	}
	return Result{}, false
}

// absent is the result of a job whose application is not here.
func absent(app workflow.ApplicationName) Result {
	return failure("this node has no application %q: add it under applications in %s, or announce it "+
		"(mutirao profile set)", app, configs.File)
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// fill gives free slots to the jobs whose turn it is. The caller holds r.mu.
func (r *Runner) fill() {
	for r.free > 0 {
		w := r.queue.pop()
		if w == nil {
			return
		}
		r.free--
		go r.work(w)
	}
}

func (r *Runner) work(w *work) {
	result := Result{}
	outputs, err := w.app.run(w.ctx, w.Job)
	switch {
	case context.Cause(w.ctx) == errCancelled:
		result = Result{Cancelled: true, Reason: "cancelled"}
	case err != nil:
		r.log.Info("application failed", "application", w.Application, "task", w.Task, "instance", w.Instance,
			"try", w.Try, "reason", err)
		result = failure("%s", err)
	default:
		result.Outputs = outputs
	}
	r.mu.Lock()
	r.free++
	r.fill()
	r.mu.Unlock()
	r.end(w, result)
}

// end answers a job, unless it was answered before.
func (r *Runner) end(w *work, result Result) {
	r.mu.Lock()
	first := r.jobs[w.Key] == w
	if first {
		delete(r.jobs, w.Key)
	}
	r.mu.Unlock()
	if first {
		w.cancel(nil)
		w.done(result)
		r.all.Done()
	}
}

// Cancel cuts a job short; its done gets a Cancelled result from another
// goroutine, once its processes have ended. An unknown key is no mistake: the
// job may just have ended.
func (r *Runner) Cancel(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.jobs[key]; w != nil {
		r.cancel(w)
	}
}

// cancel cuts w short wherever it stands. The caller holds r.mu.
func (r *Runner) cancel(w *work) {
	w.cancel(errCancelled)
	if r.queue.remove(w) || (w.timer != nil && w.timer.Stop()) {
		go r.end(w, Result{Cancelled: true, Reason: "cancelled"})
	}
}

// Close cuts every job short and returns when all have been answered.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, w := range r.jobs {
		r.cancel(w)
	}
	r.mu.Unlock()
	r.all.Wait()
}

func failure(format string, args ...any) Result {
	return Result{Failed: true, Reason: fmt.Sprintf(format, args...)}
}
