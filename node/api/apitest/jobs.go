package apitest

import (
	"context"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// JobFake is the part of Fake that serves workers.
type JobFake struct {
	OnTakeJob     func(by api.Program, r api.TakeRequest) (*api.Job, error)
	OnWatchJobs   func(ctx context.Context, by api.Program, app workflow.ApplicationName) (api.JobWatch, error)
	OnKeepJob     func(by api.Program, lease string, r api.KeepRequest) (*api.Lease, error)
	OnCompleteJob func(by api.Program, lease string, r api.CompleteRequest) error
	OnFailJob     func(by api.Program, lease string, r api.FailRequest) error
	OnGiveBackJob func(by api.Program, lease string) error
	OnJobs        func() ([]api.PooledJob, error)
}

// TakeJob implements api.Service.
func (f *JobFake) TakeJob(_ context.Context, by api.Program, r api.TakeRequest) (*api.Job, error) {
	return f.OnTakeJob(by, r)
}

// WatchJobs implements api.Service.
func (f *JobFake) WatchJobs(
	ctx context.Context, by api.Program, app workflow.ApplicationName,
) (api.JobWatch, error) {
	return f.OnWatchJobs(ctx, by, app)
}

// KeepJob implements api.Service.
func (f *JobFake) KeepJob(_ context.Context, by api.Program, lease string, r api.KeepRequest) (*api.Lease, error) {
	return f.OnKeepJob(by, lease, r)
}

// CompleteJob implements api.Service.
func (f *JobFake) CompleteJob(_ context.Context, by api.Program, lease string, r api.CompleteRequest) error {
	return f.OnCompleteJob(by, lease, r)
}

// FailJob implements api.Service.
func (f *JobFake) FailJob(_ context.Context, by api.Program, lease string, r api.FailRequest) error {
	return f.OnFailJob(by, lease, r)
}

// GiveBackJob implements api.Service.
func (f *JobFake) GiveBackJob(_ context.Context, by api.Program, lease string) error {
	return f.OnGiveBackJob(by, lease)
}

// Jobs implements api.Service.
func (f *JobFake) Jobs(context.Context) ([]api.PooledJob, error) { return f.OnJobs() }
