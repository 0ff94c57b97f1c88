package node

import (
	"runtime"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// battery is how full the machine's battery is; nil: nobody knows.
func (p *Parts) battery() *api.Battery {
	if p.Battery == nil {
		return nil
	}
	return p.Battery()
}

// device is the machine that the node runs on, as far as it tells.
func (p *Parts) device() api.Device {
	out := api.Device{OS: runtime.GOOS, Arch: runtime.GOARCH, Battery: p.battery()}
	if p.Space != nil {
		if free, total, err := p.Space(); err == nil {
			out.Disk = &api.Disk{Free: free, Total: total}
		}
	}
	return out
}

// mayLock is why this device locks no item now; nil: it does.
func (p *Parts) mayLock() error {
	if p.Config.LockAbove == 0 {
		return nil // whatever it has, be it 0 %
	}
	b := p.battery()
	if b == nil || b.Charging || b.Percent > p.Config.LockAbove {
		return nil
	}
	return api.Errorf(api.Refused, "this device has its %s, and locks nothing at %d %% or less: it may be out of power before the work is handed in", b, p.Config.LockAbove).
		WithHint("charge it; or select the item, and stay connected; lock-above in config.yaml says from where on")
}
