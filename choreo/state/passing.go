package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about passing a person's task on: to somebody, to another role, or back to those for whom it
// is (docs/worklists.md, Passing on). The word is that of whoever has the item, or of those who decide about
// the instance; the holder of the attempt writes it down, and it ends the grant that there is. A result
// that reached the holder before counts; one that comes after is kept.
//
// What is handed to somebody is kept for an hour for that one to take. It gives nothing but that: by
// taking it the person shows the role. An item that was passed to another role may be ended by whoever
// shows that one, as by whoever shows the role of the task.

// notePassed notes that an item was passed to a role, or to the responsible user as its deadline was near.
func (s *State) notePassed(e *log.Entry, a *Attempt, x worklist.Transfer) {
	switch {
	case x.Role != "":
		s.peoples.passed[a.ID] = append(s.peoples.passed[a.ID], e)
	case x.Cause == worklist.ByDeadline:
		s.peoples.DueTo[a.ID] = append(s.peoples.DueTo[a.ID], e)
	}
}

// mayPass says why an item may not be passed on as a person asks; "": it may, as far as that can be told
// from the past of the fact. Whether the person still had it says the board.
func (s *State) mayPass(e *log.Entry, a *Attempt, x worklist.Transfer, who fact.Speaker) (why string) {
	switch {
	case x.Cause == worklist.ByDeadline:
		return s.mayPassDue(e, a, x)
	case s.Work().MayOrder(who.User, who.Roles) == "":
		return ""
	case !s.givenTo(e, x.Item, x.Grant, who.User):
		return "whoever passes it on was not given it, as its author knew, and does not answer for the instance"
	case s.elsewhere(e, a, who):
		return notHere
	case !s.entitledAt(e, a, who):
		return "whoever passes it on does not show the role"
	}
	return ""
}

// givenTo reports whether a grant that a fact's author knew gave an item to somebody.
func (s *State) givenTo(e *log.Entry, i worklist.Item, grant worklist.ID, u worklist.User) bool {
	g := s.log.ByID()[fact.ID(grant)]
	if g == nil || !g.Counted || g.Fact.Body.Claim == nil || !s.log.Knew(e, g) {
		return false
	}
	switch x := g.Fact.Body.Claim.Body().(type) {
	case worklist.Grant:
		return g.Speaker().User == u && slices.Contains(x.Items, i)
	case worklist.Transfer:
		return x.To == u && x.Item == i
	}
	return false
}

// Passes reports whether somebody who decides about the instance passes an item on: that may be done from
// any node.
func (s *State) Passes(body worklist.Body, who fact.Speaker) bool {
	_, is := body.(worklist.Transfer)
	return is && s.Work().MayOrder(who.User, who.Roles) == ""
}

// mayPassDue says why an item may not pass on as its deadline is near, as the author of the fact knew that; "": it may.
func (s *State) mayPassDue(e *log.Entry, a *Attempt, x worklist.Transfer) (why string) {
	v := s.EvidenceOf(e)
	switch t := v.task(a.Task); {
	case t == nil || a.Undoes != nil || s.transferBy(v.under(), t) == 0:
		return "its task does not pass on as its deadline is near"
	case x.To != s.Responsible():
		return "by a deadline an item passes to the responsible user alone"
	}
	return ""
}
