package httpapi

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// nothing is the reply of a route without one.
type nothing struct{}

// Status implements Service.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return call[*api.Status](ctx, c, statusRoute, nil, nil)
}

// Partners implements Service.
func (c *Client) Partners(ctx context.Context) ([]api.Partner, error) {
	return call[[]api.Partner](ctx, c, partnersRoute, nil, nil)
}

// Invite implements Service.
func (c *Client) Invite(ctx context.Context, r api.InviteRequest) (*api.Invitation, error) {
	return call[*api.Invitation](ctx, c, inviteRoute, nil, r)
}

// AddWorkflow implements Service.
func (c *Client) AddWorkflow(ctx context.Context, file string, src []byte) (*api.Workflow, error) {
	return call[*api.Workflow](ctx, c, addWorkflowRoute, url.Values{"file": {file}}, source(src))
}

// Workflows implements Service.
func (c *Client) Workflows(ctx context.Context) ([]api.Workflow, error) {
	return call[[]api.Workflow](ctx, c, workflowsRoute, nil, nil)
}

// Workflow implements Service.
func (c *Client) Workflow(ctx context.Context, ref string) (*api.Workflow, error) {
	return call[*api.Workflow](ctx, c, workflowRoute, nil, nil, ref)
}

// RemoveWorkflow implements Service.
func (c *Client) RemoveWorkflow(ctx context.Context, ref string) ([]api.Workflow, error) {
	return call[[]api.Workflow](ctx, c, removeWorkflowRoute, nil, nil, ref)
}

// Start implements Service.
func (c *Client) Start(ctx context.Context, r api.StartRequest) (*api.Started, error) {
	return call[*api.Started](ctx, c, startRoute, nil, r)
}

// Instances implements Service. The node makes the next pages while those before are read here.
func (c *Client) Instances(ctx context.Context, all bool) ([]api.InstanceSummary, error) {
	ctx, cancel := context.WithCancel(ctx)
	taken := make(chan struct{}) // nobody takes more
	defer func() { close(taken); cancel() }()
	type page struct {
		doc  []byte
		next string
		err  error
	}
	pages := make(chan page, 1)
	go func() {
		for q := (api.InstanceQuery{All: all, Limit: api.MaxPage}); ; {
			doc, resp, err := c.fetch(ctx, instancesRoute, pageQuery(q), nil)
			p := page{doc: doc, err: err}
			if err == nil {
				p.next = nextPage(resp.Header)
			}
			select {
			case pages <- p:
			case <-taken:
				return
			}
			if q.After = p.next; q.After == "" {
				return
			}
		}
	}()
	return api.AllInstances(ctx, all, func(context.Context, api.InstanceQuery) (*api.InstancePage, error) {
		p := <-pages
		if p.err != nil {
			return nil, p.err
		}
		list := make([]api.InstanceSummary, 0, api.MaxPage)
		if err := json.Unmarshal(p.doc, &list); err != nil {
			return nil, unreadable(err)
		}
		return &api.InstancePage{Instances: list, Next: p.next}, nil
	})
}

// InstancePage implements Service.
func (c *Client) InstancePage(ctx context.Context, q api.InstanceQuery) (*api.InstancePage, error) {
	list, header, err := callHeader[[]api.InstanceSummary](ctx, c, instancesRoute, pageQuery(q), nil)
	if err != nil {
		return nil, err
	}
	return &api.InstancePage{Instances: list, Next: nextPage(header)}, nil
}

// pageQuery asks for a page of the list of instances.
func pageQuery(q api.InstanceQuery) url.Values {
	query := url.Values{"all": {strconv.FormatBool(q.All)}}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.After != "" {
		query.Set("after", q.After)
	}
	return query
}

// Show implements Service.
func (c *Client) Show(ctx context.Context, id string) (*api.Instance, error) {
	return call[*api.Instance](ctx, c, showRoute, nil, nil, id)
}

// Log implements Service.
func (c *Client) Log(ctx context.Context, id string) ([]api.LogEntry, error) {
	return call[[]api.LogEntry](ctx, c, logRoute, nil, nil, id)
}

// History implements Service.
func (c *Client) History(ctx context.Context, id string) ([]api.DataState, error) {
	return call[[]api.DataState](ctx, c, historyRoute, nil, nil, id)
}

// ForeseeRecovery implements Service.
func (c *Client) ForeseeRecovery(ctx context.Context, user, id string, step api.RecoveryStep) (*api.Outlook, error) {
	return call[*api.Outlook](ctx, c, foreseeRecoveryRoute, url.Values{"user": {user}}, step, id)
}

// ForeseeAmendment implements Service.
func (c *Client) ForeseeAmendment(ctx context.Context, r api.AmendRequest) (*api.Amendment, error) {
	query := url.Values{"file": {r.File}, "user": {r.User}}
	return call[*api.Amendment](ctx, c, foreseeAmendmentRoute, query, source(r.Source), r.ID)
}

// AmendInstance implements Service.
func (c *Client) AmendInstance(ctx context.Context, r api.AmendRequest) (*api.Amended, error) {
	return call[*api.Amended](ctx, c, amendInstanceRoute, nil, r, r.ID)
}

// Diagram implements Service.
func (c *Client) Diagram(ctx context.Context, id, format string) ([]byte, error) {
	p, err := call[picture](ctx, c, diagramRoute, url.Values{"format": {format}}, nil, id)
	return p.data, err
}

// Cancel implements Service.
func (c *Client) Cancel(ctx context.Context, id, reason string) error {
	_, err := call[nothing](ctx, c, cancelRoute, nil, cancelRequest{Reason: reason}, id)
	return err
}

// WriteOff implements Service.
func (c *Client) WriteOff(ctx context.Context, id, partner string, check bool) error {
	_, err := call[nothing](ctx, c, writeOffRoute, nil, writeOffRequest{Partner: partner, Check: check}, id)
	return err
}

// Refresh implements Service.
func (c *Client) Refresh(ctx context.Context, id string) (*api.Refreshed, error) {
	return call[*api.Refreshed](ctx, c, refreshRoute, nil, nil, id)
}

// BeginTask implements Service.
func (c *Client) BeginTask(ctx context.Context, r api.BeginRequest) error {
	_, err := call[nothing](ctx, c, beginRoute, nil, r)
	return err
}

// FinishTask implements Service.
func (c *Client) FinishTask(ctx context.Context, r api.FinishRequest) error {
	_, err := call[nothing](ctx, c, finishRoute, nil, r)
	return err
}
