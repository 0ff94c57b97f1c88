package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// JobService is the part of Service that serves workers: programs that come for the jobs
// of an application, and bring their results. Whoever comes again with a lease comes with
// the same token. A lease that its caller has not, or has no more, ends in NotFound, in
// NotAllowed (another token has it) or in Refused (it is over, and why).
type JobService interface {
	// TakeJob gives a job to a worker, when there is one within TakeRequest.Wait; nil: none came.
	TakeJob(ctx context.Context, by Program, r TakeRequest) (*Job, error)
	// WatchJobs has a worker be told that there may be a job of an application, until the watch is closed or ctx ends.
	// It gives none out: what is told may be late, merged with more, or lost, and TakeJob says what there is.
	WatchJobs(ctx context.Context, by Program, app workflow.ApplicationName) (JobWatch, error)
	// KeepJob is a sign of life of a worker: its lease goes on.
	KeepJob(ctx context.Context, by Program, lease string, r KeepRequest) (*Lease, error)
	// CompleteJob brings a result, and returns when it is durable. A result that names what
	// the task may not set, or what a database answered, is Refused and changes nothing: the
	// worker still has the job.
	CompleteJob(ctx context.Context, by Program, lease string, r CompleteRequest) error
	// FailJob says that a try has failed, and returns when that is durable.
	FailJob(ctx context.Context, by Program, lease string, r FailRequest) error
	// GiveBackJob leaves a job to another worker.
	GiveBackJob(ctx context.Context, by Program, lease string) error
	// Jobs are the jobs that wait for workers here, or that workers have, the oldest first.
	Jobs(ctx context.Context) ([]PooledJob, error)
}

// Program is who makes a request, by its token.
type Program struct {
	Token string // what tells it from every other token, also from a later one of its name; empty: the node's own
	// Admits: it may have this node serve a further application by workers.
	Admits bool
}

// JobWatch tells a worker that there may be a job for it. One goroutine at a time may use it.
type JobWatch interface {
	// Next returns when there may be a job that was not told yet, and at the beginning if one waits. An error that is
	// not of ctx ends the watch.
	Next(ctx context.Context) (*JobNotice, error)
	Close()
}

// JobNotice says that there may be a job of an application, and nothing of the job: whoever takes it learns that.
type JobNotice struct {
	Application workflow.ApplicationName `json:"application"`
	// Waiting is how many wait for workers at this node; 0: another partner has one that can be had.
	Waiting int `json:"waiting"`
}

// TakeRequest asks for a job.
type TakeRequest struct {
	Application workflow.ApplicationName `json:"application"`
	// Worker is what the worker calls itself, for people and the log; left out: "worker".
	Worker string `json:"worker,omitempty"`
	// Wait is how long to wait for a job, as a duration, at most 60s; left out: not at all.
	Wait string `json:"wait,omitempty"`
	// Lease is how long the job is kept for the worker after each sign of life, 2s to 10m; left out: 30s.
	Lease string `json:"lease,omitempty"`
}

// Job is a job that a worker has been given, until its lease is over.
type Job struct {
	// Lease names the worker's hold on the job in all further requests about it.
	Lease string `json:"lease"`
	// LeaseFor is how long the lease lasts after each sign of life, and Until when it ends without one.
	LeaseFor string    `json:"lease_for"`
	Until    time.Time `json:"until"`
	// Limit is when the time of its task is over, whatever signs of life come; left out: never.
	Limit       *time.Time               `json:"limit,omitempty"`
	Instance    string                   `json:"instance"`
	Workflow    workflow.Name            `json:"workflow"`
	Task        workflow.TaskName        `json:"task"`
	Application workflow.ApplicationName `json:"application"`
	Attempt     string                   `json:"attempt"`
	Try         int                      `json:"try"`
	// IdempotencyKey names this try among all tries everywhere; the same try always has the same.
	IdempotencyKey string         `json:"idempotency_key"`
	Age            string         `json:"age"` // of the instance, e.g. 1m30s
	Args           map[string]any `json:"args"`
	// Input are the task's inputs; of a data-driven task, as they were in the state that fired it.
	Input map[string]any `json:"input"`
	// Files is the folder for files that it makes; left out: none.
	Files string `json:"files,omitempty"`
}

// KeepRequest is a sign of life.
type KeepRequest struct {
	Progress float64 `json:"progress,omitempty"` // how far it is, from 0 to 1
	Note     string  `json:"note,omitempty"`     // the same in words, at most 200 bytes
	Lease    string  `json:"lease,omitempty"`    // another term from now on, 2s to 10m
}

// Lease is how long a lease lasts.
type Lease struct {
	Until    time.Time  `json:"until"`           // without a further sign of life
	LeaseFor string     `json:"lease_for"`       // after each one
	Limit    *time.Time `json:"limit,omitempty"` // when the time of its task is over; left out: never
}

// CompleteRequest is the result of a job: values for names under the task's out.
type CompleteRequest struct {
	Outputs map[string]json.RawMessage `json:"outputs,omitempty"`
}

// FailRequest says that a job's try has failed.
type FailRequest struct {
	Reason string `json:"reason,omitempty"` // why, for people
}

// PooledJob is a job in this node's pool.
type PooledJob struct {
	Instance    string                   `json:"instance"`
	Workflow    workflow.Name            `json:"workflow"`
	Task        workflow.TaskName        `json:"task"`
	Application workflow.ApplicationName `json:"application"`
	Attempt     string                   `json:"attempt"`
	Try         int                      `json:"try"`
	Since       time.Time                `json:"since"`  // when it began to wait, or was given to its worker
	Worker      *JobWorker               `json:"worker"` // null: it waits for one
}

// JobWorker is the worker that has a job, or did it.
type JobWorker struct {
	Name  string    `json:"name"`         // as it calls itself
	At    string    `json:"at,omitempty"` // beside whose node it is; left out: the holder's
	Since time.Time `json:"since"`        // when it was given the job
	// What follows only the holder's node knows, while the worker has the job.
	Until    *time.Time `json:"until,omitempty"`    // when its lease ends without a sign of life
	Heard    *time.Time `json:"heard,omitempty"`    // its last sign of life
	Progress float64    `json:"progress,omitempty"` // from 0 to 1
	Note     string     `json:"note,omitempty"`
}
