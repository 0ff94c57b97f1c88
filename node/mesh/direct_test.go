package mesh

import (
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Two who know each other by a relay only are connected by it; as soon as one knows
// where the other is, directly.
func TestRelayIsLeftForADirectWay(t *testing.T) {
	relay := start(t, overQUIC, func(c *Config) { c.Relay.Serve = true })
	via := relay.Addrs()[0] + "/p2p/" + string(relay.ID())
	named := func(c *Config) { c.Relay.Via = []string{via} }
	a, b := start(t, overQUIC, named), start(t, overQUIC, named)
	a.until(t, "the relay leads to a", func() bool { return slices.Contains(a.Addrs(), via+"/p2p-circuit") })

	if err := b.SetAddrs(a.ID(), []string{via + "/p2p-circuit"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Want(a.ID(), true); err != nil {
		t.Fatal(err)
	}
	b.untilUp(t, a)
	if got := b.Relayed(); !slices.Equal(got, []workflow.PartnerID{a.ID()}) {
		t.Fatalf("connected by a relay with %v, want %s", got, a.ID())
	}

	if err := b.SetAddrs(a.ID(), append(a.Addrs(), via+"/p2p-circuit")); err != nil {
		t.Fatal(err)
	}
	b.until(t, "a direct connection", func() bool {
		return b.Connected(a.ID()) && len(b.Relayed()) == 0 && len(a.Relayed()) == 0
	})
	b.until(t, "a frame is taken", func() bool { return b.Send(a.ID(), []byte("straight")) == nil })
	a.until(t, "a frame", func() bool { return slices.Contains(a.all(), event{"frame", b.ID(), "straight"}) })
}
