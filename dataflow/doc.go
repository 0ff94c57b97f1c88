// Package dataflow says what follows from what happened to an instance that is driven by its
// data: which data states it went through, which triggers fired at which of them, what is
// pending, and whether it goes on, has ended, or is interrupted.
//
//	definition ──New──▶ Flow
//	Flow, initial data ──Board──▶ what is due ──Fire──▶ jobs ──Done, Fail──▶ data states
//
// Purpose: a Board is the history of one instance's data states in one order, which whoever
// uses it gives: the order of the records of the partner that holds the flow. Moments come in
// as values, and are shown only.
//
// Promises: the same records in the same order give the same board. What does not fit
// is passed over, with the reason, and changes nothing. A new state costs what it changes: the
// conditions that mention what changed, and the triggers that fire, however many there are, and
// however many states there were (Board.Steps counts). Bad records never panic.
//
// It imports workflow; choreo, choreo/state, internal/sim/meaning, node and
// node/show import it.
package dataflow
