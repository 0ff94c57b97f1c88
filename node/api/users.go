package api

import (
	"context"
	"time"
)

// UserService is the part of Service about the users of the mesh. What only the founder and
// delegates may do ends in NotAllowed for the others.
type UserService interface {
	// Users lists the partners, which are users by being partners, and all other users.
	Users(ctx context.Context) ([]User, error)
	// AddUser makes a user, and a token by which it signs in.
	AddUser(ctx context.Context, r UserRequest) (*SignInToken, error)
	// RemoveUser removes a user for good or, by the whole ID of one of its keys, that key.
	RemoveUser(ctx context.Context, user string) (*RemovedUser, error)
	// SignIn signs a user in at this node.
	SignInUser(ctx context.Context, token string) (*SignedIn, error)
	// SignOutUser signs a user out at this node. It is refused while something that the user did here waits to be
	// handed in, which the key that is deleted has signed, unless that is to be discarded.
	SignOutUser(ctx context.Context, r SignOutRequest) (*SignedOut, error)
	// LinkUser makes a token for another device of a user who is signed in here.
	LinkUser(ctx context.Context, user string, expires time.Duration) (*SignInToken, error)
	// Roles lists the roles that users have.
	Roles(ctx context.Context) ([]Role, error)
	GrantRole(ctx context.Context, r RoleRequest) (*UserRoles, error)
	RevokeRole(ctx context.Context, r RoleRequest) (*UserRoles, error)
}

// User is one row of the list of users.
type User struct {
	Name    string   `json:"name"` // with the beginning of the ID where several look the same
	ID      string   `json:"id"`
	Roles   []string `json:"roles"`
	Devices []string `json:"devices"` // the partners at whose nodes it is signed in
	// Active: one of the devices can be reached now, or is this one.
	Active bool `json:"active"`
	// Done, Assigned and Selected are how many people's tasks it completed, is to do, and
	// has begun or selected, in the instances of which this node has the facts. A task that
	// nobody took from a worklist counts for the partner to which it went.
	Done     int  `json:"done"`
	Assigned int  `json:"assigned"`
	Selected int  `json:"selected"`
	Partner  bool `json:"partner"` // it is one
	Here     bool `json:"here"`    // it is signed in at this node
	// Namesake is the ID of a partner that has the name of this user, or of a user who has that of this partner, as two
	// sides of a split may give it: then only the IDs say who is meant. Left out: nobody has.
	Namesake string `json:"namesake,omitempty"`
	// Keys are those of a user who is no partner.
	Keys []UserKey `json:"keys"`
}

// UserKey is a key of a user.
type UserKey struct {
	ID     string    `json:"id"`
	Device string    `json:"device"` // the partner at whose node it is
	Until  time.Time `json:"until"`  // its certificate is valid
}

// UserRequest asks for a user.
type UserRequest struct {
	Name    string   `json:"name"`
	Roles   []string `json:"roles,omitempty"`
	Expires Span     `json:"expires,omitempty"` // for how long the token can be used, such as "3d"; left out: 24 h
}

// LinkRequest asks for a token for another device of a user.
type LinkRequest struct {
	Expires Span `json:"expires,omitempty"` // for how long it can be used, such as "15m"; left out: 24 h
}

// SignInToken is what a user signs in with, once.
type SignInToken struct {
	User    string    `json:"user"`
	ID      string    `json:"id"`
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// SignInRequest asks to sign a user in at this node.
type SignInRequest struct {
	Token string `json:"token"`
}

// SignedIn says who was signed in.
type SignedIn struct {
	Name  string    `json:"name"`
	ID    string    `json:"id"`
	Roles []string  `json:"roles"`
	Until time.Time `json:"until"` // the certificate is valid
}

// SignOutRequest names a user at this node, by name or whole ID.
type SignOutRequest struct {
	User string
	// Discard: also if what the user did here waits to be handed in. No partner takes it any more then.
	Discard bool
}

// SignedOut says who was signed out, and where the user is still signed in.
type SignedOut struct {
	Name    string   `json:"name"`
	ID      string   `json:"id"`
	Devices []string `json:"devices"`
	// Removed: the user was removed before, and only the key was still here.
	Removed bool `json:"removed,omitempty"`
}

// RemovedUser says who was removed, or of whom a key was.
type RemovedUser struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	Key  string `json:"key,omitempty"`
}

// Role is a role, with the users who have it.
type Role struct {
	Role  string   `json:"role"`
	Users []string `json:"users"`
}

// RoleRequest names a user, by name or ID, and a role.
type RoleRequest struct {
	User string `json:"user"`
	Role string `json:"role"`
}

// UserRoles are the roles that a user has now.
type UserRoles struct {
	Name  string   `json:"name"`
	ID    string   `json:"id"`
	Roles []string `json:"roles"`
}
