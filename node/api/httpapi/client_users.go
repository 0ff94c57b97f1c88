package httpapi

import (
	"context"
	"net/url"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Users implements Service.
func (c *Client) Users(ctx context.Context) ([]api.User, error) {
	return call[[]api.User](ctx, c, usersRoute, nil, nil)
}

// AddUser implements Service.
func (c *Client) AddUser(ctx context.Context, r api.UserRequest) (*api.SignInToken, error) {
	return call[*api.SignInToken](ctx, c, addUserRoute, nil, r)
}

// RemoveUser implements Service.
func (c *Client) RemoveUser(ctx context.Context, user string) (*api.RemovedUser, error) {
	return call[*api.RemovedUser](ctx, c, removeUserRoute, nil, nil, user)
}

// SignInUser implements Service.
func (c *Client) SignInUser(ctx context.Context, token string) (*api.SignedIn, error) {
	return call[*api.SignedIn](ctx, c, signInUserRoute, nil, api.SignInRequest{Token: token})
}

// SignOutUser implements Service.
func (c *Client) SignOutUser(ctx context.Context, r api.SignOutRequest) (*api.SignedOut, error) {
	var query url.Values
	if r.Discard {
		query = url.Values{"discard": {"true"}}
	}
	return call[*api.SignedOut](ctx, c, signOutUserRoute, query, nil, r.User)
}

// LinkUser implements Service.
func (c *Client) LinkUser(ctx context.Context, user string, expires time.Duration) (*api.SignInToken, error) {
	return call[*api.SignInToken](ctx, c, linkUserRoute, nil, api.LinkRequest{Expires: api.Span(expires)}, user)
}

// Roles implements Service.
func (c *Client) Roles(ctx context.Context) ([]api.Role, error) {
	return call[[]api.Role](ctx, c, rolesRoute, nil, nil)
}

// GrantRole implements Service.
func (c *Client) GrantRole(ctx context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	return call[*api.UserRoles](ctx, c, grantRoleRoute, nil, r)
}

// RevokeRole implements Service.
func (c *Client) RevokeRole(ctx context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	return call[*api.UserRoles](ctx, c, revokeRoleRoute, nil, r)
}
