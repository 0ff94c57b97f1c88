package quota

import (
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What others make this node hold has limits (configs.Limits). One member fills at
// most a share of each, so that a member that floods the node crowds nobody out; and
// all others together leave a reserve, so that the node's own user can always begin
// something.
const (
	Members    = 4 // one member fills at most one part of so many
	ownReserve = 8 // one part of so many is for the node's own user
)

// Share is how much of a limit one member may fill.
func Share[T int | int64](limit T) T { return max(limit/Members, 1) }

// Kept is how much of a member's share of a limit is kept for instances whose turn it is.
func Kept[T int | int64](share T) T { return share / 2 }

// Others is how much of a limit all members but this one may fill together.
func Others[T int | int64](limit T) T { return limit - (limit+ownReserve-1)/ownReserve }

// NoRoom refuses an instance that another began, for want of room.
type NoRoom struct {
	Why wire.RefusedWhy
	By  workflow.PartnerID
}

func (e *NoRoom) Error() string { return "no room for this instance: " + refusals[e.Why].here }

// Reason is what it is called where refusals are counted.
func (e *NoRoom) Reason() string { return refusals[e.Why].reason }

// There says why an instance was not taken in to the people of the node to which that was said.
func There(why wire.RefusedWhy) string { return refusals[why].there }

// refusals say why an instance is not taken in: to the node to which it was
// refused, and to the people of the node that refused it.
var refusals = map[wire.RefusedWhy]struct{ there, here, reason string }{
	wire.RefusedShare: {"it has as many unfinished instances there as one member may begin",
		"its initiator has begun as many unfinished ones as one member may", "instances-over-share"},
	wire.RefusedFull: {"that node has as many unfinished instances as it takes",
		"there are as many unfinished ones as others may begin", "instances-over-limit"},
	wire.RefusedHeavy: {
		"what its initiator began and wrote, or what all others did, with what that still needs, fills the room that it may on that node",
		"what its initiator began and wrote, or what all others did, with what that still needs, fills the room that it may", "bytes-over-share"},
	wire.RefusedLarge: {
		"it is larger than that node takes: its limits.facts or limits.bytes, or limits.memory for so many tasks, would have to be raised",
		"it is larger than limits.facts and limits.bytes allow, or its tasks need more than half of what limits.memory or limits.disk gives one member",
		"instance-too-large"},
	wire.RefusedWorkflows: {"it is of a workflow that nobody lists there, and there is no room for more of those: list it (mutirao workflow add)", "as many workflows that nobody lists are kept for its initiator's instances as one member, or all, may bring", "definitions-beside-over-share"},
	wire.RefusedLives:     {there: "it takes in no facts of so many lives of this node's store"},
	wire.RefusedBeginner:  {there: "the user who began it may not begin it any more, as far as is known there"},
	wire.RefusedUnfit: {there: "by that node's version of the program it has not begun as an instance may, and the node's log says why: " +
		"the two versions may differ (mutirao version)"},
	wire.RefusedClosed: {there: "it says that it has ended, or that it has forgotten the instances of that time"},
	wire.RefusedEnded: {"that node keeps as many ended instances as it can, and may not delete them yet",
		"as many ended ones are kept as others may have, and may not be deleted yet", "ended-over-limit"},
}
