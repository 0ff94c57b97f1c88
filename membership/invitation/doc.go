// Package invitation lets strangers into a mesh: the texts that they are given, the
// book in which their issuer counts the uses, and the messages by which a stranger
// joins (join.go), also by way of others (joinpass.go).
//
// Promises: no I/O, no clock, no goroutine, no global randomness; time and random
// bytes are parameters. A secret is proved and never shown, and a use counts once,
// whatever is lost or repeated. Whatever comes from outside is size-limited,
// decoded strictly and verified before it changes anything.
//
// It imports internal/said, membership, membership/internal/codec,
// membership/internal/token, membership/trust and workflow; cmd/mutirao, node,
// node/joining and node/users import it.
package invitation
