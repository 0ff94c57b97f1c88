// Package trust says who may belong to a mesh, and who may say so: keys and what
// they sign, certificates by the founder and its delegates, and evictions.
//
// Purpose:
//   - identities and domain-separated signatures (identity.go), the mesh and its
//     founder (mesh.go), moments that people set (wall.go);
//   - certificates and chains of them, with the power to issue them
//     (certificate.go);
//   - evictions, and what a set of them voids (eviction.go, revocations.go);
//   - what is proved to others by these: rights in facts (rights.go), and notices
//     about workflow definitions (notice.go).
//
// Promises: no I/O, no clock, no goroutine, no global randomness; time and random
// bytes are parameters. Whatever comes from outside is size-limited, decoded
// strictly and verified. What a set of evictions voids does not depend on the
// order in which they came. The same inputs give the same bytes.
//
// It knows neither the partner list nor the election.
//
// It imports internal/plain, internal/said, membership/internal/codec and workflow;
// many packages import it.
package trust
