//go:build linux

package netns_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// What is outside of the NATs: a larger private network, or one with public
// addresses, without which libp2p does not try to get through a NAT. Namespaces
// keep them from the real network.
const (
	private = "10.78.0."
	public  = "11.77.0."
)

func (l *lan) outside(host int) string { return fmt.Sprintf("%s%d", l.outer, host+1) }

// Two hosts, each behind a NAT of its own, and a member outside that relays: by
// it they reach each other, and an instance runs over both.
func TestRelayBetweenNATs(t *testing.T) {
	l := behindNATs(t, private)
	if l == nil {
		return
	}
	all := l.relayTeam("hole-punching: false")
	t.Logf("two behind NATs and a relay: all see all %s after the last join", allSee(t, 20*time.Second, all, "active", names(all)...))
	within(t, healing, "n1 is connected with n2 by the relay", func() bool { return all[1].links() == "connected with 2 of 2 partners, by a relay: n2" })
	t.Logf("an instance over both took %s by the relay", runsHop(t, all[1], "n1", "n2"))
}

// With hole punching the two get a direct connection. Both NATs keep the port of
// who is inside, as most do.
func TestHolePunching(t *testing.T) {
	l := behindNATs(t, public)
	if l == nil {
		return
	}
	all := l.relayTeam("hole-punching: true")
	allSee(t, 20*time.Second, all, "active", names(all)...)
	direct := func() bool {
		const want = "connected with 2 of 2 partners"
		return all[1].links() == want && all[2].links() == want
	}
	t.Logf("a direct connection through both NATs after another %s", within(t, 30*time.Second, "a direct connection", direct))

	all[0].end()
	t.Logf("an instance over both took %s without the relay", runsHop(t, all[1], "n1", "n2"))
}

// relayTeam is a relay outside, and two members who name it.
func (l *lan) relayTeam(punching string) []*process {
	l.t.Helper()
	root := l.t.TempDir()
	var all []*process
	for i := range l.hosts {
		all = append(all, &process{t: l.t, name: fmt.Sprintf("n%d", i), dir: filepath.Join(root, fmt.Sprintf("n%d", i)), space: l.space(i)})
	}
	listen := "/ip4/" + l.outside(0) + "/udp/4001/quic-v1"
	all[0].configure("preset: lan", "relay: true", "listen: ["+listen+"]")
	found(l.t, all[0])
	st, err := all[0].node.Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, p := range all[1:] {
		p.configure("preset: lan", punching, fmt.Sprintf("relays: [%s/p2p/%s]", listen, st.ID))
	}
	join(l.t, all[0], all[1:]...)
	return all
}

// behindNATs is a network of three, on which the second and the third sit behind
// routers that hide them.
func behindNATs(t *testing.T, outer string) *lan {
	t.Helper()
	l := newLAN(t, 3)
	if l == nil {
		return nil
	}
	if _, err := exec.LookPath("nft"); err != nil {
		why := "NFT IS MISSING (PACKAGE NFTABLES): NO NAT CAN BE MADE, NOTHING WAS TESTED"
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Log(why)
		return nil
	}
	l.outer = outer
	l.on(0, "address", "flush", "dev", "eth0")
	l.on(0, "address", "add", l.outside(0)+"/24", "dev", "eth0")
	for i := 1; i < l.hosts; i++ {
		l.hide(i)
	}
	return l
}

// hide puts a router with a NAT between a host and the bridge.
func (l *lan) hide(i int) {
	l.t.Helper()
	router := l.space(i) + "r"
	run(l.t, "ip", "netns", "add", router)
	l.t.Cleanup(func() { l.remove(router) })
	in := func(args ...string) { run(l.t, "ip", append([]string{"-n", router}, args...)...) }
	l.on(i, "link", "del", "eth0")
	l.ip("link", "add", port(i), "type", "veth", "peer", "name", "eth0", "netns", router)
	l.ip("link", "set", port(i), "master", "br0", "up")
	in("link", "add", "eth1", "type", "veth", "peer", "name", "eth0", "netns", l.space(i))
	inside := fmt.Sprintf("192.168.%d.", i)
	in("address", "add", l.outside(i)+"/24", "dev", "eth0")
	in("address", "add", inside+"1/24", "dev", "eth1")
	for _, dev := range []string{"lo", "eth0", "eth1"} {
		in("link", "set", dev, "up")
	}
	l.on(i, "address", "add", inside+"2/24", "dev", "eth0")
	l.on(i, "link", "set", "eth0", "up")
	l.on(i, "route", "add", "default", "via", inside+"1")
	for _, args := range [][]string{
		{"sysctl", "-qw", "net.ipv4.ip_forward=1"},
		{"nft", "add table ip nat; add chain ip nat post { type nat hook postrouting priority srcnat; }; add rule ip nat post oifname eth0 masquerade"},
		// What nobody inside asked for is dropped, and private addresses lead nowhere.
		{"nft", "add table ip keep; add chain ip keep in { type filter hook input priority filter; }; add chain ip keep through { type filter hook forward priority filter; }"},
		{"nft", "add rule ip keep in iifname eth0 ct state new drop; add rule ip keep through iifname eth0 ct state new drop; add rule ip keep through oifname eth0 ip daddr 192.168.0.0/16 reject"},
	} {
		run(l.t, "ip", append([]string{"netns", "exec", router}, args...)...)
	}
}

// links is what the node's doctor says of its connections.
func (p *process) links() string {
	p.t.Helper()
	d, err := p.node.Doctor(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	var all []string
	for _, f := range d.Findings {
		if f.Check == "links" {
			all = append(all, f.What)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// runsHop runs an instance over two partners.
func runsHop(t *testing.T, p *process, here, there string) time.Duration {
	t.Helper()
	if _, err := p.node.AddWorkflow(t.Context(), "hop.yaml", []byte(hop)); err != nil {
		t.Fatal(err)
	}
	st, err := p.node.Start(t.Context(), api.StartRequest{Workflow: "hop", Assign: map[string]string{"here": here, "there": there}})
	if err != nil {
		t.Fatal(err)
	}
	return within(t, 20*time.Second, "the instance succeeds", func() bool {
		in, err := p.node.Show(t.Context(), st.ID)
		return err == nil && in.State == "succeeded"
	})
}
