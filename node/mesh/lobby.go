package mesh

import (
	"net/netip"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Strangers are those that were not admitted, or not yet: some mean harm, some
// want to join. There are few places for them (Limits.Strangers), and fewer for
// those from one address (Limits.StrangersPerAddress). The place for one too
// many is that of the stranger from the same address, or from the most crowded
// one, that has shown the least, and among these of the one that has been here
// longest. One that joins is through within a few round trips.

// origin is what strangers are told apart by before they have a key: an IPv4
// address, or an IPv6 network of the size that one customer is given.
type origin netip.Prefix

func originOf(a ma.Multiaddr) origin {
	ip, err := manet.ToIP(a)
	if err != nil {
		return origin{}
	}
	addr, _ := netip.AddrFromSlice(ip)
	addr = addr.Unmap()
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return origin{}
	}
	return origin(p)
}

// What a stranger has shown, in ascending order.
const (
	shownNothing = iota
	shownHello   // a well-formed one
	shownReason  // to be here: a request that was answered
)

// shows notes what a stranger has shown.
func (l *link) shows(what int32) { l.shown.Store(max(l.shown.Load(), what)) }

// strangerLocked reports whether the link takes a place for strangers. Partners
// that are wanted are known, and have proved their keys.
func (l *link) strangerLocked() bool {
	return !l.member && l.partner.wanted == nil && !l.ended()
}

// surplusLocked finds the link that must go for a new one's sake, nil if none.
func (m *Mesh) surplusLocked(fresh *link) *link {
	if !fresh.strangerLocked() {
		return nil
	}
	total, from := 0, map[origin]int{}
	for _, l := range m.links {
		if l.strangerLocked() {
			total++
			from[l.origin]++
		}
	}
	crowded := fresh.origin
	if from[crowded] <= m.limits.StrangersPerAddress {
		if total <= m.limits.Strangers {
			return nil
		}
		for o, n := range from {
			if n > from[crowded] {
				crowded = o
			}
		}
	}
	goes := fresh
	for _, l := range m.links {
		if l != fresh && l.strangerLocked() && l.origin == crowded && (goes == fresh || l.less(goes)) {
			goes = l
		}
	}
	return goes
}

// less reports whether l has shown less than o, or as much for a longer time.
func (l *link) less(o *link) bool {
	if a, b := l.shown.Load(), o.shown.Load(); a != b {
		return a < b
	}
	return l.begin < o.begin
}
