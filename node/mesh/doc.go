// Package mesh carries opaque frames between partners. It is the only importer of
// libp2p, and knows nothing of workflows.
//
// # Connections
//
// The first stream of each connection is the hello: both sides show credentials
// and their boot counter, and Config.Admit decides. Until then every other
// protocol is refused. The hello stream stays open and carries pings, so that a
// partner that fell silent is noticed in about ten seconds, however busy the
// other streams are. A larger boot counter closes the same partner's older
// connections: they lead to a process that is gone.
//
// Two partners that dial each other at the same moment may end up with two
// connections; each side sends on one of them, preferably the one that the other
// sends on.
//
// # Promises
//
//   - Between OnUp and OnDown of a partner, frames that Send accepted go out once,
//     in order, over one connection. What was not processed when OnDown comes may
//     or may not have arrived: acknowledgements are the caller's affair.
//   - Handler methods for one partner are called one at a time: OnUp, frames,
//     OnDown, and so on. Different partners do not wait for each other. OnFrame may
//     block; the partner's sending then comes to a stop, and nobody else's.
//   - Send, Want, SetAddrs and ClosePeer never wait for the network.
//   - Queues, frames, streams, connections, strangers and the address book are
//     bounded (Limits); what goes over a bound is refused and counted.
//   - Strangers cannot keep others out: they have few places, and yield them to
//     newcomers (lobby.go); what all need before it is known who they are is
//     rationed (rations.go).
//   - A member that sends what a correct one never does is cut off, and kept off for
//     Limits.PenaltyTime; the key of somebody evicted is let in once in that time,
//     to ask why (gate.go).
//
// It imports node/wire and workflow; internal/test/testliar and node/assemble import it.
package mesh
