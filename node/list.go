package node

import (
	"cmp"
	"context"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// page lists instances, newest first: those that this node takes part in and, at the coordinator, those of the
// whole mesh; last those of which only a summary is left.
func (k *desk) page(ctx context.Context, q api.InstanceQuery) (*api.InstancePage, error) {
	if q.Limit < 0 || q.Limit > api.MaxPage {
		return nil, api.Errorf(api.Invalid, "limit is %d: want 1 to %d, or 0 for %d", q.Limit, api.MaxPage,
			api.UsualPage)
	}
	limit := cmp.Or(q.Limit, api.UsualPage)
	var behind *rank
	summaries := false
	if q.After != "" {
		p, among, err := readMark(q.After)
		if err != nil {
			return nil, err
		}
		behind, summaries = &p, among
	}
	out := &api.InstancePage{Instances: []api.InstanceSummary{}}
	if !summaries {
		k.kept(ctx, out, q.All, behind, limit)
		if out.Next != "" || !q.All {
			return out, nil
		}
		behind = nil
	}
	var after *workflow.InstanceID
	if behind != nil && q.After != atSummaries {
		after = &behind.id
	}
	return out, k.summaries(out, after, limit)
}

// kept puts the instances behind a place on a page, whose facts are here or were reported.
func (k *desk) kept(ctx context.Context, out *api.InstancePage, all bool, behind *rank, limit int) {
	here := k.index.page(all, behind, limit+1)
	k.addProgress(ctx, here)
	var from int64
	var id workflow.InstanceID
	if behind != nil {
		from, id = behind.started, behind.id
	}
	rows := append(here, k.overview.Elsewhere(all, from, id, limit+1)...)
	api.NewestFirst(rows)
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		out.Next = rank{last.Started.UnixMilli(), idOf(last.ID)}.mark()
	}
	out.Instances = rows
}

// summaries adds what is left of instances whose facts were deleted, as far as the page has room.
func (k *desk) summaries(out *api.InstancePage, after *workflow.InstanceID, limit int) error {
	var more []closings.Closing
	err := k.retention.closings.After(after, func(c closings.Closing) bool {
		if c.Signer != "" {
			more = append(more, c)
		}
		return len(out.Instances)+len(more) <= limit
	})
	if err != nil {
		return err
	}
	for _, c := range more {
		if len(out.Instances) == limit {
			out.Next = atSummaries
			if last := out.Instances[limit-1]; last.Closed != nil {
				out.Next = afterSummary(idOf(last.ID))
			}
			return nil
		}
		out.Instances = append(out.Instances, listedClosing(c))
	}
	return nil
}

// list is all that pages have, newest first.
func (k *desk) list(ctx context.Context, all bool) ([]api.InstanceSummary, error) {
	return api.AllInstances(ctx, all, k.page)
}
