// Package sim runs many real nodes in one goroutine, in virtual time: the same
// core and the same driver as in the field, on disks, links and clocks that
// fail as a seed says.
//
// Promises: a run is a function of its Plan; a seed gives the same plan, the
// same run and the same outcome on every machine. It reads no clock and starts
// no goroutine. A run checks the invariants of the design as it goes and at its
// end, after everything has healed; a failing plan can be shrunk to the few
// faults that it takes, and printed as a text that people can read.
//
// It imports choreo/fact, choreo/state, configs, contingency/waits, internal/sim/meaning,
// membership, membership/moment, membership/trust, membership/users, node, node/api, node/runner,
// node/store/kv, node/wire, node/worklists, partition, workflow, workflow/amendments and worklist; only
// tests import it.
package sim
