package assemble

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// powerFolder is where Linux, and Android with it, tells of batteries and chargers: a folder for each
// (its documentation of the power supply class, Documentation/ABI/testing/sysfs-class-power).
const powerFolder = "/sys/class/power_supply"

// battery is how full the machine's batteries are; nil: it has none, or does not tell.
func battery() *api.Battery { return batteryIn(powerFolder) }

// batteryIn reads a folder of power supplies. Of several batteries the fullest counts, as a machine goes on with
// that one; batteries of mice and the like, whose scope is a device, are none of the machine. It is on the mains where
// a charger says so, or a battery that it is charged, or is kept as it is.
func batteryIn(folder string) (is *api.Battery) {
	onMains := false
	supplies, _ := filepath.Glob(filepath.Join(folder, "*", "type"))
	for _, kind := range supplies {
		says := func(what string) string {
			b, _ := os.ReadFile(filepath.Join(filepath.Dir(kind), what))
			return strings.TrimSpace(string(b))
		}
		if says("scope") == "Device" {
			continue
		}
		if says("type") != "Battery" {
			onMains = onMains || says("online") == "1"
			continue
		}
		percent, err := strconv.Atoi(says("capacity"))
		if err != nil || percent < 0 || percent > 100 {
			continue
		}
		if is == nil {
			is = &api.Battery{}
		}
		is.Percent = max(is.Percent, percent)
		switch says("status") {
		case "Charging", "Full", "Not charging":
			onMains = true
		}
	}
	if is != nil {
		is.Charging = onMains
	}
	return is
}
