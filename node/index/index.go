package index

import (
	"slices"
	"sync"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// List lists all instances that the node holds, in memory or not.
type List struct {
	mu    sync.Mutex // guards what follows
	all   map[workflow.InstanceID]Summary
	aside map[workflow.InstanceID]SetAside // in quarantine; what is known of them is in all
	news  map[workflow.InstanceID]News     // of those that have ended
	alone map[workflow.InstanceID]bool     // those in whose news there are files that may be only here
	// personal are those in whose news there is something for a user whoever answers for it.
	personal map[worklist.User]map[workflow.InstanceID]bool
	charged  charged
	tally    tally
	roll     roll
	// digests are, by partner, of the ended instances that are shared with it (ended.go).
	digests map[workflow.PartnerID]closings.Digest
	// parts are the instances that are for a task of another one, by that one; under is how many of them are under
	// way, by who began the other and who began them.
	parts map[workflow.InstanceID]map[workflow.InstanceID]bool
	under map[errandOf]int
	steps int // how many instances were looked at to find what is due, newest, or told
}

// New lists nothing.
func New() *List {
	return &List{
		all: map[workflow.InstanceID]Summary{}, aside: map[workflow.InstanceID]SetAside{},
		news: map[workflow.InstanceID]News{}, alone: map[workflow.InstanceID]bool{}, personal: map[worklist.User]map[workflow.InstanceID]bool{}, charged: charged{}, tally: newTally(), roll: newRoll(),
		digests: map[workflow.PartnerID]closings.Digest{},
		parts:   map[workflow.InstanceID]map[workflow.InstanceID]bool{}, under: map[errandOf]int{},
	}
}

// errandOf is who began an instance, and who one for a task of it.
type errandOf struct{ parent, child workflow.PartnerID }

// scanner is where the entries are read.
type scanner interface {
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// Load reads the summaries of a store, calling each for every one.
func (x *List) Load(s scanner, each func(workflow.InstanceID, Summary) error) error {
	return s.Scan([]byte{Prefix}, func(key, value []byte) error {
		id := workflow.InstanceID(key[1:])
		sum, err := ReadSummary(value)
		if err != nil {
			sum = Summary{} // loading it says the same again
		}
		x.Put(id, sum)
		return each(id, sum)
	})
}

// Put lists an instance, or changes what is known of it.
func (x *List) Put(id workflow.InstanceID, sum Summary) {
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
	if p, part := ReadPart(sum.Of); part {
		if x.parts[p.Instance] == nil {
			x.parts[p.Instance] = map[workflow.InstanceID]bool{}
		}
		x.parts[p.Instance][id] = true
	}
}

// Children are the instances that self began for tasks of an instance.
func (x *List) Children(parent workflow.InstanceID, self workflow.PartnerID) map[workflow.InstanceID]Summary {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[workflow.InstanceID]Summary{}
	for id := range x.parts[parent] {
		if sum := x.all[id]; sum.By == self && !sum.Closed {
			out[id] = sum
		}
	}
	return out
}

// Presuming are the instances that self began for tasks of others, and in which a task is presumed to have failed that
// a partner holds, as far as they have ended.
func (x *List) Presuming(p, self workflow.PartnerID) map[workflow.InstanceID]Summary {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[workflow.InstanceID]Summary{}
	for _, parts := range x.parts {
		for id := range parts {
			if sum := x.all[id]; sum.By == self && !sum.Closed && slices.Contains(ReadHolders(sum.Holders), p) {
				out[id] = sum
			}
		}
	}
	return out
}

// BeganFor counts the instances under way that self began for tasks of those that a member began.
func (x *List) BeganFor(by, self workflow.PartnerID) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.under[errandOf{by, self}]
}

// countPart counts an instance that is under way for a task of another one, or with by = -1 that it is so no
// more. The caller holds x.mu.
func (x *List) countPart(id workflow.InstanceID, by int) {
	sum := x.all[id]
	p, part := ReadPart(sum.Of)
	if !part || sum.State != workflow.InstanceRunning {
		return
	}
	countIn(x.under, errandOf{x.all[p.Instance].By, sum.By}, by)
}

// countParts counts those that are for tasks of an instance. The caller holds x.mu.
func (x *List) countParts(id workflow.InstanceID, by int) {
	for child := range x.parts[id] {
		x.countPart(child, by)
	}
}

// Begin has an instance that is about to be stored take its room; an error says that
// there is none. Forget gives it back.
func (x *List) Begin(
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
func (x *List) counts(id workflow.InstanceID) bool {
	_, listed := x.all[id]
	_, begun := x.tally.begun[id]
	return listed || begun
}

// RoomBeside reports what room says of the definitions that instances have brought, by who
// began these (library.Definitions.RoomBeside). Nothing begins meanwhile.
func (x *List) RoomBeside(room func(brings map[workflow.PartnerID]map[workflow.Hash]int) bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return room(x.tally.brings)
}

// Uses tells which definitions the instances here have; nil: of some it is not known.
func (x *List) Uses() func(workflow.Hash) bool {
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

// Filed are the instances here that may have files among their data: by an amendment, or as has says of their
// definition.
func (x *List) Filed(has func(workflow.Hash) bool) (out []workflow.InstanceID) {
	may := map[workflow.Hash]bool{}
	x.mu.Lock()
	for _, sum := range x.all {
		may[sum.Definition] = false
	}
	x.mu.Unlock()
	for of := range may { // not under the lock: it may read the disk
		may[of] = has(of)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, sum := range x.all {
		if asked, known := may[sum.Definition]; sum.Filed || asked || !known {
			out = append(out, id)
		}
	}
	return out
}

// Room tells, by an error, why there is no room for an instance that somebody begins; next is
// whether it is its turn (lineup).
func (x *List) Room(id workflow.InstanceID, l configs.Limits, by, self workflow.PartnerID, next bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.counts(id) {
		return nil
	}
	return x.tally.room(l, by, self, next)
}

// Stored is how many bytes of facts of instances that are not in memory are a member's,
// and how many are of all but this node.
func (x *List) Stored(p, self workflow.PartnerID) (its, others int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tally.stored[p], x.tally.storedAll - x.tally.stored[self]
}

// Forget gives back the room that Begin took.
func (x *List) Forget(id workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tally.forget(id)
}

// Has reports whether something of an instance is stored.
func (x *List) Has(id workflow.InstanceID) bool {
	_, has := x.Get(id)
	return has
}

// Begun is the instance that a partner began with a nonce, if one is listed.
func (x *List) Begun(by workflow.PartnerID, nonce [16]byte) (id workflow.InstanceID, is bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, sum := range x.all {
		if sum.Nonce == nonce && sum.By == by {
			return id, true
		}
	}
	return id, false
}

// Get is what is known of an instance, if it is listed.
func (x *List) Get(id workflow.InstanceID) (Summary, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	sum, ok := x.all[id]
	return sum, ok
}

// SetAside notes that an instance is in quarantine.
func (x *List) SetAside(id workflow.InstanceID, q SetAside) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.change(id, func() {
		x.aside[id] = q
		if _, listed := x.all[id]; !listed {
			x.all[id] = Summary{} // nothing else is known of it
			x.tally.count(Summary{}, 1)
		}
	})
}

// TakeBack notes that an instance is no longer in quarantine.
func (x *List) TakeBack(id workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.change(id, func() { delete(x.aside, id) })
}

// AsideOf is why an instance is set aside, if it is.
func (x *List) AsideOf(id workflow.InstanceID) (q SetAside, aside bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q, aside = x.aside[id]
	return q, aside
}

// Quarantined counts the instances that are set aside as they cannot be read, and those at
// which this program failed.
func (x *List) Quarantined() (unread, failed int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.aside {
		if q.Fault {
			failed++
		}
	}
	return len(x.aside) - failed, failed
}

// Running counts the instances that have not ended.
func (x *List) Running() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tally.all.running
}

// GoingOn are the instances that run, or are blocked and go on when somebody decides so, in the order of their IDs.
func (x *List) GoingOn() (ids []workflow.InstanceID) {
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

// Settled are the IDs of the settled instances that ended last, n at most.
func (x *List) Settled(n int) (ids []workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.roll.ended.Ascend(func(at Rank) bool {
		x.steps++
		if x.all[at.ID].Settled {
			ids = append(ids, at.ID)
		}
		return len(ids) < n
	})
	return ids
}

// Page shows at most limit of the instances that stand behind a place (nil: from the first on), newest first;
// all: those too in which nothing is to happen any more.
func (x *List) Page(all bool, behind *Rank, limit int) []api.InstanceSummary {
	x.mu.Lock()
	defer x.mu.Unlock()
	order := x.roll.open
	if all {
		order = x.roll.all
	}
	out := make([]api.InstanceSummary, 0, min(limit, order.Len()))
	for p := range after(order, behind) {
		if len(out) == limit {
			break
		}
		out = append(out, x.row(p.ID))
	}
	return out
}

// Waiting are the instances that have ended and in which something is to happen all the same, newest first.
func (x *List) Waiting() (ids []workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for p := range after(x.roll.open, nil) {
		if x.all[p.ID].Ended > 0 {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Rows are these instances as a list has them, newest first, at most so many.
func (x *List) Rows(ids []workflow.InstanceID, most int) []api.InstanceSummary {
	x.mu.Lock()
	defer x.mu.Unlock()
	var order []Rank
	for _, id := range ids {
		order = append(order, Rank{x.all[id].Started, id})
	}
	slices.SortFunc(order, Rank.compare)
	out := []api.InstanceSummary{}
	for _, at := range order[:min(len(order), most)] {
		out = append(out, x.row(at.ID))
	}
	return out
}

// row is an instance in a list. The caller holds x.mu.
func (x *List) row(id workflow.InstanceID) api.InstanceSummary {
	s := x.all[id]
	row := api.InstanceSummary{
		ID: id.String(), Workflow: s.Workflow, Version: s.Version, State: s.State,
		Started: wire.AtMilli(s.Started), Ended: wire.Instant(s.Ended), Done: s.Done, Tasks: s.Tasks,
		Needs: ReadNeeds(s.Needs), Subject: s.Subject,
	}
	if q, aside := x.aside[id]; aside {
		row.Quarantine = &api.Quarantine{Since: wire.AtMilli(q.Since), Why: q.Why}
	}
	return row
}

// open reports whether something is to happen in an instance, or it is set aside. The caller holds x.mu.
func (x *List) open(id workflow.InstanceID) bool {
	s := x.all[id]
	_, aside := x.aside[id]
	return aside || api.UnderWay(s.State, ReadNeeds(s.Needs))
}

// Find lists the instances whose IDs begin so.
func (x *List) Find(prefix string) []workflow.InstanceID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(x.roll.called(prefix))
}
