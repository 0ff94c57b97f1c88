package index

import (
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ended is an ended instance that is shared with a partner.
type ended struct {
	ID  workflow.InstanceID
	Sum Summary
}

// over reports whether an instance has ended, as far as something is known of it.
func (sum *Summary) over() bool { return sum.State != "" && sum.State != workflow.InstanceRunning }

// Shared are the ended instances in which a partner takes part, the newest first, at most so many.
func (x *List) Shared(p workflow.PartnerID, most int) (out []ended) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.roll.ended.Ascend(func(at Rank) bool {
		x.steps++
		if sum := x.all[at.ID]; slices.Contains(strings.Fields(sum.With), string(p)) {
			out = append(out, ended{at.ID, sum})
		}
		return len(out) < most
	})
	return out
}

// change changes what is known of an instance, and with it the digests and where it stands in lists. The
// caller holds x.mu.
func (x *List) change(id workflow.InstanceID, fn func()) {
	x.digest(id)
	x.uncharge(id)
	was, stood := x.all[id], x.standing(id)
	x.countPart(id, -1)
	if was.By == "" {
		x.countParts(id, -1) // it may become known who began it
	}
	fn()
	if was.By == "" {
		x.countParts(id, 1)
	}
	x.countPart(id, 1)
	x.digest(id)
	x.charge(id)
	x.roll.move(stood, x.standing(id))
}

// digest adds an instance to the digests, or takes it out of them again. One that is set
// aside is to be compared, and so left out, unless this program failed at it: then what is
// stored of it is whole.
func (x *List) digest(id workflow.InstanceID) {
	sum := x.all[id]
	q, aside := x.aside[id]
	if aside && (!q.Fault || q.Lost) || !sum.over() {
		return
	}
	for _, p := range strings.Fields(sum.With) {
		x.digests[workflow.PartnerID(p)] = closings.Xored(x.digests[workflow.PartnerID(p)], sum.Facts)
	}
}

// Gone adds the instances of which only summaries are kept: partners may have all of
// them, and the digests are to be the same.
func (x *List) Gone(digests map[workflow.PartnerID]closings.Digest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for p, d := range digests {
		x.digests[p] = closings.Xored(x.digests[p], d)
	}
}

// EndedWith is the digest of the ended instances that are shared with a partner.
func (x *List) EndedWith(p workflow.PartnerID) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	d := x.digests[p]
	return d[:]
}

// Partners are the partners that take part in an ended instance.
func (sum Summary) Partners() (out []workflow.PartnerID) {
	for _, p := range strings.Fields(sum.With) {
		out = append(out, workflow.PartnerID(p))
	}
	return out
}

// Closing is what a summary says of an instance that is given up.
func (sum Summary) Closing(id workflow.InstanceID) closings.Closing {
	return closings.Closing{
		Instance: id, Definition: sum.Definition, Workflow: sum.Workflow, Version: sum.Version, State: sum.State,
		By:      sum.By,
		Started: sum.Started, Ended: sum.Ended, Number: sum.Number, Digest: sum.Facts, With: sum.Partners(),
	}
}

// Closable reports whether all facts of an instance may be deleted.
func (sum Summary) Closable() bool { return sum.Settled && !sum.Open || sum.Closed }

const (
	// earliest is how long after its end an instance is kept in any case: one member
	// cannot make this node forget faster.
	earliest = 10 * time.Minute
	// reluctantly is the same for what somebody does not answer about, or lacks.
	reluctantly = 24 * time.Hour
)

// Closable are the instances to be given up at that age of the node, the oldest first:
// whose time is over and, where there are more than their limits, those that ended
// longest ago, a while after their end: at most so many. Those that self began for others are
// kept as these are.
func (x *List) Closable(
	l configs.Limits, age time.Duration, self workflow.PartnerID, most int,
) (due []workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	over := func(n, limit int) int { return max(n-limit+limit/8, 0) } // before the limit is reached
	early, earlyOf := over(x.tally.all.ended, quota.Others(l.Ended)), map[workflow.PartnerID]int{}
	for p, of := range x.tally.of {
		if n := over(of.ended, quota.Share(l.Ended)); n > 0 {
			earlyOf[p] = n
		}
	}
	for p, size := range x.tally.stored { // the disk likewise: an eighth of the instances
		if size > quota.Share(l.Disk)/8*7 {
			earlyOf[p] = max(earlyOf[p], 1+x.tally.of[p].ended/8)
		}
	}
	if x.tally.storedAll > quota.Others(l.Disk)/8*7 {
		early = max(early, 1+x.tally.all.ended/8)
	}
	x.roll.aged.Ascend(func(at aged) bool {
		x.steps++
		sum := x.all[at.id]
		past, least := age-sum.Age, earliest
		over := sum.Closed || past >= l.Keep
		if !over && (past < earliest || early <= 0 && len(earlyOf) == 0) {
			return false // nor is any of those behind it
		}
		if sum.Unanswered || sum.Late {
			least = reluctantly
		}
		spare := (early > 0 || earlyOf[sum.By] > 0) && past >= least
		if !over && !spare || sum.By == self && x.needed(sum) {
			return true
		}
		due = append(due, at.id)
		early--
		if earlyOf[sum.By]--; earlyOf[sum.By] <= 0 {
			delete(earlyOf, sum.By)
		}
		return len(due) < most
	})
	return due
}

// needed reports whether an instance that this node began is for a task of one that has not
// ended: what it came to is asked for then. The caller holds x.mu.
func (x *List) needed(sum Summary) bool {
	p, part := ReadPart(sum.Of)
	if !part || sum.Closed {
		return false
	}
	parent, here := x.all[p.Instance]
	return here && !(parent.Settled && parent.State != workflow.InstanceRunning)
}

// Drop takes an instance off the list that was given up. It stays in the digests.
func (x *List) Drop(id workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if sum, listed := x.all[id]; listed {
		x.tally.count(sum, -1)
		x.roll.move(x.standing(id), standing{})
	}
	x.uncharge(id)
	x.countPart(id, -1)
	x.countParts(id, -1)
	if p, part := ReadPart(x.all[id].Of); part {
		if delete(x.parts[p.Instance], id); len(x.parts[p.Instance]) == 0 {
			delete(x.parts, p.Instance)
		}
	}
	delete(x.all, id)
	x.untell(id)
	x.countParts(id, 1)
}
