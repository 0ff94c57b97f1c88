// Package aptitude decides who does what: it hands each piece of waiting work
// to the resource (a partner, or a user) that is most apt for it and still has
// capacity, and says why.
//
// Where it comes from is told in docs/systems.md, The allocation metric. The metric is
//
//	abs_alloc = suitability × urgency × conformance × availability
//
// each factor in [0, 1]. [Allocate] applies one of the [Mechanisms] to a queue
// and answers with one [Assignment] per item, each with the candidates that
// were weighed, their factors, and what became of each.
//
// Promises: no I/O, no clock, no goroutine, no randomness but the source that
// is passed in. The same arguments give the same assignments. Arguments are
// never changed. Moments are numbers in any unit, from any origin that lies
// before the first of them, as long as they are all alike.
//
// Live assignment and the simulation study use it unchanged.
//
// It imports no other package of ours; many packages import it.
package aptitude
