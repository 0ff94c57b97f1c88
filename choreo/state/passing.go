package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
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

// rolesAt are the roles by which people may do an attempt as far as a fact's author knew: that of its task,
// and those to which it was passed.
func (s *State) rolesAt(e *log.Entry, a *Attempt) []workflow.RoleName {
	out := []workflow.RoleName{a.Task.Role}
	for _, p := range s.peoples.passed[a.ID] {
		s.log.Steps++
		if x, is := p.Fact.Body.Claim.Body().(worklist.Transfer); is && s.log.Knew(e, p) {
			out = append(out, x.Role)
		}
	}
	return out
}

// entitledAt reports whether somebody may do an attempt, as far as a fact's author knew: by a role, or as the
// responsible user, to whom it had passed as its deadline was near.
func (s *State) entitledAt(e *log.Entry, a *Attempt, who fact.Speaker) bool {
	return a.Task.Role == "" || s.dueAt(e, a, who.User) ||
		slices.ContainsFunc(s.rolesAt(e, a), func(r workflow.RoleName) bool { return slices.Contains(who.Roles, r) })
}

// dueAt reports whether an attempt had passed to a user as its deadline was near, as far as a fact's author knew.
func (s *State) dueAt(e *log.Entry, a *Attempt, u worklist.User) bool {
	return u == s.Responsible() && slices.ContainsFunc(s.peoples.DueTo[a.ID],
		func(p *log.Entry) bool { return s.log.Knew(e, p) })
}

// elsewhere reports whether somebody cannot have an attempt, as far as a fact's author knew: its task names no role,
// so it is for people at its holder, and for the responsible user, wherever that one is, once it has passed on.
func (s *State) elsewhere(e *log.Entry, a *Attempt, who fact.Speaker) bool {
	return a.Task.Role == "" && who.At != a.Partner && !s.dueAt(e, a, who.User)
}

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
		return s.mayPassDue(a, x)
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

// ForOthers reports whether an item was passed to another role than its task's: nobody else is sought for it.
func (s *State) ForOthers(a *Attempt) bool {
	return s.peoples.Board != nil && len(s.peoples.passed[a.ID]) > 0 &&
		s.peoples.Board.Role(ItemOf(a.ID)) != a.Task.Role
}

// Passes reports whether somebody who decides about the instance passes an item on: that may be done from
// any node.
func (s *State) Passes(body worklist.Body, who fact.Speaker) bool {
	_, is := body.(worklist.Transfer)
	return is && s.Work().MayOrder(who.User, who.Roles) == ""
}

// mayPassDue says why an item may not pass on as its deadline is near; "": it may.
func (s *State) mayPassDue(a *Attempt, x worklist.Transfer) (why string) {
	switch {
	case s.TransferOf(a) == 0:
		return "its task does not pass on as its deadline is near"
	case x.To != s.Responsible():
		return "by a deadline an item passes to the responsible user alone"
	}
	return ""
}
