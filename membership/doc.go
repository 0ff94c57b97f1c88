// Package membership says who is here and who may speak: the partner list,
// the trust that admits partners, and the election of a coordinator.
//
// Purpose: identities and domain-separated signatures (identity.go),
// certificates, invitations and evictions (certificate.go, invitation.go,
// revocation.go), signed partner records folded into a list (record.go,
// list.go), and the electorate with its elections (electorate.go,
// election.go).
//
// Promises: no I/O, no clock, no goroutine, no global randomness; time and
// random bytes are parameters. Whatever comes from outside is size-limited,
// decoded strictly and verified before it changes state. The same inputs give
// the same bytes.
//
// Its carriers (membership/gossip), choreo and node import it; it imports
// workflow for the names and nothing else of Mutirão.
package membership
