package runner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Pool holds the jobs of applications that workers do: programs that come for a job, keep
// it by signs of life, and bring its result. Each job is with one worker at a time, by a
// lease; what has no lease waits. Who has one must be durable before the worker hears of
// it, so a lease is given in two steps (Reserve, then Offer.Give). The zero Pool works, for all applications; its
// methods may be called from any goroutine. Every started job is answered as a Runner
// answers it; one whose result could not be recorded may be answered again.
type Pool struct {
	// Serves reports whether workers do an application here; nil: they do any.
	Serves func(workflow.ApplicationName) bool

	mu      sync.Mutex // guards what follows
	jobs    map[string]*pooled
	byKey   map[LeaseKey]*pooled
	byID    map[string]*pooled
	over    map[LeaseKey]error // of leases that ended lately: why
	ended   []LeaseKey         // the order in which they did
	queues  map[workflow.ApplicationName]*queue
	waiting int
	recalls bool // jobs come that were here before the node began, with their leases
	closed  bool
	all     sync.WaitGroup // answers still owed

	watching   int            // how many watch
	watchingBy map[string]int // the same, by token
}

const (
	// LeaseTerm is how long a lease lasts after each sign of life, unless a worker asks
	// for another time from MinLease to MaxLease.
	LeaseTerm = 30 * time.Second
	// MinLease is the shortest term: a sign of life must have time to come through.
	MinLease = 2 * time.Second
	// MaxLease is the longest: for so long a dead worker keeps a job from others.
	MaxLease = 10 * time.Minute
	// restartTerm is how long a worker that had a job before the node's restart has to
	// come back for it.
	restartTerm = time.Minute
	// The pause before a job is offered again that a worker gave back or let lapse, twice
	// as long each time: each lease is written down, so a worker that never does its jobs
	// must not fill the disk.
	firstRest = time.Second
	maxRest   = time.Minute
	// maxWaiting is how many workers may wait for jobs at once.
	maxWaiting = 4096
	// maxOver is how many ended leases are remembered, so that whoever asks is told why.
	maxOver = 4096
)

// LeaseKey is what is written down of a lease: a hash of its ID, of the token that its
// worker came with, and of the partner beside whose node the worker is.
type LeaseKey [16]byte

// Worker is who has a job, or asks for one.
type Worker struct {
	Name  string             // as it calls itself
	Token string             // with which token it came
	At    workflow.PartnerID // beside whose node it is; empty: this one
}

// Key is the key of a lease with that ID, if it is this worker's.
func (w Worker) Key(lease string) LeaseKey {
	sum := sha256.Sum256(fmt.Appendf(nil, "mutirao lease\x00%s\x00%s\x00%s", lease, w.Token, w.At))
	return LeaseKey(sum[:16])
}

// Held is a lease that was given before this pool began, as it was written down.
type Held struct {
	Worker Worker
	Key    LeaseKey
}

// Errors of leases.
var (
	// ErrNoLease is returned for a lease that the pool does not know.
	ErrNoLease = errors.New("there is no such lease")
	// ErrRecalling is returned for one that the pool does not know yet.
	ErrRecalling = errors.New("the node has just begun, and does not know yet which jobs were given before")
	// ErrOthersLease is returned for one that was given to who came with another token.
	ErrOthersLease = errors.New("this lease was given to another token, or at another node")
	// ErrLapsed is returned for one of which no sign of life came in time.
	ErrLapsed = errors.New("the lease lapsed: no sign of life came in time, and the job went back to the pool")
	// ErrGivenBack is returned for one that its worker gave back.
	ErrGivenBack = errors.New("the job was given back")
	// ErrOver is returned for one whose job is not wanted any more.
	ErrOver = errors.New("the job is over: its time limit has passed, it was called off, or its instance has ended")
	// ErrAnswered is returned for one whose result was recorded.
	ErrAnswered = errors.New("a result of this lease was recorded")
	// ErrCrowded is returned where too many workers wait.
	ErrCrowded = fmt.Errorf("%d workers wait for jobs already, the most that may", maxWaiting)
)

// queue are the jobs of one application that wait, and the workers that do.
type queue struct {
	turns
	watched
	waiters []chan struct{}
	seen    time.Time // when a worker last asked, or watched
}

// pooled is a job in the pool.
type pooled struct {
	*work
	since time.Time // when it came, or when its lease was given
	rests int       // how often it came back
	rest  *time.Timer
	lease *lease // nil: nobody has it
}

// lease is a worker's hold on a job. It is being given while it has no key.
type lease struct {
	id       string // empty: given before this pool began
	key      LeaseKey
	worker   Worker
	term     time.Duration
	until    time.Time
	timer    *time.Timer
	progress Progress
	heard    time.Time
	busy     chan struct{} // not nil: something of it is being recorded; closed after that
}

// Progress is what a worker says of how far it is.
type Progress struct {
	Share float64 // from 0 to 1
	Note  string
}

// Recall has the pool say of a lease that it does not know that it may come yet, until Recalled is called: those that
// were given before the node began come with their jobs.
func (p *Pool) Recall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recalls = true
}

// Recalled is called when all jobs have come that were here before the node began.
func (p *Pool) Recalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recalls = false
}

// Start takes a job in, as Runner.Start does. held is who has it already; nil: nobody.
func (p *Pool) Start(j Job, held *Held, done func(Result)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		go done(Result{Cancelled: true, Reason: "the node is stopping"})
		return
	case p.jobs[j.Key] != nil:
		return
	}
	if p.jobs == nil {
		p.jobs, p.byKey, p.byID = map[string]*pooled{}, map[LeaseKey]*pooled{}, map[string]*pooled{}
		p.over = map[LeaseKey]error{}
	}
	w := &pooled{work: &work{Job: j, done: done}, since: time.Now()}
	p.jobs[j.Key] = w
	p.all.Add(1)
	if held == nil {
		p.offer(w)
		return
	}
	w.lease = &lease{key: held.Key, worker: held.Worker, term: restartTerm}
	p.byKey[held.Key] = w
	p.extend(w)
}

// queue is that of an application. The caller holds p.mu.
func (p *Pool) queue(app workflow.ApplicationName) *queue {
	if p.queues == nil {
		p.queues = map[workflow.ApplicationName]*queue{}
	}
	if p.queues[app] == nil {
		p.queues[app] = &queue{}
	}
	return p.queues[app]
}

// offer lets a job wait for a worker, wakes one, and tells who watches. The caller holds p.mu.
func (p *Pool) offer(w *pooled) {
	q := p.queue(w.Application)
	if q.jobs == 0 {
		q.calm()
	}
	q.push(w.work)
	q.wake()
	p.tellOffered(q)
}

func (q *queue) wake() {
	if len(q.waiters) > 0 {
		close(q.waiters[0])
		q.waiters = q.waiters[1:]
	}
}

// Await returns when a job of an application may wait, or ctx ends.
func (p *Pool) Await(ctx context.Context, app workflow.ApplicationName) error {
	p.mu.Lock()
	q := p.queue(app)
	q.seen = time.Now()
	if len(q.order) > 0 {
		p.mu.Unlock()
		return nil
	}
	if p.waiting >= maxWaiting {
		p.mu.Unlock()
		return ErrCrowded
	}
	p.waiting++
	ready := make(chan struct{})
	q.waiters = append(q.waiters, ready)
	p.mu.Unlock()
	var err error
	select {
	case <-ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	q.seen = time.Now()
	if err != nil {
		before := len(q.waiters)
		q.waiters = slices.DeleteFunc(q.waiters, func(c chan struct{}) bool { return c == ready })
		if len(q.waiters) == before && len(q.order) > 0 {
			q.wake() // it was woken and does not come: another does
		}
	}
	return err
}

// Offer is a job that is about to be given to a worker.
type Offer struct {
	Job
	pool *Pool
	of   *pooled
}

// Reserve takes the job of an application whose turn it is, for a lease to be given, or
// nil: none waits. Jobs that may says no to are passed over.
func (p *Pool) Reserve(app workflow.ApplicationName, may func(Job) bool) *Offer {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queue(app)
	q.seen = time.Now()
	var passed []*work
	defer func() {
		for _, w := range passed {
			q.push(w)
		}
	}()
	for {
		w := q.pop()
		switch {
		case w == nil:
			return nil
		case !may(w.Job):
			passed = append(passed, w)
			continue
		}
		of := p.jobs[w.Key]
		of.lease = &lease{}
		return &Offer{w.Job, p, of}
	}
}

// Give gives the reserved job to a worker until the returned moment. False: it is over.
func (o *Offer) Give(id string, w Worker, term time.Duration) (until time.Time, ok bool) {
	p := o.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs[o.Key] != o.of {
		return time.Time{}, false
	}
	now := time.Now()
	o.of.since = now
	o.of.lease = &lease{id: id, key: w.Key(id), worker: w, term: term, heard: now}
	p.byKey[o.of.lease.key], p.byID[id] = o.of, o.of
	p.extend(o.of)
	return o.of.lease.until, true
}

// Release lets a reserved job wait again that could not be given.
func (o *Offer) Release() {
	o.pool.mu.Lock()
	defer o.pool.mu.Unlock()
	if o.pool.jobs[o.Key] == o.of {
		o.pool.back(o.of)
	}
}

// extend has a lease last for its term from now on. The caller holds p.mu.
func (p *Pool) extend(w *pooled) {
	l := w.lease
	l.until = time.Now().Add(l.term)
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(l.term, func() { p.lapse(w, l) })
}

// lapse ends a lease of which no sign of life came.
func (p *Pool) lapse(w *pooled, l *lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case w.lease != l || p.jobs[w.Key] != w || time.Now().Before(l.until):
	case l.busy != nil: // its result is being recorded
		l.timer = time.AfterFunc(l.term, func() { p.lapse(w, l) })
	default:
		p.endLease(w, ErrLapsed)
		p.back(w)
	}
}

// back has a job wait again, after a rest. The caller holds p.mu.
func (p *Pool) back(w *pooled) {
	if p.withdrawn(w) {
		return
	}
	rest := min(firstRest<<min(w.rests, 10), maxRest)
	w.rests++
	w.lease, w.since = nil, time.Now()
	w.rest = time.AfterFunc(rest, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.jobs[w.Key] == w && w.rest != nil {
			w.rest = nil
			p.offer(w)
		}
	})
}

// Review fails what waits for workers that do not do its application here any more. What a worker has may come to its
// end.
func (p *Pool) Review() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.jobs {
		if w.lease == nil {
			p.withdrawn(w)
		}
	}
}

// withdrawn fails a job that nobody has if workers do not do its application here any more. The caller holds p.mu.
func (p *Pool) withdrawn(w *pooled) bool {
	if p.Serves == nil || p.Serves(w.Application) {
		return false
	}
	p.answer(w, absent(w.Application))
	return true
}

// endLease forgets a lease, and remembers why it ended. The caller holds p.mu.
func (p *Pool) endLease(w *pooled, why error) {
	l := w.lease
	if l == nil || l.timer == nil { // none, or being given
		return
	}
	l.timer.Stop()
	delete(p.byKey, l.key)
	delete(p.byID, l.id)
	p.over[l.key] = why
	p.ended = append(p.ended, l.key)
	if len(p.ended) > maxOver {
		delete(p.over, p.ended[0])
		p.ended = slices.Delete(p.ended, 0, 1)
	}
	w.lease = nil
}

// find returns the job that a worker has by a lease. The caller holds p.mu.
func (p *Pool) find(id string, w Worker) (*pooled, error) {
	key := w.Key(id)
	if of := p.byKey[key]; of != nil {
		return of, nil
	}
	if why := p.over[key]; why != nil {
		return nil, why
	}
	if p.byID[id] != nil {
		return nil, ErrOthersLease
	}
	if p.recalls {
		return nil, ErrRecalling
	}
	return nil, ErrNoLease
}

// Beat is a sign of life: the lease lasts for its term from now on, or for
// another one, which is now its term.
func (p *Pool) Beat(
	id string, w Worker, said *Progress, term time.Duration,
) (j Job, until time.Time, now time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, err := p.find(id, w)
	if err != nil {
		return Job{}, time.Time{}, 0, err
	}
	l := of.lease
	l.heard = time.Now()
	if said != nil {
		l.progress = *said
	}
	if term > 0 {
		l.term = term
	}
	p.extend(of)
	return of.Job, l.until, l.term, nil
}

// GiveBack ends a lease: the job waits for another worker.
func (p *Pool) GiveBack(id string, w Worker) (Job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, err := p.find(id, w)
	if err != nil {
		return Job{}, err
	}
	if of.lease.busy != nil {
		return Job{}, ErrAnswered
	}
	p.endLease(of, ErrGivenBack)
	p.back(of)
	return of.Job, nil
}

// Hold is a lease under which a result is being recorded: it does not lapse meanwhile, and
// no other result of it is taken.
type Hold struct {
	Job
	pool *Pool
	of   *pooled
	l    *lease
}

// Hold takes hold of a lease, once nobody else has hold of it.
func (p *Pool) Hold(ctx context.Context, id string, w Worker) (*Hold, error) {
	for {
		p.mu.Lock()
		of, err := p.find(id, w)
		if err != nil {
			p.mu.Unlock()
			return nil, err
		}
		busy := of.lease.busy
		if busy == nil {
			of.lease.busy = make(chan struct{})
			p.mu.Unlock()
			return &Hold{of.Job, p, of, of.lease}, nil
		}
		p.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Answer hands a result to whoever started the job. Result.Answer says what became of it.
func (h *Hold) Answer(r Result) { h.of.done(r) }

// Let lets go of the lease, whose job goes on: its result was not taken.
func (h *Hold) Let() {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	close(h.l.busy)
	h.l.busy = nil
}

// End ends the job, whose result was recorded, or whom nobody waits for: why.
func (h *Hold) End(why error) {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	close(h.l.busy)
	if p.jobs[h.Key] == h.of {
		p.remove(h.of, why)
		p.all.Done()
	}
	if errors.Is(why, ErrAnswered) { // also if it was cancelled meanwhile
		p.over[h.l.key] = why
	}
}

// remove takes a job out. The caller holds p.mu.
func (p *Pool) remove(w *pooled, why error) {
	delete(p.jobs, w.Key)
	p.queue(w.Application).remove(w.work)
	if w.rest != nil {
		w.rest.Stop()
		w.rest = nil
	}
	p.endLease(w, why)
}

// Cancel takes a job out, whose done gets a Cancelled result from another goroutine. An
// unknown key is no mistake.
func (p *Pool) Cancel(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.jobs[key]; w != nil {
		p.cancel(w)
	}
}

// cancel takes w out. The caller holds p.mu.
func (p *Pool) cancel(w *pooled) { p.answer(w, Result{Cancelled: true, Reason: "cancelled"}) }

// answer takes w out, whose done gets a result from another goroutine. The caller holds p.mu.
func (p *Pool) answer(w *pooled, r Result) {
	p.remove(w, ErrOver)
	go func() {
		defer p.all.Done()
		w.done(r)
	}()
}

// Close takes every job out and returns when all have been answered.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for _, w := range p.jobs {
		p.cancel(w)
	}
	p.mu.Unlock()
	p.all.Wait()
}

// Standing is how a job in the pool stands.
type Standing struct {
	Job
	Since    time.Time // when it began to wait, or was given to its worker
	Worker   *Worker   // nil: it waits
	Until    time.Time // of the lease
	Heard    time.Time // the last sign of life; zero: none yet
	Progress Progress
}

// standing is how w stands. The caller holds p.mu.
func (w *pooled) standing() Standing {
	s := Standing{Job: w.Job, Since: w.since}
	if l := w.lease; l != nil && l.timer != nil {
		s.Worker, s.Until, s.Heard, s.Progress = &l.worker, l.until, l.heard, l.progress
	}
	return s
}

// Look says how a job stands; false: it is not here.
func (p *Pool) Look(key string) (Standing, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.jobs[key]
	if w == nil {
		return Standing{}, false
	}
	return w.standing(), true
}

// All are the jobs in the pool, those that came first before others.
func (p *Pool) All() []Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Standing, 0, len(p.jobs))
	for _, w := range p.jobs {
		out = append(out, w.standing())
	}
	slices.SortFunc(out, func(a, b Standing) int { return a.Since.Compare(b.Since) })
	return out
}

// Seen is when a worker last asked for jobs of an application; zero: never.
func (p *Pool) Seen(app workflow.ApplicationName) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[app]
	switch {
	case q == nil:
		return time.Time{}
	case len(q.waiters)+len(q.watchers) > 0:
		return time.Now()
	}
	return q.seen
}
