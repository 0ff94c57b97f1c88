// Package membership says who is here: signed records (record.go) are folded into the
// partner list (list.go, event.go, names.go), which is compared and stored (sync.go).
//
// Promises: no I/O, no clock, no goroutine, no global randomness; time and
// random bytes are parameters. Whatever comes from outside is size-limited,
// decoded strictly and verified before it changes state. The same inputs give
// the same bytes.
//
// Who may be here is said by membership/trust, on which it stands; how one comes in by
// membership/invitation, above it; who coordinates by membership/election, beside it: the
// two do not know each other.
//
// It imports internal/plain, internal/said, membership/internal/codec,
// membership/moment, membership/trust and workflow; many packages import it.
package membership
