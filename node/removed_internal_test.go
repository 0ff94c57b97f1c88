package node

import (
	"errors"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// nameBook knows what users are or were called.
type nameBook struct {
	assignment.Accounts
	of map[users.ID]string
}

func (n nameBook) Called(id users.ID) string { return n.of[id] }

// User is known and signed in nowhere, but for bia, who was removed.
func (n nameBook) User(id users.ID, _ time.Time) (users.User, error) {
	switch name := n.of[id]; name {
	case "":
		return users.User{}, users.ErrNoUser
	case "bia":
		return users.User{}, users.ErrRemoved
	default:
		return users.User{ID: id, Name: name}, nil
	}
}

// noon is a clock that stands.
type noon struct{}

func (noon) Now() moment.Now { return moment.Now{} }

// A holder that refuses something about a user who was removed meanwhile says the name, which whoever asked knows, and
// no ID; of somebody of whom it never heard, the beginning of the ID.
func TestARefusalNamesWhoWasRemoved(t *testing.T) {
	bia, stranger, ze := users.ID{1}, users.ID{2}, users.ID{3}
	k := peoplesItems{desk: &desk{partners: &assignment.Partners{
		Surroundings: assignment.Surroundings{Clock: noon{}, Users: nameBook{of: map[users.ID]string{bia: "bia", ze: "ze"}}},
	}}}
	says := func(what string, err error, want string) {
		t.Helper()
		var no *api.Error
		if !errors.As(err, &no) || no.Message != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	transfer := func(to users.ID) error {
		err := error(&choreo.NoPerson{Task: "visit", Person: worklist.User(to.String())})
		if !errors.Is(err, state.ErrNotNow) {
			t.Error("it is no refusal")
		}
		return k.refusedClaim(err, "", nil, true)
	}
	says("passed to one who was removed", transfer(bia),
		"refused: the partner that holds visit knows no such person as bia, or it was removed")
	says("passed to nobody", transfer(stranger),
		"refused: the partner that holds visit knows no such person as "+stranger.Short()+", or it was removed")
	says("passed to one who never signed in", transfer(ze), "ze is signed in at no node: no worklist would show the item")
	says("a list", k.noPerson(worklist.User(bia.String())), "this node knows no such person as bia, or it was removed")
}
