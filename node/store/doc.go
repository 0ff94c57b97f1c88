// Package store keeps a node's data: a small durable key-value store with real
// group commit. It is the only importer of Badger.
//
// # Promises
//
//   - A unit whose done was called with nil is on the disk: it survives kill -9
//     and power loss.
//   - A unit is atomic: after any crash all of its writes are there, or none.
//   - Units take effect, and their done functions are called, in the order of
//     the Commit calls, from one goroutine. The exception is a unit that fails:
//     it has no effect of which others depend, see below.
//   - Many units that wait share one transaction and one fsync. Commit never
//     waits for the disk.
//   - One process at a time has a folder open; a second one is told which. A
//     process that was killed blocks nobody.
//
// # What failed means
//
// ErrTooBig, ErrInvalid, ErrQueueFull, ErrClosed and ErrFull are given before
// anything was written: the unit is not there and will not appear. Any other
// error comes from the disk while it was being written, and means *unknown until
// read again*: a log record may have reached the disk although the sync failed.
// Before such a unit's done is called, the store closes and reopens the database
// (which makes durable whatever of the log was readable), so that what Get says
// from then on is what a crash would leave.
//
// # Full disks
//
// Badger writes through memory maps of sparse files. When the disk fills up
// under such a map the kernel answers with SIGBUS, which ends a Go process. So
// the store looks at the free space before each transaction and refuses with
// ErrFull while less than Options.Reserve is free, which is room for what Badger
// may still have to flush and compact. Reads go on; commits work again as soon as
// there is room. What remains: another program that eats the whole reserve while
// a transaction or compaction runs can still end the process; nothing that was
// acknowledged is lost then.
//
// The node's driver may import it; tests and simulators should use kv and
// storetest.
package store
