package node

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about who starts an instance, and may where its workflow wants a role of its creator: a user by
// the roles of the user, the partner by those of its certificate. The genesis shows it to everybody
// (choreo/fact/beginning.go).

// creator is who starts an instance: what is for a task of another instance this partner does.
func (k *desk) creator(r api.StartRequest, b *birth) (users.Who, error) {
	if b != nil {
		return k.persons.Who(string(k.member.ID()))
	}
	return k.starter(r.User)
}

// starter is the person who starts an instance: the one that is named, else the one user who is
// signed in here, else the partner.
func (k *desk) starter(ref string) (users.Who, error) {
	who, err := k.persons.Who(ref)
	var e *api.Error
	if ref == "" && errors.As(err, &e) && e.Code == api.Invalid { // several are signed in
		return k.persons.Who(string(k.member.ID()))
	}
	return who, err
}

// forWhom has a refusal of what somebody may not do say for whom it was asked, where nobody was named (ref) and one
// user is signed in here, who was meant therefore.
func (k *desk) forWhom(ref string, err error) error {
	var no *api.Error
	if err = Explain(err, k.people.label); ref != "" || !errors.As(err, &no) || no.Code != api.NotAllowed {
		return err
	}
	who, unnamed := k.persons.Who("")
	if unnamed != nil || who.ID == string(k.member.ID()) {
		return err
	}
	hint := "for the partner: --user " + k.people.name(k.member.ID())
	if no.Hint != "" {
		hint = no.Hint + "; " + hint
	}
	return api.Errorf(no.Code, "for %s, who is signed in here: %s", who.Name, no.Message).WithHint("%s", hint)
}

// creating is for whom a new machine acts that somebody creates here.
func (k *desk) creating(by users.Who) choreo.Self {
	self := k.self()
	self.Credentials = k.people.Credentials()
	if by.ID != string(k.member.ID()) {
		self.Speak = func(signed [sha256.Size]byte) ([]byte, error) { return k.persons.Speak(by, signed) }
	}
	return self
}

// mayCreate refuses whoever lacks the role that starts a workflow. A child is started by this partner, for a task.
func (k *desk) mayCreate(def *workflow.Definition, by users.Who, child bool) error {
	role := def.CreatorRole
	if role == "" || slices.Contains(k.rolesOf(by), role) {
		return nil
	}
	what := fmt.Sprintf("start workflow %s", def.Name)
	if child {
		return k.lackingAs(by, role, what).WithHint("%s", k.howAChildStarts(def.Name, role))
	}
	may := slices.IndexFunc(k.persons.Here(),
		func(w users.Who) bool { return slices.Contains(k.rolesOf(w), role) })
	if may >= 0 {
		other := k.persons.Here()[may].Name
		return k.lackingAs(by, role, what).WithHint("%s has that role here: start it with --user %s", other, other)
	}
	if by.ID == string(k.member.ID()) {
		return k.lacking(role, what).WithHint("%s", k.whoStarts(role))
	}
	return k.lackingAs(by, role, what).WithHint("an administrator gives it: mutirao role grant %s %s", by.Name, role)
}

// howAChildStarts says what helps where the partner that holds a task lacks the role that starts the task's child: no
// user starts it, so the role must be a partner's.
func (k *desk) howAChildStarts(child workflow.Name, role workflow.RoleName) string {
	if slices.Contains(k.partners.OwnRoles(), role) {
		return "whoever holds the task needs that role by its certificate: list it under roles of the task's partition"
	}
	return fmt.Sprintf("whoever holds the task starts it, and no partner has that role: have one join with it (mutirao invite --role %s) "+
		"and list it under roles of the task's partition; or leave creator-role out of workflow %s", role, child)
}

// whoStarts says what helps where nobody at this node has the role that starts a workflow.
func (k *desk) whoStarts(role workflow.RoleName) string {
	switch {
	case slices.Contains(k.partners.UserRoles(), role):
		return "start it at a node where a user who has it is signed in: mutirao role list"
	case slices.Contains(k.partners.OwnRoles(), role):
		return "start it at the node of a partner that has it: mutirao partners"
	}
	return partition.JoinWith(role)
}

// lackingAs is the refusal of what a role that a person at this node lacks is for: the partner is told as it is of all
// that it lacks a role for.
func (k *desk) lackingAs(who users.Who, role workflow.RoleName, what string) *api.Error {
	if who.ID == string(k.member.ID()) {
		return k.lacking(role, what)
	}
	return api.Errorf(api.NotAllowed, "%s may not %s: role %s does that, and as a user %s has %s", who.Name, what, role,
		who.Name, orNone(k.rolesOf(who)))
}

// anybodyMayCreate is mayCreate of whoever is at this node.
func (k *desk) anybodyMayCreate(def *workflow.Definition) error {
	by, err := k.starter("")
	if err != nil {
		return err
	}
	for _, who := range k.persons.Here() {
		if k.mayCreate(def, who, false) == nil {
			return nil
		}
	}
	return k.mayCreate(def, by, false)
}

// rolesOf are those of a person at this node, as they are known now.
func (k *desk) rolesOf(who users.Who) []workflow.RoleName {
	person, known := k.partners.Person(worklist.User(who.ID))
	if !known {
		return nil
	}
	return person.Roles
}

// unstartable notes which tasks of a new instance will fail, as things are, as their workflow wants a role of its
// creator: of whoever has the task, and of whoever begins the instance. Roles may come meanwhile, and contingencies may
// take over.
func (k *desk) unstartable(e *library.Definition, uses []fact.Pin, g *fact.Genesis, by users.Who) (notes []string) {
	for _, t := range e.Def.Written() {
		if t.Uses == nil {
			continue
		}
		i := slices.IndexFunc(uses, func(p fact.Pin) bool { return p.Workflow == t.Uses.Workflow })
		if i < 0 {
			continue
		}
		sub, err := k.definitions.Get(uses[i].Definition)
		if err != nil || sub.Def.CreatorRole == "" {
			continue
		}
		role, home := sub.Def.CreatorRole, e.Plan.Home(t.Name)
		begins := k.people.HasRole(k.member.ID(), role)
		if e.Def.CreatorRole != "" { // then it is on record which user begins it
			begins = slices.Contains(k.rolesOf(by), role)
		}
		if !begins {
			notes = append(notes, fmt.Sprintf("task %s will fail: %s, which begins this instance, may not start workflow %s: role %s does that",
				t.Name, k.beginner(e.Def, by), sub.Def.Name, role))
		}
		for _, at := range g.Assign {
			if at.Partition == home && !k.people.HasRole(at.Partner, role) {
				notes = append(notes, fmt.Sprintf("task %s will fail: %s, which has it, may not start workflow %s: role %s does that",
					t.Name, k.people.label(at.Partner), sub.Def.Name, role))
			}
		}
	}
	return notes
}

// beginner is who counts as having begun an instance: the user only where its workflow wants a role of its creator.
func (k *desk) beginner(def *workflow.Definition, by users.Who) string {
	if def.CreatorRole == "" {
		return k.people.label(k.member.ID())
	}
	return by.Name
}

// mayHaveCreated refuses a child whose workflow wants a role of its creator that somebody lacks who
// began an instance above it: nobody has others start what it may not start itself. Where a user's word began the
// parent, the user is asked for the role.
func (k *desk) mayHaveCreated(def *workflow.Definition, b *birth) error {
	if b == nil || def.CreatorRole == "" {
		return nil
	}
	line := b.parent.Line
	for i, p := range line {
		has, who := p == k.member.ID() || k.people.HasRole(p, def.CreatorRole), k.people.label(p)
		if by := b.begunBy; by != nil && i == len(line)-1 {
			has, who = slices.Contains(by.Roles, def.CreatorRole), k.partners.Called(by.User)
		}
		if has {
			continue
		}
		no := api.Errorf(api.NotAllowed,
			"%s, which began an instance that it is part of, may not start workflow %s: role %s does that", who, def.Name,
			def.CreatorRole)
		if b.begunBy == nil && i == len(line)-1 { // whoever started it was not asked for a role
			return no.WithHint("have a partner with that role start the outermost workflow; for a user to count who has it, the workflow that uses it needs creator-role: %s, too",
				def.CreatorRole)
		}
		return no.WithHint("have somebody with that role start the outermost workflow")
	}
	return nil
}
