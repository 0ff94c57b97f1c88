package assemble

import (
	"strings"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/mesh"
)

// carrier is the mesh as the node sees it, with what it refused in words that
// fit the node's other counters.
type carrier struct{ *mesh.Mesh }

var _ node.Carrier = carrier{}

// Refused are the totals of what the mesh refused, by reason.
func (c carrier) Refused() map[string]uint64 {
	out := map[string]uint64{}
	for why, n := range c.Counters().Refused {
		out[strings.ReplaceAll(string(why), " ", "-")] = n
	}
	return out
}

// Traffic implements node.Carrier.
func (c carrier) Traffic() api.Traffic {
	n := c.Counters()
	return api.Traffic{FramesIn: n.FramesIn, FramesOut: n.FramesOut, BytesIn: n.BytesIn, BytesOut: n.BytesOut}
}
