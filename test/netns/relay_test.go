//go:build linux

package netns_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
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
	t.Logf("two behind NATs and a relay: all see all %s after the last join",
		allSee(t, time.Minute, all, "active", names(all)...))
	testnode.Within(t, healing, "n1 is connected with n2 by the relay",
		func() bool { return links(all[1]) == "connected with 2 of 2 partners, by a relay: n2" })
	t.Logf("an instance over both took %s by the relay", runsHop(t, all[1], "n1", "n2"))
}

// With hole punching the two get a direct connection. Both NATs keep the port of
// a node inside, as most do.
func TestHolePunching(t *testing.T) {
	l := behindNATs(t, public)
	if l == nil {
		return
	}
	all := l.relayTeam("hole-punching: true")
	allSee(t, time.Minute, all, "active", names(all)...)
	direct := func() bool {
		const want = "connected with 2 of 2 partners"
		return links(all[1]) == want && links(all[2]) == want
	}
	// libp2p tries three times, after 8 s of dialling: on a loaded machine that lasts.
	t.Logf("a direct connection through both NATs after another %s",
		testnode.Within(t, 2*time.Minute, "a direct connection", direct))

	all[0].End()
	t.Logf("an instance over both took %s without the relay", runsHop(t, all[1], "n1", "n2"))
}

// What keeps them apart may end later, as when one of them leaves a network whose
// firewall lets nothing through. Takes minutes: with -measure only.
func TestHolePunchingIsTriedAgain(t *testing.T) {
	if !*measure {
		t.Skip("takes minutes: -measure")
	}
	l := behindNATs(t, public)
	if l == nil {
		return
	}
	for i := 1; i < l.hosts; i++ {
		run(t, l.Command(i, "nft", "add table ip apart; add chain ip apart through { type filter hook forward priority filter; }; "+
			"add rule ip apart through oifname eth0 ip daddr "+l.outside(3-i)+" drop")...)
	}
	all := l.relayTeam("hole-punching: true")
	allSee(t, time.Minute, all, "active", names(all)...)
	const byRelay = "connected with 2 of 2 partners, by a relay: n2"
	testnode.Within(t, healing, "n1 is connected with n2 by the relay", func() bool { return links(all[1]) == byRelay })
	<-time.After(time.Minute) // libp2p has given up
	if got := links(all[1]); got != byRelay {
		t.Fatalf("nothing goes straight between the two, and n1 says that it is %s", got)
	}
	for i := 1; i < l.hosts; i++ {
		run(t, l.Command(i, "nft", "delete table ip apart")...)
	}
	t.Logf("a direct connection %s after there was a way",
		testnode.Within(t, 6*time.Minute, "a direct connection", func() bool {
			return links(all[1]) == "connected with 2 of 2 partners"
		}))
}

// relayTeam is a relay outside, and two members that name it.
func (l *lan) relayTeam(punching string) []*testnode.Node {
	l.t.Helper()
	all := l.nodes()
	listen := "/ip4/" + l.outside(0) + "/udp/4001/quic-v1"
	all[0].Configure("preset: lan", "relay: true", "listen: ["+listen+"]")
	all[0].Found()
	st, err := all[0].API.Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for i, p := range all[1:] {
		p.Command = []string{"ip", "netns", "exec", l.inside(i + 1), os.Args[0]}
		p.Configure("preset: lan", punching, fmt.Sprintf("relays: [%s/p2p/%s]", listen, st.ID))
	}
	all[0].Admit(all[1:]...)
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
	for i := range l.hosts {
		l.must(l.On(i, "address", "flush", "dev", "eth0"))
		l.must(l.On(i, "address", "add", l.outside(i)+"/24", "dev", "eth0"))
	}
	for i := 1; i < l.hosts; i++ {
		l.hide(i)
	}
	return l
}

// inside is the namespace that a host hides.
func (l *lan) inside(host int) string { return l.Space(host) + "in" }

// hide makes a host the router of another, with a NAT.
func (l *lan) hide(i int) {
	l.t.Helper()
	run(l.t, "ip", "netns", "add", l.inside(i))
	l.t.Cleanup(func() { run(l.t, "ip", "netns", "del", l.inside(i)) })
	in := func(args ...string) { run(l.t, append([]string{"ip", "-n", l.inside(i)}, args...)...) }
	l.must(l.On(i, "link", "add", "eth1", "type", "veth", "peer", "name", "eth0", "netns", l.inside(i)))
	subnet := fmt.Sprintf("192.168.%d.", i)
	l.must(l.On(i, "address", "add", subnet+"1/24", "dev", "eth1"))
	l.must(l.On(i, "link", "set", "eth1", "up"))
	run(l.t, "ip", "netns", "exec", l.inside(i), "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
	in("link", "set", "lo", "up")
	in("address", "add", subnet+"2/24", "dev", "eth0")
	in("link", "set", "eth0", "up")
	in("route", "add", "default", "via", subnet+"1")
	for _, args := range [][]string{
		{"sysctl", "-qw", "net.ipv4.ip_forward=1"},
		{"nft", "add table ip nat; add chain ip nat post { type nat hook postrouting priority srcnat; }; add rule ip nat post oifname eth0 masquerade"},
		// What nobody inside asked for is dropped, and private addresses lead nowhere.
		{"nft", "add table ip keep; add chain ip keep in { type filter hook input priority filter; }; add chain ip keep through { type filter hook forward priority filter; }"},
		{"nft", "add rule ip keep in iifname eth0 ct state new drop; add rule ip keep through iifname eth0 ct state new drop; add rule ip keep through oifname eth0 ip daddr 192.168.0.0/16 reject"},
	} {
		run(l.t, l.Command(i, args[0], args[1:]...)...)
	}
}

// links is what the node's doctor says of its connections.
func links(p *testnode.Node) string {
	p.T.Helper()
	d, err := p.API.Doctor(p.T.Context())
	if err != nil {
		p.T.Fatal(err)
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
func runsHop(t *testing.T, p *testnode.Node, here, there string) time.Duration {
	t.Helper()
	if _, err := p.API.AddWorkflow(t.Context(), "hop.yaml", []byte(hop)); err != nil {
		t.Fatal(err)
	}
	st, err := p.API.Start(t.Context(), api.StartRequest{
		Workflow: "hop", Assign: map[string]string{"here": here, "there": there},
	})
	if err != nil {
		t.Fatal(err)
	}
	return testnode.Within(t, time.Minute, "the instance succeeds", func() bool {
		in, err := p.API.Show(t.Context(), st.ID)
		return err == nil && in.State == "succeeded"
	})
}
