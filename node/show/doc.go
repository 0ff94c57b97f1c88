// Package show says how an instance looks to people, and to the programs that ask the API: how it stands, what has
// happened, why nothing goes on, and as of when all that is known.
//
// Purpose: a [View] reads a machine, the definition with which its instance began, and what its node has heard
// (Held), and answers in the terms of node/api, with the names by which people call partners and users (instance.go,
// tasks.go, people.go, log.go, claims.go, states.go). What nobody told yet is said to be old (age.go). A partner that
// shows an instance is not taken on trust (elsewhere.go).
//
// Promises: it changes nothing, and asks nobody. Several goroutines may use a view, each for machines that it owns.
//
// It imports choreo, choreo/fact, choreo/state, dataflow, internal/plain, membership, membership/moment, node/api,
// node/wire, node/worklists, partition, partition/aptitude, workflow, workflow/amendments, workflow/diagram and
// worklist; cmd/mutirao and node import it.
package show
