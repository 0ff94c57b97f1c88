package mesh

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/libp2p/go-libp2p/core/host"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// ErrNowhere tells that a node can listen at none of its addresses.
var ErrNowhere = errors.New("the node cannot listen anywhere")

// listen has the host listen on the configured addresses; where the port is 0,
// on the remembered one if it is still free. One that works is enough: a machine
// may have no IPv6.
func listen(h host.Host, c Config) error {
	var errs []error
	works := false
	for _, s := range c.Listen {
		err := errors.ErrUnsupported
		if again, ok := remembered(s, c.Prefer); ok {
			err = listenOn(h, again)
		}
		if err != nil {
			err = listenOn(h, s)
		}
		works = works || err == nil
		if err != nil {
			err = fmt.Errorf("%s: %w", s, err)
		}
		errs = append(errs, err)
	}
	if !works {
		return fmt.Errorf("%w:\n%w", ErrNowhere, errors.Join(errs...))
	}
	return nil
}

func listenOn(h host.Host, s string) error {
	a, err := ma.NewMultiaddr(s)
	if err != nil {
		return fmt.Errorf("%q is not a multiaddr: %w", s, err)
	}
	if err := vacant(a); err != nil {
		return err
	}
	err = h.Network().Listen(a)
	if err == nil {
		return nil
	}
	if why := unbound(a); why != nil { // in the system's words, not in those of the library
		return why
	}
	return err
}

// unbound is why the system lets nobody listen at an address; nil: it does.
func unbound(a ma.Multiaddr) error {
	network, address, err := manet.DialArgs(a)
	if err != nil {
		return nil
	}
	var c io.Closer
	if strings.HasPrefix(network, "udp") {
		c, err = net.ListenPacket(network, address)
	} else {
		c, err = net.Listen(network, address)
	}
	switch {
	case err == nil:
		return c.Close()
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return errAbsent
	case errors.Is(err, syscall.EADDRINUSE):
		return errTaken
	case errors.Is(err, syscall.EACCES):
		return errReserved
	}
	return err
}

// Why the system lets nobody listen at an address, in our words.
var (
	errAbsent   = errors.New("this machine does not have this address now")
	errTaken    = errors.New("something else has this port")
	errReserved = errors.New("this user may not have this port: those below 1024 are the system's")
)

// vacant reports whether nobody else listens on a TCP port. libp2p would share it, and
// each would get some of the other's connections.
func vacant(a ma.Multiaddr) error {
	if port, err := a.ValueForProtocol(ma.P_TCP); err != nil || port == "0" {
		return nil
	}
	return unbound(a)
}

// remembered finds the address that differs from s only in the port that s
// leaves open.
func remembered(s string, before []string) (string, bool) {
	want := strings.Split(s, "/")
	for _, b := range before {
		have := strings.Split(b, "/")
		if len(have) == len(want) && sameButPort(want, have) {
			return b, true
		}
	}
	return "", false
}

func sameButPort(want, have []string) bool {
	open := false
	for i := range want {
		port := i > 0 && (want[i-1] == "udp" || want[i-1] == "tcp")
		switch {
		case port && want[i] == "0":
			open = true
		case want[i] != have[i]:
			return false
		}
	}
	return open
}

// Listening are the addresses that the node listens on, to be remembered
// (Config.Prefer).
func (m *Mesh) Listening() []string { return texts(m.host.Network().ListenAddresses()) }
