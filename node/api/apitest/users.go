package apitest

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// UserFake is the part of Fake about users.
type UserFake struct {
	OnUsers       func() ([]api.User, error)
	OnAddUser     func(api.UserRequest) (*api.SignInToken, error)
	OnRemoveUser  func(user string) (*api.RemovedUser, error)
	OnSignInUser  func(token string) (*api.SignedIn, error)
	OnSignOutUser func(r api.SignOutRequest) (*api.SignedOut, error)
	OnLinkUser    func(user string, expires time.Duration) (*api.SignInToken, error)
	OnRoles       func() ([]api.Role, error)
	OnGrantRole   func(api.RoleRequest) (*api.UserRoles, error)
	OnRevokeRole  func(api.RoleRequest) (*api.UserRoles, error)
}

var _ api.UserService = (*UserFake)(nil)

// Users implements api.Service.
func (f *UserFake) Users(context.Context) ([]api.User, error) { return f.OnUsers() }

// AddUser implements api.Service.
func (f *UserFake) AddUser(_ context.Context, r api.UserRequest) (*api.SignInToken, error) {
	return f.OnAddUser(r)
}

// RemoveUser implements api.Service.
func (f *UserFake) RemoveUser(_ context.Context, user string) (*api.RemovedUser, error) {
	return f.OnRemoveUser(user)
}

// SignInUser implements api.Service.
func (f *UserFake) SignInUser(_ context.Context, token string) (*api.SignedIn, error) {
	return f.OnSignInUser(token)
}

// SignOutUser implements api.Service.
func (f *UserFake) SignOutUser(_ context.Context, r api.SignOutRequest) (*api.SignedOut, error) {
	return f.OnSignOutUser(r)
}

// LinkUser implements api.Service.
func (f *UserFake) LinkUser(_ context.Context, user string, expires time.Duration) (*api.SignInToken, error) {
	return f.OnLinkUser(user, expires)
}

// Roles implements api.Service.
func (f *UserFake) Roles(context.Context) ([]api.Role, error) { return f.OnRoles() }

// GrantRole implements api.Service.
func (f *UserFake) GrantRole(_ context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	return f.OnGrantRole(r)
}

// RevokeRole implements api.Service.
func (f *UserFake) RevokeRole(_ context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	return f.OnRevokeRole(r)
}
