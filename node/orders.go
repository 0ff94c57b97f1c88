package node

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about those who decide about instances: who answers for one, and what such a
// person orders.

// responsible says who answers for a new instance: whom the start names, else the definition, else
// who starts it. The name is empty where nobody is named, the key where it is this partner.
func (k *desk) responsible(def *workflow.Definition, r api.StartRequest) (name workflow.UserName, key worklist.User, notes []string, err error) {
	starter, err := k.starter(r.User)
	if err != nil {
		return "", "", nil, err
	}
	named := cmp.Or(r.Responsible, string(def.Responsible))
	if named == "" {
		if r.User != "" || starter.ID != string(k.member.ID()) {
			name = workflow.UserName(starter.Name)
		}
		return name, k.keyOf(starter), nil, nil
	}
	who, err := k.persons.Anybody(named)
	if err == nil {
		return workflow.UserName(who.Name), k.keyOf(who), nil, nil
	}
	why := fmt.Sprintf("no user or partner that is known here is called %s, who is responsible", named)
	if k.people.called(named) {
		why = err.Error() // there are several of that name
	}
	instead := fmt.Sprintf("%s decides about the instance in place of %s", starter.Name, named)
	return workflow.UserName(starter.Name), k.keyOf(starter), []string{why, instead}, nil
}

// keyOf is a person as a genesis names it; empty: this partner.
func (k *desk) keyOf(who users.Who) worklist.User {
	if who.ID == string(k.member.ID()) {
		return ""
	}
	return worklist.User(who.ID)
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

// answersFor is who answers for an instance, for people.
func (vw *view) answersFor(h *held) workflow.UserName {
	g := h.m.Genesis().Body
	if name := g.Genesis.Responsible; name != "" && (g.Annex == nil || g.Annex.Responsible == "") {
		return name
	}
	return workflow.UserName(vw.partners.called(h.m.Responsible()))
}
