package index

import (
	"bytes"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
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
