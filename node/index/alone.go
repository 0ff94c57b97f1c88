package index

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Alone is a file that somebody gave here with a task of an instance, and that no other partner was known to have.
type Alone struct {
	_    struct{} `cbor:",toarray"`
	Item workflow.DataName
	File string
	Task workflow.TaskName
	User worklist.User // who gave it; empty: the partner
	At   int64         // ms
	// Readers are the other partners that take part and may read it.
	Readers []workflow.PartnerID
}

func (a Alone) equal(b Alone) bool {
	return a.Item == b.Item && a.File == b.File && a.Task == b.Task && a.User == b.User && a.At == b.At &&
		slices.Equal(a.Readers, b.Readers)
}

// Lone is what is noted of an ended instance that has such files.
type Lone struct {
	ID    workflow.InstanceID
	Sum   Summary
	Files []Alone
}

// Alone are the ended instances of which such files are noted, as far as they are meant and not all of these are known
// to be elsewhere by now (Fetched), in the order of their IDs. So nothing is looked at of the many others.
func (x *List) Alone(meant func(workflow.InstanceID) bool) (out []Lone) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id := range x.alone {
		x.steps++
		if sum, here := x.all[id]; here && meant(id) {
			out = append(out, Lone{id, sum, x.news[id].Alone})
		}
	}
	slices.SortFunc(out, func(a, b Lone) int { return a.ID.Compare(b.ID) })
	return out
}

// Fetched notes that other partners have all such files of an instance. That is not stored: it is found once more after
// a start.
func (x *List) Fetched(id workflow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.alone, id)
}
