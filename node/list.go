package node

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// progressWait is how long a list of instances waits for their progress: a
// disk that hangs must not keep people from the list.
const progressWait = 2 * time.Second

// page lists instances, newest first: those that this node takes part in and, at the coordinator, those of the
// whole mesh; last those of which only a summary is left.
func (k *desk) page(ctx context.Context, q api.InstanceQuery, w seeing) (*api.InstancePage, error) {
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
		k.kept(ctx, out, q.All, behind, limit, w)
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
func (k *desk) kept(
	ctx context.Context, out *api.InstancePage, all bool, behind *index.Rank, limit int, w seeing,
) {
	here := k.index.Page(all, behind, limit+1)
	k.addProgress(ctx, here)
	var from int64
	var id workflow.InstanceID
	if behind != nil {
		from, id = behind.Started, behind.ID
	}
	rows := append(here, k.overview.Elsewhere(all, from, id, limit+1)...)
	rows = k.addStuck(ctx, rows, behind, w)
	api.NewestFirst(rows)
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		out.Next = index.Rank{Started: last.Started.UnixMilli(), ID: index.IDOf(last.ID)}.Mark()
	}
	out.Instances = rows
}

// addStuck adds the instances elsewhere that wait for whoever here decides about them, and that are behind a place.
func (k *desk) addStuck(
	ctx context.Context, rows []api.InstanceSummary, behind *index.Rank, w seeing,
) []api.InstanceSummary {
	listed := map[string]bool{}
	for _, row := range rows {
		listed[row.ID] = true
	}
	for _, row := range w.Stuck(ctx) {
		at := index.Rank{Started: row.Started.UnixMilli(), ID: index.IDOf(row.ID)}
		if !listed[row.ID] && (behind == nil || behind.Before(at)) {
			rows = append(rows, row)
		}
	}
	return rows
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
func (k *desk) list(ctx context.Context, all bool, w seeing) ([]api.InstanceSummary, error) {
	return api.AllInstances(ctx, all, func(ctx context.Context, q api.InstanceQuery) (*api.InstancePage, error) {
		return k.page(ctx, q, w)
	})
}

// addProgress adds what people call the workflows of instances, how far those are that are in memory, and to others
// what is needed as things stand.
func (k *desk) addProgress(ctx context.Context, list []api.InstanceSummary) {
	ctx, cancel := context.WithTimeout(ctx, progressWait)
	defer cancel()
	places := make(map[workflow.InstanceID]int, len(list))
	ids := make(map[*shard][]workflow.InstanceID, len(k.crew.shards))
	for i := range list {
		id := index.IDOf(list[i].ID)
		s := k.crew.shardOf(id)
		places[id], ids[s] = i, append(ids[s], id)
	}
	type placed struct {
		row int
		progress
	}
	found, err := lookAt(ctx, k.crew, func(s *shard) []placed {
		now, out := s.n.view.Census(), make([]placed, 0, len(ids[s]))
		s.those(slices.Values(ids[s]), func(id workflow.InstanceID, h *held) {
			out = append(out, placed{places[id], s.progress(h, now)})
		})
		return out
	})
	if err != nil {
		found = nil // the list does without
	}
	seen := make([]bool, len(list))
	for _, p := range slices.Concat(found...) {
		row := &list[p.row]
		seen[p.row] = true
		row.Done, row.Tasks, row.At = p.done, p.tasks, k.people.names(p.at)
		row.Needs, row.AsOf, row.Known, row.Subject = p.needs, p.asOf, p.known, p.subject
		row.Label, row.Away = p.label, p.away
		if p.heard != "" {
			row.Of = k.people.name(p.heard)
		}
		if p.state == workflow.InstanceInterrupted {
			row.State = p.state
		}
	}
	for i := range list {
		if !seen[i] {
			sum, _ := k.index.Get(index.IDOf(list[i].ID))
			list[i].Label = k.definitions.Label(sum.Definition)
			list[i].Needs = k.view.Now(list[i].Needs, index.ReadHolders(sum.Holders))
		}
	}
}

// progress is what a list says of an instance that is in memory.
type progress struct {
	done, tasks int
	at          []workflow.PartnerID
	needs       []api.Need
	asOf        *time.Time
	known       string
	heard       workflow.PartnerID // of whom known is said
	away        []api.Absence
	subject     string
	label       string
	state       workflow.InstanceState
}

// progress is what a list says of an instance now. Where nothing is to be said but how far it is, that is kept: to ask
// 10,000 machines takes most of the time of a list of them.
func (s *shard) progress(h *held, now *show.Census) progress {
	kept := h.glance
	if kept != nil && (len(h.refused) > 0 || !kept.calm.Holds(now)) {
		kept = nil
	}
	if kept != nil && !s.n.faults.loud {
		return kept.progress
	}
	var p progress
	shown := h.shown()
	p.done, p.tasks, p.at = h.m.Progress()
	p.needs, p.subject, p.state = s.n.view.NeedsAt(shown, now), h.subject(), h.m.Shown()
	p.asOf, p.known, p.heard = s.n.view.Oldest(shown)
	with := p.at
	if p.heard != "" && !slices.Contains(with, p.heard) {
		with = append(slices.Clone(with), p.heard)
	}
	p.away, p.label = s.n.view.AbsentOf(with), h.m.Definition().Label
	if kept != nil && !reflect.DeepEqual(kept.progress, p) { // only tests look twice
		panic(fmt.Sprintf("a list would say %+v of %s, and it is %+v", kept.progress, h.id, p))
	}
	h.glance = nil
	if calm := s.n.view.Calm(shown, p.needs, now); calm != nil && len(h.refused) == 0 {
		h.glance = &glance{p, calm}
	}
	return p
}

// glance is what a list said of an instance, which holds until something happens in it (shard.touch), as long as it
// is calm.
type glance struct {
	progress
	calm *show.Calm
}
