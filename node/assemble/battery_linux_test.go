package assemble

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// How full a machine's batteries are is read from folders as Linux has them.
func TestBattery(t *testing.T) {
	supply := func(says ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(says); i += 2 {
			out[says[i]] = says[i+1]
		}
		return out
	}
	for _, x := range []struct {
		name     string
		supplies map[string]map[string]string
		want     *api.Battery
	}{
		{"no battery", map[string]map[string]string{"AC": supply("type", "Mains", "online", "1")}, nil},
		{"no folder", nil, nil},
		{"one that is used up", map[string]map[string]string{
			"AC":   supply("type", "Mains", "online", "0"),
			"BAT0": supply("type", "Battery", "capacity", "7", "status", "Discharging"),
		}, &api.Battery{Percent: 7}},
		{"one that is charged", map[string]map[string]string{
			"battery": supply("type", "Battery", "capacity", "41", "status", "Charging"),
		}, &api.Battery{Percent: 41, Charging: true}},
		{"one that is kept as it is", map[string]map[string]string{
			"BAT1": supply("type", "Battery", "capacity", "80", "status", "Not charging"),
		}, &api.Battery{Percent: 80, Charging: true}},
		{"one that does not say, beside a charger", map[string]map[string]string{
			"AC":   supply("type", "Mains", "online", "1"),
			"BAT0": supply("type", "Battery", "capacity", "55", "status", "Unknown"),
		}, &api.Battery{Percent: 55, Charging: true}},
		{"one that does not say, beside one of a charger's ways in", map[string]map[string]string{
			"usb":     supply("type", "USB", "online", "0"),
			"battery": supply("type", "Battery", "capacity", "55", "status", "Unknown"),
		}, &api.Battery{Percent: 55}},
		{"two, and that of a mouse", map[string]map[string]string{
			"BAT0":  supply("type", "Battery", "capacity", "0", "status", "Unknown"),
			"BAT1":  supply("type", "Battery", "capacity", "63", "status", "Discharging"),
			"mouse": supply("type", "Battery", "capacity", "99", "status", "Full", "scope", "Device"),
		}, &api.Battery{Percent: 63}},
		{"one that says nothing that can be read", map[string]map[string]string{
			"BAT0": supply("type", "Battery", "capacity", "much"), "BAT1": supply("type", "Battery", "capacity", "812"),
		}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			folder := t.TempDir()
			for name, says := range x.supplies {
				if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
					t.Fatal(err)
				}
				for what, text := range says {
					if err := os.WriteFile(filepath.Join(folder, name, what), []byte(text+"\n"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff(x.want, batteryIn(folder)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
