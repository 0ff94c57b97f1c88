package library

import (
	"reflect"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
)

// A listing that is stored can be read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) { codectest.ReadBack(t, &storedListing{}) }

// A listing that a version before labels stored is read as it was.
func TestListingBeforeLabels(t *testing.T) {
	got, err := decodeListing(codec.Encode(storedBefore{
		Name: "flood", Version: 2, Doc: "d", Tasks: 3, Partitions: []string{"a"}, Added: 4, Size: 5, Bare: true,
	}))
	want := storedListing{
		Name: "flood", Version: 2, Doc: "d", Tasks: 3, Partitions: []string{"a"}, Added: 4, Size: 5, Bare: true,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
	if _, err := decodeListing([]byte{0x80}); err == nil {
		t.Error("an empty list is read as a listing")
	}
}
