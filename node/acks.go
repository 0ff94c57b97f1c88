package node

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps which partners are to hear that what they sent of instances is durable here. Facts of this node that have
// seen it say so as well (choreo.Bundle.SaysAll), and where work goes to and fro such facts follow soon. So an
// acknowledgement waits for them a little, unless somebody may wait for it (sending.go).

// ackPause is how long an acknowledgement waits for facts that say it: far less than firstPause, after which the partner
// would send again what it sent.
const ackPause = 100 * time.Millisecond

// ackTo is a partner that sent something of an instance.
type ackTo struct {
	h  *held
	to workflow.PartnerID
	// now: it waits for the acknowledgement, as it sends the rest only then, does not know yet that the instance is held
	// here, or has sent it all before.
	now bool
}

// acknowledgements are those that wait.
type acknowledgements struct {
	owed  map[workflow.InstanceID][]workflow.PartnerID
	queue []dueAck // in the order in which they are due
}

// dueAck is when (Awake) what is still owed of an instance is told.
type dueAck struct {
	at time.Duration
	of workflow.InstanceID
}

// owe notes that a partner is to hear what is here of an instance.
func (a *acknowledgements) owe(id workflow.InstanceID, p workflow.PartnerID, now time.Duration) {
	if slices.Contains(a.owed[id], p) {
		return
	}
	if len(a.owed[id]) == 0 {
		a.queue = append(a.queue, dueAck{now + ackPause, id})
	}
	if a.owed == nil {
		a.owed = map[workflow.InstanceID][]workflow.PartnerID{}
	}
	a.owed[id] = append(a.owed[id], p)
}

// said notes that a partner is told what is here of an instance.
func (a *acknowledgements) said(id workflow.InstanceID, p workflow.PartnerID) {
	rest := slices.DeleteFunc(a.owed[id], func(x workflow.PartnerID) bool { return x == p })
	if len(rest) == 0 {
		delete(a.owed, id)
		return
	}
	a.owed[id] = rest
}

// pause is after what time the next one is due, at most so long.
func (a *acknowledgements) pause(now, most time.Duration) time.Duration {
	if len(a.queue) == 0 {
		return most
	}
	return min(a.queue[0].at-now, most)
}

// due takes out the instances of which those that are owed it are to be told now.
func (a *acknowledgements) due(now time.Duration) (out []workflow.InstanceID) {
	n := 0
	for ; n < len(a.queue) && a.queue[n].at <= now; n++ {
		if len(a.owed[a.queue[n].of]) > 0 {
			out = append(out, a.queue[n].of)
		}
	}
	a.queue = slices.Delete(a.queue, 0, n)
	return out
}
