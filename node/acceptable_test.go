package node_test

import (
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/worklist/device"
)

// What may be accepted of a node on its way out is what its rules say.
func TestAcceptableIsWhatTheDeviceAsks(t *testing.T) {
	if !slices.EqualFunc(api.Acceptable, device.Acceptable, func(a string, q device.Question) bool { return a == string(q) }) {
		t.Errorf("the API accepts %q, the device %q", api.Acceptable, device.Acceptable)
	}
}
