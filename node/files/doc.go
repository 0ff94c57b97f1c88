// Package files keeps the content of files that instances have among their data, and
// gets it from partners. In facts there is only a reference (workflow.File); who needs
// the content fetches it, from any partner that has it and will give it.
//
// A file is cut into chunks of 1 MiB. Its root, which the reference carries, is a hash of
// its length and of the hashes of its chunks. So each chunk can be verified by itself, one
// that is wrong is fetched again, and after a break only what is not here is fetched.
//
// Promises: a file that is kept is on disk with all of its bytes, synced, before anybody
// hears of it; what does not fit its hash is never given to anybody, not even if the disk
// changed it later; content stays as long as an instance that is here has it, and a day
// longer; what others make this node keep is bounded, in all and by who began the
// instance; so is what waits to come here, and files that do not come hold up only those of
// the same initiator. What this node's own disk does not take is no partner's fault.
//
// It imports membership/moment, node/ration, node/wire and workflow; internal/test/testliar, node,
// node/assemble, node/doctor and node/filing import it.
package files
