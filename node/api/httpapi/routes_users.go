package httpapi

import (
	"net/http"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// The users of the mesh.
var (
	usersRoute = &route{
		name: "users", method: http.MethodGet, path: "/v1/users", scope: mayRead,
		summary: "The users: the partners, and those who were added", reply: []api.User{},
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.Users(r.Context()) },
	}
	addUserRoute = &route{
		name: "addUser", method: http.MethodPost, path: "/v1/users", scope: mayAll,
		summary: "Make a user, and a token by which it signs in", body: api.UserRequest{}, reply: api.SignInToken{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.UserRequest) (any, error) { return svc.AddUser(r.Context(), in) })
		},
	}
	removeUserRoute = &route{
		name: "removeUser", method: http.MethodDelete, path: "/v1/users/{user}", scope: mayAll,
		summary: "Remove a user for good, by name or whole ID; or one of its keys, by the key's whole ID",
		reply:   api.RemovedUser{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.RemoveUser(r.Context(), r.PathValue("user"))
		},
	}
	signInUserRoute = &route{
		name: "signInUser", method: http.MethodPost, path: "/v1/users/sign-in", scope: mayAll,
		summary: "Sign a user in at this node", body: api.SignInRequest{}, reply: api.SignedIn{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.SignInRequest) (any, error) { return svc.SignInUser(r.Context(), in.Token) })
		},
	}
	signOutUserRoute = &route{
		name: "signOutUser", method: http.MethodPost, path: "/v1/users/{user}/sign-out", scope: mayAll,
		summary: "Sign a user out at this node", reply: api.SignedOut{},
		query: []parameter{{
			name: "discard", doc: "true: also if what the user did here waits to be handed in, which no partner takes any more then",
			values: []string{"true", "false"},
		}},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.SignOutUser(r.Context(),
				api.SignOutRequest{User: r.PathValue("user"), Discard: r.URL.Query().Get("discard") == "true"})
		},
	}
	linkUserRoute = &route{
		name: "linkUser", method: http.MethodPost, path: "/v1/users/{user}/link", scope: mayAll,
		summary: "Make a token for another device of a user who is signed in at this node", body: api.LinkRequest{},
		reply: api.SignInToken{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.LinkRequest) (any, error) {
				return svc.LinkUser(r.Context(), r.PathValue("user"), time.Duration(in.Expires))
			})
		},
	}
	rolesRoute = &route{
		name: "roles", method: http.MethodGet, path: "/v1/roles", scope: mayRead,
		summary: "The roles that users have", reply: []api.Role{},
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.Roles(r.Context()) },
	}
	grantRoleRoute = &route{
		name: "grantRole", method: http.MethodPost, path: "/v1/roles/grant", scope: mayAll,
		summary: "Give a user a role", body: api.RoleRequest{}, reply: api.UserRoles{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.RoleRequest) (any, error) { return svc.GrantRole(r.Context(), in) })
		},
	}
	revokeRoleRoute = &route{
		name: "revokeRole", method: http.MethodPost, path: "/v1/roles/revoke", scope: mayAll,
		summary: "Take a role away from a user", body: api.RoleRequest{}, reply: api.UserRoles{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.RoleRequest) (any, error) { return svc.RevokeRole(r.Context(), in) })
		},
	}
)
