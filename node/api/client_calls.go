package api

import (
	"context"
	"net/url"
	"strconv"
)

// nothing is the reply of a route without one.
type nothing struct{}

// Status implements Service.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return call[*Status](ctx, c, statusRoute, nil, nil)
}

// Partners implements Service.
func (c *Client) Partners(ctx context.Context) ([]Partner, error) {
	return call[[]Partner](ctx, c, partnersRoute, nil, nil)
}

// Invite implements Service.
func (c *Client) Invite(ctx context.Context, r InviteRequest) (*Invitation, error) {
	return call[*Invitation](ctx, c, inviteRoute, nil, r)
}

// AddWorkflow implements Service.
func (c *Client) AddWorkflow(ctx context.Context, file string, src []byte) (*Workflow, error) {
	return call[*Workflow](ctx, c, addWorkflowRoute, url.Values{"file": {file}}, source(src))
}

// Workflows implements Service.
func (c *Client) Workflows(ctx context.Context) ([]Workflow, error) {
	return call[[]Workflow](ctx, c, workflowsRoute, nil, nil)
}

// Workflow implements Service.
func (c *Client) Workflow(ctx context.Context, ref string) (*Workflow, error) {
	return call[*Workflow](ctx, c, workflowRoute, nil, nil, ref)
}

// RemoveWorkflow implements Service.
func (c *Client) RemoveWorkflow(ctx context.Context, ref string) ([]Workflow, error) {
	return call[[]Workflow](ctx, c, removeWorkflowRoute, nil, nil, ref)
}

// Start implements Service.
func (c *Client) Start(ctx context.Context, r StartRequest) (*Started, error) {
	return call[*Started](ctx, c, startRoute, nil, r)
}

// Instances implements Service.
func (c *Client) Instances(ctx context.Context, all bool) ([]InstanceSummary, error) {
	return call[[]InstanceSummary](ctx, c, instancesRoute, url.Values{"all": {strconv.FormatBool(all)}}, nil)
}

// Show implements Service.
func (c *Client) Show(ctx context.Context, id string) (*Instance, error) {
	return call[*Instance](ctx, c, showRoute, nil, nil, id)
}

// Log implements Service.
func (c *Client) Log(ctx context.Context, id string) ([]LogEntry, error) {
	return call[[]LogEntry](ctx, c, logRoute, nil, nil, id)
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
func (c *Client) WriteOff(ctx context.Context, id, partner string) error {
	_, err := call[nothing](ctx, c, writeOffRoute, nil, writeOffRequest{Partner: partner}, id)
	return err
}

// Refresh implements Service.
func (c *Client) Refresh(ctx context.Context, id string) (*Refreshed, error) {
	return call[*Refreshed](ctx, c, refreshRoute, nil, nil, id)
}

// BeginTask implements Service.
func (c *Client) BeginTask(ctx context.Context, r BeginRequest) error {
	_, err := call[nothing](ctx, c, beginRoute, nil, r)
	return err
}

// FinishTask implements Service.
func (c *Client) FinishTask(ctx context.Context, r FinishRequest) error {
	_, err := call[nothing](ctx, c, finishRoute, nil, r)
	return err
}
