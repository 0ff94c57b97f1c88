package worklists

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
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
	"github.com/mutirao-mesh/mutirao/worklist"
	"github.com/mutirao-mesh/mutirao/worklist/own"
)

// What a person is told of instances is worked out here from what is known here, whenever somebody asks: nobody
// sends it, and only what a person has read is kept (docs/worklists.md, Messages).

// PrefixRead begins the keys of what was read: the instance's ID and the user's follow.
const PrefixRead = 'g'

const (
	// MaxMessages bounds a list of messages; the instances of all who began some share it.
	MaxMessages = 1000
	// maxMarks bounds what is noted as read about one instance, maxMarked the instances in which this node takes no
	// part and of which a user has read something, and markedFor is how long that is noted of one of which there
	// is nothing to read any more.
	maxMarks  = own.MaxMarks
	maxMarked = own.MaxMarked
	markedFor = 90 * 24 * time.Hour
	// maxTaken bounds the items of which it is known that they were taken from here.
	maxTaken = 1000
	// alarmEvery is how often at least it is looked for deadlines that have come near, while somebody watches. To look
	// costs as much as there are instances, so it is not done again for alarmShare times as long as it took, at most for
	// alarmRest: it may also have waited for partners.
	alarmEvery = 30 * time.Second
	alarmShare = 20
	alarmRest  = 5 * time.Second
)

// Told is a message, and who began the instance that it is about.
type Told struct {
	worklist.Message
	From workflow.PartnerID
	// Label is what people call the task, WorkflowLabel the workflow, and Subject what the instance is about; empty: it
	// is not known.
	Label, WorkflowLabel, Subject string
	// Elsewhere: this node takes no part in the instance.
	Elsewhere bool
}

// ReadPrefix begins the keys of what was read about an instance.
func ReadPrefix(id workflow.InstanceID) []byte { return append([]byte{PrefixRead}, id[:]...) }

// read is what a user has read about an instance.
type read struct {
	_     struct{} `cbor:",toarray"`
	Names [][]byte // what was read last comes last
	// Noted is when that was written (ms).
	Noted int64
}

// readBefore is read as versions before this one wrote it.
type readBefore struct {
	_     struct{} `cbor:",toarray"`
	Names [][]byte
}

// DecodesRead returns an error for what cannot be read of the store.
func DecodesRead(b []byte) error {
	_, err := readMarks(b)
	return err
}

// marks are the names of messages about an instance that a user has read.
type marks struct {
	has   map[string]bool
	order []string // those that were read last come last
	noted int64    // when they were written down (ms)
}

func readMarks(b []byte) (*marks, error) {
	var is read
	if err := codec.Decode(b, &is); err != nil {
		var before readBefore
		if codec.Decode(b, &before) != nil {
			return nil, err
		}
		is.Names = before.Names
	}
	m := &marks{has: map[string]bool{}, noted: is.Noted}
	for _, n := range is.Names {
		m.add(hex.EncodeToString(n))
	}
	return m, nil
}

func (m *marks) add(name string) {
	if !m.has[name] {
		m.has[name] = true
		m.order = append(m.order, name)
	}
}

// with are these marks, if there are any, and more. A message that is not there now keeps its mark, as it may be
// there again: its instance cannot be read, or its holder not be asked. What is too much goes, first
// of what is not there what was read first.
func (m *marks) with(more []string, there map[string]bool, now time.Time) *marks {
	out := &marks{has: map[string]bool{}, noted: now.UnixMilli()}
	if m != nil {
		for _, n := range m.order {
			out.add(n)
		}
	}
	for _, n := range more {
		out.add(n)
	}
	over := len(out.order) - maxMarks
	for _, gone := range []bool{true, false} {
		out.order = slices.DeleteFunc(out.order, func(n string) bool {
			if over <= 0 || gone == there[n] {
				return false
			}
			over--
			delete(out.has, n)
			return true
		})
	}
	return out
}

// write are the marks for the store.
func (m *marks) write() ([]byte, error) {
	is := read{Noted: m.noted}
	for _, n := range m.order {
		b, err := hex.DecodeString(n)
		if err != nil {
			return nil, fmt.Errorf("the name of a message: %w", err)
		}
		is.Names = append(is.Names, b)
	}
	return codec.Encode(is), nil
}

// hasRead reports whether a user has read a message. The caller holds d.mu.
func (d *Desk) hasRead(user string, id *worklist.MessageID, name string) bool {
	m := d.seen[id.Instance][user]
	return m != nil && m.has[name]
}

// loadRead reads what was read.
func (d *Desk) loadRead() error {
	return d.in.Store.Scan([]byte{PrefixRead}, func(key, value []byte) error {
		var id workflow.InstanceID
		if len(key) <= 1+len(id) {
			return nil
		}
		if is, err := readMarks(value); err == nil {
			d.setRead(workflow.InstanceID(key[1:1+len(id)]), string(key[1+len(id):]), is)
		}
		return nil
	})
}

// setRead notes what a user has read about an instance. The caller holds d.mu, or is the only one.
func (d *Desk) setRead(id workflow.InstanceID, user string, is *marks) {
	of := d.seen[id]
	switch {
	case is == nil || len(is.order) == 0:
		delete(of, user)
	case of == nil:
		d.seen[id] = map[string]*marks{user: is}
	default:
		of[user] = is
	}
	if len(d.seen[id]) == 0 {
		delete(d.seen, id)
	}
}

// Messages are what a person is told, the oldest first.
func (d *Desk) Messages(ctx context.Context, q api.MessagesQuery) ([]api.Message, error) {
	who, err := d.in.People.Who(q.User)
	if err != nil {
		return nil, err
	}
	d.askHolders(ctx, who, true)
	d.askAdopted(ctx, who.ID)
	all, _, err := d.told(ctx, who, freshFor)
	if err != nil {
		return nil, err
	}
	out := []api.Message{}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counted[who.ID] = counted{d.in.Clock.Now().Awake, all} // a count beside the list is the same
	for i := range all {
		m := &all[i]
		name := m.ID.String()
		seen := d.hasRead(who.ID, &m.ID, name)
		if seen && (q.Unread || m.Past) {
			continue
		}
		out = append(out, api.Message{
			ID: name, At: shownAt(m.Message), Type: string(m.ID.Type), Instance: m.ID.Instance.String(),
			Workflow: string(m.Workflow), Label: m.Label, WorkflowLabel: m.WorkflowLabel, Subject: m.Subject,
			Task: string(m.Task), Text: m.Text, Asks: m.Asks, Read: seen, Past: m.Past, Elsewhere: m.Elsewhere,
		})
	}
	return out, nil
}

// countFor is for how long a count of messages is not counted again.
const countFor = 2 * time.Second

// counted are the messages that a user was told when they were counted last.
type counted struct {
	at  time.Duration // Awake
	all []Told
}

// Unread is how many messages a person has not read, of those of two seconds ago: it may be asked for with
// each page, and to work out all messages costs as much as there are instances in memory.
func (d *Desk) Unread(ctx context.Context, ref string) (n int, err error) {
	who, err := d.in.People.Who(ref)
	if err != nil {
		return 0, err
	}
	now := d.in.Clock.Now().Awake
	d.mu.Lock()
	is, known := d.counted[who.ID]
	d.mu.Unlock()
	if !known || now-is.at >= countFor {
		if is.all, _, err = d.told(ctx, who, 0); err != nil {
			return 0, err
		}
		is.at = now
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counted[who.ID] = is
	for i := range is.all {
		if id := &is.all[i].ID; !d.hasRead(who.ID, id, id.String()) {
			n++
		}
	}
	return n, nil
}

// told is all that a person is told, the oldest first, and when there may be more (Boot; 0: never). Partners
// are asked that did not answer for so long; 0: none are.
func (d *Desk) told(ctx context.Context, who users.Who, fresh time.Duration) (out []Told, next time.Duration, err error) {
	out, next, err = d.in.Instances.Messages(ctx, worklist.User(who.ID))
	if err != nil {
		return nil, 0, err
	}
	out = append(out, d.adoptionsOf(who, out)...)
	out = append(out, d.toldOfStuck(ctx, who, fresh)...)
	clock := d.in.Clock.Now()
	now := worklist.Moment{Boot: clock.Boot, Wall: clock.Wall}
	for _, r := range d.takenElsewhere(who) {
		of := worklist.Source{Instance: r.Instance, Workflow: r.Workflow}
		more, then := of.Reminders(worklist.Dated{
			Item: r.Item, Task: r.Task, Due: r.Due, Since: r.Due.Since(r.DueAt.Sub(now.Wall), now),
			Warnings: r.Warnings, Transfer: r.Transfer,
		}, now)
		if r.Mine == "" {
			more, then = worklist.Before(more, r.LostAt, r.Lost), 0
		}
		for _, m := range more {
			out = append(out, Told{
				Message: m, From: r.At, Label: r.Label, WorkflowLabel: r.WorkflowLabel, Subject: r.Subject, Elsewhere: true,
			})
		}
		if then > 0 && (next == 0 || then < next) {
			next = then
		}
	}
	for _, r := range d.unneededElsewhere(who) {
		of, by := worklist.Source{Instance: r.Instance, Workflow: r.Workflow}, ""
		if r.LostBy != "" && worklist.User(who.ID) != r.LostBy {
			by = d.in.People.Called(r.LostBy)
		}
		out = append(out, Told{
			Message: of.Unneeded(r.Item, r.Task, r.Lost, by, r.Unneeded, r.Made), From: r.At, Label: r.Label,
			WorkflowLabel: r.WorkflowLabel, Subject: r.Subject, Elsewhere: true,
		})
	}
	for i := range out { // dated by others' clocks
		if out[i].At.After(clock.Wall) {
			out[i].At = clock.Wall
		}
	}
	out = share(out, MaxMessages)
	slices.SortFunc(out, func(a, b Told) int { return a.compare(&b) })
	return out, next, nil
}

// compare puts what came to pass first before the rest, and for the rest in one way at all nodes.
func (t *Told) compare(o *Told) int {
	a, b := &t.ID, &o.ID
	if n := cmp.Or(t.At.Compare(o.At), a.Instance.Compare(b.Instance)); n != 0 { // most often
		return n
	}
	n := cmp.Or(cmp.Compare(order[a.Type], order[b.Type]), a.Item.Compare(b.Item), cmp.Compare(b.Warning, a.Warning))
	if n == 0 {
		n = cmp.Compare(a.String(), b.String())
	}
	return n
}

// order is that of messages of one moment.
var order = map[worklist.MessageType]int{
	worklist.Started: 0, worklist.Untaken: 1, worklist.Deadline: 2, worklist.TaskFailed: 3, worklist.Adopted: 4,
	worklist.Lost: 5, worklist.Ended: 6,
}

// share leaves the newest of many messages, so that nobody who begins instances takes all the room: each has as
// much as any other that needs it.
func share(all []Told, room int) []Told {
	if len(all) <= room {
		return all
	}
	of := map[workflow.PartnerID][]*Told{}
	for i := range all {
		of[all[i].From] = append(of[all[i].From], &all[i])
	}
	out := make([]Told, 0, room)
	by := slices.SortedFunc(maps.Keys(of), func(a, b workflow.PartnerID) int {
		return cmp.Or(cmp.Compare(len(of[a]), len(of[b])), cmp.Compare(a, b))
	})
	for i, p := range by { // whoever has least first: what it does not need is for the others
		mine := of[p]
		slices.SortFunc(mine, func(a, b *Told) int { return b.At.Compare(a.At) })
		for _, m := range mine[:min(len(mine), (room-len(out))/(len(by)-i))] {
			out = append(out, *m)
		}
	}
	return out
}

// noteTaken notes that a user took an item from here, of an instance in which this node takes no part.
func (d *Desk) noteTaken(who users.Who, r *Row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.notesTaken(r) {
		d.setTaken(who.ID, r)
		d.writeTaken(who.ID, r)
	}
}

// notesTaken reports whether it is noted that a user took an item: there is room for it, and what is known here does not
// say it. The caller holds d.mu.
func (d *Desk) notesTaken(r *Row) bool {
	if r.noted || r.At == d.in.Self || d.in.Instances.Here(r.Instance) {
		return false
	}
	if d.takenLocked() >= maxTaken {
		d.pruneTaken()
	}
	return d.takenLocked() < maxTaken
}

// takenLocked is how many items are noted as taken. The caller holds d.mu.
func (d *Desk) takenLocked() (n int) {
	for _, of := range d.taken {
		n += len(of)
	}
	return n
}

// pruneTaken forgets what its users do not have any more, as its holders said last. The caller holds d.mu.
func (d *Desk) pruneTaken() {
	for user, of := range d.taken {
		mine := map[string]bool{}
		for p, is := range d.heard[user] {
			for i := range is.rows {
				if r := &is.rows[i]; r.Mine != "" && of[r.ID()].at == p {
					mine[r.ID()] = true
				}
			}
		}
		maps.DeleteFunc(of, func(item string, _ took) bool {
			if !mine[item] {
				d.dropTaken(user, item)
			}
			return !mine[item]
		})
	}
}

// forgetTaken notes that a user does not have an item any more, by the user's own word.
func (d *Desk) forgetTaken(who users.Who, r *Row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unlist(who.ID, r.At, r.ID())
	if d.taken[who.ID][r.ID()].at != "" {
		d.dropTaken(who.ID, r.ID())
	}
	if delete(d.taken[who.ID], r.ID()); len(d.taken[who.ID]) == 0 {
		delete(d.taken, who.ID)
	}
}

// takenElsewhere are the items with a deadline that a user has of partners in whose instances this node takes no part,
// or had until others took them from the user: those that were taken from here. What a partner only says that the user
// has is none.
func (d *Desk) takenElsewhere(who users.Who) (out []Row) {
	listed, _ := d.heardOf(who)
	var rows []Row
	for p, of := range listed {
		for _, r := range of {
			d.mu.Lock()
			here := d.taken[who.ID][r.ID()].at == p
			d.mu.Unlock()
			if p != d.in.Self && here && (r.Mine != "" || r.Lost != "" && !r.undated) {
				rows = append(rows, r)
			}
		}
	}
	for _, k := range d.allKept(who.ID) {
		r := k.row()
		lost := slices.ContainsFunc(rows, func(x Row) bool { return x.ID() == r.ID() && x.At == r.At && x.Mine == "" })
		if len(k.Word) == 0 && !lost { // else its holder has said since that the user has it no more
			rows = slices.DeleteFunc(rows, func(x Row) bool { return x.ID() == r.ID() })
			rows = append(rows, r)
		}
	}
	for _, r := range rows {
		if !r.DueAt.IsZero() && !d.in.Instances.Here(r.Instance) {
			out = append(out, r)
		}
	}
	return out
}

// askHolders asks the partners of which a user has items that were taken from here how these stand, unless they said so
// a moment ago: nobody tells a node that takes no part in an instance what becomes of it. Without all, those that did
// are asked, of what they list no more.
func (d *Desk) askHolders(ctx context.Context, who users.Who, all bool) {
	of := map[workflow.PartnerID]bool{}
	d.mu.Lock()
	for _, t := range d.taken[who.ID] {
		of[t.at] = true
	}
	d.mu.Unlock()
	for _, k := range d.allKept(who.ID) {
		of[workflow.PartnerID(k.At)] = true
	}
	if len(of) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, soonPatience)
	defer cancel()
	d.askEach(func(p workflow.PartnerID) error {
		if !of[p] {
			return nil
		}
		switch heard := d.heardLately(who, p); {
		case !heard && !all:
			return nil
		case !heard:
			if _, err := d.askOne(ctx, who, p, everywhere); err != nil {
				return err
			}
		}
		return d.askUnlisted(ctx, who, p)
	})
}

// askUnlisted asks a partner what became of the items that a user took from here and that it lists no more, as it does
// of an instance that has ended: of each instance once.
func (d *Desk) askUnlisted(ctx context.Context, who users.Who, p workflow.PartnerID) error {
	if err := d.explain(ctx, who, p); err != nil {
		return err
	}
	var of []workflow.InstanceID
	_, gone := d.heardOf(who)
	d.mu.Lock()
	for _, r := range gone {
		if r.At == p && r.Mine != "" && d.holderFor(who.ID, r.ID()) == p && !slices.Contains(of, r.Instance) {
			of = append(of, r.Instance)
		}
	}
	d.mu.Unlock()
	for _, id := range of {
		if _, err := d.askOne(ctx, who, p, id); err != nil {
			return err
		}
		d.mu.Lock()
		for i := range d.heard[who.ID][p].gone { // it does not say that the user has it any more
			if r := &d.heard[who.ID][p].gone[i]; r.Instance == id {
				r.Mine = ""
			}
		}
		d.mu.Unlock()
	}
	return nil
}

// unneededElsewhere are the items that a user took from here of partners in whose instances this node takes no part, and
// that are not needed any more, or are over, as those partners said last: also where they do not list them any more.
func (d *Desk) unneededElsewhere(who users.Who) (out []Row) {
	listed, rows := d.heardOf(who)
	for _, of := range listed {
		rows = append(rows, of...)
	}
	d.mu.Lock()
	rows = slices.DeleteFunc(rows, func(r Row) bool {
		return r.Lost == "" || r.Unneeded.IsZero() || r.At == d.in.Self || d.holderFor(who.ID, r.ID()) != r.At
	})
	d.mu.Unlock()
	return slices.DeleteFunc(rows, func(r Row) bool { return d.in.Instances.Here(r.Instance) })
}

// ReadMessages notes that a person has read messages, or all, or of items that the person lost. It returns when that is
// durable.
func (d *Desk) ReadMessages(ctx context.Context, in api.MessagesRead) error {
	who, err := d.in.People.Who(in.User)
	if err != nil {
		return err
	}
	if len(in.IDs) > MaxMessages {
		return api.Errorf(api.Invalid, "%d messages at once, at most %d", len(in.IDs), MaxMessages)
	}
	wanted := map[string]bool{}
	for _, id := range in.IDs {
		wanted[id] = true
	}
	all, _, err := d.told(ctx, who, 0)
	if err != nil {
		return err
	}
	var lost []worklist.MessageID
	if len(in.IDs) > 0 {
		if lost, err = d.lostMessages(ctx, who); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	there := map[workflow.InstanceID]map[string]bool{}
	fresh := map[workflow.InstanceID][]string{}
	note := func(of worklist.MessageID, read bool) {
		id, name := of.Instance, of.String()
		if there[id] == nil {
			there[id] = map[string]bool{}
		}
		if read = read || wanted[name]; read && !there[id][name] && !d.hasRead(who.ID, &of, name) {
			fresh[id] = append(fresh[id], name)
		}
		there[id][name] = true
		delete(wanted, name)
	}
	for i := range all {
		note(all[i].ID, in.All)
	}
	for _, of := range lost {
		note(of, false)
	}
	if len(wanted) > 0 && !in.All {
		return api.Errorf(api.NotFound, "there is no message %q for %s", slices.Min(slices.Collect(maps.Keys(wanted))),
			who.Name).
			WithHint("list them: mutirao messages -o json")
	}
	return d.mark(who, there, fresh)
}

// mark makes durable what a person has read, by instance, of what is there. The caller holds d.mu.
func (d *Desk) mark(
	who users.Who, there map[workflow.InstanceID]map[string]bool, fresh map[workflow.InstanceID][]string,
) error {
	now := d.in.Clock.Now().Wall
	next := map[workflow.InstanceID]*marks{}
	for id, names := range fresh {
		next[id] = d.seen[id][who.ID].with(names, there[id], now)
	}
	for _, id := range d.staleRead(who, there, now) {
		next[id] = nil
	}
	var writes []kv.Write
	for id, is := range next {
		w := kv.Write{Key: append(ReadPrefix(id), who.ID...), Delete: is == nil}
		if is != nil {
			var err error
			if w.Value, err = is.write(); err != nil {
				return err
			}
		}
		writes = append(writes, w)
	}
	for rest := writes; len(rest) > 0; {
		n := kv.Unit(rest)
		if err := d.in.Store.CommitWait(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	for id, is := range next {
		d.setRead(id, who.ID, is)
	}
	if len(fresh) > 0 {
		d.follow.changed(who.ID)
		d.in.Nudge()
	}
	return nil
}

// maxStale is of how many instances at a time it is asked whether there is still something of them.
const maxStale = 64

// staleRead are instances in which this node takes no part, about which a person has read something, and of which there
// is nothing to read: for so long that nothing is to come, or more of them than there is room for. Of instances
// that are here it goes with the instance. The caller holds d.mu.
func (d *Desk) staleRead(
	who users.Who, there map[workflow.InstanceID]map[string]bool, now time.Time,
) (out []workflow.InstanceID) {
	var absent []workflow.InstanceID
	marked := 0
	for id, of := range d.seen {
		if of[who.ID] == nil {
			continue
		}
		if marked++; there[id] == nil {
			absent = append(absent, id)
		}
	}
	slices.SortFunc(absent, func(a, b workflow.InstanceID) int {
		return cmp.Or(cmp.Compare(d.seen[a][who.ID].noted, d.seen[b][who.ID].noted), a.Compare(b))
	})
	old := func(id workflow.InstanceID) bool {
		return now.Sub(time.UnixMilli(d.seen[id][who.ID].noted)) > markedFor
	}
	absent = slices.DeleteFunc(absent, func(id workflow.InstanceID) bool { return marked <= maxMarked && !old(id) })
	for range min(len(absent), maxStale) {
		d.staleAt = (d.staleAt + 1) % len(absent) // others each time, as some may be here
		if id := absent[d.staleAt]; (marked > maxMarked || old(id)) && !d.in.Instances.Here(id) {
			out = append(out, id)
			marked--
		}
	}
	return out
}

// alarm says when somebody who watches is to be told that there are more messages.
type alarm struct {
	due     time.Duration // Awake: it is looked again
	looking bool
	next    time.Duration // Boot: a deadline comes near then; 0: none
	rests   time.Duration // Awake: until then it is not looked
}

// mindAlarm tells those who watch that a deadline has come near, as nothing else happens then. It says after what
// time it is to be called again.
func (d *Desk) mindAlarm(now moment.Now) time.Duration {
	if !d.in.Watched() {
		return alarmEvery
	}
	d.mu.Lock()
	a := &d.alarm
	near := a.next > 0 && now.Boot >= a.next && now.Awake >= a.rests
	if near {
		a.next, a.due = 0, 0
	}
	look := !a.looking && now.Awake >= a.due
	if look {
		a.looking, a.due = true, now.Awake+alarmEvery
	}
	soon := max(a.due-now.Awake, 0)
	if a.next > 0 {
		soon = min(soon, max(a.next-now.Boot, a.rests-now.Awake, 0))
	}
	d.mu.Unlock()
	if near {
		d.in.Publish(api.Event{At: now.Wall, Kind: "message", Text: "a deadline"})
	}
	if look {
		d.in.Aside(d.lookAhead)
	}
	return soon
}

// lookAhead finds when the next deadline of anybody here comes near.
func (d *Desk) lookAhead() {
	ctx, cancel := context.WithTimeout(context.Background(), claimPatience)
	defer cancel()
	next, began := time.Duration(0), d.in.Clock.Now().Awake
	for _, who := range d.in.People.Here() {
		_, then, err := d.told(ctx, who, stuckFor)
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				d.in.Log.Debug("messages cannot be worked out now", "error", err)
			}
			continue
		}
		if then > 0 && (next == 0 || then < next) {
			next = then
		}
	}
	now := d.in.Clock.Now().Awake
	d.mu.Lock()
	d.alarm.looking, d.alarm.next, d.alarm.rests = false, next, now+min(alarmShare*(now-began), alarmRest)
	d.mu.Unlock()
	if next > 0 {
		d.in.Nudge()
	}
}

// shownAt is when something happened of which somebody is told, to the second: facts as all lists show them, and
// deadlines, which are worked out, to the next.
func shownAt(m worklist.Message) time.Time {
	if m.ID.Type == worklist.Deadline {
		return m.At.Round(time.Second).UTC()
	}
	return m.At.Truncate(time.Second).UTC()
}
