package gossip

import (
	"crypto/sha256"
	"net"
	"net/netip"
	"strconv"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// port is part of every synthetic address; memberlist wants one.
const port = 7946

// syntheticIP is a partner's address for memberlist, in fd00::/8: it follows
// from the ID, so that it never changes, wherever the partner is.
func syntheticIP(p workflow.PartnerID) net.IP {
	sum := sha256.Sum256([]byte(p))
	return append(net.IP{0xfd}, sum[:15]...)
}

// address is a synthetic address as net.Addr.
type address workflow.PartnerID

func (address) Network() string { return "mutirao" }

func (a address) String() string {
	return net.JoinHostPort(syntheticIP(workflow.PartnerID(a)).String(), strconv.Itoa(port))
}

// joinName is how memberlist's Join names a partner.
func joinName(p workflow.PartnerID) string { return string(p) + "/" + address(p).String() }

// isOwn reports whether ip is p's synthetic address.
func isOwn(p workflow.PartnerID, ip net.IP) bool {
	a, ok := netip.AddrFromSlice(ip)
	b, _ := netip.AddrFromSlice(syntheticIP(p))
	return ok && a == b
}
