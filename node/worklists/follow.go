package worklists

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
	"github.com/mutirao-mesh/mutirao/worklist/own"
)

// This file has a user find the own order of the list, what was read, and whether files come before they are needed,
// alike at all nodes where the user is signed in (own.State). Two such nodes compare sums, signed by the user's keys
// at both, and tell each other what differs; no other node is told. They compare when they meet, after each change, and
// now and then.

const (
	// followEvery is how often all is compared again, and followAgain with whom that failed.
	followEvery = 10 * time.Minute
	followAgain = time.Minute
	// followPause is the least time between two rounds: what is changed meanwhile goes together.
	followPause = time.Second
	// maxFollowed bounds the records in one message, in bytes, maxFollows all that another node tells, in records, and
	// maxTries how often two compare again at once.
	maxFollowed = 64 << 10
	maxFollows  = 1 + own.MaxSpots + own.MaxMarked
	maxTries    = 4
)

// followRation is how often a partner may compare what its users set and read.
var followRation = ration.Ration{Burst: 600, Each: 250 * time.Millisecond}

// follow says with whom is to be compared what a user set and read.
type follow struct {
	mu    sync.Mutex                  // guards what follows; nothing else is done while it is held
	users map[string]bool             // who changed something: to be compared with all
	met   map[workflow.PartnerID]bool // at which partners all users are to be compared
	late  map[asker]bool              // with whom it failed
	known map[asker]bool              // with whom it was compared since the node was started
	// vain are the sums that still differed when all was told: they are not compared again until one of them changes.
	// So it is where one of the two has no room for what the other keeps.
	vain     map[asker][2]sums
	newcomer bool          // there may be another node of a user
	next     time.Duration // Awake: when all is compared
	again    time.Duration // Awake: when it is tried again with those with whom it failed
	pause    time.Duration // Awake: until when no round begins
	running  bool
}

type sums = [own.Buckets]uint64

// changed notes that a user set or read something here, which is durable. The node is to look for what is due then.
func (f *follow) changed(user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users == nil {
		f.users = map[string]bool{}
	}
	f.users[user] = true
}

// followAt has all be compared that users of a partner that was just connected set and read.
func (d *Desk) followAt(p workflow.PartnerID) {
	f := &d.follow
	f.mu.Lock()
	if f.met == nil {
		f.met = map[workflow.PartnerID]bool{}
	}
	f.met[p] = true
	f.mu.Unlock()
	d.in.Nudge()
}

// PeopleChanged is told that the users of the mesh changed, or where they are signed in.
func (d *Desk) PeopleChanged() {
	d.follow.mu.Lock()
	d.follow.newcomer = true
	d.follow.mu.Unlock()
	d.in.Nudge()
}

// mindFollow has compared what is due, and says after what time it is to be called again.
func (d *Desk) mindFollow(now moment.Now) time.Duration {
	f := &d.follow
	next, round := f.due(now)
	if round == nil {
		return next
	}
	d.in.Aside(func() { // which may be done at once
		d.followRound(*round)
		f.mu.Lock()
		f.running, f.pause = false, d.in.Clock.Now().Awake+followPause
		f.mu.Unlock()
		d.in.Nudge()
	})
	return next
}

// due is what is to be compared now, nil: nothing, and in what time it is to be asked again.
func (f *follow) due(now moment.Now) (next time.Duration, round *followRound) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := now.Awake >= f.next
	again := len(f.late) > 0 && now.Awake >= f.again
	wants := all || again || len(f.users) > 0 || len(f.met) > 0 || f.newcomer
	switch {
	case f.running:
		return moment.Never, nil // its end wakes the node
	case wants && now.Awake < f.pause:
		return f.pause - now.Awake, nil
	case !wants && len(f.late) > 0:
		return min(f.next, f.again) - now.Awake, nil
	case !wants:
		return f.next - now.Awake, nil
	}
	round = &followRound{all: all, newcomer: f.newcomer, users: f.users, met: f.met}
	if again {
		round.late, f.late = f.late, nil
	}
	if all {
		f.next = now.Awake + followEvery
	}
	f.users, f.met, f.newcomer, f.running = nil, nil, false, true
	return moment.Never, round
}

// followRound is what is to be compared.
type followRound struct {
	all, newcomer bool
	users         map[string]bool
	met           map[workflow.PartnerID]bool
	late          map[asker]bool
}

func (d *Desk) followRound(r followRound) {
	if r.all || r.newcomer {
		d.forgetRemoved()
	}
	f := &d.follow
	for _, x := range d.in.People.Elsewhere() {
		a := asker{x.At, x.ID}
		f.mu.Lock()
		due := r.all || r.users[x.ID] || r.met[x.At] || r.late[a] || r.newcomer && !f.known[a]
		f.mu.Unlock()
		if !due || !d.in.Peers.Up(x.At) {
			continue // it is compared when it is connected
		}
		err := d.followWith(x)
		f.mu.Lock()
		if err == nil {
			if f.known == nil {
				f.known = map[asker]bool{}
			}
			f.known[a] = true
		} else {
			if f.late == nil {
				f.late = map[asker]bool{}
			}
			f.late[a], f.again = true, d.in.Clock.Now().Awake+followAgain
		}
		f.mu.Unlock()
		if err != nil { // it may be of an earlier version, or just gone
			d.in.Log.Debug("a user's own settings are not compared", "user", x.Name, "with", x.At, "error", err)
		}
	}
}

// telling is what one node of a user tells another of what the user set and read.
type telling struct {
	_    struct{} `cbor:",toarray"`
	User string
	// Sums are those of all that is known there, Records some of it.
	Sums    sums
	Records []toldRecord
	// Asks: what differs is wanted but for so many records, which came. More: the answer is not all of that.
	Asks bool
	Skip uint64
	More bool
}

// toldRecord is a record as it is told.
type toldRecord struct {
	_      struct{} `cbor:",toarray"`
	Switch *setting
	Spot   *spot
	Read   *toldRead
}

type toldRead struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Names    [][]byte
	Noted    int64
}

func toldOf(r own.Record) (out toldRecord) {
	switch {
	case r.Switch != nil:
		s := r.Switch
		out.Switch = &setting{Prefetch: s.On, AtMost: s.AtMost, Count: s.Count, By: string(s.By)}
	case r.Spot != nil:
		s := spotOf(*r.Spot)
		out.Spot = &s
	case r.Read != nil:
		out.Read = &toldRead{Instance: r.Read.Instance, Noted: r.Read.Noted}
		for _, m := range r.Read.Marks {
			out.Read.Names = append(out.Read.Names, m[:])
		}
	}
	return out
}

func (f toldRecord) record() (r own.Record, err error) {
	if s := f.Switch; s != nil {
		r.Switch = &own.Switch{On: s.Prefetch, AtMost: s.AtMost, Count: s.Count, By: workflow.PartnerID(s.By)}
	}
	if f.Spot != nil {
		s := f.Spot.spot()
		r.Spot = &s
	}
	if f.Read != nil {
		r.Read = &own.Read{Instance: f.Read.Instance, Noted: f.Read.Noted}
		for _, n := range f.Read.Names {
			if len(n) != len(own.Mark{}) {
				return r, fmt.Errorf("the name of a message has %d bytes: want %d", len(n), len(own.Mark{}))
			}
			r.Read.Marks = append(r.Read.Marks, own.Mark(n))
		}
	}
	return r, r.Check()
}

// decodeTelling reads what another node of a user tells.
func decodeTelling(b []byte) (t telling, records []own.Record, err error) {
	if err := codec.Decode(b, &t); err != nil {
		return t, nil, err
	}
	for _, f := range t.Records {
		r, err := f.record()
		if err != nil {
			return t, nil, err
		}
		records = append(records, r)
	}
	return t, records, nil
}

// sumToSign is what a user signs: it says to whom, so that nobody brings it to another.
func sumToSign(to workflow.PartnerID, says []byte) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "mutirao/follow/1\x00%s\x00%s", to, says))
}

// sayFollow has a user here tell another node of the same user.
func (d *Desk) sayFollow(who users.Who, to workflow.PartnerID, t telling) ([]byte, error) {
	says := codec.Encode(t)
	word, err := d.in.People.Speak(who, sumToSign(to, says))
	if err != nil {
		return nil, err
	}
	return wire.EncodeFollow(wire.Follow{Says: says, Word: word})
}

// hearFollow reads what another node tells of a user, and checks that the user's key there says it, to this node.
func (d *Desk) hearFollow(from workflow.PartnerID, b []byte) (t telling, records []own.Record, err error) {
	m, err := wire.DecodeFollow(b)
	if err == nil {
		t, records, err = decodeTelling(m.Says)
	}
	if err != nil {
		d.in.Peers.Refuse("follow-malformed", from)
		return t, nil, err
	}
	err = d.in.People.MaySpeak(m.Word, sumToSign(d.in.Self, m.Says), from)
	if err == nil {
		err = d.in.People.MayAsk(t.User, from)
	}
	if err != nil {
		d.in.Peers.Refuse("follow-of-others", from)
		return t, nil, err
	}
	return t, records, nil
}

// followWith compares what a user set and read with another node of that user, and takes in and tells what differs.
func (d *Desk) followWith(x users.Elsewhere) error {
	f, a := &d.follow, asker{x.At, x.ID}
	tries := 0
	ask := func(t telling) (telling, []own.Record, error) {
		req, err := d.sayFollow(x.Who, x.At, t)
		if err != nil {
			return telling{}, nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), claimPatience)
		defer cancel()
		b, err := d.in.Peers.Request(ctx, x.At, nil, ProtocolFollow, req, claimPatience)
		if err != nil {
			return telling{}, nil, err
		}
		got, records, err := d.hearFollow(x.At, b)
		if err == nil && got.User != x.ID {
			err = errors.New("it answers for somebody else")
		}
		return got, records, err
	}
	for {
		all := d.recordsOf(x.ID)
		mine := own.Sums(all)
		theirs, records, err := ask(telling{User: x.ID, Sums: mine, Asks: true})
		if err != nil {
			return err
		}
		differ := [2]sums{mine, theirs.Sums}
		f.mu.Lock()
		vain := f.vain[a] == differ
		f.mu.Unlock()
		if mine == theirs.Sums || vain {
			return nil
		}
		for more := theirs.More; more; {
			next, page, err := ask(telling{User: x.ID, Sums: mine, Asks: true, Skip: uint64(len(records))})
			if err != nil {
				return err
			}
			if records = append(records, page...); len(records) > maxFollows {
				return fmt.Errorf("it tells more than %d records", maxFollows)
			}
			more = next.More && len(page) > 0
		}
		fresh, err := d.takeFollowed(x.Who, records, x.At)
		if err != nil {
			return err
		}
		for rest := lacking(all, records, mine, theirs.Sums); len(rest) > 0; {
			var page []toldRecord
			page, rest = pageOf(rest)
			if theirs, _, err = ask(telling{User: x.ID, Records: page}); err != nil {
				return err
			}
		}
		if own.Sums(d.recordsOf(x.ID)) == theirs.Sums {
			return nil
		}
		if !fresh && theirs.Sums == differ[1] { // nothing came of it, on either side
			f.mu.Lock()
			if f.vain == nil {
				f.vain = map[asker][2]sums{}
			}
			f.vain[a] = differ
			f.mu.Unlock()
			return nil
		}
		if tries++; tries == maxTries {
			return nil // somebody is at work there: the rest follows with what changes next
		}
	}
}

// lacking are the records in the parts that differ, but for those that the other has alike.
func lacking(all, others []own.Record, mine, theirs sums) (out []own.Record) {
	has := map[string]bool{}
	for _, r := range others {
		has[string(codec.Encode(toldOf(r)))] = true
	}
	for _, r := range all {
		if b := r.Bucket(); mine[b] != theirs[b] && !has[string(codec.Encode(toldOf(r)))] {
			out = append(out, r)
		}
	}
	return out
}

// pageOf are the first of some records, as many as fit into a message, and the rest.
func pageOf(of []own.Record) (page []toldRecord, rest []own.Record) {
	bytes := 0
	for i, r := range of {
		f := toldOf(r)
		if bytes += len(codec.Encode(f)); bytes > maxFollowed && i > 0 {
			return page, of[i:]
		}
		page = append(page, f)
	}
	return page, nil
}

// AnswerFollow takes in what another node of a user here tells, durably, and answers with what that lacks.
func (d *Desk) AnswerFollow(from workflow.PartnerID, req []byte) ([]byte, error) {
	if !d.follows.Spend(from, 1, d.in.Clock.Now().Awake) {
		d.in.Peers.Refuse("follow-too-fast", from)
		return nil, errTooOften
	}
	t, records, err := d.hearFollow(from, req)
	if err != nil {
		return nil, err
	}
	who, err := d.in.People.Who(t.User)
	if err != nil {
		return nil, err // the user is not signed in here, which anybody may know
	}
	if _, err := d.takeFollowed(who, records, from); err != nil {
		d.in.Log.Warn("what a user set at another node cannot be stored", "user", who.Name, "error", err)
		return nil, errors.New("it cannot be stored now")
	}
	all := d.recordsOf(who.ID)
	out := telling{User: who.ID, Sums: own.Sums(all)}
	if t.Asks {
		all = lacking(all, nil, out.Sums, t.Sums)
		page, rest := pageOf(all[min(t.Skip, uint64(len(all))):])
		out.Records, out.More = page, len(rest) > 0
	}
	return d.sayFollow(who, from, out)
}

// ownOf is what a user set and read, as it is known here. The caller holds d.mu.
func (d *Desk) ownOf(user string) *own.State {
	o := &own.State{
		Prefetch: d.settings[user], Hand: d.handOf(user).Clone(), Read: map[workflow.InstanceID]own.Read{},
	}
	for id, of := range d.seen {
		is := of[user]
		if is == nil {
			continue
		}
		r := own.Read{Instance: id, Noted: is.noted}
		for _, n := range is.order {
			if b, err := hex.DecodeString(n); err == nil && len(b) == len(own.Mark{}) {
				r.Marks = append(r.Marks, own.Mark(b))
			}
		}
		if len(r.Marks) > 0 {
			o.Read[id] = r
		}
	}
	return o
}

func (d *Desk) recordsOf(user string) []own.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ownOf(user).Records()
}

// takeFollowed takes in what a user set and read at another node, and reports whether something is different now. It
// counts when it is durable.
func (d *Desk) takeFollowed(who users.Who, records []own.Record, from workflow.PartnerID) (fresh bool, err error) {
	if len(records) == 0 {
		return false, nil
	}
	now := d.in.Clock.Now().Wall
	list, read, err := d.mergeFollowed(who, records, now)
	if list {
		d.in.Publish(api.Event{At: now, Kind: "worklist", Partner: d.in.Name(from), Text: "changed"})
	}
	if read {
		d.in.Publish(api.Event{At: now, Kind: "message", Partner: d.in.Name(from), Text: "read"})
	}
	if list || read { // the user's other nodes may not be connected with that one
		d.follow.changed(who.ID)
		d.in.Nudge()
	}
	return list || read, err
}

// mergeFollowed takes it in, and reports what is different now: the list, and what was read.
func (d *Desk) mergeFollowed(who users.Who, records []own.Record, now time.Time) (list, marked bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	is := d.ownOf(who.ID)
	was := map[string]worklist.Spot{}
	for _, s := range is.Hand.Spots() {
		was[string(spotKey(who.ID, s))] = s
	}
	var writes []kv.Write
	read, set, moved := map[workflow.InstanceID]*marks{}, false, false
	for _, r := range records {
		if r.Read != nil {
			r.Read.Noted = min(r.Read.Noted, now.UnixMilli()) // else it would be kept as long as its clock is wrong
			if _, known := is.Read[r.Read.Instance]; !known && len(is.Read) >= maxMarked &&
				!d.in.Instances.Here(r.Read.Instance) {
				continue // there is no room for more of what is not here
			}
		}
		if !is.Merge(r) {
			continue
		}
		switch {
		case r.Switch != nil:
			set = true
		case r.Spot != nil:
			moved = true
		default:
			read[r.Read.Instance] = nil
		}
	}
	if set {
		writes = append(writes, writeSetting(who.ID, is.Prefetch))
	}
	if moved {
		for _, s := range is.Hand.Spots() {
			key := spotKey(who.ID, s)
			if was[string(key)] != s {
				writes = append(writes, kv.Write{Key: key, Value: codec.Encode(spotOf(s))})
			}
			delete(was, string(key))
		}
		for _, key := range slices.Sorted(maps.Keys(was)) { // forgotten for what is newer
			writes = append(writes, kv.Write{Key: []byte(key), Delete: true})
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(read), workflow.InstanceID.Compare) {
		m := &marks{has: map[string]bool{}, noted: is.Read[id].Noted}
		for _, name := range is.Read[id].Marks {
			m.add(hex.EncodeToString(name[:]))
		}
		value, err := m.write()
		if err != nil {
			return false, false, err
		}
		read[id] = m
		writes = append(writes, kv.Write{Key: append(ReadPrefix(id), who.ID...), Value: value})
	}
	if err := kv.CommitAll(d.in.Store, writes); err != nil {
		return false, false, err
	}
	if set {
		d.settings[who.ID] = is.Prefetch
	}
	if moved {
		d.hands[who.ID] = is.Hand
	}
	for id, m := range read {
		d.setRead(id, who.ID, m)
	}
	return set || moved, len(read) > 0, nil
}

// forgetRemoved forgets what users set and read who were removed for good.
func (d *Desk) forgetRemoved() {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]bool{}
	for user := range d.settings {
		all[user] = true
	}
	for user := range d.hands {
		all[user] = true
	}
	for _, of := range d.seen {
		for user := range of {
			all[user] = true
		}
	}
	for _, user := range slices.Sorted(maps.Keys(all)) {
		if !d.in.People.Removed(user) {
			continue
		}
		writes := []kv.Write{{Key: settingKey(user), Delete: true}}
		for _, s := range d.handOf(user).Spots() {
			writes = append(writes, kv.Write{Key: spotKey(user, s), Delete: true})
		}
		var read []workflow.InstanceID
		for id, of := range d.seen {
			if of[user] != nil {
				read = append(read, id)
			}
		}
		for _, id := range read {
			writes = append(writes, kv.Write{Key: append(ReadPrefix(id), user...), Delete: true})
		}
		if err := kv.CommitAll(d.in.Store, writes); err != nil {
			d.in.Log.Warn("what a removed user set cannot be forgotten yet", "error", err)
			return
		}
		delete(d.settings, user)
		delete(d.hands, user)
		for _, id := range read {
			d.setRead(id, user, nil)
		}
	}
}
