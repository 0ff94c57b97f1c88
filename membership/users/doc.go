// Package users says who works here besides the partners themselves: the users of a mesh,
// the keys of their devices, their roles, and who may say all that.
//
// Purpose:
//   - accounts, which the founder or a delegate makes (account.go), and the keys that
//     belong to one, each certified by an administrator or by another key of the same
//     user (device.go);
//   - changes of roles (role.go), and removals of keys and of users (removal.go);
//   - all of these as records (record.go), the set of those that are known (set.go), and
//     what follows from it (standing.go, names.go);
//   - what a user signs (signature.go), and how a user's key comes to be certified
//     (token.go, tickets.go).
//
// Promises: no I/O, no clock, no goroutine, no global randomness; time and random bytes
// are parameters. Each record proves itself, so that none waits for another. As long as
// there is room, what a set says does not depend on the order in which its records came.
// Whatever comes from outside is size-limited, decoded strictly and verified. A secret is
// proved and never shown.
//
// It imports internal/plain, internal/said, membership, membership/internal/codec,
// membership/internal/token, membership/trust and workflow; internal/sim,
// internal/test/testliar, node, node/assignment and node/users import it.
package users
