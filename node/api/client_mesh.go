package api

import (
	"context"
	"net/url"
)

// Evict implements Service.
func (c *Client) Evict(ctx context.Context, r EvictRequest) (*Evicted, error) {
	return call[*Evicted](ctx, c, evictRoute, nil, r)
}

// Leave implements Service.
func (c *Client) Leave(ctx context.Context, r LeaveRequest) (*Leaving, error) {
	return call[*Leaving](ctx, c, leaveRoute, nil, r)
}

// CoordinatorStatus implements Service.
func (c *Client) CoordinatorStatus(ctx context.Context) (*Coordinator, error) {
	return call[*Coordinator](ctx, c, coordinatorRoute, nil, nil)
}

// Elect implements Service.
func (c *Client) Elect(ctx context.Context, r ElectRequest) (*Coordinator, error) {
	return call[*Coordinator](ctx, c, electRoute, nil, r)
}

// Resign implements Service.
func (c *Client) Resign(ctx context.Context) error {
	_, err := call[nothing](ctx, c, resignRoute, nil, nil)
	return err
}

// Electorate implements Service.
func (c *Client) Electorate(ctx context.Context) (*Electorate, error) {
	return call[*Electorate](ctx, c, electorateRoute, nil, nil)
}

// SetElectorate implements Service.
func (c *Client) SetElectorate(ctx context.Context, r ElectorateRequest) (*Electorate, error) {
	return call[*Electorate](ctx, c, setElectorateRoute, nil, r)
}

// Profile implements Service.
func (c *Client) Profile(ctx context.Context) (*Profile, error) {
	return call[*Profile](ctx, c, profileRoute, nil, nil)
}

// SetProfile implements Service.
func (c *Client) SetProfile(ctx context.Context, r ProfileChange) (*Profile, error) {
	return call[*Profile](ctx, c, setProfileRoute, nil, r)
}

// Resources implements Service.
func (c *Client) Resources(ctx context.Context, query string) ([]Resource, error) {
	return call[[]Resource](ctx, c, resourcesRoute, url.Values{"query": {query}}, nil)
}

// Doctor implements Service.
func (c *Client) Doctor(ctx context.Context) (*Diagnosis, error) {
	return call[*Diagnosis](ctx, c, doctorRoute, nil, nil)
}
