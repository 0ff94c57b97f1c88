package node

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// index lists all instances that the node holds, in memory or not.
type index struct {
	mu    sync.Mutex // guards what follows
	all   map[workflow.InstanceID]summary
	aside map[workflow.InstanceID]setAside // in quarantine; what is known of them is in all
	news  map[workflow.InstanceID]news     // of those that have ended
	tally tally
	// digests are, by partner, of the ended instances that are shared with it (ended.go).
	digests map[workflow.PartnerID]closings.Digest
}

func newIndex() *index {
	return &index{
		all: map[workflow.InstanceID]summary{}, aside: map[workflow.InstanceID]setAside{}, news: map[workflow.InstanceID]news{}, tally: newTally(),
		digests: map[workflow.PartnerID]closings.Digest{},
	}
}

// load reads the summaries of a store, calling each for every one.
func (x *index) load(s Store, each func(workflow.InstanceID, summary) error) error {
	return s.Scan([]byte{prefixInstance}, func(key, value []byte) error {
		id := workflow.InstanceID(key[1:])
		var sum summary
		if decode(value, &sum) != nil {
			sum = summary{} // loading it says the same again
		}
		x.put(id, sum)
		return each(id, sum)
	})
}

func (x *index) put(id workflow.InstanceID, sum summary) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tally.forget(id)
	was, listed := x.all[id]
	if listed && was == sum {
		return
	}
	x.tally.count(was, -1)
	x.tally.count(sum, 1)
	x.change(id, func() { x.all[id] = sum })
}

// begin has an instance that is about to be stored take its room; an error says that
// there is none. forget gives it back.
func (x *index) begin(
	id workflow.InstanceID, l configs.Limits, by, self workflow.PartnerID, next bool, of workflow.Hash,
) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.counts(id) {
		return nil // it is taken up again
	}
	if err := x.tally.room(l, by, self, next); err != nil {
		return err
	}
	x.tally.begin(id, by, of)
	return nil
}

// counts reports whether an instance has taken its room. The caller holds x.mu.
func (x *index) counts(id workflow.InstanceID) bool {
	_, listed := x.all[id]
	_, begun := x.tally.begun[id]
	return listed || begun
}

// roomBeside reports whether there is room for the definition of an instance that has
// begun, if nobody lists it (library.Definitions.RoomBeside).
func (x *index) roomBeside(d *library.Definitions, e *library.Definition, by workflow.PartnerID, administers bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return d.RoomBeside(e, by, administers, x.tally.brings)
}

// uses are the definitions of the instances here; nil: of some it is not known.
func (x *index) uses() map[workflow.Hash]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, sum := range x.all {
		if sum.Definition == (workflow.Hash{}) {
			return nil
		}
	}
	out := map[workflow.Hash]bool{}
	for _, of := range x.tally.brings {
		for h := range of {
			out[h] = true
		}
	}
	return out
}

// definitions are those of the instances here, by instance.
func (x *index) definitions() map[workflow.InstanceID]workflow.Hash {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make(map[workflow.InstanceID]workflow.Hash, len(x.all))
	for id, sum := range x.all {
		out[id] = sum.Definition
	}
	return out
}

// room tells, by an error, why there is no room for an instance that somebody begins; next is
// whether it is its turn (lineup).
func (x *index) room(id workflow.InstanceID, l configs.Limits, by, self workflow.PartnerID, next bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.counts(id) {
		return nil
	}
	return x.tally.room(l, by, self, next)
}

// stored is how many bytes of facts of instances that are not in memory are a member's,
// and how many are of all but this node.
func (x *index) stored(p, self workflow.PartnerID) (its, others int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tally.stored[p], x.tally.storedAll - x.tally.stored[self]
}

func (x *index) forget(id workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tally.forget(id)
}

func (x *index) get(id workflow.InstanceID) (summary, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	sum, ok := x.all[id]
	return sum, ok
}

// setAside notes that an instance is in quarantine; takeBack, that it no longer is.
func (x *index) setAside(id workflow.InstanceID, q setAside) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.change(id, func() { x.aside[id] = q })
	if _, listed := x.all[id]; !listed {
		x.all[id] = summary{} // nothing else is known of it
	}
}

func (x *index) takeBack(id workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.change(id, func() { delete(x.aside, id) })
}

// quarantined counts the instances that are set aside.
func (x *index) quarantined() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.aside)
}

// running counts the instances that have not ended.
func (x *index) running() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tally.all.running
}

// settled are the IDs of the settled instances that ended last, n at most.
func (x *index) settled(n int) []workflow.InstanceID {
	x.mu.Lock()
	defer x.mu.Unlock()
	var ids []workflow.InstanceID
	for id, s := range x.all {
		if _, aside := x.aside[id]; s.Settled && !aside {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b workflow.InstanceID) int {
		return cmp.Or(cmp.Compare(x.all[b].Ended, x.all[a].Ended), a.Compare(b))
	})
	return ids[:min(n, len(ids))]
}

// list shows instances, in any order.
func (x *index) list(all bool) []api.InstanceSummary {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := []api.InstanceSummary{}
	for id, s := range x.all {
		q, aside := x.aside[id]
		if all || aside || s.State == workflow.InstanceRunning {
			row := api.InstanceSummary{
				ID: id.String(), Workflow: s.Workflow, Version: s.Version, State: s.State,
				Started: wire.AtMilli(s.Started), Ended: wire.Instant(s.Ended), Done: s.Done, Tasks: s.Tasks, Needs: readNeeds(s.Needs),
			}
			if aside {
				row.Quarantine = &api.Quarantine{Since: wire.AtMilli(q.Since), Why: q.Why}
			}
			out = append(out, row)
		}
	}
	return out
}

// newestFirst sorts a list of instances.
func newestFirst(list []api.InstanceSummary) {
	slices.SortFunc(list, func(a, b api.InstanceSummary) int {
		if n := b.Started.Compare(a.Started); n != 0 {
			return n
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// find lists the instances whose IDs begin so.
func (x *index) find(prefix string) []workflow.InstanceID {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found []workflow.InstanceID
	for id := range x.all {
		if strings.HasPrefix(hex.EncodeToString(id[:]), prefix) {
			found = append(found, id)
		}
	}
	return found
}

// locate finds the instance with an ID or a unique prefix of one. there is what
// others reported of it to this node, as the coordinator, if it takes no part in
// it itself.
func (k *desk) locate(ref string) (id workflow.InstanceID, there []overview.Account, err error) {
	prefix := strings.ToLower(strings.TrimSpace(ref))
	found := append(k.index.find(prefix), k.overview.Find(prefix)...)
	slices.SortFunc(found, workflow.InstanceID.Compare)
	found = slices.Compact(found)
	if len(found) > 1 && prefix != "" {
		return id, nil, api.Errorf(api.Invalid, "%q begins the IDs of %d instances", prefix, len(found)).WithHint("give more of the ID")
	}
	if len(found) == 1 && prefix != "" {
		id = found[0]
		if _, here := k.index.get(id); here {
			return id, nil, nil
		}
		if there = k.overview.Accounts(id); len(there) > 0 {
			return id, there, nil
		}
	}
	if err := k.retention.findClosed(prefix); err != nil {
		return id, nil, err
	}
	return id, nil, api.Errorf(api.NotFound, "no instance %q here", prefix).WithHint("list them: mutirao instances --all")
}
