//go:build linux

package netns_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// lan is a bridge in a namespace of its own, with hosts on it: nothing of it
// touches this machine's network. Addresses are private (10.77.0.0/24).
type lan struct {
	t     *testing.T
	name  string
	hosts int
	outer string // of the network outside, where there are NATs: its addresses begin so
}

// newLAN makes a LAN, or says that it cannot be made here. In CI it must.
func newLAN(t *testing.T, hosts int) *lan {
	t.Helper()
	l := &lan{t: t, name: fmt.Sprintf("mu%d", os.Getpid()), hosts: hosts}
	if out, err := exec.Command("ip", "netns", "add", l.name).CombinedOutput(); err != nil {
		why := fmt.Sprintf("NETWORK NAMESPACES ARE NOT PERMITTED HERE: NOTHING WAS TESTED: ip netns add: %v: %s", err, out)
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Log(why)
		return nil
	}
	t.Cleanup(func() { l.remove(l.name) })
	for _, bridge := range []string{"br0", "br1"} {
		l.ip("link", "add", bridge, "type", "bridge")
		l.ip("link", "set", bridge, "up")
	}
	for i := range hosts {
		l.addHost(i)
	}
	return l
}

func (l *lan) remove(space string) {
	if out, err := exec.Command("ip", "netns", "del", space).CombinedOutput(); err != nil {
		l.t.Errorf("ip netns del %s: %v: %s", space, err, out)
	}
}

func (l *lan) space(host int) string { return fmt.Sprintf("%s-%d", l.name, host) }
func port(host int) string           { return fmt.Sprintf("port%d", host) }
func address(host int) string        { return fmt.Sprintf("10.77.0.%d", host+1) }

func (l *lan) addHost(i int) {
	run(l.t, "ip", "netns", "add", l.space(i))
	l.t.Cleanup(func() { l.remove(l.space(i)) })
	l.ip("link", "add", port(i), "type", "veth", "peer", "name", "eth0", "netns", l.space(i))
	l.ip("link", "set", port(i), "master", "br0", "up")
	// No IPv6: its neighbour discovery would be counted as traffic.
	run(l.t, "ip", "netns", "exec", l.space(i), "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
	l.on(i, "link", "set", "lo", "up")
	l.on(i, "address", "add", address(i)+"/24", "dev", "eth0")
	l.on(i, "link", "set", "eth0", "up")
}

// ip runs ip on the bridge, on on a host.
func (l *lan) ip(args ...string) {
	l.t.Helper()
	run(l.t, "ip", append([]string{"-n", l.name}, args...)...)
}

func (l *lan) on(host int, args ...string) {
	l.t.Helper()
	run(l.t, "ip", append([]string{"-n", l.space(host)}, args...)...)
}

// isolate puts the hosts from one on behind another bridge, which leads nowhere
// else, or back.
func (l *lan) isolate(from int, cut bool) {
	l.t.Helper()
	bridge := "br0"
	if cut {
		bridge = "br1"
	}
	for i := from; i < l.hosts; i++ {
		l.ip("link", "set", port(i), "master", bridge)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// processes makes a process per host, of a mesh that the first founds.
func (l *lan) processes(preset string, more ...string) []*process {
	l.t.Helper()
	root := l.t.TempDir()
	var all []*process
	for i := range l.hosts {
		p := &process{t: l.t, name: fmt.Sprintf("n%d", i), dir: filepath.Join(root, fmt.Sprintf("n%d", i)), space: l.space(i)}
		p.configure(append(more, "preset: "+preset)...)
		all = append(all, p)
	}
	found(l.t, all[0])
	join(l.t, all[0], all[1:]...)
	return all
}

// sent is how many bytes a host has put on its link, headers included.
func (l *lan) sent(host int) (bytes, packets uint64) {
	l.t.Helper()
	read := func(counter string) uint64 {
		out, err := exec.Command("ip", "netns", "exec", l.space(host), "cat", "/sys/class/net/eth0/statistics/"+counter).Output()
		if err != nil {
			l.t.Fatal(err)
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			l.t.Fatal(err)
		}
		return n
	}
	return read("tx_bytes"), read("tx_packets")
}

func output(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
