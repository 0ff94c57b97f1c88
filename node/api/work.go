package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
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

var (
	addDataRoute = &route{
		name: "addData", method: http.MethodPost, path: "/v1/data/{name}", scope: mayWork,
		summary: "Register materialised data", body: json.RawMessage{}, reply: DataSet{},
		query: []parameter{
			{name: "valid", doc: "For how long it is valid from now on, such as 24h; for ever when left out"},
			{name: "readers", doc: "Roles, and partners by name or ID, who may read it, with commas between; every member when left out"},
		},
		handle: func(svc Service, r *http.Request) (any, error) {
			terms, err := readTerms(r.URL.Query())
			if err != nil {
				return nil, err
			}
			content, err := readBody(r)
			if err != nil {
				return nil, err
			}
			return svc.AddData(r.Context(), r.PathValue("name"), content, terms)
		},
	}
	removeDataRoute = &route{
		name: "removeData", method: http.MethodDelete, path: "/v1/data/{name}", scope: mayWork,
		summary: "Take data off the catalogue",
		handle: func(svc Service, r *http.Request) (any, error) {
			return nil, svc.RemoveData(r.Context(), r.PathValue("name"))
		},
	}
)

var rejectRoute = &route{
	name: "rejectTask", method: http.MethodPost, path: "/v1/tasks/reject", scope: mayWork,
	summary: "Pass a task that this node holds and has not started on to another partner", body: RejectRequest{}, reply: Passed{},
	handle: func(svc Service, r *http.Request) (any, error) {
		return withBody(r, func(in RejectRequest) (any, error) { return svc.RejectTask(r.Context(), in) })
	},
}

// RejectTask implements Service.
func (c *Client) RejectTask(ctx context.Context, r RejectRequest) (*Passed, error) {
	return call[*Passed](ctx, c, rejectRoute, nil, r)
}

// readTerms reads the terms of a data set from a query.
func readTerms(q url.Values) (DataTerms, error) {
	var t DataTerms
	if v := q.Get("valid"); v != "" {
		d, err := workflow.ParseDuration(v)
		if err != nil || d == 0 {
			return t, Errorf(Invalid, "valid is %q: want a duration above 0, such as 24h", v)
		}
		t.Valid = d
	}
	if v := q.Get("readers"); v != "" {
		t.Readers = strings.Split(v, ",")
	}
	return t, nil
}

// AddData implements Service.
func (c *Client) AddData(ctx context.Context, name string, content []byte, terms DataTerms) (*DataSet, error) {
	query := url.Values{}
	if terms.Valid != 0 {
		query.Set("valid", workflow.FormatDuration(terms.Valid))
	}
	if len(terms.Readers) > 0 {
		query.Set("readers", strings.Join(terms.Readers, ","))
	}
	return call[*DataSet](ctx, c, addDataRoute, query, json.RawMessage(content), name)
}

// RemoveData implements Service.
func (c *Client) RemoveData(ctx context.Context, name string) error {
	_, err := call[nothing](ctx, c, removeDataRoute, nil, nil, name)
	return err
}
