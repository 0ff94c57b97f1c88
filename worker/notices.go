package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// This file is how a worker comes to know that there may be a job. While the node's stream of events is open, a
// worker without a job asks when it is told to, and now and then besides. While it is not, each request for a job
// waits for one.

const (
	// silence is for how long a stream may say nothing: a node gives a sign of life every 15 s.
	silence = 45 * time.Second
	// openedWithin is how long a worker that begins waits to see whether there is a stream.
	openedWithin = time.Second
)

// way is how a worker comes to know of jobs.
type way int

const (
	unknown   way = iota // it is just being asked for a stream
	byNotices            // the stream is open
	byAsking             // there is none
)

// notices are what a worker was told, for as many jobs as it does at once.
type notices struct {
	wake chan struct{} // one element for each who is to ask for a job

	mu      sync.Mutex // guards what follows
	way     way
	changed chan struct{} // closed when the way is another
	heard   uint64        // how often it was told
	waiting int           // how many wait to be told
}

func newNotices(jobs int) *notices {
	return &notices{wake: make(chan struct{}, jobs), changed: make(chan struct{})}
}

// known is how it stood at a moment.
type known struct {
	way     way
	changed <-chan struct{}
	heard   uint64
}

func (n *notices) now() known {
	n.mu.Lock()
	defer n.mu.Unlock()
	return known{n.way, n.changed, n.heard}
}

// tell has as many as jobs wait ask for one, and one at least: a job may be at another partner.
func (n *notices) tell(jobs int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard++
	for range min(max(jobs, 1), cap(n.wake)) {
		select {
		case n.wake <- struct{}{}:
		default:
			return
		}
	}
}

// another has one more ask, as one has just got a job: several may have been told of as one.
func (n *notices) another() {
	n.mu.Lock()
	idle := n.way == byNotices && n.waiting > 0
	n.mu.Unlock()
	if idle {
		n.tell(1)
	}
}

// goes says by which way it goes from now on, if it goes by one of some others.
func (n *notices) goes(by way, instead ...way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Contains(instead, n.way) {
		n.way = by
		close(n.changed)
		n.changed = make(chan struct{})
	}
}

// wait returns when a job is to be asked for: somebody was told to since that moment, it goes by another way now, or
// it is time to ask anyhow. Who asked after the moment, and got nothing, need not be told of what was heard before
// it.
func (n *notices) wait(ctx context.Context, since known, wake time.Duration) {
	n.mu.Lock()
	if n.heard == since.heard {
		n.forget()
	}
	n.waiting++
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.waiting--
	}()
	anyhow := time.NewTimer(sooner(wake))
	defer anyhow.Stop()
	select {
	case <-n.wake:
	case <-since.changed:
	case <-anyhow.C:
	case <-ctx.Done():
	}
}

// forget has nobody ask who has not begun to. The caller holds n.mu.
func (n *notices) forget() {
	for {
		select {
		case <-n.wake:
		default:
			return
		}
	}
}

// sooner is up to a quarter sooner, by chance.
func sooner(d time.Duration) time.Duration { return d - time.Duration(rand.Float64()*float64(d)/4) }

// listen hears the node's stream until ctx ends. One that breaks is begun again; where the node has none, or gives
// this worker none, it is asked again from time to time.
func (c *Client) listen(ctx context.Context, o Options, told *notices) {
	late := time.AfterFunc(openedWithin, func() { told.goes(byAsking, unknown) })
	defer late.Stop()
	pause, said := firstPause, false
	for ctx.Err() == nil {
		begun := time.Now()
		err := c.hear(ctx, o.Application, told)
		told.goes(byAsking, unknown, byNotices)
		no := refusal(err)
		switch {
		case no != nil:
			pause = o.Wake
		case time.Since(begun) > maxPause:
			pause = firstPause
		}
		if no != nil && !said && ctx.Err() == nil {
			o.Log("the node does not tell this worker of jobs, so it asks again and again: " + no.Error())
			said = true
		}
		rest(ctx, sooner(pause))
		pause = min(2*pause, max(maxPause, pause))
	}
}

// errSilent ends a stream on which nothing comes any more.
var errSilent = errors.New("the node's stream of events is silent")

// hear hears one stream until it breaks.
func (c *Client) hear(ctx context.Context, application string, told *notices) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer quiet.Stop()
	resp, err := c.request(ctx, http.MethodGet, "/v1/jobs/events?application="+url.QueryEscape(application), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // it was only read
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return errors.New("what answered is no stream of events: " + kind)
	}
	told.goes(byNotices, unknown, byAsking)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		quiet.Reset(silence)
		if data, is := bytes.CutPrefix(lines.Bytes(), []byte("data:")); is {
			var notice struct {
				Waiting int `json:"waiting"`
			}
			_ = json.Unmarshal(data, &notice) // whatever it says: there may be a job
			told.tell(notice.Waiting)
		}
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	return io.ErrUnexpectedEOF
}
