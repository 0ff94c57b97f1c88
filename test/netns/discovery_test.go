//go:build linux

package netns_test

import (
	"strings"
	"testing"
	"time"
)

// Two hosts are down while both get other addresses: neither record that they
// keep of each other is of any use. By multicast on their LAN they find each
// other; without discovery they do not.
func TestDiscoveryOnLAN(t *testing.T) {
	l := newLAN(t, 2)
	if l == nil {
		return
	}
	all := l.processes("lan", "discovery: false")
	allSee(t, healing, all, "active", names(all)...)

	restartElsewhere(l, all, 100)
	lost := func() bool { return all[0].sees("unreachable", "n1") && all[1].sees("unreachable", "n0") }
	within(t, healing, "neither reaches the other", lost)
	<-time.After(3 * time.Second) // several attempts to connect
	if !lost() {
		t.Fatal("they found each other at other addresses without discovery: this test shows nothing")
	}

	for _, p := range all {
		p.configure("preset: lan")
	}
	restartElsewhere(l, all, 200)
	t.Logf("both moved while down: found each other after %s", allSee(t, healing, all, "active", names(all)...))
	within(t, healing, "n0 knows n1's new address", func() bool { return strings.Contains(all[0].addresses("n1"), "10.77.0.201/") })
}

// restartElsewhere has hosts be down while their addresses change.
func restartElsewhere(l *lan, all []*process, offset int) {
	l.t.Helper()
	for _, p := range all {
		p.end()
	}
	for i := range all {
		l.on(i, "address", "flush", "dev", "eth0")
		l.on(i, "address", "add", address(i+offset-1)+"/24", "dev", "eth0")
	}
	for _, p := range all {
		p.start()
	}
}
