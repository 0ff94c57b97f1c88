package choreo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about who creates an instance, and proves to have the role that the definition wants of its
// creator (choreo/fact/beginning.go).

// signs shows with a genesis who creates the instance.
func (s Self) signs(genesis *fact.Fact) error {
	if s.Speak == nil {
		genesis.Body.Credentials = s.Credentials
		return nil
	}
	signed, err := genesis.Beginning()
	if err != nil {
		return err
	}
	genesis.Body.Annex.Word, err = s.Speak(signed)
	return err
}

// mayCreate says which user began an instance; nil: its author did, as the partner that it is. The error says
// that whoever it was does not show the role which the definition wants of its creator, or shows what is untrue.
func mayCreate(trust state.Trust, def *workflow.Definition, genesis *fact.Fact) (*fact.Speaker, error) {
	credentials, word := genesis.Body.Credentials, genesis.BegunWord()
	if def.CreatorRole == "" && len(credentials) == 0 && len(word) == 0 {
		return nil, nil
	}
	role := def.CreatorRole
	by, err := begunBy(trust, genesis)
	if by != nil && err == nil {
		if role != "" && !slices.Contains(by.Roles, role) {
			err = fmt.Errorf("user %s, who began it, does not have role %s, the certificates give %v", by.User, role,
				by.Roles)
		}
		role = ""
	}
	if err == nil && (by == nil || len(credentials) > 0) {
		err = state.Proves(trust, credentials, genesis.Chain.Author, role)
	}
	if err != nil {
		return nil, fmt.Errorf("workflow %s: %w", def.Name, err)
	}
	return by, nil
}

// begunBy is the user whose word is in a genesis; nil: there is none. It counts from the partner alone at whose
// node the user's key is.
func begunBy(trust state.Trust, genesis *fact.Fact) (*fact.Speaker, error) {
	if len(genesis.BegunWord()) == 0 {
		return nil, nil
	}
	signed, err := genesis.Beginning()
	if err != nil {
		return nil, err
	}
	if trust == nil {
		return nil, errors.New("this node trusts nobody's word")
	}
	who, err := trust.Speaker(genesis.BegunWord(), signed)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the word of the user who began it is not true: %w", err)
	case who.At != genesis.Chain.Author:
		return nil, fmt.Errorf("user %s, who began it, is at the node of %s, not of %s", who.User, who.At,
			genesis.Chain.Author)
	}
	return &who, nil
}

// BegunBy is the user who began the instance; nil: its initiator did, as the partner that it is.
func (m *Machine) BegunBy() *fact.Speaker { return m.begunBy }
