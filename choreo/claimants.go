package choreo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says how people's tasks stand for those who may do them: who has which, which they may take, and which of
// their results are kept.

// ErrTaken is returned for a task that a person has claimed, to whoever else wants to end it
// or to give it on.
var ErrTaken = errors.New("somebody has it")

// Claimed is what became of a person's word.
type Claimed struct {
	// Already: it was so before, and nothing was written.
	Already bool
	// Kept says why a result that was written down does not count; empty: it counts. Result is by which fact it is
	// kept, and can be adopted; zero: it cannot, as a failure, or as its task is done, or counts.
	Kept   string
	Result worklist.ID `json:",omitzero"`
	// Still: the person still has the item of a result that does not count, and may do it once more.
	Still bool `json:",omitempty"`
	// Waits: a result is put off until those count that it was made from, and may come not to count. What it came to is
	// said when the same word is brought again.
	Waits bool `json:",omitempty"`
	// Fails says why a result that counts makes its task fail, as its author wants of conflicts; empty: it does not.
	Fails string `json:",omitempty"`
	// Adopted: a result that was brought before counts as somebody adopted it (node/worklists asks for that).
	Adopted bool `json:",omitempty"`
}

// PeopleChanged has this node look again whether those who have people's work may still have
// it: somebody was removed, or roles changed.
func (m *Machine) PeopleChanged() {
	if m.Claims() {
		m.state.People().Board.Changed("")
	}
}

// Claims reports whether something was claimed of people's work here.
func (m *Machine) Claims() bool { return m.state.People().Board != nil }

// claimants are the people of a mesh as a board asks about them in one decision.
type claimants struct {
	*decision
	with map[workflow.RoleName][]worklist.Person // that were asked for
	// sights are who may see items that wait to be taken, of those that were asked about.
	sights map[worklist.Item]partition.Sight
}

// With lists those to whom items for a role can be offered.
func (c claimants) With(r workflow.RoleName) []worklist.Person {
	of, known := c.with[r]
	if !known {
		of = c.partners.People(r)
		c.with[r] = of
	}
	return of
}

// Known is a person who may hold items.
func (c claimants) Known(u worklist.User) (worklist.Person, bool) { return c.partners.Person(u) }

// taken says who has the item of an attempt of ours; nil: nobody, or this node itself as a person.
func (m *Machine) taken(a *state.Attempt) error {
	if h, held := m.state.HoldOf(a); held && h.User != worklist.User(m.self) {
		return fmt.Errorf("%w: %s", ErrTaken, a.Task.WithLabel())
	}
	return nil
}

// claimed reports whether a person has the item of an attempt.
func (m *Machine) claimed(a *state.Attempt) bool {
	_, held := m.state.HoldOf(a)
	return held
}

// ItemView is a person's task that can be done, as this replica knows it.
type ItemView struct {
	Item    worklist.Item
	Task    *workflow.Task
	Partner workflow.PartnerID // who holds it
	// Partition is where it is; empty: with whoever was found for it.
	Partition workflow.PartitionName
	// Undoes is what it compensates; empty: it compensates nothing.
	Undoes workflow.TaskName
	// Arrival is since when it can be done, by its holder's clock as far as its facts say, in ms
	// since 1970: the same at all nodes, and after a restart.
	Arrival int64
	// Holder is who has it, by which grant; empty: nobody.
	Holder worklist.User
	Grant  worklist.ID
	Mode   worklist.Mode
	// Word is by which word of a person Holder was given it, and From the partner at whose node that was signed; Joint:
	// together with items of other holders.
	Word  worklist.ID
	From  workflow.PartnerID
	Joint bool
	// Role is for whom it is: that of its task, or to which it was passed.
	Role workflow.RoleName
	// Offered are those of the role to whom its holder offers it, sorted, while nobody has it; ToAll: to all of the role.
	Offered []worklist.User
	ToAll   bool
	// HandedBy is who handed it to Holder, for whom it is kept, where the mode is Handed. Until is when the lease of Holder
	// is over (worklist.Standing); zero: it has none.
	HandedBy worklist.User
	Until    time.Time
	// LeaseEnds is when the lease of Holder is over (Boot), by the clock of this node; 0: it has none. It is true at who
	// granted it: others count from when they heard of that.
	LeaseEnds time.Duration
	// Begun is since when its holder works on it, by its own clock, in ms since 1970, while nobody has taken it; 0: it
	// does not.
	Begun int64
	// WaitsFor are the resources that its task is to hold and has not got yet: nobody can take it before.
	WaitsFor []worklist.Lack
	// Shared are the resources that others use with it though there is not enough for all.
	Shared []worklist.Lack
	// Awaits are the tasks whose success makes it ready; none: it is ready. PutOff: Holder has done it, which counts when
	// they have.
	Awaits []workflow.TaskName
	PutOff bool
	// HeldUp is why these cannot make it ready as things are; nil: they can.
	HeldUp *HeldUp
	// Remark is what whoever gave it back or passed it on last said; nil: nothing.
	Remark *worklist.Remark
	// Presumed is why others presume that its task has failed, which its holder has not given up; empty: nobody does.
	Presumed string
}

// HeldUp is why an item that somebody has cannot be done as things are: what it waits for has failed.
type HeldUp struct {
	Awaits, Failed workflow.TaskName  // what it waits for; and which failed: that, or what that waits for
	At             workflow.PartnerID // who holds Failed
	Presumed       bool               // others presume it, and its holder has not given it up
	Why            string
}

// Items are the tasks of people that can be done now: of an instance that runs no more those of this node which are
// only presumed to have failed (GoesOn), and what is compensated by people.
func (m *Machine) Items() []ItemView {
	out, since := []ItemView(nil), state.Moments{S: m.state}
	m.eachItem(func(a *state.Attempt) { out = append(out, m.itemNow(a, &since)) })
	return out
}

// eachItem calls fn for the attempt of each of the Items.
func (m *Machine) eachItem(fn func(*state.Attempt)) {
	if !m.peopled {
		return
	}
	for _, u := range m.peoplesUndoing() {
		fn(u)
	}
	running := m.state.Overall() == workflow.InstanceRunning
	if !running && !(m.heeded() && m.goesOn()) {
		return
	}
	for _, sl := range m.state.Slots() {
		a := sl.Current
		m.log.Steps++
		if a.Task.ByNode() || !m.state.Wanted(a) || a.Start == nil && !a.MayStart() || a.Success() != nil ||
			a.EndedByHolder() {
			continue
		}
		if !running && !m.atWork(sl) {
			continue
		}
		fn(a)
	}
	for _, a := range m.state.PeoplesJobs() {
		fn(a)
	}
}

// itemNow is an attempt that can be done, with who has it.
func (m *Machine) itemNow(a *state.Attempt, since *state.Moments) ItemView {
	v := itemView(a, since)
	if h, held := m.state.HoldOf(a); held {
		v.Holder, v.Grant, v.Mode, v.HandedBy, v.Until = h.User, h.Grant, h.Mode, h.By, h.Until
		v.Word, v.From, v.Joint, v.LeaseEnds = h.Word, h.From, h.Joint, h.Ends
		v.PutOff = m.state.People().Board.PutOff(v.Item, v.Holder)
	} else {
		v.Offered, v.ToAll = m.state.Offered(a)
		v.Begun = m.state.WorkedOnSince(a)
	}
	v.WaitsFor, v.Shared = m.state.Lacking(a), m.state.Shared(a)
	if m.state.PresumedBy(a) != nil {
		v.Presumed = a.WhyFailed(m.state.Prevailing(a.Rulings))
	}
	if m.Claims() && m.state.People().Board.Knows(v.Item) {
		v.Role = m.state.People().Board.Role(v.Item)
		if r, said := m.state.People().Board.Remark(v.Item); said {
			v.Remark = &r
		}
	}
	return v
}

func itemView(a *state.Attempt, since *state.Moments) ItemView {
	v := ItemView{
		Item: state.ItemOf(a.ID), Task: a.Task, Partner: a.Partner, Partition: since.S.Plan().Home(a.Task.Name),
		Arrival: since.Arrival(a), Role: a.Task.Role,
	}
	if a.Undoes != nil {
		v.Undoes = a.Undoes.Task.Name
	}
	return v
}

// MaxGrants bounds the grants of one item to one person that are told.
const MaxGrants = 16

// ItemFor is an item as it concerns one person.
type ItemFor struct {
	ItemView
	// Last is the last grant by which the person got it; zero: none. Grants are all by which the person ever did, the
	// newest first, at most MaxGrants. Over: it cannot be done any more; if the person still has it then, or it is kept
	// for the person, Word says by which word, and it can be given back.
	Last   worklist.ID
	Grants []worklist.ID
	Over   bool
	// Lost is why the person has it no more, who had it; nil: the person has it, gave it back, did it, or never had it.
	// Without a moment it is as of now: its holder has written nothing down since.
	Lost *worklist.Loss
}

// UnneededSince is since when an item is not needed any more, by the clock of whoever wrote that down; zero: it is.
func (m *Machine) UnneededSince(i worklist.Item) (at time.Time) {
	if a := m.state.Attempts()[fact.AttemptIDOf(i)]; a != nil {
		if ms := m.state.UnneededSince(a); ms > 0 {
			return time.UnixMilli(ms)
		}
	}
	return at
}

// whyLost is why somebody lost the item of an attempt, or, while its holder is not known to have heard of what others
// presume of it, why the user is to lose it: until then the user has it, and may go on.
func (m *Machine) whyLost(a *state.Attempt, why string) string {
	by := m.state.PresumedBy(a)
	if by == nil || a.Partner == m.self || m.state.Cancelled() != nil || m.state.WroteSince(a.Partner, by) > 0 {
		return why
	}
	if p := m.peers[a.Partner]; p != nil && p.acked.At(by.Strand.Place) >= by.Fact.Seq {
		return why
	}
	return worklist.Presumed(why)
}

// TookPart reports whether a person has, or had, an item of the instance.
func (m *Machine) TookPart(u worklist.User) bool { return m.Claims() && m.state.People().Board.Took(u) }

// HeldUntil is till when whoever has an item has it, as things are now; zero: for as long as it takes, or nobody has it.
func (m *Machine) HeldUntil(i worklist.Item, now Moment, partners Partners) time.Time {
	if !m.Claims() {
		return time.Time{}
	}
	return m.state.People().Board.HeldUntil(i, partners.Person, worklist.Moment{Boot: now.Boot, Wall: now.Wall})
}

// ItemsFor are the tasks of people that can be done now, and those that a person had.
func (m *Machine) ItemsFor(u worklist.User) (out []ItemFor) {
	since := state.Moments{S: m.state}
	m.eachItem(func(a *state.Attempt) { out = append(out, ItemFor{ItemView: m.itemNow(a, &since)}) })
	forked, grants := m.state.Forked()
	if !m.Claims() && len(forked) == 0 { // nobody has, or had, any
		return out
	}
	had, lost := map[worklist.Item]worklist.ID{}, map[worklist.Item]*worklist.Loss{}
	if m.Claims() {
		had, lost = m.state.People().Board.Had(u)
	}
	for i, l := range lost {
		if a := m.state.Attempts()[fact.AttemptIDOf(i)]; l.By.IsZero() && a != nil {
			if at := m.state.GoneAt(a); at > 0 {
				l.At = time.UnixMilli(at)
			}
			l.Why = m.whyLost(a, l.Why)
		}
	}
	for i, l := range forked {
		if _, since := had[l.Item]; l.User == u && !since {
			had[l.Item], lost[l.Item] = grants[i], &l
		}
	}
	listed := map[worklist.Item]bool{}
	for i := range out {
		x := &out[i]
		if x.Last = had[x.Item]; x.Holder == u {
			x.Last = x.Grant
		} else {
			x.Lost = lost[x.Item]
		}
		listed[x.Item] = true
		delete(had, x.Item)
	}
	open := map[worklist.Item]worklist.Standing{}
	for _, i := range m.heldBy(u) {
		if listed[i] {
			continue
		}
		if v, waits := m.itemAhead(m.state.Attempts()[fact.AttemptIDOf(i)], &since); waits {
			out = append(out, ItemFor{ItemView: v, Last: v.Grant})
			delete(had, i)
			continue
		}
		open[i], _ = m.state.People().Board.Holds(i)
		had[i] = open[i].Grant
	}
	for _, i := range slices.SortedFunc(maps.Keys(had), worklist.Item.Compare) {
		if a := m.state.Attempts()[fact.AttemptIDOf(i)]; a != nil {
			x := ItemFor{ItemView: itemView(a, &since), Last: had[i], Over: true, Lost: lost[i]}
			x.Word, x.Joint = open[i].Word, open[i].Joint
			out = append(out, x)
		}
	}
	for i := range out {
		if x := &out[i]; !x.Last.IsZero() {
			x.Grants = m.grantsOf(x.Item, u)
		}
	}
	return out
}

// grantsOf are the grants of an item to a person, also one that a fork took away, the newest first, at most MaxGrants.
func (m *Machine) grantsOf(i worklist.Item, u worklist.User) (out []worklist.ID) {
	forked, grants := m.state.Forked()
	for n, l := range forked {
		if l.Item == i && l.User == u {
			out = append(out, grants[n])
		}
	}
	if m.Claims() {
		out = append(m.state.People().Board.Grants(i, u, MaxGrants-len(out)), out...)
	}
	return out
}

// heldBy are the items that a person has.
func (m *Machine) heldBy(u worklist.User) []worklist.Item {
	if !m.Claims() {
		return nil
	}
	return m.state.People().Board.HeldBy(u)
}

// ItemOver reports whether an item can be done no more as far as is known here: it has ended, another attempt is in
// charge, or its instance does not run. Its holder may know better.
func (m *Machine) ItemOver(i worklist.Item) bool {
	a := m.state.Attempts()[fact.AttemptIDOf(i)]
	switch {
	case a == nil:
		return false
	case a.Success() != nil || a.EndedByHolder() || !m.state.Wanted(a):
		return true
	}
	return !a.Beside() && m.state.Overall() != workflow.InstanceRunning
}

// MadeBy are, of these tasks, the results of people that count, as far as is known here.
func (m *Machine) MadeBy(of []workflow.TaskName) (out []worklist.Basis) {
	board := m.state.People().Board
	if board == nil {
		return nil
	}
	for _, t := range of {
		sl := m.state.BySlot()[t]
		if sl == nil || sl.State != workflow.Succeeded || sl.Pick == nil {
			continue
		}
		i := state.ItemOf(sl.Pick.ID)
		if word, is := board.EndedBy(i); is {
			out = append(out, worklist.Basis{Item: i, Word: word})
		}
	}
	return out
}

// RemarkOnPresumed is what whoever gave an item back or passed it on last said, of one that others presume to have failed
// and that its holder has not given up; nil: it is none, or nothing was said.
func (m *Machine) RemarkOnPresumed(id fact.AttemptID) *worklist.Remark {
	a := m.state.Attempts()[id]
	if a == nil || !m.Claims() || m.state.PresumedBy(a) == nil {
		return nil
	}
	if r, said := m.state.People().Board.Remark(state.ItemOf(id)); said {
		return &r
	}
	return nil
}

// KeptResult is a result that a person brought and that did not end its item.
type KeptResult struct {
	ID   fact.ID
	Item worklist.Item
	// Adoptable: who decides about the instance may adopt it.
	Adoptable bool
	Task      workflow.TaskName
	User      worklist.User
	At        int64 // ms, the holder's clock
	Failed    bool
	Reason    string // why it failed, as the person says; empty: no reason was given
	Why       string // it does not count
	// Outputs are as the person wrote them.
	Outputs map[workflow.DataName]workflow.Value
}

// KeptResults are the results that do not count, in the order of facts.
func (m *Machine) KeptResults() (out []KeptResult) {
	if m.state.People().Board == nil {
		return nil
	}
	for _, i := range m.state.People().Board.Items() {
		if a := m.state.Attempts()[fact.AttemptIDOf(i)]; a != nil {
			m.state.PlaceItem(a)
		}
		v, _ := m.state.People().Board.View(i)
		for _, w := range v.Works {
			if w.Counts || w.Why == "" {
				continue
			}
			e := m.log.ByID()[fact.ID(w.ID)]
			out = append(out, KeptResult{
				ID: e.ID, Item: i, Adoptable: m.state.Adoptable(e) == nil, Task: i.Slot, User: w.User, At: e.Fact.At,
				Failed: w.Failed, Reason: w.Reason, Why: w.Why, Outputs: w.Outputs,
			})
		}
	}
	return out
}

// MayAdopt reports whether a result that a person brought of an item does not count, and can still be adopted.
func (m *Machine) MayAdopt(i worklist.Item, u worklist.User) bool {
	return slices.ContainsFunc(m.KeptResults(), func(r KeptResult) bool {
		return r.Item == i && r.User == u && r.Adoptable
	})
}

// itemAhead is a person's task that is not ready and that can be locked before it is; false: it is not so.
func (m *Machine) itemAhead(a *state.Attempt, since *state.Moments) (v ItemView, waits bool) {
	if a == nil || a.Task.ByNode() || a.Undoes != nil {
		return v, false
	}
	awaits, _ := m.state.WaitsOf(a)
	if len(awaits) == 0 {
		return v, false
	}
	v = m.itemNow(a, since)
	v.Awaits, v.Begun = awaits, 0
	if f := m.state.HeldUp(a); f != nil {
		v.HeldUp = &HeldUp{
			Awaits: f.Awaits, Failed: f.Failed.Task.Name, At: f.Failed.Partner, Presumed: m.state.PresumedBy(f.Failed) != nil,
			Why: "it was called off",
		}
		if f.By != nil {
			v.HeldUp.Why = f.Failed.WhyFailed(f.By)
		}
	}
	return v, true
}

// Ahead are the tasks of people that are not ready, and that can be locked together with what they wait for: those
// that may be done offline, as far as nobody has chosen yet who sees them. What waits, perhaps by way of others, for what
// nobody can lock now is left out: for a program, say, or for what failed, unless somebody has it.
func (m *Machine) Ahead() (out []ItemView) {
	if !m.peopled || m.state.Overall() != workflow.InstanceRunning {
		return nil
	}
	since := state.Moments{S: m.state}
	can := map[workflow.TaskName]bool{}  // be locked
	for _, sl := range m.state.Slots() { // each after those that it waits for
		m.log.Steps++
		a := sl.Current
		if !a.Task.Offline || a.Task.ByNode() || !m.state.Wanted(a) || a.Success() != nil || a.EndedByHolder() {
			continue
		}
		if a.Start != nil || a.MayStart() {
			can[sl.Task.Name] = true
			continue
		}
		if m.state.Limits(a) {
			continue
		}
		v, waits := m.itemAhead(a, &since)
		if waits && sl.State != workflow.NotReady {
			if v.Holder != "" {
				out = append(out, v)
			}
			continue
		}
		if waits && !slices.ContainsFunc(v.Awaits, func(t workflow.TaskName) bool { return !can[t] }) {
			can[sl.Task.Name] = true
			out = append(out, v)
		}
	}
	return out
}
