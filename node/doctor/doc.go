// Package doctor looks for what is wrong with a node, its device and its links, and says what to
// do about it.
//
// Promises: it changes nothing, keeps nothing, and asks by interfaces of its own; a finding that
// is not well says how to mend it. What a topic of the node knows best it says itself (clocks,
// files).
//
// It imports configs, internal/private, membership, membership/moment, membership/trust,
// node/addresses, node/api, node/certificates, node/clocks, node/files and workflow; node
// and node/assemble import it.
package doctor
