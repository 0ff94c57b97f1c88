package node_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// disk is a node's store in memory. It outlives the node's process, can be made
// to fail or to take its time, and knows at every moment which facts are
// durable.
type disk struct {
	mu      sync.Mutex
	data    map[string]string
	fail    error // every commit fails with it
	room    int   // commits until fail is that the disk is full; 0: it does not become so by itself
	blind   error // every reading of one key does
	slow    bool  // commits wait for free
	left    int   // commits until that begins; 0: it does not by itself
	waiting []waitingCommit
	commits int
	scanned int
	written map[byte]int         // by the first byte of their keys, how many entries were
	named   map[string][]fact.ID // of what is stored, as far as facts has read it
}

// The limits of the real store (store.MaxUnit, store.MaxUnitWrites).
const (
	maxUnit       = 1<<20 - 1 + 128<<10
	maxUnitWrites = 4096
)

type waitingCommit struct {
	writes []kv.Write
	done   func(error)
}

func newDisk() *disk {
	return &disk{data: map[string]string{}, named: map[string][]fact.ID{}, written: map[byte]int{}}
}

// Commit implements node.Store.
func (d *disk) Commit(writes []kv.Write, done func(error)) {
	d.mu.Lock()
	if d.left > 0 {
		d.left--
		d.slow = d.left == 0
	}
	if d.slow {
		d.waiting = append(d.waiting, waitingCommit{writes, done})
		d.mu.Unlock()
		return
	}
	err := d.put(writes)
	d.mu.Unlock()
	done(err)
}

// CommitWait implements node.Store.
func (d *disk) CommitWait(writes []kv.Write) error {
	done := make(chan error, 1)
	d.Commit(writes, func(err error) { done <- err })
	return <-done
}

func (d *disk) put(writes []kv.Write) error {
	d.commits++
	if d.room > 0 {
		if d.room--; d.room == 0 {
			d.fail = kv.ErrFull
		}
	}
	if d.fail != nil {
		return d.fail
	}
	size := 0
	for _, w := range writes {
		size += len(w.Key) + len(w.Value) + 32
	}
	if len(writes) > maxUnitWrites || size > maxUnit {
		return fmt.Errorf("%w: %d writes of %d bytes in one unit", kv.ErrTooBig, len(writes), size)
	}
	for _, w := range writes {
		if _, there := d.data[string(w.Key)]; there && w.New {
			panic(fmt.Sprintf("%q is not new", w.Key))
		}
		if d.written[w.Key[0]]++; w.Delete {
			delete(d.data, string(w.Key))
		} else {
			d.data[string(w.Key)] = string(w.Value)
		}
	}
	return nil
}

// Get implements node.Store.
func (d *disk) Get(key []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blind != nil {
		return nil, d.blind
	}
	v, ok := d.data[string(key)]
	if !ok {
		return nil, fmt.Errorf("key %q: %w", key, kv.ErrNotFound)
	}
	return []byte(v), nil
}

// Scan implements node.Store.
func (d *disk) Scan(prefix []byte, fn func(key, value []byte) error) error {
	d.mu.Lock()
	d.scanned++
	data := maps.Clone(d.data)
	d.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(data)) {
		if strings.HasPrefix(k, string(prefix)) {
			if err := fn([]byte(k), []byte(data[k])); err != nil {
				return err
			}
		}
	}
	return nil
}

// searched is how often Scan was called since it was asked last.
func (d *disk) searched() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, d.scanned = d.scanned, 0
	return n
}

// writes is how often an entry was written whose key begins so.
func (d *disk) writes(kind byte) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written[kind]
}

// failWith has commits fail from now on; nil: no more.
func (d *disk) failWith(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// fullAt has the n-th commit from now on, and those after it, find no room, until failWith.
func (d *disk) fullAt(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = n
}

// blindWith has readings of a key fail from now on; nil: no more.
func (d *disk) blindWith(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blind = err
}

// hold has commits wait until free.
func (d *disk) hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = true
}

// holdAt has the n-th commit from now on, and those after it, wait until free.
func (d *disk) holdAt(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = n
}

// free carries the waiting commits out, and those to come at once.
func (d *disk) free() {
	d.mu.Lock()
	waiting := d.waiting
	d.waiting, d.slow, d.left = nil, false, 0
	errs := make([]error, len(waiting))
	for i, w := range waiting {
		errs[i] = d.put(w.writes)
	}
	d.mu.Unlock()
	for i, w := range waiting {
		w.done(errs[i])
	}
}

// loseWaiting is what a crash does to commits that were not synced.
func (d *disk) loseWaiting() {
	d.mu.Lock()
	waiting := d.waiting
	d.waiting, d.slow, d.left = nil, false, 0
	d.mu.Unlock()
	for _, w := range waiting {
		w.done(kv.ErrClosed)
	}
}

// backup copies the disk; restore puts it back.
func (d *disk) backup() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.data)
}

func (d *disk) restore(data map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.data = map[string]string{}
	maps.Copy(d.data, data)
}

// facts are the names of all facts that are durable.
func (d *disk) facts(t testing.TB) map[fact.ID]bool {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[fact.ID]bool{}
	for key, value := range d.data {
		if key[0] != 'f' || value[0] == 0xff { // garbled by the test
			continue
		}
		ids, known := d.named[value]
		if !known {
			var err error
			if ids, err = namesOf(value); err != nil {
				t.Errorf("stored facts cannot be read: %v", err)
			}
			d.named[value] = ids
		}
		for _, id := range ids {
			out[id] = true
		}
	}
	return out
}

// garbled is what the test has in the place of a fact.
const garbled = "\xff"

// namesOf are the names of the facts in an entry.
func namesOf(value string) (ids []fact.ID, err error) {
	var entry [][]cbor.RawMessage // of each the raw fact, attestation, …
	if err := cbor.Unmarshal([]byte(value), &entry); err != nil {
		return nil, err
	}
	for _, stored := range entry {
		var raw []byte
		if err := cbor.Unmarshal(stored[0], &raw); err != nil {
			return nil, err
		}
		if string(raw) == garbled {
			continue
		}
		_, id, err := fact.Decode(raw)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
