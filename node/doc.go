// Package node is the driver around the pure core: it makes facts durable,
// sends them, runs tasks, keeps the partner list and answers the local API.
//
// Promises: nothing is sent, started or reported before it is durable; an
// acknowledgement names only what is durable here. Each instance has one owner
// goroutine (shard.go); all that happens to it comes in by one channel of
// events, and what the core asks for is carried out in the order of
// choreo.Effects. After a failed write the instance is loaded again from what is
// durable. What panics in the machine of an instance stops that instance (contained.go).
//
// It declares the small interfaces that it needs (Store, Carrier, Runner);
// package node/assemble puts a whole node together. Node has its topics (topics.go) take
// their turns; what can be asked of them is its Service (service.go).
//
// It imports choreo, choreo/fact, choreo/log, choreo/state, configs, contingency/waits,
// dataflow, internal/plain, internal/private, internal/said, membership, membership/election,
// membership/invitation, membership/moment, membership/trust, membership/users, node/addresses,
// node/api, node/assignment, node/certificates, node/clocks, node/closings, node/codec,
// node/datasets, node/doctor, node/elections, node/evictions, node/files, node/filing,
// node/index, node/jobs, node/joining, node/library, node/lineup, node/overview, node/profile,
// node/quota, node/ration, node/refusals, node/roster, node/runner, node/show, node/store/kv,
// node/turns, node/users, node/wire, node/worklists, partition, partition/aptitude, workflow,
// workflow/amendments, worklist and worklist/device; cmd/mutirao, internal/sim,
// internal/test/testliar, internal/test/testnode and node/assemble import it.
package node
