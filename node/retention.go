package node

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
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

const (
	// unanswered is how long a partner is connected, or not on the partner list, until
	// it is not waited for any more.
	unanswered = time.Hour
	// closeBatch is how many instances one event gives up.
	closeBatch = 64
	// retainEvery is how often this node looks for what it need not keep.
	retainEvery = time.Minute
)

// retention is what is kept of instances that have ended: which ones partners have as
// well, and for how long their facts stay.
type retention struct {
	*contacts
	crew        *crew
	index       *index.List
	people      holders
	definitions sweeping
	comparing   *ration.Budgets

	closings *closings.Book
	next     time.Duration // Awake: when to look again for what need not be kept

	mu   sync.Mutex // guards late
	late map[workflow.InstanceID]string
}

// sweeping forgets definitions that nothing uses any more.
type sweeping interface {
	Sweep(uses func() func(workflow.Hash) bool) error
}

// holders is what retention asks of the partner list.
type holders interface {
	name(workflow.PartnerID) string
	label(workflow.PartnerID) string
	names([]workflow.PartnerID) []string
}

func newRetention(c *contacts, w *crew, x *index.List, p holders, d sweeping, b *closings.Book) *retention {
	return &retention{
		contacts: c, crew: w, index: x, people: p, definitions: d, closings: b, comparing: ration.New(comparingRation),
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

// retain gives up what need not be kept, and returns after what time to look again.
func (t *retention) retain() time.Duration {
	t.closings.KeepAge()
	most := closeBatch * len(t.crew.shards)
	due := t.index.Closable(t.config.Limits, t.closings.Age(), t.member.ID(), most)
	more := len(due) == most
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
	t.logClosing(t.closings.Forget())
	t.crew.side(func() {
		if err := t.definitions.Sweep(t.index.Uses); err != nil {
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
	t := s.n.retention
	return t.closings.GiveUp(func(account *closings.Account, commit func([]kv.Write) error) error {
		var writes []kv.Write
		var done []workflow.InstanceID
		flush := func() error {
			if len(done) == 0 {
				return nil
			}
			if err := commit(writes); err != nil {
				return err
			}
			t.gone(done)
			writes, done = nil, nil
			return nil
		}
		for _, id := range ids {
			sum, known := s.n.index.Get(id)
			if _, aside := s.aside[id]; !known || aside || !sum.Closable() || s.held[id] != nil {
				continue // something came in between
			}
			w, err := s.closingWrites(id, sum)
			if err == nil && !kv.Fits(w) {
				w, err = s.closeLarge(id, sum, w)
			}
			if err == nil && !kv.Fits(slices.Concat(writes, w)) {
				err = flush()
			}
			if err != nil {
				return err
			}
			writes, done = append(writes, w...), append(done, id)
			account.Add(sum.Partners(), sum.Facts)
		}
		return flush()
	})
}

// gone takes instances off the list that were given up.
func (t *retention) gone(ids []workflow.InstanceID) {
	for _, id := range ids {
		t.index.Drop(id)
	}
	t.count("closed", uint64(len(ids)))
}

// closeLarge deletes what does not fit into one unit of an instance that is given up:
// first it is marked, with its summary in place, so that whatever happens the next
// start goes on. It returns what is left to be done.
func (s *shard) closeLarge(id workflow.InstanceID, sum index.Summary, writes []kv.Write) ([]kv.Write, error) {
	end := kv.Write{Key: index.Key(id), Delete: true}
	if sum.Closed = true; bytes.Equal(writes[0].Key, closings.Key(id)) {
		if err := s.n.store.CommitWait([]kv.Write{writes[0], {Key: index.Key(id), Value: encode(sum)}}); err != nil {
			return nil, err
		}
		s.n.index.Put(id, sum)
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
func (s *shard) closingWrites(id workflow.InstanceID, sum index.Summary) ([]kv.Write, error) {
	var out []kv.Write
	if !sum.Closed {
		out = append(out, kv.Write{Key: closings.Key(id),
			Value: s.n.retention.closings.Close(sum.Closing(id)).Encode()})
	}
	out = append(out, kv.Write{Key: index.Key(id), Delete: true})
	for _, prefix := range [][]byte{
		factPrefix(id), waitsKey(id), keptPrefix(id), index.NewsKey(id), worklists.ReadPrefix(id),
	} {
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

// refuseClosed answers a partner that sends something of an instance that was
// given up.
func (s *shard) refuseClosed(to workflow.PartnerID, c closings.Closing) {
	if c.Signer != "" && c.Others == 0 && !slices.Contains(c.With, to) {
		s.n.refuse("facts-from-no-participant", to)
		return
	}
	r := wire.Refusal{Instance: c.Instance, Why: wire.RefusedClosed}
	if c.Signer != "" {
		r.Closing = c.Encode()
	}
	s.batch.refusals = append(s.batch.refusals, refusalTo{to, r})
}

// closedHere is the error of an instance that is not taken in again.
type closedHere struct{ closing closings.Closing }

func (e *closedHere) Error() string { return "of this instance only the summary is kept" }

// takeClosing takes in that a partner keeps only the summary of an instance. It has
// had all that it needs, and is sent no more; if this node has other facts, they came
// too late for it.
func (s *shard) takeClosing(from workflow.PartnerID, h *held, r wire.Refusal) error {
	c := closings.Closing{Instance: r.Instance}
	if len(r.Closing) > 0 {
		var err error
		if c, err = closings.Verify(r.Closing, from); err != nil || c.Instance != r.Instance {
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
		h.closedBy = map[workflow.PartnerID]closings.Closing{}
	}
	h.closedBy[from] = c
	delete(h.pending, from)
	s.n.call(s.n.lineup.Leave(from, r.Instance))
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
			id, h.def.Def.Name, name, fact.MaxChains)
	}
}

// lateOnes says in which instances partners do not take in what is here.
func (t *retention) lateOnes() (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(t.late), workflow.InstanceID.Compare) {
		out = append(out, t.late[id])
	}
	return out
}

// CheckLate tells of the instances in which partners do not take in what is here.
func (t *retention) CheckLate(warn func(check, what, mend string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(t.late), workflow.InstanceID.Compare) {
		warn("facts", t.late[id], "mutirao show "+id.Short()+" shows what is here; its initiator decides")
	}
}

// tooLate tells people that facts of this node's reach a partner too late.
func (t *retention) tooLate(h *held, by workflow.PartnerID, c closings.Closing) {
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

// onlySummary is the error of what is asked of an instance whose facts were deleted.
type onlySummary struct {
	err     *api.Error
	closing closings.Closing
}

func (e *onlySummary) Error() string { return e.err.Error() }
func (e *onlySummary) Unwrap() error { return e.err }

// findClosed finds the instance, of which only the summary is kept, whose ID begins so;
// nil: there is none.
func (t *retention) findClosed(prefix string) error {
	if prefix == "" {
		return nil
	}
	found, err := t.closings.List(prefix)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return nil
	case len(found) > 1:
		return api.Errorf(api.Invalid, "%q begins the IDs of %d instances", prefix, len(found)).
			WithHint("give more of the ID")
	}
	c := found[0]
	what := "ended so long ago that only its ID is known"
	if c.Signer != "" {
		what = fmt.Sprintf("ended (%s) on %s, and only its summary is kept", c.State,
			time.UnixMilli(c.Ended).UTC().Format(time.DateOnly))
	}
	return &onlySummary{api.Errorf(api.Refused, "instance %s %s", c.Instance, what).
		WithHint("mutirao show %s shows the summary; limits.keep in config.yaml says for how long the rest is kept",
			c.Instance.Short()), c}
}

// listedClosing is a summary as lists show it.
func listedClosing(c closings.Closing) api.InstanceSummary {
	return api.InstanceSummary{
		ID: c.Instance.String(), Workflow: c.Workflow, Version: c.Version, State: c.State,
		Started: wire.AtMilli(c.Started), Ended: wire.Instant(c.Ended), Closed: wire.Instant(c.Closed),
	}
}

// shownClosing is an instance of which only the summary is left, for people.
func (t *retention) shownClosing(c closings.Closing) *api.Instance {
	in := &api.Instance{
		ID: c.Instance.String(), Workflow: c.Workflow, Version: c.Version, State: c.State, Incidents: []api.Incident{},
		Conflicts: []api.Conflict{},
		Started:   wire.AtMilli(c.Started), Ended: wire.Instant(c.Ended), Partitions: []api.Partition{},
		Tasks: []api.Task{}, Data: map[string]any{},
	}
	in.Closed = t.closedFor(c)
	return in
}

func (t *retention) closedFor(c closings.Closing) *api.Closing {
	return &api.Closing{
		At: wire.AtMilli(c.Closed), By: t.people.name(c.Signer), Initiator: t.people.name(c.By), Facts: c.Number,
		Digest:       hex.EncodeToString(c.Digest[:]),
		Participants: t.people.names(c.With), Others: c.Others, Definition: c.Definition.String(),
		Signature: hex.EncodeToString(c.Sig),
	}
}
