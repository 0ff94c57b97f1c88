// Package log is a replica of an instance: the facts that are here, each after all that its author had seen.
//
// Purpose: facts come in any order, and often twice. A Log takes them in where their past is here too, knows
// of any two whether the author of one had seen the other, cuts what a peer lacks into bundles, and finds
// chains that their authors forked.
//
// Promises: no I/O, no clock, no randomness. It is causally closed and only grows; what was made of the
// same facts in another order holds the same. It says what counts of a chain as far as forks go, and nothing
// of what the facts mean.
//
// It imports choreo/fact, internal/said and workflow; choreo, choreo/state and node import it.
package log
