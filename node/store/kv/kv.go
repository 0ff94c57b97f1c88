// Package kv is the vocabulary of a durable key-value store: what a write is,
// and the errors that callers tell apart.
//
// It exists so that code which uses or imitates a store (the driver's tests,
// the simulator's crashing disk, the conformance suite in storetest) does not
// have to link Badger.
//
// It imports no other package of ours; many packages import it.
package kv

import "errors"

// Write is one change: Value replaces what Key held, or, with Delete, Key goes.
// Several writes committed together are a unit: all of them happen, or none.
type Write struct {
	Key    []byte
	Value  []byte
	Delete bool
	// New: the writer knows that nothing is stored under the key, so that a store
	// which counts its entries need not look.
	New bool
}

// Errors that a store returns, wrapped with what and why.
var (
	// ErrNotFound: no value is stored under the key.
	ErrNotFound = errors.New("not found")
	// ErrFull: the disk has no room. Reading goes on; a later commit is tried again.
	ErrFull = errors.New("disk full")
	// ErrTooBig: a key, a value or a unit is over the store's limit. Trying
	// again will not help.
	ErrTooBig = errors.New("too big")
	// ErrInvalid: an empty or reserved key. Trying again will not help.
	ErrInvalid = errors.New("invalid write")
	// ErrQueueFull: more bytes wait to be committed than the store holds in
	// memory. The caller should bound what it has in flight.
	ErrQueueFull = errors.New("commit queue full")
	// ErrDamaged: what is stored cannot be read, and reading again will not help.
	ErrDamaged = errors.New("damaged")
	// ErrUnfit: the folder is not opened as it is, and opening it again will not help.
	// The error says what to do.
	ErrUnfit = errors.New("store not opened")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store closed")
)

// Damage is what a store found to be lost.
type Damage struct {
	// Found says for people what was found; none: nothing.
	Found []string
	// Ranges are those whose entries are not what they should be.
	Ranges [][]byte
	// Vanished: entries may be gone of which nobody knows the ranges.
	Vanished bool
}
