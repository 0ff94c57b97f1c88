//go:build !linux && !windows

package assemble

import "github.com/mutirao-mesh/mutirao/node/api"

// battery: this system does not tell it without a program of its own.
func battery() *api.Battery { return nil }
