//go:build linux

package netns_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testlan"
	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
)

// Two hosts are down while both get other addresses: neither record that they
// keep of each other is of any use. By multicast on their LAN they find each
// other; without discovery they do not.
func TestDiscoveryOnLAN(t *testing.T) {
	l := newLAN(t, 2)
	if l == nil {
		return
	}
	all := l.mesh("preset: lan", "discovery: false")
	allSee(t, healing, all, "active", names(all)...)

	restartElsewhere(l, all, 100)
	misses := func(p *testnode.Node, other string) bool { // of a slow start the connection time may be over
		return p.Sees("unreachable", other) || p.Sees("expired", other)
	}
	lost := func() bool { return misses(all[0], "n1") && misses(all[1], "n0") }
	testnode.Within(t, healing, "neither reaches the other", lost)
	<-time.After(3 * time.Second) // several attempts to connect
	if !lost() {
		t.Fatal("they found each other at other addresses without discovery: this test shows nothing")
	}

	for _, p := range all {
		p.Configure("preset: lan")
	}
	restartElsewhere(l, all, 200)
	t.Logf("both moved while down: found each other after %s", allSee(t, healing, all, "active", names(all)...))
	testnode.Within(t, healing, "n0 knows n1's new address",
		func() bool { return strings.Contains(addresses(all[0], "n1"), "10.77.0.201/") })
}

// restartElsewhere has hosts be down while their addresses change.
func restartElsewhere(l *lan, all []*testnode.Node, offset int) {
	l.t.Helper()
	for _, p := range all {
		p.End()
	}
	for i := range all {
		l.must(l.On(i, "address", "flush", "dev", "eth0"))
		l.must(l.On(i, "address", "add", testlan.Address(i+offset-1, false)+"/24", "dev", "eth0"))
	}
	for _, p := range all {
		p.Start()
	}
}
