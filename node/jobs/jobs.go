package jobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Desk has the jobs that workers do (docs/workers.md). The pool knows who has which job; that
// a worker was given one is a fact before the worker hears of it, and its result is one
// before the worker is told that it was taken. Which result counts the instance's machine
// decides, in the goroutine of its shard, so there is one at most whatever the pool forgot.
type Desk struct {
	Surroundings
	pool      *runner.Pool
	elsewhere *elsewhere

	opening sync.Mutex // held while a further application is announced
}

// Surroundings are what jobs need of the rest of a node.
type Surroundings struct {
	Self      workflow.PartnerID
	Clock     interface{ Now() moment.Now }
	Log       *slog.Logger
	Config    map[workflow.ApplicationName]configs.Application
	Profile   Profile
	Runs      func(workflow.ApplicationName) bool // something here runs it, by itself
	Instances Instances
	Peers     Peers
	Members   Members
	// Able are the partners as assignment by the plain rule sees them, for a definition.
	Able    func(*workflow.Definition) []partition.Partner
	Random  func(n int) []byte
	Chance  func() float64
	Watched func() bool
	Publish func(api.Event)
	Stopped <-chan struct{} // closed when the node stops
	// Explain says what an error means to whoever asked, an *api.Error if that is known.
	Explain func(error) error
}

// Profile is what this node says of itself.
type Profile interface {
	Announced() []workflow.ApplicationName
	// Announce has this node announce these applications.
	Announce(context.Context, []workflow.ApplicationName) error
}

// Instances are those whose tasks are done. What they do is durable when they return.
type Instances interface {
	// Lease has an instance say that a worker was given a try; choreo.ErrNotAwaited: it is
	// at no such try.
	Lease(context.Context, workflow.InstanceID, fact.Lease) error
	// TimeLeft is how long an attempt may go on; limited: not as long as it likes.
	TimeLeft(context.Context, workflow.InstanceID, fact.AttemptID) (left time.Duration, limited bool, err error)
	// CheckResult says what is wrong with the outputs of a try; err: that cannot be told.
	CheckResult(
		ctx context.Context, id workflow.InstanceID, attempt fact.AttemptID, try int,
		outputs map[workflow.DataName]workflow.Value, makes []workflow.DataName,
	) (wrong, err error)
}

// Peers are the partners that can be asked.
type Peers interface {
	Asks() bool
	Up(workflow.PartnerID) bool
	Request(
		ctx context.Context, to workflow.PartnerID, addrs []string, protocol string, req []byte, wait time.Duration,
	) ([]byte, error)
	Refuse(why string, of workflow.PartnerID)
	Count(what string, by uint64)
}

// Members are the partners that are known.
type Members interface {
	All() []membership.Partner
	Get(workflow.PartnerID) (membership.Partner, bool)
	Label(workflow.PartnerID) string
}

// New has no jobs yet.
func New(s Surroundings) *Desk {
	x := &Desk{Surroundings: s, pool: &runner.Pool{}, elsewhere: newElsewhere()}
	x.pool.Serves = x.Served
	x.pool.Recall()
	return x
}

// Recalled is called when the jobs have been started again that were here before the node began: from then on a lease
// that is not known is none.
func (x *Desk) Recalled() { x.pool.Recalled() }

// Review is called when this node announces other applications: what waits for one that it has no more fails.
func (x *Desk) Review() { x.pool.Review() }

// Close has nobody wait for jobs any more.
func (x *Desk) Close() {
	x.elsewhere.lookouts.close()
	x.pool.Close()
}

// Seen is when a worker last came for the jobs of an application.
func (x *Desk) Seen(app workflow.ApplicationName) time.Time { return x.pool.Seen(app) }

// Look is how it stands with a job in the pool, if it is there.
func (x *Desk) Look(key string) (s runner.Standing, here bool) { return x.pool.Look(key) }

// Executor runs the jobs that no worker does.
type Executor interface {
	Has(workflow.ApplicationName) bool
	Start(j runner.Job, done func(runner.Result))
	Cancel(key string)
}

// Workers is a runner whose jobs wait for workers, where workers do their application.
func (x *Desk) Workers(of Executor) Executor { return &withWorkers{of, x} }

// Ref is what a shard knows a job by.
type Ref struct {
	Instance workflow.InstanceID
	Attempt  fact.AttemptID
	Lease    *fact.Lease // a worker's that had it before the node started
	Plan     *partition.Plan
}

// withWorkers is a runner whose jobs wait for workers, where workers do their application.
type withWorkers struct {
	Executor
	jobs *Desk
}

// Has implements Executor.
func (r *withWorkers) Has(app workflow.ApplicationName) bool {
	return r.Executor.Has(app) || r.jobs.Served(app)
}

// Start implements Executor. A workflow that may not use the application fails there.
func (r *withWorkers) Start(j runner.Job, done func(runner.Result)) {
	ref, ok := j.Ref.(Ref)
	if !ok || !r.jobs.Served(j.Application) || !r.jobs.Config[j.Application].Allows(j.Origin) {
		r.Executor.Start(j, done)
		return
	}
	var held *runner.Held
	// else it was given other answers than those that it would end with
	if l := ref.Lease; l != nil && len(j.Asks) == 0 {
		held = &runner.Held{Worker: runner.Worker{Name: l.Worker, At: l.At}, Key: l.Key}
	}
	r.jobs.pool.Start(j, held, done)
}

// Cancel implements Executor.
func (r *withWorkers) Cancel(key string) {
	r.jobs.pool.Cancel(key)
	r.Executor.Cancel(key)
}

// Served reports whether workers do an application here: the configuration says so, or a
// worker that may has come for it, which the profile keeps.
func (x *Desk) Served(app workflow.ApplicationName) bool {
	if runner.BuiltIn(app) {
		return false
	}
	if c, configured := x.Config[app]; configured || x.Runs(app) {
		return c.Worker
	}
	return slices.Contains(x.Profile.Announced(), app)
}

// open has this node serve an application by workers, where who asks may have it do so.
// It announces that, so the node is able from then on (partition.Partner).
func (x *Desk) open(ctx context.Context, by api.Program, app workflow.ApplicationName) error {
	x.opening.Lock()
	defer x.opening.Unlock()
	_, configured := x.Config[app]
	switch {
	case runner.BuiltIn(app):
		return api.Errorf(api.Invalid, "application %q is built in: workers do not do it", app)
	case x.Served(app):
		return nil
	case configured:
		return api.Errorf(api.Refused, "%s says what application %s runs at this node: it is not for workers",
			configs.File, app).
			WithHint("write worker: true in its place, and start the node again")
	case !by.Admits:
		return api.Errorf(api.Refused, "workers do not do application %s at this node", app).
			WithHint("write worker: true for it under applications in %s, or use a token with the scope worker:%s",
				configs.File, app)
	}
	return x.Profile.Announce(ctx, append(x.Profile.Announced(), app))
}

// maxWait is how long a worker may wait for a job in one request.
const maxWait = time.Minute

// defaultWorker is what a worker is called that does not say.
const defaultWorker = "worker"

// taking is a request for a job, read.
type taking struct {
	app        workflow.ApplicationName
	worker     runner.Worker
	wait, term time.Duration
}

// readTake checks a request for a job.
func readTake(by api.Program, r api.TakeRequest) (t taking, err error) {
	t = taking{app: r.Application, worker: runner.Worker{Name: cmp.Or(r.Worker, defaultWorker), Token: by.Token}}
	if rule := workflow.NameRule(string(r.Application)); rule != "" {
		return t, api.Errorf(api.Invalid, "application %q: want %s", r.Application, rule)
	}
	if len(t.worker.Name) > workflow.MaxName || !utf8.ValidString(t.worker.Name) {
		return t, api.Errorf(api.Invalid, "worker: a name of %d bytes: want at most %d, and text", len(t.worker.Name),
			workflow.MaxName)
	}
	if t.wait, err = within("wait", r.Wait, 0, 0, maxWait); err != nil {
		return t, err
	}
	t.term, err = within("lease", r.Lease, runner.LeaseTerm, runner.MinLease, runner.MaxLease)
	return t, err
}

// within reads a duration that has bounds; otherwise is what counts where none is given.
func within(what, text string, otherwise, low, high time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := workflow.ParseDuration(text)
	if err != nil || d < low || d > high {
		return 0, api.Errorf(api.Invalid, "%s %q: want a duration from %s to %s", what, text,
			workflow.FormatDuration(low), workflow.FormatDuration(high))
	}
	return d, nil
}

// take gives a worker a job, when there is one before its wait is over.
func (x *Desk) take(ctx context.Context, t taking) (*api.Job, error) {
	waiting, stop := context.WithTimeout(ctx, t.wait)
	defer stop()
	for {
		job, err := x.takeNow(ctx, t)
		if job == nil && err == nil {
			job = x.takeElsewhere(ctx, t)
		}
		if job != nil || err != nil {
			return job, err
		}
		look, end := context.WithTimeout(waiting, lookElsewhere)
		err = x.await(look, t.app)
		end()
		if err != nil {
			return nil, err
		}
		if waiting.Err() != nil {
			return nil, ctx.Err() // nil: its wait is over
		}
	}
}

// await waits until a job may be there, or the worker waits no longer.
func (x *Desk) await(ctx context.Context, app workflow.ApplicationName) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-x.Stopped:
			cancel(api.ErrStopping)
		case <-ended:
		}
	}()
	err := x.pool.Await(ctx, app)
	switch {
	case errors.Is(err, runner.ErrCrowded):
		return api.Judge(api.Refused, err).WithHint("end some of them")
	case errors.Is(err, api.ErrStopping):
		return err
	}
	return nil
}

// takeNow gives a worker a job that waits; nil: none does.
func (x *Desk) takeNow(ctx context.Context, t taking) (*api.Job, error) {
	for {
		o := x.pool.Reserve(t.app, func(j runner.Job) bool { return x.mayGoTo(j, t.worker.At) })
		if o == nil {
			return nil, nil
		}
		job, err := x.give(ctx, t, o)
		if !errors.Is(err, choreo.ErrNotAwaited) {
			return job, err
		}
	}
}

// give gives a reserved job to a worker: first it is written down.
func (x *Desk) give(ctx context.Context, t taking, o *runner.Offer) (*api.Job, error) {
	ref := o.Ref.(Ref)
	lease := x.newLease()
	err := x.Instances.Lease(ctx, ref.Instance, fact.Lease{
		Attempt: ref.Attempt, Try: o.Try, Worker: t.worker.Name, At: t.worker.At, Key: t.worker.Key(lease),
	})
	if err != nil {
		o.Release()
		return nil, err
	}
	until, ok := o.Give(lease, t.worker, t.term)
	if !ok {
		return nil, choreo.ErrNotAwaited // called off meanwhile
	}
	x.publish(o.Job)
	job := jobFor(o.Job, lease, t.term)
	job.Until, job.Limit = x.term(ctx, o.Job, until)
	return job, nil
}

// term is when a lease of a job ends that would last so long, and when the time of its task is over, if ever: a lease
// does not outlast that.
func (x *Desk) term(ctx context.Context, j runner.Job, until time.Time) (time.Time, *time.Time) {
	ref := j.Ref.(Ref)
	now := x.Clock.Now().Wall
	left, limited, err := x.Instances.TimeLeft(ctx, ref.Instance, ref.Attempt)
	if err != nil || !limited { // an error: the worker has the job all the same
		return until.UTC(), nil
	}
	limit := now.Add(left).UTC()
	if limit.Before(until) {
		until = limit
	}
	return until.UTC(), &limit
}

// newLease is the name of a new lease, which nobody guesses.
func (x *Desk) newLease() string { return fmt.Sprintf("%X", x.Random(16)) }

// publish tells those who watch that something changed about a job.
func (x *Desk) publish(j runner.Job) {
	if x.Watched() {
		x.Publish(api.Event{
			At: x.Clock.Now().Wall, Kind: "instance", Instance: j.Instance, Text: string(workflow.InstanceRunning),
		})
	}
}

// jobFor is a job as its worker gets it.
func jobFor(j runner.Job, lease string, term time.Duration) *api.Job {
	out := &api.Job{
		Lease: lease, LeaseFor: workflow.FormatDuration(term), Instance: j.Instance, Workflow: j.Origin.Workflow, Task: j.Task,
		Application: j.Application, Attempt: j.Attempt, Try: j.Try, IdempotencyKey: j.IdempotencyKey(),
		Age:  j.AgeOfInstance.String(),
		Args: map[string]any{}, Input: map[string]any{}, Files: j.Folder,
	}
	for n, v := range j.With.Args {
		out.Args[n] = v
	}
	for n, v := range j.Input {
		out.Input[string(n)] = v
	}
	return out
}

// maxProgressNote is the longest note about progress, in bytes.
const maxProgressNote = 200

// keep is a worker's sign of life.
func (x *Desk) keep(ctx context.Context, w runner.Worker, lease string, r api.KeepRequest) (*api.Lease, error) {
	term, err := within("lease", r.Lease, 0, runner.MinLease, runner.MaxLease)
	switch {
	case err != nil:
		return nil, err
	case !(r.Progress >= 0 && r.Progress <= 1):
		return nil, api.Errorf(api.Invalid, "progress %v: want 0 to 1", r.Progress)
	case len(r.Note) > maxProgressNote || !utf8.ValidString(r.Note):
		return nil, api.Errorf(api.Invalid, "note: %d bytes: want at most %d, and text", len(r.Note), maxProgressNote)
	}
	var said *runner.Progress
	if r.Progress > 0 || r.Note != "" {
		said = &runner.Progress{Share: r.Progress, Note: r.Note}
	}
	j, until, term, err := x.pool.Beat(lease, w, said, term)
	if err != nil {
		return nil, x.leaseError(err)
	}
	if said != nil {
		x.publish(j)
	}
	out := &api.Lease{LeaseFor: workflow.FormatDuration(term)}
	out.Until, out.Limit = x.term(ctx, j, until)
	return out, nil
}

// finish records how a worker's try ended, and returns when that is durable.
func (x *Desk) finish(ctx context.Context, w runner.Worker, lease string, res runner.Result) error {
	said := digestOf(res)
	hold, err := x.pool.Hold(ctx, lease, w)
	var was answered
	switch {
	case errors.As(err, &was) && was.said == said:
		return was.told // once more, as the answer may have been lost
	case errors.As(err, &was):
		return api.Errorf(api.Refused, "another result of this lease was recorded, which counts; this one does not").
			WithHint("take another job")
	case err != nil:
		return x.leaseError(err)
	}
	err = x.record(ctx, hold, res)
	switch {
	case err == nil:
		hold.End(answered{said: said})
	case errors.Is(err, choreo.ErrConflict):
		err = api.Judge(api.Refused, err).WithHint("take another job: mutirao recover is for whoever answers for the instance")
		hold.End(answered{said, err})
	case errors.Is(err, choreo.ErrNotAwaited):
		hold.End(runner.ErrOver)
		return x.leaseError(runner.ErrOver)
	case errors.Is(err, state.ErrTooEarly):
		hold.End(runner.ErrOver)
		return api.Judge(api.Refused, err).
			WithHint("take another job: this one is tried again later, by whichever worker takes it then")
	default:
		hold.Let()
	}
	return err
}

// answered is runner.ErrAnswered with what the result said that was recorded, and what its worker was told of it; nil: all
// is well.
type answered struct {
	said [sha256.Size]byte
	told error
}

func (answered) Error() string { return runner.ErrAnswered.Error() }
func (answered) Unwrap() error { return runner.ErrAnswered }

// digestOf is short for what a result says.
func digestOf(r runner.Result) (d [sha256.Size]byte) {
	b, err := json.Marshal(struct {
		Failed  bool
		Reason  string
		Outputs map[workflow.DataName]workflow.Value
	}{r.Failed, r.Reason, r.Outputs})
	if err != nil { // it is no result then, and is not recorded
		return d
	}
	return sha256.Sum256(b)
}

// record has the instance record a result; an error says that it did not, or, choreo.ErrConflict, what came of it.
func (x *Desk) record(ctx context.Context, hold *runner.Hold, res runner.Result) error {
	ref := hold.Ref.(Ref)
	var clash error
	if !res.Failed {
		if err := notAsked(hold.Asks, res.Outputs); err != nil {
			return err
		}
		wrong, err := x.Instances.CheckResult(ctx, ref.Instance, ref.Attempt, hold.Try, res.Outputs, hold.Makes)
		switch {
		case err != nil:
			return err
		case errors.Is(wrong, choreo.ErrNotAwaited):
			return wrong
		case errors.Is(wrong, choreo.ErrConflict):
			clash = wrong
		case wrong != nil:
			return api.Errorf(api.Refused, "the result was not taken: %v", wrong).
				WithHint("the worker still has the job: complete it otherwise, fail it, or give it back")
		}
	}
	answered := make(chan error, 1)
	res.Answer = func(err error) { answered <- err }
	hold.Answer(res)
	select {
	case err := <-answered:
		return cmp.Or(err, clash)
	case <-x.Stopped:
		return api.ErrStopping
	}
}

// notAsked returns an error for a result that sets what a database answered: the answer is written down as it is, so
// whatever a worker says of it would be lost. The worker still has the job, as nothing of it was recorded.
func notAsked(asks []workflow.Question, outputs map[workflow.DataName]workflow.Value) error {
	for _, q := range asks {
		if _, set := outputs[q.Data]; set {
			return api.Errorf(api.Refused,
				"the result was not taken: it sets %s, which database %s answered, and a worker does not", q.Data,
				q.Database).
				WithHint("the worker still has the job: complete it without %s, or fail it", q.Data)
		}
	}
	return nil
}

// giveBack leaves a worker's job to another.
func (x *Desk) giveBack(w runner.Worker, lease string) error {
	j, err := x.pool.GiveBack(lease, w)
	switch {
	case errors.Is(err, runner.ErrGivenBack):
		return nil // it is told again, as the answer may have been lost
	case err != nil:
		return x.leaseError(err)
	}
	x.publish(j)
	return nil
}

// leaseError is what an error of a lease means to its worker. A node that stops has called off its jobs, and when it is
// back the worker still has its own.
func (x *Desk) leaseError(err error) error {
	select {
	case <-x.Stopped:
		return api.ErrStopping
	default:
	}
	switch {
	case errors.Is(err, runner.ErrRecalling):
		return api.Judge(api.NotYet, err).WithHint("ask again in a second: the lease may still be good")
	case errors.Is(err, runner.ErrNoLease):
		return api.Errorf(api.NotFound, "this node knows no such lease: it ended long ago, or before the node started").
			WithHint("take another job")
	case errors.Is(err, runner.ErrOthersLease):
		x.Peers.Count("refused.leases-of-others", 1)
		return api.Judge(api.NotAllowed, err).
			WithHint("come with the token with which the job was taken, to the node where it was")
	case errors.Is(err, runner.ErrLapsed):
		return api.Judge(api.Refused, err).WithHint("take another job, with a longer lease or more signs of life")
	case errors.Is(err, runner.ErrOver), errors.Is(err, runner.ErrGivenBack), errors.Is(err, runner.ErrAnswered):
		return api.Judge(api.Refused, err).WithHint("take another job")
	}
	return err
}

// Tells adds what a worker says itself.
func Tells(w *api.JobWorker, s runner.Standing) {
	until := s.Until.UTC()
	w.Until, w.Progress, w.Note = &until, s.Progress.Share, s.Progress.Note
	if !s.Heard.IsZero() {
		heard := s.Heard.UTC()
		w.Heard = &heard
	}
}

// List are the jobs in the pool.
func (x *Desk) List() []api.PooledJob {
	out := []api.PooledJob{}
	for _, s := range x.pool.All() {
		j := api.PooledJob{
			Instance: s.Instance, Workflow: s.Origin.Workflow, Task: s.Task, Application: s.Application,
			Attempt: s.Attempt, Try: s.Try, Since: s.Since.UTC(),
		}
		if s.Worker != nil {
			j.Worker = &api.JobWorker{Name: s.Worker.Name, Since: s.Since.UTC()}
			if s.Worker.At != "" {
				j.Worker.At = x.Members.Label(s.Worker.At)
			}
			Tells(j.Worker, s)
		}
		out = append(out, j)
	}
	return out
}

// readOutputs reads a worker's result, as an application's.
func readOutputs(given map[string]json.RawMessage) (map[workflow.DataName]workflow.Value, error) {
	b, err := json.Marshal(given)
	if err != nil {
		return nil, api.Errorf(api.Invalid, "outputs: %v", err)
	}
	out, err := runner.DecodeOutputs(b)
	if err != nil && len(given) > 0 {
		return nil, api.Errorf(api.Invalid, "outputs: %v", err)
	}
	return out, nil
}

// whoAt is a worker beside this node.
func whoAt(by api.Program) runner.Worker { return runner.Worker{Token: by.Token} }

// Take gives a program's worker a job, when there is one before its wait is over; nil: there was none.
func (x *Desk) Take(ctx context.Context, by api.Program, r api.TakeRequest) (*api.Job, error) {
	t, err := readTake(by, r)
	if err == nil {
		err = x.open(ctx, by, t.app)
	}
	if err != nil {
		return nil, err
	}
	return x.take(ctx, t)
}

// Keep is a worker's sign of life.
func (x *Desk) Keep(ctx context.Context, by api.Program, lease string, r api.KeepRequest) (*api.Lease, error) {
	if l, err, elsewhere := x.forHolder(ctx, by, lease, workRequest{Keep: &r}); elsewhere {
		return l, err
	}
	return x.keep(ctx, whoAt(by), ofHere(lease), r)
}

// Complete records a worker's result, and returns when that is durable.
func (x *Desk) Complete(ctx context.Context, by api.Program, lease string, r api.CompleteRequest) error {
	if _, err, elsewhere := x.forHolder(ctx, by, lease, workRequest{Complete: &r}); elsewhere {
		return err
	}
	out, err := readOutputs(r.Outputs)
	if err == nil {
		err = x.finish(ctx, whoAt(by), ofHere(lease), runner.Result{Outputs: out})
	}
	return err
}

// Fail records that a worker's try failed, and returns when that is durable.
func (x *Desk) Fail(ctx context.Context, by api.Program, lease string, r api.FailRequest) error {
	if _, err, elsewhere := x.forHolder(ctx, by, lease, workRequest{Fail: &r}); elsewhere {
		return err
	}
	return x.finish(ctx, whoAt(by), ofHere(lease), runner.Result{Failed: true, Reason: whyFailed(r)})
}

// GiveBack leaves a worker's job to another.
func (x *Desk) GiveBack(ctx context.Context, by api.Program, lease string) error {
	if _, err, elsewhere := x.forHolder(ctx, by, lease, workRequest{GiveBack: true}); elsewhere {
		return err
	}
	return x.giveBack(whoAt(by), ofHere(lease))
}
