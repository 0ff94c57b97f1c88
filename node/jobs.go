package node

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/profile"
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

func (x leasing) TimeLeft(
	ctx context.Context, id workflow.InstanceID, attempt fact.AttemptID,
) (left time.Duration, limited bool, err error) {
	now := x.clock.Now()
	err = x.peek(ctx, id, func(h *held) {
		left, limited = h.m.TimeLeft(attempt, choreo.Moment{Boot: now.Boot, Wall: now.Wall})
	})
	return left, limited, err
}

func (x leasing) CheckResult(
	ctx context.Context, id workflow.InstanceID, attempt fact.AttemptID, try int,
	outputs map[workflow.DataName]workflow.Value, makes []workflow.DataName,
) (wrong, err error) {
	err = x.peek(ctx, id, func(h *held) {
		if wrong = checkGiven(h.m.Definition(), outputs); wrong != nil {
			return
		}
		wrong = h.m.CheckResult(attempt, try, outputs, makes, choreo.Moment{Wall: x.clock.Now().Wall})
	})
	return wrong, err
}

// announced is this node's profile for jobs.
type announced struct {
	node *Node
	own  *profile.Own
}

func (a announced) Announced() []workflow.ApplicationName { return a.own.Announced() }

func (a announced) Announce(ctx context.Context, apps []workflow.ApplicationName) error {
	list := texts(apps)
	_, err := a.node.service.SetProfile(ctx, api.ProfileChange{Applications: &list})
	return err
}
