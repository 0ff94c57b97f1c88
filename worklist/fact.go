package worklist

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// ID names a fact by its hash.
type ID [32]byte

// IsZero reports whether id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

func (id ID) String() string { return hex.EncodeToString(id[:5]) }

// User is a person: the text form of the key with which the person signs.
type User string

// Item is one attempt at a person's task: the fact that assigned it (zero: the genesis),
// and the slot that it is to fill.
type Item struct {
	Assigned ID
	Slot     workflow.TaskName
}

// Compare puts items in one order.
func (i Item) Compare(o Item) int {
	if n := cmp.Compare(i.Slot, o.Slot); n != 0 {
		return n
	}
	return bytes.Compare(i.Assigned[:], o.Assigned[:])
}

// Fact is something that happened to people's work.
type Fact struct {
	ID ID
	// Time is the logical time: one more than the highest in the fact's past.
	Time uint64
	// Partner wrote it. User signed it, or the request that it answers; empty: no person.
	Partner workflow.PartnerID
	User    User
	// From is the partner at whose node User signed it; empty: no person did.
	From workflow.PartnerID
	// Roles are those of User, as certificates in the fact or its past prove.
	Roles []workflow.RoleName
	// Word names the word of User in it: the same in whichever fact that was written down, and known to
	// whoever said it before anybody wrote it. Zero: the fact's own name.
	Word ID
	// At is its author's wall clock, for people; it decides nothing but the order of lists.
	At   time.Time
	Body Body
	// Unfit is why it is a result that its task may not have, by the definition as its author knew that; empty: it may.
	Unfit string
}

// word names the person's word in a fact.
func (f *Fact) word() ID {
	if f.Word.IsZero() {
		return f.ID
	}
	return f.Word
}

// compare puts facts in the one order in which they are read (rule 1): each after its
// past, and those side by side always in the same way.
func (f *Fact) compare(o *Fact) int {
	if n := cmp.Compare(f.Time, o.Time); n != 0 {
		return n
	}
	return bytes.Compare(f.ID[:], o.ID[:])
}

// isBefore reports whether a fact comes before a change of the definition.
func (f *Fact) isBefore(r Renewal) bool { return f.compare(&Fact{Time: r.Time, ID: r.ID}) < 0 }

func (f *Fact) hasRole(r workflow.RoleName) bool { return slices.Contains(f.Roles, r) }

// grantee is to whom a fact gives items; empty: to nobody.
func (f *Fact) grantee() User {
	switch x := f.Body.(type) {
	case Grant:
		return f.User
	case Transfer:
		return x.To
	}
	return ""
}

// Body is what a fact says. To add a kind: a type with these methods, and enter (rights.go)
// if it is about items.
type Body interface {
	// kind names it, for people.
	kind() string
	// about are the items that it is about; none: the instance.
	about() []Item
}

// entering is a body about items: it changes an item, or says why not.
type entering interface {
	enter(b *Board, it *item, f *Fact) (why string)
}

// Mode is how somebody holds an item.
type Mode string

// The modes of a hold.
const (
	Handed Mode = "handed" // kept for somebody to take
	Select Mode = "select" // taken, to be done while connected
	Lock   Mode = "lock"   // taken, may be done offline
)

// DefaultLease is how long others wait for somebody who holds an item and is not heard of.
func DefaultLease(m Mode) time.Duration {
	switch m {
	case Lock:
		return 7 * 24 * time.Hour
	case Select:
		return 24 * time.Hour
	}
	return time.Hour
}

// Offer shows an item to people: the holder's word.
type Offer struct {
	Item  Item
	All   bool   // to all who have the role, now and later
	To    []User // to these as well as to those of earlier offers under the same policy
	Under ID     // the Notify that made the policy; zero: the terms
}

// Grant gives items to the user who asked, all or none: the holder's word. User signed the request.
type Grant struct {
	Items []Item
	Mode  Mode
	Lease time.Duration // 0: for as long as it takes
	// With are items of other holders that its user asked for together with these (Joint): the user's word,
	// which nobody proves. It gives nothing but that an item can be had before it is ready.
	With []Item
	// Anew are the words (Fact.Word) by which its user has the items, as whoever asks knew: what the user has by one of
	// them is given once more, in the same mode too, and by any other not. So a device that gives back what it was
	// given by an earlier word gives back nothing that was asked for again.
	Anew []ID
}

// Gave reports whether what its user has by a word was got by a request: asked is the request's own word.
func (x Grant) Gave(asked, by ID) bool { return by == asked || slices.Contains(x.Anew, by) }

// Release gives an item back: the word of whoever holds it.
type Release struct {
	Item   Item
	Grant  ID
	Reason string // for people; empty: none is given
}

// Cause says why a grant ended, or an item went to somebody else.
type Cause string

// The causes.
const (
	ByLease      Cause = "its lease is over"
	ByRemoval    Cause = "its user is no longer entitled"
	ByDeadline   Cause = "its deadline is near"
	ByOrder      Cause = "by order"
	ByDelegation Cause = "handed on"
	ByEscalation Cause = "passed to another role"
	ByReturn     Cause = "put back"
)

// Revoke ends a grant: the holder's word. Order is what it follows, if any.
type Revoke struct {
	Item  Item
	Grant ID
	Cause Cause
	Order ID
}

// Transfer hands an item to a user, offers it to another role or, naming neither, puts it back to those
// for whom its task is: the holder's word. User signed the request, if a person asked. It ends the
// grant that there is. What is handed to somebody is kept for that user to take, who shows by taking
// it to be entitled.
type Transfer struct {
	Item  Item
	To    User
	Role  workflow.RoleName // in place of To
	Cause Cause
	Lease time.Duration
	// Grant is what it ends, as whoever asked knew; zero: nobody had the item.
	Grant  ID
	Reason string // for people
}

// Begin says that its user works on an item.
type Begin struct {
	Item  Item
	Grant ID
}

// Result is what its user made of an item: it is an end only when a Close or an Adopt takes it.
type Result struct {
	Item    Item
	Grant   ID
	Failed  bool
	Reason  string
	Outputs map[workflow.DataName]workflow.Value
	Upon    []Basis // results of other items, not yet closed as its user knew, that it was made from
}

// Basis is a result that another was made from: of which item, and by which word of its user (Fact.Word).
type Basis struct {
	Item Item
	Word ID
}

// Close ends an item: the holder's word. It takes a result, or follows an order to stop.
type Close struct {
	Item   Item
	Result ID
	Order  ID
}

// Adopt takes a result that does not count by itself: the word of the responsible user.
type Adopt struct {
	Item   Item
	Result ID
}

// What an order asks for.
const (
	Continue = "continue" // go on, though the deadline is over, or with the failure as it is
	Stop     = "stop"     // the task fails
	Cancel   = "cancel"   // the instance ends
	Again    = "again"    // the task is done once more
	Undo     = "undo"     // what the task did is compensated, though it counts
	Skip     = "skip"     // the task is left out: what waits for it goes on without it
	Recover  = "recover"  // a step that recovers an instance that is interrupted; Reason says which
)

// Order is what the responsible user, or an administrator, decides: about an item or, to cancel,
// about the instance (no slot).
type Order struct {
	Item   Item
	What   string
	Reason string             // for people
	To     workflow.PartnerID // who does it once more, of Again; empty: who held it
}

// Reopen has an item that failed done once more, or left out: the holder's word, by an order.
type Reopen struct {
	Item  Item
	Order ID
}

// Extend gives an item another deadline: the word of the responsible user.
type Extend struct {
	Item Item
	Due  Due
}

// Notify changes whom items are offered to: the word of the responsible user.
type Notify struct{ Policy Policy }

// Amend changes the definition by which the instance runs: the word of the responsible user. What a patch says, and
// whether it fits, is for whoever knows the definition: to the work of people it means nothing by itself.
type Amend struct {
	Patch string
	At    []Placed // by their names: partitions that the patch adds, and those that move
}

// Placed says which partner has a partition. Moves: there was one already, and whoever holds it gives on what nobody
// has begun of it.
type Placed struct {
	Partition workflow.PartitionName
	Partner   workflow.PartnerID
	Moves     bool
}

func (Offer) kind() string    { return "offer" }
func (Grant) kind() string    { return "grant" }
func (Release) kind() string  { return "release" }
func (Revoke) kind() string   { return "revoke" }
func (Transfer) kind() string { return "transfer" }
func (Begin) kind() string    { return "begin" }
func (Result) kind() string   { return "result" }
func (Close) kind() string    { return "close" }
func (Adopt) kind() string    { return "adopt" }
func (Order) kind() string    { return "order" }
func (Reopen) kind() string   { return "reopen" }
func (Extend) kind() string   { return "extend" }
func (Notify) kind() string   { return "notify" }
func (Amend) kind() string    { return "amend" }

func (x Offer) about() []Item    { return []Item{x.Item} }
func (x Grant) about() []Item    { return x.Items }
func (x Release) about() []Item  { return []Item{x.Item} }
func (x Revoke) about() []Item   { return []Item{x.Item} }
func (x Transfer) about() []Item { return []Item{x.Item} }
func (x Begin) about() []Item    { return []Item{x.Item} }
func (x Result) about() []Item   { return []Item{x.Item} }
func (x Close) about() []Item    { return []Item{x.Item} }
func (x Adopt) about() []Item    { return []Item{x.Item} }
func (x Reopen) about() []Item   { return []Item{x.Item} }
func (x Extend) about() []Item   { return []Item{x.Item} }
func (Notify) about() []Item     { return nil }
func (Amend) about() []Item      { return nil }

func (x Order) about() []Item {
	if x.Item.Slot == "" {
		return nil
	}
	return []Item{x.Item}
}
