package api

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// WorklistService is the part of Service about people's work. User is, in each request, a name
// or a whole ID; empty: the one user who is signed in at this node, else the partner itself.
// An item is named by its ID or a beginning of it.
type WorklistService interface {
	// Worklist lists the items that a user has or may take, as the partners that hold them
	// say now, where they can be asked.
	Worklist(ctx context.Context, q WorklistQuery) ([]Item, error)
	// WorklistUnanswered names the partners that did not answer when a user's list was asked for
	// last: what they hold is shown as it was known before.
	WorklistUnanswered(ctx context.Context, user string) ([]string, error)
	// ItemSheet shows an item with all that is needed to do it, as the partner says that holds it or, if
	// that cannot be asked, as it is kept on this device.
	ItemSheet(ctx context.Context, q ItemQuery) (*ItemSheet, error)
	// ItemFile gives the content of a file among the data of an item that a user has. It fetches what is
	// not here, until ctx ends.
	ItemFile(ctx context.Context, q ItemQuery, name string) (*File, io.ReadCloser, error)
	// MoveItem puts an item elsewhere in a user's list as it is ordered by hand, and returns that list.
	MoveItem(ctx context.Context, r MoveRequest) ([]Item, error)
	// Prefetch says which files of a user's items come before they are needed; SetPrefetch switches that
	// on or off.
	Prefetch(ctx context.Context, user string) (*Prefetch, error)
	SetPrefetch(ctx context.Context, r PrefetchRequest) (*Prefetch, error)
	// ClaimItems takes items for a user, or gives them back. What is taken is all taken, or
	// nothing.
	ClaimItems(ctx context.Context, r ClaimRequest) ([]Item, error)
	// FinishItem hands in what a user made of an item.
	FinishItem(ctx context.Context, r ItemResult) (*Item, error)
	// WorklistLost lists the items that a user had and lost in the last seven days, as far as that is known here.
	WorklistLost(ctx context.Context, user string) ([]LostItem, error)
	// TransferItem has a user pass an item on: who has it, or decides about its instance. It returns when the
	// partner that holds it has that durable.
	TransferItem(ctx context.Context, r TransferRequest) (*Transferred, error)
	// OrderTask has a user who decides about an instance say what becomes of a task, or that the
	// instance is cancelled. It returns when the partner that holds the task has that durable.
	OrderTask(ctx context.Context, r TaskOrder) (*TaskOrdered, error)
	// Deciding says whether a user decides about an instance in which this node takes part: answers for it, or has the
	// role of its administrators.
	Deciding(ctx context.Context, q DecidingQuery) (*Deciding, error)
	// ExtendDeadline has a user who decides about an instance give a task a later deadline. It returns when the partner
	// that holds the task has that durable.
	ExtendDeadline(ctx context.Context, r ExtendRequest) (*Extended, error)
	// ChangeNotify has a user who decides about an instance change by which policy its items are offered. It returns when
	// a partner that takes part has that durable.
	ChangeNotify(ctx context.Context, r NotifyRequest) (*Notified, error)
	// AdoptResult has a user who decides about an instance adopt a result that is kept. It returns when a partner that
	// takes part has that durable; the one that holds the task is not needed.
	AdoptResult(ctx context.Context, r AdoptRequest) (*Adopted, error)
	// Disconnect has this node end all contact with its partners, once what its users have
	// locked is here. It returns how far that is, and does not wait for it; a question it
	// asks is answered by asking again. Contact says how far it is.
	Disconnect(ctx context.Context, r DisconnectRequest) (*Contact, error)
	// Reconnect has it talk to partners again, or stay if it had not gone yet.
	Reconnect(ctx context.Context) (*Contact, error)
	Contact(ctx context.Context) (*Contact, error)
	// Outbox lists what users did at this node that nobody else has acknowledged yet, and what was refused.
	Outbox(ctx context.Context, user string) ([]Undelivered, error)
	// DropRefused drops from it a result that was refused, and returns what that was. It returns when that is durable.
	DropRefused(ctx context.Context, r DropRequest) (*Undelivered, error)
	// Messages lists what a user is told of instances, the oldest first: of those for which the user answers,
	// and of deadlines of what the user has. An Event of kind message, instance or users says that there may be more.
	Messages(ctx context.Context, q MessagesQuery) ([]Message, error)
	// UnreadMessages is how many messages a user has not read, as of at most two seconds ago.
	UnreadMessages(ctx context.Context, user string) (int, error)
	// ReadMessages notes that a user has read messages, here and at the user's other nodes. It returns when that is durable.
	ReadMessages(ctx context.Context, r MessagesRead) error
}

// WorklistQuery asks for a worklist.
type WorklistQuery struct {
	User string `json:"user,omitempty"`
	// Order is one of Orders; empty: OrderArrival.
	Order string `json:"order,omitempty"`
	// Ahead: with what is not ready and can be locked together with what it waits for.
	Ahead bool `json:"ahead,omitempty"`
}

// The orders of a worklist.
const (
	OrderArrival  = "arrival"  // what could be done first comes first
	OrderPriority = "priority" // the highest first
	OrderDeadline = "deadline" // what is due first; what has no deadline last
	OrderSize     = "size"     // what needs the fewest bytes of files first
	OrderHand     = "hand"     // as the user moved items; others where they arrived
	OrderHere     = "here"     // what has its files and its application on this device first
)

// Orders are all of them.
var Orders = []string{OrderArrival, OrderPriority, OrderDeadline, OrderSize, OrderHand, OrderHere}

// The states of an item.
const (
	ItemReady = "READY" // the user may take it
	// ItemNotReady: it waits for other tasks, together with which the user may lock it.
	ItemNotReady = "NOT_READY"
	ItemSelected = "SELECTED" // the user has it
	ItemLocked   = "LOCKED"   // the user has it, and may be out of reach
	ItemDone     = "DONE"     // the user has done it
)

// Item is a person's task, on somebody's worklist.
type Item struct {
	ID       string `json:"id"`
	Instance string `json:"instance"`
	Workflow string `json:"workflow"`
	Task     string `json:"task"`
	// Label is what people call the task, WorkflowLabel the workflow; empty: by their names.
	Label         string `json:"label,omitempty"`
	WorkflowLabel string `json:"workflow_label,omitempty"`
	// InPlaceOf is the task whose contingency this is, where it stands in for one.
	InPlaceOf string `json:"in_place_of,omitempty"`
	// Undoes is the task that this compensates; empty: it compensates none.
	Undoes string `json:"undoes,omitempty"`
	State  string `json:"state"`
	// Doc is the beginning of what its definition says of the task, Subject what the instance is about, in
	// the words with which it was started; empty: nothing is known.
	Doc     string `json:"doc,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Holder is the user who has it; nil: nobody. Partner is who gives it out.
	Holder *string `json:"holder"`
	// TakenBy is somebody else who has it, or for whom it is kept (KeptUntil), and Over says that the user cannot take it
	// any more, as nobody can or as the user may not: of an item that is looked at by itself, as lists leave such out.
	TakenBy string `json:"taken_by,omitempty"`
	Over    bool   `json:"over,omitempty"`
	// LeaseUntil is till when whoever has it has it: others may take it then. Of a lock that counts an absence that the
	// device announced. Left out: for as long as it takes.
	LeaseUntil *time.Time `json:"lease_until,omitempty"`
	Partner    string     `json:"partner"`
	Role       string     `json:"role"` // that it is for; empty: for people at the partner
	Priority   int        `json:"priority"`
	Deadline   *time.Time `json:"deadline"`   // nil: none
	Size       int64      `json:"size"`       // bytes that it needs on the device
	Offline    bool       `json:"offline"`    // it may be locked
	Prefetched bool       `json:"prefetched"` // all that it needs is here
	// Since is when it came to be done: when its holder wrote down that it is ready, or else with the latest
	// fact that its rule needed: a success, a failure, a release, a time-out, a start.
	Since time.Time `json:"since"`
	Due   *Due      `json:"due"` // the next of the clocks that run for it; null: none is known
	// Transfer is when it passes to the responsible user, whoever has it, as its deadline is near. Left out: it does not,
	// or has passed already.
	Transfer *Passing `json:"transfer,omitempty"`
	// AsOf is when this was last known from its partner; Known says so in words where that is old.
	AsOf  time.Time `json:"as_of"`
	Known string    `json:"known,omitempty"`
	// Unreachable: its partner cannot be asked now, so what nobody has cannot be taken, and what is done is kept here.
	Unreachable bool `json:"unreachable,omitempty"`
	// Elsewhere: this node takes no part in its instance, so it cannot show that; its partner can.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// Delivered: nothing that the user did of it waits here for its partner. What is DONE all the same waits there
	// until that counts which it was made from.
	Delivered bool `json:"delivered"`
	// OnlyHere names the data whose files the user has just handed in with it and that no other partner has yet: the
	// outbox says whom they wait for. Left out: none.
	OnlyHere []string `json:"only_here,omitempty"`
	// Signed is how the user signed what the user did of it, where that was done just now or waits here; left out: else.
	Signed *PersonSignature `json:"signed,omitempty"`
	// HandedBy is the user who handed it to this one, for whom it is kept to take; KeptUntil is till when.
	// Empty: nobody did, or it was taken.
	HandedBy  string     `json:"handed_by,omitempty"`
	KeptUntil *time.Time `json:"kept_until,omitempty"`
	// Begun is since when its holder, the partner, works on it, while nobody has taken it from a worklist; nil: it does
	// not, as far as it said (mutirao task start).
	Begun *time.Time `json:"begun,omitempty"`
	// Said is what whoever gave it back or passed it on last said; left out: nothing.
	Said *Said `json:"said,omitempty"`
	// Presumed is why others presume that its task has failed, while its partner has not given it up: what is made of it
	// may not count. Left out: nobody does.
	Presumed string `json:"presumed,omitempty"`
	// Away says that its partner is away as it announced: what nobody has, nobody can take until it is back, and what
	// was done is handed in then. Left out: it is not.
	Away *Absence `json:"away,omitempty"`
	// WaitsFor are the resources that its task is to hold and has not got yet: nobody can take it before.
	WaitsFor []Lack `json:"waits_for,omitempty"`
	// Shared are the resources that other tasks use with it though there is not enough for all, as after a split: whoever
	// has it goes on, and those who use one of them have to agree. Left out: none.
	Shared []Lack `json:"shared,omitempty"`
	// Awaits are the tasks whose success makes it ready, while it is not: it can be locked together with those.
	Awaits []string `json:"awaits,omitempty"`
	// HeldUp is why that cannot make it ready as things are: one of them failed, or is presumed to. Whoever
	// has it has it still. Left out: it can.
	HeldUp string `json:"held_up,omitempty"`
	// TaskLabels are what people call the other tasks that are named here, by name; what is left out is called by its
	// name.
	TaskLabels map[string]string `json:"task_labels,omitempty"`
}

// Passing is when an item passes to the responsible user.
type Passing struct {
	At   time.Time `json:"at"`
	Left string    `json:"left"` // 0s: it has, as far as this node can tell, but its holder has not said so yet
	To   string    `json:"to"`   // the user
	// About is as of Due.
	About bool `json:"about"`
}

// HasPassed is to whom an item has passed that another had, as far as is known at a node that cannot ask its holder;
// empty: to nobody.
func (x *Item) HasPassed() string {
	if x.Delivered {
		return ""
	}
	return x.PassedByClock()
}

// PassedByClock is to whom an item has passed that another has, by this node's clock: its holder may not have said so
// yet. Empty: to nobody.
func (x *Item) PassedByClock() string {
	if p := x.Transfer; p != nil && p.Left == "0s" && x.Holder != nil && *x.Holder != p.To {
		return p.To
	}
	return ""
}

// Said is why somebody gave an item back, or passed it on.
type Said struct {
	By     string    `json:"by"` // a user
	Why    string    `json:"why"`
	At     time.Time `json:"at"`               // by the clock of the partner that wrote it down
	Passed bool      `json:"passed,omitempty"` // it was passed on
}

// Called is what people call another task that an item names.
func (i Item) Called(task string) string { return cmp.Or(i.TaskLabels[task], task) }

// Lack is a resource for which a task waits that could begin but for it, or that others use with it.
type Lack struct {
	Resource string `json:"resource"`
	Capacity int    `json:"capacity"` // how many tasks may have it at once
	InUse    int    `json:"in_use"`   // how many have it, and use it beyond that
	// By are the first of these tasks without the one itself, at most 8.
	By []string `json:"by"`
	// Text says the same in words.
	Text string `json:"text"`
}

// LostItem is an item that a user had, and has no more by no act of its own.
type LostItem struct {
	ID       string `json:"id"`
	Instance string `json:"instance"`
	Workflow string `json:"workflow"`
	Task     string `json:"task"`
	// Label, WorkflowLabel and Subject are as of an item.
	Label         string `json:"label,omitempty"`
	WorkflowLabel string `json:"workflow_label,omitempty"`
	Subject       string `json:"subject,omitempty"`

	Why string `json:"why"`
	// Presumed: the user may go on with it, as its holder has not heard of that; what the user makes of it may not count.
	Presumed  bool      `json:"presumed,omitempty"`
	By        string    `json:"by,omitempty"` // the user whose word that was, if a person's
	At        time.Time `json:"at"`
	Partner   string    `json:"partner"`             // who gives it out
	Elsewhere bool      `json:"elsewhere,omitempty"` // as of an item
	// Adoptable: a result that the user brought of it is kept, and counts if whoever decides about the instance adopts it.
	Adoptable bool `json:"adoptable,omitempty"`
	// Message is by what it is noted that the user has read this (ReadMessages).
	Message string `json:"message"`
	Read    bool   `json:"read"` // that is noted
}

// TransferRequest passes an item on: to a user, to a role or, with neither, back to those for whom its task is.
type TransferRequest struct {
	User string `json:"user,omitempty"`
	// Item is by what the user's worklist names it. Or it is the one of Task in the instance ID, for those who decide
	// about that, and have no such item on their list.
	Item   string            `json:"item,omitempty"`
	ID     string            `json:"id,omitempty"`
	Task   workflow.TaskName `json:"task,omitempty"`
	To     string            `json:"to,omitempty"`   // a user, for whom it is kept for an hour
	Role   string            `json:"role,omitempty"` // in place of To
	Back   bool              `json:"back,omitempty"` // in place of To and Role
	Reason string            `json:"reason,omitempty"`
}

// Transferred says what became of an item that was passed on.
type Transferred struct {
	ID      string            `json:"id"` // of the instance, whole
	Task    workflow.TaskName `json:"task"`
	Label   string            `json:"label,omitempty"` // what people call the task; empty: its name, or it is not known here
	User    string            `json:"user"`            // who passed it on
	To      string            `json:"to,omitempty"`    // for whom it is kept
	Role    string            `json:"role,omitempty"`  // for which it is; of a task without a role, none
	Partner string            `json:"partner"`         // who holds the task
	Already bool              `json:"already"`         // it was so before
}

// ItemQuery names an item of a user.
type ItemQuery struct {
	User string `json:"user,omitempty"`
	Item string `json:"item"`
}

// ItemSheet is an item with all that is needed to do it.
type ItemSheet struct {
	Item Item `json:"item"`
	// Whole: the rest is known. It is not if the partner that holds the item cannot be asked, and the item is
	// not locked, so that nothing of it is kept here.
	Whole bool   `json:"whole"`
	Doc   string `json:"doc"` // all that the definition says of the task
	// Fields are what a result may set. Data are what the task reads, with the values that they have: only
	// while the user has the item.
	Fields []Field `json:"fields"`
	Data   []Datum `json:"data"`
	// After are the tasks that came before and have succeeded.
	After []Earlier `json:"after"`
	// Coming is what of its files is not here yet; left out where all is, or the user does not have the item.
	Coming *Coming `json:"coming,omitempty"`
	// Application is with what the task is done; left out: without any.
	Application *ItemApplication `json:"application,omitempty"`
}

// ItemApplication is an application with which a person does a task, as far as the workflow says what it needs. No node
// installs or starts it: the person does.
type ItemApplication struct {
	Name workflow.ApplicationName `json:"name"`
	Size int64                    `json:"size,omitempty"` // bytes
	OS   string                   `json:"os,omitempty"`
	CPU  string                   `json:"cpu,omitempty"`
	// Installer is what installs it, in words for people.
	Installer string `json:"installer,omitempty"`
	// Here: this device has it, as its config.yaml or its profile says.
	Here bool `json:"here"`
}

// Coming is what of an item's files is not at this node yet.
type Coming struct {
	Files     int   `json:"files"`
	Bytes     int64 `json:"bytes"`
	Reachable bool  `json:"reachable"` // a partner that has them is connected
	// Rate is how many bytes a second came of files lately from the quickest of these; 0: none came yet.
	Rate int64 `json:"rate"`
	// AtMost is how many bytes a second come of those that come by themselves, where a bound that the user set is less
	// than that; 0: nothing bounds it.
	AtMost int64 `json:"at_most,omitempty"`
	// Takes is how long they take at AtMost, or else at Rate; left out if nobody knows.
	Takes string `json:"takes,omitempty"`
	// NoRoom is how many bytes of room there lack at this node for all of them; 0: none.
	NoRoom int64 `json:"no_room,omitempty"`
	// Advice is what is best done: room (there is none for them here: make some), wait (nobody who has them is
	// connected), open, coming (they come by themselves), lock (the item, and they come meanwhile), prefetch, elsewhere
	// (it takes too long: look at them at a node that has them), or gone (whoever gave them is: see Gone of each).
	Advice string `json:"advice"`
}

// AdviceGone is the advice where all who gave the files that are not here are not active any more.
const AdviceGone = "gone"

// Field is a data item that can be set.
type Field struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`            // string, integer, number, boolean, time, list or map
	Label    string   `json:"label,omitempty"` // what people call it; empty: its name
	Doc      string   `json:"doc,omitempty"`
	Required bool     `json:"required,omitempty"` // at the start of an instance
	Enum     []any    `json:"enum,omitempty"`     // the only values allowed
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	Value    any      `json:"value"` // that it has now, or if nothing else is set
}

// longLabel is up to how many bytes what the definition says of a data item is its label.
const longLabel = 80

// Called is what people call it where they set it: by its label, else by what is said of it in short, else by its name.
func (f *Field) Called() string {
	switch {
	case f.Label != "":
		return f.Label
	case f.Doc != "" && len(f.Doc) <= longLabel:
		return f.Doc
	}
	return f.Name
}

// Datum is a data item with its value.
type Datum struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`  // empty: a version before this one said it
	Label string `json:"label,omitempty"` // what people call it; empty: its name
	Doc   string `json:"doc,omitempty"`
	Value any    `json:"value"`
	Large bool   `json:"large,omitempty"` // the value is left out, since it is too large to be sent along
	// File says more of a file that was given, and whether its content is here.
	File *File `json:"file,omitempty"`
}

// Earlier is a task that has succeeded.
type Earlier struct {
	Task  string     `json:"task"`
	Label string     `json:"label,omitempty"` // what people call it; empty: its name
	By    string     `json:"by"`              // the user whose result it was, or else the partner
	Ended *time.Time `json:"ended"`
}

// Undelivered is what was done at this node, and nobody else has acknowledged: the partner that holds the item, or, of
// what is held here, any other that takes part.
type Undelivered struct {
	Instance string `json:"instance"`
	Task     string `json:"task"`
	Workflow string `json:"workflow"`
	// Label, WorkflowLabel and Subject are as of an item.
	Label         string    `json:"label,omitempty"`
	WorkflowLabel string    `json:"workflow_label,omitempty"`
	Subject       string    `json:"subject,omitempty"`
	What          string    `json:"what"` // completed, or failed with the reason
	Since         time.Time `json:"since"`
	WaitsFor      []string  `json:"waits_for"` // partners
	User          string    `json:"user"`
	// Awaits are the tasks that it was made from, which are to count first: its partner has it, and put it off until
	// then. Left out: its partner does not have it. TaskLabels are as of an item.
	Awaits     []string          `json:"awaits,omitempty"`
	TaskLabels map[string]string `json:"task_labels,omitempty"`
	// Redo are those of Awaits whose results were refused here: each is to be done once more, and this after it.
	Redo []string `json:"redo,omitempty"`
	// Outputs are the data that its user handed in, as they were typed. DataLabels are what people call these, by name, as
	// the item's form did; what is left out is called by its name.
	Outputs    map[string]string `json:"outputs,omitempty"`
	DataLabels map[string]string `json:"data_labels,omitempty"`
	// Refused is why it waits no longer: its partner did not take it, or it does not count; empty: it waits. RefusedAt is
	// since when, and ID by what it is dropped: until then it stays.
	Refused   string     `json:"refused,omitempty"`
	RefusedAt *time.Time `json:"refused_at,omitempty"`
	ID        string     `json:"id,omitempty"`
	// Result is by what it can be adopted (AdoptRequest) where its partner keeps it; left out: it cannot, as far as is known.
	Result string `json:"result,omitempty"`
	// Elsewhere is as of an item.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// File says that this is about the content of a file that was given here: the result itself is with its partner, or
	// stands beside this with the same task. It names the data item, and FileName is what the file is called.
	File     string `json:"file,omitempty"`
	FileName string `json:"file_name,omitempty"`
	// HeldHere: the task is held at this node, so what was done counts; no other partner is known to have it yet.
	// Alone: none that could take it takes part in the instance.
	HeldHere bool `json:"held_here,omitempty"`
	Alone    bool `json:"alone,omitempty"`
	// NoMember is why this node is no member any more, as it was evicted, so that nobody takes from it what waits; left
	// out: it is one, as far as it knows, or this waits for nobody.
	NoMember string `json:"no_member,omitempty"`
}

// DropRequest drops a result from the outbox that was refused.
type DropRequest struct {
	// User is whose it must be; empty: anybody's who is signed in at this node.
	User string `json:"user,omitempty"`
	ID   string `json:"id"` // or the beginning of it
}

// What can be ordered.
const (
	TaskAgain    = "again"    // a task that failed is done once more
	TaskUndo     = "undo"     // what a task did in an instance that has ended is undone
	TaskSkip     = "skip"     // a task that failed is left out: what waits for it goes on without it
	TaskStop     = "stop"     // a task that is READY or RUNNING fails
	TaskContinue = "continue" // it stays as it is
	TaskCancel   = "cancel"   // the instance is cancelled
	TaskRecover  = "recover"  // an interrupted instance is recovered by a step
)

// TaskOrder is what somebody orders who answers for an instance, or administers its workflow.
type TaskOrder struct {
	User   string            `json:"user,omitempty"`
	ID     string            `json:"id"`
	Task   workflow.TaskName `json:"task,omitempty"`   // may be left out to cancel
	Order  string            `json:"order"`            // again, skip, stop, continue, undo, cancel or recover
	Reason string            `json:"reason,omitempty"` // skip needs one
	To     string            `json:"to,omitempty"`     // again, by this partner in place of its holder
	// Item is the attempt at the task that the order is about (Item.ID, Ask.Item): if there is another by then, it is
	// refused. Empty: the one that there is.
	Item string `json:"item,omitempty"`
	// Recover is the step to recover by; with it there is neither a task nor a reason.
	Recover *RecoveryStep `json:"recover,omitempty"`
}

// RecoveryStep is a step by which an interrupted instance is recovered.
type RecoveryStep struct {
	Method string `json:"method"` // compensate, offer, restart, jump-back or jump-forward
	// Steps, Until and When say when compensate stops: after so many, at a state equivalent to that
	// one, when a condition holds. Of several all must be so; of none it is after one.
	Steps int    `json:"steps,omitempty"`
	Until *int   `json:"until,omitempty"`
	When  string `json:"when,omitempty"`
	// Set are the data that a jump sets, read by their types; null: null.
	Set map[workflow.DataName]*string `json:"set,omitempty"`
	// From and Interruption are those of the Outlook by which it is ordered: if the instance is in another state by then,
	// or was interrupted once more, the step is refused. Without them it is taken in whatever state there is.
	From         *int   `json:"from,omitempty"`
	Interruption string `json:"interruption,omitempty"`
}

// DecidingQuery asks whether a user decides about an instance.
type DecidingQuery struct {
	User string `json:"user,omitempty"`
	ID   string `json:"id"`
}

// Deciding says who decides about an instance, and whether a user does.
type Deciding struct {
	User string `json:"user"`
	May  bool   `json:"may"`
	// MayCancel: the user may cancel it, as who decides may, and, where nobody is left who answers for it, each partner
	// that takes part, as the user of its own name.
	MayCancel      bool              `json:"may_cancel"`
	Responsible    workflow.UserName `json:"responsible"`    // who answers for it
	Administrators workflow.RoleName `json:"administrators"` // who has this role decides as well; empty: nobody else does
}

// TaskOrdered says what was ordered.
type TaskOrdered struct {
	ID    string            `json:"id"` // whole
	Task  workflow.TaskName `json:"task,omitempty"`
	Order string            `json:"order"`
	User  string            `json:"user"`         // who ordered it
	At    string            `json:"partner"`      // who wrote it down, and carries it out
	To    string            `json:"to,omitempty"` // who does it once more, if another was named
	// InStead: whoever held the task is gone, so Partner finds who does it.
	InStead bool `json:"in_stead,omitempty"`
	// GoneToo are tasks that wait for Task and whose holders are gone as well: each wants an order of its own, once others
	// presume that it has failed.
	GoneToo []workflow.TaskName `json:"gone_too,omitempty"`
	// StandIn is what is done in place of Task, and so what the order was about; empty: Task itself.
	StandIn workflow.TaskName `json:"stand_in,omitempty"`
	// MayCount is the partner that holds an earlier attempt at Task, which others only presume to have failed: what is
	// brought of that may still count. Empty: none.
	MayCount string `json:"may_count,omitempty"`
}

// ExtendRequest gives a task a later deadline: one of By and To.
type ExtendRequest struct {
	User string            `json:"user,omitempty"`
	ID   string            `json:"id"`
	Task workflow.TaskName `json:"task"`
	By   string            `json:"by,omitempty"` // so much later than the one it has, a duration
	To   string            `json:"to,omitempty"` // a point in time in its place
}

// Extended says which deadline a task has by now.
type Extended struct {
	ID   string            `json:"id"` // whole
	Task workflow.TaskName `json:"task"`
	// After is for how long the task may be READY or RUNNING, where its deadline is a span; else At is the point in time.
	After   string     `json:"after,omitempty"`
	At      *time.Time `json:"at,omitempty"`
	User    string     `json:"user"`    // who extended it
	Partner string     `json:"partner"` // who holds the task
	Already bool       `json:"already"` // it had that one before
}

// NotifyRequest changes by which policy the items of an instance are offered.
type NotifyRequest struct {
	User   string `json:"user,omitempty"`
	ID     string `json:"id"`
	Policy string `json:"policy"` // all, fewest-assigned N, fewest-selected N or latest-connected N
}

// Notified says by which policy they are offered from now on.
type Notified struct {
	ID      string `json:"id"` // whole
	Policy  string `json:"policy"`
	User    string `json:"user"`    // who changed it
	Partner string `json:"partner"` // who wrote it down
	Already bool   `json:"already"` // it was so before
}

// AdoptRequest adopts a result that is kept and does not count by itself.
type AdoptRequest struct {
	User   string `json:"user,omitempty"`
	ID     string `json:"id"`
	Result string `json:"result"` // its ID, or a beginning of it (Incident.Result)
}

// Adopted says which result was adopted.
type Adopted struct {
	ID     string            `json:"id"` // whole
	Task   workflow.TaskName `json:"task"`
	Result string            `json:"result"`
	User   string            `json:"user"`    // who adopted it
	At     string            `json:"partner"` // who wrote it down
}

// What can be claimed.
const (
	ClaimSelect  = "select"
	ClaimLock    = "lock"
	ClaimRelease = "release"
)

// ClaimRequest takes items, or gives them back.
type ClaimRequest struct {
	User  string   `json:"user,omitempty"`
	Claim string   `json:"claim"` // select, lock or release
	Items []string `json:"items"`
	// Reason says why they are given back, for people; only with release, and at most 500 bytes.
	Reason string `json:"reason,omitempty"`
}

// ItemResult is what a user made of an item.
type ItemResult struct {
	User   string `json:"user,omitempty"`
	Item   string `json:"item"`
	Failed bool   `json:"failed,omitempty"`
	Reason string `json:"reason,omitempty"` // of a failure
	// Outputs are read by the types of the definition's data.
	Outputs map[string]string `json:"outputs,omitempty"`
}

// The types of messages.
const (
	MessageStarted  = "started"  // an instance has started
	MessageEnded    = "ended"    // it has ended
	MessageFailed   = "failed"   // a task has failed
	MessageDeadline = "deadline" // a deadline is near, or over, or has an item pass on
	MessageAdopted  = "adopted"  // a result of the user that did not count by itself was adopted
	MessageLost     = "lost"     // what the user has is not needed any more, or is over
	MessageUntaken  = "untaken"  // a partner does not take an instance in until somebody does something about it
)

// Message is what a user is told of an instance.
type Message struct {
	ID       string    `json:"id"` // the same on all devices
	At       time.Time `json:"at"`
	Type     string    `json:"type"` // started, ended, failed, deadline, adopted, lost or untaken
	Instance string    `json:"instance"`
	Workflow string    `json:"workflow"`
	Task     string    `json:"task"` // empty: it is about the instance
	// Label is what people call the task, WorkflowLabel the workflow; empty: by their names, or it is not known here.
	// Subject is what the instance is about, in the words with which it was started.
	Label         string `json:"label,omitempty"`
	WorkflowLabel string `json:"workflow_label,omitempty"`
	Subject       string `json:"subject,omitempty"`
	// Text says it in words; it names the task by its name.
	Text string `json:"text"`
	Asks bool   `json:"asks"` // the user is to decide
	Read bool   `json:"read"` // the user has read it, at any node
	// Past: it is about an item that the user had then, and others took from the user since. Once it is read it goes.
	Past bool `json:"past,omitempty"`
	// Elsewhere is as of an item.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// MessagesQuery asks for a user's messages.
type MessagesQuery struct {
	User   string `json:"user,omitempty"`
	Unread bool   `json:"unread,omitempty"` // only those that were not read
}

// MessagesRead says that a user has read messages.
type MessagesRead struct {
	User string   `json:"user,omitempty"`
	IDs  []string `json:"ids,omitempty"`
	All  bool     `json:"all,omitempty"` // all that there are now
}

// The states of a node's contact with its partners.
const (
	IsConnected    = "connected"
	IsLeaving      = "leaving"      // on its way out: what is needed comes first
	IsDisconnected = "disconnected" // on purpose, until it is to reconnect
)

// For how long a node waits at most for the holder of an item that a user takes, gives back, or hands in: HolderAnswersIn;
// KeptAfter where the user has locked the item, as what was done of it is then kept for later.
const (
	HolderAnswersIn = 10 * time.Second
	KeptAfter       = 3 * time.Second
)

// Acceptable are the questions of a node on its way out to which the answer may be yes.
var Acceptable = []string{"not-locked", "no-program", "missing", "too-slow"}

// DisconnectRequest asks a node to end all contact with its partners. Sent again, it says
// how far that is, and what is accepted now.
type DisconnectRequest struct {
	// Within is the longest wait that is accepted, such as "30m"; left out: five minutes.
	Within Span `json:"within,omitempty"`
	// Accept are the questions to which the answer is yes: not-locked, no-program, missing, too-slow.
	Accept []string `json:"accept,omitempty"`
	// For is how long the node is to be away, from when it goes, at most eight days: partners wait for so long for
	// what it holds, such as "2d" or "12h". Left out: as long as the longest lock of something that it holds itself
	// lasts; without such a lock it does not say, and they wait for its connection time.
	For Span `json:"for,omitempty"`
}

// Contact is how a node stands to its partners.
type Contact struct {
	State string     `json:"state"` // connected, leaving or disconnected
	Since *time.Time `json:"since"` // it is disconnected; null: it is not
	// Until is when it is back as it announced to partners; null: it announced nothing. Waits is for how long from
	// when it goes they wait for what it holds: until then, or its connection time.
	Until *time.Time `json:"until"`
	Waits string     `json:"waits"`
	// For is for how long it is to be away, such as "2d", of a node that is on its way out: as was asked, or as long as
	// the longest lock lasts of what it holds; empty: neither.
	For Span `json:"for"`
	// Within is the longest wait for files that is accepted, such as "5m", of a node that is on its way out; else empty.
	Within Span `json:"within"`
	// Asks is what keeps a node from going until it is accepted or changed: not-locked, no-program,
	// missing, too-slow, no-space, or trouble; empty: nothing. Why says it in words, with
	// what to do, Items are those that it is about.
	Asks  string `json:"asks"`
	Why   string `json:"why"`
	Items []Item `json:"items"`
	// Along are the locked items that can be done out of reach, Volume how many bytes of
	// their files are still to come, and Takes about how long that takes; empty: not known.
	Along  []Item `json:"along"`
	Volume int64  `json:"volume"`
	Takes  string `json:"takes"`
	// Own are tasks that this node itself holds, also those that nobody has taken: partners judge them when they have
	// heard nothing for as long as Waits says.
	Own []Item `json:"own"`
	// Withheld are files that items which are taken along read, and whose user may not: they do not come, and hold
	// nothing up.
	Withheld []Withheld `json:"withheld"`
	// Passed are tasks that this node was only given to perform, which nobody here has taken, and that it passed on before it went, with who has them now: until
	// it is back, or was started again.
	Passed []Given `json:"passed"`
	// Stays are those of them that nobody else can do now, with the reason, likewise.
	Stays []Stay `json:"stays"`
}

// Withheld is a file that whoever has an item may not read.
type Withheld struct {
	Item  string `json:"item"`
	Task  string `json:"task"`
	Label string `json:"label,omitempty"` // what people call the task; empty: its name
	User  string `json:"user"`
	Data  string `json:"data"`
	File  string `json:"file"` // what it is called
	// OnlyFor are those who alone may read it, as its declaration names them (readers).
	OnlyFor []string `json:"only_for"`
}

// MoveRequest puts an item elsewhere in a list that is ordered by hand: before another, or to the top or
// the bottom. One of these is given.
type MoveRequest struct {
	User   string `json:"user,omitempty"`
	Item   string `json:"item"`
	Before string `json:"before,omitempty"` // an item
	Top    bool   `json:"top,omitempty"`
	Bottom bool   `json:"bottom,omitempty"`
}

// PrefetchRequest says whether the files of a user's items are to come before they are needed.
type PrefetchRequest struct {
	User string `json:"user,omitempty"`
	On   bool   `json:"on"`
	// AtMost is how many bytes a second may come; 0: all that the link gives.
	AtMost int64 `json:"at_most,omitempty"`
}

// Prefetch says what comes to this node before it is needed.
type Prefetch struct {
	User   string `json:"user"`
	On     bool   `json:"on"`
	AtMost int64  `json:"at_most"`
	// Items are those that the user has and that may be done out of reach, in the order in which their
	// files come. Volume is how many bytes of these are still to come, NoRoom how many bytes of room there lack at this
	// node for that; 0: none.
	Items  []Item `json:"items"`
	Volume int64  `json:"volume"`
	NoRoom int64  `json:"no_room,omitempty"`
}
