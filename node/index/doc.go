// Package index lists the instances that a node holds, in memory or not, and counts them: by a
// summary of each.
//
// A [List] has them in the orders in which they are asked for: a page of a list, the beginning of
// an ID, what ended last, what may be given up. It says whether there is room for one more, which
// definitions are used, and of which ended instances two partners should have the same facts
// (ended.go). Of what has ended it knows what people are told ([News]).
//
// Promises: nothing costs more where more are held, but for what is said of all of them. It calls
// nobody but who asked with its lock held. What is durable is not said here: it lists what it
// was told, and reads what is stored when a node starts.
//
// It imports choreo, choreo/fact, configs, node/api, node/closings, node/codec, node/quota,
// node/wire, workflow and worklist; node and node/filing import it.
package index
