// Package closings is what a node keeps of instances of which it deleted the facts: a signed
// summary of each, of the oldest the IDs alone, and when even those are too many, up to
// when their initiators began them.
//
// A [Book] keeps them (book.go), makes them where instances are given up, and forgets
// (forget.go); it also has the node's own time, by which that is done (age.go). Who may
// lack something, and so which instances are given up, is not said here.
//
// Promises: an instance that was given up is never taken for a new one, whatever was
// forgotten of it. The account of all that were given up is durable in one unit with each
// summary. One member that ends instances without end loses its own oldest first, and what
// that costs does not grow with what there may be. Many goroutines may ask at once; the
// store is waited for with the lock held that has one after the other give up.
//
// It imports membership/moment, membership/trust, node/codec, node/store/kv, node/wire and
// workflow; node and node/index import it.
package closings
