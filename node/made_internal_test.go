package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/membership"
)

// However much tasks make, the record has room for what users registered, and of
// what tasks made it has the newest.
func TestRecordsHoldTheNewestOfWhatTasksMade(t *testing.T) {
	data := map[string]storedData{}
	put := func(name string, terms dataTerms) {
		data[name] = storedData{Name: name, Content: []byte("x"), Terms: terms}
	}
	long := strings.Repeat("r", 100)
	for i := range 500 {
		put(fmt.Sprintf("made-%03d", i), dataTerms{ByTask: true, Made: int64(i), Readers: []string{long, long}})
	}
	for i := range 20 {
		put(fmt.Sprintf("user-%02d", i), dataTerms{Made: 1})
	}
	put("over", dataTerms{Made: 1, Until: 1000})
	put("made-over", dataTerms{ByTask: true, Made: 999, Until: 1000})
	var r membership.Record
	offerData(&r, data, 1000)
	users, made := 0, 0
	for _, d := range r.DataSets {
		if strings.HasPrefix(d.Name, "user-") {
			users++
		} else if d.Name > "made-480" && d.Name < "made-500" {
			made++
		}
	}
	if size := len(membership.EncodeRecord(r)); users != 20 || made < 10 || users+made != len(r.DataSets) || size > membership.MaxRecord-spareRecord {
		t.Errorf("the record of %d bytes has %d sets of users, and %d of the newest that tasks made, of %d", size, users, made, len(r.DataSets))
	}
	// Where users leave no room, there is none for what tasks made.
	for i := range 120 {
		put(fmt.Sprintf("user-long-%03d", i), dataTerms{Made: 1, Readers: []string{long}})
	}
	offerData(&r, data, 1000)
	for _, d := range r.DataSets {
		if strings.HasPrefix(d.Name, "made-") {
			t.Fatalf("%s is offered, in a record of %d bytes", d.Name, len(membership.EncodeRecord(r)))
		}
	}
}

// What tasks make is kept within bounds here, too: the oldest goes, and what is not
// valid any more.
func TestOldestOfWhatTasksMadeGoes(t *testing.T) {
	p := &people{data: map[string]storedData{"user": {Name: "user"}}}
	for i := range membership.MaxItems {
		name := fmt.Sprintf("made-%03d", i)
		p.data[name] = storedData{Name: name, Terms: dataTerms{ByTask: true, Made: int64(i + 1)}}
	}
	p.data["over"] = storedData{Name: "over", Terms: dataTerms{Until: 1000}}
	if gone := fmt.Sprint(p.superfluous("new", 1000)); gone != "[made-000 over]" {
		t.Errorf("for a new one %v go", gone)
	}
	if gone := fmt.Sprint(p.superfluous("made-007", 1000)); gone != "[over]" {
		t.Errorf("for one that is replaced %v go", gone)
	}
}

// A data set from before there were terms is read as one that a user registered for
// ever and for everybody.
func TestOldDataSetsAreRead(t *testing.T) {
	old := struct {
		_       struct{} `cbor:",toarray"`
		Name    string
		Content []byte
	}{Name: "map", Content: []byte("x")}
	b, err := cbor.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	d, err := decodeData(b)
	if err != nil || d.Name != "map" || string(d.Content) != "x" || d.Terms.ByTask || !d.Terms.valid(1<<60) {
		t.Errorf("got %+v, %v", d, err)
	}
	if _, err := decodeData([]byte("junk")); err == nil {
		t.Error("junk is accepted")
	}
}
