package worklist

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Part is a partition whose holder is asked for some of the items that are locked together.
type Part struct {
	Partition workflow.PartitionName
	Holder    workflow.PartnerID
	Items     []Item
}

// Joint is the lock of items that several partners hold, all or none (rule 5). First
// each holder is asked to keep its items, in the order of the partitions' names: a holder
// refuses at once and never waits, so two users cannot wait for each other. When all
// keep theirs, each is asked for the lock. If one refuses, all is given back, also at a holder
// that did not answer. What is kept ends by its lease if the device is lost in between.
type Joint struct {
	parts  []Part
	keeps  int // of the parts, the first so many keep their items, or may do so
	locked int
	failed error
	given  int // back, from the last
}

// NewJoint begins a joint lock.
func NewJoint(parts []Part) *Joint {
	by := slices.Clone(parts)
	slices.SortFunc(by, func(x, y Part) int {
		return cmp.Or(cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Holder, y.Holder))
	})
	return &Joint{parts: by}
}

// JointStep is what a device is to do next about a joint lock.
type JointStep struct {
	Part Part
	Mode Mode   // what to ask for; empty: give the items back
	With []Item // those of the other parts
}

// Next is the next step; false: there is none, and Done says how it ended.
func (j *Joint) Next() (JointStep, bool) {
	switch {
	case j.failed != nil && j.given < j.keeps:
		return JointStep{Part: j.parts[j.keeps-1-j.given]}, true
	case j.failed != nil || j.locked == len(j.parts):
		return JointStep{}, false
	case j.keeps < len(j.parts):
		return JointStep{j.parts[j.keeps], Handed, j.others(j.keeps)}, true
	}
	return JointStep{j.parts[j.locked], Lock, j.others(j.locked)}, true
}

// Unanswered takes in that the holder of the last step did not answer: what it was asked for it may have done.
func (j *Joint) Unanswered(err error) {
	if j.failed == nil && j.keeps < len(j.parts) {
		j.keeps++
		j.failed = err
		return
	}
	j.Answered(err)
}

// Answered takes in what the holder of the last step answered; nil: it did what it was asked for.
func (j *Joint) Answered(err error) {
	switch {
	case j.failed != nil:
		j.given++
	case err != nil:
		j.failed = err
	case j.keeps < len(j.parts):
		j.keeps++
	default:
		j.locked++
	}
}

// Done reports whether all is locked. The error says why nothing is; both nil and false: it goes on.
func (j *Joint) Done() (bool, error) {
	return j.failed == nil && j.locked == len(j.parts), j.failed
}

// others are the items of all parts but one, sorted.
func (j *Joint) others(but int) (out []Item) {
	for n, p := range j.parts {
		if n != but {
			out = append(out, p.Items...)
		}
	}
	slices.SortFunc(out, Item.Compare)
	return out
}
