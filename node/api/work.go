package api

import (
	"context"
	"net/http"

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
	AddData(ctx context.Context, name string, content []byte) (*DataSet, error)
	RemoveData(ctx context.Context, name string) error
}

// DataSet is materialised data that this node offers.
type DataSet struct {
	Name string `json:"name"`
	Hash string `json:"hash"` // SHA-256 of its content
	Size int    `json:"size"` // bytes
	// Values are the names of the data that it gives; empty: it is one value.
	Values []string `json:"values"`
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
		summary: "Register materialised data", body: source{}, reply: DataSet{},
		handle: func(svc Service, r *http.Request) (any, error) {
			content, err := readBody(r)
			if err != nil {
				return nil, err
			}
			return svc.AddData(r.Context(), r.PathValue("name"), content)
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

// AddData implements Service.
func (c *Client) AddData(ctx context.Context, name string, content []byte) (*DataSet, error) {
	return call[*DataSet](ctx, c, addDataRoute, nil, source(content), name)
}

// RemoveData implements Service.
func (c *Client) RemoveData(ctx context.Context, name string) error {
	_, err := call[nothing](ctx, c, removeDataRoute, nil, nil, name)
	return err
}
