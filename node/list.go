package node

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/overview"
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
	var behind *index.Rank
	summaries := false
	if q.After != "" {
		p, among, err := index.ReadMark(q.After)
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
	if behind != nil && q.After != index.AtSummaries {
		after = &behind.ID
	}
	return out, k.summaries(out, after, limit)
}

// kept puts the instances behind a place on a page, whose facts are here or were reported.
func (k *desk) kept(ctx context.Context, out *api.InstancePage, all bool, behind *index.Rank, limit int) {
	here := k.index.Page(all, behind, limit+1)
	k.addProgress(ctx, here)
	var from int64
	var id workflow.InstanceID
	if behind != nil {
		from, id = behind.Started, behind.ID
	}
	rows := append(here, k.overview.Elsewhere(all, from, id, limit+1)...)
	api.NewestFirst(rows)
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		out.Next = index.Rank{Started: last.Started.UnixMilli(), ID: index.IDOf(last.ID)}.Mark()
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
			out.Next = index.AtSummaries
			if last := out.Instances[limit-1]; last.Closed != nil {
				out.Next = index.AfterSummary(index.IDOf(last.ID))
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

// locate finds the instance with an ID or a unique prefix of one. there is what
// others reported of it to this node, as the coordinator, if it takes no part in
// it itself.
func (k *desk) locate(ref string) (id workflow.InstanceID, there []overview.Account, err error) {
	prefix := strings.ToLower(strings.TrimSpace(ref))
	found := append(k.index.Find(prefix), k.overview.Find(prefix)...)
	slices.SortFunc(found, workflow.InstanceID.Compare)
	found = slices.Compact(found)
	if len(found) > 1 && prefix != "" {
		return id, nil, api.Errorf(api.Invalid, "%q begins the IDs of %d instances", prefix, len(found)).
			WithHint("give more of the ID")
	}
	if len(found) == 1 && prefix != "" {
		id = found[0]
		if _, here := k.index.Get(id); here {
			return id, nil, nil
		}
		if there = k.overview.Accounts(id); len(there) > 0 {
			return id, there, nil
		}
	}
	if err := k.retention.findClosed(prefix); err != nil {
		return id, nil, err
	}
	return id, nil, api.Errorf(api.NotFound, "no instance %q here", prefix).
		WithHint("list them: mutirao instances --all")
}
