// Package api is the node's local interface: HTTP and JSON under /v1/ on
// loopback or a Unix socket. Server and client stand behind one interface,
// Service, so that a caller cannot tell a node in its own process from one
// behind the socket.
//
// Promises: whatever the command line can do, any program can do here; every
// route is in the OpenAPI document that the node serves, and a test holds the
// two together. Internal causes are logged, never shown.
//
// The command line, the web page and tests import it; the core never does.
package api

import (
	"context"
	"encoding/json"
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

	AddWorkflow(ctx context.Context, file string, source []byte) (*Workflow, error)
	Workflows(ctx context.Context) ([]Workflow, error)
	// Workflow returns the newest version of that name, or the one with that
	// version number or hash prefix: NAME, NAME@3, NAME@9f2c….
	Workflow(ctx context.Context, ref string) (*Workflow, error)
	RemoveWorkflow(ctx context.Context, ref string) error

	Start(ctx context.Context, r StartRequest) (*Started, error)
	// Instances lists running instances, or all that the node holds.
	Instances(ctx context.Context, all bool) ([]InstanceSummary, error)
	Show(ctx context.Context, id string) (*Instance, error)
	Log(ctx context.Context, id string) ([]LogEntry, error)
	// Diagram draws an instance: "svg", "mermaid" or "dot".
	Diagram(ctx context.Context, id, format string) ([]byte, error)
	Cancel(ctx context.Context, id, reason string) error
	// FinishTask completes or fails a person's task that this node holds.
	FinishTask(ctx context.Context, r FinishRequest) error

	// Watch calls fn for every event from now on until ctx ends or fn returns
	// an error. Events tell that something changed, not what it is now: read
	// that with the other methods.
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
	// Trouble is what is wrong now, in words, e.g. a full disk; empty: nothing.
	Trouble  []string          `json:"trouble"`
	Counters map[string]uint64 `json:"counters"`
}

// Partner is one row of the partner list.
type Partner struct {
	Name           string             `json:"name"`
	ID             workflow.PartnerID `json:"id"`
	Roles          []string           `json:"roles"`
	State          string             `json:"state"` // active, unreachable, expired, left, evicted
	Addresses      []string           `json:"addresses"`
	LastValidated  time.Time          `json:"last_validated"`
	ConnectionTime string             `json:"connection_time"`
	Load           float64            `json:"load"`
	Self           bool               `json:"self"`
}

// InviteRequest asks for an invitation.
type InviteRequest struct {
	Roles   []string      `json:"roles"`
	Expires time.Duration `json:"expires"` // nanoseconds in JSON; 0: 24 h
	Uses    int           `json:"uses"`    // 0: 1
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
	Name       workflow.Name `json:"name"`
	Version    int           `json:"version"`
	Hash       string        `json:"hash"`
	Doc        string        `json:"doc,omitempty"`
	Tasks      int           `json:"tasks"`
	Partitions []string      `json:"partitions"`
	Added      time.Time     `json:"added"`
	// Definition is the canonical form; lists leave it out.
	Definition json.RawMessage `json:"definition,omitempty"`
}

// StartRequest starts an instance (interface.md, start).
type StartRequest struct {
	Workflow     string            `json:"workflow"`
	Input        map[string]string `json:"input,omitempty"` // read by the data's types
	Assign       map[string]string `json:"assign,omitempty"`
	Coordination string            `json:"coordination,omitempty"`
	Mechanism    string            `json:"mechanism,omitempty"`
	Responsible  string            `json:"responsible,omitempty"`
	Notify       string            `json:"notify,omitempty"`
	Warnings     string            `json:"warnings,omitempty"`
	Transfer     string            `json:"transfer,omitempty"`
}

// Started says what Start did.
type Started struct {
	ID string `json:"id"`
	// HeldOnlyHere is true when no second participant has acknowledged the
	// instance yet: it would be lost with this node.
	HeldOnlyHere bool `json:"held_only_here"`
	// Notes say what the user should know, e.g. who could not be reached.
	Notes []string `json:"notes,omitempty"`
}

// InstanceSummary is one row of the list of instances.
type InstanceSummary struct {
	ID       string                 `json:"id"`
	Workflow workflow.Name          `json:"workflow"`
	Version  int                    `json:"version"`
	State    workflow.InstanceState `json:"state"`
	Started  time.Time              `json:"started"`
	Ended    *time.Time             `json:"ended"`
}

// Instance is one instance as this node knows it (interface.md, show).
type Instance struct {
	ID           string                 `json:"id"`
	Workflow     workflow.Name          `json:"workflow"`
	Version      int                    `json:"version"`
	State        workflow.InstanceState `json:"state"`
	Duplicated   bool                   `json:"duplicated"`
	Incidents    []Incident             `json:"incidents"`
	Conflicts    []Conflict             `json:"conflicts"`
	Coordination workflow.Coordination  `json:"coordination"`
	Responsible  workflow.UserName      `json:"responsible"`
	Started      time.Time              `json:"started"`
	Ended        *time.Time             `json:"ended"`
	Partitions   []Partition            `json:"partitions"`
	Tasks        []Task                 `json:"tasks"`
	Data         map[string]any         `json:"data"`
}

// Incident is something that people should look at.
type Incident struct {
	At   time.Time         `json:"at"`
	What string            `json:"what"`
	Task workflow.TaskName `json:"task,omitempty"`
}

// Conflict lists the values that concurrent writers gave to one data item.
type Conflict struct {
	Data   workflow.DataName `json:"data"`
	Values []any             `json:"values"`
}

// Partition is one partition of an instance.
type Partition struct {
	Name    workflow.PartitionName `json:"name"`
	Partner string                 `json:"partner"`
	Attempt int                    `json:"attempt"`
	State   string                 `json:"state"`
	Timeout string                 `json:"timeout,omitempty"`
}

// Task is one task of an instance.
type Task struct {
	Name              workflow.TaskName      `json:"name"`
	Partition         workflow.PartitionName `json:"partition"`
	Partner           string                 `json:"partner"`
	Attempt           int                    `json:"attempt"`
	State             workflow.State         `json:"state"`
	ResponseImmediate bool                   `json:"response_immediate"`
	Started           *time.Time             `json:"started"`
	Ended             *time.Time             `json:"ended"`
	Outputs           map[string]any         `json:"outputs"`
	ContingencyOf     *workflow.TaskName     `json:"contingency_of"`
	ReplacedBy        *workflow.TaskName     `json:"replaced_by"`
	TriggerFired      bool                   `json:"trigger_fired"`
	Reason            string                 `json:"reason"`
	Superseded        []Superseded           `json:"superseded"`
}

// Superseded is a finished execution that does not count any more.
type Superseded struct {
	Task        workflow.TaskName `json:"task"`
	Partner     string            `json:"partner"`
	Attempt     int               `json:"attempt"`
	Ended       time.Time         `json:"ended"`
	Compensated bool              `json:"compensated"`
}

// LogEntry is one fact of an instance, readable.
type LogEntry struct {
	At      time.Time         `json:"at"`   // its author's wall clock: for people, never for decisions
	Time    uint64            `json:"time"` // logical time
	Fact    string            `json:"fact"` // hash
	Author  string            `json:"author"`
	Seq     uint64            `json:"seq"`
	Kind    string            `json:"kind"`
	Task    workflow.TaskName `json:"task,omitempty"`
	Text    string            `json:"text"`
	Counted bool              `json:"counted"`
}

// FinishRequest completes or fails a person's task.
type FinishRequest struct {
	ID      string            `json:"id"`
	Task    workflow.TaskName `json:"task"`
	Failed  bool              `json:"failed"`
	Reason  string            `json:"reason,omitempty"`
	Outputs map[string]string `json:"outputs,omitempty"` // read by the data's types
}

// Event says that something changed.
type Event struct {
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"` // instance, partner, coordinator, workflow, trouble, gap
	Instance string    `json:"instance,omitempty"`
	Partner  string    `json:"partner,omitempty"`
	Text     string    `json:"text"`
}
