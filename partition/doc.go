// Package partition knows how a workflow is cut: which partition each task is
// in, which tasks must report at once because somebody elsewhere waits for
// them (responseImmediate), how long a partition and the way to a task may
// take at worst, and which partner can take what. It also suggests a cut, which
// workflow check prints for the author who asks.
//
// Promises: no I/O, no clock, no goroutine, no randomness. What it returns
// depends on its arguments alone, in a fixed order, so that two nodes with one
// definition have the same plan. A *Plan is immutable and may be shared
// between goroutines; the slices it hands out must not be changed.
//
// Where its rules come from is told in docs/systems.md, Partitions.
//
// It imports partition/aptitude and workflow; many packages import it.
package partition
