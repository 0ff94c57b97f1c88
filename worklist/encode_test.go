package worklist

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

var written = []Body{
	Grant{Items: []Item{{Slot: "a"}, {Assigned: ID{1}, Slot: "b"}}, Mode: Lock, Lease: DefaultLease(Lock)},
	Grant{Items: []Item{{Slot: "a"}}, Mode: Select},
	Release{Item: Item{Slot: "a"}, Grant: ID{2}},
	Release{Item: Item{Assigned: ID{1}, Slot: "a"}, Grant: ID{2}, Reason: "the car broke down"},
	Revoke{Item: Item{Slot: "a"}, Grant: ID{2}, Cause: ByRemoval},
	Result{
		Item: Item{Slot: "a"}, Grant: ID{2}, Outputs: map[workflow.DataName]workflow.Value{"x": "1", "y": "two words"},
	},
	Result{
		Item: Item{Slot: "a"}, Grant: ID{2}, Failed: true, Reason: "storm",
		Outputs: map[workflow.DataName]workflow.Value{},
	},
	Close{Item: Item{Slot: "a"}, Result: ID{3}},
	Close{Item: Item{Slot: "a"}, Order: ID{4}},
	Order{Item: Item{Assigned: ID{1}, Slot: "a"}, What: Again, Reason: "the road is open"},
	Order{What: Cancel},
	NewDueTransfer(Item{Slot: "a"}, "ana"),
	Extend{Item: Item{Assigned: ID{1}, Slot: "a"}, Due: Due{After: 50 * time.Hour}},
	Extend{Item: Item{Slot: "a"}, Due: Due{At: time.UnixMilli(1_700_000_000_123).UTC()}},
	Offer{Item: Item{Slot: "a"}, To: []User{"ana", "bia"}, Under: ID{5}},
	Notify{Policy: Policy{Name: workflow.NotifyFewestAssigned, N: 2}},
	Notify{Policy: Policy{Name: workflow.NotifyAll}},
	Reserve{Item: Item{Assigned: ID{1}, Slot: "lift"}, Resources: []Resource{"crane", "truck"}},
	Grant{
		Items: []Item{{Slot: "b"}, {Slot: "a"}}, Mode: Handed, Lease: time.Hour,
		With: []Item{{Slot: "c"}, {Assigned: ID{1}, Slot: "c"}},
	},
	Grant{Items: []Item{{Slot: "a"}}, Mode: Lock, With: []Item{{Slot: "b"}}},
	Grant{Items: []Item{{Slot: "a"}}, Mode: Lock, With: []Item{{Slot: "b"}}, Anew: []ID{{2}, {3}}},
	Grant{Items: []Item{{Slot: "a"}}, Mode: Lock, Anew: []ID{{2}}},
	Result{
		Item: Item{Slot: "b"}, Grant: ID{1}, Outputs: map[workflow.DataName]workflow.Value{"x": "1"},
		Upon: []Basis{{Item{Slot: "a"}, ID{2}}},
	},
	Amend{Patch: `[{"kind":"task","name":"a","key":"timeout","value":"2h"}]`},
	Keep{Partition: "depot"},
	Keep{Partition: "depot", After: ID{7}},
}

// What is written down is read as it was meant, and in no other way.
func TestBodiesAreWrittenInOneWay(t *testing.T) {
	for _, b := range written {
		raw, err := Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(raw)
		if err != nil || !reflect.DeepEqual(got, b) {
			t.Errorf("%#v is read as %#v, %v", b, got, err)
		}
		if _, err := Decode(append(bytes.Clone(raw), 0)); err == nil {
			t.Errorf("%#v is read with something behind it", b)
		}
	}
	// {1: [[[h'00…', "a"]], "select", 0]} with 0 in two bytes.
	raw, err := Encode(Grant{Items: []Item{{Slot: "a"}}, Mode: Select})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(append(raw[:len(raw)-1], 0x18, 0)); err == nil {
		t.Error("a number that is written in a longer way is read")
	}
}

func TestWhatIsNotWrittenDown(t *testing.T) {
	items := make([]Item, MaxGranted+1)
	for i := range items {
		items[i] = Item{Assigned: ID{byte(i)}, Slot: "a"}
	}
	one := []Item{{Slot: "a"}}
	for what, b := range map[string]Body{
		"not yet written down":          Begin{Item: one[0]},
		"notifies 65 users":             Notify{Policy: Policy{Name: workflow.NotifyFewestAssigned, N: 65}},
		"notifies all, and names":       Notify{Policy: Policy{Name: workflow.NotifyAll, N: 1}},
		"no policy":                     Notify{Policy: Policy{Name: "some", N: 1}},
		"an offer to all":               Offer{Item: one[0], All: true},
		"an offer to 0 people":          Offer{Item: one[0]},
		"an offer to 65 people":         Offer{Item: one[0], To: make([]User, workflow.MaxNotified+1)},
		"people in order, each once":    Offer{Item: one[0], To: []User{"ana", "ana"}},
		"units of 0 resources":          Reserve{Item: one[0]},
		"resources in order, each once": Reserve{Item: one[0], Resources: []Resource{"truck", "crane"}},
		"that was reopened":             Reserve{Item: one[0], Round: 1, Resources: []Resource{"crane"}},
		"the partition has a name of 0": Keep{},
		"with a result and by an order": Close{Item: one[0], Result: ID{1}, Order: ID{1}},
		"an amendment of 0 bytes":       Amend{},
		"an amendment of 4097 bytes":    Amend{Patch: strings.Repeat("x", MaxAmend+1)},
		"that names no task":            Order{What: Stop},
		"names no deadline":             Extend{Item: one[0]},
		"names two deadlines":           Extend{Item: one[0], Due: Due{After: time.Hour, At: time.UnixMilli(1)}},
		"at most 876000h":               Extend{Item: one[0], Due: Due{After: MaxDue + 1}},
		"in the year 10000": Extend{
			Item: one[0], Due: Due{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		},
		"that is all that is said":       Transfer{Item: one[0], To: "ana", Cause: ByDeadline, Reason: "late"},
		"cancel the instance that names": Order{Item: Item{Assigned: ID{1}}, What: Cancel},
		`to "dance"`:                     Order{Item: one[0], What: "dance"},
		"reason of 5001":                 Order{Item: one[0], What: Stop, Reason: strings.Repeat("a", 5001)},
		"revoked by an order":            Revoke{Item: one[0], Cause: ByOrder, Order: ID{1}},
		"no such one":                    Revoke{Item: one[0], Cause: ByDeadline},
		"0 items":                        Grant{Mode: Select},
		"65 items":                       Grant{Items: items, Mode: Select},
		"twice":                          Grant{Items: append(one, one...), Mode: Select},
		"once more in mode":              Grant{Items: one, Mode: Select, Anew: []ID{{1}}},
		"65 earlier words":               Grant{Items: one, Mode: Lock, Anew: make([]ID, MaxGranted+1)},
		"has the items are not named":    Grant{Items: one, Mode: Lock, Anew: []ID{{2}, {1}}},
		"in mode":                        Grant{Items: one, Mode: Handed},
		"a lease":                        Grant{Items: one, Mode: Select, Lease: 400 * 24 * time.Hour},
		"a name of 0 bytes":              Release{},
		"give back of 501 bytes":         Release{Item: one[0], Reason: strings.Repeat("a", MaxBack+1)},
		"a name of 200 bytes":            Release{Item: Item{Slot: workflow.TaskName(strings.Repeat("a", 200))}},
		"a reason":                       Result{Item: one[0], Failed: true, Reason: strings.Repeat("a", 5000)},
		"brings data": Result{
			Item: one[0], Failed: true, Outputs: map[workflow.DataName]workflow.Value{"x": "1"},
		},
		"not the text": Result{
			Item: one[0], Outputs: map[workflow.DataName]workflow.Value{"x": int64(1)},
		},
		"made from 65 others": Result{Item: one[0], Upon: make([]Basis, MaxGranted+1)},
		"made from itself":    Result{Item: one[0], Upon: []Basis{{one[0], ID{1}}}},
		"or from no word":     Result{Item: one[0], Upon: []Basis{{Item{Slot: "b"}, ID{}}}},
		"made from is not named in order": Result{
			Item: one[0], Upon: []Basis{{Item{Slot: "b"}, ID{1}}, {Item{Slot: "b"}, ID{2}}},
		},
		"several holders in mode":              Grant{Items: one, Mode: Select, With: []Item{{Slot: "b"}}},
		"items: want 1 to 64":                  Grant{Items: one, Mode: Lock, With: items[:MaxGranted]},
		"other holders are not named in order": Grant{Items: one, Mode: Lock, With: []Item{{Slot: "c"}, {Slot: "b"}}},
		"other holders are not named":          Grant{Items: one, Mode: Lock, With: one},
		"bytes, at most 131072: keep ": Result{
			Item: one[0], Outputs: map[workflow.DataName]workflow.Value{"x": strings.Repeat("a", MaxSays)},
		},
	} {
		if _, err := Encode(b); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%T: %v, want it to say %q", b, err, what)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range written {
		raw, err := Encode(b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := Decode(raw)
		if err != nil {
			return
		}
		again, err := Encode(b)
		if err != nil || !bytes.Equal(again, raw) {
			t.Errorf("%x is written again as %x, %v", raw, again, err)
		}
	})
}
