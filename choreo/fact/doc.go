// Package fact is what is said of an instance: what happened, who tells it, and what proves that.
//
// Purpose: a Fact is one thing that happened, as its author tells it; it is immutable, and named by
// the hash of its encoding. Its Body is one of the kinds, each with a file of its own or in one with
// its like; kinds.go says how to add one. An Attestation is the author's signature for a run of facts.
// What partners may make of one fact is bounded here (limits.go).
//
// Promises: no I/O, no clock, no randomness. A text of bytes that is no fact, or one that breaks a limit,
// is refused with an error; what is decoded is what was encoded, byte for byte. Whether a fact counts, and
// what follows from it, is not said here: a fact knows neither the log nor the state.
//
// It imports internal/canon, internal/plain, internal/said, membership, membership/election,
// membership/trust, partition, partition/aptitude, workflow and worklist; many packages import it.
package fact
