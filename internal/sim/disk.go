package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// disk is a node's store. What Commit has reported survives crashes.
type disk struct {
	data map[string][]byte
	full bool
	// crash, if set, has the next commit crash: before or after it is durable.
	crash *crashIn
	// unsynced, for broken variants: commits are reported before they are
	// durable, and lost at a crash.
	lazy     bool
	unsynced [][]kv.Write
	commits  int
}

type crashIn struct{ after bool }

// crashed is what a crash in a commit panics with; the world recovers it.
type crashed struct{}

func newDisk() *disk { return &disk{data: map[string][]byte{}} }

// Commit makes writes durable, or fails, or crashes the node.
func (d *disk) Commit(writes []kv.Write, done func(error)) {
	d.commits++
	if d.full {
		done(fmt.Errorf("simulated: %w", kv.ErrFull))
		return
	}
	c := d.crash
	d.crash = nil
	if c != nil && !c.after {
		panic(crashed{})
	}
	if d.lazy {
		d.unsynced = append(d.unsynced, writes)
		if len(d.unsynced) > 8 {
			d.sync()
		}
	} else {
		d.apply(writes)
	}
	if c != nil {
		panic(crashed{})
	}
	done(nil)
}

func (d *disk) apply(writes []kv.Write) {
	for _, w := range writes {
		if w.Delete {
			delete(d.data, string(w.Key))
		} else {
			d.data[string(w.Key)] = bytes.Clone(w.Value)
		}
	}
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
	if v, ok := d.view()[string(key)]; ok {
		return v, nil
	}
	return nil, fmt.Errorf("simulated: %w", kv.ErrNotFound)
}

// Scan reads the keys with a prefix, in order.
func (d *disk) Scan(prefix []byte, fn func(key, value []byte) error) error {
	all := d.view()
	var keys []string
	for k := range all {
		if strings.HasPrefix(k, string(prefix)) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
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
	seen := &disk{data: map[string][]byte{}}
	for k, v := range d.data {
		seen.data[k] = v
	}
	for _, ws := range d.unsynced {
		seen.apply(ws)
	}
	return seen.data
}

// lose is what a crash does to a disk.
func (d *disk) lose() {
	d.unsynced, d.crash = nil, nil
}
