package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	addDataRoute = &route{
		name: "addData", method: http.MethodPost, path: "/v1/data/{name}", scope: mayWork,
		summary: "Register materialised data", body: json.RawMessage{}, reply: api.DataSet{},
		query: []parameter{
			{name: "valid", doc: "For how long it is valid from now on, such as 24h; for ever when left out"},
			{name: "readers", doc: "Roles, and partners by name or ID, who may read it, with commas between; every member when left out"},
		},
		handle: func(svc api.Service, r *http.Request) (any, error) {
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
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return nil, svc.RemoveData(r.Context(), r.PathValue("name"))
		},
	}
)

var rejectRoute = &route{
	name: "rejectTask", method: http.MethodPost, path: "/v1/tasks/reject", scope: mayWork,
	summary: "Pass a task that this node holds and has not started on to another partner", body: api.RejectRequest{},
	reply: api.Passed{},
	handle: func(svc api.Service, r *http.Request) (any, error) {
		return withBody(r, func(in api.RejectRequest) (any, error) { return svc.RejectTask(r.Context(), in) })
	},
}

// RejectTask implements Service.
func (c *Client) RejectTask(ctx context.Context, r api.RejectRequest) (*api.Passed, error) {
	return call[*api.Passed](ctx, c, rejectRoute, nil, r)
}

// readTerms reads the terms of a data set from a query.
func readTerms(q url.Values) (api.DataTerms, error) {
	var t api.DataTerms
	if v := q.Get("valid"); v != "" {
		d, err := workflow.ParseDuration(v)
		if err != nil || d == 0 {
			return t, api.Errorf(api.Invalid, "valid is %q: want a duration above 0, such as 24h", v)
		}
		t.Valid = d
	}
	if v := q.Get("readers"); v != "" {
		t.Readers = strings.Split(v, ",")
	}
	return t, nil
}

// AddData implements Service.
func (c *Client) AddData(ctx context.Context, name string, content []byte, terms api.DataTerms) (*api.DataSet, error) {
	query := url.Values{}
	if terms.Valid != 0 {
		query.Set("valid", workflow.FormatDuration(terms.Valid))
	}
	if len(terms.Readers) > 0 {
		query.Set("readers", strings.Join(terms.Readers, ","))
	}
	return call[*api.DataSet](ctx, c, addDataRoute, query, json.RawMessage(content), name)
}

// RemoveData implements Service.
func (c *Client) RemoveData(ctx context.Context, name string) error {
	_, err := call[nothing](ctx, c, removeDataRoute, nil, nil, name)
	return err
}
