package closings

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// maxForgotten is of how many instances only the IDs are kept, for each summary.
const maxForgotten = 8

// Forget leaves only the IDs of summaries when there are more than the limit, and
// drops IDs when there are more than maxForgotten times as many.
func (b *Book) Forget() error {
	b.changing.Lock()
	defer b.changing.Unlock()
	limit := b.in.Limit
	if b.account.Number <= limit {
		return nil
	}
	summaries, ids := remembered{}, remembered{}
	err := b.in.Store.Scan([]byte{Prefix}, func(key, value []byte) error {
		id := workflow.InstanceID(key[1:])
		c := read(id, value)
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
		err = b.shorten(summaries, ids, limit-limit/10) // some more, so as not to come again soon
	}
	if err == nil {
		err = b.dropIDs(ids.beyond(limit * maxForgotten))
	}
	return err
}

// shorten leaves of summaries the IDs, but of so many.
func (b *Book) shorten(summaries, ids remembered, limit int) error {
	var writes []kv.Write
	next := b.account.clone()
	next.Number = summaries.number()
	beyond := summaries.beyond(limit)
	next.Number -= beyond.number()
	for _, by := range slices.Sorted(maps.Keys(beyond)) {
		for _, m := range beyond[by] {
			writes = append(writes, kv.Write{
				Key: Key(m.id), Value: codec.Encode(forgotten{By: by, Started: m.started}),
			})
			m.at = m.started
			ids[by] = append(ids[by], m)
		}
	}
	account := kv.Write{Key: []byte(KeyAccount), Value: codec.Encode(next)}
	if err := kv.CommitAll(b.in.Store, append(writes, account)); err != nil {
		return err
	}
	b.account = next
	return nil
}

// dropIDs deletes IDs. First it is noted what is not taken in any more for want of them.
func (b *Book) dropIDs(ids remembered) error {
	if len(ids) == 0 {
		return nil
	}
	until := map[workflow.PartnerID]int64{}
	var writes []kv.Write
	for _, by := range slices.Sorted(maps.Keys(ids)) {
		for _, m := range ids[by] {
			until[by] = max(until[by], m.started)
			writes = append(writes, kv.Write{Key: Key(m.id), Delete: true})
		}
	}
	now := kv.Write{Key: []byte(KeyDropped), Value: codec.Encode(storedDropped{Until: b.drop(until)})}
	return kv.CommitAll(b.in.Store, append([]kv.Write{now}, writes...))
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
			slices.SortFunc(of, func(a, b memory) int {
				return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.id[:], b.id[:]))
			})
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
