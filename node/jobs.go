package node

import (
	"context"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/jobs"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is what the rest of the node has to do with jobs that workers do.

// leasing are the instances here for jobs.
type leasing struct{ *instances }

func (x leasing) Lease(ctx context.Context, id workflow.InstanceID, l fact.Lease) error {
	return x.do(ctx, id, func(s *shard) error {
		h, err := s.find(id)
		if err != nil {
			return err
		}
		if err = h.m.Lease(l, s.moment()); err == nil {
			s.touch(h)
		}
		return err
	})
}

func (x leasing) CheckResult(
	ctx context.Context, id workflow.InstanceID, attempt fact.AttemptID, try int,
	outputs map[workflow.DataName]workflow.Value, makes []workflow.DataName,
) (wrong, err error) {
	err = x.peek(ctx, id, func(h *held) {
		wrong = h.m.CheckResult(attempt, try, outputs, makes, choreo.Moment{Wall: x.clock.Now().Wall})
	})
	return wrong, err
}

// announced is this node's profile for jobs.
type announced struct{ *Node }

func (n announced) Announced() []workflow.ApplicationName { return n.own.Announced() }

func (n announced) Announce(ctx context.Context, apps []workflow.ApplicationName) error {
	list := texts(apps)
	_, err := n.SetProfile(ctx, api.ProfileChange{Applications: &list})
	return err
}

// newJobs are those that workers do at this node.
func (n *Node) newJobs(t *tools) *jobs.Desk {
	return jobs.New(jobs.Surroundings{
		Self: t.member.ID(), Clock: t.clock, Log: t.log, Config: t.config.Applications, Profile: announced{n},
		Runs: n.parts.Runner.Has, Instances: leasing{n.instances}, Peers: peers{n.contacts},
		Members: members{n.people},
		Able: func(def *workflow.Definition) []partition.Partner {
			able, _ := n.partners.Candidates(def, partition.PlainRule, nil)
			return able
		},
		Random: t.random, Chance: t.chance, Watched: t.events.watched, Publish: t.events.publish,
		Stopped: n.stopped, Explain: func(err error) error { return Explain(err, n.people.label) },
	})
}

// TakeJob implements api.Service.
func (n *Node) TakeJob(ctx context.Context, by api.Program, r api.TakeRequest) (*api.Job, error) {
	job, err := n.jobs.Take(ctx, by, r)
	return job, n.explain(err)
}

// KeepJob implements api.Service.
func (n *Node) KeepJob(ctx context.Context, by api.Program, lease string, r api.KeepRequest) (*api.Lease, error) {
	l, err := n.jobs.Keep(ctx, by, lease, r)
	return l, n.explain(err)
}

// CompleteJob implements api.Service.
func (n *Node) CompleteJob(ctx context.Context, by api.Program, lease string, r api.CompleteRequest) error {
	return n.explain(n.jobs.Complete(ctx, by, lease, r))
}

// FailJob implements api.Service.
func (n *Node) FailJob(ctx context.Context, by api.Program, lease string, r api.FailRequest) error {
	return n.explain(n.jobs.Fail(ctx, by, lease, r))
}

// GiveBackJob implements api.Service.
func (n *Node) GiveBackJob(ctx context.Context, by api.Program, lease string) error {
	return n.explain(n.jobs.GiveBack(ctx, by, lease))
}

// Jobs implements api.Service.
func (n *Node) Jobs(context.Context) ([]api.PooledJob, error) { return n.jobs.List(), nil }
