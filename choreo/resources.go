package choreo

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// mindUnits has those looked at that have got all their units. It reports whether one of this node's can begin.
func (d *decision) mindUnits(got []worklist.Item) (begins bool) {
	for _, i := range got {
		if a := d.state.Attempts()[fact.AttemptIDOf(i)]; a != nil {
			d.state.Move(a.Slot)
			begins = begins || a.Partner == d.self && a.Task.ByNode() && a.Start == nil
		}
	}
	return begins
}

// orphaned are the partitions with resources for which somebody waits, and whose keeper is gone or absent, by keepers.
func (o outlook) orphaned() (out []workflow.PartitionName) {
	if o.state.People().Board == nil {
		return nil
	}
	for _, r := range o.state.Definition().Resources {
		k := o.state.Keeper(r.Partition)
		if k != o.self && !slices.Contains(out, r.Partition) && !o.present(k) &&
			o.state.People().Board.Wanted(r.Partition) {
			out = append(out, r.Partition)
		}
	}
	return out
}

// watchKeeper takes the resources of a partition over whose keeper is gone or absent: the guardian at once, the next in
// its place later.
func (d *decision) watchKeeper(part workflow.PartitionName, later time.Duration) (added bool) {
	k := d.state.Keeper(part)
	t := d.clocks.Run(waits.Key{Kind: waits.Keeper, Name: string(k)}, true, d.now.Boot)
	if !d.over(t, later, true) {
		return false
	}
	x := worklist.Keep{Partition: part}
	if ks := d.state.People().Keeps[part]; len(ks) > 0 {
		x.After = worklist.ID(ks[len(ks)-1].ID)
	}
	return d.claim(x, nil)
}
