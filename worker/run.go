package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Options say how a worker works. Only Application is needed.
type Options struct {
	Application string
	Name        string // of the worker, for people
	Jobs        int    // at once; 0: 1
	// Wake is how long a worker that the node's stream of events tells nothing waits at most before it asks for a job all
	// the same; 0: 30 s. It asks up to a quarter earlier, so that not all workers ask at once.
	Wake time.Duration
	// Wait is how long one request waits for a job while there is no such stream, at most 60 s; 0: 30 s.
	Wait time.Duration
	// Lease is how long a job is kept after each sign of life, 2 s to 10 min; 0: 30 s.
	Lease time.Duration
	// Hurry, when it is closed, has a worker that is to end do so soon: what is in hand is given back as ever, and the
	// node is waited for a few seconds and no longer. nil: it has its time.
	Hurry <-chan struct{}
	// Log is told what goes on, in words; nil: nobody is.
	Log func(text string)
	// Ended is told how each job ended, from several goroutines at once where there are several jobs; nil: nobody is.
	Ended func(job *Job, end Ending)
}

// Ending is how a job ended for its worker.
type Ending string

// The endings. Only of the first two does the node have what this worker said.
const (
	Done      Ending = "done"
	Failed    Ending = "failed"     // by the handler, or because its result is not what the task may have
	GivenBack Ending = "given back" // for another worker
	// NotTaken: the node did not take what came of it, as the job was not this worker's any more. The task
	// has not failed by that: another does it, or it is not needed.
	NotTaken Ending = "not taken"
	Lost     Ending = "lost"    // it was over, or another's, before it was done
	Unheard  Ending = "unheard" // the node could not be reached for two minutes
)

// Endings are all of them, in the order in which people read them.
func Endings() []Ending { return []Ending{Done, Failed, GivenBack, NotTaken, Lost, Unheard} }

// Handler does a job. Its context ends when the job is not the worker's any more: what it
// returns then is dropped. [ErrGiveBack] gives the job back; any other error fails it, with
// its text as the reason. Report tells people how far it is.
type Handler func(ctx context.Context, job *Job, report Report) (outputs map[string]any, err error)

// Report says how far a handler is: from 0 to 1, and in words (at most 200 bytes).
type Report func(progress float64, note string)

// The defaults of Options.
const (
	defaultWait = 30 * time.Second
	defaultWake = 30 * time.Second
)

// The pauses after a failed request: the first, the longest, and how long a result is brought
// again while the node cannot be reached.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
	patience   = 2 * time.Minute
	inHurry    = 3 * time.Second
)

// Run takes jobs and has the handler do them until ctx ends; then it gives back what is in
// hand and returns nil. A node that cannot be reached is tried again and again; what it
// refuses to give jobs for ends Run with an [*Error].
func (c *Client) Run(ctx context.Context, o Options, do Handler) error {
	o.Wait, o.Wake, o.Jobs = cmp.Or(o.Wait, defaultWait), cmp.Or(o.Wake, defaultWake), max(o.Jobs, 1)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	told := newNotices(o.Jobs)
	var all sync.WaitGroup
	all.Go(func() { c.listen(ctx, o, told) })
	for range o.Jobs {
		all.Go(func() {
			if err := c.serve(ctx, o, told, do); err != nil {
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
func (c *Client) serve(ctx context.Context, o Options, told *notices, do Handler) error {
	pause := firstPause
	for ctx.Err() == nil {
		before := told.now()
		wait := time.Duration(0)
		if before.way == byAsking {
			wait = o.Wait
		}
		job, err := c.Take(ctx, o.Application, o.Name, wait, o.Lease)
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
			switch {
			case job != nil:
				told.another()
				c.work(ctx, o, job, do)
			case before.way != byAsking:
				told.wait(ctx, before, o.Wake)
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
		o.ends(job, Lost, "it is not this worker's any more: "+no.Error())
	case errors.Is(err, ErrGiveBack) || ctx.Err() != nil && err != nil:
		err := c.bring(o.Hurry, func(ctx context.Context) error { return c.GiveBack(ctx, job.Lease) })
		if err != nil && refusal(err) == nil {
			o.ends(job, Unheard, "given back, and the node could not be told, so another gets it when its lease is over: "+
				err.Error())
			return
		}
		o.ends(job, GivenBack, "given back") // what the node does not take back is not this worker's any more
	case err != nil:
		end, what := c.fail(o.Hurry, job, err.Error())
		o.ends(job, end, what)
	default:
		end, what := c.complete(o.Hurry, job, outputs)
		o.ends(job, end, what)
	}
}

// complete brings a result. What is refused because the job is over says nothing of the result; what is refused of a job
// that is still this worker's is wrong, and fails the try with the reason.
func (c *Client) complete(hurry <-chan struct{}, job *Job, outputs map[string]any) (Ending, string) {
	err := c.bring(hurry, func(ctx context.Context) error { return c.Complete(ctx, job.Lease, outputs) })
	no := refusal(err)
	switch {
	case err == nil:
		return Done, "done"
	case no == nil:
		return Unheard, "done, and the node could not be told: " + err.Error()
	case no.Code == "refused" || no.Code == "invalid":
		if end, what := c.fail(hurry, job, "its result was refused: "+whyNot(no.Message)); end != NotTaken {
			return end, what
		}
	}
	return NotTaken, "its result was not taken: " + whyNot(no.Error())
}

// whyNot is why a node did not take a result, without saying once more that it did not.
func whyNot(said string) string { return strings.TrimPrefix(said, "the result was not taken: ") }

// fail says that the try has failed.
func (c *Client) fail(hurry <-chan struct{}, job *Job, why string) (Ending, string) {
	err := c.bring(hurry, func(ctx context.Context) error { return c.Fail(ctx, job.Lease, why) })
	switch no := refusal(err); {
	case err == nil:
		return Failed, "failed: " + why
	case no == nil:
		return Unheard, "failed: " + why + ", and the node could not be told: " + err.Error()
	default:
		return NotTaken, "failed: " + why + ", which was not taken: " + no.Error()
	}
}

// refusal is what a node refused; nil: it did not, or did not answer in a way that counts.
func refusal(err error) *Error {
	var no *Error
	if errors.As(err, &no) && no.Status < 500 {
		return no
	}
	return nil
}

// ends tells how a job ended.
func (o *Options) ends(job *Job, end Ending, what string) {
	o.Log(fmt.Sprintf("%s of %s: %s", job.Task, job.Instance, what))
	if o.Ended != nil {
		o.Ended(job, end)
	}
}

// bring tells the node how a job ended. It goes on when the worker is to end, for a while,
// and where the node cannot be reached: a result that was recorded is not recorded twice.
func (c *Client) bring(hurry <-chan struct{}, tell func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
		case <-hurry:
			rest(ctx, inHurry)
			cancel()
		}
	}()
	var err error
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		var no *Error
		if err = tell(ctx); err == nil || errors.As(err, &no) && no.Status < 500 {
			break
		}
		rest(ctx, pause)
	}
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
