package node

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// index lists all instances that the node holds, in memory or not.
type index struct {
	mu  sync.Mutex // guards all
	all map[workflow.InstanceID]summary
}

func newIndex() *index { return &index{all: map[workflow.InstanceID]summary{}} }

// load reads the summaries of a store, calling each for every one.
func (x *index) load(s Store, each func(workflow.InstanceID, summary) error) error {
	return s.Scan([]byte{prefixInstance}, func(key, value []byte) error {
		id := workflow.InstanceID(key[1:])
		var sum summary
		if err := cbor.Unmarshal(value, &sum); err != nil {
			return fmt.Errorf("instance %s: its summary cannot be read: %w", id, err)
		}
		x.put(id, sum)
		return each(id, sum)
	})
}

func (x *index) put(id workflow.InstanceID, sum summary) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[id] = sum
}

func (x *index) get(id workflow.InstanceID) (summary, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	sum, ok := x.all[id]
	return sum, ok
}

// running counts the instances that have not ended.
func (x *index) running() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, s := range x.all {
		if s.State == workflow.InstanceRunning {
			n++
		}
	}
	return n
}

// list shows instances, newest first.
func (x *index) list(all bool) []api.InstanceSummary {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := []api.InstanceSummary{}
	for id, s := range x.all {
		if all || s.State == workflow.InstanceRunning {
			out = append(out, api.InstanceSummary{
				ID: id.String(), Workflow: s.Workflow, Version: s.Version, State: s.State,
				Started: time.UnixMilli(s.Started), Ended: instant(s.Ended),
			})
		}
	}
	slices.SortFunc(out, func(a, b api.InstanceSummary) int {
		if n := b.Started.Compare(a.Started); n != 0 {
			return n
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// instant shows a moment in milliseconds; nil for 0.
func instant(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms)
	return &t
}

// resolve finds the instance with an ID or a unique prefix of one.
func (x *index) resolve(prefix string) (workflow.InstanceID, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found []workflow.InstanceID
	prefix = strings.ToLower(strings.TrimSpace(prefix))
	for id := range x.all {
		if prefix != "" && strings.HasPrefix(hex.EncodeToString(id[:]), prefix) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return workflow.InstanceID{}, api.Errorf(api.NotFound, "no instance %q here", prefix).WithHint("list them: mutirao instances --all")
	}
	return workflow.InstanceID{}, api.Errorf(api.Invalid, "%q begins the IDs of %d instances", prefix, len(found)).WithHint("give more of the ID")
}
