package choreo

import (
	"errors"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// testTrust takes a list of roles for credentials, and a word for an eviction.
type testTrust struct{}

var errForgedHere = errors.New("forged")

// Roles are the roles in the list; who has nothing to show has none.
func (testTrust) Roles(_ workflow.PartnerID, credentials []byte) (roles []workflow.RoleName, err error) {
	if len(credentials) == 0 || string(credentials) == "forged" {
		return nil, errForgedHere
	}
	for r := range strings.SplitSeq(string(credentials), ",") {
		roles = append(roles, workflow.RoleName(r))
	}
	return roles, nil
}

// Evicted checks the word.
func (testTrust) Evicted(p workflow.PartnerID, proof []byte) error {
	if string(proof) != "evicted "+string(p) {
		return errForgedHere
	}
	return nil
}

// Credentials are for all roles that the definition knows (Partners).
func (w *mesh) Credentials() []byte {
	roles := []string{string(w.def.CreatorRole)}
	for _, t := range w.def.Tasks {
		roles = append(roles, string(t.Role))
	}
	return []byte(strings.Join(roles, ","))
}

// Eviction proves what the test said (Partners).
func (w *mesh) Eviction(p workflow.PartnerID) []byte {
	if !w.evicted[p] {
		return nil
	}
	return []byte("evicted " + string(p))
}
