package node

import (
	"context"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// What people are told of instances is worked out from what is here whenever they ask. Of an instance that has
// ended, and so is not kept in memory, that is noted with its end, and goes with it.

const (
	// maxNoted bounds the failures that are noted of an ended instance, and notedReason the letters of each.
	maxNoted    = 16
	notedReason = 160
	// maxOfOne bounds the messages about one instance, the newest.
	maxOfOne = 256
)

// news is what people are told of an instance that has ended.
type news struct {
	_           struct{} `cbor:",toarray"`
	Responsible worklist.User
	Round       int // how often an order had it go on
	Failed      []failed
}

// failed is a task that has failed in it.
type failed struct {
	_        struct{} `cbor:",toarray"`
	Assigned [32]byte
	Slot     workflow.TaskName
	Task     workflow.TaskName
	By       [32]byte
	At       int64
	Reason   string
	Asks     bool
}

func newsKey(id workflow.InstanceID) []byte { return append([]byte{prefixNews}, id[:]...) }

// newsOf is what people are told of an instance.
func newsOf(h *held) news {
	n := news{Responsible: h.m.Responsible(), Round: h.m.DoneAgain()}
	all := h.m.Failures()
	for _, f := range all[max(0, len(all)-maxNoted):] {
		n.Failed = append(n.Failed, failed{
			Assigned: f.Item.Assigned, Slot: f.Item.Slot, Task: f.Task, By: f.By, At: f.At,
			Reason: inOneLine(f.Reason, notedReason), Asks: f.Asks,
		})
	}
	return n
}

// messages are what whoever answers for an instance is told of it, but for its deadlines.
func (n news) messages(id workflow.InstanceID, sum summary) (out []worklist.Message) {
	of := worklist.Source{Instance: id, Workflow: sum.Workflow}
	out = append(out, of.Began(wire.AtMilli(sum.Started)))
	for _, f := range n.Failed {
		i := worklist.Item{Assigned: f.Assigned, Slot: f.Slot}
		out = append(out, of.Failed(i, f.Task, f.By, wire.AtMilli(f.At), f.Reason, f.Asks))
	}
	if sum.Ended > 0 {
		out = append(out, of.Finished(wire.AtMilli(sum.Ended), sum.State, n.Round))
	}
	return out
}

// loadNews reads what was noted of ended instances.
func (x *index) loadNews(s Store) error {
	return s.Scan([]byte{prefixNews}, func(key, value []byte) error {
		var n news
		if len(key) == 1+len(workflow.InstanceID{}) && decode(value, &n) == nil {
			x.tell(workflow.InstanceID(key[1:]), n)
		}
		return nil
	})
}

// tell notes what people are told of an instance that has ended.
func (x *index) tell(id workflow.InstanceID, n news) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.news[id] = n
}

// told is what a person is told of ended instances, but for some.
func (x *index) told(u worklist.User, but map[workflow.InstanceID]bool) (out []worklists.Told) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, n := range x.news {
		sum, here := x.all[id]
		if n.Responsible != u || but[id] || !here || sum.Ended == 0 {
			continue
		}
		for _, m := range n.messages(id, sum) {
			out = append(out, worklists.Told{Message: m, From: sum.By})
		}
	}
	return out
}

// Messages are what a person is told of the instances here, and when there may be one more (Boot; 0: never).
func (k peoplesItems) Messages(
	ctx context.Context, u worklist.User,
) (out []worklists.Told, next time.Duration, err error) {
	now := k.clock.Now()
	at := choreo.Moment{Boot: now.Boot, Wall: now.Wall}
	type news struct {
		told []worklists.Told
		of   []workflow.InstanceID
		next time.Duration
	}
	found, err := lookAt(ctx, k.crew, func(s *shard) (is news) {
		s.each(func(id workflow.InstanceID, h *held) {
			is.of = append(is.of, id)
			answers := h.m.Responsible() == u
			more, then := h.m.Reminders(u, answers, at, k.view.ahead)
			if answers {
				more = append(more, newsOf(h).messages(id, h.sum)...)
			}
			slices.SortStableFunc(more, func(a, b worklist.Message) int { return a.At.Compare(b.At) })
			for _, m := range more[max(0, len(more)-maxOfOne):] {
				is.told = append(is.told, worklists.Told{Message: m, From: h.sum.By})
			}
			if then > 0 && (is.next == 0 || then < is.next) {
				is.next = then
			}
		})
		return is
	})
	if err != nil {
		return nil, 0, err
	}
	inMemory := map[workflow.InstanceID]bool{}
	for _, is := range found {
		for _, id := range is.of {
			inMemory[id] = true
		}
		if out = append(out, is.told...); is.next > 0 && (next == 0 || is.next < next) {
			next = is.next
		}
	}
	return append(out, k.index.told(u, inMemory)...), next, nil
}

// noteNews notes with the end of an instance what people are told of it.
func (s *shard) noteNews(h *held) kv.Write {
	n := newsOf(h)
	h.news = &n
	return kv.Write{Key: newsKey(h.m.Instance()), Value: encode(n)}
}
