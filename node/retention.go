package node

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// An ended instance is kept with all its facts for a time (limits.keep), and no more
// of them than limits.ended; after that a signed summary is kept in their place.
// Nothing is given up that somebody may lack, that is disputed, or that awaits
// compensation. An instance whose summary is here is never taken in again: a partner
// that sends facts of it is answered with the summary.
//
// There are as many summaries as limits.ended. Of more only the IDs are kept, and when
// there are too many of those, the initiator of most of them loses its oldest. Then no
// instance is taken in any more that it began before: so none comes back, even if its ID
// is gone. That costs only a partner that ended so many.
//
// A partner that can be spoken to and does not answer cannot hold that up for ever: one
// that was connected for an hour in all, and was sent an ended instance again and
// again, and has not acknowledged it, is not waited for. Nor is one that is not on the
// partner list: a participant can pass work on to keys that are nobody's. A partner out
// of reach is waited for, as long as it is not evicted.

// closing is the summary of an ended instance whose facts were deleted.
type closing struct {
	_          struct{} `cbor:",toarray"`
	Instance   workflow.InstanceID
	Definition workflow.Hash
	Workflow   workflow.Name
	Version    int
	State      workflow.InstanceState
	By         workflow.PartnerID // who began it
	Started    int64              // ms, the initiator's clock
	Ended      int64              // ms, the signer's
	Closed     int64              // ms, the signer's: when the facts were deleted
	// Number and Digest tell which facts there were: how many, and a digest of the
	// heads of their chains.
	Number uint64
	Digest [endedDigest]byte
	// With are partners that took part, Others how many more did.
	With   []workflow.PartnerID
	Others int
	Signer workflow.PartnerID
	Sig    []byte
}

const (
	closingDomain = "closing"
	// maxClosedWith bounds how many partners a summary names.
	maxClosedWith = 32
	// earliest is how long after its end an instance is kept in any case: one member
	// cannot make this node forget faster.
	earliest = 10 * time.Minute
	// reluctantly is the same for what somebody does not answer about, or lacks.
	reluctantly = 24 * time.Hour
	// unanswered is how long a partner is connected, or not on the partner list, until
	// it is not waited for any more.
	unanswered = time.Hour
	// closeBatch is how many instances one event gives up.
	closeBatch = 64
	// retainEvery is how often this node looks for what it need not keep.
	retainEvery = time.Minute
	// maxForgotten is of how many instances only the IDs are kept, for each of limits.ended.
	maxForgotten = 8
	// metaAge is the node's own time (see lifetime), metaClosed what was given up so far,
	// metaDropped of which instances even the IDs were dropped.
	metaAge     = "age"
	metaClosed  = "closed"
	metaDropped = "dropped"
)

func closingKey(id workflow.InstanceID) []byte { return append([]byte{prefixClosing}, id[:]...) }

func (c closing) signed() []byte {
	c.Sig = nil
	return encode(c)
}

// verifyClosing reads a summary and checks that by signed it.
func verifyClosing(b []byte, by workflow.PartnerID) (c closing, err error) {
	if err := cbor.Unmarshal(b, &c); err != nil {
		return c, err
	}
	if c.Signer != by || len(c.With) > maxClosedWith {
		return c, fmt.Errorf("a summary by %s with %d names", c.Signer, len(c.With))
	}
	return c, trust.Verify(by, closingDomain, c.signed(), c.Sig)
}

// retention is what is kept of instances that have ended: which ones partners have as
// well, and for how long their facts stay.
type retention struct {
	*contacts
	crew        *crew
	index       *index
	people      holders
	definitions sweeping
	comparing   *ration.Budgets

	lifetime lifetime
	aged     time.Duration // the age that was written last
	next     time.Duration // Awake: when to look again for what need not be kept

	closing sync.Mutex   // held while instances are given up
	closed  storedClosed // what was given up so far

	mu   sync.Mutex // guards late
	late map[workflow.InstanceID]string
}

// sweeping forgets definitions that nothing uses any more.
type sweeping interface {
	Sweep(uses func() map[workflow.Hash]bool) error
}

// holders is what retention asks of the partner list.
type holders interface {
	name(workflow.PartnerID) string
	label(workflow.PartnerID) string
	names([]workflow.PartnerID) []string
}

func newRetention(c *contacts, w *crew, x *index, p holders, d sweeping) *retention {
	return &retention{
		contacts: c, crew: w, index: x, people: p, definitions: d, comparing: ration.New(comparingRation),
		late: map[workflow.InstanceID]string{},
	}
}

// Tick gives up what need not be kept.
func (t *retention) Tick(now moment.Now) time.Duration {
	if now.Awake >= t.next {
		t.next = now.Awake + t.retain()
	}
	return t.next - now.Awake
}

// lifetime is this node's own time, by which it forgets: how long its store has been in
// use. It goes on while the node runs, and for a time in which it did not run by what
// the wall clock says, at most a day: a clock that jumped by years ages nothing.
type lifetime struct {
	base  time.Duration // when the process began
	began time.Duration // Boot
}

// maxAsleep is how much the time in which a node did not run counts at most.
const maxAsleep = 24 * time.Hour

type storedAge struct {
	_    struct{}      `cbor:",toarray"`
	Age  time.Duration // so far
	Wall int64         // ms, when it was written
}

func (t *retention) loadAge() error {
	now := t.clock.Now()
	was, err := codec.Read(t.store, metaKey(metaAge), func(b []byte) (s storedAge, err error) { return s, decode(b, &s) })
	if err != nil {
		return err
	}
	t.lifetime.began, t.lifetime.base = now.Boot, was.Age
	if was.Wall != 0 {
		t.lifetime.base += min(max(now.Wall.Sub(time.UnixMilli(was.Wall)), 0), maxAsleep)
	}
	return nil
}

// age is this node's own time.
func (t *retention) age() time.Duration {
	return t.lifetime.base + t.clock.Now().Boot - t.lifetime.began
}

func (t *retention) ageWrite() kv.Write {
	return kv.Write{Key: metaKey(metaAge), Value: encode(storedAge{Age: t.age(), Wall: t.clock.Now().Wall.UnixMilli()})}
}

// forgotten is what is kept of an instance whose summary is forgotten, beside its ID.
type forgotten struct {
	_       struct{}           `cbor:",toarray"`
	By      workflow.PartnerID // who began it
	Started int64              // ms, the initiator's clock
}

// storedDropped says, for each member, up to when (ms, its clock) it began instances of
// which the IDs were dropped.
type storedDropped struct {
	_     struct{} `cbor:",toarray"`
	Until map[workflow.PartnerID]int64
}

// storedClosed is what was given up so far: the number of summaries and, for each partner, the
// share of the instances that were given up in the digest of ended ones (ended.go).
type storedClosed struct {
	_       struct{} `cbor:",toarray"`
	Number  int
	Digests map[workflow.PartnerID][endedDigest]byte
}

func (t *retention) loadClosed() (err error) {
	t.closed, err = codec.Read(t.store, metaKey(metaClosed), func(b []byte) (s storedClosed, err error) { return s, decode(b, &s) })
	if err != nil {
		return err
	}
	t.index.gone(t.closed.Digests)
	d, err := codec.Read(t.store, metaKey(metaDropped), func(b []byte) (s storedDropped, err error) { return s, decode(b, &s) })
	t.index.dropIDs(d.Until)
	return err
}

// closedOf reads the summary of an instance whose facts were deleted. Found without a
// summary: that was so long ago that only its ID is left.
func (t *retention) closedOf(id workflow.InstanceID) (c closing, found bool, err error) {
	b, err := t.store.Get(closingKey(id))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return c, false, nil
	case err != nil:
		return c, false, err
	}
	return readClosing(id, b), true, nil
}

// readClosing reads a stored summary. Of one that was forgotten, who began it and when
// is left beside the ID; of one that cannot be read, the ID.
func readClosing(id workflow.InstanceID, b []byte) closing {
	var c closing
	if decode(b, &c) == nil {
		return c
	}
	var f forgotten
	if decode(b, &f) != nil {
		f = forgotten{}
	}
	return closing{Instance: id, By: f.By, Started: f.Started}
}

// retain gives up what need not be kept, and returns after what time to look again.
func (t *retention) retain() time.Duration {
	if t.age()-t.aged >= time.Hour {
		t.aged = t.age()
		t.store.Commit([]kv.Write{t.ageWrite()}, func(error) {}) // troubled hears of an error
	}
	due := t.index.closable(t.config.Limits, t.age())
	more := len(due) > closeBatch*len(t.crew.shards)
	for _, s := range t.crew.shards {
		var ids []workflow.InstanceID
		for _, id := range due {
			if t.crew.shardOf(id) == s && len(ids) < closeBatch {
				ids = append(ids, id)
			}
		}
		if len(ids) > 0 {
			t.crew.side(func() {
				t.crew.post(s, event{apply: func(s *shard) error { return s.close(ids) }, after: t.logClosing})
			})
		}
	}
	t.forget()
	t.crew.side(func() {
		if err := t.definitions.Sweep(t.index.uses); err != nil {
			t.log.Error("workflows that nobody uses could not be deleted", "error", err)
		}
	})
	if more {
		return time.Second
	}
	return retainEvery
}

func (t *retention) logClosing(err error) {
	if err != nil {
		t.log.Error("ended instances could not be replaced by their summaries", "error", err)
	}
}

// close replaces instances by their summaries. What belongs to one instance is one
// unit, with the account of all that were given up.
func (s *shard) close(ids []workflow.InstanceID) error {
	return s.n.retention.giveUp(func(next *storedClosed, commit func([]kv.Write, []workflow.InstanceID) error) error {
		var writes []kv.Write
		var done []workflow.InstanceID
		for _, id := range ids {
			sum, known := s.n.index.get(id)
			if _, aside := s.aside[id]; !known || aside || !sum.closable() || s.held[id] != nil {
				continue // something came in between
			}
			w, err := s.closingWrites(id, sum)
			if err == nil && !kv.Fits(w) {
				w, err = s.closeLarge(id, sum, w)
			}
			if err == nil && !kv.Fits(slices.Concat(writes, w)) {
				err = commit(writes, done)
				writes, done = nil, nil
			}
			if err != nil {
				return err
			}
			writes, done = append(writes, w...), append(done, id)
			next.add(sum)
		}
		return commit(writes, done)
	})
}

// giveUp has fn give instances up, one caller at a time. next is the account, to which fn
// adds them; commit makes it durable with what fn writes, and takes them off the list.
func (t *retention) giveUp(
	fn func(next *storedClosed, commit func([]kv.Write, []workflow.InstanceID) error) error,
) error {
	t.closing.Lock()
	defer t.closing.Unlock()
	next := t.closed.clone()
	return fn(&next, func(writes []kv.Write, done []workflow.InstanceID) error {
		if len(done) == 0 {
			return nil
		}
		account := kv.Write{Key: metaKey(metaClosed), Value: encode(next)}
		if err := t.store.CommitWait(append(writes, account)); err != nil {
			return err
		}
		t.closed = next.clone()
		for _, id := range done {
			t.index.drop(id)
		}
		t.count("closed", uint64(len(done)))
		return nil
	})
}

// closeLarge deletes what does not fit into one unit of an instance that is given up:
// first it is marked, with its summary in place, so that whatever happens the next
// start goes on. It returns what is left to be done.
func (s *shard) closeLarge(id workflow.InstanceID, sum summary, writes []kv.Write) ([]kv.Write, error) {
	end := kv.Write{Key: instanceKey(id), Delete: true}
	if sum.Closed = true; bytes.Equal(writes[0].Key, closingKey(id)) {
		if err := s.n.store.CommitWait([]kv.Write{writes[0], {Key: instanceKey(id), Value: encode(sum)}}); err != nil {
			return nil, err
		}
		s.n.index.put(id, sum)
		writes = writes[1:]
	}
	for rest := writes[1:]; len(rest) > 0; { // without the end of the entry
		u := kv.Unit(rest)
		if err := s.n.store.CommitWait(rest[:u]); err != nil {
			return nil, err
		}
		rest = rest[u:]
	}
	return []kv.Write{end}, nil
}

// closingWrites are what replaces an instance by its summary: the summary, unless it is
// in place already, the end of the entry, and then of everything that lies beside it.
func (s *shard) closingWrites(id workflow.InstanceID, sum summary) ([]kv.Write, error) {
	var out []kv.Write
	if !sum.Closed {
		out = append(out, kv.Write{Key: closingKey(id), Value: encode(s.n.retention.closingOf(id, sum))})
	}
	out = append(out, kv.Write{Key: instanceKey(id), Delete: true})
	for _, prefix := range [][]byte{factPrefix(id), waitsKey(id), keptPrefix(id)} {
		err := s.n.store.Scan(prefix, func(key, _ []byte) error {
			out = append(out, kv.Write{Key: bytes.Clone(key), Delete: true})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// closingOf makes the summary of an instance that is given up now.
func (t *retention) closingOf(id workflow.InstanceID, sum summary) closing {
	with := strings.Fields(sum.With)
	c := closing{
		Instance: id, Definition: sum.Definition, Workflow: sum.Workflow, Version: sum.Version, State: sum.State, By: sum.By,
		Started: sum.Started, Ended: sum.Ended, Closed: t.clock.Now().Wall.UnixMilli(), Number: sum.Number, Digest: sum.Facts,
		Others: max(len(with)-maxClosedWith, 0), Signer: t.member.ID(),
	}
	for _, p := range with[:min(len(with), maxClosedWith)] {
		c.With = append(c.With, workflow.PartnerID(p))
	}
	c.Sig = trust.Sign(t.member.Key, closingDomain, c.signed())
	return c
}

func (c storedClosed) clone() storedClosed {
	out := storedClosed{Number: c.Number, Digests: make(map[workflow.PartnerID][endedDigest]byte, len(c.Digests))}
	for p, d := range c.Digests {
		out.Digests[p] = d
	}
	return out
}

func (c *storedClosed) add(sum summary) {
	c.Number++
	for _, p := range strings.Fields(sum.With) {
		id := workflow.PartnerID(p)
		c.Digests[id] = xored(c.Digests[id], sum.Facts)
	}
}

func xored(a, b [endedDigest]byte) [endedDigest]byte {
	for i := range a {
		a[i] ^= b[i]
	}
	return a
}

// forget leaves only the IDs of summaries when there are more than limits.ended, and
// drops IDs when there are more than maxForgotten times as many.
func (t *retention) forget() {
	t.closing.Lock()
	defer t.closing.Unlock()
	limit := t.config.Limits.Ended
	if t.closed.Number <= limit {
		return
	}
	summaries, ids := remembered{}, remembered{}
	err := t.store.Scan([]byte{prefixClosing}, func(key, value []byte) error {
		id := workflow.InstanceID(key[1:])
		c := readClosing(id, value)
		switch m := (memory{id, c.Closed, c.Started}); {
		case c.Signer != "":
			summaries[c.By] = append(summaries[c.By], m)
		case c.By != "": // else it is not known whose it is: it stays
			m.at = m.started
			ids[c.By] = append(ids[c.By], m)
		}
		return nil
	})
	if err == nil {
		err = t.shorten(summaries, ids, limit-limit/10) // some more, so as not to come again soon
	}
	if err == nil {
		err = t.dropIDs(ids.beyond(limit * maxForgotten))
	}
	if err != nil {
		t.logClosing(err)
	}
}

// shorten leaves of summaries the IDs, but of so many.
func (t *retention) shorten(summaries, ids remembered, limit int) error {
	var writes []kv.Write
	next := t.closed.clone()
	next.Number = summaries.number()
	beyond := summaries.beyond(limit)
	next.Number -= beyond.number()
	for _, by := range slices.Sorted(maps.Keys(beyond)) {
		for _, m := range beyond[by] {
			writes = append(writes, kv.Write{Key: closingKey(m.id), Value: encode(forgotten{By: by, Started: m.started})})
			m.at = m.started
			ids[by] = append(ids[by], m)
		}
	}
	if err := commitAll(t.store, append(writes, kv.Write{Key: metaKey(metaClosed), Value: encode(next)})); err != nil {
		return err
	}
	t.closed = next
	return nil
}

// dropIDs deletes IDs. First it is noted what is not taken in any more for want of them.
func (t *retention) dropIDs(ids remembered) error {
	if len(ids) == 0 {
		return nil
	}
	until := map[workflow.PartnerID]int64{}
	var writes []kv.Write
	for _, by := range slices.Sorted(maps.Keys(ids)) {
		for _, m := range ids[by] {
			until[by] = max(until[by], m.started)
			writes = append(writes, kv.Write{Key: closingKey(m.id), Delete: true})
		}
	}
	now := kv.Write{Key: metaKey(metaDropped), Value: encode(storedDropped{Until: t.index.dropIDs(until)})}
	return commitAll(t.store, append([]kv.Write{now}, writes...))
}

// commitAll makes writes durable in their order, in units of bounded size.
func commitAll(store Store, writes []kv.Write) error {
	for len(writes) > 0 {
		u := kv.Unit(writes)
		if err := store.CommitWait(writes[:u]); err != nil {
			return err
		}
		writes = writes[u:]
	}
	return nil
}

// remembered are instances of which not all is kept, by their initiators.
type remembered map[workflow.PartnerID][]memory

type memory struct {
	id          workflow.InstanceID
	at, started int64 // ms: by what the oldest is found, and when the instance began
}

func (r remembered) number() (n int) {
	for _, of := range r {
		n += len(of)
	}
	return n
}

// beyond are those that are too many: of the initiator of most, the oldest.
func (r remembered) beyond(limit int) remembered {
	var numbers []int
	for _, of := range r {
		numbers = append(numbers, len(of))
	}
	level := levelOf(numbers, limit)
	out := remembered{}
	for by, of := range r {
		if len(of) > level {
			slices.SortFunc(of, func(a, b memory) int { return cmp.Or(cmp.Compare(a.at, b.at), compareInstances(a.id, b.id)) })
			out[by] = of[:len(of)-level]
		}
	}
	return out
}

// levelOf is how many each may have, so that all together have no more than limit.
func levelOf(numbers []int, limit int) int {
	slices.Sort(numbers)
	for i, number := range numbers {
		if level := limit / (len(numbers) - i); number > level {
			return level
		}
		limit -= number
	}
	return math.MaxInt
}

// closable reports whether all facts of an instance may be deleted.
func (sum summary) closable() bool { return sum.Settled && !sum.Open || sum.Closed }

// closable are the instances to be given up at that age of the node, the oldest first:
// whose time is over and, where there are more than their limits, those that ended
// longest ago, a while after their end.
func (x *index) closable(l configs.Limits, age time.Duration) []workflow.InstanceID {
	x.mu.Lock()
	defer x.mu.Unlock()
	over := func(n, limit int) int { return max(n-limit+limit/8, 0) } // before the limit is reached
	early, earlyOf := over(x.tally.all.ended, othersOf(l.Ended)), map[workflow.PartnerID]int{}
	for p, of := range x.tally.of {
		if n := over(of.ended, shareOf(l.Ended)); n > 0 {
			earlyOf[p] = n
		}
	}
	for p, size := range x.tally.stored { // the disk likewise: an eighth of the instances
		if size > shareOf(l.Disk)/8*7 {
			earlyOf[p] = max(earlyOf[p], 1+x.tally.of[p].ended/8)
		}
	}
	if x.tally.storedAll > othersOf(l.Disk)/8*7 {
		early = max(early, 1+x.tally.all.ended/8)
	}
	var due []workflow.InstanceID
	for id, sum := range x.all {
		_, aside := x.aside[id]
		past, spare, least := age-sum.Age, early > 0 || earlyOf[sum.By] > 0, earliest
		if sum.Unanswered || sum.Late {
			least = reluctantly
		}
		if !aside && sum.closable() && (sum.Closed || past >= l.Keep || spare && past >= least) {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b workflow.InstanceID) int {
		return cmp.Or(cmp.Compare(x.all[a].Age, x.all[b].Age), compareInstances(a, b))
	})
	return slices.DeleteFunc(due, func(id workflow.InstanceID) bool {
		sum := x.all[id]
		keep := !sum.Closed && age-sum.Age < l.Keep && early <= 0 && earlyOf[sum.By] <= 0
		if !keep {
			early--
			earlyOf[sum.By]--
		}
		return keep
	})
}

// drop takes an instance off the list that was given up. It stays in the digests.
func (x *index) drop(id workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tally.count(x.all[id], -1)
	delete(x.all, id)
}

// dropIDs notes up to when members began instances of which the IDs are dropped, and
// returns that of all members.
func (x *index) dropIDs(until map[workflow.PartnerID]int64) map[workflow.PartnerID]int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	for p, at := range until {
		x.dropped[p] = max(x.dropped[p], at)
	}
	return maps.Clone(x.dropped)
}

// mayBeDropped reports whether an instance that a member began then may be one of which
// the ID was dropped.
func (x *index) mayBeDropped(by workflow.PartnerID, started int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	until, some := x.dropped[by]
	return some && started <= until
}

// refuseClosed answers a partner that sends something of an instance that was
// given up.
func (s *shard) refuseClosed(to workflow.PartnerID, c closing) {
	if c.Signer != "" && c.Others == 0 && !slices.Contains(c.With, to) {
		s.n.refuse("facts-from-no-participant", to)
		return
	}
	r := wire.Refusal{Instance: c.Instance, Why: wire.RefusedClosed}
	if c.Signer != "" {
		r.Closing = encode(c)
	}
	s.batch.refusals = append(s.batch.refusals, refusalTo{to, r})
}

// closedHere is the error of an instance that is not taken in again.
type closedHere struct{ closing }

func (e *closedHere) Error() string { return "of this instance only the summary is kept" }

// takeClosing takes in that a partner keeps only the summary of an instance. It has
// had all that it needs, and is sent no more; if this node has other facts, they came
// too late for it.
func (s *shard) takeClosing(from workflow.PartnerID, h *held, r wire.Refusal) error {
	c := closing{Instance: r.Instance}
	if len(r.Closing) > 0 {
		var err error
		if c, err = verifyClosing(r.Closing, from); err != nil || c.Instance != r.Instance {
			s.n.refuse("summary", from)
			return nil
		}
	}
	if h.m.Overall() == workflow.InstanceRunning {
		// What it had was perhaps an end that was lifted since. It is asked again.
		s.n.refuse("summary-of-running", from)
		s.refusedFor(h, from, r.Why)
		return nil
	}
	if h.closedBy == nil {
		h.closedBy = map[workflow.PartnerID]closing{}
	}
	h.closedBy[from] = c
	delete(h.pending, from)
	s.touch(h)
	if c.Signer != "" && c.Number < uint64(h.m.Len()) {
		s.n.retention.tooLate(h, from, c)
	}
	return nil
}

// tooManyLives tells people that a partner takes in nothing that this node says of an
// instance since its store was made or restored for the last time.
func (t *retention) tooManyLives(h *held, by workflow.PartnerID) {
	id, name := h.m.Instance(), t.people.label(by)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.late) < maxLate {
		t.late[id] = fmt.Sprintf("instance %s of %s: %s takes in nothing more that this node does in it, since this node's store was made or restored more than %d times while it ran: have it cancelled by another who takes part, and started again",
			id, h.def.Def.Name, name, choreo.MaxChains)
	}
}

// lateOnes says in which instances partners do not take in what is here.
func (t *retention) lateOnes() (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(t.late), compareInstances) {
		out = append(out, t.late[id])
	}
	return out
}

// checkLate tells of the instances in which partners do not take in what is here.
func (t *retention) checkLate(d *diagnosis) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(t.late), compareInstances) {
		d.warn("facts", t.late[id], "mutirao show "+id.Short()+" shows what is here; its initiator decides")
	}
}

// tooLate tells people that facts of this node's reach a partner too late.
func (t *retention) tooLate(h *held, by workflow.PartnerID, c closing) {
	id, name := h.m.Instance(), t.people.label(by)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.late) < maxLate {
		t.late[id] = fmt.Sprintf("instance %s of %s: %s had all of it when it deleted its facts, on %s, and takes no more: what came later is known here, and not there",
			id, h.def.Def.Name, name, time.UnixMilli(c.Closed).UTC().Format(time.DateOnly))
	}
}

// late reports whether this node has facts that a partner that is not gone takes no
// more. Such an instance is kept for limits.keep once more from when that is known.
func (h *held) late(gone func(workflow.PartnerID) bool) bool {
	for p, c := range h.closedBy {
		if c.Signer != "" && c.Number < uint64(h.m.Len()) && !gone(p) {
			return true
		}
	}
	return false
}

// mindSilence notes, every now and then (antiEntropy), who does not answer about an
// ended instance, and has the instance looked at when it waits for somebody less.
func (s *shard) mindSilence(h *held) {
	if h.sum.State == "" || h.sum.State == workflow.InstanceRunning {
		h.silent, h.excused = nil, 0
		return
	}
	excused := 0
	for _, p := range h.m.Audience() {
		switch {
		case p == s.n.member.ID():
		case s.n.people.Evicted(p):
			excused++
		case !h.m.Behind(p):
			delete(h.silent, p)
		default:
			if s.n.up(p) || !s.n.people.Known(p) {
				if h.silent == nil {
					h.silent = map[workflow.PartnerID]time.Duration{}
				}
				h.silent[p] = min(h.silent[p]+antiEntropy, unanswered)
			}
			if h.silent[p] >= unanswered {
				excused++
			}
		}
	}
	if excused != h.excused {
		h.excused = excused
		s.touch(h)
	}
}

// awaited reports whether a participant that may lack something of an ended instance
// is waited for, and whether it is only not waited for as it does not answer.
func (s *shard) awaited(h *held, p workflow.PartnerID) (yes, unheard bool) {
	_, closed := h.closedBy[p]
	if p == s.n.member.ID() || closed || !h.m.Behind(p) || s.n.people.Evicted(p) {
		return false, false
	}
	unheard = h.silent[p] >= unanswered
	return !unheard, unheard
}

// maxLate bounds of how many instances status says that facts came too late.
const maxLate = 64

// closings lists the summaries whose IDs begin so, the newest first.
func (t *retention) closings(prefix string) (out []closing, err error) {
	b, _ := hex.DecodeString(prefix[:len(prefix)/2*2])
	err = t.store.Scan(append([]byte{prefixClosing}, b...), func(key, value []byte) error {
		if id := workflow.InstanceID(key[1:]); strings.HasPrefix(id.String(), prefix) {
			out = append(out, readClosing(id, value))
		}
		return nil
	})
	return out, err
}

// onlySummary is the error of what is asked of an instance whose facts were deleted.
type onlySummary struct {
	err     *api.Error
	closing closing
}

func (e *onlySummary) Error() string { return e.err.Error() }
func (e *onlySummary) Unwrap() error { return e.err }

// findClosed finds the instance, of which only the summary is kept, whose ID begins so;
// nil: there is none.
func (t *retention) findClosed(prefix string) error {
	if prefix == "" {
		return nil
	}
	found, err := t.closings(prefix)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return nil
	case len(found) > 1:
		return api.Errorf(api.Invalid, "%q begins the IDs of %d instances", prefix, len(found)).WithHint("give more of the ID")
	}
	c := found[0]
	what := "ended so long ago that only its ID is known"
	if c.Signer != "" {
		what = fmt.Sprintf("ended (%s) on %s, and only its summary is kept", c.State, time.UnixMilli(c.Ended).UTC().Format(time.DateOnly))
	}
	return &onlySummary{api.Errorf(api.Refused, "instance %s %s", c.Instance, what).WithHint("mutirao show %s shows the summary; limits.keep in config.yaml says for how long the rest is kept", c.Instance.Short()), c}
}

// listed is a summary as lists show it.
func (c closing) listed() api.InstanceSummary {
	return api.InstanceSummary{
		ID: c.Instance.String(), Workflow: c.Workflow, Version: c.Version, State: c.State,
		Started: wire.AtMilli(c.Started), Ended: wire.Instant(c.Ended), Closed: wire.Instant(c.Closed),
	}
}

// shownClosing is an instance of which only the summary is left, for people.
func (t *retention) shownClosing(c closing) *api.Instance {
	in := &api.Instance{
		ID: c.Instance.String(), Workflow: c.Workflow, Version: c.Version, State: c.State, Incidents: []api.Incident{}, Conflicts: []api.Conflict{},
		Started: wire.AtMilli(c.Started), Ended: wire.Instant(c.Ended), Partitions: []api.Partition{}, Tasks: []api.Task{}, Data: map[string]any{},
	}
	in.Closed = t.closedFor(c)
	return in
}

func (t *retention) closedFor(c closing) *api.Closing {
	return &api.Closing{
		At: wire.AtMilli(c.Closed), By: t.people.name(c.Signer), Initiator: t.people.name(c.By), Facts: c.Number, Digest: hex.EncodeToString(c.Digest[:]),
		Participants: t.people.names(c.With), Others: c.Others, Definition: c.Definition.String(), Signature: hex.EncodeToString(c.Sig),
	}
}
