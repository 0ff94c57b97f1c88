package node

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/turns"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// desk is where this node's user begins instances, looks at them and does something with
// them, wherever they are.
type desk struct {
	*contacts
	*crew
	view        *show.View
	people      *people
	partners    *assignment.Partners
	index       *index.List
	definitions holdings
	library     origins
	data        foundSets
	ledger      givenOut
	filing      taking
	retention   *retention
	wallet      rightful
	self        func() choreo.Self // for which partner new machines act
	overview    survey
	elections   chair
	persons     persons
	starts      turns.Of[[16]byte] // that were asked for with a key, by their nonces
}

// holdings are the definitions that are here.
type holdings interface {
	Resolve(ref string) (workflow.Hash, error)
	Get(workflow.Hash) (*library.Definition, error)
	// Label is what people call a definition that is here; empty: by its name.
	Label(workflow.Hash) string
	Keep(*library.Definition) error
	Piece(kind workflow.PieceKind, name string) *workflow.Piece
}

// origins say where a definition comes from, as the configuration asks it.
type origins interface {
	OriginOf(*library.Definition) configs.Origin
}

// foundSets are the data that need not be made by a new instance, as they are there.
type foundSets interface {
	Materialised(
		ctx context.Context, def *workflow.Definition, input map[workflow.DataName]workflow.Value,
	) (found []datasets.Materialised, missed []string)
}

// givenOut is the ledger, for what begins.
type givenOut interface {
	Choosing() (end func())
	Give(*choreo.Machine, []partition.Choice)
	TakeBack(workflow.InstanceID)
}

// taking has the content of files among values here, which a user or a task gave.
type taking interface {
	Given(
		def *workflow.Definition, instance string, by workflow.PartnerID,
		values map[workflow.DataName]workflow.Value, here bool,
	) error
}

// survey is what others reported to this node as the coordinator.
type survey interface {
	Accounts(workflow.InstanceID) []overview.Account
	Find(prefix string) []workflow.InstanceID
	Elsewhere(all bool, start int64, id workflow.InstanceID, limit int) []api.InstanceSummary
	Witness(overview.Account) api.Witness
	WitnessNow(workflow.PartnerID) api.Witness
}

// persons are those who are at this node, and others by name.
type persons interface {
	Who(ref string) (users.Who, error)
	Anybody(ref string) (users.Who, error)
	Here() []users.Who
	Speak(users.Who, [sha256.Size]byte) ([]byte, error)
}

// chair says who coordinates.
type chair interface{ Coordinator() workflow.PartnerID }

// locate finds the instance with an ID or a unique prefix of one. there is what
// others reported of it to this node, as the coordinator, if it takes no part in
// it itself.
func (k *desk) locate(ref string) (id workflow.InstanceID, there []overview.Account, err error) {
	prefix := strings.ToLower(strings.TrimSpace(ref))
	found := append(k.index.Find(prefix), k.overview.Find(prefix)...)
	slices.SortFunc(found, workflow.InstanceID.Compare)
	found = slices.Compact(found)
	if len(found) > 1 && prefix != "" {
		return id, nil, api.Errorf(api.Invalid, "%q begins the IDs of %d instances", prefix, len(found)).
			WithHint("give more of the ID")
	}
	if len(found) == 1 && prefix != "" {
		id = found[0]
		if _, here := k.index.Get(id); here {
			return id, nil, nil
		}
		if there = k.overview.Accounts(id); len(there) > 0 {
			return id, there, nil
		}
	}
	if err := k.retention.findClosed(prefix); err != nil {
		return id, nil, err
	}
	return id, nil, api.Errorf(api.NotFound, "no instance %q here", prefix).
		WithHint("list them: mutirao instances --all")
}

// onlyThere refuses to do something with an instance that this node only hears of.
func (k *desk) onlyThere(accounts []overview.Account) error {
	return api.Errorf(api.Refused, "this node takes no part in instance %s, it only hears of it as the coordinator",
		accounts[0].Instance).
		WithHint("do it on a node that takes part, such as %s", k.people.label(accounts[0].By))
}

// with has fn run on the owner of an instance, found by ID or prefix.
func (k *desk) with(ctx context.Context, ref string, fn func(*shard, *held) error) error {
	id, there, err := k.locate(ref)
	switch {
	case err != nil:
		return err
	case there != nil:
		return k.onlyThere(there)
	}
	return k.do(ctx, id, func(s *shard) error {
		h, err := s.find(id)
		if err != nil {
			return err
		}
		err = fn(s, h)
		s.touch(h)
		return err
	})
}

// look has here read an instance, found by ID or prefix, on its owner. It shows
// what is durable, and works on a disk that takes no writes. For an instance that
// others reported, there is called instead.
func (k *desk) look(ctx context.Context, ref string, here func(*held), there func([]overview.Account) error) error {
	id, elsewhere, err := k.locate(ref)
	switch {
	case err != nil:
		return err
	case elsewhere != nil:
		return there(elsewhere)
	}
	return k.peek(ctx, id, here)
}

// birth is how an instance begins that is for a task of another (nested.go).
type birth struct {
	parent      *fact.Parent
	input       map[workflow.DataName]workflow.Value
	responsible workflow.UserName
	decides     worklist.User
	uses        []fact.Pin
	begunBy     *fact.Speaker // the user who began the parent; nil: its initiator did
}

// inputs are the values with which an instance begins: those of its birth, or else given as texts.
func (b *birth) inputs(
	def *workflow.Definition, given map[string]string, null []string,
) (map[workflow.DataName]workflow.Value, error) {
	if b != nil {
		return maps.Clone(b.input), nil
	}
	return inputs(def, given, null)
}

// lacks says that this node may not do something for want of a role.
func (k *desk) lacks(role workflow.RoleName, what string) error {
	k.count("refused.role", 1)
	return k.lacking(role, what)
}

// lacking is the refusal of what a role that this node lacks is for.
func (k *desk) lacking(role workflow.RoleName, what string) *api.Error {
	leaf := k.wallet.Chain().Leaf()
	return api.Errorf(api.NotAllowed, "%s may not %s: role %s does that, and its certificate gives it %s", leaf.Name,
		what, role, orNone(leaf.Roles)).
		WithHint("roles come with the invitation: a partner that may invite makes one with --role %s", role)
}

func orNone(roles []workflow.RoleName) string {
	if len(roles) == 0 {
		return "no role"
	}
	return strings.Join(texts(roles), ", ")
}

// nobodyAnswers reports whether a responsible user is gone for good: a user who was removed or is signed in nowhere any
// more, or a partner that was evicted or has left for good.
func (k *desk) nobodyAnswers(of worklist.User) bool {
	_, known := k.partners.Person(of)
	return !known || k.people.GoneForGood(workflow.PartnerID(of))
}
