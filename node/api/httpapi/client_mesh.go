package httpapi

import (
	"context"
	"net/url"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Evict implements Service.
func (c *Client) Evict(ctx context.Context, r api.EvictRequest) (*api.Evicted, error) {
	return call[*api.Evicted](ctx, c, evictRoute, nil, r)
}

// Leave implements Service.
func (c *Client) Leave(ctx context.Context, r api.LeaveRequest) (*api.Leaving, error) {
	return call[*api.Leaving](ctx, c, leaveRoute, nil, r)
}

// CoordinatorStatus implements Service.
func (c *Client) CoordinatorStatus(ctx context.Context) (*api.Coordinator, error) {
	return call[*api.Coordinator](ctx, c, coordinatorRoute, nil, nil)
}

// Elect implements Service.
func (c *Client) Elect(ctx context.Context, r api.ElectRequest) (*api.Coordinator, error) {
	return call[*api.Coordinator](ctx, c, electRoute, nil, r)
}

// Resign implements Service.
func (c *Client) Resign(ctx context.Context) error {
	_, err := call[nothing](ctx, c, resignRoute, nil, nil)
	return err
}

// Electorate implements Service.
func (c *Client) Electorate(ctx context.Context) (*api.Electorate, error) {
	return call[*api.Electorate](ctx, c, electorateRoute, nil, nil)
}

// SetElectorate implements Service.
func (c *Client) SetElectorate(ctx context.Context, r api.ElectorateRequest) (*api.Electorate, error) {
	return call[*api.Electorate](ctx, c, setElectorateRoute, nil, r)
}

// Profile implements Service.
func (c *Client) Profile(ctx context.Context) (*api.Profile, error) {
	return call[*api.Profile](ctx, c, profileRoute, nil, nil)
}

// SetProfile implements Service.
func (c *Client) SetProfile(ctx context.Context, r api.ProfileChange) (*api.Profile, error) {
	return call[*api.Profile](ctx, c, setProfileRoute, nil, r)
}

// Resources implements Service.
func (c *Client) Resources(ctx context.Context, query string) ([]api.Resource, error) {
	return call[[]api.Resource](ctx, c, resourcesRoute, url.Values{"query": {query}}, nil)
}

// Doctor implements Service.
func (c *Client) Doctor(ctx context.Context) (*api.Diagnosis, error) {
	return call[*api.Diagnosis](ctx, c, doctorRoute, nil, nil)
}
