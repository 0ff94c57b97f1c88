package worklists

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file keeps, on the device, which items its users took of partners in whose instances this node takes no part, and
// which of these they lost: so that a user is told of it whether or not the node was started again in between.

// PrefixTaken begins the keys of such items: the user's whole ID and the item's follow.
const PrefixTaken = 'c'

// taken is an item that a user took from here.
type taken struct {
	_     struct{} `cbor:",toarray"`
	User  string
	At    string // who holds it
	Noted int64  // ms: when it was taken, or lost
	Row   []byte // what lists and messages say of it (Row), in JSON
}

// took is of whom a user took an item from here, and by which grant.
type took struct {
	at    workflow.PartnerID
	grant worklist.ID
}

func takenKey(user, item string) []byte { return fmt.Appendf([]byte{PrefixTaken}, "%s %s", user, item) }

// DecodesTaken returns an error for what cannot be read of the store.
func DecodesTaken(b []byte) error {
	_, _, err := readTaken(b)
	return err
}

func readTaken(b []byte) (t taken, r Row, err error) {
	if err = codec.Decode(b, &t); err == nil {
		err = json.Unmarshal(t.Row, &r)
	}
	r.At = workflow.PartnerID(t.At)
	return t, r, err
}

// loadTaken reads what was taken, and lost for not longer than that is shown, and deletes what is older.
func (d *Desk) loadTaken() error {
	now := d.in.Clock.Now()
	var old []kv.Write
	err := d.in.Store.Scan([]byte{PrefixTaken}, func(key, value []byte) error {
		t, r, err := readTaken(value)
		if err != nil {
			return err
		}
		age := now.Wall.Sub(time.UnixMilli(t.Noted))
		if age > markedFor || r.Lost != "" && age > shownFor || d.takenLocked() >= maxTaken {
			old = append(old, kv.Write{Key: bytes.Clone(key), Delete: true})
			return nil
		}
		if r.AsOf = now.Wall; r.Lost != "" {
			r.AsOf = time.UnixMilli(t.Noted)
			d.losses[string(key)] = r.Lost
		}
		if d.setTaken(t.User, &r); r.Lost == worklist.Unrecorded {
			d.setUnrecorded(t.User, r)
		}
		of := d.heard[t.User]
		if of == nil {
			of = map[workflow.PartnerID]*heard{}
			d.heard[t.User] = of
		}
		is := of[r.At]
		if is == nil {
			is = &heard{awake: now.Awake - freshFor}
			of[r.At] = is
		}
		if r.Mine != worklist.Select || r.Lost != "" || age >= shownFor || len(is.rows) >= maxHeard { // what is locked is kept
			is.gone = append(is.gone, r) // its holder is asked what became of it
			return nil
		}
		r.AsOf = time.UnixMilli(t.Noted)
		if is.rows = append(is.rows, r); r.AsOf.After(is.wall) {
			is.wall = r.AsOf
		}
		return nil
	})
	if err != nil {
		return err
	}
	return kv.CommitAll(d.in.Store, old)
}

// setTaken notes of whom, and by which grant, a user took an item. The caller holds d.mu, or is the only one.
func (d *Desk) setTaken(user string, r *Row) {
	if d.taken[user] == nil {
		d.taken[user] = map[string]took{}
	}
	d.taken[user][r.ID()] = took{r.At, r.Grant}
	delete(d.unrecorded[user], r.ID())
}

// writeTaken makes it durable how an item stands that a user took. If that fails, it is known until the node is started
// again. The caller holds d.mu.
func (d *Desk) writeTaken(user string, r *Row) {
	w, err := d.takenWrite(user, r)
	if err == nil {
		err = d.in.Store.CommitWait([]kv.Write{w})
	}
	if err != nil {
		d.in.Log.Warn("it cannot be noted what a user has elsewhere", "task", r.Task, "error", err)
		return
	}
	d.losses[string(w.Key)] = r.Lost
}

// takenWrite is how it is written down how an item stands that a user took.
func (d *Desk) takenWrite(user string, r *Row) (kv.Write, error) {
	seen, err := json.Marshal(Row{
		Instance: r.Instance, Workflow: r.Workflow, Task: r.Task, Item: r.Item, Label: r.Label,
		WorkflowLabel: r.WorkflowLabel, TaskLabels: r.TaskLabels, Subject: r.Subject, Doc: r.Doc, Since: r.Since,
		Place: r.Place, Role: r.Role, Priority: r.Priority, Offline: r.Offline, Size: r.Size, Undoes: r.Undoes,
		Partition: r.Partition, Presumed: r.Presumed, Shared: r.Shared, Grant: r.Grant, Mine: r.Mine,
		Lost: r.Lost, LostBy: r.LostBy, LostAt: r.LostAt, Unneeded: r.Unneeded, Made: r.Made,
	})
	t := taken{User: user, At: string(r.At), Noted: d.in.Clock.Now().Wall.UnixMilli(), Row: seen}
	return kv.Write{Key: takenKey(user, r.ID()), Value: codec.Encode(t)}, err
}

// dropTaken forgets for good that a user took an item. The caller holds d.mu.
func (d *Desk) dropTaken(user, item string) {
	key := takenKey(user, item)
	if err := d.in.Store.CommitWait([]kv.Write{{Key: key, Delete: true}}); err != nil {
		d.in.Log.Warn("it cannot be forgotten what a user had elsewhere", "error", err)
	}
	delete(d.losses, string(key))
	delete(d.unrecorded[user], item)
}

// noteLosses makes durable what a partner says now that a user lost of what was taken from here. The caller holds d.mu.
func (d *Desk) noteLosses(user string, p workflow.PartnerID, rows []Row) {
	for i := range rows {
		r := &rows[i]
		if r.Lost == "" || r.Mine != "" || r.unrecorded || d.taken[user][r.ID()].at != p ||
			d.losses[string(takenKey(user, r.ID()))] == r.Lost {
			continue
		}
		d.writeTaken(user, r)
		delete(d.unrecorded[user], r.ID())
	}
}
