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
// # Damaged disks
//
// Nothing that the store's files lose is lost in silence, whatever happens to one of
// them. (A user who puts the whole folder back as it was a while ago deceives the
// store; partners that hold facts of that time notice it.)
//
//   - Every file is read and checked before Badger sees it, and every entry afterwards,
//     at each opening and by Verify: Badger itself passes over damaged tables, ends its
//     iterators at damaged blocks, cuts a log at the first record that it cannot read,
//     deletes what a damaged MANIFEST forgot, and panics.
//   - Units are numbered. Each transaction stores its number, and count and digest of
//     all entries with it: a hole in the middle shows. The ledger, a file beside the
//     database, has the same after each unit, and count and digest of each range of
//     entries: a missing end shows, and what is lost is named.
//   - The ledger is written with every unit and synced every five seconds, not with
//     every unit. A killed process loses nothing of it. After a power loss it may lack
//     its last seconds; then the transactions vouch for themselves, and an end of the
//     log that was never synced is trimmed without alarm. Undetected is only a disk
//     that, with a power loss, also loses what it had synced in those seconds.
//   - A damaged database is made again from all versions of all entries that can still be
//     read, also of those behind a damaged record of a log and of tables that MANIFEST
//     does not name. The damaged files are kept in data.damaged until the next damage.
//   - Damage says what was found until Settle. Reading a range that has another number
//     of entries than it should gives ErrDamaged; so do Badger's panics while it reads.
//
// What it costs: for each transaction one more entry of about 70 bytes, a record of
// about 40 bytes and 30 for each range in the ledger, and a look at what a written key
// held, except for new keys (kv.Write) and ranges of one entry; in memory about 100
// bytes a range. An opening reads everything twice.
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
// Tests and simulators should use kv and storetest.
//
// It imports node/store/kv; node/assemble imports it.
package store
