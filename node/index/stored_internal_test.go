package index

import (
	"bytes"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What is stored can be read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) {
	codectest.ReadBack(t, &Summary{}, &SetAside{}, &News{})
}

// That a machine panicked is not stored: the next start tries it once more.
func TestAFaultIsNotStored(t *testing.T) {
	with, without := SetAside{Since: 1, Why: "it failed", Fault: true}, SetAside{Since: 1, Why: "it failed"}
	if a, b := codec.Encode(with), codec.Encode(without); !bytes.Equal(a, b) {
		t.Errorf("with a fault %x is stored, without one %x", a, b)
	}
}

// A summary that a version before this one stored, which did not have the subject or the nonce, is read.
func TestSummariesOfBeforeAreRead(t *testing.T) {
	now := codec.Encode(Summary{Workflow: "trip", Done: 3, Filed: true})
	var fields []codec.Raw
	if err := codec.Decode(now, &fields); err != nil || len(fields) != summaryFields {
		t.Fatalf("%d fields are stored, %v", len(fields), err)
	}
	for _, stored := range []int{summaryFields - 2, summaryFields - 1} {
		sum, err := ReadSummary(codec.Encode(fields[:stored]))
		if err != nil || sum.Workflow != "trip" || sum.Done != 3 || !sum.Filed || sum.Subject != "" || sum.Nonce != [16]byte{} {
			t.Errorf("of %d fields %+v, %v", stored, sum, err)
		}
	}
	is := Summary{Subject: "Rua 3", Nonce: [16]byte{7}}
	if sum, err := ReadSummary(codec.Encode(is)); err != nil || sum != is {
		t.Errorf("of now %+v, %v", sum, err)
	}
}

// What versions before this one noted of ended instances is read.
func TestNewsOfBeforeAreRead(t *testing.T) {
	failed := []Failure{{Slot: "go", Task: "go", Reason: "fog", At: 5}}
	lost := []unneededBefore{{User: "bea", Slot: "go", Task: "go", Why: "put back", At: 7, Made: true}}
	n, err := readNews(codec.Encode(newsBefore{Responsible: "ana", Round: 2, Failed: failed, Unneeded: lost}))
	want := Unneeded{User: "bea", Slot: "go", Task: "go", Why: "put back", At: 7, Made: true}
	if err != nil || n.Responsible != "ana" || n.Round != 2 || n.Failed[0] != failed[0] || n.Unneeded[0] != want {
		t.Errorf("of the day before %+v, %v", n, err)
	}
	n, err = readNews(codec.Encode(newsLongBefore{Responsible: "ana", Round: 2, Failed: failed}))
	if err != nil || n.Responsible != "ana" || n.Failed[0] != failed[0] || len(n.Unneeded) > 0 {
		t.Errorf("of long before %+v, %v", n, err)
	}
}

// What versions before this one noted, which did not say which files are only here, or what is only presumed, is read.
func TestNewsWithoutFilesAreRead(t *testing.T) {
	is := News{
		Responsible: "ana", Vain: []Vain{{Slot: "go"}}, Alone: []Alone{{Item: "pic", Readers: []workflow.PartnerID{"base"}}},
		Presumed: []workflow.PartnerID{"boat"},
	}
	var fields []codec.Raw
	if err := codec.Decode(codec.Encode(is), &fields); err != nil || len(fields) != newsFields {
		t.Fatalf("%d fields are stored, %v", len(fields), err)
	}
	for before, files := range map[int]int{0: 1, 1: 1, 2: 0} {
		n, err := readNews(codec.Encode(fields[:newsFields-before]))
		if err != nil || n.Responsible != "ana" || len(n.Vain) != 1 || len(n.Alone) != files || (len(n.Presumed) > 0) != (before == 0) {
			t.Errorf("of %d versions before %+v, %v", before, n, err)
		}
		if files > 0 && !n.Alone[0].equal(is.Alone[0]) {
			t.Errorf("of %d versions before its files are %+v", before, n.Alone)
		}
	}
}

// Whoever asks which files are only here looks at the instances that have some, and at none that was found to have none.
func TestOnlyWhatHasFilesAloneIsLookedAt(t *testing.T) {
	x, alone := New(), []Alone{{Item: "pic"}}
	for n := range 1000 {
		id := workflow.InstanceID{byte(n >> 8), byte(n)}
		x.Put(id, Summary{State: workflow.InstanceSucceeded, Ended: 1})
		x.Tell(id, News{})
	}
	of, other, gone := workflow.InstanceID{0, 1}, workflow.InstanceID{0, 2}, workflow.InstanceID{0, 3}
	for _, id := range []workflow.InstanceID{of, other, gone} {
		x.Tell(id, News{Alone: alone})
	}
	x.Fetched(other)
	x.Drop(gone)
	x.steps = 0
	got := x.Alone(func(workflow.InstanceID) bool { return true })
	if len(got) != 1 || got[0].ID != of || got[0].Sum.Ended != 1 || len(got[0].Files) != 1 || x.steps > 1 {
		t.Errorf("found in %d steps: %+v", x.steps, got)
	}
	x.Tell(of, News{}) // they have been fetched
	if got := x.Alone(func(workflow.InstanceID) bool { return true }); len(got) > 0 {
		t.Errorf("afterwards there are %+v", got)
	}
}
