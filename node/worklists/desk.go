package worklists

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/turns"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
	"github.com/mutirao-mesh/mutirao/worklist/own"
)

// The requests: which tasks of a partner a person has or may take, what is needed to do one of them, and
// to write down what a person says.
const (
	ProtocolItems = "/mutirao/items/1.0.0"
	ProtocolItem  = "/mutirao/item/1.0.0"
	// ProtocolAhead asks for those that are not ready yet, and that a person may lock before they are.
	ProtocolAhead = "/mutirao/items-ahead/1.0.0"
	ProtocolClaim = "/mutirao/claim/1.0.0"
	// ProtocolTarget asks what an order of a person would be about.
	ProtocolTarget = "/mutirao/target/1.0.0"
	// ProtocolBasis asks with what an amendment of an instance is compared, ProtocolAmend to write one down.
	ProtocolBasis = "/mutirao/amend-basis/1.0.0"
	ProtocolAmend = "/mutirao/amend/1.0.0"
	// ProtocolSight has an instance shown to a person who decides about it.
	ProtocolSight = "/mutirao/sight/1.0.0"
	// ProtocolStuck asks which instances wait for a person who decides about them.
	ProtocolStuck = "/mutirao/stuck/1.0.0"
	// ProtocolKept asks for a result that is kept, and that a person may adopt.
	ProtocolKept = "/mutirao/kept/1.0.0"
	// ProtocolGiven asks the holder of an item whether it has a file that was given with a result of that.
	ProtocolGiven = "/mutirao/file-given/1.0.0"
	// ProtocolChanged says that a list which the receiver asked for is another by now.
	ProtocolChanged = "/mutirao/items-changed/1.0.0"
	// ProtocolFollow compares what a user set and read, with another node of the same user.
	ProtocolFollow = "/mutirao/follow/1.0.0"
	// ProtocolLoads says how much people have to do of the items that the sender holds.
	ProtocolLoads = "/mutirao/people-loads/1.0.0"
	// ProtocolReader asks whether a partner may read a file that was given for the receiver.
	ProtocolReader = "/mutirao/file-reader/1.0.0"
)

const (
	// listPatience is how long a partner is waited for that is asked for a list, and
	// claimPatience for one that is to make something durable; keptPatience, where that can be kept here for later.
	listPatience  = 2 * time.Second
	claimPatience = api.HolderAnswersIn
	keptPatience  = api.KeptAfter
	// askedAtOnce is how many partners are asked at a time.
	askedAtOnce = 16
)

// Instances are those in which this node takes part.
type Instances interface {
	// Items are the tasks of people that this node knows of and that a person at a partner's
	// node has, had, or may take: in one instance, or, with the zero ID, in all.
	Items(ctx context.Context, person worklist.User, at workflow.PartnerID, only workflow.InstanceID) ([]Row, error)
	// LostLately are the items that a person at this node had since a moment in instances here that have ended, the newest.
	LostLately(ctx context.Context, person worklist.User, since time.Time) ([]Row, error)
	// Ahead are those that a person may lock before they are ready, together with what they wait for.
	Ahead(ctx context.Context, person worklist.User, at workflow.PartnerID, only workflow.InstanceID) ([]Row, error)
	// Sheet is one of them, with what is needed to do it.
	Sheet(ctx context.Context, person worklist.User, at workflow.PartnerID, id workflow.InstanceID, item string) (*Row,
		*Sheet, error)
	// Claim has this node as the holder write down the word of a person at a partner's node. It
	// returns when that is durable. Whoever watches sees before that how things are then.
	Claim(
		ctx context.Context, from workflow.PartnerID, id workflow.InstanceID, c *fact.Claim, watch *Watch,
	) (choreo.Claimed, error)
	// InVain refuses what a person says of an instance where it counts for nothing any more, unless it was written down.
	InVain(ctx context.Context, id workflow.InstanceID, c *fact.Claim) error
	// Amend is Claim of an amendment that was compared with a definition. Where the instance runs by another it is
	// refused, unless it was written down before.
	Amend(
		ctx context.Context, from workflow.PartnerID, id workflow.InstanceID, c *fact.Claim, of workflow.Hash,
	) (choreo.Claimed, error)
	// Basis is with what an amendment of an instance here is compared, as it is told to another node. A person who may
	// not decide about it is refused.
	Basis(ctx context.Context, ref string, by worklist.User) ([]byte, error)
	// Look is what is to be shown of an instance here, to a person. One who neither decides about it nor has, or had, an
	// item of it is refused.
	Look(ctx context.Context, id workflow.InstanceID, by worklist.User, x Look) (any, error)
	// Stuck are instances here that wait for a person who decides about them, and running ones in which the person has, or
	// had, an item: at most so many, the newest, those that wait first.
	Stuck(ctx context.Context, by worklist.User, most int) ([]Stuck, error)
	// Target is what an order is about: a task, or, empty, the instance. A person who may not
	// decide about it is refused.
	Target(ctx context.Context, ref string, task workflow.TaskName, by worklist.User) (Target, error)
	// Kept is a result that is kept, by its ID or the beginning of it. A person who may not decide about
	// the instance is refused, and so is what cannot be adopted.
	Kept(ctx context.Context, ref, result string, by worklist.User) (Target, error)
	// Cancel has this node, as the partner that it is, cancel an instance.
	Cancel(ctx context.Context, id workflow.InstanceID, reason string) error
	// Over are those items of an instance that can be done no more, as far as is known here.
	Over(ctx context.Context, id workflow.InstanceID, of []worklist.Item) ([]worklist.Item, error)
	// MadeBy are, of these tasks of an instance, the results of people that count, as far as is known here.
	MadeBy(ctx context.Context, id workflow.InstanceID, of []workflow.TaskName) ([]worklist.Basis, error)
	// Here reports whether something of an instance is kept here.
	Here(id workflow.InstanceID) bool
	// Messages are what a person is told of the instances here, and when there may be one more (Boot; 0: never).
	Messages(ctx context.Context, person worklist.User) ([]Told, time.Duration, error)
}

// Watch has Sees look at what an instance has for a person at a partner's node once the person's word is durable: the
// rows of Items, and Sheet for each. It is where the instance is, so it must not wait; and Sees may be called after
// whoever asked has stopped waiting.
type Watch struct {
	Person worklist.User
	Sees   func(rows []Row, sheet func(*Row) *Sheet)
}

// Persons are those who are at this node, and what is known of others.
type Persons interface {
	Who(ref string) (users.Who, error)
	// Anybody is a user or a partner of the mesh, by name or whole ID.
	Anybody(ref string) (users.Who, error)
	// Here are all of them.
	Here() []users.Who
	Speak(w users.Who, signed [sha256.Size]byte) ([]byte, error)
	MaySpeak(word []byte, signed [sha256.Size]byte, from workflow.PartnerID) error
	// Speaker is whose word that is; empty: it is nobody's.
	Speaker(word []byte, signed [sha256.Size]byte) string
	// MayStillBring is MaySpeak for a result, also of a user who was removed, or whose key's certificate has ended: that is
	// expired.
	MayStillBring(word []byte, signed [sha256.Size]byte, from workflow.PartnerID) (expired bool, err error)
	MayAsk(person string, from workflow.PartnerID) error
	// Elsewhere are the users here who are signed in at other nodes, too, with those.
	Elsewhere() []users.Elsewhere
	// Removed reports whether a person is a user who was removed for good.
	Removed(person string) bool
}

// People are the users of the mesh.
type People interface {
	Persons
	// Called is what people call a person.
	Called(u worklist.User) string
	// SomebodyHas reports whether somebody is known who has a role.
	SomebodyHas(r workflow.RoleName) bool
}

// Peers are the members that are connected, and that may be asked something.
type Peers interface {
	Up(p workflow.PartnerID) bool
	UpPeers() []workflow.PartnerID
	Refuse(why string, p workflow.PartnerID)
	Request(
		ctx context.Context, p workflow.PartnerID, addrs []string, protocol string, req []byte, wait time.Duration,
	) ([]byte, error)
}

// Surroundings are what worklists need of the rest of a node.
type Surroundings struct {
	Self      workflow.PartnerID
	Clock     interface{ Now() moment.Now }
	Log       *slog.Logger
	Peers     Peers
	People    People
	Instances Instances
	Loads     Loads
	Store     Store
	// Nudge has the node look at once for what is due, Aside runs something beside the rest.
	Nudge func()
	Aside func(func())
	// Waits: others act while one waits, so that several partners are asked at a time.
	Waits func() bool
	// Watched: somebody watches what changes. Publish tells them that something did.
	Watched func() bool
	Publish func(api.Event)
	// Random gives so many random bytes.
	Random func(n int) []byte
	// Name is what people call a partner, Explain an error in words for people, and Known how old something
	// is; empty: it is not old. Partner is whom people call so.
	Name    func(workflow.PartnerID) string
	Partner func(ref string) (workflow.PartnerID, error)
	Explain func(error) error
	Known   func(time.Time) string
	// Witness is a partner that said something, and when.
	Witness func(workflow.PartnerID, time.Time) api.Witness
	// Absent says that a partner is away as it announced; nil: it is not.
	Absent func(workflow.PartnerID) *api.Absence
	// Heard is when a partner gave a sign of life for the last time; zero: it is not known.
	Heard func(workflow.PartnerID) time.Time
	// Gone reports whether a partner is not a member any more, for good, and Evicted whether it was removed.
	Gone    func(workflow.PartnerID) bool
	Evicted func(workflow.PartnerID) bool
	// Has reports whether all of a file is here, and Lacks how many bytes of it are not. Rate is how many bytes a
	// second of files come from the quickest of these partners that is connected, as measured lately; 0: none came yet.
	Has   func(workflow.File) bool
	Lacks func(workflow.File) int64
	// NoRoom is how many bytes of room there lack here for what is missing of files; 0: none.
	NoRoom func([]Content) int64
	// OnlyHere reports whether a file is here that no partner is known to have whole. Got notes that one says so.
	OnlyHere func(workflow.File) bool
	Got      func(workflow.File, workflow.PartnerID)
	Rate     func([]workflow.PartnerID) int64
	// Give notes, durably, that a file was given here for an instance. HasGiven reports whether all of a file is on this
	// node's disk that a partner gave with a result that counted here.
	Give     func(workflow.File, workflow.InstanceID) error
	HasGiven func(context.Context, workflow.PartnerID, workflow.InstanceID, workflow.DataName, workflow.File) (bool, error)
	// Vouch returns an error if a partner, or a user there, may not read a file that another partner gave.
	Vouch func(ctx context.Context, gave, reader workflow.PartnerID, user string, id workflow.InstanceID,
		item workflow.DataName, f workflow.File) error
	// Away is since when this node is out of contact on purpose. Until is when it is back, as it announced; nil: it did
	// not.
	Away  func() (since time.Time, away bool)
	Until func() *time.Time
	// ConnectionTime is that of a partner, or this node's if that is longer.
	ConnectionTime func(workflow.PartnerID) time.Duration
	// Runs reports whether this device has an application, as its configuration or its profile says.
	Runs func(workflow.ApplicationName) bool
	// MayLock is why this device locks nothing now; nil: it does.
	MayLock func() error
}

// Rations of a member: lists that it asks for, and words that it brings.
var (
	listRation  = ration.Ration{Burst: 600, Each: 100 * time.Millisecond}
	claimRation = ration.Ration{Burst: 120, Each: 250 * time.Millisecond}
)

// Desk is where people's work is asked for, and given out.
type Desk struct {
	in            Surroundings
	lists, claims *ration.Budgets
	tells         *ration.Budgets
	follows       *ration.Budgets
	hears         *ration.Budgets
	changes       changes
	follow        follow
	tolds         tolds
	denials       denials

	mu       sync.Mutex       // guards what follows, also while it is made durable
	kept     map[string]*kept // by key in the store
	refusals map[string]*kept // likewise: results that were refused
	// adoptions are those that count by now, of which their users are told.
	adoptions map[string]*kept
	// Awake: when it is looked at whether they count by now, and which was looked at last.
	refusedNext time.Duration
	refusedLast string
	// adoptedAsked is when the holders of what a user brought were asked that at last, as its user looked (Awake).
	adoptedAsked map[string]time.Duration
	// standing are results that counted, as their holders said last, by key; standingNext is from when
	// on (Awake) these may be asked again.
	standing     map[string]*kept
	standingNext time.Duration
	// turns are at items of which this device changes just now how a user has them, by user and item.
	turns turns.Of[string]
	// putOffAsked is when the holders of what was put off were asked what it came to at last, as somebody looked
	// (Awake).
	putOffAsked time.Duration
	next        time.Duration // Awake: when it is tried to hand in what waits
	delivering  bool
	heard       map[string]map[workflow.PartnerID]*heard // by user
	silent      map[string][]workflow.PartnerID          // by user: who did not answer at last
	// by user and item: of whom it was taken from here
	taken    map[string]map[string]took
	losses   map[string]string                         // by key in the store: why it was lost, as is noted there
	seen     map[workflow.InstanceID]map[string]*marks // messages that were read, by user
	staleAt  int                                       // which of them was looked at last
	alarm    alarm
	counted  map[string]counted                    // by user
	hands    map[string]*worklist.Hand             // by user: how the list was ordered by hand
	gave     map[string]*gave                      // by key in the store: files that came with results
	gaveNext time.Duration                         // Awake: when it is looked at which of these are over
	gaveLast string                                // the key of the last of them whose holder was asked
	settings map[string]own.Switch                 // by user: whether files come before they are needed
	needs    map[string]map[string][]workflow.File // by user and item: what was needed when that was asked for last
	joints   map[string]*joint                     // by key in the store: what is to be given back
	takes    map[string]int                        // by user: how many take or end items just now
	asked    map[asker]int                         // how often a partner is asked just now for a list of a user here
	// found: where instances were found lately in which this node takes no part
	found map[workflow.InstanceID]finding
	stuck map[string]map[workflow.PartnerID]*stuckAt // by user: instances elsewhere that wait for whoever decides
	early map[asker][]Row                            // what it said last that the user may lock before it is ready
	// unsure are partners that may have given users locks which are not kept here, and doubted those that were asked about
	// that since this node was started; doubting: some are asked just now.
	unsure   map[asker]*doubt
	doubted  map[asker]bool
	doubting bool
	// by user and item: what partners do not list any more and did not explain, and of what they have no record
	unexplained, unrecorded map[string]map[string]Row
}

// New makes a node's desk, with what is kept on the device.
func New(in Surroundings) (*Desk, error) {
	d := &Desk{
		in: in, lists: ration.New(listRation), claims: ration.New(claimRation),
		tells: ration.New(tellRation), follows: ration.New(followRation),
		hears: ration.New(loadsRation),
		kept:  map[string]*kept{}, refusals: map[string]*kept{},
		heard: map[string]map[workflow.PartnerID]*heard{}, silent: map[string][]workflow.PartnerID{},
		taken: map[string]map[string]took{}, losses: map[string]string{}, counted: map[string]counted{},
		seen:  map[workflow.InstanceID]map[string]*marks{},
		hands: map[string]*worklist.Hand{}, settings: map[string]own.Switch{},
		needs: map[string]map[string][]workflow.File{}, joints: map[string]*joint{}, takes: map[string]int{},
		gave: map[string]*gave{}, adoptions: map[string]*kept{}, asked: map[asker]int{}, early: map[asker][]Row{}, found: map[workflow.InstanceID]finding{},
		stuck: map[string]map[workflow.PartnerID]*stuckAt{}, adoptedAsked: map[string]time.Duration{}, standing: map[string]*kept{},
		unsure: map[asker]*doubt{}, doubted: map[asker]bool{}, unexplained: map[string]map[string]Row{}, unrecorded: map[string]map[string]Row{},
	}
	return d, errors.Join(d.load(), d.loadJoints(), d.loadRead(), d.loadHands(), d.loadSettings(), d.loadGave(), d.loadTaken())
}
