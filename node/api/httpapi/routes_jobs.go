package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
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
		has := scopeOf(r.Context())
		if app, is := has.serves(); is && app != in.Application {
			return nil, api.Errorf(api.NotAllowed, "the token %s has the scope %s, and may take no jobs of %q",
				tokenOf(r.Context()).Name, has, in.Application)
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
