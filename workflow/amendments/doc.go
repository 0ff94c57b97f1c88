// Package amendments is about changes of definitions whose instances run: what differs between
// two editions of one, what of that an instance can still take, and what becomes of two changes
// that were made of one edition.
//
// Purpose: Between lists the difference by parts (tasks, data, conditions, partitions and so on)
// and by their keys; Lines tells it to people. Judge says, of what an instance has done, which
// changes it refuses, each with its reason and the next step, and which have no effect on it.
// Merge makes one definition of two that began with the same, or says in which parts they
// conflict. A Patch is what of that can be changed in an instance that runs; Effective is what patches
// make of a definition.
//
// Promises: no I/O, no clock, no goroutine, no randomness. What is told depends on the meaning
// of definitions alone: on their canonical forms, and never on the order in which their keys
// were written. All lists are in one order. What it costs is in proportion to the two texts.
//
// It imports internal/plain and workflow; choreo, choreo/state, cmd/mutirao, internal/sim, node and
// node/show import it.
package amendments
