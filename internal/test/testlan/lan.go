//go:build linux

// Package testlan makes a small network out of network namespaces, for tests
// that run nodes as processes and take their links away.
//
// Promises: nothing of it touches the machine's own network; what New made is
// removed when the test ends. Every host has one interface, eth0, on a bridge, and
// two addresses of which it uses one at a time. It needs root and iproute2: in CI it
// is a failure where namespaces are not permitted, elsewhere the test is told.
//
// It imports no other package of ours; only tests import it.
package testlan

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// T is what a test is told by: *testing.T.
type T interface {
	Helper()
	Cleanup(func())
	Error(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// LAN is a bridge in a namespace of its own, with hosts on it.
type LAN struct {
	name  string
	hosts int
}

// The bridges: hosts on the second do not hear those on the first.
const (
	here  = "br0"
	there = "br1"
)

// nobody is a hardware address that no host has.
const nobody = "02:00:00:00:00:00"

// New makes a LAN of some hosts whose namespaces' names begin with name. Where
// namespaces are not permitted it fails the test in CI; elsewhere it logs that what
// was to be tested is not, and returns nil.
func New(t T, name string, hosts int, what string) *LAN {
	t.Helper()
	if err := run("ip", "netns", "add", name); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("NOT TESTED: %s: network namespaces are not permitted here: %v", what, err)
		}
		t.Logf("NOT TESTED: %s: network namespaces are not permitted here (run as root): %v", what, err)
		return nil
	}
	l := &LAN{name: name}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	for _, bridge := range []string{here, there} {
		if err := errors.Join(l.ip("link", "add", bridge, "type", "bridge"), l.ip("link", "set", bridge, "up")); err != nil {
			t.Fatal(err)
		}
	}
	for range hosts {
		if err := l.addHost(); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *LAN) addHost() error {
	i := l.hosts
	if err := run("ip", "netns", "add", l.Space(i)); err != nil {
		return err
	}
	l.hosts++
	return inOrder(
		func() error {
			return l.ip("link", "add", port(i), "type", "veth", "peer", "name", "eth0", "netns", l.Space(i))
		},
		func() error { return l.Move(i, false) },
		func() error { return l.Link(i, true) },
		// No IPv6: its neighbour discovery would be counted as traffic. And deleting
		// the first of two addresses leaves the second.
		func() error {
			return run(l.Command(i, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1",
				"net.ipv4.conf.eth0.promote_secondaries=1")...)
		},
		func() error { return l.On(i, "link", "set", "lo", "up") },
		func() error { return l.On(i, "address", "add", Address(i, false)+"/24", "dev", "eth0") },
		func() error { return l.On(i, "link", "set", "eth0", "up") },
	)
}

// close removes the namespaces. The processes in them must have ended.
func (l *LAN) close() error {
	var errs []error
	for i := range l.hosts {
		errs = append(errs, run("ip", "netns", "del", l.Space(i)))
	}
	return errors.Join(append(errs, run("ip", "netns", "del", l.name))...)
}

// Command is what runs a program on a host.
func (l *LAN) Command(host int, program string, args ...string) []string {
	return append([]string{"ip", "netns", "exec", l.Space(host), program}, args...)
}

// Address is one of a host's two addresses.
func Address(host int, second bool) string {
	if second {
		return fmt.Sprintf("10.77.0.%d", host+101)
	}
	return fmt.Sprintf("10.77.0.%d", host+1)
}

// Readdress gives a host its other address, and takes the one that it had.
func (l *LAN) Readdress(host int, second bool) error {
	return errors.Join(
		l.On(host, "address", "replace", Address(host, second)+"/24", "dev", "eth0"),
		l.On(host, "address", "del", Address(host, !second)+"/24", "dev", "eth0"),
	)
}

// Link takes a host's link down, or up again.
func (l *LAN) Link(host int, up bool) error {
	return l.ip("link", "set", port(host), map[bool]string{true: "up", false: "down"}[up])
}

// Move puts a host on the other side of a split, or back.
func (l *LAN) Move(host int, away bool) error {
	return l.ip("link", "set", port(host), "master", map[bool]string{true: there, false: here}[away])
}

// Mute has nothing that one host sends reach another: it goes to a hardware
// address that nobody has. What the other sends still arrives.
func (l *LAN) Mute(from, to int, mute bool) error {
	var errs []error
	for _, second := range []bool{false, true} {
		if mute {
			errs = append(errs, l.On(from, "neighbour", "replace", Address(to, second), "lladdr", nobody, "nud",
				"permanent", "dev", "eth0"))
		} else {
			// It may be gone already: the kernel forgets it when a link goes down.
			_ = l.On(from, "neighbour", "del", Address(to, second), "dev", "eth0")
		}
	}
	return errors.Join(errs...)
}

// Space is the name of a host's namespace.
func (l *LAN) Space(host int) string { return fmt.Sprintf("%s-%d", l.name, host) }
func port(host int) string           { return fmt.Sprintf("port%d", host) }

// ip runs ip on the bridge.
func (l *LAN) ip(args ...string) error { return run(append([]string{"ip", "-n", l.name}, args...)...) }

// On runs ip on a host.
func (l *LAN) On(host int, args ...string) error {
	return run(append([]string{"ip", "-n", l.Space(host)}, args...)...)
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func run(args ...string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
