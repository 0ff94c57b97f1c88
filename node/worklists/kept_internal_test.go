package worklists

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
	"github.com/mutirao-mesh/mutirao/node/users"
)

// What is kept of an item can be read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) {
	codectest.ReadBack(t, &kept{}, &keptBefore{})
}

// What a version kept that knew nothing of forms is read as it was meant.
func TestWhatWasKeptBeforeIsRead(t *testing.T) {
	was := keptBefore{
		User: "u", Task: "feed", Slot: "feed", At: "base", Word: []byte{1}, What: "completed", Done: 7, RefusedAt: 9,
	}
	k, err := readKept(codec.Encode(was))
	if err != nil {
		t.Fatal(err)
	}
	if k.User != "u" || k.Task != "feed" || k.At != "base" || k.What != "completed" || k.Done != 7 ||
		k.RefusedAt != 9 || k.more().Sheet != nil {
		t.Errorf("it is read as %+v", k)
	}
	if _, err := readKept([]byte{0x81, 0}); err == nil {
		t.Error("what nobody kept is read")
	}
}

// What people see of an item that is kept comes back with its form.
func TestTheFormIsKept(t *testing.T) {
	until := time.Unix(100, 0).UTC()
	r := Row{Doc: "Weigh it.", Subject: "ward 3", Ends: "timeout", Until: until}
	k := keptOf(users.Who{ID: "u"}, &r, until, &Sheet{Fields: []api.Field{{Name: "weight", Type: "integer"}}})
	back, err := readKept(codec.Encode(*k))
	if err != nil {
		t.Fatal(err)
	}
	row, m := back.row(), back.more()
	if row.Doc != r.Doc || row.Subject != r.Subject || row.Ends != r.Ends || !row.Until.Equal(until) ||
		len(m.Sheet.Fields) != 1 {
		t.Errorf("it comes back as %+v with %+v", row, m)
	}
}

// What a holder answers begins with that it is refused, and so does the outbox: it is said once, also of what was kept
// so.
func TestARefusalIsSaidOnce(t *testing.T) {
	d := &Desk{in: Surroundings{People: onlyBia{}, Instances: &nothing{}}}
	k := kept{User: "bia", Refused: state.ErrNotNow.Error() + ": feed waits for weigh"}
	if x := d.undelivered(&k); x.Refused != "feed waits for weigh" {
		t.Errorf("it is refused as %q", x.Refused)
	}
}
