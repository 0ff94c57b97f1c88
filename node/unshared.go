package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// unshared is what was done of people's tasks that this node holds, and that no other partner is known to have. Of an
// instance that has ended, and in which no other partner takes part, nothing waits any more.
func (k peoplesItems) unshared(ctx context.Context) ([]api.Undelivered, error) {
	found, err := lookAt(ctx, k.crew, func(s *shard) (out []api.Undelivered) {
		s.only(func(h *held) bool { return h.m.Unshares() }, func(id workflow.InstanceID, h *held) {
			all := h.m.Unshared()
			if len(all) == 0 {
				return
			}
			waits := k.wouldTake(h.m)
			if len(waits) == 0 && over(h.m.Overall()) {
				return
			}
			def := h.m.Definition()
			for _, x := range all {
				u := api.Undelivered{
					Instance: id.String(), Task: string(x.Task.Name), Workflow: string(def.Name), Label: x.Task.Label,
					WorkflowLabel: def.Label, Subject: h.subject(), What: worklists.Completed, Since: time.UnixMilli(x.At).UTC(),
					WaitsFor: waits, Alone: len(waits) == 0, User: k.people.name(k.member.ID()), HeldHere: true,
				}
				if x.User != "" {
					u.User = k.partners.Called(x.User)
				}
				if x.Failed {
					u.What = "failed: " + x.Reason
				}
				out = append(out, u)
			}
		})
		return out
	})
	if err != nil {
		return nil, err
	}
	out := slices.Concat(found...)
	slices.SortStableFunc(out, func(a, b api.Undelivered) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Instance, b.Instance))
	})
	return out, nil
}

// filesAlone are the files that were given here with people's tasks of instances that are here, and that no other
// partner that may read them has. Of an instance that has ended, and in which nobody else may, nothing waits any more.
// What is not in memory has ended, and its files were noted then (shard.noteNews): it is not read for this.
func (k peoplesItems) filesAlone(ctx context.Context) ([]api.Undelivered, error) {
	found, err := lookAt(ctx, k.crew, func(s *shard) (out []api.Undelivered) {
		s.only(func(h *held) bool { return k.filing.Concerns(h.m.Definition()) }, func(id workflow.InstanceID, h *held) {
			def := h.m.Definition()
			for _, x := range k.filing.Alone(h.filed()) {
				u, waits := k.fileAlone(id, x, over(h.m.Overall()))
				if waits {
					u.Label, u.Workflow, u.WorkflowLabel = def.LabelOf(x.Task), string(def.Name), def.Label
					u.Subject = h.subject()
					out = append(out, u)
				}
			}
		})
		unloaded := func(id workflow.InstanceID) bool { return k.crew.shardOf(id) == s && s.held[id] == nil }
		for _, l := range k.index.Alone(unloaded) {
			out = append(out, k.endedAlone(l)...)
		}
		return out
	})
	return slices.Concat(found...), err
}

// endedAlone is filesAlone of an instance that has ended, by what was noted.
func (k peoplesItems) endedAlone(l index.Lone) (out []api.Undelivered) {
	left := slices.DeleteFunc(slices.Clone(l.Files), func(x index.Alone) bool {
		f, err := workflow.ParseFile(x.File)
		return err != nil || k.filing.Elsewhere(f)
	})
	if len(left) == 0 {
		k.index.Fetched(l.ID)
	}
	for _, x := range left {
		u, waits := k.fileAlone(l.ID, x, over(l.Sum.State))
		if !waits {
			continue
		}
		u.Workflow, u.WorkflowLabel = string(l.Sum.Workflow), k.definitions.Label(l.Sum.Definition)
		u.Subject = l.Sum.Subject
		if def, err := k.definitions.Get(l.Sum.Definition); err == nil {
			u.Label = def.Def.LabelOf(x.Task)
		}
		out = append(out, u)
	}
	return out
}

// fileAlone is a file that is only here, for the outbox. waits is false where its content is not here, or the instance
// is over and nobody is left who may read it.
func (k peoplesItems) fileAlone(
	id workflow.InstanceID, x index.Alone, ended bool,
) (u api.Undelivered, waits bool) {
	f, err := workflow.ParseFile(x.File)
	readers := slices.DeleteFunc(slices.Clone(x.Readers), k.people.GoneForGood)
	if err != nil || !k.filing.Has(f) || ended && len(readers) == 0 {
		return u, false
	}
	u = worklists.FileAlone(x.Item, f)
	u.Instance, u.Task, u.Since, u.HeldHere = id.String(), string(x.Task), time.UnixMilli(x.At).UTC(), true
	u.WaitsFor, u.Alone = []string{}, len(readers) == 0
	for _, p := range readers {
		u.WaitsFor = append(u.WaitsFor, k.people.name(p))
	}
	u.User = k.people.name(k.member.ID())
	if x.User != "" {
		u.User = k.partners.Called(x.User)
	}
	return u, true
}

// filesLost says which files among the data of instances nobody has any more, as far as this node looks after them.
func (k peoplesItems) filesLost(ctx context.Context) ([]string, error) {
	found, err := lookAt(ctx, k.crew, func(s *shard) (out []string) {
		s.only(func(h *held) bool { return k.filing.Concerns(h.m.Definition()) },
			func(id workflow.InstanceID, h *held) {
				for _, l := range k.filing.LostData(h.filed()) {
					out = append(out, fmt.Sprintf("%s of instance %s", l.What, id))
				}
			})
		return out
	})
	return slices.Concat(found...), err
}

// over reports whether an instance has ended for good, but for what somebody orders yet.
func over(s workflow.InstanceState) bool {
	return s == workflow.InstanceSucceeded || s == workflow.InstanceFailed || s == workflow.InstanceCancelled
}

// wouldTake names the other partners that take part in an instance and may come for its facts.
func (k peoplesItems) wouldTake(m *choreo.Machine) []string {
	names := []string{}
	for _, p := range m.Participants() {
		if p != k.member.ID() && !k.people.GoneForGood(p) {
			names = append(names, k.people.name(p))
		}
	}
	return names
}

// tellShared tells those who watch when somebody else has all that was done here: then it is in no outbox any more.
func (s *shard) tellShared(h *held) {
	if len(h.m.Unshared()) > 0 {
		return
	}
	h.unshared = false
	s.n.events.publish(api.Event{
		At: s.now.Wall, Kind: "worklist", Instance: h.m.Instance().String(), Text: "acknowledged",
	})
}
