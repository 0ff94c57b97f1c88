// Package choreo is the pure core of Mutirão: one machine per instance that
// turns facts into state and state into intents.
//
//	facts ──insert──▶ log.Log ──fold──▶ state.State ──decide──▶ Effects
//
// Purpose: everything that happens to an instance is a fact (package choreo/fact). A
// replica of an instance is a causally closed set of facts (package choreo/log). What the
// set means (which attempt counts, what is ready, how the instance stands) is a function
// of the set alone (package choreo/state); what this node should do about it is a function
// of the state, of who this node is and of what it was told about partners and time: that
// is here (Decide), with what is taken in of each author and what each peer is told. A driver carries the effects out, in the order that its fields are in.
//
// Promises: no I/O, no clock, no goroutine, no randomness; time and chance come
// in as values. Two machines with the same facts have byte-identical state,
// whatever the order in which the facts arrived and however often each did.
// Bad facts are refused with an error or do not count; they never panic.
//
// It imports choreo/fact, choreo/log, choreo/state, contingency, contingency/waits, dataflow,
// internal/said, partition, partition/aptitude, workflow, workflow/amendments and worklist; many
// packages import it.
package choreo
