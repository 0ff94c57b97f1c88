package assemble

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
)

// bareInterfaces names the network interfaces that are up, lead out of the
// machine, and have no address but those that IPv6 gives itself. Where a system
// forbids to ask there are none.
func bareInterfaces() []string {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var bare []string
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		if addrs, err := i.Addrs(); err == nil && !leadsOut(addrs) {
			bare = append(bare, i.Name)
		}
	}
	return bare
}

// leadsOut reports whether one of an interface's addresses can be dialled.
func leadsOut(addrs []net.Addr) bool {
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			return true
		}
	}
	return false
}

// networkAddresses are this machine's addresses at which phones on its networks may reach it, the
// likeliest first.
func networkAddresses() []netip.Addr {
	likely := outgoing("udp4", "192.0.2.1:9")
	all, err := net.Interfaces()
	if err != nil { // Android forbids to ask
		return phoneAddresses([]netip.Addr{likely}, likely)
	}
	var found []netip.Addr
	for _, i := range all {
		// A link to one other machine is a tunnel, or a way to a telephone company.
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 ||
			i.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				found = append(found, p.Addr().Unmap())
			}
		}
	}
	return phoneAddresses(found, likely)
}

// outgoing is the address from which something would be sent to a place elsewhere; none: invalid. Nothing
// is sent.
func outgoing(network, to string) netip.Addr {
	c, err := net.Dial(network, to)
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	at, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// maxPhoneAddresses is the most that phones are given: machines with containers may have hundreds.
const maxPhoneAddresses = 16

// phoneAddresses picks those of a machine's addresses at which phones nearby reach it: private ones, and
// of a kind (IPv4, IPv6) without any the public ones; where nothing else is left those that IPv4 gives itself. The
// one by which the machine sends comes first, then IPv4.
func phoneAddresses(found []netip.Addr, likely netip.Addr) []netip.Addr {
	pick := func(fits func(netip.Addr) bool) (out []netip.Addr) {
		for _, a := range found {
			if fits(a) && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
		return out
	}
	var out []netip.Addr
	for _, kind := range []func(netip.Addr) bool{netip.Addr.Is4, netip.Addr.Is6} {
		of := pick(func(a netip.Addr) bool { return kind(a) && a.IsPrivate() })
		if len(of) == 0 {
			of = pick(func(a netip.Addr) bool { return kind(a) && a.IsGlobalUnicast() })
		}
		out = append(out, of...)
	}
	if len(out) == 0 {
		out = pick(func(a netip.Addr) bool { return a.Is4() && a.IsLinkLocalUnicast() })
	}
	slices.SortStableFunc(out, func(a, b netip.Addr) int {
		order := func(a netip.Addr) int {
			switch {
			case a == likely:
				return 0
			case a.Is4():
				return 1
			}
			return 2
		}
		return cmp.Compare(order(a), order(b))
	})
	return out[:min(len(out), maxPhoneAddresses)]
}
