package state

import (
	"cmp"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says for whom a person's task is: for those who show one of the roles that it is for, for people at its
// holder if it names none, and for the user who decides about the instance once it has passed to that one.

// Responsible is the user who decides about the instance.
func (s *State) Responsible() worklist.User {
	if a := s.log.Genesis().Fact.Body.Annex; a != nil && a.Responsible != "" {
		return a.Responsible
	}
	return worklist.User(s.log.Genesis().Fact.Chain.Author)
}

// TransferAt is with how much time left before its deadline a task passes to the responsible user; 0: never.
func (s *State) TransferAt(t *workflow.Task) time.Duration { return s.transferBy(s.def, t) }

// transferBy is the same of a task of an edition. What the start of the instance says is in place of what the
// definition said then, and an amendment in place of both.
func (s *State) transferBy(d *workflow.Definition, t *workflow.Task) time.Duration {
	x, was := s.log.Genesis().Fact.Body.Annex, cmp.Or(s.original.Task(t.Name), &workflow.Task{})
	is := cmp.Or(t.Transfer, d.Transfer)
	switch {
	case t.Deadline == nil || t.ByNode():
		return 0
	case x != nil && x.Transfer > 0 && is == cmp.Or(was.Transfer, s.original.Transfer):
		return x.Transfer
	}
	return is
}

// warningsOf are with how much time left before its deadline people are warned of a task, likewise.
func (s *State) warningsOf(t *workflow.Task) []time.Duration {
	x, was := s.log.Genesis().Fact.Body.Annex, cmp.Or(s.original.Task(t.Name), &workflow.Task{})
	of := func(t *workflow.Task, d *workflow.Definition) []time.Duration {
		if t.Warnings != nil {
			return t.Warnings
		}
		return d.Warnings
	}
	is := of(t, s.def)
	if x != nil && len(x.Warnings) > 0 && slices.Equal(is, of(was, s.original)) {
		return x.Warnings
	}
	return is
}

// TransferOf is the same of an attempt.
func (s *State) TransferOf(a *Attempt) time.Duration {
	if a.Undoes != nil {
		return 0
	}
	return s.TransferAt(a.Task)
}

// HoldOf is who has the item of an attempt; false: nobody.
func (s *State) HoldOf(a *Attempt) (worklist.Standing, bool) {
	if s.peoples.Board == nil {
		return worklist.Standing{}, false
	}
	return s.peoples.Board.Holds(ItemOf(a.ID))
}

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

// ForOthers reports whether an item was passed to another role than its task's: nobody else is sought for it.
func (s *State) ForOthers(a *Attempt) bool {
	return s.peoples.Board != nil && len(s.peoples.passed[a.ID]) > 0 &&
		s.peoples.Board.Role(ItemOf(a.ID)) != a.Task.Role
}

// elsewhere reports whether somebody cannot have an attempt, as far as a fact's author knew: its task names no role,
// so it is for people at its holder, and for the responsible user, wherever that one is, once it has passed on.
func (s *State) elsewhere(e *log.Entry, a *Attempt, who fact.Speaker) bool {
	return a.Task.Role == "" && who.At != a.Partner && !s.dueAt(e, a, who.User)
}

const notHere = "its task names no role: it is for people at its holder"
