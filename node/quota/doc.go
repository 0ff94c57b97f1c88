// Package quota says how much of what a node can hold one member may fill, and all others
// together; and in words why an instance was not taken in.
//
// Promises: one member fills no more than its share, and what others fill leaves something for
// the node's own user. What is counted, and when, is not said here.
//
// It imports node/wire and workflow; node and node/index import it.
package quota
