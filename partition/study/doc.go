// Package study compares the mechanisms of package aptitude by simulation: the
// same random workflow instances are distributed by each of them, and the time
// they took and the quality they reached are compared in pairs.
//
// Where it comes from is told in docs/systems.md, The study. A [Scenario] (Parse, or Five, the
// published one) has Trials; [Run] performs one trial under each mechanism;
// [Summarize] makes the [Report] of all of them; [Trace] shows one run in
// detail, for the Gantt chart and the allocation table. Where the source leaves
// a choice open, the choice and its reason are in docs/study.md.
//
// Promises: no I/O, no clock, no goroutine. Everything random comes from the
// seed, trial and mechanism that are passed in, so that trials may run in any
// order and on any number of goroutines, and the same seed gives the same
// bytes. A *Scenario is never changed after Parse.
//
// It imports internal/plain, partition/aptitude, workflow and workflow/lxpdl;
// cmd/mutirao and node/web import it.
package study
