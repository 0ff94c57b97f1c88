// Package addresses says of the addresses of a node where they lead.
//
// It decides by their text alone, and asks nobody.
//
// It imports no other package of ours; node and node/doctor import it.
package addresses

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// OffMachine reports whether an address leads out of its machine.
func OffMachine(addr string) bool {
	return !strings.HasPrefix(addr, "/ip4/127.") && !strings.HasPrefix(addr, "/ip6/::1/")
}

// FromOutside reports whether an address can be dialled from other networks: it
// is public, a name, or leads over a relay.
func FromOutside(addr string) bool {
	parts := strings.Split(addr, "/")
	if len(parts) < 3 || strings.Contains(addr, "/p2p-circuit") {
		return true
	}
	ip, err := netip.ParseAddr(parts[2])
	return err != nil || !ip.IsPrivate() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && !carrierGrade.Contains(ip)
}

// carrierGrade are the addresses that providers share among customers (RFC 6598).
var carrierGrade = netip.MustParsePrefix("100.64.0.0/10")

// Best is the address that leads farthest, of those that lead there straight;
// empty: there is none.
func Best(addrs []string) string {
	rank := func(a string) int {
		switch {
		case FromOutside(a):
			return 0
		case OffMachine(a):
			return 1
		}
		return 2
	}
	straight := slices.DeleteFunc(slices.Clone(addrs),
		func(a string) bool { return strings.Contains(a, "/p2p-circuit") })
	if len(straight) == 0 {
		return ""
	}
	return slices.MinFunc(straight, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(b, a)) // quic before tcp, ip6 behind
	})
}

// InWords are addresses in words.
func InWords(addrs []string) string {
	if len(addrs) == 0 {
		return "no known address"
	}
	return strings.Join(addrs, ", ")
}
