package httpapi

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What serves workers. Each has an example, which the OpenAPI document shows.
var (
	takeJobRoute = &route{
		name: "takeJob", method: http.MethodPost, path: "/v1/jobs/take", scope: mayServe,
		summary: "Give a worker a job of an application, when there is one within its wait; the header Mutirao-Lease repeats the lease",
		body:    api.TakeRequest{}, reply: api.Job{}, none: "No job came",
		example: `{"application": "weigh", "worker": "scales-2", "wait": "30s", "lease": "30s"}`,
		answer: `{"lease": "4KXJQZ7YF5TRVN2M3DLHWBCA6E", "lease_for": "30s", "until": "2026-11-25T10:00:30Z",
			"limit": "2026-11-25T10:10:00Z", "instance": "45cae6cfceb585bb100c0acf10ef376c", "workflow": "branches", "task": "weigh", "application": "weigh",
			"attempt": "weigh", "try": 1, "idempotency_key": "93c82dd9588ab2b6be87ae98c2daefcd", "age": "1.4s",
			"args": {"unit": "kg"}, "input": {"lot": "A7"}}`,
		raw: (*handler).takeJob,
	}
	jobEventsRoute = &route{
		name: "jobEvents", method: http.MethodGet, path: "/v1/jobs/events", scope: mayServe,
		query: []parameter{{name: "application", doc: "Whose jobs; it must be given", must: true}},
		summary: "Server-sent events for workers: there may be a job of an application, so take; it may be late, several may be told as one, " +
			"and one may be lost",
		reply: api.JobNotice{}, answer: `{"application": "weigh", "waiting": 1}`,
		raw: (*handler).jobEvents,
	}
	keepJobRoute = &route{
		name: "keepJob", method: http.MethodPost, path: "/v1/leases/{lease}/heartbeat", scope: mayServe,
		summary: "A worker's sign of life: its lease goes on, and people see how far it is", body: api.KeepRequest{},
		reply:   api.Lease{},
		example: `{"progress": 0.4, "note": "2 of 5 pallets"}`,
		answer:  `{"until": "2026-11-25T10:01:00Z", "lease_for": "30s", "limit": "2026-11-25T10:10:00Z"}`,
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.KeepRequest) (any, error) {
				return svc.KeepJob(r.Context(), programOf(r), r.PathValue("lease"), in)
			})
		},
	}
	completeJobRoute = &route{
		name: "completeJob", method: http.MethodPost, path: "/v1/leases/{lease}/complete", scope: mayServe,
		summary: "A worker's result, which is durable when this is answered; one that sets what the task may not is refused, and the worker still has the job",
		body:    api.CompleteRequest{}, example: `{"outputs": {"weight": 12}}`,
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.CompleteRequest) (any, error) {
				return nil, svc.CompleteJob(r.Context(), programOf(r), r.PathValue("lease"), in)
			})
		},
	}
	failJobRoute = &route{
		name: "failJob", method: http.MethodPost, path: "/v1/leases/{lease}/fail", scope: mayServe,
		summary: "The try of a worker's job has failed", body: api.FailRequest{},
		example: `{"reason": "the scales do not answer"}`,
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.FailRequest) (any, error) {
				return nil, svc.FailJob(r.Context(), programOf(r), r.PathValue("lease"), in)
			})
		},
	}
	giveBackJobRoute = &route{
		name: "giveBackJob", method: http.MethodPost, path: "/v1/leases/{lease}/give-back", scope: mayServe,
		summary: "Leave a job to another worker: nothing of it was done, or nothing that counts",
		body:    giveBackRequest{}, example: `{}`,
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(giveBackRequest) (any, error) {
				return nil, svc.GiveBackJob(r.Context(), programOf(r), r.PathValue("lease"))
			})
		},
	}
	jobsRoute = &route{
		name: "jobs", method: http.MethodGet, path: "/v1/jobs", scope: mayRead,
		summary: "The jobs of this node that wait for workers, or that workers have", reply: []api.PooledJob{},
		answer: `[{"instance": "45cae6cfceb585bb100c0acf10ef376c", "workflow": "branches", "task": "weigh", "application": "weigh",
			"attempt": "weigh", "try": 1, "since": "2026-11-25T10:00:00Z",
			"worker": {"name": "scales-2", "since": "2026-11-25T10:00:00Z", "progress": 0.4, "note": "2 of 5 pallets"}}]`,
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.Jobs(r.Context()) },
	}
)

// giveBackRequest gives a job back.
type giveBackRequest struct{}

// leaseHeader repeats a job's lease, for workers that read no JSON.
const leaseHeader = "Mutirao-Lease"

// takeJob answers with a job, or that none came.
func (h *handler) takeJob(w http.ResponseWriter, r *http.Request) error {
	reply, err := withBody(r, func(in api.TakeRequest) (any, error) {
		if err := mayTake(r.Context(), in.Application); err != nil {
			return nil, err
		}
		rc := http.NewResponseController(w) // whoever waits reads nothing and is written nothing meanwhile
		_ = rc.SetReadDeadline(time.Time{})
		job, err := h.svc.TakeJob(r.Context(), programOf(r), in)
		_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // where it cannot be set, the server's own counts
		return job, err
	})
	job, _ := reply.(*api.Job)
	switch {
	case err != nil:
		return err
	case job == nil:
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set(leaseHeader, job.Lease)
	return writeJSON(w, http.StatusOK, complete(job))
}

// mayTake refuses the jobs of an application to a token that is for another's, and those of none.
func mayTake(ctx context.Context, app workflow.ApplicationName) error {
	if app == "" {
		return api.Errorf(api.Invalid, "application is not given: want the name of the application whose jobs are meant")
	}
	has := scopeOf(ctx)
	if of, is := has.serves(); is && of != app {
		return api.Errorf(api.NotAllowed, "the token %s has the scope %s, and may take no jobs of %q",
			tokenOf(ctx).Name, has, app)
	}
	return nil
}

// jobEvents tells a worker of jobs until it goes away, its token is removed or the node stops.
func (h *handler) jobEvents(w http.ResponseWriter, r *http.Request) error {
	app := workflow.ApplicationName(r.URL.Query().Get("application"))
	if err := mayTake(r.Context(), app); err != nil {
		return err
	}
	if h.o.stopping.Err() != nil {
		return api.ErrStopping
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.o.stopping, cancel)()
	watch, err := h.svc.WatchJobs(ctx, programOf(r), app)
	if err != nil {
		return err
	}
	defer watch.Close()
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // where it cannot be set, the worker comes again
	w.Header().Set("Content-Type", "text/event-stream")
	text := streamBegins
	for err == nil {
		if err = send(w, text); err == nil {
			text, err = nextNotice(ctx, watch)
		}
	}
	h.o.Logger.Debug("a worker's event stream ended", "error", err)
	return nil // the reply has begun: there is no way left to report an error
}

// nextNotice is what a worker is to be sent next, at the latest when it has heard nothing for a while.
func nextNotice(ctx context.Context, watch api.JobWatch) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, streamAlive)
	defer cancel()
	notice, err := watch.Next(within)
	switch {
	case over(ctx) != nil: // the token may have been removed meanwhile
		return nil, over(ctx)
	case err == nil:
		line, err := json.Marshal(notice)
		return fmt.Appendf(nil, "data: %s\n\n", line), err
	case within.Err() != nil:
		return streamLives, nil
	}
	return nil, err
}

// serves is the application of a worker's scope; false: it is none.
func (s scope) serves() (workflow.ApplicationName, bool) {
	app, is := strings.CutPrefix(string(s), workerScope)
	return workflow.ApplicationName(app), is
}

// scopeOf is the scope of the token by which a request was let in.
func scopeOf(ctx context.Context) scope {
	if has, added := ctx.Value(scopeKey{}).(scope); added {
		return has
	}
	return mayAll
}

// tokenOf is that token, one that was added; nil: it is the node's own.
func tokenOf(ctx context.Context) *keptToken {
	added, _ := ctx.Value(tokenKey{}).(*keptToken)
	return added
}

// programOf is who makes a request. A worker's token was made for its application by who
// administers the node.
func programOf(r *http.Request) api.Program {
	has := scopeOf(r.Context())
	_, worker := has.serves()
	return api.Program{Token: tokenOf(r.Context()).id(), Admits: worker || has.allows(mayAll)}
}

// TakeJob implements Service.
func (c *Client) TakeJob(ctx context.Context, _ api.Program, r api.TakeRequest) (*api.Job, error) {
	b, err := call[json.RawMessage](ctx, c, takeJobRoute, nil, r)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	var job api.Job
	if err := json.Unmarshal(b, &job); err != nil {
		return nil, api.Errorf(api.Failed, "the node's reply cannot be read: %v", err)
	}
	return &job, nil
}

// WatchJobs implements Service. A connection that breaks ends the watch.
func (c *Client) WatchJobs(
	ctx context.Context, _ api.Program, app workflow.ApplicationName,
) (api.JobWatch, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.do(ctx, jobEventsRoute, url.Values{"application": {string(app)}}, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &jobWatch{notices: make(chan *api.JobNotice, 1), end: cancel}
	go func() {
		defer resp.Body.Close()
		w.broke = c.lost(ctx, w.read(resp.Body))
		close(w.notices)
	}()
	return w, nil
}

// jobWatch is a watch of a node in another process.
type jobWatch struct {
	notices chan *api.JobNotice // closed when the connection broke; a later notice replaces one that was not read
	broke   error               // why; to be read after that
	end     context.CancelFunc
}

// read reads notices until the connection breaks: why.
func (w *jobWatch) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		data, is := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !is {
			continue
		}
		var n api.JobNotice
		if err := json.Unmarshal(data, &n); err != nil {
			return fmt.Errorf("a notice cannot be read: %w", err)
		}
		select {
		case <-w.notices:
		default:
		}
		w.notices <- &n
	}
	return cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}

// Next implements api.JobWatch.
func (w *jobWatch) Next(ctx context.Context) (*api.JobNotice, error) {
	select {
	case n, more := <-w.notices:
		if !more {
			return nil, w.broke
		}
		return n, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close implements api.JobWatch.
func (w *jobWatch) Close() { w.end() }

// KeepJob implements Service.
func (c *Client) KeepJob(ctx context.Context, _ api.Program, lease string, r api.KeepRequest) (*api.Lease, error) {
	return call[*api.Lease](ctx, c, keepJobRoute, nil, r, lease)
}

// CompleteJob implements Service.
func (c *Client) CompleteJob(ctx context.Context, _ api.Program, lease string, r api.CompleteRequest) error {
	_, err := call[nothing](ctx, c, completeJobRoute, nil, r, lease)
	return err
}

// FailJob implements Service.
func (c *Client) FailJob(ctx context.Context, _ api.Program, lease string, r api.FailRequest) error {
	_, err := call[nothing](ctx, c, failJobRoute, nil, r, lease)
	return err
}

// GiveBackJob implements Service.
func (c *Client) GiveBackJob(ctx context.Context, _ api.Program, lease string) error {
	_, err := call[nothing](ctx, c, giveBackJobRoute, nil, giveBackRequest{}, lease)
	return err
}

// Jobs implements Service.
func (c *Client) Jobs(ctx context.Context) ([]api.PooledJob, error) {
	return call[[]api.PooledJob](ctx, c, jobsRoute, nil, nil)
}
