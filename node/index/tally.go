package index

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// tally counts instances by their initiators.
type tally struct {
	all   tallied
	of    map[workflow.PartnerID]tallied
	begun map[workflow.InstanceID]Summary // not durable yet
	// brings are, by their initiators, how many instances there are of each definition.
	brings map[workflow.PartnerID]map[workflow.Hash]int
	// used is how many instances there are of each definition, or with it for one of their tasks; unknown, of how many
	// that is not known.
	used    map[workflow.Hash]int
	unknown int
	// stored are the bytes of the facts of instances that are not in memory, by author.
	stored    map[workflow.PartnerID]int64
	storedAll int64
}

// tallied are numbers of instances.
type tallied struct{ running, ended int }

func newTally() tally {
	return tally{
		of: map[workflow.PartnerID]tallied{}, begun: map[workflow.InstanceID]Summary{},
		brings: map[workflow.PartnerID]map[workflow.Hash]int{}, used: map[workflow.Hash]int{},
		stored: map[workflow.PartnerID]int64{},
	}
}

// begin counts an instance that is not durable yet; forget, that it will not be.
func (t *tally) begin(id workflow.InstanceID, by workflow.PartnerID, of workflow.Hash) {
	if _, counted := t.begun[id]; !counted {
		t.begun[id] = Summary{State: workflow.InstanceRunning, By: by, Definition: of}
		t.count(t.begun[id], 1)
	}
}

func (t *tally) forget(id workflow.InstanceID) {
	if sum, counted := t.begun[id]; counted {
		delete(t.begun, id)
		t.count(sum, -1)
	}
}

// count counts an instance, or with by = -1 that it is as it was no more.
func (t *tally) count(sum Summary, by int) {
	switch sum.State {
	case "": // nothing is known of it
	case workflow.InstanceRunning:
		t.add(sum.By, by, 0)
	default:
		t.add(sum.By, 0, by)
	}
	if sum.Definition == (workflow.Hash{}) {
		t.unknown += by
	} else {
		t.bring(sum.By, sum.Definition, by)
		countIn(t.used, sum.Definition, by)
	}
	for _, h := range strings.Fields(sum.Uses) {
		if b, err := hex.DecodeString(h); err == nil && len(b) == len(workflow.Hash{}) {
			countIn(t.used, workflow.Hash(b), by)
		}
	}
	if !sum.Settled {
		return // it is in memory, and weighed there
	}
	sizes := strings.Fields(sum.Sizes)
	for i, p := range strings.Fields(sum.With) {
		if i < len(sizes) {
			size, _ := strconv.ParseInt(sizes[i], 10, 64) // our own; damaged, it counts for nothing
			size *= int64(by)
			t.storedAll += size
			countIn(t.stored, workflow.PartnerID(p), size)
		}
	}
}

// countIn adds to a count of many, in which nothing stands that is 0.
func countIn[K comparable, N int | int64](counts map[K]N, k K, by N) {
	if counts[k] += by; counts[k] == 0 {
		delete(counts, k)
	}
}

func (t *tally) bring(p workflow.PartnerID, h workflow.Hash, by int) {
	of := t.brings[p]
	if of == nil {
		of = map[workflow.Hash]int{}
		t.brings[p] = of
	}
	countIn(of, h, by)
	if len(of) == 0 {
		delete(t.brings, p)
	}
}

func (t *tally) add(by workflow.PartnerID, running, ended int) {
	t.all.running += running
	t.all.ended += ended
	of := t.of[by]
	of.running += running
	of.ended += ended
	if of == (tallied{}) {
		delete(t.of, by)
		return
	}
	t.of[by] = of
}

// room reports whether one more instance of a member's has room, as an error why not; out of
// turn (lineup) it has less.
func (t *tally) room(l configs.Limits, by, self workflow.PartnerID, next bool) error {
	of, kept := t.of[by], 0
	if !next {
		kept = quota.Kept(quota.Share(l.Instances))
	}
	switch {
	case by == self && t.all.running >= l.Instances:
		return ErrTooMany
	case by == self:
		return nil
	case of.running >= quota.Share(l.Instances)-kept:
		return &quota.NoRoom{Why: wire.RefusedShare, By: by}
	case t.all.running-t.of[self].running >= quota.Others(l.Instances)-kept || t.all.running >= l.Instances:
		return &quota.NoRoom{Why: wire.RefusedFull, By: by}
	case of.ended >= quota.Share(l.Ended) || t.all.ended >= quota.Others(l.Ended):
		return &quota.NoRoom{Why: wire.RefusedEnded, By: by}
	}
	return nil
}

var ErrTooMany = errors.New("this node takes part in as many instances as it may: " +
	"raise limits.instances or finish some")
