// Package filing is what instances have to do with files: who may read them, where their content may be, and that it
// comes here when a task needs it. The content itself is kept, asked for and given by node/files, whatever it means.
//
// Purpose: a file of an instance is read by whoever has a task that reads it, or may by its definition (reading.go).
// It is fetched from those that gave it, and then from the others that take part, before a task here begins
// (content.go, runner.go); what an application made in its folder is kept as the instance's. People see where
// content is (shown.go).
//
// Promises: nobody is given a file for having named it. A file counts for who began the instance. What waits for a
// file costs no goroutine. Instances are read by the goroutines that own them alone (Instances).
//
// It imports choreo, membership, membership/moment, node/api, node/files, node/index, node/runner, node/store/kv,
// node/worklists, workflow and worklist; node imports it.
package filing
