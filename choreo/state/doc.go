// Package state is what a set of facts means: which attempt is in charge, which result counts, what is
// ready, how the instance stands.
//
// Purpose: a State folds the facts of a Log, one after the other (fold.go), each by what its author knew
// when it wrote it (rights.go). Slots and their attempts, the data, people's claims and the states of an
// instance that is driven by its data are each told in files of their own; converge.go is the rule for what
// partners did side by side.
//
// Promises: no I/O, no clock, no randomness. A state is a function of the set of facts: the order in which
// they came, how often, and who asks have no part in it. It decides nothing, and gives what it knows to read:
// maps and lists that it gives are not to be changed.
//
// It imports choreo/fact, choreo/log, contingency, dataflow, partition, partition/aptitude,
// workflow, workflow/amendments and worklist; choreo, internal/sim, node, node/assignment,
// node/jobs, node/show and node/worklists import it.
package state
