package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Protocol is a request for something of a file (wire.FileAsk).
const Protocol = "/mutirao/files/1.0.0"

// Requester asks a partner something.
type Requester interface {
	Request(
		ctx context.Context, p workflow.PartnerID, addrs []string, protocol string, req []byte, wait time.Duration,
	) ([]byte, error)
	Up(p workflow.PartnerID) bool
	// Heard is when (Boot) anything was heard of a partner last.
	Heard(p workflow.PartnerID) time.Duration
	Refuse(why string, of workflow.PartnerID)
}

// Clock reads this node's clocks.
type Clock interface {
	Now() moment.Now
	After(d time.Duration) <-chan time.Time
}

// Instances know who may have what.
type Instances interface {
	// MayRead returns an error, for people, if a partner may not read a file that an
	// instance here has among its data; or, with user, if that user may not there. One that
	// is ErrNotHere, or wraps ErrNotNow, says nothing against whoever asks.
	MayRead(ctx context.Context, from workflow.PartnerID, user string, instance workflow.InstanceID,
		item workflow.DataName, f workflow.File) error
	// Here reports whether an instance, by its ID, is here.
	Here(instance string) bool
}

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Clock     Clock
	Log       *slog.Logger
	Partner   Requester
	Instances Instances
	// Label is what people call a partner.
	Label func(workflow.PartnerID) string
	// Gone reports whether a partner will not be back: it was evicted, or has left for good. Away, whether
	// it is out of the process and may be back: it has expired, or has left.
	Gone, Away func(workflow.PartnerID) bool
	// Again has an instance's tasks looked at for files that they are about to read (Ahead).
	Again func(context.Context, workflow.InstanceID)
	// Lost notes for people what the disk lost; nil: nobody wants to know.
	Lost func(what string)
	// Mentions calls each for the files that the instances here have, and reports whether all of
	// these could be read. Want is what has one of them come here. nil: there are none.
	Mentions func(ctx context.Context, each func(Mention)) (complete bool)
	Want     func(Mention) Want
}

// Topic keeps files, gives them to partners and gets them from partners.
type Topic struct {
	*Store
	in      Surroundings
	pieces  *ration.Budgets
	sweepAt time.Duration // Awake

	sweepDue atomic.Bool

	mu      sync.Mutex // guards what follows
	allowed map[permission]time.Duration
	coming  map[name]*fetch
	// promised are the orders to which room on the disk is promised for what is missing of their files.
	promised map[*order]bool
	needs    map[workflow.InstanceID]*need
	lines    map[payer]*line
	again    revisits
	looking  bool // at one of these

	running, others      int // turns that are taken, and those of other members
	ahead, aheadOfOthers int // wants of tasks that are about to begin
	lent, lentOfOthers   int // turns that others have while those who had them wait for answers
	vain                 int // turns of lines whose last one waited for mute partners only
	crowded              bool
	mutes                map[workflow.PartnerID]*mute
	slow                 map[workflow.PartnerID]time.Duration // (Awake) until when they are asked after others
	intakes              map[workflow.PartnerID]*intake       // of those that are asked now
	tried                int                                  // of these, that are asked now
	ill                  ill
	served, numbered     uint64
	watching, stopped    bool
	unsaid               int           // refused since the last line in the log
	saidAt               time.Duration // (Awake) that was
	steps                int           // references looked at, for tests
	telling              bool          // those who gave what is here whole (tellGivers)

	ctx    context.Context // of all turns
	cancel context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{}
	// tellNow gets an element when there is somebody else to be told.
	tellNow chan struct{}

	rates rates // how quickly chunks came
}

// name is what content a reference names: one with a false length is never found.
type name struct {
	root Root
	size int64
}

func nameOf(f workflow.File) name { return name{f.Root, f.Size} }

// permission was given to a partner, for a while, so that not each piece has the instance
// looked at.
type permission struct {
	to       workflow.PartnerID
	user     string
	instance workflow.InstanceID
	file     string
}

const (
	// permitted is for how long a partner that may read a file is not judged again.
	permitted = 10 * time.Second
	// maxPermissions are remembered at most.
	maxPermissions = 1024
	// sweepEvery is how often content is looked for that nobody needs.
	sweepEvery = time.Hour
	// judging is how many pieces it counts as to find out whether a partner may read a file.
	judging = 64
)

// pieceRation is what one partner may have read here: 1 GiB at once, and 128 MiB a second.
var pieceRation = ration.Ration{Burst: (1 << 30) / Piece, Each: time.Second * Piece / (128 << 20)}

// New is the topic of a store's files.
func New(s *Store, in Surroundings) *Topic {
	t := &Topic{
		Store: s, in: in, pieces: ration.New(pieceRation),
		allowed: map[permission]time.Duration{}, coming: map[name]*fetch{}, promised: map[*order]bool{}, needs: map[workflow.InstanceID]*need{},
		lines: map[payer]*line{}, mutes: map[workflow.PartnerID]*mute{},
		slow: map[workflow.PartnerID]time.Duration{}, intakes: map[workflow.PartnerID]*intake{},
		wake: make(chan struct{}, 1), tellNow: make(chan struct{}, 1),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Greet: partners ask when they need something.
func (t *Topic) Greet(workflow.PartnerID, *wire.Message) {}

// Take: what partners need they ask for by requests.
func (t *Topic) Take(workflow.PartnerID, *wire.Message) {}

// Tick has Keep remove now and then what no instance has any more. After a start it has those be told who were to be.
func (t *Topic) Tick(now moment.Now) time.Duration {
	if t.sweepAt == 0 {
		t.sweepAt = now.Awake + sweepEvery
		t.tellGivers()
	}
	if now.Awake >= t.sweepAt {
		t.sweepAt = now.Awake + sweepEvery
		t.sweepDue.Store(true)
		t.stir()
	}
	return t.sweepAt - now.Awake
}

var errTooMuch = errors.New("too much was asked for: ask again later")

// Answer answers a partner that asks for something of a file.
func (t *Topic) Answer(from workflow.PartnerID, req []byte) ([]byte, error) {
	a, err := wire.DecodeFileAsk(req)
	if err != nil {
		return nil, err
	}
	f, err := workflow.ParseFile(a.File)
	if err != nil {
		return nil, err
	}
	now := t.in.Clock.Now().Awake
	if !t.pieces.Spend(from, 1, now) {
		t.in.Partner.Refuse("files-too-fast", from)
		return nil, errTooMuch
	}
	if err := t.permit(from, a, f, now); err != nil {
		if !errors.Is(err, ErrNotHere) && !errors.Is(err, ErrNotNow) { // all who could have a file are asked for it
			t.in.Partner.Refuse("file", from)
		}
		return nil, err
	}
	if a.Sums {
		if _, whole := t.Path(f); !whole {
			return nil, ErrNotHere
		}
		chunks, err := t.sums(f)
		if err != nil {
			return nil, err
		}
		return chunks.bytes(), nil
	}
	if a.Offset == f.Size { // all before that is on its disk (tellGivers)
		t.Gave(f, from)
		return []byte("noted"), nil
	}
	return t.piece(f, a.Offset)
}

// permit returns an error if a partner may not have a file.
func (t *Topic) permit(from workflow.PartnerID, a wire.FileAsk, f workflow.File, now time.Duration) error {
	p := permission{from, a.User, a.Instance, a.File}
	t.mu.Lock()
	until, known := t.allowed[p]
	t.mu.Unlock()
	if known && now < until {
		return nil
	}
	if !t.proved(f, a.Instance.String()) {
		return ErrNotHere // whoever began that instance may know no more than the hash
	}
	if !t.pieces.Spend(from, judging, now) {
		return errTooMuch
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWait)
	defer cancel()
	if err := t.in.Instances.MayRead(ctx, from, a.User, a.Instance, a.Item, f); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.allowed) >= maxPermissions {
		clear(t.allowed)
	}
	t.allowed[p] = now + permitted
	return nil
}

// Progress says how a file comes here that is waited for, as an instance waits for it; false: nobody waits for it.
func (t *Topic) Progress(id workflow.InstanceID, f workflow.File) (have int64, words string, waited bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.coming[nameOf(f)]
	if c == nil {
		return 0, "", false
	}
	return c.have, c.words(t.in.Label, t.troubleFor(id, c)), true
}

// troubleFor is why a file does not come for an instance, as those said that could give it for this one; empty: that was
// not asked yet. What waits for partners that are away is said before what does not. The caller holds t.mu.
func (t *Topic) troubleFor(id workflow.InstanceID, c *fetch) string {
	if c.own {
		return c.trouble
	}
	n := t.needs[id]
	if n == nil {
		return ""
	}
	patient, urgent := "", ""
	for k, x := range n.of {
		switch {
		case k.name != nameOf(c.file):
		case x.Urgent:
			urgent = max(urgent, x.trouble)
		default:
			patient = max(patient, x.trouble)
		}
	}
	return cmp.Or(patient, urgent)
}

// Waits says what a file waits for that a task of an instance reads; empty: it is here.
func (t *Topic) Waits(id workflow.InstanceID, f workflow.File) string {
	if _, words, waited := t.Progress(id, f); waited {
		return words
	}
	if _, whole := t.Path(f); whole {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.needs[id]; n != nil && n.turned > 0 {
		return "as many files of its initiator as one member may have are on their way here: it waits for a place"
	}
	return ""
}

// Stuck is why nobody gives a file that is waited for; empty: it comes, or nobody waits.
func (t *Topic) Stuck(f workflow.File) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.coming[nameOf(f)]; c != nil && c.from == "" {
		return c.trouble
	}
	return ""
}

// words say what is waited for; trouble is why it does not go on.
func (c *fetch) words(label func(workflow.PartnerID) string, trouble string) string {
	have, size := workflow.FormatSize(c.have), workflow.FormatSize(c.file.Size)
	switch {
	case c.from != "":
		return fmt.Sprintf("%s of %s are here, from %s", have, size, label(c.from))
	case trouble != "":
		return trouble
	case len(c.asked) > 0:
		return fmt.Sprintf("%s of %s are here, and %s is asked for it", have, size, label(c.asked[0]))
	}
	return fmt.Sprintf("%s of %s are here", have, size)
}
