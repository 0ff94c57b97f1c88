package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// What cannot be taken back is done to a partner that is named, or given by its whole ID:
// a beginning of an ID may be another's tomorrow. What can be takes the beginning.
func TestWholeNamesForWhatCannotBeTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		pass(time.Minute)
		tm.add("one", guarded)
		id := tm.begin("one", "guarded", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		one, whole := tm.p["one"].api, string(tm.p["two"].id())
		start := whole[:len(whole)-2]
		const why = "has only the beginning of an ID: want a name or a whole ID"

		_, err := one.Evict(t.Context(), api.EvictRequest{Partner: start})
		wantRefusal(t, "evict", err, why)
		wantRefusal(t, "write-off", one.WriteOff(t.Context(), id, start, false), why)
		_, err = one.SetElectorate(t.Context(), api.ElectorateRequest{Set: []string{"one", start}, Override: true})
		wantRefusal(t, "electorate --override", err, why)

		if e, err := one.SetElectorate(t.Context(), api.ElectorateRequest{Set: []string{"one", start}}); err != nil ||
			len(e.Voters) != 2 {
			t.Errorf("an electorate that consents is not set: %v", err)
		}
		if _, err = one.SetElectorate(t.Context(), api.ElectorateRequest{Set: []string{"one", whole}, Override: true}); err != nil {
			t.Errorf("override with a whole ID: %v", err)
		}
	})
}
