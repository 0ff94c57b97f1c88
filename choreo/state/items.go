package state

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file tells the board of claims (package worklist) how the items of people's tasks stand. The board decides from
// that and from the claims who has an item, and what may be said of it.

// Work is the board of the instance. With it begins what is noted of claims.
func (s *State) Work() *worklist.Board {
	if s.peoples.Board == nil {
		s.peoples = People{
			Spoken: map[[sha256.Size]byte][]*log.Entry{}, Of: map[ClaimsOf][]*log.Entry{},
			done:   map[fact.AttemptID][]*log.Entry{},
			Idled:  map[Idler]Idled{},
			passed: map[fact.AttemptID][]*log.Entry{}, DueTo: map[fact.AttemptID][]*log.Entry{},
			reserved: map[fact.AttemptID][]*log.Entry{}, Keeps: map[workflow.PartitionName][]*log.Entry{},
		}
		terms := worklist.Terms{
			Instance: s.log.Instance(), Workflow: s.def.Name, Policy: s.policyAtStart(), Open: true,
			Responsible: s.Responsible(), Administrators: s.def.Administrators,
		}
		s.peoples.Board = worklist.New(terms, func(later, earlier worklist.ID) bool {
			l, e := s.log.ByID()[fact.ID(later)], s.log.ByID()[fact.ID(earlier)]
			return l != nil && e != nil && l != e && s.log.Knew(l, e)
		})
		s.placeStores()
	}
	return s.peoples.Board
}

// PlaceItems tells the board how the attempts of a slot stand of which something was claimed.
func (s *State) PlaceItems(sl *Slot) {
	if s.peoples.Board == nil && len(s.def.Resources) == 0 {
		return
	}
	s.Work()
	if s.flow != nil && sl == s.flow.Slot {
		s.placeTransitions()
	}
	for _, a := range s.MayUndoIn(sl) {
		if u := a.Undo; u != nil && !u.Task.ByNode() && (s.peoples.Board.Knows(ItemOf(u.ID)) || s.Limits(u)) {
			s.PlaceItem(u)
		}
	}
	for _, a := range sl.Attempts {
		if s.peoples.Board.Knows(ItemOf(a.ID)) || s.TransferOf(a) > 0 || s.Limits(a) || len(a.holds()) > 0 {
			s.PlaceItem(a)
		}
	}
}

// PlaceItem tells the board how an attempt stands.
func (s *State) PlaceItem(a *Attempt) {
	wanted := s.Wanted(a)
	ready := wanted && (a.Start != nil || a.MayStart())
	waits, people := s.WaitsOf(a)
	skipped := wanted && !ready && a.Slot.State == workflow.Skipped
	s.Work().Set(worklist.Place{
		Item: ItemOf(a.ID), Holder: a.Partner, Partition: s.plan.Home(a.Task.Name),
		Task: s.taskOf(a), Root: s.rootItem(a), Begun: a.Start != nil && a.Undoes == nil,
		Presumed: a.Undoes == nil && (a.Slot.State == workflow.Failed || a.Slot.Pending != nil),
		InCharge: s.inCharge(a), Stands: s.endOf(a), Ready: ready, Since: a.Noticed,
		Waits: waits, ByProgram: len(waits) > 0 && !people,
		Over: !wanted || skipped || a.Success() != nil ||
			a.EndedByHolder(), GivenUp: a.EndedByHolder(), Why: s.whyOver(a, wanted && !ready && len(waits) == 0),
		Unhandled: s.Unhandled(a), Failure: failureOf(a),
	})
}

// placeTransitions tells the board of claims how those transitions, and compensations of some, stand that people do.
// What is over is not looked at again, unless the line changes.
func (s *State) placeTransitions() {
	for _, a := range slices.SortedFunc(maps.Keys(s.flow.people), func(x, y *Attempt) int {
		return cmp.Or(x.ID.Fact.Compare(y.ID.Fact), cmp.Compare(x.ID.Slot, y.ID.Slot))
	}) {
		s.log.Steps++
		if i := ItemOf(a.ID); s.peoples.Board.Knows(i) || s.peoples.Board.Has(i) || s.Limits(a) {
			s.PlaceItem(a)
		}
		if !s.flow.Goes(a) {
			delete(s.flow.people, a)
		}
	}
}

// taskOf is what the board has to know of the task of an attempt. A deadline matters to it only where the item
// passes on as it is near, once it is known since when it can be done.
func (s *State) taskOf(a *Attempt) worklist.Task {
	t := worklist.Task{
		Role: a.Task.Role, ByNode: a.Task.ByNode(), Offline: a.Task.Offline,
		Priority: a.Task.Priority, Holds: a.holds(), Limited: s.Pulled(a),
	}
	if e := s.edition.dated[a.Task.Name]; e != nil {
		t.Renewed = worklist.Renewal{Time: e.Time, ID: worklist.ID(e.ID)}
	}
	if left := s.TransferOf(a); left > 0 && a.Noticed != 0 {
		t.Transfer = left
		t.Due = s.DueOf(a)
	}
	return t
}

// rootItem is the item for which units are given to an attempt; a zero one: its own.
func (s *State) rootItem(a *Attempt) worklist.Item {
	if r := a.Root(); len(a.holds()) > 0 && r != a {
		return ItemOf(r.ID)
	}
	return worklist.Item{}
}

// inCharge reports whether an attempt is in charge of its slot, or its success stands; of a transition, whether it is
// in the history that counts; of a compensation, whether it is under way, or undid that.
func (s *State) inCharge(a *Attempt) bool {
	if a.Undoes != nil {
		return s.Wanted(a) || a.Success() != nil
	}
	if a.Transition() {
		return s.flow.PendingJob(a) != nil || a.Success() != nil && a.Stands == Standing
	}
	if sl := a.Slot; sl.Pick != nil { // what else was done or begun is not needed
		return sl.Pick == a || a.Success() != nil && a.Stands == Standing
	}
	return a.Slot.Current == a
}

// endOf is the end of an item that the attempt's success follows, where there may be several; zero: the first.
func (s *State) endOf(a *Attempt) worklist.ID {
	ok := a.Success()
	if ok == nil || len(a.Successes) == 1 && ok.Fact.Body.Success != nil {
		return worklist.ID{}
	}
	if ok.Fact.Body.Success == nil {
		return worklist.ID(ok.ID)
	}
	for _, e := range slices.Backward(s.peoples.Of[ClaimsOf{Attempt: a.ID}]) {
		if _, closes := e.Fact.Body.Claim.Body().(worklist.Close); closes && s.log.Knew(ok, e) {
			return worklist.ID(e.ID)
		}
	}
	return worklist.ID{}
}

// failureOf is the verdict by which an attempt in charge failed; zero: it has not.
func failureOf(a *Attempt) worklist.ID {
	if sl := a.Slot; sl.Current == a && sl.Outcome != nil {
		return worklist.ID(sl.Outcome.At.ID)
	}
	return worklist.ID{}
}

// Answered reports whether somebody who may has decided what becomes of the failure of a slot.
func (s *State) Answered(sl *Slot) bool {
	if s.peoples.Board == nil || !s.peoples.Board.Knows(ItemOf(sl.Current.ID)) {
		return false
	}
	s.PlaceItem(sl.Current)
	return s.peoples.Board.Answered(ItemOf(sl.Current.ID))
}

// whyOver is why people cannot do an attempt any more, or not now if it waits, if that is not for its item's
// end; "": nothing more is to say than that it is over, or in another's hands.
func (s *State) whyOver(a *Attempt, waits bool) string {
	switch now := a.Slot.Current; {
	case a.Undoes != nil && !a.EndedByHolder():
		return "nothing is to be undone by it any more"
	case a.Transition():
		return s.whyStopped(a)
	case a.doneElse() != "":
		return a.doneElse()
	case a.EndedByHolder(), s.PresumedBy(a) == nil && now.Task.Name != a.Task.Name:
		return "the task had failed by then"
	case now.Task.Name != a.Task.Name:
		return presumedFor(now.Task.Called())
	case now == a && a.Slot.Pick == nil && a.Slot.over():
		return worklist.WasPresumed + ", and what waits for it goes on"
	case now != a && now.Partner == a.Partner:
		return "the task was begun once more"
	case now == a && s.cancel != nil:
		return "the instance was cancelled"
	case waits && s.endedByData(a):
		return "the data are final"
	case waits && a.Slot.barred:
		return "a strict constraint is broken, so nothing begins"
	case waits && a.Slot.State == workflow.Skipped:
		return "the task is not needed any more"
	case waits:
		return "what the task waits for is not so any more"
	}
	return ""
}

// PresumedBy is the verdict that prevails by which others presume that an attempt has failed, which its holder has not
// given up; nil: none.
func (s *State) PresumedBy(a *Attempt) *log.Entry {
	if a.Beside() || a.EndedByHolder() {
		return nil
	}
	if r := s.Prevailing(a.Rulings); r != nil {
		return r.At
	}
	return nil
}

// presumedFor is why an attempt is over that others presumed to have failed, and for which a task stands in, as people
// call it. It is no longer than partners may say it (worklists.Row).
func presumedFor(standsIn string) string {
	const by = ", and %s stands in for it"
	if why := worklist.WasPresumed + fmt.Sprintf(by, standsIn); len(why) <= workflow.MaxName {
		return why
	}
	return worklist.WasPresumed + fmt.Sprintf(by, "another")
}

// doneElse is why an attempt that its holder did not give up is not needed, where another has its slot; "": it is
// needed, or that is said otherwise.
func (a *Attempt) doneElse() string {
	pick := a.Slot.Pick
	switch {
	case pick == nil || pick == a || a.EndedByHolder() || a.Success() != nil && a.Stands == Standing:
		return ""
	case a.Task.Name != a.Slot.Task.Name && pick.Task.Name == a.Slot.Task.Name:
		return "the task that it stands in for was done after all"
	case a.Slot.Current == a:
		return "another result of the task counts"
	}
	return ""
}

// GoneAt is when the holder of an attempt wrote down something for the first time that knows why the attempt is not
// needed, or in whose hands its task is: by its clock (ms). 0: nothing yet, or that is not so.
func (s *State) GoneAt(a *Attempt) (ms int64) {
	if by := s.goneBy(a); by != nil {
		return s.WroteSince(a.Partner, by)
	}
	return 0
}

// WroteSince is when a partner wrote down something for the first time that knows of a fact: by its clock (ms). 0:
// nothing yet.
func (s *State) WroteSince(p workflow.PartnerID, by *log.Entry) (ms int64) {
	for _, c := range s.log.ByAuthor()[p] {
		for _, st := range c.Strands {
			i, _ := slices.BinarySearchFunc(st.Facts, true, func(e *log.Entry, _ bool) int {
				if s.log.Knew(e, by) {
					return 0
				}
				return -1
			})
			if i < len(st.Facts) && (ms == 0 || st.Facts[i].Fact.At < ms) {
				ms = st.Facts[i].Fact.At
			}
		}
	}
	return ms
}

// UnneededSince is since when an attempt is not needed, or a result of it was adopted: when that was written down, by the
// clock of whoever did (ms). 0: it is needed.
func (s *State) UnneededSince(a *Attempt) (ms int64) {
	if by := s.goneBy(a); by != nil {
		return by.Fact.At
	}
	if ok := a.Success(); ok != nil && ok.Fact.Body.Claim != nil {
		if _, adopts := ok.Fact.Body.Claim.Body().(worklist.Adopt); adopts {
			return ok.Fact.At
		}
	}
	return cmp.Or(s.skippedSince(a), s.abortedAt(a))
}

// skippedSince is since when the task of an attempt is not needed, as its rule cannot hold any more or an amendment
// took it out, by the clocks of those who wrote what it follows from (ms). 0: it is needed.
func (s *State) skippedSince(a *Attempt) (ms int64) {
	if a.Beside() || a.Slot.State != workflow.Skipped {
		return 0
	}
	m := Moments{S: s}
	if ms = m.rule(a.Slot); ms > 0 {
		return ms
	}
	for _, e := range s.edition.heavy {
		ms = max(ms, e.Fact.At)
	}
	return ms
}

// goneBy is the fact by which another attempt has the slot of one, or by which it ended without a result; nil: neither.
func (s *State) goneBy(a *Attempt) *log.Entry {
	if a.Beside() || s.inCharge(a) {
		return s.overBy(a)
	}
	if pick := a.Slot.Pick; pick != nil {
		return pick.Success()
	}
	if next := s.TakenOver(a); next != nil {
		return next.Assigned
	}
	if next := s.doneAgain(a); next != nil {
		return next.Assigned
	}
	if r := s.Prevailing(a.Rulings); r != nil {
		return r.At
	}
	return nil
}

// overBy is the fact by which an attempt ended that has no result, and that no other follows; nil: it has not.
func (s *State) overBy(a *Attempt) *log.Entry {
	ended := slices.IndexFunc(a.Rulings, func(r *Ruling) bool { return r.Final && !r.Void })
	switch {
	case a.Success() != nil:
		return nil
	case ended >= 0:
		return a.Rulings[ended].At
	case !a.Beside() && a.Slot.Outcome != nil && a.Slot.over():
		return a.Slot.Outcome.At
	case a.Undoes == nil && s.cancel != nil:
		return s.cancel
	case s.endedByData(a):
		return s.lastWrite(s.final)
	}
	return nil
}

// endedByData reports whether an attempt that nobody began is not needed, as the data are final.
func (s *State) endedByData(a *Attempt) bool {
	return !a.Beside() && a.Slot.barred && a.Slot.State == workflow.Skipped && s.IsFinal()
}

// whyStopped is whyOver for a transition.
func (s *State) whyStopped(a *Attempt) string {
	switch {
	case a.EndedByHolder():
		return "the task had failed by then"
	case s.cancel != nil:
		return "the instance was cancelled"
	case s.Interruption() != nil:
		return "the instance was interrupted"
	case s.abortedAt(a) == 0:
		return ""
	case s.def.Task(a.Task.Name) == nil:
		return "the task is not needed any more"
	}
	return "the instance was interrupted"
}

// abortedAt is when a transition ended without a result, as the instance was interrupted or an amendment took its task
// out: by the clock of who holds the flow (ms). 0: it did not.
func (s *State) abortedAt(a *Attempt) (ms int64) {
	if s.flow == nil || s.flow.Line == nil || !a.Transition() || a.Success() != nil {
		return 0
	}
	all := s.flow.Line.Board.History()
	for i := len(all) - 1; i >= 0; i-- { // it is mostly asked of what ended lately
		s.log.Steps++
		if r := &all[i]; r.Mark == dataflow.Aborted && r.Job == JobOf(a.ID) {
			return r.Ended
		}
	}
	return 0
}
