package node

import (
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
	roll  roll
	// digests are, by partner, of the ended instances that are shared with it (ended.go).
	digests map[workflow.PartnerID]closings.Digest
	// parts are the instances that are for a task of another one, by that one; under is how many of them are under
	// way, by who began the other and who began them.
	parts map[workflow.InstanceID]map[workflow.InstanceID]bool
	under map[errandOf]int
	steps int // how many instances were looked at to find what is due, or newest
}

func newIndex() *index {
	return &index{
		all: map[workflow.InstanceID]summary{}, aside: map[workflow.InstanceID]setAside{},
		news: map[workflow.InstanceID]news{}, tally: newTally(), roll: newRoll(),
		digests: map[workflow.PartnerID]closings.Digest{},
		parts:   map[workflow.InstanceID]map[workflow.InstanceID]bool{}, under: map[errandOf]int{},
	}
}

// errandOf is who began an instance, and who one for a task of it.
type errandOf struct{ parent, child workflow.PartnerID }

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
	if listed {
		x.tally.count(was, -1)
	}
	x.tally.count(sum, 1)
	x.change(id, func() { x.all[id] = sum })
	if p, part := readPart(sum.Of); part {
		if x.parts[p.Instance] == nil {
			x.parts[p.Instance] = map[workflow.InstanceID]bool{}
		}
		x.parts[p.Instance][id] = true
	}
}

// children are the instances that self began for tasks of an instance.
func (x *index) children(parent workflow.InstanceID, self workflow.PartnerID) map[workflow.InstanceID]summary {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[workflow.InstanceID]summary{}
	for id := range x.parts[parent] {
		if sum := x.all[id]; sum.By == self && !sum.Closed {
			out[id] = sum
		}
	}
	return out
}

// beganFor counts the instances under way that self began for tasks of those that a member began.
func (x *index) beganFor(by, self workflow.PartnerID) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.under[errandOf{by, self}]
}

// countPart counts an instance that is under way for a task of another one, or with by = -1 that it is so no
// more. The caller holds x.mu.
func (x *index) countPart(id workflow.InstanceID, by int) {
	sum := x.all[id]
	p, part := readPart(sum.Of)
	if !part || sum.State != workflow.InstanceRunning {
		return
	}
	countIn(x.under, errandOf{x.all[p.Instance].By, sum.By}, by)
}

// countParts counts those that are for tasks of an instance. The caller holds x.mu.
func (x *index) countParts(id workflow.InstanceID, by int) {
	for child := range x.parts[id] {
		x.countPart(child, by)
	}
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
func (x *index) roomBeside(
	d *library.Definitions, e *library.Definition, by workflow.PartnerID, administers bool,
) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return d.RoomBeside(e, by, administers, x.tally.brings)
}

// uses tells which definitions the instances here have; nil: of some it is not known.
func (x *index) uses() func(workflow.Hash) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.tally.unknown > 0 {
		return nil
	}
	return func(h workflow.Hash) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.tally.used[h] > 0
	}
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

// has reports whether something of an instance is stored.
func (x *index) has(id workflow.InstanceID) bool {
	_, has := x.get(id)
	return has
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
	x.change(id, func() {
		x.aside[id] = q
		if _, listed := x.all[id]; !listed {
			x.all[id] = summary{} // nothing else is known of it
			x.tally.count(summary{}, 1)
		}
	})
}

func (x *index) takeBack(id workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.change(id, func() { delete(x.aside, id) })
}

// asideOf is why an instance is set aside, if it is.
func (x *index) asideOf(id workflow.InstanceID) (q setAside, aside bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q, aside = x.aside[id]
	return q, aside
}

// quarantined counts the instances that are set aside as they cannot be read, and those at
// which this program failed.
func (x *index) quarantined() (unread, failed int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.aside {
		if q.fault {
			failed++
		}
	}
	return len(x.aside) - failed, failed
}

// running counts the instances that have not ended.
func (x *index) running() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tally.all.running
}

// goingOn are the instances that run, or are blocked and go on when somebody decides so, in the order of their IDs.
func (x *index) goingOn() (ids []workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, sum := range x.all {
		if !sum.Closed && (!sum.over() || sum.State == workflow.InstanceBlocked) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, workflow.InstanceID.Compare)
	return ids
}

// settled are the IDs of the settled instances that ended last, n at most.
func (x *index) settled(n int) (ids []workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.roll.ended.Ascend(func(at rank) bool {
		x.steps++
		if x.all[at.id].Settled {
			ids = append(ids, at.id)
		}
		return len(ids) < n
	})
	return ids
}

// page shows at most limit of the instances that stand behind a place (nil: from the first on), newest first;
// all: those too in which nothing is to happen any more.
func (x *index) page(all bool, behind *rank, limit int) []api.InstanceSummary {
	x.mu.Lock()
	defer x.mu.Unlock()
	order, out := x.roll.open, []api.InstanceSummary{}
	if all {
		order = x.roll.all
	}
	for p := range after(order, behind) {
		if len(out) == limit {
			break
		}
		out = append(out, x.row(p.id))
	}
	return out
}

// row is an instance in a list. The caller holds x.mu.
func (x *index) row(id workflow.InstanceID) api.InstanceSummary {
	s := x.all[id]
	row := api.InstanceSummary{
		ID: id.String(), Workflow: s.Workflow, Version: s.Version, State: s.State,
		Started: wire.AtMilli(s.Started), Ended: wire.Instant(s.Ended), Done: s.Done, Tasks: s.Tasks,
		Needs: readNeeds(s.Needs),
	}
	if q, aside := x.aside[id]; aside {
		row.Quarantine = &api.Quarantine{Since: wire.AtMilli(q.Since), Why: q.Why}
	}
	return row
}

// open reports whether something is to happen in an instance, or it is set aside. The caller holds x.mu.
func (x *index) open(id workflow.InstanceID) bool {
	s := x.all[id]
	_, aside := x.aside[id]
	return aside || api.UnderWay(s.State, readNeeds(s.Needs))
}

// find lists the instances whose IDs begin so.
func (x *index) find(prefix string) []workflow.InstanceID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(x.roll.called(prefix))
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
		return id, nil, api.Errorf(api.Invalid, "%q begins the IDs of %d instances", prefix, len(found)).
			WithHint("give more of the ID")
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
	return id, nil, api.Errorf(api.NotFound, "no instance %q here", prefix).
		WithHint("list them: mutirao instances --all")
}
