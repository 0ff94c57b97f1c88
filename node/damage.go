package node

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/elections"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/profile"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// StoreRange names what a store key belongs to, as a prefix of it, for a store that
// counts its entries by range: the facts of an instance and what else is kept of it, or
// the kind of entry.
func StoreRange(key []byte) []byte {
	switch {
	case len(key) == 0 || bytes.IndexByte(ofInstances, key[0]) < 0:
		return key[:min(len(key), 1)]
	case len(key) < instanceRange:
		return nil // several ranges begin so
	}
	return key[:instanceRange]
}

// losses is what this node knows to have lost from its disk, for people.
type losses struct {
	*tools
	vouching Vouching // nil: the store knows nothing of what it should hold
	// Instances of which the store does not hold what it should, as was found when it
	// was opened: of their facts, or only of their summaries.
	suspect, unlisted []workflow.InstanceID

	mu sync.Mutex // guards is
	is storedLosses
}

// storedLosses is how it is kept.
type storedLosses struct {
	_       struct{} `cbor:",toarray"`
	Reborn  int64    // ms: when the node last began a new incarnation for it; 0: never
	Notices []notice
}

type notice struct {
	_    struct{} `cbor:",toarray"`
	At   int64    // ms
	What string
}

const (
	metaLosses = "losses"
	// maxNotices bounds what is remembered; the oldest goes first.
	maxNotices = 64
	// lossShown is how long a loss is shown that nothing can mend.
	lossShown = 7 * 24 * time.Hour
)

// lost notes for people that something of the disk was lost.
func (l *losses) lost(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	l.log.Error("lost from the disk", "what", what)
	l.mu.Lock()
	defer l.mu.Unlock()
	is := &l.is
	is.Notices = append(is.Notices, notice{At: l.clock.Now().Wall.UnixMilli(), What: what})
	is.Notices = is.Notices[max(0, len(is.Notices)-maxNotices):]
	l.store.Commit([]kv.Write{{Key: metaKey(metaLosses), Value: encode(*is)}},
		func(error) {}) // troubled hears of an error
}

// recall reads what was lost before.
func (l *losses) recall() error {
	b, err := l.store.Get(metaKey(metaLosses))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err == nil && decode(b, &l.is) != nil {
		l.is = storedLosses{}
	}
	return err
}

// recent are the losses that people should still know of.
func (l *losses) recent() (reborn bool, out []string) {
	since := l.clock.Now().Wall.Add(-lossShown).UnixMilli()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.is.Notices {
		if x.At >= since {
			out = append(out, time.UnixMilli(x.At).UTC().Format(time.RFC3339)+" "+x.What)
		}
	}
	return l.is.Reborn >= since && l.is.Reborn > 0, out
}

// sift removes entries that cannot be read and says what follows, before anything is
// loaded: partners tell most of it again, and what they do not know is named. A vote
// is lost with the ballot, as with the disk. Definitions and instances see to
// themselves. own reports whether promises or facts of this node's own may be lost.
func (l *losses) sift() (own bool, err error) {
	decoders := []struct {
		prefix []byte
		what   string
		own    bool
		decode func([]byte) error
	}{
		{[]byte{prefixPartner}, "the record of a partner; partners tell it again", false,
			decodes(membership.DecodeStored)},
		{[]byte{prefixEviction}, "an eviction; partners tell it again on contact, until then the evicted may be admitted here", false, decodes(trust.DecodeEviction)},
		{[]byte{prefixInvitation}, "an open invitation, which admits nobody any more", false,
			decodes(invitation.DecodeEntry)},
		{[]byte{prefixNewcomer}, "who joined by an invitation and was not seen yet: it can be evicted once it was",
			false, decodes(trust.DecodeChain)},
		{[]byte{prefixUser}, "a record about a user; partners tell it again", false, decodes(users.DecodeRecord)},
		{[]byte{prefixTicket}, "a sign-in token, which signs nobody in any more", false, decodes(users.DecodeTicket)},
		{[]byte{prefixItem}, "an item that a user has locked, or what the user did of it: look at the worklist, and hand it in again", false, worklists.DecodesKept},
		{[]byte{prefixNews}, "what people are told of an ended instance: mutirao show shows it", false,
			index.DecodesNews},
		{[]byte{prefixRead}, "which messages a user has read: they are shown as new", false, worklists.DecodesRead},
		{[]byte{prefixSpot}, "where a user had put an item in a list by hand: move it again", false,
			worklists.DecodesSpot},
		{[]byte{prefixJoint}, "items that a user had asked several partners for together and that are to be given back: give back what is on the worklist (mutirao worklist release); else it ends by its lease", false, worklists.DecodesJoint},
		{[]byte{prefixGave}, "that a user had given a file with a result: the partner that took it may lack the content", false, worklists.DecodesGave},
		{[]byte{prefixTaken}, "what a user took of another partner: the user may not be told if it is lost", false, worklists.DecodesTaken},
		{[]byte{prefixSetting}, "what a user had set for the worklist: set it again", false, worklists.DecodesSetting},
		{[]byte{prefixLesson}, "what was learned of a partner at a task", false, assignment.DecodesLesson},
		{[]byte{prefixData}, "a data set: register it again", false, datasets.Decodes},
		{[]byte(certificates.Key), "the renewed certificate; the one in the node's folder is used", false,
			decodes(trust.DecodeChain)},
		{[]byte(profile.Key), "the profile: set it again (mutirao profile set)", false, profile.Decodes},
		{[]byte(elections.KeyBallot), "what this node had promised in elections", true, decodes(election.DecodeBallot)},
		{[]byte(elections.KeyLineage), "who may vote; partners tell it again", false, decodes(election.DecodeLineage)},
		{[]byte(elections.KeySince), "since when the coordinator is known", false, decodes(elections.DecodeSince)},
		{metaKey(metaIncarnation), "the node's incarnation", true, sized(len(fact.Incarnation{}))},
		{[]byte(closings.KeyAge), "how old the store is: ended instances are kept for longer", false,
			closings.DecodesAge},
		{[]byte(closings.KeyAccount), "an account of the instances of which only summaries are kept", false,
			closings.DecodesAccount},
		{[]byte(closings.KeyDropped), "up to when instances were forgotten: very old ones may be taken in again", false,
			closings.DecodesDropped},
		{metaKey(metaAway), "that this node was disconnected on purpose: it is connected again", false, decodes(awayFrom)},
		{metaKey(metaBoot), "how often the node was started; partners know", false, sized(8)},
	}
	var drop []kv.Write
	for _, d := range decoders {
		err := l.store.Scan(d.prefix, func(key, value []byte) error {
			if d.prefix[0] == prefixMeta && len(key) != len(d.prefix) {
				return nil
			}
			if err := d.decode(value); err != nil {
				l.lost("%s (%v)", d.what, err)
				own = own || d.own
				drop = append(drop, kv.Write{Key: bytes.Clone(key), Delete: true})
			}
			return nil
		})
		if errors.Is(err, kv.ErrDamaged) {
			l.lost("%s (%v)", d.what, err)
			own = own || d.own
		} else if err != nil {
			return false, err
		}
	}
	return own, kv.CommitAll(l.store, drop)
}

func decodes[T any](decode func([]byte) (T, error)) func([]byte) error {
	return func(b []byte) error {
		_, err := decode(b)
		return err
	}
}

func sized(want int) func([]byte) error {
	return func(b []byte) error {
		if len(b) != want {
			return fmt.Errorf("%d bytes, want %d", len(b), want)
		}
		return nil
	}
}

// assess takes in what the store found damaged, and that it is gone if the node ran
// before. own reports whether facts or promises of this node's own may be lost.
func (l *losses) assess(ran bool) (own bool) {
	var d kv.Damage
	if l.vouching != nil {
		d = l.vouching.Damage()
	}
	for _, what := range d.Found {
		l.lost("%s", what)
	}
	if _, err := l.store.Get(metaKey(metaBoot)); ran && len(d.Found) == 0 && errors.Is(err, kv.ErrNotFound) {
		l.lost("the whole store: this node ran before, and nothing that it had stored was there when it started")
		return true
	}
	own = d.Vanished
	for _, r := range d.Ranges {
		switch {
		case len(r) != instanceRange:
			own = own || string(r) == string(prefixMeta)
		case r[0] == prefixFact || r[0] == prefixQuarantine:
			own, l.suspect = true, append(l.suspect, workflow.InstanceID(r[1:]))
		case r[0] == prefixInstance:
			l.unlisted = append(l.unlisted, workflow.InstanceID(r[1:]))
		}
	}
	return own
}

// Verify reads the whole store again and says what is wrong, if anything.
func (l *losses) Verify() error {
	if l.vouching == nil {
		return nil
	}
	return l.vouching.Verify()
}

// Check says what was lost, and which promises this node cannot keep for it. Of the instances
// so many are set aside as they cannot be read, and as this program failed at them.
func (l *losses) Check(aside, failed int, warn, wrong func(check, what, mend string)) {
	if aside > 0 {
		wrong("quarantine", asideInWords(aside)+": nothing is done here meanwhile about this node's part",
			"mutirao instances --all says which and why. Partners who have them are asked on contact; if none has one, only a backup of the folder can bring it back")
	}
	if failed > 0 {
		wrong("quarantine", failedInWords(failed)+": nothing is done here meanwhile about this node's part",
			"mutirao instances --all says which and why, and the node's log where: please report it. Each start tries them again, so start a newer version, or ask the others who take part to go on without this node")
	}
	reborn, lost := l.recent()
	vote := ""
	if reborn {
		vote = ". So that this node votes again, have the founder set the electorate once more, with this node in it: mutirao coordinator electorate --set VOTER,..."
		lost = append(lost, "this node began a new incarnation: what it had recorded and told nobody may be gone, and its vote counts again only in a new electorate")
	}
	if len(lost) > 0 {
		warn("losses", strings.Join(lost, "; "),
			"look at the disk: it may be failing. What partners have comes back on contact"+vote)
	}
}

func asideInWords(instances int) string {
	if instances == 1 {
		return "1 instance cannot be read and is set aside"
	}
	return fmt.Sprintf("%d instances cannot be read and are set aside", instances)
}

func failedInWords(instances int) string {
	if instances == 1 {
		return "this program failed at 1 instance, which is set aside"
	}
	return fmt.Sprintf("this program failed at %d instances, which are set aside", instances)
}

// damages are the quarantine and the losses, for status.
func (l *losses) damages(aside, failed int) []string {
	var out []string
	if failed > 0 {
		out = append(out, failedInWords(failed)+": mutirao instances --all")
	}
	if aside > 0 {
		out = append(out, asideInWords(aside)+": mutirao instances --all")
	}
	if _, lost := l.recent(); len(lost) > 0 {
		out = append(out, "the disk lost something: mutirao doctor")
	}
	return out
}
