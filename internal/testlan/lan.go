//go:build linux

// Package testlan makes a small network out of network namespaces, for tests
// that run nodes as processes and take their links away.
//
// Promises: nothing of it touches the machine's own network; what New made,
// Close removes. Every host has one interface, eth0, on a bridge, and two
// addresses of which it uses one at a time. It needs root and iproute2.
//
// Tests import it; product code does not.
package testlan

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

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

// New makes a LAN of some hosts whose namespaces' names begin with name. It
// fails where namespaces are not permitted.
func New(name string, hosts int) (*LAN, error) {
	l := &LAN{name: name}
	if err := run("ip", "netns", "add", name); err != nil {
		return nil, fmt.Errorf("network namespaces are not permitted here: %w", err)
	}
	for _, bridge := range []string{here, there} {
		if err := errors.Join(l.ip("link", "add", bridge, "type", "bridge"), l.ip("link", "set", bridge, "up")); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	for range hosts {
		if err := l.addHost(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

func (l *LAN) addHost() error {
	i := l.hosts
	if err := run("ip", "netns", "add", l.space(i)); err != nil {
		return err
	}
	l.hosts++
	return inOrder(
		func() error {
			return l.ip("link", "add", port(i), "type", "veth", "peer", "name", "eth0", "netns", l.space(i))
		},
		func() error { return l.Move(i, false) },
		func() error { return l.Link(i, true) },
		// Deleting the first of two addresses leaves the second.
		func() error {
			return run(l.Command(i, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv4.conf.eth0.promote_secondaries=1")...)
		},
		func() error { return l.on(i, "link", "set", "lo", "up") },
		func() error { return l.on(i, "address", "add", Address(i, false)+"/24", "dev", "eth0") },
		func() error { return l.on(i, "link", "set", "eth0", "up") },
	)
}

// Close removes the namespaces. The processes in them must have ended.
func (l *LAN) Close() error {
	var errs []error
	for i := range l.hosts {
		errs = append(errs, run("ip", "netns", "del", l.space(i)))
	}
	return errors.Join(append(errs, run("ip", "netns", "del", l.name))...)
}

// Command is what runs a program on a host.
func (l *LAN) Command(host int, program string, args ...string) []string {
	return append([]string{"ip", "netns", "exec", l.space(host), program}, args...)
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
		l.on(host, "address", "replace", Address(host, second)+"/24", "dev", "eth0"),
		l.on(host, "address", "del", Address(host, !second)+"/24", "dev", "eth0"),
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
			errs = append(errs, l.on(from, "neighbour", "replace", Address(to, second), "lladdr", nobody, "nud", "permanent", "dev", "eth0"))
		} else {
			// It may be gone already: the kernel forgets it when a link goes down.
			_ = l.on(from, "neighbour", "del", Address(to, second), "dev", "eth0")
		}
	}
	return errors.Join(errs...)
}

func (l *LAN) space(host int) string { return fmt.Sprintf("%s-%d", l.name, host) }
func port(host int) string           { return fmt.Sprintf("port%d", host) }

// ip runs ip on the bridge, on on a host.
func (l *LAN) ip(args ...string) error { return run(append([]string{"ip", "-n", l.name}, args...)...) }

func (l *LAN) on(host int, args ...string) error {
	return run(append([]string{"ip", "-n", l.space(host)}, args...)...)
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
