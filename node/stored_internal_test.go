package node

import (
	"bytes"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Facts of a round lie together as long as their places follow one another and they are not too large; an entry is
// open if its last fact is.
func TestFactsOfARoundLieTogether(t *testing.T) {
	small, large := make([]byte, 100), make([]byte, maxTogether*3/5) // two are too large together
	stored := func(place int, raw []byte, own, open bool) choreo.Stored {
		return choreo.Stored{Place: place, Raw: raw, Own: own, Open: open}
	}
	var b batch
	b.storeFacts(workflow.InstanceID{1}, []choreo.Stored{
		stored(3, small, true, true), stored(4, small, false, false), stored(5, large, true, false), stored(6, large, true, true),
		stored(7, large, true, false),
		stored(9, small, false, true), // behind a gap
	}, 77)
	entries := []struct {
		place int
		came  []int64
		open  bool
	}{{3, []int64{0, 77, 0}, false}, {6, []int64{0}, true}, {7, []int64{0}, false}, {9, []int64{77}, true}}
	if len(b.writes) != len(entries) {
		t.Fatalf("%d entries, want %d", len(b.writes), len(entries))
	}
	for i, want := range entries {
		w := b.writes[i]
		var is []storedFact
		if err := decode(w.Value, &is); err != nil {
			t.Fatal(err)
		}
		same := len(is) == len(want.came) && bytes.Equal(w.Key, factKey(workflow.InstanceID{1}, want.place)) && w.New
		for j := range is {
			same = same && is[j].Came == want.came[j]
		}
		if !same || b.open[i] != want.open {
			t.Errorf("entry %d: %q has %d facts, open: %v; want %+v", i, w.Key, len(is), b.open[i], want)
		}
	}
}

// Of an entry each fact is read that can be, and it is told that one cannot.
func TestReadingFactsOfAnEntry(t *testing.T) {
	f := fact.Fact{
		Format: fact.Format, Instance: workflow.InstanceID{1}, Chain: fact.Chain{Author: "ana"}, Seq: 2, Prev: fact.ID{2},
		Body: fact.Body{Cancel: &fact.Cancel{}},
	}
	raw, _, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	err = readFacts(encode([]storedFact{{Raw: raw}, {Raw: []byte("none")}, {Raw: raw, Came: 5}}),
		func(f fact.Received, came int64) {
			if read++; !bytes.Equal(f.Raw, raw) || f.Fact == nil || came != int64(read-1)*5 {
				t.Errorf("fact %d: %+v came at %d", read, f, came)
			}
		})
	if err == nil || read != 2 {
		t.Errorf("%d facts were read, %v; want 2 and an error", read, err)
	}
}
