package sim

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// disk is a node's store. What Commit has reported survives crashes.
type disk struct {
	data map[string][]byte
	// order are the keys of data, in order; nil where they have to be sorted again.
	order []string
	// facts are the facts among the data, by name: what a crash would leave.
	facts map[fact.ID]bool
	read  *reader
	full  bool
	// crash, if set, has the next commit crash: before or after it is durable.
	crash *crashIn
	// unsynced, for broken variants: commits are reported before they are
	// durable, and lost at a crash.
	lazy     bool
	unsynced [][]kv.Write
	commits  int
	// traced is told of every write, wrote of every fact that became durable, gaveUp of
	// every instance that a summary took the place of, again of what was given up and is
	// written again.
	traced        func(kv.Write)
	wrote         func(fact.ID, *fact.Fact)
	gaveUp, again func(workflow.InstanceID)
	// bad are keys that cannot be read until they are written again; attic is what was
	// deleted of facts.
	bad   map[string]bool
	attic map[string][]byte
	// damage is what was lost and not settled: as the product's store does, it notices
	// each entry that is gone.
	damage kv.Damage
}

// Damage is what was lost.
func (d *disk) Damage() kv.Damage { return d.damage }

// Settle says that what follows from the damage was made durable.
func (d *disk) Settle() error {
	d.damage = kv.Damage{}
	return nil
}

// Verify finds nothing wrong: what is lost here is lost while the node is down.
func (d *disk) Verify() error { return nil }

type crashIn struct {
	after bool
	skip  int           // so many commits before it go well
	away  time.Duration // how long the node is away; 0: as long as after others
}

// crashed is what a crash in a commit panics with; the world recovers it.
type crashed struct{ away time.Duration }

// Keys in a node's store (node/keys.go): of facts, and of those that were saved from a
// damaged instance and lie beside it until their past, and what vouches for them, is there
// again.
const (
	factKeys  = 'f'
	savedKeys = 'k'
)

// Commit makes writes durable, or fails, or crashes the node.
func (d *disk) Commit(writes []kv.Write, done func(error)) {
	d.commits++
	if d.full {
		done(fmt.Errorf("simulated: %w", kv.ErrFull))
		return
	}
	c := d.crash
	if c != nil && c.skip > 0 {
		c.skip--
		c = nil
	} else {
		d.crash = nil
	}
	if c != nil && !c.after {
		panic(crashed{c.away})
	}
	if d.lazy {
		d.unsynced = append(d.unsynced, slices.Clone(writes)) // whose array is theirs after done
		if len(d.unsynced) > 8 {
			d.sync()
		}
	} else {
		d.apply(writes)
	}
	if c != nil {
		panic(crashed{c.away})
	}
	done(nil)
}

func (d *disk) apply(writes []kv.Write) {
	for _, w := range writes {
		d.traced(w)
		key := string(w.Key)
		delete(d.bad, key)
		if w.Delete {
			if key[0] == factKeys {
				d.attic[key] = d.data[key]
			}
			delete(d.data, key)
			d.note(key, false)
			continue
		}
		_, known := d.data[key]
		if key[0] == closingKeys && !known {
			d.gaveUp(workflow.InstanceID(w.Key[1:]))
		}
		if !known {
			d.note(key, true)
		}
		d.data[key] = bytes.Clone(w.Value)
		if key[0] != factKeys {
			continue
		}
		if _, over := d.data[string(closingKeys)+key[1:1+len(workflow.InstanceID{})]]; over {
			d.again(workflow.InstanceID(w.Key[1 : 1+len(workflow.InstanceID{})]))
		}
		for x := range d.read.stored(w.Value) {
			if !d.facts[x.id] {
				d.facts[x.id] = true
				d.wrote(x.id, x.f)
			}
		}
	}
}

// note keeps the order of the keys when one comes or goes.
func (d *disk) note(key string, comes bool) {
	if d.order == nil {
		return
	}
	i, known := slices.BinarySearch(d.order, key)
	switch {
	case comes && !known:
		d.order = slices.Insert(d.order, i, key)
	case !comes && known:
		d.order = slices.Delete(d.order, i, i+1)
	}
}

// keys are those with a prefix that a running process sees, in order.
func (d *disk) keys(prefix string) []string {
	all := d.order
	if all == nil || len(d.unsynced) > 0 {
		all = slices.Sorted(maps.Keys(d.view()))
	}
	if len(d.unsynced) == 0 {
		d.order = all
	}
	from, _ := slices.BinarySearch(all, prefix)
	to := from
	for to < len(all) && strings.HasPrefix(all[to], prefix) {
		to++
	}
	return slices.Clone(all[from:to]) // who reads them may write
}

// factsOf are the facts of an instance that are stored as such now: of one that was
// made again after a loss, some may be kept aside.
func (d *disk) factsOf(id workflow.InstanceID) map[fact.ID]*fact.Fact {
	out := map[fact.ID]*fact.Fact{}
	prefix := string(append([]byte{factKeys}, id[:]...))
	for key, value := range d.data {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		for x := range d.read.stored(value) {
			out[x.id] = x.f
		}
	}
	return out
}

// size is how many bytes are durable; of a large fact only what lies beside it counts.
func (d *disk) size() (n int) {
	for k, v := range d.data {
		n += len(k) + len(v)
		if k[0] != factKeys && k[0] != savedKeys {
			continue
		}
		for x := range d.read.stored(v) {
			n -= max(x.size-diskPerFact/2, 0)
		}
	}
	return n
}

func (d *disk) sync() {
	for _, ws := range d.unsynced {
		d.apply(ws)
	}
	d.unsynced = nil
}

// CommitWait is Commit.
func (d *disk) CommitWait(writes []kv.Write) (err error) {
	d.Commit(writes, func(e error) { err = e })
	return err
}

// Get reads a value, unsynced ones included.
func (d *disk) Get(key []byte) ([]byte, error) {
	if d.bad[string(key)] {
		return nil, fmt.Errorf("simulated: %w", kv.ErrDamaged)
	}
	if v, ok := d.view()[string(key)]; ok {
		return v, nil
	}
	return nil, fmt.Errorf("simulated: %w", kv.ErrNotFound)
}

// Scan reads the keys with a prefix, in order.
func (d *disk) Scan(prefix []byte, fn func(key, value []byte) error) error {
	all := d.view()
	for _, k := range d.keys(string(prefix)) {
		if d.bad[k] {
			return fmt.Errorf("simulated: %w", kv.ErrDamaged)
		}
		if err := fn([]byte(k), all[k]); err != nil {
			return err
		}
	}
	return nil
}

// view is what a running process sees.
func (d *disk) view() map[string][]byte {
	if len(d.unsynced) == 0 {
		return d.data
	}
	seen := maps.Clone(d.data)
	for _, ws := range d.unsynced {
		for _, w := range ws {
			if w.Delete {
				delete(seen, string(w.Key))
			} else {
				seen[string(w.Key)] = w.Value
			}
		}
	}
	return seen
}

// lose is what a crash does to a disk.
func (d *disk) lose() {
	d.unsynced, d.crash = nil, nil
}

// image is a copy of a disk.
type image struct {
	data  map[string][]byte
	facts map[fact.ID]bool
	bad   map[string]bool
}

// backup copies what is durable; values are never changed in place.
func (d *disk) backup() image {
	return image{maps.Clone(d.data), maps.Clone(d.facts), maps.Clone(d.bad)}
}

func (d *disk) restore(i image) {
	d.data, d.order, d.facts, d.bad = i.data, nil, i.facts, i.bad
	d.lose()
}

// reader decodes facts, each once a run.
type reader struct {
	known map[string]decoded
}

type decoded struct {
	id  fact.ID
	f   *fact.Fact
	err error
}

// raw reads a fact as it is sent.
func (r *reader) raw(raw []byte) (fact.ID, *fact.Fact, error) {
	x, ok := r.known[string(raw)]
	if !ok {
		x.f, x.id, x.err = fact.Decode(raw)
		r.known[string(raw)] = x
	}
	return x.id, x.f, x.err
}

// storedFact is a fact as a node keeps it (node.storedFact), in a list.
type storedFact struct {
	_    struct{} `cbor:",toarray"`
	Raw  []byte
	Att  cbor.RawMessage
	Came int64
}

// readStored is a fact of an entry of a node's store.
type readStored struct {
	id   fact.ID
	f    *fact.Fact
	size int // with its attestation
}

// stored are the facts of an entry, as far as they can be read.
func (r *reader) stored(value []byte) iter.Seq[readStored] {
	return func(yield func(readStored) bool) {
		var entry []storedFact
		if cbor.Unmarshal(value, &entry) != nil {
			return
		}
		for _, sf := range entry {
			if id, f, err := r.raw(sf.Raw); err == nil && !yield(readStored{id, f, len(sf.Raw) + len(sf.Att)}) {
				return
			}
		}
	}
}

// asSent are the facts of an entry as they are sent.
func asSent(value []byte) (out []wire.Fact, err error) {
	var entry []storedFact
	if err := cbor.Unmarshal(value, &entry); err != nil {
		return nil, err
	}
	for _, sf := range entry {
		f := wire.Fact{Raw: sf.Raw}
		if err := cbor.Unmarshal(sf.Att, &f.Att); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}
