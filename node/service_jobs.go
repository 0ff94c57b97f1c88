package node

import (
	"context"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/jobs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// jobService is about what workers do.
type jobService struct {
	jobs    *jobs.Desk
	explain func(error) error
}

// TakeJob implements api.Service.
func (s *jobService) TakeJob(ctx context.Context, by api.Program, r api.TakeRequest) (*api.Job, error) {
	job, err := s.jobs.Take(ctx, by, r)
	return job, s.explain(err)
}

// WatchJobs implements api.Service.
func (s *jobService) WatchJobs(
	ctx context.Context, by api.Program, app workflow.ApplicationName,
) (api.JobWatch, error) {
	w, err := s.jobs.Watch(ctx, by, app)
	if err != nil {
		return nil, s.explain(err)
	}
	return w, nil
}

// KeepJob implements api.Service.
func (s *jobService) KeepJob(ctx context.Context, by api.Program, lease string, r api.KeepRequest) (*api.Lease, error) {
	l, err := s.jobs.Keep(ctx, by, lease, r)
	return l, s.explain(err)
}

// CompleteJob implements api.Service.
func (s *jobService) CompleteJob(ctx context.Context, by api.Program, lease string, r api.CompleteRequest) error {
	return s.explain(s.jobs.Complete(ctx, by, lease, r))
}

// FailJob implements api.Service.
func (s *jobService) FailJob(ctx context.Context, by api.Program, lease string, r api.FailRequest) error {
	return s.explain(s.jobs.Fail(ctx, by, lease, r))
}

// GiveBackJob implements api.Service.
func (s *jobService) GiveBackJob(ctx context.Context, by api.Program, lease string) error {
	return s.explain(s.jobs.GiveBack(ctx, by, lease))
}

// Jobs implements api.Service.
func (s *jobService) Jobs(context.Context) ([]api.PooledJob, error) { return s.jobs.List(), nil }
