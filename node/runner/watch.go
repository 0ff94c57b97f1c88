package runner

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file tells whoever watches that jobs wait. To tell takes nothing from anybody: the workers that wait in Await
// are woken as if nobody watched. What is told may be late, merged or lost: whoever hears it asks for a job, and
// sees.

const (
	// maxWatching is how many may watch at once, and maxWatchingByToken how many of them with one token: a program
	// that has gone wild leaves room for others.
	maxWatching        = 4096
	maxWatchingByToken = 1024
	// firstTold is how many watchers are told of a job at once, in turn, so that not hundreds of workers come for one.
	firstTold = 8
	// othersTold is when all others are told of it if it still waits: those that were told first may be at work.
	othersTold = 20 * time.Millisecond
	// toldAgain is after what time all are told again while jobs wait, and then after twice as long each time, up to
	// toldSeldom; when one more comes, it is toldAgain once more.
	toldAgain  = 250 * time.Millisecond
	toldSeldom = 15 * time.Second
)

// Errors of those who want to watch.
var (
	// ErrWatched is returned where too many watch.
	ErrWatched = fmt.Errorf("%d workers watch for jobs already, the most that may", maxWatching)
	// ErrTokenWatches is returned where too many watch with the same token.
	ErrTokenWatches = fmt.Errorf("%d workers watch for jobs with this token already, the most that may with one",
		maxWatchingByToken)
)

// watched are those who watch for the jobs of one application.
type watched struct {
	watchers []*Watcher
	next     int           // whose turn it is to be told first
	spell    int           // counts how often jobs began to wait
	all      bool          // all were told in this spell: one more job is told when they are again
	again    *time.Timer   // when all are told; nil: nobody watches, or no job waits
	pause    time.Duration // between the last time that all were told and the next
}

// Watcher is told that jobs of an application may wait. It may be used by one goroutine at a time.
type Watcher struct {
	pool      *Pool
	app       workflow.ApplicationName
	token     string
	told      chan struct{} // capacity 1: many are told as one, and whoever is slow holds nobody up
	elsewhere bool          // guarded by pool.mu: what was told is that jobs may be elsewhere
}

// Watch has a worker that came with a token be told of the jobs of an application from now on, and of those that wait.
func (p *Pool) Watch(app workflow.ApplicationName, token string) (*Watcher, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.watching >= maxWatching:
		return nil, ErrWatched
	case p.watchingBy[token] >= maxWatchingByToken:
		return nil, ErrTokenWatches
	}
	if p.watchingBy == nil {
		p.watchingBy = map[string]int{}
	}
	p.watching++
	p.watchingBy[token]++
	w := &Watcher{pool: p, app: app, token: token, told: make(chan struct{}, 1)}
	q := p.queue(app)
	q.watchers, q.seen = append(q.watchers, w), time.Now()
	if q.jobs > 0 {
		w.tell()
	}
	return w, nil
}

// Told holds an element when there is something to be told: Look says what.
func (w *Watcher) Told() <-chan struct{} { return w.told }

// Look says how many jobs wait. False: there is nothing to be told, as others have taken what there was.
func (w *Watcher) Look() (waiting int, told bool) {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	waiting, told = w.pool.queue(w.app).jobs, w.elsewhere
	w.elsewhere = false
	return waiting, told || waiting > 0
}

// Close has nobody be told any more.
func (w *Watcher) Close() {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queue(w.app)
	before := len(q.watchers)
	if q.watchers = slices.DeleteFunc(q.watchers, func(x *Watcher) bool { return x == w }); len(q.watchers) == before {
		return // it was closed before
	}
	q.seen = time.Now()
	p.watching--
	if p.watchingBy[w.token]--; p.watchingBy[w.token] == 0 {
		delete(p.watchingBy, w.token)
	}
}

// tell has something to be told. The caller holds the pool's mu.
func (w *Watcher) tell() {
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// Elsewhere tells all who watch for an application's jobs that one may wait elsewhere.
func (p *Pool) Elsewhere(app workflow.ApplicationName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.queue(app).watchers {
		w.elsewhere = true
		w.tell()
	}
}

// Waits reports whether a job of an application waits that may says yes to.
func (p *Pool) Waits(app workflow.ApplicationName, may func(Job) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[app]; q != nil {
		for _, line := range q.turns.waiting {
			if slices.ContainsFunc(line, func(w *work) bool { return may(w.Job) }) {
				return true
			}
		}
	}
	return false
}

// tellOffered tells watchers that a job was offered: a few now, and all if it still waits a moment later. Once all
// know that jobs wait, and have not come for them, each further one is told with the others. The caller holds p.mu.
func (p *Pool) tellOffered(q *queue) {
	if len(q.watchers) == 0 {
		return
	}
	if !q.all {
		for range min(firstTold, len(q.watchers)) {
			q.next = (q.next + 1) % len(q.watchers)
			q.watchers[q.next].tell()
		}
	}
	switch {
	case q.again == nil:
		spell := q.spell
		q.again = time.AfterFunc(othersTold, func() { p.tellAll(q, spell) })
	case q.pause > toldAgain:
		q.pause = toldAgain
		q.again.Reset(q.pause)
	}
}

// calm has it begin as if nobody had been told of a job yet: none waits.
func (q *watched) calm() {
	if q.again != nil {
		q.again.Stop()
	}
	q.all, q.again, q.pause = false, nil, 0
	q.spell++
}

// tellAll tells all watchers that jobs wait, again and again while some do, in a spell of waiting.
func (p *Pool) tellAll(q *queue, spell int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case q.spell != spell: // all jobs were taken just now, and others came
		return
	case p.closed || q.jobs == 0 || len(q.watchers) == 0:
		q.calm()
		return
	}
	for _, w := range q.watchers {
		w.tell()
	}
	q.all, q.pause = true, min(max(2*q.pause, toldAgain), toldSeldom)
	q.again.Reset(q.pause)
}
