package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// peoplesWork is how much of people's work each user and partner has, by whole ID, in the instances of which this
// node has the facts: of those that go on by their machines, of ended ones by their
// summaries.
func (k *desk) peoplesWork(ctx context.Context) (map[string]users.Work, error) {
	out := map[string]users.Work{}
	add := func(p worklist.User, w choreo.PeoplesWork) {
		sum := out[string(p)]
		out[string(p)] = users.Work{
			Done: sum.Done + w.Done, Assigned: sum.Assigned + w.Assigned, Selected: sum.Selected + w.Selected,
		}
	}
	k.index.eachDone(func(p worklist.User, done int) { add(p, choreo.PeoplesWork{Done: done}) })
	found, err := lookAt(ctx, k.crew, func(s *shard) (out []map[worklist.User]choreo.PeoplesWork) {
		s.each(func(_ workflow.InstanceID, h *held) {
			if h.m.Overall() == workflow.InstanceRunning {
				out = append(out, h.m.PeoplesWork())
			}
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

// eachDone gives the people's tasks of ended instances that succeeded, by who did them.
func (x *index) eachDone(give func(p worklist.User, done int)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, sum := range x.all {
		for p, done := range readDone(sum.People) {
			give(p, done)
		}
	}
}

// storeDone puts the people's tasks that succeeded into a summary, readDone takes them out.
// What cannot be read says nothing: the instance itself does.
func storeDone(of map[worklist.User]choreo.PeoplesWork) string {
	var out []string
	for _, p := range slices.Sorted(maps.Keys(of)) {
		if n := of[p].Done; n > 0 {
			out = append(out, fmt.Sprintf("%s %d", p, n))
		}
	}
	return strings.Join(out, " ")
}

func readDone(s string) map[worklist.User]int {
	words, out := strings.Fields(s), map[worklist.User]int{}
	for i := 0; i+1 < len(words); i += 2 {
		if n, err := strconv.Atoi(words[i+1]); err == nil && n > 0 {
			out[worklist.User(words[i])] = n
		}
	}
	return out
}
