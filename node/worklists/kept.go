package worklists

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file keeps, on the device, the items that its users have locked, and what they did of
// them out of reach of the partner that holds them: until that has it on its own disk.

// Prefix begins the keys of what is kept: the user's whole ID and the item's follow.
const Prefix = 'o'

const (
	// maxKept bounds what is kept on one device.
	maxKept = 1000
	// shownLost is how long people are shown that they lost an item.
	shownLost = 7 * 24 * time.Hour
)

// Store is where it is kept.
type Store interface {
	CommitWait(writes []kv.Write) error
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// kept is an item that a user has locked, as this device knows it.
type kept struct {
	_        struct{} `cbor:",toarray"`
	User     string   // whole ID
	Instance workflow.InstanceID
	Workflow string
	Task     string
	Assigned [32]byte
	Slot     string
	Role     string
	Priority int
	Offline  bool
	Since    int64 // ms, as is Known: when that was last heard of the partner that holds it
	Known    int64
	Grant    [32]byte
	At       string
	// Word is what the user handed in out of reach, and is not delivered (wire.Spoken); empty: nothing.
	// What says it to people, Done is when (ms).
	Word []byte
	What string
	Done int64
	// Refused is why the partner did not take it, or why it does not count, RefusedAt when it said
	// so (ms); empty: it was not asked. What was refused is no item any more (refused.go).
	Refused   string
	RefusedAt int64
	// More is what people see of it (more), in JSON; empty: a version before this one kept it.
	More []byte

	// What follows is not stored. Noted is when (Awake) this process kept it, or asked last whether it counts. PutOff is as
	// in More; its holder is asked again what it came to from again on (Awake), asks is how often it was.
	noted  time.Duration
	putOff bool
	again  time.Duration
	asks   int
}

// keptBefore is an item as versions before this one kept it.
type keptBefore struct {
	_         struct{} `cbor:",toarray"`
	User      string
	Instance  workflow.InstanceID
	Workflow  string
	Task      string
	Assigned  [32]byte
	Slot      string
	Role      string
	Priority  int
	Offline   bool
	Since     int64
	Known     int64
	Grant     [32]byte
	At        string
	Word      []byte
	What      string
	Done      int64
	Refused   string
	RefusedAt int64
}

// more is what people see of an item that is kept.
type more struct {
	Doc     string `json:"doc,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Label and WorkflowLabel are Row's.
	Label         string                       `json:"label,omitempty"`
	WorkflowLabel string                       `json:"workflow_label,omitempty"`
	TaskLabels    map[workflow.TaskName]string `json:"task_labels,omitempty"`
	Ends          string                       `json:"ends,omitempty"`
	Until         time.Time                    `json:"until"`
	LeaseAt       time.Time                    `json:"lease_at,omitzero"` // Row's
	// DueAt is its deadline by this node's clock (Row).
	Due      worklist.Due    `json:"due,omitzero"`
	DueAt    time.Time       `json:"due_at,omitzero"`
	Warnings []time.Duration `json:"warnings,omitempty"`
	// Transfer and TransferTo are Row's.
	Transfer   time.Duration `json:"transfer,omitempty"`
	TransferTo worklist.User `json:"transfer_to,omitempty"`
	Sheet      *Sheet        `json:"sheet,omitempty"`
	Size       int64         `json:"size,omitempty"`
	// Awaits are the tasks that it waits for, and Did by which words the user did those of them that were done here.
	Partition workflow.PartitionName `json:"partition,omitempty"`
	Awaits    []workflow.TaskName    `json:"awaits,omitempty"`
	Did       []worklist.Basis       `json:"did,omitempty"`
	Remark    *worklist.Remark       `json:"remark,omitempty"`
	// Undoes and Presumed are Row's.
	Undoes   workflow.TaskName `json:"undoes,omitempty"`
	Presumed string            `json:"presumed,omitempty"`
	HeldUp   string            `json:"held_up,omitempty"` // Row's, as is Shared
	Shared   []worklist.Lack   `json:"shared,omitempty"`
	// Set is what the user set here in other items of the instance, as text, of what this one reads or sets.
	Set map[string]string `json:"set,omitempty"`
	// PutOff: its holder has what the user handed in, and put it off until that counts which it was made from.
	PutOff bool `json:"put_off,omitempty"`
	// Result is as what its holder keeps what the user brought of it and it refused: by that it can be adopted.
	Result string `json:"result,omitempty"`
}

// readKept reads what is kept of an item.
func readKept(b []byte) (*kept, error) {
	var k kept
	err := codec.Decode(b, &k)
	if err == nil {
		k.putOff = k.more().PutOff
		return &k, nil
	}
	var before keptBefore
	if codec.Decode(b, &before) != nil {
		return nil, err
	}
	return &kept{
		User: before.User, Instance: before.Instance, Workflow: before.Workflow, Task: before.Task,
		Assigned: before.Assigned, Slot: before.Slot,
		Role: before.Role, Priority: before.Priority, Offline: before.Offline, Since: before.Since, Known: before.Known,
		Grant: before.Grant, At: before.At,
		Word: before.Word, What: before.What, Done: before.Done, Refused: before.Refused, RefusedAt: before.RefusedAt,
	}, nil
}

// more is what people see of it; a text that cannot be read says nothing.
func (k *kept) more() (m more) {
	if len(k.More) > 0 && json.Unmarshal(k.More, &m) != nil {
		return more{}
	}
	return m
}

// DecodesKept returns an error for what cannot be read of the store.
func DecodesKept(b []byte) error {
	_, err := readKept(b)
	return err
}

func (k *kept) id() string {
	r := k.row()
	return r.ID()
}

func (k *kept) key() []byte {
	return fmt.Appendf([]byte{Prefix}, "%s %s", k.User, k.id())
}

func (k *kept) write() kv.Write { return kv.Write{Key: k.key(), Value: codec.Encode(*k)} }

// row is the item as it was last known.
func (k *kept) row() Row {
	m := k.more()
	return Row{
		Due: m.Due, DueAt: m.DueAt, Warnings: m.Warnings, Transfer: m.Transfer, TransferTo: m.TransferTo,
		Doc: m.Doc, Subject: m.Subject, Label: m.Label, WorkflowLabel: m.WorkflowLabel, TaskLabels: m.TaskLabels,
		Ends: m.Ends, Until: m.Until, LeaseAt: m.LeaseAt,
		Instance: k.Instance,
		Workflow: workflow.Name(k.Workflow), Task: workflow.TaskName(k.Task),
		Item: worklist.Item{Assigned: k.Assigned, Slot: workflow.TaskName(k.Slot)}, Role: workflow.RoleName(k.Role),
		Priority: k.Priority, Offline: k.Offline, Size: m.Size, Since: time.UnixMilli(k.Since).UTC(),
		Mine: worklist.Lock, Grant: k.Grant, Partition: m.Partition, Awaits: m.Awaits, Remark: m.Remark,
		Undoes: m.Undoes, Presumed: m.Presumed, HeldUp: m.HeldUp, Shared: m.Shared,
		At: workflow.PartnerID(k.At), AsOf: time.UnixMilli(k.Known).UTC(),
	}
}

func keptOf(who users.Who, r *Row, now time.Time, s *Sheet) *kept {
	k := &kept{
		User: who.ID, Instance: r.Instance, Workflow: string(r.Workflow), Task: string(r.Task),
		Assigned: r.Item.Assigned, Slot: string(r.Item.Slot),
		Role: string(r.Role), Priority: r.Priority, Offline: r.Offline, Since: r.Since.UnixMilli(),
		Known: now.UnixMilli(), Grant: r.Grant, At: string(r.At),
	}
	k.see(more{
		Doc: r.Doc, Subject: r.Subject, Label: r.Label, WorkflowLabel: r.WorkflowLabel, TaskLabels: r.TaskLabels,
		Ends: r.Ends, Until: r.Until, LeaseAt: r.LeaseAt, Due: r.Due, DueAt: r.DueAt, Warnings: r.Warnings,
		Transfer: r.Transfer, TransferTo: r.TransferTo,
		Sheet: s, Size: r.Size, Partition: r.Partition, Awaits: r.Awaits, Remark: r.Remark,
		Undoes: r.Undoes, Presumed: r.Presumed, HeldUp: r.HeldUp, Shared: r.Shared,
	})
	return k
}

// see keeps what people see of it.
func (k *kept) see(m more) {
	seen, err := json.Marshal(m)
	if err != nil {
		seen = nil // people see less of it
	}
	k.More = seen
}

// setPutOff notes whether its holder has put off what the user handed in.
func (k *kept) setPutOff(is bool) {
	if is == k.putOff {
		return
	}
	m := k.more()
	m.PutOff, k.putOff, k.again, k.asks = is, is, 0, 0
	k.see(m)
}

// carry takes over, from what was kept of an item before, what was done here of what it waits for.
func (k *kept) carry(was *kept) *kept {
	if was == nil {
		return k
	}
	if before := was.more(); len(before.Did)+len(before.Set) > 0 {
		m := k.more()
		m.Did, m.Set = before.Did, before.Set
		k.see(m)
	}
	return k
}

// load reads what is kept.
func (d *Desk) load() error {
	refused := map[string]*kept{}
	err := d.in.Store.Scan([]byte{Prefix}, func(key, value []byte) error {
		k, err := readKept(value)
		if err != nil {
			return err
		}
		if k.Refused != "" {
			refused[string(key)] = k
			return nil
		}
		d.kept[string(bytes.Clone(key))] = k
		return nil
	})
	for _, key := range slices.Sorted(maps.Keys(refused)) {
		err = cmp.Or(err, d.loadRefused(key, refused[key]))
	}
	return err
}

var errKeepsEnough = fmt.Errorf("this device keeps %d locked items and refused results, no more are taken; "+
	"mutirao outbox shows what can be dropped", maxKept)

// keep makes it durable that a user did an item.
func (d *Desk) keep(k *kept) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keepLocked(k)
}

// keepOver keeps what is known of an item in place of what was kept when that was read; nil:
// nothing was. If the user did it meanwhile, or it was handed in, that stays.
func (d *Desk) keepOver(was, k *kept) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !was.still(d.kept[string(k.key())]) {
		return nil
	}
	return d.keepLocked(k)
}

// still reports whether what the user did of an item is the same.
func (k *kept) still(now *kept) bool {
	if k == nil || now == nil {
		return k == now
	}
	return k.Done == now.Done && bytes.Equal(k.Word, now.Word)
}

// keepLocked is keep, with other writes that are made durable together. The caller holds d.mu.
func (d *Desk) keepLocked(k *kept, with ...kv.Write) error {
	if d.kept[string(k.key())] == nil && d.fullLocked(1) {
		return errKeepsEnough
	}
	if err := d.in.Store.CommitWait(append(with, k.write())); err != nil {
		return err
	}
	d.nowKept(k)
	return nil
}

// nowKept has what is durable among what is kept: a list that was asked for before does not know of it. The caller holds
// d.mu.
func (d *Desk) nowKept(k *kept) {
	k.noted = d.in.Clock.Now().Awake
	d.kept[string(k.key())] = k
}

// drop forgets an item, as it was read, unless the user did it meanwhile. If that does not
// outlast a crash, it is found out again.
func (d *Desk) drop(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k.still(d.kept[string(k.key())]) {
		d.dropLocked(k)
	}
}

// delivered forgets an item whose result is durable where it belongs, whatever was done of it
// out of reach before.
func (d *Desk) delivered(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropLocked(k)
}

// dropLocked is drop. The caller holds d.mu.
func (d *Desk) dropLocked(k *kept) {
	key := k.key()
	if d.kept[string(key)] == nil {
		return
	}
	if err := d.in.Store.CommitWait([]kv.Write{{Key: key, Delete: true}}); err != nil {
		d.in.Log.Warn("what is kept of an item cannot be deleted", "error", err)
	}
	delete(d.kept, string(key))
}

// dropUndone forgets an item that a user does not have any more, unless something was done of it that waits to be
// handed in.
func (d *Desk) dropUndone(who users.Who, r *Row) {
	if k := d.keptFor(who.ID, r.ID()); k != nil && len(k.Word) == 0 {
		d.drop(k)
	}
}

// keptFor is what is kept of an item for a user; nil: nothing.
func (d *Desk) keptFor(user, item string) *kept {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[string(Prefix)+user+" "+item]
	if k == nil {
		return nil
	}
	is := *k
	return &is
}

// allKept is what is kept for a user, or for all, in the order in which it was done.
func (d *Desk) allKept(user string) (out []*kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.kept {
		if user == "" || k.User == user {
			is := *k
			out = append(out, &is)
		}
	}
	slices.SortFunc(out, func(a, b *kept) int {
		return cmp.Or(cmp.Compare(a.Done, b.Done), bytes.Compare(a.key(), b.key()))
	})
	return out
}

// addKept adds to a list what is kept; what the list judges, and says that the user does not have any more, is forgotten,
// unless there is something to hand in.
func (d *Desk) addKept(who users.Who, rows []Row, judges func(*kept) bool) []Row {
	all := d.allKept(who.ID)
	if len(all) == 0 {
		return rows
	}
	at := make(map[string]int, len(rows))
	for i := range rows {
		at[rows[i].ID()] = i
	}
	for _, k := range all {
		i, listed := at[k.id()]
		here := judges(k)
		waits := len(k.Word) > 0
		switch {
		case listed && rows[i].At != workflow.PartnerID(k.At): // the facts here name its holder
			if len(k.Word) == 0 {
				d.drop(k)
			}
			continue
		case k.putOff && here:
			if !listed || !rows[i].PutOff { // it came to something
				d.askSoon(k)
			}
			continue
		case listed && rows[i].Mine != "":
			if here && len(k.Word) == 0 {
				d.keepNews(k, &rows[i])
			}
		case here && len(k.Word) == 0:
			was := k.row()
			d.noteTaken(who, &was)   // so that the user is told why the user has it no more
			d.rememberGone(who, was) // what the user still made of it can be brought
			d.drop(k)
			if !listed {
				d.unexplains(who.ID, was)
			} else if rows[i].unrecorded {
				d.noteUnrecorded(who, was)
			}
			continue
		case listed:
			rows[i] = k.row() // what else is known here is older, or does not count it yet
		default:
			i = len(rows)
			rows = append(rows, k.row())
		}
		rows[i].Done, rows[i].PutOff = waits && !k.putOff, k.putOff
	}
	return rows
}

// Completed says that an item was done well.
const Completed = "completed"

// doneNow is what is kept of what a user does of an item just now.
func (d *Desk) doneNow(who users.Who, r *Row, c wire.Spoken, body worklist.Result) (*kept, error) {
	k := d.keptFor(who.ID, r.ID())
	if k == nil {
		k = keptOf(who, r, r.AsOf, nil)
	}
	if err := k.hand(c, d.in.Clock.Now().Wall); err != nil {
		return nil, api.Judge(api.Invalid, err)
	}
	if body.Failed {
		k.What = "failed: " + body.Reason
	}
	k.setPutOff(false)
	return k, nil
}

// hand notes that its user handed in now that it was done, by this word.
func (k *kept) hand(c wire.Spoken, now time.Time) error {
	word, err := wire.EncodeSpoken(c)
	if err != nil {
		return err
	}
	k.Word, k.What, k.Done = word, Completed, now.UnixMilli()
	return nil
}

// later keeps what a user did of a locked item, to be handed in when its partner can be reached.
func (d *Desk) later(who users.Who, r *Row, c wire.Spoken, body worklist.Result) (*api.Item, error) {
	k, err := d.doneNow(who, r, c, body)
	if err != nil {
		return nil, err
	}
	if err := d.keepDone(who, k, c, body); err != nil {
		if errors.Is(err, errKeepsEnough) {
			return nil, api.Judge(api.Refused, err)
		}
		return nil, err
	}
	d.nudge()
	out := d.item(who, r)
	name := who.Name
	out.State, out.Holder, out.Delivered, out.Signed = api.ItemDone, &name, false, users.Signed(c.Word)
	return &out, nil
}

// Waiting are the tasks of which a user did something here that its holder does not have yet, as it was done.
func (d *Desk) Waiting(user string) (tasks []string) {
	for _, k := range d.allKept(user) {
		if len(k.Word) > 0 && !k.putOff {
			tasks = append(tasks, workflow.WithLabel(k.Task, k.more().Label))
		}
	}
	return tasks
}

// DoneBy leaves of what was done here what one user did, also one who has signed out since; empty: all.
func (d *Desk) DoneBy(user string, all []api.Undelivered) ([]api.Undelivered, error) {
	if user == "" {
		return all, nil
	}
	who, err := d.in.People.Who(user)
	if slices.ContainsFunc(all, func(x api.Undelivered) bool { return err != nil && x.User == user }) {
		who.Name, err = user, nil
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(x api.Undelivered) bool { return x.User != who.Name }), nil
}

// Outbox is what users at this node did that the partners that hold the items do not have yet, put off, or refused.
// What has come to something meanwhile is left out, as far as these partners can be asked.
func (d *Desk) Outbox(ctx context.Context) []api.Undelivered {
	d.askPutOffs(ctx)
	d.askAdopted(ctx, "")
	if d.hasten(0) {
		d.askCounted()
	}
	out := []api.Undelivered{}
	for _, k := range d.allKept("") {
		if len(k.Word) > 0 {
			out = append(out, d.undelivered(k))
		}
	}
	for _, k := range d.allRefused() {
		out = append(out, d.undelivered(k))
	}
	slices.SortStableFunc(out, func(a, b api.Undelivered) int { return a.Since.Compare(b.Since) })
	return out
}
