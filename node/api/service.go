// Package api is what a node can be asked: the interface Service, and the types
// and errors that it speaks in. How a question travels is in node/api/httpapi. A
// caller cannot tell a node in its own process from one behind a socket.
//
// Promises: no I/O and no HTTP. Whatever the command line can do, any program can
// ask for. The names of fields in JSON are part of it.
//
// It imports internal/said and workflow; many packages import it.
package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Service is what a node can be asked. Every method's error is, or wraps, an
// *Error with one of the Codes; anything else is reported as Internal.
//
// Where a method takes an id, any unique prefix of an instance ID works; where
// it takes a partner, its name, its ID or a unique prefix of the ID.
type Service interface {
	Status(ctx context.Context) (*Status, error)
	Partners(ctx context.Context) ([]Partner, error)
	Invite(ctx context.Context, r InviteRequest) (*Invitation, error)
	MeshService
	UserService
	WorkService
	WorklistService
	JobService

	AddWorkflow(ctx context.Context, file string, source []byte) (*Workflow, error)
	Workflows(ctx context.Context) ([]Workflow, error)
	// Workflow returns the newest version of that name, or the one with that
	// version number or hash prefix: NAME, NAME@3, NAME@9f2c….
	Workflow(ctx context.Context, ref string) (*Workflow, error)
	// RemoveWorkflow takes all editions off the list that ref names, and says which.
	RemoveWorkflow(ctx context.Context, ref string) ([]Workflow, error)

	Start(ctx context.Context, r StartRequest) (*Started, error)
	// Instances lists the instances that run or wait for an order, or all: those that the node
	// takes part in and, at the coordinator, those of the whole mesh.
	Instances(ctx context.Context, all bool) ([]InstanceSummary, error)
	// InstancePage lists a part of them: it costs no more where more are held.
	InstancePage(ctx context.Context, q InstanceQuery) (*InstancePage, error)
	// Refresh asks the partners that hold what of an instance is not done, and can
	// be reached, what they have, and waits half a second at most: what Show says
	// after that is as new as can be.
	Refresh(ctx context.Context, id string) (*Refreshed, error)
	Show(ctx context.Context, id string) (*Instance, error)
	Log(ctx context.Context, id string) ([]LogEntry, error)
	// History are the data states of an instance that is driven by its data, in order.
	History(ctx context.Context, id string) ([]DataState, error)
	// ForeseeRecovery says what a step would lead to that recovers an interrupted instance, to a user at this node, or the
	// partner, who may order it. It changes nothing.
	ForeseeRecovery(ctx context.Context, user, id string, step RecoveryStep) (*Outlook, error)
	// ForeseeAmendment says what an instance would do with a changed definition. It changes nothing.
	ForeseeAmendment(ctx context.Context, r AmendRequest) (*Amendment, error)
	// AmendInstance has a user who decides about an instance change the definition by which it runs. It returns when
	// that is durable where it was written down.
	AmendInstance(ctx context.Context, r AmendRequest) (*Amended, error)
	// PutFile keeps a file at this node, to be given to an instance within a day: its
	// Value is what stands among the data.
	PutFile(ctx context.Context, name string, content io.Reader) (*File, error)
	// Data are the data of an instance, and File the content of one that is a file. It is
	// fetched from partners if it is not here, until ctx ends; whoever reads it closes it.
	Data(ctx context.Context, id string) ([]DataItem, error)
	File(ctx context.Context, id string, item workflow.DataName) (*File, io.ReadCloser, error)
	// Diagram draws an instance: "svg", "mermaid" or "dot"; "svg-tall" is for a narrow screen. With "-en" or "-pt-BR"
	// after these, all words are those of people, in English or Portuguese: "ready", not READY.
	Diagram(ctx context.Context, id, format string) ([]byte, error)
	Cancel(ctx context.Context, id, reason string) error
	// WriteOff has nobody wait for a partner before superseded work is undone; with check it only says whether it may.
	WriteOff(ctx context.Context, id, partner string, check bool) error
	// BeginTask notes that a person began a task that this node holds.
	BeginTask(ctx context.Context, r BeginRequest) error
	// FinishTask completes or fails a person's task that this node holds.
	FinishTask(ctx context.Context, r FinishRequest) error

	// Watch calls fn for every event from now on until ctx ends or fn returns
	// an error. Events tell that something changed, not what it is now: read
	// that with the other methods. The first is an EventGap: what is read after
	// it misses nothing that comes to pass later.
	Watch(ctx context.Context, fn func(Event) error) error
}

// Status says who this node is and how it fares.
type Status struct {
	Name        string             `json:"name"`
	ID          workflow.PartnerID `json:"id"`
	Mesh        string             `json:"mesh"`
	Version     string             `json:"version"`
	Roles       []string           `json:"roles"`
	Addresses   []string           `json:"addresses"`
	Since       time.Time          `json:"since"`
	Incarnation string             `json:"incarnation"`
	Boot        uint64             `json:"boot"`
	Instances   int                `json:"instances"` // held in memory
	// Leaving: it takes nothing new on, and goes when what it holds is done.
	Leaving bool `json:"leaving"`
	// ForGood: when it goes it does not come back.
	ForGood bool `json:"for_good,omitempty"`
	// Disconnected is since when it is out of contact on purpose; null: it is not. Back is when it said that it is
	// back; left out if it did not say.
	Disconnected *time.Time `json:"disconnected"`
	Back         *time.Time `json:"back,omitempty"`
	// LocksNothing is why no item can be locked at this device now, in words; left out: items can be.
	LocksNothing string `json:"locks_nothing,omitempty"`
	// Trouble is what is wrong now, in words, e.g. a full disk; empty: nothing.
	Trouble  []string          `json:"trouble"`
	Counters map[string]uint64 `json:"counters"`
	Traffic  Traffic           `json:"traffic"`
	// LAN says how the web page is open to the network for a while; left out: it is not.
	LAN *LANPage `json:"lan,omitempty"`
	// Device is the machine that it runs on, as far as that tells.
	Device Device `json:"device"`
}

// Device is the machine that a node runs on.
type Device struct {
	OS   string `json:"os"`   // as Go names it
	Arch string `json:"arch"` // likewise
	// Battery is left out where there is none, or the system does not tell; Disk, that of the node's folder,
	// likewise.
	Battery *Battery `json:"battery,omitempty"`
	Disk    *Disk    `json:"disk,omitempty"`
}

// Battery is how full a machine's battery is.
type Battery struct {
	Percent int `json:"percent"`
	// Charging: it is charged, or the machine runs on the mains.
	Charging bool `json:"charging"`
}

func (b *Battery) String() string {
	if b.Charging {
		return fmt.Sprintf("battery at %d %%, on the mains", b.Percent)
	}
	return fmt.Sprintf("battery at %d %%", b.Percent)
}

// Disk is how many bytes of a disk are free to the node, of how many.
type Disk struct {
	Free  uint64 `json:"free"`
	Total uint64 `json:"total"`
}

func (d *Disk) String() string {
	return fmt.Sprintf("%d MiB of %d MiB are free", d.Free>>20, d.Total>>20)
}

// Traffic is what a node and its partners sent each other since it was started: frames,
// and the bytes in them, without what the transports below add.
type Traffic struct {
	FramesIn  uint64 `json:"frames_in"`
	FramesOut uint64 `json:"frames_out"`
	BytesIn   uint64 `json:"bytes_in"`
	BytesOut  uint64 `json:"bytes_out"`
}

// LANPage is the web page while it is open to the network.
type LANPage struct {
	Addresses []string `json:"addresses"` // HOST:PORT of each
	Browsers  int      `json:"browsers"`  // that are signed in there
}

// String says that in words, and how to close it.
func (p *LANPage) String() string {
	browsers := fmt.Sprintf("%d browsers", p.Browsers)
	switch p.Browsers {
	case 0:
		browsers = "no browser"
	case 1:
		browsers = "a browser"
	}
	return fmt.Sprintf("open to the network at %s, with %s signed in; to close it: mutirao web --lan --off",
		strings.Join(p.Addresses, ", "), browsers)
}

// Partner is one row of the partner list.
type Partner struct {
	Name  string             `json:"name"` // with the beginning of the ID where another on the list has it too
	ID    workflow.PartnerID `json:"id"`
	Roles []string           `json:"roles"`
	State string             `json:"state"` // active, unreachable, expired, left, evicted
	// Since is when it came into the state, by this node's clock; Reason says why,
	// e.g. "going down"; empty while it is active and takes work on. Remark is what was
	// said when it was evicted.
	Since  *time.Time `json:"since,omitempty"`
	Reason string     `json:"reason"`
	// Until is about when it is back, as it announced, by this node's clock; left out if it announced nothing.
	Until          *time.Time `json:"until,omitempty"`
	Remark         string     `json:"remark,omitempty"`
	Addresses      []string   `json:"addresses"`
	LastValidated  time.Time  `json:"last_validated"`
	ConnectionTime string     `json:"connection_time"`
	Load           float64    `json:"load"`
	// FilesRate is how many bytes a second came of files from it lately; left out if none came since the start.
	FilesRate int64 `json:"files_rate,omitempty"`
	Self      bool  `json:"self"`
	// Refused is what this node refused of the partner since it started, the most
	// frequent first.
	Refused []Refusal `json:"refused"`
}

// Refusal is what a node refused of a member, for one reason.
type Refusal struct {
	Reason string    `json:"reason"` // e.g. facts-forged
	What   string    `json:"what"`   // the same in words
	Times  uint64    `json:"times"`
	Last   time.Time `json:"last"`
}

// InviteRequest asks for an invitation.
type InviteRequest struct {
	Roles   []string `json:"roles"`
	Expires Span     `json:"expires"` // for how long it can be used, such as "3d"; empty: 24 h
	Uses    int      `json:"uses"`    // 0: 1
	// Delegate lets the newcomer invite and evict, too. Only the founder may.
	Delegate bool `json:"delegate,omitempty"`
}

// Invitation is what a newcomer joins with.
type Invitation struct {
	Token   string    `json:"invitation"`
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses"`
}

// Workflow is a definition that the node holds.
type Workflow struct {
	Name workflow.Name `json:"name"`
	// Kind is model or application for one by itself, which definitions take, and whose name is model/NAME or
	// application/NAME; empty: a workflow.
	Kind       string    `json:"kind,omitempty"`
	Version    int       `json:"version"`
	Hash       string    `json:"hash"`
	Label      string    `json:"label,omitempty"` // what people call it; empty: its name
	Doc        string    `json:"doc,omitempty"`
	Tasks      int       `json:"tasks"`
	Partitions []string  `json:"partitions"`
	Added      time.Time `json:"added"`
	Author     string    `json:"author,omitempty"` // who lists it
	Current    bool      `json:"current"`          // it is what its name alone starts
	// Refused are the reasons for which start would refuse it at this node now, or its
	// tasks would fail here; only where it was just added.
	Refused []string `json:"refused,omitempty"`
	// Notes are what else is foreseen of it here, such as contingencies whose role nobody has, and what is not listed
	// any more because it took the name over; only where it was just added.
	Notes []string `json:"notes,omitempty"`
	// Already: it was listed before, and nothing has changed; only where it was just added.
	Already bool `json:"already,omitempty"`
	// Newest is the edition that its name alone starts, or has definitions take; only where it was just added or
	// taken off the list. Empty in what was taken off: none of that name is left.
	Newest string `json:"newest,omitempty"`
	// Before are what else was in the file, of models and applications; only where it was just added.
	Before []Workflow `json:"before,omitempty"`
	// Definition is the canonical form; lists leave it out.
	Definition json.RawMessage `json:"definition,omitempty"`
}

// StartRequest starts an instance (docs/commands.md, mutirao start).
type StartRequest struct {
	Workflow     string            `json:"workflow"`
	Input        Texts             `json:"input,omitempty"` // read by the data's types
	Null         []string          `json:"null,omitempty"`  // data that begin with no value, whatever their default
	Assign       map[string]string `json:"assign,omitempty"`
	Coordination string            `json:"coordination,omitempty"`
	Mechanism    string            `json:"mechanism,omitempty"`
	Responsible  string            `json:"responsible,omitempty"`
	// User is who starts it, of those at this node, and who answers for it where neither Responsible
	// nor the definition names anybody; empty: the one user who is signed in here, else the partner.
	User     string `json:"user,omitempty"`
	Notify   string `json:"notify,omitempty"`
	Warnings string `json:"warnings,omitempty"`
	Transfer string `json:"transfer,omitempty"`
	// WaitForRole starts it although nobody has the role of some task.
	WaitForRole bool `json:"wait_for_role,omitempty"`
	// Key names the request, by a text that nobody else thinks of: whoever asks for the same with the same key again, since
	// the answer was lost, say, or the node was started again meanwhile, is told of the instance that was started, and
	// none is started beside it. Empty: each request starts one.
	Key string `json:"key,omitempty"`
}

// Texts are texts by names. JSON may not give null for one, which would be read as a text without letters.
type Texts map[string]string

func (t *Texts) UnmarshalJSON(b []byte) error {
	var given map[string]*string
	if err := json.Unmarshal(b, &given); err != nil {
		return err
	}
	*t = make(Texts, len(given))
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if given[k] == nil {
			return fmt.Errorf("%q is null: what is to have no value is named in the list null", k)
		}
		(*t)[k] = *given[k]
	}
	return nil
}

// DataState is a step in the history of an instance that is driven by its data: a data state with
// what brought it or, where it is aborted, a transition that brought none. An offer and a restart bring none either:
// what they fire comes after them. What is superseded stands among the others where its time is: it brought a state of a
// history that does not count.
type DataState struct {
	// State is its number, from 0; null: none was brought.
	State *int `json:"state"`
	// EquivalentTo is the first state before that satisfies the same conditions.
	EquivalentTo *int               `json:"equivalent_to"`
	Transition   *workflow.TaskName `json:"transition"`
	// Kind is initial, transition, compensation, jump-back, jump-forward, offer, restart or amendment.
	Kind string `json:"kind"`
	// User is who ordered it, of a jump, an offer or a restart; left out: nobody did.
	User string `json:"user,omitempty"`
	// FiredBy is the state that fired a transition; null: what it is no state fires (the first state, a compensation, a
	// step of recovery, an amendment), or, of a superseded transition, a state that does not count either fired it.
	FiredBy *int   `json:"fired_by"`
	Input   *int   `json:"input"` // the state to which its result was applied
	Partner string `json:"partner"`
	// Started is when somebody took it, or a program began with it; null: nobody had, or it is the first state.
	Started *time.Time `json:"started"`
	Ended   time.Time  `json:"ended"`
	Mark    string     `json:"mark"` // compensated, aborted, jumped, superseded, or nothing
	// Compensation is how far the undoing of what is superseded has got: waiting, running, done or failed; left out where
	// nothing undoes it.
	Compensation string `json:"compensation,omitempty"`
	// Attributes are all, of what is superseded, and of what undid that, only those that it set.
	Attributes map[string]any `json:"attributes"`
	// Changed are the attributes that have another value than before, Conflicts those that it set
	// though they were changed after the state that fired it.
	Changed   []workflow.DataName `json:"changed"`
	Conflicts []workflow.DataName `json:"conflicts"`
	Status    string              `json:"status"` // regular, final or exception
	// Reason is why it interrupted the instance, of a transition that failed and of a state that is an exception; of a
	// compensation that was aborted, why it brought no state.
	Reason string `json:"reason,omitempty"`
	// Pending are the transitions that had been fired and had not ended while this was the current state.
	Pending []workflow.TaskName `json:"pending"`
}

// MarkSuperseded is the Mark of what does not count, as another history does.
const MarkSuperseded = "superseded"

// Recovery says why an instance is interrupted, and what the rules allow now.
type Recovery struct {
	Cause string `json:"cause"` // what interrupted it
	// Since is what the latest step of recovery came to that did not end the interruption, or what an amendment did to
	// the state; left out: nothing of note.
	Since      string            `json:"since,omitempty"`
	Task       workflow.TaskName `json:"task,omitempty"`  // that failed, or brought the state
	Label      string            `json:"label,omitempty"` // what people call the task; empty: its name
	At         time.Time         `json:"at"`
	State      int               `json:"state"` // the current one
	Consistent bool              `json:"consistent"`
	Methods    []string          `json:"methods"`
	UnderWay   bool              `json:"under_way"` // compensations that were ordered have not ended
	// Data are the data items that a jump may set, as the instance declares them by now; left out: a version before this
	// one said it.
	Data []Declared `json:"data,omitempty"`
	// AsOf is when this was last known from the partner that keeps the data states, as of a task (Task.AsOf); left out:
	// this node keeps them, or that partner was not heard yet. Known says the same in words where that is old.
	AsOf  *time.Time `json:"as_of,omitempty"`
	Known string     `json:"known,omitempty"`
}

// Declared is a data item as a definition declares it, but for what people call it (Instance.DataLabels).
type Declared struct {
	Name workflow.DataName `json:"name"`
	Type workflow.DataType `json:"type"`
	Doc  string            `json:"doc,omitempty"`
	Enum []any             `json:"enum,omitempty"` // the only values allowed
	Min  *float64          `json:"min,omitempty"`
	Max  *float64          `json:"max,omitempty"`
}

// Outlook is what a step of recovery would lead to, as far as that is known before it is taken.
type Outlook struct {
	// Interruption names the one that is recovered from: another one has another name, even if all else is the same.
	Interruption string `json:"interruption"`

	From   int       `json:"from"`   // the current state
	Undoes []Undoing `json:"undoes"` // compensations that come first, in order
	// Beside is, of offer, what ran beside what brought the current state and came to nothing: that is why it undoes
	// something first. What nobody had taken did not run.
	Beside []Beside `json:"beside,omitempty"`
	// Jumped are, of jump-back, the transitions that it jumps over: they count no more, and are not undone.
	Jumped []JumpedOver `json:"jumped,omitempty"`
	// State is the number of the state in the end, Attributes are its data, and Changed those of them
	// that have another value than now.
	State      int                 `json:"state"`
	Attributes map[string]any      `json:"attributes"`
	Changed    []workflow.DataName `json:"changed"`
	// Like is the first state of the history that it is equivalent to; null: none.
	Like *int `json:"like"`
	// Then is fires (the Fires; none: at an age to come), final (it ends the instance) or interrupted (still, or once more, for that
	// Cause, with what has come of it Since; Methods are what the rules allow then).
	Then    string              `json:"then"`
	Fires   []workflow.TaskName `json:"fires"`
	Cause   string              `json:"cause"`
	Since   string              `json:"since,omitempty"`
	Task    workflow.TaskName   `json:"task,omitempty"`  // of the Cause: that failed, or brought the state
	Label   string              `json:"label,omitempty"` // what people call the task; empty: its name
	Methods []string            `json:"methods"`
}

// What may follow a step of recovery.
const (
	ThenFires       = "fires"
	ThenFinal       = "final"
	ThenInterrupted = "interrupted"
)

// Undoing is a compensation that a step of recovery asks for.
type Undoing struct {
	Task  workflow.TaskName `json:"task"`  // that is undone
	State int               `json:"state"` // that it had brought
	// Sure: what it sets follows from the definition. Else its application decides, and it is taken to restore
	// the data that were there before.
	Sure bool `json:"sure"`
}

// JumpedOver is a transition that a jump back jumps over.
type JumpedOver struct {
	Task  workflow.TaskName `json:"task"`
	Label string            `json:"label,omitempty"` // what people call it; empty: its name
	State int               `json:"state"`           // that it had brought
}

// Beside is a transition that ran beside another one, from when somebody took it or a program began with it, and came to
// nothing.
type Beside struct {
	Task  workflow.TaskName `json:"task"`
	Label string            `json:"label,omitempty"` // what people call it; empty: its name
	Mark  string            `json:"mark"`            // aborted, compensated or jumped
}

// Started says what Start did.
type Started struct {
	ID string `json:"id"`
	// HeldOnlyHere is true when no second participant has acknowledged the
	// instance yet: it would be lost with this node.
	HeldOnlyHere bool `json:"held_only_here"`
	// Notes say what the user should know, e.g. who could not be reached.
	Notes []string `json:"notes,omitempty"`
	// Already: it was started before, when the same was asked for with the same key.
	Already bool `json:"already,omitempty"`
}

// InstanceSummary is one row of the list of instances.
type InstanceSummary struct {
	ID       string        `json:"id"`
	Workflow workflow.Name `json:"workflow"`
	// Label is what people call the workflow; left out: by its name, or nobody looked.
	Label   string                 `json:"label,omitempty"`
	Version int                    `json:"version"`
	State   workflow.InstanceState `json:"state"`
	// Subject is what it is about, in the words with which it was started; left out where nobody looked.
	Subject string     `json:"subject,omitempty"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended"`
	// Done of Tasks have succeeded, by themselves or by a contingency, or are not needed; both 0:
	// nobody looked.
	Done  int `json:"done"`
	Tasks int `json:"tasks"`
	// At are the partners with whom a task is ready or runs.
	At []string `json:"at"`
	// Needs say why the instance needs a person; empty: it does not, as far as is
	// known here.
	Needs []Need `json:"needs"`
	// AsOf is when the partner was heard of this instance whose word is the oldest of
	// those who hold what is not done, or of those of them that are out of touch, if some are;
	// null: this node holds all of it, or it was not heard yet. Known says the same in words where that is long ago, and Of is then that
	// partner, which need not be among At.
	AsOf  *time.Time `json:"as_of"`
	Known string     `json:"known,omitempty"`
	Of    string     `json:"known_of,omitempty"`
	// Away are those of At, and of Of, that are away as they announced.
	Away []Absence `json:"away,omitempty"`
	// KnownBy are the partners that told this node of an instance that it takes no part in itself, as the coordinator, or
	// as somebody here decides about it or has, or had, an item of it; the best informed first.
	KnownBy []Witness `json:"known_by"`
	// Quarantine says why an instance is set aside that cannot be read here, or at which
	// this program failed; then the rest is what was last known of it, if anything.
	Quarantine *Quarantine `json:"quarantine"`
	// Closed is when the facts of an ended instance were deleted; nil: they are here.
	Closed *time.Time `json:"closed"`
}

// InstanceQuery says which part of the list of instances is wanted.
type InstanceQuery struct {
	All   bool   // those that have ended, too
	Limit int    // how many at most, up to MaxPage; 0: UsualPage
	After string // Next of the page before; empty: the first page
}

// How many instances a page has.
const (
	UsualPage = 500
	MaxPage   = 1_000
)

// InstancePage is a part of the list of instances: newest first, and last those of which
// only a summary is left.
type InstancePage struct {
	Instances []InstanceSummary
	Next      string // After of the next page; empty: this is the last
}

// AllInstances puts all pages together, newest first.
func AllInstances(
	ctx context.Context, all bool, page func(context.Context, InstanceQuery) (*InstancePage, error),
) ([]InstanceSummary, error) {
	var pages [][]InstanceSummary
	length := 0
	for q := (InstanceQuery{All: all, Limit: MaxPage}); ; {
		p, err := page(ctx, q)
		if err != nil {
			return nil, err
		}
		pages, length = append(pages, p.Instances), length+len(p.Instances)
		if q.After = p.Next; q.After == "" {
			out := make([]InstanceSummary, 0, length)
			for _, list := range pages {
				out = append(out, list...)
			}
			NewestFirst(out)
			return out, nil
		}
	}
}

// NewestFirst sorts a list of instances: those of one moment by their IDs.
func NewestFirst(list []InstanceSummary) {
	slices.SortFunc(list, func(a, b InstanceSummary) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(a.ID, b.ID))
	})
}

// UnderWay reports whether something is to happen in an instance in a state, with such needs: it
// runs, or it has failed or is blocked and somebody is to say what becomes of that, or work goes on in it, or may, of
// which others presumed that it failed.
func UnderWay(state workflow.InstanceState, needs []Need) bool {
	if slices.ContainsFunc(needs, func(n Need) bool { return n.Kind == NeedGoesOn }) {
		return true
	}
	switch state {
	case workflow.InstanceRunning, workflow.InstanceBlocked, workflow.InstanceInterrupted:
		return true
	case workflow.InstanceFailed:
		return slices.ContainsFunc(needs, func(n Need) bool { return n.Kind == NeedFailed })
	}
	return false
}

// NeedFailed is the kind of Need of tasks that failed with nothing in their place, about which nobody has
// ordered anything yet.
const NeedFailed = "failed"

// NeedGoesOn is the kind of Need of tasks that are ready or run at their holder, while others presumed that they
// failed.
const NeedGoesOn = "goes-on"

// NeedOverdue is the kind of Need of people's tasks whose deadline is over.
const NeedOverdue = "overdue"

// Need says why an instance needs a person.
type Need struct {
	// Kind: interrupted (it must be recovered before it goes on), failed (tasks failed, and nothing stands in for them;
	// where a task asks for the failure with failed("t"), until that one has started), blocked (they wait for what
	// cannot come), goes-on (they are ready or run at their holder, and others presumed that they failed), nobody (can
	// perform or take them), overdue (their deadline is over, and nobody has extended it, said that they go on, or
	// passed them on since), incident.
	Kind   string              `json:"kind"`
	Number int                 `json:"number"` // of tasks or incidents
	Tasks  []workflow.TaskName `json:"tasks"`  // the first of them
	// TaskLabels are what people call these, by name; what is left out is called by its name.
	TaskLabels map[string]string `json:"task_labels,omitempty"`
	// Presumed is how many of the failed ones others only presume to have failed, and whose holder is not gone: nobody
	// can order anything about them.
	Presumed int `json:"presumed,omitempty"`
	// Since is from when on they are overdue, the first of them; left out of other kinds, and where that is only heard of.
	Since *time.Time `json:"since,omitempty"`
}

// Called is what people call one of its tasks.
func (n Need) Called(t workflow.TaskName) string { return cmp.Or(n.TaskLabels[string(t)], string(t)) }

// Waits reports whether it is a failure about which somebody can order something.
func (n Need) Waits() bool { return n.Kind == NeedFailed && n.Number > n.Presumed }

// Refreshed says which partners Refresh asked.
type Refreshed struct {
	Answered []string `json:"answered"`
	Silent   []string `json:"silent"` // connected, and did not answer in time
}

// Due is a clock that runs.
type Due struct {
	// Kind says what happens when time is up: timeout (it fails), trigger (the
	// emergency task starts without what it waits for), verdict (this node judges what
	// it got no result of), transfer (a person's task passes to the responsible user), deadline (people are told, and
	// nothing else).
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	Left string    `json:"left"`
	// About: the clock is its holder's, and began about when this node heard of it.
	About bool `json:"about"`
}

// Closing is the signed summary that is kept of an ended instance in the place of its
// facts.
type Closing struct {
	At           time.Time `json:"at"` // when the facts were deleted
	By           string    `json:"by"` // who signed
	Initiator    string    `json:"initiator"`
	Definition   string    `json:"definition"` // hash
	Facts        uint64    `json:"facts"`      // how many there were
	Digest       string    `json:"digest"`     // of their heads
	Participants []string  `json:"participants"`
	Others       int       `json:"others"` // participants beyond those named
	Signature    string    `json:"signature"`
}

// Quarantine says since when and why an instance is set aside. It ends by itself once
// partners have sent what is missing; where this program failed, at a start that goes well.
type Quarantine struct {
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// Witness is a partner that told this node something.
type Witness struct {
	Name  string    `json:"name"`
	State string    `json:"state"` // as in the partner list
	At    time.Time `json:"at"`    // when it told that
}

// Told says by whose account an instance is shown that the node takes no part in.
type Told struct {
	By Witness `json:"by"`
	// Summary: nobody who takes part can be asked now; the rest of this and the
	// instance's state is what was reported before, and its tasks and data are
	// not known. Why says why not.
	Summary bool   `json:"summary"`
	Why     string `json:"why,omitempty"`
	Done    int    `json:"done,omitempty"`
	Tasks   int    `json:"tasks,omitempty"`
	// Current are the partners with whom a task was ready or ran.
	Current      []string `json:"current,omitempty"`
	Participants []string `json:"participants,omitempty"`
}

// Instance is one instance as this node knows it (docs/commands.md, mutirao show).
type Instance struct {
	ID           string                 `json:"id"`
	Workflow     workflow.Name          `json:"workflow"`
	Label        string                 `json:"label,omitempty"` // what people call the workflow; empty: its name
	Version      int                    `json:"version"`
	State        workflow.InstanceState `json:"state"`
	Subject      string                 `json:"subject,omitempty"` // what it is about, in the words with which it was started
	Duplicated   bool                   `json:"duplicated"`
	Incidents    []Incident             `json:"incidents"`
	Conflicts    []Conflict             `json:"conflicts"`
	Coordination workflow.Coordination  `json:"coordination"`
	// Mechanism is by what its work is distributed; empty: the plain rule.
	Mechanism   string            `json:"mechanism"`
	Responsible workflow.UserName `json:"responsible"`
	// ResponsibleGone: that user was removed, or is signed in nowhere any more, or that partner was evicted or has left
	// for good. Each partner that takes part may cancel it then.
	ResponsibleGone bool `json:"responsible_gone,omitempty"`
	// Administrators is the role that decides as well; empty: there is none.
	Administrators workflow.RoleName `json:"administrators,omitempty"`
	// Notify is by which policy people's tasks are offered now: all, or one of the others with its number of users.
	Notify  string    `json:"notify"`
	Started time.Time `json:"started"`
	// Ended is when what ended it was done, by the clock of who did that: the same at all nodes; null: it goes on.
	Ended      *time.Time     `json:"ended"`
	Partitions []Partition    `json:"partitions"`
	Tasks      []Task         `json:"tasks"`
	Data       map[string]any `json:"data"`
	// OnlyHere are those that are files which were given at this node, and that no other partner that may read them is
	// known to have; left out: none, or another shows the instance (Told).
	OnlyHere []workflow.DataName `json:"only_here,omitempty"`
	// DataLabels and TaskLabels are what people call data and tasks, by name; what is left out is called by its name.
	DataLabels map[string]string `json:"data_labels,omitempty"`
	TaskLabels map[string]string `json:"task_labels,omitempty"`
	// Parent is the instance of which it does a task; null: none, it is for itself.
	Parent *Parent `json:"parent,omitempty"`
	// DataDriven: it has data states, which History lists.
	DataDriven bool `json:"data_driven,omitempty"`
	// Recovery is what may be done about an interruption; left out: it is not interrupted.
	Recovery *Recovery `json:"recovery,omitempty"`
	// Asks are the failures that wait for an order of the responsible user, or an administrator.
	Asks []Ask `json:"asks,omitempty"`
	// Overdue are the tasks of people whose deadline is over, while nobody has said what becomes of that.
	Overdue []Overdue `json:"overdue,omitempty"`
	// Undoable are the tasks of an instance that has ended whose work can be undone by an order of those people.
	Undoable []workflow.TaskName `json:"undoable,omitempty"`
	// Amended are the changes of the definition by which it runs, in the order in which they count; Version and Label
	// are those of the changed one.
	Amended []AmendmentMade `json:"amended,omitempty"`
	// Quality is what those who did its work reached, of what could be had; left out
	// while a mechanism has chosen nobody who has finished.
	Quality *Quality `json:"quality,omitempty"`
	// Closed is set for an ended instance of which only this summary is kept: its
	// partitions, tasks and data are not known any more.
	Closed *Closing `json:"closed,omitempty"`
	// Told is set at the coordinator, for an instance of others.
	Told *Told `json:"told,omitempty"`
}

// CalledTask is what people call a task of the instance.
func (in *Instance) CalledTask(t workflow.TaskName) string {
	return cmp.Or(in.TaskLabels[string(t)], string(t))
}

// CalledData is what people call a data item of the instance.
func (in *Instance) CalledData(d workflow.DataName) string {
	return cmp.Or(in.DataLabels[string(d)], string(d))
}

// Parent says what an instance is for: a try of a task of type workflow. That is the word of the node that
// began it, which holds the task.
type Parent struct {
	Instance string            `json:"instance"`
	Task     workflow.TaskName `json:"task"`
	Attempt  string            `json:"attempt"`
	Try      int               `json:"try"`
	// Ended: the try has ended, so what this instance comes to counts nowhere any more. What can be ordered is ordered
	// of that task.
	Ended bool `json:"ended,omitempty"`
}

// MayGoOn reports whether an instance has failed, or is blocked, only as others presume: each failure is of a task whose
// holder has not said so itself and, as far as this node knows, is not gone. It goes on with it when it can, and with
// its success nothing has failed. So that is no end yet.
func (in *Instance) MayGoOn() bool {
	if in.State != workflow.InstanceFailed && in.State != workflow.InstanceBlocked {
		return false
	}
	for _, a := range in.Asks {
		if !a.MayGoOn() {
			return false
		}
	}
	return len(in.Asks) > 0 || slices.ContainsFunc(in.Tasks, func(t Task) bool { return t.PresumedBy != "" })
}

// Cancellable reports whether an instance can be cancelled, as far as this node knows: it goes on, waits for what
// cannot come, or has failed only as others presume of a task that goes on when its holder can.
func (in *Instance) Cancellable() bool {
	switch in.State {
	case workflow.InstanceRunning, workflow.InstanceBlocked:
		return true
	case workflow.InstanceFailed:
		return slices.ContainsFunc(in.Asks, func(a Ask) bool { return slices.Contains(a.Orders, TaskCancel) }) ||
			slices.ContainsFunc(in.Tasks, func(t Task) bool { return t.PresumedBy != "" })
	}
	return false
}

// Ask is a failure of which somebody has to decide what becomes of it.
type Ask struct {
	Task    workflow.TaskName `json:"task"`
	Label   string            `json:"label,omitempty"` // what people call the task; empty: its name
	Partner string            `json:"partner"`         // who holds it
	// Item is the attempt that failed, as TaskOrder names it; empty: whoever shows it does not say.
	Item string `json:"item,omitempty"`
	// Presumed: its holder has not said that it failed, and goes on with it when it can.
	Presumed bool `json:"presumed,omitempty"`
	// Left: somebody decided to leave it so, and what waits for it is blocked.
	Left bool `json:"left,omitempty"`
	// Lost: its holder was evicted or left for good, so others do what is ordered about it.
	Lost bool `json:"lost,omitempty"`
	// Orders are what can be ordered (again, skip, continue, cancel), Commands how.
	Orders   []string `json:"orders"`
	Commands []string `json:"commands"`
}

// MayGoOn reports whether the task has failed only as others presume, and its holder is, as far as this node knows, not
// gone: it goes on with it when it can.
func (a Ask) MayGoOn() bool {
	return a.Presumed && !slices.Contains(a.Orders, TaskAgain) // of whose holder is gone it can be ordered
}

// Overdue is a task of people whose deadline is over, while nobody has extended it, said that it goes on, or passed it on
// since. It goes on also while nobody does.
type Overdue struct {
	Task    workflow.TaskName `json:"task"`
	Label   string            `json:"label,omitempty"` // what people call the task; empty: its name
	Partner string            `json:"partner"`         // who holds it
	// Item is the attempt at it, as TaskOrder names it; empty: whoever shows it does not say.
	Item  string    `json:"item,omitempty"`
	Since time.Time `json:"since"` // from when on it is overdue
	// Commands are how those who decide say that it goes on, or fails, or have it go on until later.
	Commands []string `json:"commands"`
}

// Quality is the quality metric over the tasks that are done, and for which a
// mechanism chose the performer (docs/systems.md, The allocation metric): by what is
// recorded of those choices, so by what was known when they were made.
type Quality struct {
	Actual float64 `json:"actual"` // Q_actual: Σ suitability × conformance of the performers
	Ideal  float64 `json:"ideal"`  // Q_ideal: Σ of the best to be had
	Total  float64 `json:"total"`  // Q_total: Q_actual / Q_ideal
	Tasks  int     `json:"tasks"`
}

// Incident is something that people should look at.
type Incident struct {
	At   time.Time         `json:"at"`
	What string            `json:"what"`
	Task workflow.TaskName `json:"task,omitempty"`
	// Result names a result of a person that is kept and does not count; Commands are how it is adopted. Empty: it is
	// about something else, or cannot be adopted.
	Result   string   `json:"result,omitempty"`
	Commands []string `json:"commands,omitempty"`
}

// Conflict lists the values that concurrent writers gave to one data item.
type Conflict struct {
	Data   workflow.DataName `json:"data"`
	Values []any             `json:"values"`
}

// Partition is one partition of an instance.
type Partition struct {
	Name  workflow.PartitionName `json:"name"`
	Label string                 `json:"label,omitempty"` // what people call it; empty: its name
	// Partner holds what of it is not done or, where all is done, held it; if several do,
	// Also are the others, and First was given it at the start, where that is not simply
	// Partner.
	Partner string   `json:"partner"`
	Also    []string `json:"also,omitempty"`
	First   string   `json:"first,omitempty"`
	Attempt int      `json:"attempt"`
	State   string   `json:"state"`
	Timeout *string  `json:"timeout"` // null: none
	Due     []Due    `json:"due"`     // the clocks that run for it
	Why     *Why     `json:"why"`     // how it came to whom it was given at the start; null: unknown
}

// Holders are Partner and Also.
func (p *Partition) Holders() []string { return append([]string{p.Partner}, p.Also...) }

// Why says how an assignment came about.
type Why struct {
	Mechanism string `json:"mechanism"` // empty: by hand, by the definition, or by the plain rule
	Reason    string `json:"reason"`
	// Threshold is the abs_alloc that the chosen one had to reach; Load the part
	// of its availability that the work costs it until it is finished.
	Threshold float64 `json:"threshold"`
	Load      float64 `json:"load"`
	// Candidates are the best of those who were weighed, the chosen one first;
	// Others is how many more there were.
	Candidates []Candidate `json:"candidates"`
	Others     int         `json:"others"`
}

// Candidate is a partner that was weighed, with the factors of the allocation
// metric, each from 0 to 1 (docs/distribution.md, The factors).
type Candidate struct {
	Partner      string  `json:"partner"`
	Suitability  float64 `json:"suitability"`
	Urgency      float64 `json:"urgency"`
	Conformance  float64 `json:"conformance"`
	Availability float64 `json:"availability"`
	AbsAlloc     float64 `json:"abs_alloc"`
	Verdict      string  `json:"verdict"`
}

// Task is one task of an instance.
type Task struct {
	Name  workflow.TaskName `json:"name"`
	Label string            `json:"label,omitempty"` // what people call it; empty: its name
	// Role is for which it is now; empty: for none, or for people at its partner.
	Role              workflow.RoleName      `json:"role,omitempty"`
	Partition         workflow.PartitionName `json:"partition"`
	Partner           string                 `json:"partner"`
	Attempt           int                    `json:"attempt"`
	State             workflow.State         `json:"state"`
	ResponseImmediate bool                   `json:"response_immediate"`
	Started           *time.Time             `json:"started"` // null: not yet, or nobody said when
	Ended             *time.Time             `json:"ended"`
	Outputs           map[string]any         `json:"outputs"`
	ContingencyOf     *workflow.TaskName     `json:"contingency_of"`
	// Undoes is the task that it undid, or is to undo; left out: none.
	Undoes     workflow.TaskName  `json:"undoes,omitempty"`
	ReplacedBy *workflow.TaskName `json:"replaced_by"`
	// StandIn is how what replaced it stands, where that is a task in the flow as well, with an entry of its own.
	StandIn      *StandIn     `json:"stand_in,omitempty"`
	TriggerFired bool         `json:"trigger_fired"`
	Reason       string       `json:"reason"`
	Superseded   []Superseded `json:"superseded"`
	// AsOf is when its state was last known from its holder: when this node last heard
	// from that one itself. Null: this node holds it, nobody does, or its holder was
	// not heard yet. Known says the same in words where that is longer ago than the
	// last contact explains.
	AsOf  *time.Time `json:"as_of"`
	Known string     `json:"known,omitempty"`
	Due   []Due      `json:"due"` // the clocks that run for it
	// Why is how it came to its partner, where it was assigned by itself.
	Why *Why `json:"why,omitempty"`
	// Dropped says why the task is not needed; left out when it is.
	Dropped *Dropped `json:"dropped,omitempty"`
	// ClaimedBy is the user who has it as an item of a worklist; empty: nobody.
	ClaimedBy string `json:"claimed_by,omitempty"`
	// OfferedTo are those users of its role to whom it is offered, while nobody has it; none: to all of the role, or to
	// nobody yet, by the instance's policy.
	OfferedTo []string `json:"offered_to,omitempty"`
	// KeptFor is the user for whom it is kept, to whom it was handed and who has not taken it; empty: nobody.
	KeptFor string `json:"kept_for,omitempty"`
	// PresumedBy is the partner that presumed that it had failed, while it goes on at its holder, this node; empty:
	// nobody, or it does not.
	PresumedBy string `json:"presumed_by,omitempty"`
	// Worker is the worker that has its job, or had the last one; left out: none.
	Worker *JobWorker `json:"worker,omitempty"`
	// WaitsForWorker: this node holds it, and no worker has come for its job yet.
	WaitsForWorker bool `json:"waits_for_worker,omitempty"`
	// PerformedBy is the user whose result ended it as an item of a worklist; empty: nobody's did.
	PerformedBy string `json:"performed_by,omitempty"`
	// Signed is how that user signed the result; left out: nobody's did.
	Signed *PersonSignature `json:"signed,omitempty"`
	// WaitsFor are the resources that it is to hold and has not got yet, once it could begin but for them.
	WaitsFor []Lack `json:"waits_for,omitempty"`
	// Shared are the resources that other tasks use with it though there is not enough for all, as after a split.
	Shared []Lack `json:"shared,omitempty"`
	// Child is the instance that does it, of a task of type workflow; empty: none, as far as is known here.
	Child string `json:"child,omitempty"`
	// Said is what whoever gave it back or passed it on last said, as an item of a worklist; left out: nothing, or the
	// task is done, which it is not while others only presume that it failed.
	Said *Said `json:"said,omitempty"`
	// Away says that its partner is away as it announced: what it has not given out before, nobody can take until it is
	// back. Left out: it is not, or the task is done.
	Away *Absence `json:"away,omitempty"`
}

// Absence is that a partner is out of reach as it announced (worklist disconnect --for): what it holds waits for it.
type Absence struct {
	Partner string    `json:"partner"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"` // about when it is to be back
}

// StandIn is a contingency that is a task in the flow as well, as it stands in for another.
type StandIn struct {
	Partner string         `json:"partner"`
	State   workflow.State `json:"state"`
}

// Dropped is a task that was dropped when the instance started, because its
// only purpose, a data set, existed already.
type Dropped struct {
	DataSet string `json:"data_set"`
	Hash    string `json:"hash"`   // SHA-256 of its content
	Holder  string `json:"holder"` // from whom its values came
}

// Superseded is a finished execution that does not count any more.
type Superseded struct {
	Task        workflow.TaskName `json:"task"`
	Partner     string            `json:"partner"`
	Attempt     int               `json:"attempt"`
	Ended       time.Time         `json:"ended"`
	Compensated bool              `json:"compensated"`
	// Compensation: waiting, running, done, failed, or empty where none is defined.
	Compensation string `json:"compensation"`
}

// LogEntry is one fact of an instance, readable.
type LogEntry struct {
	At      time.Time         `json:"at"`   // its author's wall clock: for people, never for decisions
	Time    uint64            `json:"time"` // logical time
	Fact    string            `json:"fact"` // hash
	Author  string            `json:"author"`
	Seq     uint64            `json:"seq"`
	Kind    string            `json:"kind"` // what is said, such as start, success, done (both in one), verdict
	Task    workflow.TaskName `json:"task,omitempty"`
	Label   string            `json:"label,omitempty"` // what people call the task; empty: its name
	Text    string            `json:"text"`
	Counted bool              `json:"counted"`
	// Superseded: it is of a history of data states that does not count, as another one does.
	Superseded bool `json:"superseded,omitempty"`
	// Signed is how the person signed whose word it is; left out: it is its author's alone.
	Signed *PersonSignature `json:"signed,omitempty"`
}

// PersonSignature is by which key a person signed what that person said, beside the partner that wrote it down.
type PersonSignature struct {
	Key       string `json:"key"`       // its ID, which has the public key in it: a user's, or of a partner its own
	Signature string `json:"signature"` // in hexadecimal
}

// Starts reports whether an entry says that a task began.
func (e LogEntry) Starts() bool { return e.Kind == "start" || e.Kind == "done" }

// Succeeds reports whether an entry says that a task succeeded.
func (e LogEntry) Succeeds() bool { return e.Kind == "success" || e.Kind == "done" }

// BeginRequest notes that a person began a task.
type BeginRequest struct {
	ID   string            `json:"id"`
	Task workflow.TaskName `json:"task"`
}

// FinishRequest completes or fails a person's task.
type FinishRequest struct {
	ID      string            `json:"id"`
	Task    workflow.TaskName `json:"task"`
	Failed  bool              `json:"failed"`
	Reason  string            `json:"reason,omitempty"`
	Outputs map[string]string `json:"outputs,omitempty"` // read by the data's types
}

// EventGap is the kind of an event that stands for events that were not
// delivered: those before a watch began, and those for which the watcher was too
// slow. Whatever it follows, it has to read again.
const EventGap = "gap"

// Event says that something changed.
type Event struct {
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"` // instance, partner, coordinator, workflow, users, message, worklist, contact, trouble, gap
	Instance string    `json:"instance,omitempty"`
	Partner  string    `json:"partner,omitempty"`
	Text     string    `json:"text"`
}
