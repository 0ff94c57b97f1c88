package worklists

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps which files users gave here with the results that they handed in. The reference goes to the holder
// of the item with the result; the content stays here until the holder fetches it, also where this node takes no part
// in the instance, and so has no facts that say who may have it: it is for that holder alone.

// PrefixGave begins the keys of such files: the instance's ID and the file follow.
const PrefixGave = 'z'

const (
	// gaveFor is for how long a holder may fetch the content of a file; fetchedFor, once it came whole: a partner whose
	// disk lost it right then asks again.
	gaveFor    = 90 * 24 * time.Hour
	fetchedFor = 24 * time.Hour
	// lookAtGave is how often it is looked at which of them are over.
	lookAtGave = time.Hour
)

// gave is a file that a user gave here with a result.
type gave struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Item     string // among the data
	File     string
	At       string // the holder that the result is for
	Since    int64  // ms
}

// DecodesGave returns an error for what cannot be read of the store.
func DecodesGave(b []byte) error {
	var g gave
	return codec.Decode(b, &g)
}

func (g *gave) key() []byte {
	return fmt.Appendf([]byte{PrefixGave}, "%s %s %s %s", g.Instance, g.At, g.Item, g.File)
}

// loadGave reads them.
func (d *Desk) loadGave() error {
	return d.in.Store.Scan([]byte{PrefixGave}, func(key, value []byte) error {
		g := &gave{}
		if err := codec.Decode(value, g); err != nil {
			return err
		}
		d.gave[string(key)] = g
		return nil
	})
}

// give notes, durably, which files among what a user hands in are for the holder of an item, who fetches them
// later. Their content must be here: who only names a hash has no file to hand in.
func (d *Desk) give(ctx context.Context, who users.Who, r *Row, outputs map[string]string) error {
	if r.At == d.in.Self {
		return nil // as the holder this node looks at it with the definition at hand
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		f, err := workflow.ParseFile(outputs[name])
		if err != nil {
			continue // a value of another type; the holder says so if it is to be a file
		}
		if !d.in.Has(f) {
			if !d.isFile(ctx, who, r, name) {
				continue // its holder says that it is no file
			}
			return api.Errorf(api.Refused, "%s: the content of file %s is not at this node", name, f.Name).
				WithHint("give the file itself: --file %s=PATH", name)
		}
		if err := d.in.Give(f, r.Instance); err != nil {
			return api.Errorf(api.Refused, "%s: %v", name, err)
		}
		g := &gave{
			Instance: r.Instance, Item: name, File: f.String(), At: string(r.At),
			Since: d.in.Clock.Now().Wall.UnixMilli(),
		}
		if err := d.keepGave(g); err != nil {
			return err
		}
	}
	return nil
}

// isFile reports whether what a result sets is a file, as far as this node can know: else it is taken for one.
func (d *Desk) isFile(ctx context.Context, who users.Who, r *Row, name string) bool {
	s := d.askSheet(ctx, who, r)
	if k := d.keptFor(who.ID, r.ID()); s == nil && k != nil {
		s = k.more().Sheet
	}
	if s == nil {
		return true
	}
	return !slices.ContainsFunc(s.Fields, func(f api.Field) bool {
		return f.Name == name && f.Type != string(workflow.TypeFile)
	})
}

func (d *Desk) keepGave(g *gave) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := g.key()
	if err := d.in.Store.CommitWait([]kv.Write{{Key: key, Value: codec.Encode(*g)}}); err != nil {
		return err
	}
	d.gave[string(key)] = g
	return nil
}

// Gives reports whether a file was given here with a result for an item that a partner holds.
func (d *Desk) Gives(to workflow.PartnerID, id workflow.InstanceID, item workflow.DataName, f workflow.File) bool {
	g := gave{Instance: id, Item: string(item), File: f.String(), At: string(to)}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gave[string(g.key())] != nil
}

// mindGave forgets now and then what is over.
func (d *Desk) mindGave(now moment.Now) time.Duration {
	d.mu.Lock()
	due := len(d.gave) > 0 && now.Awake >= d.gaveNext
	if due || len(d.gave) == 0 {
		d.gaveNext = now.Awake + lookAtGave
	}
	left := d.gaveNext - now.Awake
	d.mu.Unlock()
	if due {
		d.in.Aside(d.forgetGave)
	}
	return left
}

func (d *Desk) forgetGave() {
	now := d.in.Clock.Now().Wall
	d.mu.Lock()
	defer d.mu.Unlock()
	var over []kv.Write
	for _, key := range slices.Sorted(maps.Keys(d.gave)) {
		g := d.gave[key]
		age, most := now.Sub(time.UnixMilli(g.Since)), gaveFor
		if f, err := workflow.ParseFile(g.File); err != nil ||
			slices.Contains(d.in.GivenTo(f), workflow.PartnerID(g.At)) {
			most = fetchedFor
		}
		if age > most && !d.waitsOf(g.Instance) {
			over = append(over, kv.Write{Key: []byte(key), Delete: true})
		}
	}
	if len(over) == 0 {
		return
	}
	if err := d.in.Store.CommitWait(over); err != nil {
		d.in.Log.Warn("it cannot be forgotten which files users gave whose time is over", "error", err)
		return // once more, later
	}
	for _, w := range over {
		delete(d.gave, string(w.Key))
	}
}

// waitsOf reports whether something that was done in an instance waits here to be handed in. The caller holds d.mu.
func (d *Desk) waitsOf(id workflow.InstanceID) bool {
	for _, k := range d.kept {
		if k.Instance == id && len(k.Word) > 0 {
			return true
		}
	}
	return false
}
