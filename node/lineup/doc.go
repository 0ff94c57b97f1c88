// Package lineup says, for each partner, which of the instances that this node began has its
// turn there: the oldest that the partner is not known to have.
//
// Instances hold room at the partners that took them in until they end, and they end only
// when all that take part have them. So two partners that are full, each with instances that
// the other lacks, would wait for each other for ever. Hence a part of a member's room is kept
// at each node for those of its instances whose turn it is there: the oldest of those
// that the node lacks. Their initiator knows which that is, and says so (wire.Facts.Next).
//
// With that the oldest instance that somebody lacks has room in the end. What was taken in on
// its turn before it is older, so all have that, and it ends; what was taken in out of turn
// leaves the part that is kept; and none needs more than that part: what would is refused for
// good, in words (wire.RefusedLarge). Of a share of instances that is one nothing can be kept.
//
// This is about what one member begins, while that one is in reach (what others pass on comes
// out of turn), and about partners that take it. What a partner refuses for another reason
// than want of room, or says nothing of, is passed over there, so that the line goes on; its
// turn comes again when it is sent after the usual pause, or as soon as the partner says a word
// of it. Meanwhile it keeps the room that others gave it. A partner that refuses without need
// delays its own copy, and the next in its line.
//
// Promises: an instance that was refused for want of room is called once when its turn has
// come; after a restart the order is as before. Many goroutines may ask at once; nobody is
// called with the lock held. What is sent, and how much room is kept, is not said here.
//
// It imports workflow; node imports it.
package lineup
