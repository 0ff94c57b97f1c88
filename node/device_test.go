package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// A device whose battery is low locks nothing more, unless it is on the mains; what it has locked it keeps, and
// can hand in. It says how full the battery is.
func TestADeviceLowOnEnergyLocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		_, first := tm.rounds("visits", nil)
		is := &api.Battery{Percent: 21}
		tm.again("tablet", nil, func(p *node.Parts) {
			p.Config.LockAbove = 20
			p.Battery = func() *api.Battery { return is }
		}, "base")
		pass(time.Minute)
		if err := tm.claim("tablet", "bia", api.ClaimLock, first); err != nil {
			t.Fatalf("with a little more than is needed: %v", err)
		}
		_, second := tm.rounds("visits", nil)
		is.Percent = 20
		wantCode(t, tm.claim("tablet", "bia", api.ClaimLock, second), api.Refused,
			"battery at 20 %, and locks nothing at 20 % or less")
		if err := tm.claim("tablet", "bia", api.ClaimLock, first); err != nil {
			t.Errorf("what is locked already, once more: %v", err)
		}
		if err := tm.claim("tablet", "bia", api.ClaimSelect, second); err != nil {
			t.Errorf("to select needs no energy: %v", err)
		}
		if f := tm.finding("tablet", "battery"); f.State != api.FindingWarning || !strings.Contains(f.What, "battery at 20 %") {
			t.Errorf("doctor says %+v", f)
		}
		is.Charging = true
		if err := tm.claim("tablet", "bia", api.ClaimLock, second); err != nil {
			t.Errorf("on the mains: %v", err)
		}
		st, err := tm.p["tablet"].api.Status(t.Context())
		if err != nil || st.Device.Battery == nil || *st.Device.Battery != *is || st.Device.OS == "" {
			t.Errorf("status says %+v, %v", st, err)
		}
		if f := tm.finding("tablet", "battery"); f.State != api.FindingOK {
			t.Errorf("doctor says %+v", f)
		}
		is.Charging = false
		if err := tm.hand("tablet", "bia", first, map[string]string{"weight": "3"}); err != nil {
			t.Errorf("what was locked is handed in: %v", err)
		}
	})
}

// Where nobody has set how full the battery has to be, items are locked with none as well: some say 0 % all the time.
func TestADeviceLocksWhateverItsBatteryHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		_, visit := tm.rounds("visits", nil)
		tm.again("tablet", nil, func(p *node.Parts) {
			p.Battery = func() *api.Battery { return &api.Battery{} }
		}, "base")
		pass(time.Minute)
		if err := tm.claim("tablet", "bia", api.ClaimLock, visit); err != nil {
			t.Error(err)
		}
		if f := tm.finding("tablet", "battery"); f.State != api.FindingOK {
			t.Errorf("doctor says %+v", f)
		}
	})
}
