package choreo

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
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

// Speaker believes a word that is written as "USER at P: ROLE,ROLE".
func (testTrust) Speaker(word []byte, _ [32]byte) (fact.Speaker, error) {
	user, rest, ok := strings.Cut(string(word), " at ")
	at, roles, too := strings.Cut(rest, ": ")
	if !ok || !too {
		return fact.Speaker{}, errForgedHere
	}
	x := fact.Speaker{User: worklist.User(user), At: workflow.PartnerID(at)}
	for r := range strings.SplitSeq(roles, ",") {
		x.Roles = append(x.Roles, workflow.RoleName(r))
	}
	return x, nil
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

// People are those whom the test let in, who can be reached unless it says so (Partners).
func (w *mesh) People(r workflow.RoleName) (out []worklist.Person) {
	for _, u := range slices.Sorted(maps.Keys(w.people)) {
		p, _ := w.Person(u)
		if r == "" || slices.Contains(p.Roles, r) {
			p.Active, p.Connected = !w.away[u], w.came[u]
			out = append(out, p)
		}
	}
	return out
}

// WorksAt are the partners that the test says, where they can be reached (Partners).
func (w *mesh) WorksAt(u worklist.User) []workflow.PartnerID { return nil }

// Person is whom the test let in, with those roles (Partners).
func (w *mesh) Person(u worklist.User) (worklist.Person, bool) {
	p, known := w.people[u]
	return worklist.Person{User: u, Roles: p.Roles, Active: true}, known
}
