package assemble

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/mutirao-mesh/mutirao/node/api"
)

var getSystemPowerStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetSystemPowerStatus")

// powerStatus is SYSTEM_POWER_STATUS of the Windows API.
type powerStatus struct {
	onLine, flag, percent, saver byte
	left, whole                  uint32
}

// battery is how full the machine's batteries are; nil: it has none, or does not tell.
func battery() *api.Battery {
	var is powerStatus
	if ok, _, _ := getSystemPowerStatus.Call(uintptr(unsafe.Pointer(&is))); ok == 0 || is.percent > 100 {
		return nil // 255: it is not known, or there is none
	}
	return &api.Battery{Percent: int(is.percent), Charging: is.onLine == 1}
}
