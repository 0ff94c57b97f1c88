package assemble

import (
	"os"
	"runtime/debug"

	"github.com/mutirao-mesh/mutirao/configs"
)

// The memory of a small device: what a node takes by itself, and how many times the
// bytes of facts in memory their decoded form and what is collected later take.
const (
	smallBase   = 40 << 20
	smallFactor = 2
	smallMemory = 64 << 20 // limits.memory up to which a device is small
)

// Economise has the process collect its garbage early on a small device, so that what
// others send does not take it beyond its preset. A user who sets GOMEMLIMIT knows
// better. It is for processes that run one node.
func Economise(cfg configs.Config) {
	if cfg.Store == configs.StoreSmall && cfg.Limits.Memory <= smallMemory && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(smallBase + smallFactor*cfg.Limits.Memory)
	}
}
