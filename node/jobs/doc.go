// Package jobs has workers do tasks: programs that come for the jobs of an application, to this
// node or by way of another member's (docs/workers.md).
//
// A [Desk] gives jobs out and takes their results; who has which job knows the pool of
// node/runner. What this node's workers do for other holders it passes on (mesh.go).
// Workers that watch are told that there may be a job (watch.go).
//
// Promises: that a worker was given a job is durable before the worker hears of it, and its
// result before the worker is told that it was taken; which result counts the instance decides.
// What another member's workers may ask of this node is rationed. Nothing is stored here.
//
// It imports choreo, choreo/fact, choreo/state, configs, membership, membership/moment, node/api,
// node/ration, node/runner, partition and workflow; node imports it.
package jobs
