package node

import (
	"bytes"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file gives up what need not be kept of instances that have ended (retention.go), and takes in that partners
// have.

const (
	// closeBatch is how many instances one event gives up.
	closeBatch = 64
	// retainEvery is how often this node looks for what it need not keep.
	retainEvery = time.Minute
)

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
