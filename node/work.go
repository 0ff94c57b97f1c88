package node

import (
	"context"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// peoplesWork is how much of people's work each user and partner has, by whole ID, in the instances of which this
// node has the facts: of those that go on by their machines, of ended ones by their
// summaries; what goes on here in one that ended as others presume, by its machine.
func (k *desk) peoplesWork(ctx context.Context) (map[string]users.Work, error) {
	out := map[string]users.Work{}
	add := func(p worklist.User, w choreo.PeoplesWork) {
		sum := out[string(p)]
		out[string(p)] = users.Work{
			Done: sum.Done + w.Done, Assigned: sum.Assigned + w.Assigned, Selected: sum.Selected + w.Selected,
		}
	}
	k.index.EachDone(func(p worklist.User, done int) { add(p, choreo.PeoplesWork{Done: done}) })
	found, err := lookAt(ctx, k.crew, func(s *shard) (out []map[worklist.User]choreo.PeoplesWork) {
		s.all(func(_ workflow.InstanceID, h *held) {
			runs := h.m.Overall() == workflow.InstanceRunning
			if !runs && !h.m.GoesOn() {
				return
			}
			of := h.m.PeoplesWork()
			for p, w := range of {
				if !runs {
					w.Done = 0 // its summary counts that
				}
				of[p] = w
			}
			out = append(out, of)
		})
		return out
	})
	if err != nil {
		return nil, err
	}
	for _, of := range slices.Concat(found...) {
		for p, w := range of {
			add(p, w)
		}
	}
	return out, nil
}
