package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Options say how a worker works. Only Application is needed.
type Options struct {
	Application string
	Name        string        // of the worker, for people
	Jobs        int           // at once; 0: 1
	Wait        time.Duration // of one request for a job, at most 60 s; 0: 30 s
	Lease       time.Duration // after each sign of life, 2 s to 10 min; 0: 30 s
	// Log is told what goes on, in words; nil: nobody is.
	Log func(text string)
}

// Handler does a job. Its context ends when the job is not the worker's any more: what it
// returns then is dropped. [ErrGiveBack] gives the job back; any other error fails it, with
// its text as the reason. Report tells people how far it is.
type Handler func(ctx context.Context, job *Job, report Report) (outputs map[string]any, err error)

// Report says how far a handler is: from 0 to 1, and in words (at most 200 bytes).
type Report func(progress float64, note string)

// The pauses after a failed request: the first, the longest, and how long a result is brought
// again while the node cannot be reached.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
	patience   = 2 * time.Minute
)

// Run takes jobs and has the handler do them until ctx ends; then it gives back what is in
// hand and returns nil. A node that cannot be reached is tried again and again; what it
// refuses to give jobs for ends Run with an [*Error].
func (c *Client) Run(ctx context.Context, o Options, do Handler) error {
	if o.Wait == 0 {
		o.Wait = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range max(o.Jobs, 1) {
		all.Go(func() {
			if err := c.serve(ctx, o, do); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	var no *Error
	if errors.As(context.Cause(ctx), &no) {
		return no
	}
	return nil
}

// serve does one job after the other.
func (c *Client) serve(ctx context.Context, o Options, do Handler) error {
	pause := firstPause
	for ctx.Err() == nil {
		job, err := c.Take(ctx, o.Application, o.Name, o.Wait, o.Lease)
		var no *Error
		switch {
		case ctx.Err() != nil && job == nil:
			return nil
		case errors.As(err, &no) && no.Status < 500:
			return no
		case err != nil:
			if pause == firstPause {
				o.Log(fmt.Sprintf("the node cannot be asked, trying again: %v", err))
			}
			rest(ctx, pause)
			pause = min(2*pause, maxPause)
		default:
			pause = firstPause
			if job != nil {
				c.work(ctx, o, job, do)
			}
		}
	}
	return nil
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// work does one job and brings its result.
func (c *Client) work(ctx context.Context, o Options, job *Job, do Handler) {
	o.Log(fmt.Sprintf("took %s of %s (%s)", job.Task, job.Instance, job.Workflow))
	within, over := context.WithCancelCause(ctx)
	said := &report{again: make(chan struct{}, 1)}
	var beating sync.WaitGroup
	beating.Go(func() { c.beat(within, job, said, over) })
	outputs, err := do(within, job, said.say)
	lost := context.Cause(within)
	over(nil)
	beating.Wait()
	var no *Error
	switch {
	case errors.As(lost, &no):
		o.Log(fmt.Sprintf("%s of %s is not this worker's any more: %v", job.Task, job.Instance, no))
		return
	case errors.Is(err, ErrGiveBack) || ctx.Err() != nil && err != nil:
		c.bring(o, job, "given back", func(ctx context.Context) error { return c.GiveBack(ctx, job.Lease) })
	case err != nil:
		c.bring(o, job, "failed: "+err.Error(),
			func(ctx context.Context) error { return c.Fail(ctx, job.Lease, err.Error()) })
	default:
		err := c.bring(o, job, "done", func(ctx context.Context) error { return c.Complete(ctx, job.Lease, outputs) })
		if errors.As(err, &no) && no.Code == "refused" || errors.As(err, &no) && no.Code == "invalid" {
			why := "its result was refused: " + no.Message
			c.bring(o, job, "failed: "+why, func(ctx context.Context) error { return c.Fail(ctx, job.Lease, why) })
		}
	}
}

// bring tells the node how a job ended. It goes on when the worker is to end, for a while,
// and where the node cannot be reached: a result that was recorded is not recorded twice.
func (c *Client) bring(o Options, job *Job, what string, tell func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		var no *Error
		if err = tell(ctx); err == nil || errors.As(err, &no) && no.Status < 500 {
			break
		}
		rest(ctx, pause)
	}
	if err != nil {
		what += ", which the node did not take: " + err.Error()
	}
	o.Log(fmt.Sprintf("%s of %s: %s", job.Task, job.Instance, what))
	return err
}

// beat keeps the lease of a job until ctx ends, or ends it when the job is lost.
func (c *Client) beat(ctx context.Context, job *Job, said *report, lost context.CancelCauseFunc) {
	term, err := time.ParseDuration(job.LeaseFor)
	if err != nil || term <= 0 {
		term = 30 * time.Second
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-said.again:
		case <-time.After(term / 3):
		}
		progress, note := said.now()
		ask, cancel := context.WithTimeout(ctx, term/3)
		err := c.Heartbeat(ask, job.Lease, progress, note)
		cancel()
		var no *Error
		if errors.As(err, &no) && no.Status < 500 && ctx.Err() == nil {
			lost(no)
			return
		}
		rest(ctx, minBeat)
	}
}

// minBeat is the shortest time between two signs of life, however often a handler reports.
const minBeat = 250 * time.Millisecond

// report is what a handler said last.
type report struct {
	mu    sync.Mutex // guards the next two
	share float64
	note  string
	again chan struct{} // capacity 1: there is news
}

func (r *report) say(share float64, note string) {
	r.mu.Lock()
	r.share, r.note = min(max(share, 0), 1), note
	r.mu.Unlock()
	select {
	case r.again <- struct{}{}:
	default:
	}
}

func (r *report) now() (float64, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.share, r.note
}
