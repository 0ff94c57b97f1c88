// Package membership says who is here and who may speak: the partner list,
// the trust that admits partners, and the election of a coordinator.
//
// Purpose:
//   - trust: identities and domain-separated signatures (identity.go),
//     certificates by the founder and its delegates (certificate.go),
//     evictions (eviction.go, revocations.go), invitations and how they are
//     redeemed (invitation.go, invitebook.go, join.go);
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
// It imports internal/plain, internal/said and workflow; many packages import it.
package membership
