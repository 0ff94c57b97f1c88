package api

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// MeshService is the part of Service about the mesh's members, its
// coordinator, and this partner's place among them. What only some members
// may do ends in NotAllowed for the others.
type MeshService interface {
	// Evict removes a member for good. Only the founder and delegates may.
	Evict(ctx context.Context, r EvictRequest) (*Evicted, error)

	// Leave gives this node's work on, and says what stays. The node takes nothing new
	// on, and ends when nothing stays.
	Leave(ctx context.Context, r LeaveRequest) (*Leaving, error)

	CoordinatorStatus(ctx context.Context) (*Coordinator, error)
	// Elect has a node stand for election and waits for the outcome, for a
	// minute and a half at most.
	Elect(ctx context.Context, r ElectRequest) (*Coordinator, error)
	// Resign gives this node's office up.
	Resign(ctx context.Context) error
	Electorate(ctx context.Context) (*Electorate, error)
	// SetElectorate has the voters hand over to others, or overrides them.
	SetElectorate(ctx context.Context, r ElectorateRequest) (*Electorate, error)

	Profile(ctx context.Context) (*Profile, error)
	SetProfile(ctx context.Context, r ProfileChange) (*Profile, error)
	// Resources searches the catalogue. All words of the query must be found in
	// a resource's kind and name, or in one holder's name; none: everything.
	Resources(ctx context.Context, query string) ([]Resource, error)
	Doctor(ctx context.Context) (*Diagnosis, error)
}

// EvictRequest asks to remove a member.
type EvictRequest struct {
	Partner string `json:"partner"`
	Reason  string `json:"reason,omitempty"` // for people, everybody sees it
	// Check: only say who is meant, and whether it may be evicted; nothing is done.
	Check bool `json:"check,omitempty"`
}

// Evicted says who was removed.
type Evicted struct {
	Name string             `json:"name"`
	ID   workflow.PartnerID `json:"id"`
	// Voided are the members whose certificates became void with it.
	Voided []string `json:"voided"`
	// Already: it was evicted before, and nothing has changed.
	Already bool `json:"already,omitempty"`
	// Unseen: it joined by an invitation of this node, and was never seen here.
	Unseen bool `json:"unseen,omitempty"`
}

// LeaveRequest asks this node to leave.
type LeaveRequest struct {
	ForGood bool `json:"for_good,omitempty"` // it cannot come back
	Check   bool `json:"check,omitempty"`    // only say whether it may; nothing is done
}

// Leaving says what became of this node's work.
type Leaving struct {
	// Left is true when nothing stays: the node goes at once, else when that is so.
	Left    bool    `json:"left"`
	ForGood bool    `json:"for_good"`
	Given   []Given `json:"given"`
	Stays   []Stay  `json:"stays"`
	// Kept is how many results in the outbox were refused and are kept at this node alone: nobody else has them.
	Kept int `json:"kept"`
}

// Given is a task that was given on.
type Given struct {
	// ID is by what a worklist names the item of a person's task; left out: it has none.
	ID       string `json:"id,omitempty"`
	Instance string `json:"instance"`
	// Subject is what the instance is about; left out: it is not said.
	Subject  string            `json:"subject,omitempty"`
	Workflow workflow.Name     `json:"workflow"`
	Task     workflow.TaskName `json:"task"`
	Partner  string            `json:"partner"`
	Reason   string            `json:"reason"`
}

// Stay is what stays with a node that leaves.
type Stay struct {
	Instance string            `json:"instance"`
	Subject  string            `json:"subject,omitempty"` // as of Given
	Workflow workflow.Name     `json:"workflow,omitempty"`
	Task     workflow.TaskName `json:"task,omitempty"` // empty: it is about the instance
	State    workflow.State    `json:"state,omitempty"`
	Reason   string            `json:"reason"`
}

// Coordinator says who coordinates (docs/commands.md, mutirao coordinator status).
type Coordinator struct {
	Coordinator *string    `json:"coordinator"` // nil: nobody
	Term        uint64     `json:"term"`        // its term; with nobody, the highest known
	Since       *time.Time `json:"since"`       // since when it is known here
	// Lapses is when a coordinator that cannot be reached is no longer taken for that here, unless it is heard of.
	Lapses     *time.Time `json:"lapses,omitempty"`
	Votes      []string   `json:"votes"`
	Electorate []string   `json:"electorate"`
	Majority   int        `json:"majority"`
	// Standing says, while this node stands for election, which votes it lacks, why, and for how long it goes on.
	Standing string `json:"standing,omitempty"`
	// Nominees say the same of partners that this node asked to stand, as far as they said so.
	Nominees []string `json:"nominees,omitempty"`
}

// ElectRequest names who is to stand for election; empty: this node.
type ElectRequest struct {
	Candidate string `json:"candidate,omitempty"`
}

// Electorate is who may vote.
type Electorate struct {
	Number   uint64  `json:"number"`
	Voters   []Voter `json:"voters"`
	Majority int     `json:"majority"`
	Lease    string  `json:"lease"` // how long a vote lasts unless it is prolonged
	// Override tells that the founder set this list, or one that it continues,
	// without the consent of the voters before.
	Override bool `json:"override"`
	// Warning says what the last change risks.
	Warning string `json:"warning,omitempty"`
	// Already: these voters had been set before, with that lease, and nothing has changed.
	Already bool `json:"already,omitempty"`
}

// Voter is one member of an electorate.
type Voter struct {
	Name  string             `json:"name"`
	ID    workflow.PartnerID `json:"id"`
	State string             `json:"state"`
	// Current is false when the partner was evicted, or its store was lost or
	// restored since: it has no vote, the restored one until another list names it.
	Current bool `json:"current"`
}

// ElectorateRequest changes who may vote.
type ElectorateRequest struct {
	Set []string `json:"set"`
	// Lease is for how long a voter promises its vote, such as "30s"; left out: as before.
	Lease Span `json:"lease,omitempty"`
	// Override does without the present voters' consent: only the founder may.
	Override bool `json:"override,omitempty"`
}

// Profile is what a partner says about itself to all others.
type Profile struct {
	Name         string             `json:"name"`
	ID           workflow.PartnerID `json:"id"`
	Roles        []string           `json:"roles"` // by its certificate
	Capabilities []string           `json:"capabilities"`
	// Applications are those of the configuration and those announced besides,
	// because workers serve them.
	Applications   []string           `json:"applications"`
	Databases      []string           `json:"databases"`    // that it can ask, by its configuration
	Suitability    map[string]float64 `json:"suitability"`  // task or role → 0 to 1
	Availability   float64            `json:"availability"` // 0: absent, to 1
	ConnectionTime string             `json:"connection_time"`
	// Learned is what this node has learned of itself, by workflow/task.
	Learned []Learned `json:"learned"`
}

// Learned is what finished executions taught about a partner at a task.
type Learned struct {
	Task   string  `json:"task"`   // workflow/task
	Factor float64 `json:"factor"` // on what is stated of its suitability, 0.5 to 1.25
	From   string  `json:"from"`   // what executions, in words
}

// ProfileChange changes what is not nil.
type ProfileChange struct {
	Capabilities *[]string `json:"capabilities,omitempty"`
	Applications *[]string `json:"applications,omitempty"` // beside the configured ones
	// Suitability changes single entries; a negative value removes one.
	Suitability    map[string]float64 `json:"suitability,omitempty"`
	Availability   *float64           `json:"availability,omitempty"`
	ConnectionTime *Span              `json:"connection_time,omitempty"` // such as "15s"; empty: as configured
}

// Resource is something that partners have.
type Resource struct {
	Kind    string   `json:"kind"` // role, capability, application, data, capacity, experience
	Name    string   `json:"name"`
	Size    uint64   `json:"size,omitempty"` // of data, bytes
	Hash    string   `json:"hash,omitempty"` // of data
	Holders []Holder `json:"holders"`
}

// Holder is a partner that has a resource.
type Holder struct {
	Name  string             `json:"name"` // as in Partner
	ID    workflow.PartnerID `json:"id"`
	State string             `json:"state"`
	Spare float64            `json:"spare"` // capacity not in use, 0 to 1
	// Note says more: of experience, what this node has learned of the holder.
	Note string `json:"note,omitempty"`
	// ValidUntil and Readers are terms of data: when it ceases to be valid (nil: never),
	// and the roles and partners who may read it (empty: every member).
	ValidUntil *time.Time `json:"valid_until,omitempty"`
	Readers    []string   `json:"readers,omitempty"`
	// Author lists the workflow of which a task made the data; empty: a user registered it.
	Author string `json:"author,omitempty"`
}

// Diagnosis is what doctor found.
type Diagnosis struct {
	Healthy  bool      `json:"healthy"` // nothing is wrong
	Findings []Finding `json:"findings"`
}

// Finding is the outcome of one check.
type Finding struct {
	Check string `json:"check"` // links, addresses, clock, disk, battery, certificate, store, partners, profile, electorate, refused, users, page
	State string `json:"state"` // ok, warning, wrong
	What  string `json:"what"`
	Mend  string `json:"mend,omitempty"` // what to do about it
}

// The states of a Finding.
const (
	FindingOK      = "ok"
	FindingWarning = "warning"
	FindingWrong   = "wrong"
)
