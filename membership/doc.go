// Package membership says who is here: the partner list, and besides, still in this
// package, the election of a coordinator.
//
// Purpose:
//   - the partner list: signed records (record.go) folded into who is here
//     (list.go, event.go, names.go), compared and stored (sync.go);
//   - the coordinator: numbered electorates (electorate.go, succession.go) and
//     a pure state machine of voters and candidates (election.go, ready.go, voter.go,
//     candidate.go, claim.go, office.go, message.go).
//
// Promises: no I/O, no clock, no goroutine, no global randomness; time and
// random bytes are parameters. Whatever comes from outside is size-limited,
// decoded strictly and verified before it changes state. The same inputs give
// the same bytes.
//
// Who may be here is said by membership/trust, on which it stands, and how one comes in
// by membership/invitation, above it.
//
// It imports internal/plain, internal/said, membership/internal/codec,
// membership/trust and workflow; many packages import it.
package membership
