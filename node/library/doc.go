// Package library is the workflows that the mesh shares, as one node knows them: which
// are listed, by whom and under whose names, and what partners say to one another of that.
//
// It has two sides. [Definitions] is what is known, behind a lock: signed notices say that
// an author lists a definition or took it off the list (offer.go, listed.go, list.go); a
// definition is kept while somebody lists it or an instance uses it (kept.go, stored.go).
// [Topic] is the conversation: on contact what is listed, and then what changes.
//
// Promises: a change is durable before others are told of it. Nodes that know the same
// notices list the same, in whatever order they came. What is refused of others is refused
// of this node's own user, in the same words; one member fills a share of the room, and
// reading what it sends is rationed. A definition is read when it is used, and not before.
//
// Many goroutines may ask at once. With a lock held the store is waited for, and members'
// rights are asked for. What it needs of the rest of a node it names in small interfaces;
// nothing but the node puts it together.
//
// It imports configs, internal/plain, internal/said, membership/moment,
// membership/trust, node/api, node/codec, node/ration, node/store/kv, node/wire,
// partition and workflow; cmd/mutirao and node import it.
package library
