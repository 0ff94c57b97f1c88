package store

import (
	"fmt"
	"log/slog"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// Limits of one write. They do not depend on the preset, so that what one node
// accepted every other node can store.
const (
	// MaxKey is the greatest length of a key in bytes.
	MaxKey = 1 << 10
	// MaxValue is the greatest length of a value in bytes: just below Badger's
	// greatest value threshold, so that no value ever goes to the value log and
	// the value log never needs garbage collection.
	MaxValue = 1<<20 - 1
	// MaxUnit is the greatest size of one unit: keys, values and writeOverhead
	// (32 bytes) for each write.
	MaxUnit = MaxValue + 128<<10
	// MaxUnitWrites is the greatest number of writes in one unit.
	MaxUnitWrites = 4096
)

// Preset is a set of sizes for a kind of machine.
type Preset string

const (
	// Default suits PCs and servers ("lan").
	Default Preset = "lan"
	// Small suits phones and single-board computers: little memory and disk.
	Small Preset = "small"
)

// Options of Open. The zero value is Default.
type Options struct {
	Preset Preset
	// Reserve is how many bytes must be free on the disk for a commit to be
	// tried; 0 means eight memtables (256 MiB, or 64 MiB with Small).
	Reserve int64
	// MaxQueued is how many bytes may wait to be committed; 0 means 64 MiB
	// (16 MiB with Small). Beyond it units fail with ErrQueueFull.
	MaxQueued int64
	// Range names what a key belongs to, as a prefix of it: entries are counted by
	// range, and what is lost is named so. Where it returns the whole key nothing else is
	// in that range; for what several ranges begin with it returns nil. No function: all
	// entries are of one range.
	Range func(key []byte) []byte
	// Logger gets what Badger says; nil means nobody.
	Logger *slog.Logger
}

// sizes are the figures behind a preset, in bytes unless said otherwise.
type sizes struct {
	memtable   int64
	memtables  int
	l0Tables   int
	l0Stall    int
	baseTable  int64
	baseLevel  int64
	indexCache int64
	goroutines int
	maxQueued  int64
}

// With Small, one memtable waits to be written out, and a table has three quarters of one:
// Badger keeps up to eight builders of tables for a while, each with room for two tables, and
// one that has to grow for a memtable takes twice as much. They and the memtables are most of
// what a node takes that is written to without a pause (test/hoard, both processors busy: 78
// to 85 MB at most; with two memtables and tables of 2 MiB 73 to 119).
var presets = map[Preset]sizes{
	Default: {memtable: 32 << 20, memtables: 3, l0Tables: 5, l0Stall: 15, baseTable: 4 << 20,
		baseLevel: 32 << 20, indexCache: 32 << 20, goroutines: 4, maxQueued: 64 << 20},
	Small: {memtable: 8 << 20, memtables: 1, l0Tables: 2, l0Stall: 4, baseTable: 6 << 20,
		baseLevel: 8 << 20, indexCache: 2 << 20, goroutines: 1, maxQueued: 16 << 20},
}

// complete fills in defaults; it reports a preset that does not exist.
func (o Options) complete() (Options, sizes, error) {
	if o.Preset == "" {
		o.Preset = Default
	}
	sz, ok := presets[o.Preset]
	if !ok {
		return o, sz, fmt.Errorf("store: unknown preset %q: want %q or %q", o.Preset, Default, Small)
	}
	if o.Range == nil {
		o.Range = func([]byte) []byte { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxQueued <= 0 {
		o.MaxQueued = sz.maxQueued
	}
	return o, sz, nil
}

// reserve is what must be free; the memtable is the one in use, which may be
// greater than the preset's.
func (o Options) reserve(memtable int64) int64 {
	if o.Reserve > 0 {
		return o.Reserve
	}
	return 8 * memtable
}

// badgerOptions are Badger's options for a folder. Compression is off: with it
// Badger needs a block cache, which is the largest part of its memory; facts are
// small. Metrics are off: expvar is global. Blocks are checked when read, so that a
// damaged one is an error and never data.
func badgerOptions(dir string, sz sizes, log *slog.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithSyncWrites(true).
		WithBypassLockGuard(true). // our own lock says which process holds it
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithLogger(badgerLogger{log}).
		WithMemTableSize(sz.memtable).WithNumMemtables(sz.memtables).
		WithNumLevelZeroTables(sz.l0Tables).WithNumLevelZeroTablesStall(sz.l0Stall).
		WithBaseTableSize(sz.baseTable).WithBaseLevelSize(sz.baseLevel).
		WithNumCompactors(2).WithNumGoroutines(sz.goroutines).
		WithCompression(options.None).WithChecksumVerificationMode(options.OnBlockRead).
		WithBlockCacheSize(0).WithIndexCacheSize(sz.indexCache).
		WithValueThreshold(MaxValue + 1).
		WithValueLogFileSize(1 << 20) // never written to: the least that Badger takes
}
