// Package gossip spreads news among all partners and finds out who can be
// reached, at a cost that hardly grows with their number: hashicorp/memberlist
// and libp2p's pubsub over the connections of a mesh.
//
// Promises: what it says of reachability is a hint, never the authority for
// dropping a partner (connectionTime on signed heartbeats is that); news is
// notification, not truth: it may be lost, and the receiver verifies and pulls
// what it missed. Nothing here blocks its callers, and queues are bounded.
//
// How memberlist runs over libp2p (transport.go): a node's name is its partner
// ID, its address a synthetic one that never changes, packets are frames on one
// long-lived stream per partner. Memberlist forgets a dead node; joining it
// again is ours (reconnect.go).
//
// cmd puts it together with the mesh; node talks to it through an interface of
// its own and is told through Handler.
//
// It imports workflow; internal/test/testliar and node/assemble import it.
package gossip
