package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file tells workers that there may be a job for them. A job that another partner holds is told as well: while
// anybody watches for an application's jobs, the node asks its holders, once for all who watch.

// Watching tells one worker.
type Watching struct {
	desk *Desk
	app  workflow.ApplicationName
	at   *runner.Watcher
	end  func()
}

// Watch has a program's worker be told of jobs from now on.
func (x *Desk) Watch(ctx context.Context, by api.Program, app workflow.ApplicationName) (*Watching, error) {
	if rule := workflow.NameRule(string(app)); rule != "" {
		return nil, api.Errorf(api.Invalid, "application %q: want %s", app, rule)
	}
	if err := x.open(ctx, by, app); err != nil {
		return nil, err
	}
	at, err := x.pool.Watch(app, by.Token)
	if err != nil {
		return nil, api.Judge(api.Refused, err).
			WithHint("end some of them, or have the worker wait in POST /v1/jobs/take")
	}
	post := x.lookOut(app)
	return &Watching{x, app, at, sync.OnceFunc(func() { at.Close(); post() })}, nil
}

// Next implements api.JobWatch.
func (w *Watching) Next(ctx context.Context) (*api.JobNotice, error) {
	for {
		select {
		case <-w.desk.Stopped:
			return nil, api.ErrStopping
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-w.at.Told():
			if waiting, told := w.at.Look(); told {
				return &api.JobNotice{Application: w.app, Waiting: waiting}, nil
			}
		}
	}
}

// Close implements api.JobWatch.
func (w *Watching) Close() { w.end() }

// lookouts ask other holders for those who watch.
type lookouts struct {
	mu      sync.Mutex // guards the next three
	of      map[workflow.ApplicationName]*lookout
	asked   map[workflow.ApplicationName]time.Time // the last time
	closed  bool
	running sync.WaitGroup
}

// lookout asks for the jobs of one application.
type lookout struct {
	watchers int
	end      context.CancelFunc
	again    chan struct{} // capacity 1: a job was taken elsewhere, so there may be more
}

// lookOut has other holders be asked for jobs of an application until it is told to end.
func (x *Desk) lookOut(app workflow.ApplicationName) (end func()) {
	if !x.Peers.Asks() {
		return func() {}
	}
	return x.elsewhere.lookouts.join(app, func(ctx context.Context, again <-chan struct{}) { x.ask(ctx, app, again) })
}

// ask asks the holders of an application again and again whether they have a job.
func (x *Desk) ask(ctx context.Context, app workflow.ApplicationName, again <-chan struct{}) {
	next := x.elsewhere.lookouts.due(app)
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-time.After(next):
		}
		next = lookElsewhere
		if holders := x.holders(app); len(holders) > 0 && !x.pool.Waits(app, anyJob) {
			x.elsewhere.lookouts.asks(app)
			if x.waitsAt(ctx, app, holders) {
				x.pool.Elsewhere(app)
			}
		}
	}
}

func anyJob(runner.Job) bool { return true }

// waitsAt reports whether a holder says that it has a job, or does not know how to say so: it is from before holders
// were asked that, and whoever takes will see.
func (x *Desk) waitsAt(ctx context.Context, app workflow.ApplicationName, holders []workflow.PartnerID) bool {
	for _, p := range holders {
		answer, err := x.passOn(ctx, p, workRequest{Look: &workLook{app}})
		var no *api.Error
		if err == nil && answer.Waits || errors.As(err, &no) && no.Code == api.Invalid {
			return true
		}
	}
	return false
}

// join has one more watch for an application's jobs until it is told to end. The first has it asked for by ask.
func (all *lookouts) join(
	app workflow.ApplicationName, ask func(ctx context.Context, again <-chan struct{}),
) (end func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed {
		return func() {}
	}
	l := all.of[app]
	if l == nil {
		ctx, cancel := context.WithCancel(context.Background())
		l = &lookout{end: cancel, again: make(chan struct{}, 1)}
		all.of[app] = l
		all.running.Go(func() { ask(ctx, l.again) })
	}
	l.watchers++
	return func() { all.leave(app, l) }
}

// leave has one less watch. Where nobody does any more, nobody is asked.
func (all *lookouts) leave(app workflow.ApplicationName, l *lookout) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if l.watchers--; l.watchers == 0 {
		l.end()
		delete(all.of, app)
	}
}

// asks notes that holders are asked now.
func (all *lookouts) asks(app workflow.ApplicationName) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.asked[app] = time.Now()
}

// due is in what time holders are asked first: a worker that watches again and again does not have them asked more
// often.
func (all *lookouts) due(app workflow.ApplicationName) time.Duration {
	all.mu.Lock()
	defer all.mu.Unlock()
	return max(time.Until(all.asked[app].Add(lookElsewhere)), 0)
}

// taken has holders be asked again for an application's jobs at once, as a worker took one of them.
func (all *lookouts) taken(app workflow.ApplicationName) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if l := all.of[app]; l != nil {
		select {
		case l.again <- struct{}{}:
		default:
		}
	}
}

// close asks nobody any more.
func (all *lookouts) close() {
	all.mu.Lock()
	all.closed = true
	for _, l := range all.of {
		l.end()
	}
	all.mu.Unlock()
	all.running.Wait()
}
