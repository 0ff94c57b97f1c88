package device

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/worklist"
)

// Link is how the device stands to everybody else.
type Link string

// The states of a link.
const (
	Connected Link = "connected"
	Weak      Link = "semi-connected" // connected, but slow: what it needs is fetched beforehand
	Leaving   Link = "leaving"        // the protocol of disconnecting is under way
	Away      Link = "disconnected"   // as planned
	Cut       Link = "cut off"        // not planned
	Returning Link = "returning"      // connected again, and not yet in step
)

// reaches reports whether partners can be asked.
func (l Link) reaches() bool { return l != Away && l != Cut }

// PieceID names content by its hash: a file, or an application.
type PieceID string

// Piece is content that items need.
type Piece struct {
	Size        int64
	Here        int64 // of it, bytes that are here and verified
	Application bool  // it stays when no item needs it any more
}

// Run is how far the user is with an item.
type Run string

// The states of the work on an item.
const (
	Idle   Run = ""
	Local  Run = "on local data"
	Remote Run = "on remote data"
	Paused Run = "paused" // its data are elsewhere, and cannot be reached
	Ended  Run = "ended"  // its application ran elsewhere, and the link was lost: the user opens it again
	Done   Run = "done"
)

// Job is an item of the user.
type Job struct {
	Item  worklist.Item
	Mode  worklist.Mode // empty: not held
	Grant worklist.ID
	// Asked is what was asked for and not answered yet.
	Asked worklist.Mode
	Needs []PieceID
	// Output is how many bytes its result is expected to have.
	Output  int64
	Offline bool
	// After are items of this user that have to be done before it.
	After []worklist.Item
	// Ready: the holder's facts say that it can be done.
	Ready bool
	Due   worklist.Due
	// Since is when (Boot) it became ready, Locked when it was granted, for so long as Lease says.
	Since, Locked time.Duration
	Lease         time.Duration
	Warnings      []time.Duration
	RemoteApp     bool // its application runs elsewhere
	Run           Run
	Failed        bool
	// Taken says why it is no longer the user's: it is shown until the user has seen it.
	Taken string
	// Order is its place in the worklist.
	Order int
}

// ParcelID names what is in the outbox: of one item there is one of each kind.
type ParcelID struct {
	Item worklist.Item
	What string // "result", "release"
}

// Parcel is something that the user did which nobody else has acknowledged yet.
type Parcel struct {
	ParcelID
	Number uint64 // in the order in which it was done
	Grant  worklist.ID
	Size   int64
	Sent   int64 // up to where its receiver has it
	Since  time.Time
	Failed bool
}

// Settings are what the user, or an operator, chose.
type Settings struct {
	Prefetch bool
	// Spare is how much of a slow link prefetching may use, in bytes a second; 0: all that
	// nothing else uses.
	Spare int64
	// SaveEnergy keeps the device from locking offline work while energy is low.
	SaveEnergy bool
}

// State is all that a device remembers: it is stored whole or by difference, as its driver likes.
type State struct {
	User    worklist.User
	Link    Link
	Jobs    map[worklist.Item]*Job
	Pieces  map[PieceID]*Piece
	Outbox  map[ParcelID]*Parcel
	Parcels uint64 // there ever were
	Free    int64  // bytes of disk
	Rate    int64  // bytes a second, as measured; 0: not known
	Low     bool   // energy
	Heard   map[string]time.Time
	Plan    *Plan
	Setting Settings
	Agrees  bool // since the return all holders have said how the items stand
	Told    bool // partners know that the user is away
}

// Device is a user's device.
type Device struct {
	State
	uses  map[PieceID]int  // by items of the user
	loose map[PieceID]bool // pieces that an item stopped to use
	// cramped: not all that is wanted was asked for, since there was no room.
	cramped bool
	steps   int // of work, for tests of cost
}

// New is a device on which a user has signed in.
func New(u worklist.User) *Device {
	return of(State{User: u, Link: Connected, Jobs: map[worklist.Item]*Job{}, Pieces: map[PieceID]*Piece{},
		Outbox: map[ParcelID]*Parcel{}, Heard: map[string]time.Time{}})
}

func of(s State) *Device {
	d := &Device{State: s, uses: map[PieceID]int{}, loose: map[PieceID]bool{}}
	for _, j := range d.Jobs {
		d.use(j, 1)
	}
	return d
}

// use counts that an item uses its pieces, or does so no more (-1).
func (d *Device) use(j *Job, by int) {
	if j.Taken != "" {
		return
	}
	for _, id := range j.Needs {
		d.steps++
		if d.uses[id] += by; d.uses[id] == 0 {
			d.loose[id] = true
		}
	}
}

// forget takes an item off the list.
func (d *Device) forget(j *Job) {
	d.use(j, -1)
	delete(d.Jobs, j.Item)
}

// take notes that an item is no longer the user's.
func (d *Device) take(j *Job, why string) {
	d.use(j, -1)
	j.Taken = why
}

// Load is the device as it was saved, after a crash or a restart: nobody is connected, what
// was open is closed, and a disconnection that was not complete begins again when asked.
func Load(s State) *Device {
	d := of(s)
	if d.Link != Away {
		d.Link = Cut
	}
	d.Plan = nil
	for _, j := range d.Jobs {
		j.Asked = ""
		if j.Run == Local || j.Run == Remote || j.Run == Paused {
			j.Run = Ended
		}
	}
	return d
}

// Save is a copy of all that the device remembers.
func (d *Device) Save() State {
	s := d.State
	s.Jobs, s.Pieces, s.Outbox = map[worklist.Item]*Job{}, map[PieceID]*Piece{}, map[ParcelID]*Parcel{}
	s.Heard, s.Plan = maps.Clone(d.Heard), nil
	for k, j := range d.Jobs {
		c := *j
		s.Jobs[k] = &c
	}
	for k, p := range d.Pieces {
		c := *p
		s.Pieces[k] = &c
	}
	for k, p := range d.Outbox {
		c := *p
		s.Outbox[k] = &c
	}
	return s
}

// Fetching asks for a piece from a place on.
type Fetching struct {
	Piece PieceID
	From  int64
	Spare bool // with what nothing else uses of the link
}

// Sending asks for a parcel to be sent from a place on.
type Sending struct {
	Parcel *Parcel
	From   int64
}

// Asking asks the holder for an item.
type Asking struct {
	Item worklist.Item
	Mode worklist.Mode
}

// Effects are what the device is to do, in the order of the fields.
type Effects struct {
	Save   bool // what it remembers, before all else
	Active *bool
	Ask    []Asking
	Sync   bool // ask all holders how the user's items stand
	Fetch  []Fetching
	Remove []PieceID
	Send   []Sending
	Cut    bool // leave all contact with partners until the user returns
}

// Refusal is the error of what cannot be done: what, why, and what to do.
type Refusal struct {
	Why  worklist.Reason
	What string
	Do   string
}

func (r *Refusal) Error() string { return r.What + ": " + r.Do }

// inOrder are the jobs in the order of the worklist.
func (d *Device) inOrder() []*Job {
	return slices.SortedFunc(maps.Values(d.Jobs), func(x, y *Job) int {
		return cmp.Or(cmp.Compare(x.Order, y.Order), x.Item.Compare(y.Item))
	})
}

// here reports whether all that an item needs is on the device.
func (d *Device) here(j *Job) bool {
	return !slices.ContainsFunc(j.Needs, func(id PieceID) bool { p := d.Pieces[id]; return p == nil || p.Here < p.Size })
}

// Enabled reports whether the user can work on an item now, and else why not.
func (d *Device) Enabled(i worklist.Item) (ok bool, why string) {
	j := d.Jobs[i]
	switch {
	case j == nil:
		return false, "it is not on your list"
	case j.Taken != "":
		return false, j.Taken
	case j.Run == Done:
		return false, "you have done it; it waits to be delivered"
	case j.Mode == "" || j.Mode == worklist.Handed:
		return false, "it is not yours yet: select or lock it while you are connected"
	case !d.ready(j):
		return false, "what it waits for is not done"
	case d.Link.reaches():
		return true, ""
	case j.Mode != worklist.Lock:
		return false, "it is selected, not locked: it can be done when you are connected again"
	case !d.here(j):
		return false, "not all of its data are here: it can be done when you are connected again"
	}
	return true, ""
}

// ready reports whether all is done that an item waits for, as its holder says or as the
// user did it here.
func (d *Device) ready(j *Job) bool {
	if j.Ready {
		return true
	}
	return len(j.After) > 0 && !slices.ContainsFunc(j.After, func(i worklist.Item) bool {
		before := d.Jobs[i]
		return before == nil || before.Run != Done || before.Failed || before.Taken != ""
	})
}

// List are the items of the user with their states, in the order of the worklist: what was
// done here is DONE until it was delivered.
func (d *Device) List() (out []worklist.Entry) {
	for _, j := range d.inOrder() {
		e := worklist.Entry{Item: j.Item, State: worklist.Open, Grant: j.Grant, Offline: j.Offline, Local: d.here(j)}
		switch {
		case j.Run == Done:
			e.State = worklist.IsDone
		case j.Mode == worklist.Lock:
			e.State = worklist.Locked
		case j.Mode == worklist.Select:
			e.State = worklist.Selected
		}
		if e.State != worklist.Open {
			e.Holder = d.User
		}
		out = append(out, e)
	}
	return out
}

// Hear notes when something was last heard of a holder.
func (d *Device) Hear(from string, at time.Time) { d.Heard[from] = at }

// AsOf says how old what is known of a holder is, where that is worth saying.
func (d *Device) AsOf(from string, now time.Time) string {
	at, heard := d.Heard[from]
	switch age := now.Sub(at); {
	case !heard:
		return "never heard"
	case age < time.Minute:
		return ""
	case age < time.Hour:
		return fmt.Sprintf("as known %d min ago", age/time.Minute)
	case age < 48*time.Hour:
		return fmt.Sprintf("as known %d h ago", age/time.Hour)
	default:
		return fmt.Sprintf("as known %d days ago", age/(24*time.Hour))
	}
}

// Alerts are the warnings about an item's deadline that are due, by the own clock.
func (d *Device) Alerts(i worklist.Item, now worklist.Moment) []worklist.Alert {
	j := d.Jobs[i]
	if j == nil || j.Run == Done || !d.ready(j) {
		return nil
	}
	alerts, _ := worklist.Alerts(j.Due, j.Since, j.Warnings, now)
	return alerts
}

// LeaseLeft is how long others still wait for an item that the user locked, by the own clock.
func (d *Device) LeaseLeft(i worklist.Item, now worklist.Moment) (left time.Duration, has bool) {
	j := d.Jobs[i]
	if j == nil || j.Mode == "" || j.Lease == 0 {
		return 0, false
	}
	return j.Lease - (now.Boot - j.Locked), true
}
