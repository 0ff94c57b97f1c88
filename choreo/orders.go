package choreo

import (
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about those who decide about an instance: the responsible user, whom its genesis
// names by key, and administrators, by a role that the definition names and that their word
// proves (docs/worklists.md, Who decides).

// responsible is the user who decides about the instance.
func (s *State) responsible() worklist.User {
	if a := s.log.genesis.fact.Body.Annex; a != nil && a.Responsible != "" {
		return a.Responsible
	}
	return worklist.User(s.log.genesis.fact.Chain.Author)
}

// Responsible is the user who decides about the instance, by key: whom the genesis names, else
// its initiator, who is a user by being a partner.
func (m *Machine) Responsible() worklist.User { return m.state.responsible() }
