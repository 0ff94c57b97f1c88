package api

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// WorkService is the part of Service about who does what, and the data that is
// there already.
type WorkService interface {
	// RejectTask passes a task that this node holds and has not started on to
	// another partner.
	RejectTask(ctx context.Context, r RejectRequest) (*Passed, error)
	// AddData registers materialised data under a name, in place of what had it
	// here; RemoveData takes it off the catalogue.
	AddData(ctx context.Context, name string, content []byte, terms DataTerms) (*DataSet, error)
	RemoveData(ctx context.Context, name string) error
}

// DataSet is materialised data that this node offers.
type DataSet struct {
	Name string `json:"name"`
	Hash string `json:"hash"` // SHA-256 of its content
	Size int    `json:"size"` // bytes
	// Values are the names of the data that it gives; empty: it is one value.
	Values []string `json:"values"`
	// ValidUntil is when it ceases to be valid; nil: never.
	ValidUntil *time.Time `json:"valid_until,omitempty"`
	Readers    []string   `json:"readers,omitempty"` // who may read it; empty: every member
}

// DataTerms say for how long data is valid, and for whom it is.
type DataTerms struct {
	Valid   time.Duration // from now; 0: for ever
	Readers []string      // roles, and partners by name or ID; empty: every member
}

// RejectRequest rejects a task.
type RejectRequest struct {
	ID     string            `json:"id"`
	Task   workflow.TaskName `json:"task"`
	Reason string            `json:"reason,omitempty"` // for people, kept in the instance's log
}

// Passed says who has a rejected task now.
type Passed struct {
	Task    workflow.TaskName `json:"task"`
	Partner string            `json:"partner"`
	Reason  string            `json:"reason"` // why this one
}
