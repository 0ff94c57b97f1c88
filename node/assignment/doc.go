// Package assignment says who can take a piece of work, and who takes it best: by what is known
// of the partners and of people, by what each has in hand, and by what was learned of them.
//
// [Partners] are the partners as the machines of instances ask about them (choreo.Partners). A
// [Ledger] is the unfinished work that is known here; [Learned] is what work of the past has
// taught.
//
// Promises: to ask for a choice changes nothing; what a decision gave out counts from then on
// for the next choice, and is taken back where it could not be made durable. Of two choices at
// once the second sees the first. What one partner says of its own work makes no work weightless.
// The store is only read; what is to be written is returned to whoever ends an instance. Many
// goroutines may ask at once.
//
// It imports choreo, choreo/fact, choreo/state, membership, membership/moment, membership/users,
// node/codec, node/store/kv, partition, partition/aptitude, workflow and worklist; node imports it.
package assignment
