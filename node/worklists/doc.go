// Package worklists answers a node's users which people's tasks they have or may take, and
// has the partners that hold those write down what users say of them.
//
// Purpose: what a user wants is signed here, by the user's key, and goes to the partner that
// holds the task, which may be this one (ask.go). The holder checks who speaks, writes it
// into the instance's facts, and answers when that is durable (answer.go). A list is put
// together from what those say who hold tasks, and of whoever cannot be asked from what is
// known here, with its age (list.go). What a user has locked, and did out of reach of the
// partner that holds it, is kept on the device (kept.go) until that has it (deliver.go). What
// a user set for the list, and has read, follows to the user's other nodes (follow.go). Partners are
// told how much people have to do of the items that this node holds (loads.go).
//
// Promises: nothing is answered before it is durable at the holder. A word that was sent twice
// counts once. How much a member may have a node do is bounded.
//
// It imports choreo, choreo/fact, choreo/state, membership/moment, node/api, node/codec,
// node/ration, node/store/kv, node/turns, node/users, node/wire, workflow, worklist,
// worklist/device and worklist/own; internal/sim, internal/test/testliar, node, node/filing and
// node/show import it.
package worklists
