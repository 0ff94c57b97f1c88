// Package membership says who is here: signed records (record.go) are folded into the
// partner list (list.go, event.go, names.go), which is compared and stored (sync.go).
//
// Promises: no I/O, no clock, no goroutine, no global randomness; time and
// random bytes are parameters. Whatever comes from outside is size-limited,
// decoded strictly and verified before it changes state. The same inputs give
// the same bytes.
//
// Package membership/trust says which partners may be here: this package stands on it.
// membership/invitation, above it, lets them in. membership/election, beside it, says
// which of them coordinates: these two packages do not know each other.
//
// It imports internal/plain, internal/said, membership/internal/codec,
// membership/moment, membership/trust and workflow; many packages import it.
package membership
